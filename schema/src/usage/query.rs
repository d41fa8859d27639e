//! Statements on what users' directories take.

use std::time::Duration;

use super::model::{
    AFTER_CHANGE, Attempt, Due, Failing, MOST_UNCHANGED, OTHERWISE, RETRY, Usage, WHILE_RUNNING,
    WITH_QUOTA,
};
use super::quota::{Held, Judgement, Quota, QuotaState, QuotaUsers};
use crate::connection::Connection;
use crate::db::ObservedTx;
use crate::error::{DbError, unless_gone};
use crate::event;
use crate::ids::{Kind, Timestamp, Uid};
use crate::meta;
use crate::object;
use crate::statement::{execute, fetch_all, fetch_optional, scalar, statements};

statements! {
    /// Space that one directory takes, once it was measured.
    GET = "SELECT used_bytes, files, coalesce(entries, 0) AS entries, complete, measured_at, problem, measured_changes FROM workspace_usage WHERE uid = $1 AND measured_at IS NOT NULL";
    /// A request has changed a workspace.
    CHANGED_BY_REQUEST = "INSERT INTO workspace_usage (uid, changes) VALUES ($1, 1) \
                          ON CONFLICT (uid) DO UPDATE SET changes = workspace_usage.changes + 1 RETURNING changes";
    /// Directories that are to be measured, the longest due first. Before the user reconciler has seen a user there is none. An
    /// attempt in the future was made before the clock was set back.
    DUE = "SELECT d.uid, d.name, d.changes FROM (SELECT u.uid, u.name, coalesce(w.changes, 0) AS changes, coalesce(w.attempted_at, 0) AS attempted_at, \
           CASE WHEN w.attempted_at IS NULL THEN 0 \
           WHEN w.problem IS NOT NULL THEN w.attempted_at + $2 \
           WHEN w.changes <> w.measured_changes THEN w.attempted_at + $3 + coalesce(w.entries, 0) \
           WHEN c.desired = 'running' AND u.disabled = 0 THEN w.attempted_at + $4 + $5 * w.unchanged + coalesce(w.entries, 0) \
           ELSE w.attempted_at + $6 END AS due_at \
           FROM users u JOIN objects o ON o.kind = 'user' AND o.uid = u.uid \
           JOIN object_status s ON s.kind = 'user' AND s.uid = u.uid \
           LEFT JOIN containers c ON c.uid = u.uid LEFT JOIN workspace_usage w ON w.uid = u.uid \
           WHERE u.role = 'user' AND u.previous_name IS NULL AND o.deleted_at IS NULL AND s.observed_generation > 0) d \
           WHERE d.due_at <= $1 OR d.attempted_at > $1 ORDER BY d.due_at, d.uid LIMIT $7";
    /// How many directories could not be measured, and one of them.
    FAILING = "SELECT count(*) OVER () AS count, min(w.attempted_at) OVER () AS oldest, u.name, w.problem \
               FROM workspace_usage w JOIN users u ON u.uid = w.uid JOIN objects o ON o.kind = 'user' AND o.uid = u.uid \
               WHERE w.problem IS NOT NULL AND o.deleted_at IS NULL ORDER BY u.name_key LIMIT 1";
    /// Remembers what was counted; nothing of a user who is gone. A lower bound takes nothing off what is held against the quota.
    SAVE = "INSERT INTO workspace_usage (uid, used_bytes, files, entries, complete, measured_at, attempted_at, measured_changes, held_bytes, held_entries) \
            SELECT uid, $2, $3, $4, $5, $6, $6, $7, $2, $4 FROM users WHERE uid = $1 \
            ON CONFLICT (uid) DO UPDATE SET \
            unchanged = CASE WHEN workspace_usage.used_bytes = excluded.used_bytes AND workspace_usage.files = excluded.files AND workspace_usage.entries = excluded.entries \
            THEN CASE WHEN workspace_usage.unchanged < $8 THEN workspace_usage.unchanged + 1 ELSE workspace_usage.unchanged END ELSE 0 END, \
            held_bytes = CASE WHEN excluded.complete = 1 OR excluded.used_bytes > workspace_usage.held_bytes THEN excluded.used_bytes ELSE workspace_usage.held_bytes END, \
            held_entries = CASE WHEN excluded.complete = 1 OR excluded.entries > workspace_usage.held_entries THEN excluded.entries ELSE workspace_usage.held_entries END, \
            used_bytes = excluded.used_bytes, files = excluded.files, entries = excluded.entries, complete = excluded.complete, \
            measured_at = excluded.measured_at, attempted_at = excluded.attempted_at, measured_changes = excluded.measured_changes, problem = NULL";
    /// Remembers why nothing was counted; the numbers stay.
    SAVE_PROBLEM = "INSERT INTO workspace_usage (uid, attempted_at, problem) SELECT uid, $2, $3 FROM users WHERE uid = $1 \
                    ON CONFLICT (uid) DO UPDATE SET attempted_at = excluded.attempted_at, problem = excluded.problem";
    /// Directories that take so many bytes or entries, or whose saved verdict is not that they are within the quota.
    HELD = "SELECT w.uid, u.name, w.held_bytes, w.held_entries, w.complete, w.quota_state, w.quota_stops, w.quota_note \
            FROM workspace_usage w JOIN users u ON u.uid = w.uid JOIN objects o ON o.kind = 'user' AND o.uid = u.uid \
            WHERE (w.quota_state <> 0 OR w.held_bytes >= $1 OR w.held_entries >= $2) AND o.deleted_at IS NULL ORDER BY w.uid";
    /// Saves a verdict.
    SAVE_VERDICT = "UPDATE workspace_usage SET quota_state = $2, quota_stops = $3, quota_note = $4 WHERE uid = $1";
    /// Numbers of users near the quota and beyond it, and the first of them.
    QUOTA_USERS = "SELECT u.name, CAST(sum(CASE WHEN w.quota_state = 1 THEN 1 ELSE 0 END) OVER () AS BIGINT) AS near, \
                   CAST(sum(CASE WHEN w.quota_state = 2 THEN 1 ELSE 0 END) OVER () AS BIGINT) AS beyond \
                   FROM workspace_usage w JOIN users u ON u.uid = w.uid JOIN objects o ON o.kind = 'user' AND o.uid = w.uid \
                   WHERE w.quota_state <> 0 AND o.deleted_at IS NULL ORDER BY w.quota_state DESC, u.name_key LIMIT 1";
}

/// Space that a user's directory takes; `None` before it was measured.
pub async fn get(connection: &mut Connection, uid: &Uid) -> Result<Option<Usage>, DbError> {
    fetch_optional!(connection, GET, uid)
}

/// Marks that a request has changed a user's workspace: it is measured soon. To be called once the files are changed; writes one row.
/// Returns the number of this change.
pub async fn changed(tx: &mut ObservedTx, uid: &Uid) -> Result<i64, DbError> {
    scalar!(tx, CHANGED_BY_REQUEST, uid)
}

/// At most `most` directories that are to be measured now, the longest due first, in one statement. With a quota those of running
/// agents are measured more often.
pub async fn due(
    connection: &mut Connection,
    now: Timestamp,
    most: i64,
    quota: &Quota,
) -> Result<Vec<Due>, DbError> {
    let (running, unchanged) = match quota.is_set() {
        true => (WITH_QUOTA, WITH_QUOTA),
        false => (WHILE_RUNNING, Duration::ZERO),
    };
    let [retry, changed, others] = [RETRY, AFTER_CHANGE, OTHERWISE].map(millis);
    let (running, unchanged) = (millis(running), millis(unchanged));
    fetch_all!(
        connection, DUE, now, retry, changed, running, unchanged, others, most
    )
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Directories that could not be measured at the last attempt; `None` when there is none.
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
                execute!(
                    tx,
                    SAVE,
                    uid,
                    bytes,
                    files,
                    entries,
                    complete,
                    now,
                    changes,
                    MOST_UNCHANGED
                )?;
            }
            Err(problem) => {
                execute!(tx, SAVE_PROBLEM, uid, now, problem)?;
            }
        }
    }
    Ok(())
}

/// Directories that take so much that the quota has something to say, or had.
pub async fn held(connection: &mut Connection, quota: &Quota) -> Result<Vec<Held>, DbError> {
    let [bytes, entries] = quota.warnings();
    fetch_all!(connection, HELD, bytes, entries)
}

/// Users near the quota or beyond it; `None` without any.
pub async fn quota_users(connection: &mut Connection) -> Result<Option<QuotaUsers>, DbError> {
    fetch_optional!(connection, QUOTA_USERS)
}

/// Saves judgements, with an event of the user for each new state; users are observed again, and containers that are to stop or to start.
pub async fn save_judgements(
    tx: &mut ObservedTx,
    judgements: &[Judgement],
    now: Timestamp,
) -> Result<(), DbError> {
    // Several users' rows, in no order of a change of all: the two would wait for each other.
    meta::take_guard(tx, "bulk").await?;
    for Judgement {
        uid,
        before,
        verdict,
        ..
    } in judgements
    {
        let (state, stops) = (verdict.state, verdict.stops);
        let saved = execute!(
            tx,
            SAVE_VERDICT,
            uid,
            state.number(),
            i64::from(stops),
            &verdict.note
        )?;
        if saved == 0 {
            continue;
        }
        if state != before.state {
            let said = match state {
                QuotaState::Within => "the directory is within the quota",
                QuotaState::Near | QuotaState::Exceeded => &verdict.note,
            };
            event::record(tx, Kind::User, uid, state.reason(), "", said, now).await?;
            unless_gone(object::bump_in_bulk(tx, Kind::User, uid).await)?;
        }
        if stops != before.stops {
            unless_gone(object::bump_in_bulk(tx, Kind::Container, uid).await)?;
        }
    }
    Ok(())
}
