//! Statements on containers.

use super::model::{ContainerFacts, ContainerRow, Desired};
use crate::column::Millis;
use crate::config::history::SavedBy;
use crate::connection::Connection;
use crate::db::{ObservedTx, Tx};
use crate::error::{DbError, unless_gone};
use crate::ids::{Generation, Kind, Uid};
use crate::object;
use crate::rollout::{ImageChoice, ReadinessPolicy};
use crate::statement::{execute, fetch_all, fetch_optional, insert_rows, scalar, statements};
use crate::user::NewUser;

/// Columns of a container with everything its reconciler needs, in one statement.
macro_rules! select_container {
    ($rest:literal) => {
        concat!(
            "SELECT c.uid, u.name, CASE WHEN u.previous_released = 0 THEN u.previous_name END AS previous_name, u.disabled, c.desired, c.restart_token, c.debug, c.image_ref AS spec_image_ref, c.image_id AS spec_image_id, c.image_digest AS spec_image_digest, c.health_timeout_ms, c.min_ready_ms, c.cpu_limit, c.memory_limit_mb, \
             o.generation, o.deleted_at, CASE WHEN z.name IS NULL THEN 0 ELSE 1 END AS has_finalizer, g.generation AS config_generation, a.generation AS adapter_generation, \
             CASE WHEN k.paused = 0 AND k.generation > coalesce(y.generation, 0) THEN 1 ELSE 0 END AS files_pending, y.refused AS files_refused, y.restart_digest AS files_digest, CASE WHEN k.paused = 0 THEN y.home END AS files_home, CASE WHEN w.quota_stops = 1 THEN w.quota_note END AS quota_stop, \
             f.engine_id, f.image_ref, f.image_id, f.image_digest, f.ip, f.started_at, f.ready_at, coalesce(f.crash_count, 0) AS crash_count, coalesce(f.crash_token, '') AS crash_token, f.last_exit_at, f.last_exit_code, f.last_exit_cause, \
             f.failed_digest, f.failed_at, coalesce(f.failed_count, 0) AS failed_count, f.failure, f.failure_log, h.rollout_uid AS held_by \
             FROM containers c JOIN users u ON u.uid = c.uid JOIN objects o ON o.kind = 'container' AND o.uid = c.uid \
             CROSS JOIN config_state g CROSS JOIN adapter_state a \
             LEFT JOIN objects k ON k.kind = 'agent-config' AND k.uid = c.uid LEFT JOIN agent_config_facts y ON y.uid = c.uid \
             LEFT JOIN held_agents h ON h.uid = c.uid AND h.container_generation = o.generation AND h.files_generation = k.generation \
             LEFT JOIN finalizers z ON z.kind = 'container' AND z.uid = c.uid AND z.name = 'container' \
             LEFT JOIN container_facts f ON f.uid = c.uid LEFT JOIN workspace_usage w ON w.uid = c.uid ",
            $rest
        )
    };
}

statements! {
    /// Records a container.
    INSERT = "INSERT INTO containers (uid, desired, image_ref) VALUES ($1, $2, $3)";
    /// Reads one container.
    GET = select_container!("WHERE c.uid = $1");
    /// Reads all containers, in one scan.
    ALL = select_container!("ORDER BY c.uid");
    /// Start or stop; both end debugging.
    SET_DESIRED = "UPDATE containers SET stopped_at = CASE WHEN desired = $2 THEN stopped_at END, desired = $2, debug = $3 WHERE uid = $1";
    /// Author and time of the first stop, until it is started.
    RECORD_STOP = "UPDATE containers SET stopped_by = CASE WHEN stopped_at IS NULL THEN $3 ELSE stopped_by END, stopped_at = coalesce(stopped_at, $2) WHERE uid = $1 AND desired = 'stopped'";
    /// Restart: a new token; the container is to run from now on.
    SET_RESTART_TOKEN = "UPDATE containers SET desired = 'running', stopped_at = NULL, debug = $3, restart_token = $2 WHERE uid = $1";
    /// A fresh container, as soon as it is to run.
    SET_FRESH_TOKEN = "UPDATE containers SET restart_token = $2 WHERE uid = $1";
    /// Its limits; NULL = as configured for everybody.
    SET_LIMITS = "UPDATE containers SET cpu_limit = NULLIF(CAST($2 AS DOUBLE PRECISION), -1.0), memory_limit_mb = $3 WHERE uid = $1";
    /// Another image.
    SET_IMAGE = "UPDATE containers SET image_ref = $2, image_id = $3, image_digest = $4, health_timeout_ms = $5, min_ready_ms = $6 WHERE uid = $1";
    /// The rollout `$2` no longer waits for it; one that changes no image never gave it a time.
    FORGET_READINESS_POLICY = "UPDATE containers SET health_timeout_ms = NULL, min_ready_ms = NULL WHERE uid = $1 \
                               AND NOT EXISTS (SELECT 1 FROM rollouts r WHERE r.uid = $2 AND r.type IN ('config', 'adapter'))";
    /// How many containers the agent network has, or is about to have.
    COUNT_ON_NETWORK = "SELECT count(*) FROM containers c JOIN users u ON u.uid = c.uid JOIN objects o ON o.kind = 'container' AND o.uid = c.uid \
                        LEFT JOIN container_facts f ON f.uid = c.uid \
                        WHERE f.engine_id IS NOT NULL OR (c.desired = 'running' AND u.disabled = 0 AND o.deleted_at IS NULL)";
    /// Removes the row.
    DELETE = "DELETE FROM containers WHERE uid = $1";
    /// What the reconciler remembers.
    SAVE_FACTS = "INSERT INTO container_facts (uid, engine_id, image_ref, image_id, image_digest, ip, started_at, ready_at, crash_count, crash_token, last_exit_at, last_exit_code, failed_digest, failed_at, failed_count, failure, failure_log, last_exit_cause) \
                  SELECT uid, $2, $3, $4, $5, $6, CAST($7 AS BIGINT), CAST($8 AS BIGINT), CAST($9 AS BIGINT), $10, CAST($11 AS BIGINT), CAST($12 AS BIGINT), $13, CAST($14 AS BIGINT), CAST($15 AS BIGINT), $16, $17, $18 FROM containers WHERE uid = $1 \
                  ON CONFLICT (uid) DO UPDATE SET engine_id = excluded.engine_id, image_ref = excluded.image_ref, image_id = excluded.image_id, image_digest = excluded.image_digest, \
                  ip = excluded.ip, started_at = excluded.started_at, ready_at = excluded.ready_at, crash_count = excluded.crash_count, crash_token = excluded.crash_token, last_exit_at = excluded.last_exit_at, \
                  last_exit_code = excluded.last_exit_code, failed_digest = excluded.failed_digest, failed_at = excluded.failed_at, failed_count = excluded.failed_count, \
                  failure = excluded.failure, failure_log = excluded.failure_log, last_exit_cause = excluded.last_exit_cause";
}

/// Records the containers of new users, without their objects.
pub(crate) async fn create_many(tx: &mut Tx, users: &[&NewUser]) -> Result<(), DbError> {
    let _: Vec<Uid> = insert_rows!(
        tx,
        INSERT,
        users,
        |user| &user.uid,
        user.desired,
        &user.image_ref
    )?;
    Ok(())
}

/// Reads one container.
pub async fn get(connection: &mut Connection, uid: &Uid) -> Result<Option<ContainerRow>, DbError> {
    fetch_optional!(connection, GET, uid)
}

/// Reads all containers, in one scan.
pub async fn all(connection: &mut Connection) -> Result<Vec<ContainerRow>, DbError> {
    fetch_all!(connection, ALL)
}

/// Records that a container is to run or stop; `debug` runs the adapter's debug command.
pub async fn set_desired(
    tx: &mut Tx,
    uid: &Uid,
    desired: Desired,
    debug: bool,
    expected: Option<Generation>,
) -> Result<Generation, DbError> {
    let generation = object::bump(tx, Kind::Container, uid, expected).await?;
    write_desired(tx, uid, desired, debug).await?;
    Ok(generation)
}

/// The same without a new generation.
pub(crate) async fn write_desired(
    tx: &mut Tx,
    uid: &Uid,
    desired: Desired,
    debug: bool,
) -> Result<(), DbError> {
    execute!(tx, SET_DESIRED, uid, desired, i64::from(debug))?;
    Ok(())
}

/// Records who has stopped a container, and when; nothing if it is to run.
pub async fn record_stop(tx: &mut Tx, uid: &Uid, by: SavedBy<'_>) -> Result<(), DbError> {
    execute!(tx, RECORD_STOP, uid, by.at, by.actor)?;
    Ok(())
}

/// Records that a container is to be replaced by a fresh one, once, and run; `debug` makes it one
/// that runs the adapter's debug command.
pub async fn request_restart(
    tx: &mut Tx,
    uid: &Uid,
    token: &str,
    debug: bool,
    expected: Option<Generation>,
) -> Result<Generation, DbError> {
    let generation = object::bump(tx, Kind::Container, uid, expected).await?;
    write_restart(tx, uid, token, debug).await?;
    Ok(generation)
}

/// The same without a new generation.
pub(crate) async fn write_restart(
    tx: &mut Tx,
    uid: &Uid,
    token: &str,
    debug: bool,
) -> Result<(), DbError> {
    execute!(tx, SET_RESTART_TOKEN, uid, token, i64::from(debug))?;
    Ok(())
}

/// Records that a container is to be replaced by a fresh one, once, if it is to run at all: a stopped one
/// stays stopped, and one in debug mode stays in it. Says which of [`Desired`] it is.
pub async fn request_fresh(
    tx: &mut Tx,
    uid: &Uid,
    token: &str,
    expected: Option<Generation>,
) -> Result<(Generation, Desired), DbError> {
    let generation = object::bump(tx, Kind::Container, uid, expected).await?;
    execute!(tx, SET_FRESH_TOKEN, uid, token)?;
    let row = get(tx, uid).await?.ok_or(DbError::NotFound("container"))?;
    Ok((generation, row.desired))
}

/// Records limits of one container; `None` = as configured for everybody.
pub async fn set_limits(
    tx: &mut Tx,
    uid: &Uid,
    cpu_limit: Option<f64>,
    memory_limit_mb: Option<i64>,
    expected: Option<Generation>,
) -> Result<Generation, DbError> {
    let generation = object::bump(tx, Kind::Container, uid, expected).await?;
    // sqlx binds a missing DOUBLE PRECISION with another type than a value, and the statement is prepared once for both.
    execute!(
        tx,
        SET_LIMITS,
        uid,
        cpu_limit.unwrap_or(-1.0),
        memory_limit_mb
    )?;
    Ok(generation)
}

/// Records another image, as part of a change of many containers: whoever waits for something else comes
/// first. The agent's files follow from the image, too. `policy` is how a rollout judges the replacement.
pub(crate) async fn set_image(
    tx: &mut Tx,
    uid: &Uid,
    image: &ImageChoice,
    policy: Option<ReadinessPolicy>,
) -> Result<Generation, DbError> {
    let generation = object::bump_in_bulk(tx, Kind::Container, uid).await?;
    unless_gone(object::bump_in_bulk(tx, Kind::AgentConfig, uid).await)?;
    execute!(
        tx,
        SET_IMAGE,
        uid,
        &image.reference,
        &image.image_id,
        &image.digest,
        Millis::from(policy.map(|policy| policy.health_timeout)),
        Millis::from(policy.map(|policy| policy.min_ready))
    )?;
    Ok(generation)
}

/// A rollout no longer waits for this container.
pub(crate) async fn forget_readiness_policy(
    tx: &mut ObservedTx,
    uid: &Uid,
    rollout: &Uid,
) -> Result<(), DbError> {
    execute!(tx, FORGET_READINESS_POLICY, uid, rollout)?;
    Ok(())
}

/// How many containers the agent network has, or is about to have because they are to run.
pub async fn count_on_network(connection: &mut Connection) -> Result<i64, DbError> {
    scalar!(connection, COUNT_ON_NETWORK)
}

/// Removes a deleted container's rows, if no finalizer is left. Returns whether it did.
pub async fn purge(tx: &mut ObservedTx, uid: &Uid) -> Result<bool, DbError> {
    if !object::purge_if_finalized(tx, Kind::Container, uid).await? {
        return Ok(false);
    }
    execute!(tx, DELETE, uid)?;
    // Whoever waits for the container to be gone reads again: the user's own removal.
    tx.ring_on_commit();
    Ok(true)
}

/// Saves what the reconciler remembers; nothing happens when the container is gone.
pub async fn save_facts(
    tx: &mut ObservedTx,
    uid: &Uid,
    facts: &ContainerFacts,
) -> Result<(), DbError> {
    execute!(
        tx,
        SAVE_FACTS,
        uid,
        &facts.engine_id,
        &facts.image_ref,
        &facts.image_id,
        &facts.image_digest,
        &facts.ip,
        facts.started_at,
        facts.ready_at,
        i64::from(facts.crash_count),
        &facts.crash_token,
        facts.last_exit_at,
        facts.last_exit_code,
        &facts.failed_digest,
        facts.failed_at,
        i64::from(facts.failed_count),
        &facts.failure,
        &facts.failure_log,
        &facts.last_exit_cause
    )?;
    Ok(())
}
