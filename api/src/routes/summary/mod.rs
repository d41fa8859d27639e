//! `GET /api/admin/summary`: the state of the whole service on one page.

use schema::audit;
use schema::condition::{self, ConditionStatus, ConditionType, Reason};
use schema::container::StatusWord;
use schema::directory;
use schema::ids::{Kind, Timestamp};
use schema::object::{self, Problem};
use schema::reader::Connection;
use schema::user::{self, StatusCount};
use serde::Serialize;
use strum::VariantArray;
use utoipa::ToSchema;

use super::audit::Shown;
use super::reconcile::{Observed, observe_service};
use crate::answer::Answer;
use crate::deps::{Deps, VERSION};
use crate::dispatch::Superadmin;
use crate::error::Result;
use crate::explain::Explained;
use crate::input::{Input, Nothing};
use crate::ports::{EngineState, LeaderState, LiveNumbers, LoadPoint, PartHealth, Space};
use crate::route::{Area, Route, Tokens};
use crate::settings::AuthMode;

#[cfg(test)]
mod tests;

/// The route of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("summary", "/api/admin/summary", summary)
.tokens(Tokens::Read)
            .title(Area::Operators, "Get the state of the service on one page")
            .about(
                "Agents by state, what is wrong by kind and reason (the service and the engine first, then the \
                 largest), the queue of this process, and the newest changes that people have made. The \
                 engine is not asked.",
            ),
    ]
}

/// Newest changes that are shown.
const CHANGES: i64 = 8;
/// Kind of problems of the service itself.
const SERVICE: &str = "service";
/// Name of the service itself, as events name it.
const SERVICE_NAME: &str = "agentyard";

/// The state of the whole service.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ServiceSummary)]
pub struct Summary {
    /// Version of the service.
    version: &'static str,
    /// Process that runs the reconcilers.
    leader: LeaderState,
    /// The container engine.
    engine: EngineState,
    /// The database.
    database: Database,
    /// Space of the data directory; null while it is not known.
    #[schema(required = true)]
    disk: Option<Space>,
    /// Agents of all users.
    agents: Agents,
    /// Processors and memory of all agents over the last hour: a point a minute, the oldest first; empty on a standby.
    load: Vec<LoadPoint>,
    /// Faults by kind and reason: the service and the engine first, then the largest. Ordinary steps are left out for 5 minutes.
    problems: Vec<Shortcoming>,
    /// Objects that wait for the reconcilers of this process; nothing waits on a standby.
    queue: Backlog,
    /// The last synchronisation with the directory; null unless `web.auth_mode` is `ldap`.
    #[schema(required = true)]
    last_sync: Option<LastSync>,
    /// The newest changes of the service that people have made: no sign-ins, no calls of tools, nothing in workspaces and conversations.
    changes: Vec<Shown>,
    /// Conditions of `service/agentyard`, each with its remedy.
    conditions: Vec<Explained>,
    /// Warnings, each with its remedy.
    warnings: Vec<String>,
    /// Paused reconcilers; `*`: all of them.
    paused: Vec<String>,
}

/// The database.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DatabaseKind)]
struct Database {
    /// `sqlite` or `postgresql`.
    #[schema(pattern = "^(sqlite|postgresql)$", example = "sqlite")]
    kind: &'static str,
}

/// Numbers of agents.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentCounts)]
struct Agents {
    /// All users.
    total: i64,
    /// Users who are ready with all that belongs to them, running or stopped.
    ready: i64,
    /// Users by the `status` that the list of users has; states without users are left out.
    states: Vec<State>,
}

/// Number of agents in one state.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentStateCount)]
struct State {
    /// State of the container in one word.
    state: StatusWord,
    /// Number of users.
    #[schema(example = 12)]
    count: i64,
}

impl Agents {
    fn new(counts: &[StatusCount]) -> Self {
        let states = StatusWord::VARIANTS.iter().filter_map(|word| {
            let count = counts.iter().find(|count| count.status == *word)?;
            Some(State {
                state: count.status,
                count: count.n,
            })
        });
        Self {
            total: counts.iter().map(|count| count.n).sum(),
            ready: counts.iter().map(|count| count.ready).sum(),
            states: states.collect(),
        }
    }
}

/// Objects of one kind that are not as desired for one reason.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ServiceProblem)]
struct Shortcoming {
    /// Kind of the objects; `service` for the service itself.
    #[schema(example = "container")]
    kind: String,
    /// Reason, stable for programs.
    reason: Reason,
    /// Number of objects.
    #[schema(example = 3)]
    count: i64,
    /// Names of the first 5.
    #[schema(example = json!(["alice", "bob", "carol"]))]
    objects: Vec<String>,
    /// Since when the first of them is not ready.
    since: Timestamp,
    /// Message of the one that was the last.
    message: String,
    /// Remedy; empty when there is nothing to do.
    remedy: &'static str,
}

impl From<Problem> for Shortcoming {
    fn from(problem: Problem) -> Self {
        Self {
            kind: problem.kind.to_string(),
            reason: problem.reason,
            count: problem.count,
            objects: problem.names,
            since: problem.since,
            message: problem.message,
            remedy: problem.reason.remedy(),
        }
    }
}

impl Shortcoming {
    fn of_part(part: &PartHealth) -> Option<Self> {
        let fault = part.fault.as_ref()?;
        Some(Self {
            kind: SERVICE.to_owned(),
            reason: fault.reason,
            count: 1,
            objects: vec![SERVICE_NAME.to_owned()],
            since: fault.since,
            message: format!("{}: {}", part.part, fault.message),
            remedy: fault.reason.remedy(),
        })
    }

    fn list(health: &[PartHealth], problems: Vec<Problem>) -> Vec<Self> {
        let (of_engine, others): (Vec<_>, Vec<_>) = problems
            .into_iter()
            .partition(|problem| problem.kind == Kind::Engine);
        let of_objects = of_engine.into_iter().chain(others).map(Self::from);
        let of_service = health.iter().filter_map(Self::of_part);
        of_service.chain(of_objects).collect()
    }
}

/// Objects that wait for the reconcilers of this process.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReconcilerBacklog)]
struct Backlog {
    /// Number of objects.
    waiting: usize,
    /// Longest time that one has waited, in milliseconds; null while none waits.
    #[schema(required = true)]
    oldest_wait_ms: Option<u64>,
}

impl Backlog {
    fn new(reconcilers: &[(&'static str, LiveNumbers)]) -> Self {
        let oldest = reconcilers
            .iter()
            .filter_map(|(_, live)| live.oldest_wait_ms);
        Self {
            waiting: reconcilers.iter().map(|(_, live)| live.queue_depth).sum(),
            oldest_wait_ms: oldest.max(),
        }
    }
}

/// The last synchronisation with the directory.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LastSynchronisation)]
struct LastSync {
    /// Time of the last synchronisation of users; null before that.
    #[schema(required = true)]
    at: Option<Timestamp>,
    /// Users are as the directory has them.
    ready: bool,
    /// The same as a sentence, and what is wrong otherwise.
    message: String,
}

impl LastSync {
    async fn read(connection: &mut Connection) -> Result<Self> {
        let facts = directory::facts(connection).await?;
        let row = object::get(connection, Kind::Directory, &directory::object_uid()).await?;
        let conditions = row.map(|row| row.status.conditions).unwrap_or_default();
        let ready = condition::find(&conditions, ConditionType::Ready);
        Ok(Self {
            at: facts.synced_at,
            ready: ready.is_some_and(|ready| ready.status == ConditionStatus::True),
            message: ready
                .map_or("not synchronised yet", |ready| &ready.message)
                .to_owned(),
        })
    }
}

/// `GET /api/admin/summary`: numbers for a whole page in the same few statements, whatever the number of users.
///
/// # Errors
/// Only when the database fails.
async fn summary(_: Superadmin, _: Input<Nothing>, deps: Deps) -> Result<Answer<Summary>> {
    let mut connection = deps.db.snapshot().await?;
    let Observed {
        leader,
        engine,
        health,
        conditions,
        warnings,
    } = observe_service(&mut connection, &deps).await?;
    let counts = user::count_by_status(&mut connection).await?;
    let problems = object::problems(&mut connection, deps.clock.now()).await?;
    let paused = object::paused_reconcilers(&mut connection).await?;
    let changes = audit::changes(&mut connection, CHANGES).await?;
    let last_sync = match deps.settings().auth_mode {
        AuthMode::Ldap => Some(LastSync::read(&mut connection).await?),
        AuthMode::Local | AuthMode::Oidc => None,
    };
    drop(connection);
    let summary = Summary {
        version: VERSION,
        leader,
        engine,
        database: Database {
            kind: deps.db.kind(),
        },
        disk: deps.health.disk(),
        agents: Agents::new(&counts),
        load: deps.engine.load(),
        problems: Shortcoming::list(&health, problems),
        queue: Backlog::new(&deps.reconcilers.summaries()),
        last_sync,
        changes: changes.into_iter().map(Shown::from).collect(),
        conditions,
        warnings,
        paused,
    };
    Ok(Answer::ok("the state of the service", summary))
}
