//! Statements on what workspaces take.

use std::time::Duration;

use super::model::{AFTER_CHANGE, Attempt, Due, Failing, OTHERWISE, RETRY, Usage, WHILE_RUNNING};
use crate::connection::Connection;
use crate::db::ObservedTx;
use crate::error::DbError;
use crate::ids::{Timestamp, Uid};
use crate::statement::{execute, fetch_all, fetch_optional, scalar, statements};

statements! {
    /// What one workspace takes, once it was measured.
    GET = "SELECT used_bytes, files, complete, measured_at, problem, measured_changes FROM workspace_usage WHERE uid = $1 AND measured_at IS NOT NULL";
    /// A request has changed a workspace.
    CHANGED_BY_REQUEST = "INSERT INTO workspace_usage (uid, changes) VALUES ($1, 1) \
                          ON CONFLICT (uid) DO UPDATE SET changes = workspace_usage.changes + 1 RETURNING changes";
    /// Workspaces that are to be measured, the longest due first. Before the user reconciler has seen a user there is no workspace. An
    /// attempt in the future was made before the clock was set back.
    DUE = "SELECT d.uid, d.name, d.changes FROM (SELECT u.uid, u.name, coalesce(w.changes, 0) AS changes, coalesce(w.attempted_at, 0) AS attempted_at, \
           CASE WHEN w.attempted_at IS NULL THEN 0 \
           WHEN w.problem IS NOT NULL THEN w.attempted_at + $2 \
           WHEN w.changes <> w.measured_changes THEN w.attempted_at + $3 + coalesce(w.entries, 0) \
           WHEN c.desired = 'running' AND u.disabled = 0 THEN w.attempted_at + $4 \
           ELSE w.attempted_at + $5 END AS due_at \
           FROM users u JOIN objects o ON o.kind = 'user' AND o.uid = u.uid \
           JOIN object_status s ON s.kind = 'user' AND s.uid = u.uid \
           LEFT JOIN containers c ON c.uid = u.uid LEFT JOIN workspace_usage w ON w.uid = u.uid \
           WHERE u.role = 'user' AND o.deleted_at IS NULL AND s.observed_generation > 0) d \
           WHERE d.due_at <= $1 OR d.attempted_at > $1 ORDER BY d.due_at, d.uid LIMIT $6";
    /// How many workspaces could not be measured, and one of them.
    FAILING = "SELECT count(*) OVER () AS count, min(w.attempted_at) OVER () AS oldest, u.name, w.problem \
               FROM workspace_usage w JOIN users u ON u.uid = w.uid JOIN objects o ON o.kind = 'user' AND o.uid = u.uid \
               WHERE w.problem IS NOT NULL AND o.deleted_at IS NULL ORDER BY u.name_key LIMIT 1";
    /// Remembers what was counted; nothing of a user who is gone.
    SAVE = "INSERT INTO workspace_usage (uid, used_bytes, files, entries, complete, measured_at, attempted_at, measured_changes) \
            SELECT uid, $2, $3, $4, $5, $6, $6, $7 FROM users WHERE uid = $1 \
            ON CONFLICT (uid) DO UPDATE SET used_bytes = excluded.used_bytes, files = excluded.files, entries = excluded.entries, complete = excluded.complete, \
            measured_at = excluded.measured_at, attempted_at = excluded.attempted_at, measured_changes = excluded.measured_changes, problem = NULL";
    /// Remembers why nothing was counted; the numbers stay.
    SAVE_PROBLEM = "INSERT INTO workspace_usage (uid, attempted_at, problem) SELECT uid, $2, $3 FROM users WHERE uid = $1 \
                    ON CONFLICT (uid) DO UPDATE SET attempted_at = excluded.attempted_at, problem = excluded.problem";
}

/// What a user's workspace takes; `None` before it was measured.
pub async fn get(connection: &mut Connection, uid: &Uid) -> Result<Option<Usage>, DbError> {
    fetch_optional!(connection, GET, uid)
}

/// Marks that a request has changed a user's workspace: it is measured soon. To be called once the files are changed; writes one row.
/// Returns the number of this change.
pub async fn changed(tx: &mut ObservedTx, uid: &Uid) -> Result<i64, DbError> {
    scalar!(tx, CHANGED_BY_REQUEST, uid)
}

/// At most `most` workspaces that are to be measured now, the longest due first, in one statement.
pub async fn due(
    connection: &mut Connection,
    now: Timestamp,
    most: i64,
) -> Result<Vec<Due>, DbError> {
    let [retry, changed, running, others] =
        [RETRY, AFTER_CHANGE, WHILE_RUNNING, OTHERWISE].map(millis);
    fetch_all!(connection, DUE, now, retry, changed, running, others, most)
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Workspaces that could not be measured at the last attempt; `None` when there is none.
pub async fn failing(connection: &mut Connection) -> Result<Option<Failing>, DbError> {
    fetch_optional!(connection, FAILING)
}

/// Remembers what came of measurements. What a request has changed since one began stays to be measured.
pub async fn save(
    tx: &mut ObservedTx,
    attempts: &[Attempt],
    now: Timestamp,
) -> Result<(), DbError> {
    let stored = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    for Attempt {
        uid,
        changes,
        outcome,
    } in attempts
    {
        match outcome {
            Ok(measured) => {
                let [bytes, files, entries] =
                    [measured.bytes, measured.files, measured.entries].map(stored);
                let complete = i64::from(measured.is_complete());
                execute!(tx, SAVE, uid, bytes, files, entries, complete, now, changes)?;
            }
            Err(problem) => {
                execute!(tx, SAVE_PROBLEM, uid, now, problem)?;
            }
        }
    }
    Ok(())
}
