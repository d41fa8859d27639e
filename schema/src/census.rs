//! Numbers of everything in the database, for metrics: the same few statements whatever the number of users.

use sqlx::FromRow;

use crate::api_token;
use crate::audit;
use crate::condition::{self, ConditionStatus, ConditionType};
use crate::connection::Connection;
use crate::directory;
use crate::error::DbError;
use crate::ids::{Kind, Timestamp};
use crate::object::{self, ReadyCount};
use crate::statement::{fetch_all, scalar, statements};
use crate::user::{self, StatusCount};

statements! {
    /// Rollouts that have not ended, by phase.
    ROLLOUTS = "SELECT phase, count(*) AS n FROM rollout_facts WHERE finished_at IS NULL GROUP BY phase";
    /// Operations with an object that has not got to what was asked of it.
    TASKS = "SELECT count(DISTINCT p.id) FROM operations p JOIN operation_targets t ON t.operation_id = p.id \
             JOIN objects o ON o.kind = t.kind AND o.uid = t.uid LEFT JOIN object_status s ON s.kind = t.kind AND s.uid = t.uid \
             WHERE p.cancelled_at IS NULL AND t.outcome IS NULL AND coalesce(s.observed_generation, 0) < t.generation";
}

/// Bytes of an SQLite file.
const SIZE_ON_SQLITE: &str =
    "SELECT CAST(page_count * page_size AS BIGINT) FROM pragma_page_count(), pragma_page_size()";
/// Bytes of a PostgreSQL database.
pub(crate) const SIZE_ON_POSTGRES: &str =
    "SELECT CAST(pg_database_size(current_database()) AS BIGINT)";

/// Number of rollouts in one phase.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct PhaseCount {
    /// The phase.
    pub phase: String,
    /// Their number.
    pub n: i64,
}

/// Numbers of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Census {
    /// Objects by kind and readiness.
    pub objects: Vec<ReadyCount>,
    /// Users by the state of their agents.
    pub agents: Vec<StatusCount>,
    /// Rollouts that have not ended.
    pub rollouts: Vec<PhaseCount>,
    /// Tasks that have not ended.
    pub tasks: i64,
    /// Entries of the audit trail.
    pub audit_entries: i64,
    /// Bytes of the database.
    pub size: i64,
    /// Names of paused reconcilers; `*`: all.
    pub paused: Vec<String>,
    /// Time of the last synchronisation with the directory.
    pub synced_at: Option<Timestamp>,
    /// Users are as the directory has them.
    pub directory_ready: bool,
    /// End of the valid API token that ends first.
    pub token_end: Option<Timestamp>,
}

/// Counts everything.
///
/// # Errors
/// When the database fails.
pub async fn take(
    connection: &mut Connection,
    is_postgres: bool,
    now: Timestamp,
) -> Result<Census, DbError> {
    let objects = object::ready_counts(connection).await?;
    let agents = user::count_by_status(connection).await?;
    let rollouts = fetch_all!(connection, ROLLOUTS)?;
    let tasks = scalar!(connection, TASKS)?;
    let (first, last) = audit::bounds(connection).await?;
    let size = match is_postgres {
        true => scalar!(connection, SIZE_ON_POSTGRES)?,
        false => scalar!(connection, SIZE_ON_SQLITE)?,
    };
    let paused = object::paused_reconcilers(connection).await?;
    let facts = directory::facts(connection).await?;
    let token = api_token::first_to_end(connection, now).await?;
    let row = object::get(connection, Kind::Directory, &directory::object_uid()).await?;
    let conditions = row.map(|row| row.status.conditions).unwrap_or_default();
    let ready = condition::find(&conditions, ConditionType::Ready);
    Ok(Census {
        objects,
        agents,
        rollouts,
        tasks,
        audit_entries: first.zip(last).map_or(0, |(first, last)| last - first + 1),
        size,
        paused,
        synced_at: facts.synced_at,
        token_end: token.map(|token| token.expires_at),
        directory_ready: ready.is_some_and(|ready| ready.status == ConditionStatus::True),
    })
}
