//! Statements on operations.

use super::model::{Count, Operation, RawTarget, Target, TargetState};
use crate::condition::{Condition, ConditionStatus};
use crate::connection::Connection;
use crate::db::{ObservedTx, Tx};
use crate::error::DbError;
use crate::ids::{Generation, Kind, Timestamp, Uid};
use crate::meta;
use crate::object::status_columns;
use crate::rollout::{self, RolloutKind, RolloutRow};
use crate::statement::{execute, fetch_all, fetch_optional, scalar, statements};

/// How far each object of an operation is, with `$rest` around it. NULL: an earlier release saved the
/// status, so only its conditions say. Must agree with [`RawTarget`]'s own reading; a test compares them.
macro_rules! judged {
    ($columns:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM (SELECT t.kind, t.name, t.generation, t.outcome, t.message, t.ended_at, o.uid, ",
            status_columns!(),
            ", coalesce(t.ended_at, s.ready_since) AS since, CASE WHEN t.outcome IS NOT NULL THEN t.outcome WHEN o.uid IS NULL THEN 'done' \
             WHEN coalesce(s.observed_generation, 0) < t.generation THEN 'pending' WHEN s.needs_action IS NULL THEN NULL \
             WHEN s.ready_since IS NULL THEN 'pending' WHEN s.ready = 'True' THEN 'done' WHEN s.ready = 'False' AND s.needs_action = 1 THEN 'failed' \
             ELSE 'running' END AS state \
             FROM operation_targets t LEFT JOIN objects o ON o.kind = t.kind AND o.uid = t.uid \
             LEFT JOIN object_status s ON s.kind = t.kind AND s.uid = t.uid WHERE t.operation_id = $1) judged ",
            $rest
        )
    };
}

statements! {
    /// Records an operation.
    INSERT = "INSERT INTO operations (id, type, actor, created_at) VALUES ($1, $2, $3, $4)";
    /// Records one object an operation touches, and the generation it asks for.
    INSERT_TARGET = "INSERT INTO operation_targets (operation_id, kind, uid, name, generation) VALUES ($1, $2, $3, $4, $5)";
    /// The same for all objects of a kind that stay, at their newest generation, in one statement.
    INSERT_ALL_TARGETS = "INSERT INTO operation_targets (operation_id, kind, uid, name, generation) \
                          SELECT $1, kind, uid, name, generation FROM objects WHERE kind = $2 AND deleted_at IS NULL";
    /// The same at the generation that the next change of each will have.
    INSERT_ALL_LEAVING = "INSERT INTO operation_targets (operation_id, kind, uid, name, generation) \
                          SELECT $1, kind, uid, name, generation + 1 FROM objects WHERE kind = $2 AND deleted_at IS NULL";
    /// Reads one operation.
    GET = "SELECT id, type, actor, created_at, cancelled_at FROM operations WHERE id = $1";
    /// Operations, newest first.
    LIST = "SELECT id, type, actor, created_at, cancelled_at FROM operations ORDER BY created_at DESC, id DESC LIMIT $1 OFFSET $2";
    /// How many there are.
    COUNT = "SELECT count(*) FROM operations";
    /// Ends an operation, once.
    CANCEL = "UPDATE operations SET cancelled_at = $2 WHERE id = $1 AND cancelled_at IS NULL";
    /// Keeps what has become of each of its objects so far, where that is not kept already.
    CANCEL_TARGETS = "UPDATE operation_targets SET outcome = CASE \
                      WHEN NOT EXISTS (SELECT 1 FROM objects o WHERE o.kind = operation_targets.kind AND o.uid = operation_targets.uid) THEN 'done' \
                      ELSE coalesce((SELECT CASE WHEN s.observed_generation < operation_targets.generation THEN 'cancelled' \
                      WHEN s.ready = 'True' THEN 'done' WHEN s.ready = 'False' AND s.needs_action = 1 THEN 'failed' ELSE 'cancelled' END \
                      FROM object_status s WHERE s.kind = operation_targets.kind AND s.uid = operation_targets.uid), 'cancelled') END \
                      WHERE operation_id = $1 AND outcome IS NULL";
    /// An object has got to what operations asked of it, or needs manual action: that is their end as far as it goes.
    END_TARGETS = "UPDATE operation_targets SET outcome = $4, message = $5, ended_at = $6 \
                   WHERE kind = $1 AND uid = $2 AND outcome IS NULL AND generation <= $3";
    /// How many objects of an operation are how far, and when the last of them got there.
    STATES = judged!("state, count(*) AS objects, max(since) AS since", "GROUP BY state");
    /// Objects of an operation with their states, those that need manual action first.
    TARGETS = judged!(
        "kind || '/' || name AS object, generation, outcome, message, ended_at, \
         CASE WHEN uid IS NULL THEN 1 ELSE 0 END AS gone, observed_generation, conditions, failures, next_attempt_at",
        "ORDER BY CASE state WHEN 'failed' THEN 0 WHEN 'cancelled' THEN 1 WHEN 'pending' THEN 3 WHEN 'done' THEN 4 ELSE 2 END, name LIMIT $2"
    );
    /// How many users of a rollout are how far, and when the last of them got there.
    ROLLOUT_STATES = "SELECT state, count(*) AS objects, max(coalesce(finished_at, moved_at)) AS since FROM rollout_targets WHERE rollout_uid = $1 GROUP BY state";
    /// Forgets some of the oldest operations that have ended: whose every object was observed with what was asked for, or is gone.
    /// Those that rollouts belong to stay, since one can go back to before them.
    PRUNE = "DELETE FROM operations WHERE id IN (SELECT p.id FROM operations p WHERE p.created_at < $1 \
             AND p.id NOT IN (SELECT id FROM operations ORDER BY created_at DESC, id DESC LIMIT $2) \
             AND NOT EXISTS (SELECT 1 FROM rollouts r WHERE r.uid = p.id) \
             AND NOT EXISTS (SELECT 1 FROM operation_targets t JOIN objects o ON o.kind = t.kind AND o.uid = t.uid \
             LEFT JOIN object_status s ON s.kind = t.kind AND s.uid = t.uid \
             WHERE t.operation_id = p.id AND t.outcome IS NULL AND coalesce(s.observed_generation, 0) < t.generation) \
             ORDER BY p.created_at, p.id LIMIT $3)";
    /// Users of a rollout with their states, those that need manual action first.
    ROLLOUT_TARGETS = "SELECT 'container/' || name AS object, state, message, coalesce(finished_at, moved_at) AS since FROM rollout_targets WHERE rollout_uid = $1 \
                       ORDER BY CASE state WHEN 'failed' THEN 0 WHEN 'cancelled' THEN 1 WHEN 'moving' THEN 2 WHEN 'putting_back' THEN 2 \
                       WHEN 'rolling_back' THEN 2 WHEN 'pending' THEN 3 ELSE 4 END, position LIMIT $2";
}

/// Records an operation over objects whose desired state the same transaction has changed.
pub async fn create(
    tx: &mut Tx,
    kind: &str,
    actor: &str,
    objects: &[(Kind, Uid, String, Generation)],
    now: Timestamp,
) -> Result<String, DbError> {
    let id = insert(tx, kind, actor, now).await?;
    for (kind, uid, name, generation) in objects {
        execute!(tx, INSERT_TARGET, &id, kind, uid, name, generation)?;
    }
    Ok(id)
}

/// Records an operation over all objects of a kind that stay, which the same transaction has changed (see
/// [`crate::object::bump_all`]): one statement, however many they are. Returns its id and how many they are.
pub async fn create_for_all(
    tx: &mut Tx,
    kind: &str,
    actor: &str,
    objects: Kind,
    now: Timestamp,
) -> Result<(String, u64), DbError> {
    let id = insert(tx, kind, actor, now).await?;
    let targets = execute!(tx, INSERT_ALL_TARGETS, &id, objects)?;
    Ok((id, targets))
}

/// Records an operation over all objects of a kind that stay, whose removal the same transaction is about to ask for.
pub(crate) async fn create_for_removal(
    tx: &mut Tx,
    kind: &str,
    actor: &str,
    objects: Kind,
    now: Timestamp,
) -> Result<String, DbError> {
    let id = insert(tx, kind, actor, now).await?;
    execute!(tx, INSERT_ALL_LEAVING, &id, objects)?;
    Ok(id)
}

async fn insert(tx: &mut Tx, kind: &str, actor: &str, now: Timestamp) -> Result<String, DbError> {
    let id = new_id();
    record(tx, &id, kind, actor, now).await?;
    Ok(id)
}

/// Makes an id; later ones sort after earlier ones.
pub(crate) fn new_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}

/// Records an operation of which the caller keeps the objects.
pub(crate) async fn record(
    tx: &mut Tx,
    id: &str,
    kind: &str,
    actor: &str,
    now: Timestamp,
) -> Result<(), DbError> {
    execute!(tx, INSERT, id, kind, actor, now)?;
    Ok(())
}

/// Keeps what an observation of an object means for the operations that asked for its generation or an earlier one:
/// the first one that finds it as desired, or in need of manual action, is their end, whatever becomes of it later.
pub(crate) async fn end_targets(
    tx: &mut ObservedTx,
    kind: Kind,
    uid: &Uid,
    generation: Generation,
    ready: &Condition,
) -> Result<(), DbError> {
    let outcome = match ready.status {
        ConditionStatus::True => "done",
        ConditionStatus::False if ready.needs_action() => "failed",
        ConditionStatus::False | ConditionStatus::Unknown => return Ok(()),
    };
    let (message, at) = (&ready.message, ready.last_transition_at);
    execute!(tx, END_TARGETS, kind, uid, generation, outcome, message, at)?;
    Ok(())
}

/// Ends an operation over objects: what has become of each so far is kept, and those that it did not reach
/// count as cancelled. What was recorded as desired stays so, and ordinary passes go on towards it.
///
/// # Errors
/// [`DbError::WrongState`] when it has ended already.
pub async fn cancel(tx: &mut Tx, operation: &Operation, now: Timestamp) -> Result<Count, DbError> {
    const ENDED: DbError = DbError::WrongState("the task has ended");
    // It takes rows of many objects, in no order: two of these would wait for each other by way of the statuses
    // that are saved meanwhile.
    meta::take_guard(tx, "bulk").await?;
    // Takes the row: of two who cancel at once, the second finds it ended.
    let taken = execute!(tx, CANCEL, &operation.id, now)?;
    if taken == 0 || !count(tx, operation).await?.progress.is_under_way() {
        return Err(ENDED);
    }
    execute!(tx, CANCEL_TARGETS, &operation.id)?;
    count(tx, operation).await
}

/// Reads one operation.
pub async fn get(connection: &mut Connection, id: &str) -> Result<Option<Operation>, DbError> {
    fetch_optional!(connection, GET, id)
}

/// Operations, newest first, one page, with the total.
pub async fn list(
    connection: &mut Connection,
    limit: i64,
    offset: i64,
) -> Result<(Vec<Operation>, i64), DbError> {
    let total = scalar!(connection, COUNT)?;
    Ok((fetch_all!(connection, LIST, limit, offset)?, total))
}

/// Operations that are kept however old they are.
pub const KEPT: i64 = 1000;
/// Most operations forgotten in one transaction: each may have been over everybody.
pub const BATCH: u64 = 10;

/// Forgets a batch of ended operations that were asked for before `oldest` and are not among the newest [`KEPT`].
/// Returns how many; fewer than [`BATCH`] when there are no more.
pub async fn prune(tx: &mut ObservedTx, oldest: Timestamp) -> Result<u64, DbError> {
    let batch = i64::try_from(BATCH).unwrap_or(i64::MAX);
    execute!(tx, PRUNE, oldest, KEPT, batch)
}

/// How far an operation is. The database counts: the cost of the answer does not grow with the objects.
pub async fn count(connection: &mut Connection, operation: &Operation) -> Result<Count, DbError> {
    let mut count = Count::default();
    if is_rollout(operation) {
        let rows: Vec<(rollout::TargetState, i64, Option<Timestamp>)> =
            fetch_all!(connection, ROLLOUT_STATES, &operation.id)?;
        for (state, users, since) in rows {
            count.add(state.into(), users, since);
        }
        let uid = Uid::from(operation.id.clone());
        let row = rollout::query::row(connection, &uid).await?;
        count.phase = row.as_ref().map(RolloutRow::phase);
        // The end of a rollout is its own: after its users', when they are all at the end of their way.
        count.since = row.and_then(|row| row.facts.finished_at);
        count.ended = count.since.is_some();
        return Ok(count);
    }
    let rows: Vec<(Option<TargetState>, i64, Option<Timestamp>)> =
        fetch_all!(connection, STATES, &operation.id)?;
    for (state, objects, since) in rows {
        let Some(state) = state else {
            // Statuses that an earlier release saved: few, since it had no operations over many objects.
            return count_one_by_one(connection, operation).await;
        };
        count.add(state, objects, since);
    }
    count.ended = !count.progress.is_under_way();
    Ok(count)
}

async fn count_one_by_one(
    connection: &mut Connection,
    operation: &Operation,
) -> Result<Count, DbError> {
    let mut count = Count::default();
    for target in targets(connection, operation, i64::MAX).await? {
        count.add(target.state, 1, target.since);
    }
    count.ended = !count.progress.is_under_way();
    Ok(count)
}

fn is_rollout(operation: &Operation) -> bool {
    operation.kind.parse::<RolloutKind>().is_ok()
}

/// Objects of an operation with their states, at most so many, those that need manual action first.
pub async fn targets(
    connection: &mut Connection,
    operation: &Operation,
    limit: i64,
) -> Result<Vec<Target>, DbError> {
    if is_rollout(operation) {
        // What became of each is in its own row.
        let rows: Vec<(String, rollout::TargetState, String, Option<Timestamp>)> =
            fetch_all!(connection, ROLLOUT_TARGETS, &operation.id, limit)?;
        let target = |(object, state, message, since)| Target {
            object,
            state: rollout::TargetState::into(state),
            message,
            since,
        };
        return Ok(rows.into_iter().map(target).collect());
    }
    let rows: Vec<RawTarget> = fetch_all!(connection, TARGETS, &operation.id, limit)?;
    Ok(rows.into_iter().map(Target::from).collect())
}
