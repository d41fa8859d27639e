//! Readiness.

use std::time::Duration;

use http::StatusCode;
use schema::error::DbError;
use serde::Deserialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::answer::{Answers, Body};
use crate::deps::Deps;
use crate::dispatch::Anyone;
use crate::error::{Result, chain};
use crate::input::Input;
use crate::openapi::Schemas;
use crate::ports::{EngineState, LeaderState, PartHealth};
use crate::reply::Reply;
use crate::route::{Area, Route};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("readiness", READINESS, readiness)
            .title(Area::Service, "Check readiness")
            .about(
                "One line each for database, engine, leadership and the parts of the service; 503 \
                 when the database fails, the engine is unavailable, or a part has failed \
                 permanently. A standby is ready: it serves the API. With `part=database` the database \
                 alone counts: for balancers that must not take a service away whose engine is unavailable.",
            ),
    ]
}

/// Answered whatever the database is like.
pub(crate) const READINESS: &str = "/readyz";
/// A database that takes longer to answer nothing is not ready.
const PING_TIME: Duration = Duration::from_secs(2);
/// Longest reason shown, in characters.
const MAX_REASON: usize = 200;

/// Choice of the parts that count.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ReadinessOf)]
pub struct Wanted {
    /// The only part that counts; all parts without it.
    part: Option<Part>,
}

/// A part that may count alone.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ReadinessPart)]
pub enum Part {
    /// The database.
    Database,
}

/// Lines for people, with a status for load balancers.
pub struct Readiness {
    ready: bool,
    lines: String,
}

impl Answers for Readiness {
    fn into_reply(self) -> Reply {
        Reply::text(self.lines).status(match self.ready {
            true => StatusCode::OK,
            false => StatusCode::SERVICE_UNAVAILABLE,
        })
    }

    fn describe(_: &mut Schemas) -> Vec<Body> {
        [StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE]
            .map(Body::text)
            .into()
    }
}

/// `GET /readyz`: one line each for database, engine, leadership and the parts of the service; 503
/// when the database fails, the engine is unavailable, or a part has failed for good. A standby is
/// ready: it serves the API. So is a service with a part that is only degraded: what it does is done
/// later, and no other replica would do it sooner.
///
/// # Errors
/// None.
async fn readiness(_: Anyone, input: Input<Wanted>, deps: Deps) -> Result<Readiness> {
    let database = database(&deps).await;
    if let Some(Part::Database) = input.params.part {
        return Ok(Readiness {
            ready: database == "ok",
            lines: format!("database: {database}\n"),
        });
    }
    let engine = engine(&deps.engine.engine());
    let leadership = leadership(&deps.leadership.leader());
    let parts = deps.health.parts();
    let failed = parts.iter().flat_map(|part| &part.fault).any(|f| f.fatal);
    let ready = database == "ok" && engine.is_ok() && !failed;
    let engine = engine.err().unwrap_or_else(|| "ok".to_owned());
    let mut lines = format!("database: {database}\nengine: {engine}\nleadership: {leadership}\n");
    for part in &parts {
        lines.push_str(&line(part));
    }
    Ok(Readiness { ready, lines })
}

/// What the database says. Details are for the log: anybody may ask this.
async fn database(deps: &Deps) -> &'static str {
    match timeout(PING_TIME, deps.db.ping()).await {
        Ok(Ok(())) => "ok",
        Ok(Err(DbError::Unavailable(_))) => "unavailable",
        Ok(Err(error)) => {
            tracing::error!(error = %chain(&error), "the database does not answer");
            "failed"
        }
        Err(_) => "does not answer in time",
    }
}

/// `engine events: degraded since …: …`
fn line(part: &PartHealth) -> String {
    let Some(fault) = &part.fault else {
        return format!("{}: ok\n", part.part);
    };
    let word = if fault.fatal { "failed" } else { "degraded" };
    let (since, message) = (fault.since.to_rfc3339(), one_line(&fault.message));
    format!("{}: {word} since {since}: {message}\n", part.part)
}

/// One short line, whatever the reason holds.
fn one_line(reason: &str) -> String {
    let words = reason.split_whitespace().collect::<Vec<_>>();
    words.join(" ").chars().take(MAX_REASON).collect()
}

fn engine(state: &EngineState) -> Result<(), String> {
    if state.available {
        return Ok(());
    }
    let reason = one_line(&state.message);
    Err(format!("unavailable {reason}").trim_end().to_owned())
}

fn leadership(state: &LeaderState) -> &'static str {
    match (state.leading, &state.holder) {
        (true, _) => "ok",
        (false, Some(_)) => "ok (standby)",
        (false, None) => "no leader known",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ports::{EngineHealth, Fault, Health, Space};
    use crate::routes::test_support::yard;

    struct Up;

    impl EngineHealth for Up {
        fn engine(&self) -> EngineState {
            EngineState {
                available: true,
                message: "28.5.2".to_owned(),
            }
        }

        fn cpus(&self) -> Option<u32> {
            None
        }

        fn network(&self) -> Option<crate::ports::Network> {
            None
        }

        fn load(&self) -> Vec<schema::live::LoadPoint> {
            Vec::new()
        }
    }

    #[tokio::test]
    async fn l33_readiness_names_what_is_missing() {
        let mut yard = yard().await;
        let answer = yard.get("/readyz").await;
        assert_eq!(answer.status, 503);
        let lines: Vec<_> = answer.text.lines().collect();
        let expected = [
            "database: ok",
            "engine: unavailable",
            "leadership: no leader known",
        ];
        assert_eq!(lines, expected);
        yard = crate::routes::test_support::yard().await;
        yard.deps().engine = Arc::new(Up);
        let answer = yard.get("/readyz").await;
        assert_eq!(answer.status, 200);
        assert!(answer.text.contains("engine: ok\n"));
        yard.world.db.close().await;
        let answer = yard.get("/readyz").await;
        assert_eq!(answer.status, 503);
        assert!(
            answer
                .text
                .starts_with("database: unavailable\nengine: ok\n"),
            "{}",
            answer.text
        );
    }

    #[tokio::test]
    async fn readiness_of_the_database_ignores_the_engine() {
        let yard = yard().await;
        let answer = yard.get("/readyz?part=database").await;
        assert_eq!(
            (answer.status, answer.text.as_str()),
            (StatusCode::OK, "database: ok\n")
        );
        let unknown = yard.get("/readyz?part=engine").await;
        assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
        yard.world.db.close().await;
        let answer = yard.get("/readyz?part=database").await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    }

    /// Parts, one of which has this fault.
    struct Parts(Option<Fault>);

    impl Health for Parts {
        fn parts(&self) -> Vec<PartHealth> {
            let part = |part: &str, fault| PartHealth {
                part: part.to_owned(),
                fault,
            };
            vec![part("bell", None), part("tasks", self.0.clone())]
        }

        fn disk(&self) -> Option<Space> {
            None
        }
    }

    #[tokio::test]
    async fn l55_a_failed_part_makes_the_service_unready_and_a_degraded_one_is_told() {
        for (fault, status, line) in [
            (None, 200, "tasks: ok"),
            (
                Some(false),
                200,
                "tasks: degraded since 2026-05-11T11:46:40Z: it is slow",
            ),
            (
                Some(true),
                503,
                "tasks: failed since 2026-05-11T11:46:40Z: it is slow",
            ),
        ] {
            let fault = fault.map(|fatal| Fault {
                since: crate::testing::NOW,
                reason: schema::condition::Reason::Stuck,
                message: "it is\nslow".to_owned(),
                fatal,
            });
            let mut yard = yard().await;
            yard.deps().engine = Arc::new(Up);
            yard.deps().health = Arc::new(Parts(fault));
            let answer = yard.get("/readyz").await;
            assert_eq!(answer.status, status, "{}", answer.text);
            let lines: Vec<_> = answer.text.lines().collect();
            assert_eq!(lines[3..], ["bell: ok", line]);
        }
    }

    #[test]
    fn a_reason_of_several_lines_stays_on_one() {
        let state = EngineState {
            available: false,
            message: "connection refused\nleadership: ok".to_owned(),
        };
        let told = engine(&state).unwrap_err();
        assert_eq!(told, "unavailable connection refused leadership: ok");
    }

    #[test]
    fn a_standby_is_told_from_a_service_without_leader() {
        let state = |leading, holder: Option<&str>| LeaderState {
            leading,
            holder: holder.map(str::to_owned),
        };
        assert_eq!(leadership(&state(true, None)), "ok");
        assert_eq!(leadership(&state(false, Some("a"))), "ok (standby)");
        assert_eq!(leadership(&state(false, None)), "no leader known");
    }
}
