//! Readiness.

use std::time::Duration;

use http::StatusCode;
use tokio::time::timeout;

use crate::answer::{Answers, Body};
use crate::deps::Deps;
use crate::dispatch::Anyone;
use crate::error::{ApiError, chain};
use crate::input::{Input, Nothing};
use crate::openapi::Schemas;
use crate::ports::{EngineState, LeaderState};
use crate::reply::Reply;

/// A database that takes longer to answer nothing is not ready.
const PING_TIME: Duration = Duration::from_secs(2);
/// Longest reason shown, in characters.
const MAX_REASON: usize = 200;

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

/// `GET /readyz`: one line each for database, engine and leadership; 503 when the database fails or
/// the engine is unavailable. A standby is ready: it serves the API.
///
/// # Errors
/// None.
pub async fn readiness(_: Anyone, _: Input<Nothing>, deps: Deps) -> Result<Readiness, ApiError> {
    let database = database(&deps).await;
    let engine = engine(&deps.engine.engine());
    let leadership = leadership(&deps.leadership.leader());
    let ready = database == "ok" && engine.is_ok();
    let engine = engine.err().unwrap_or_else(|| "ok".to_owned());
    let lines = format!("database: {database}\nengine: {engine}\nleadership: {leadership}\n");
    Ok(Readiness { ready, lines })
}

/// What the database says. Details are for the log: anybody may ask this.
async fn database(deps: &Deps) -> &'static str {
    match timeout(PING_TIME, deps.db.ping()).await {
        Ok(Ok(())) => "ok",
        Ok(Err(error)) => {
            tracing::error!(error = %chain(&error), "the database does not answer");
            "failed"
        }
        Err(_) => "does not answer in time",
    }
}

fn engine(state: &EngineState) -> Result<(), String> {
    if state.available {
        return Ok(());
    }
    // One line, whatever the reason holds.
    let reason = state.message.split_whitespace().collect::<Vec<_>>();
    let reason: String = reason.join(" ").chars().take(MAX_REASON).collect();
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
    use crate::ports::EngineHealth;
    use crate::routes::test_support::fleet;

    struct Up;

    impl EngineHealth for Up {
        fn engine(&self) -> EngineState {
            EngineState {
                available: true,
                message: "28.5.2".to_owned(),
            }
        }
    }

    #[tokio::test]
    async fn l33_readiness_names_what_is_missing() {
        let mut fleet = fleet().await;
        let answer = fleet.get("/readyz").await;
        assert_eq!(answer.status, 503);
        let lines: Vec<_> = answer.text.lines().collect();
        let expected = [
            "database: ok",
            "engine: unavailable",
            "leadership: no leader known",
        ];
        assert_eq!(lines, expected);
        fleet = crate::routes::test_support::fleet().await;
        fleet.deps().engine = Arc::new(Up);
        let answer = fleet.get("/readyz").await;
        assert_eq!(answer.status, 200);
        assert!(answer.text.contains("engine: ok\n"));
        fleet.world.deps.db.close().await;
        let answer = fleet.get("/readyz").await;
        assert_eq!(answer.status, 503);
        assert!(
            answer.text.starts_with("database: failed\nengine: ok\n"),
            "{}",
            answer.text
        );
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
