//! Statements on containers.

use std::time::Duration;

use sqlx::AnyConnection;

use super::model::{ContainerFacts, ContainerRow, Desired, RawContainer};
use crate::db::Tx;
use crate::error::DbError;
use crate::ids::{Generation, Kind, Timestamp, Uid};
use crate::object;
use crate::rollout::ImageChoice;
use crate::statement::statements;

/// Columns of a container with everything its reconciler needs, in one statement.
macro_rules! select_container {
    ($rest:literal) => {
        concat!(
            "SELECT c.uid, u.name, u.disabled, c.desired, c.restart_token, c.debug, c.image_ref AS spec_image_ref, c.image_id AS spec_image_id, c.image_digest AS spec_image_digest, c.health_timeout_ms, c.cpu_limit, c.memory_limit_mb, \
             o.generation, o.deleted_at, z.name AS finalizer, g.generation AS config_generation, a.generation AS adapter_generation, \
             CASE WHEN k.paused = 0 THEN k.generation END AS files_wanted, y.generation AS files_at, y.refused AS files_refused, y.restart_digest AS files_digest, \
             f.engine_id, f.image_ref, f.image_id, f.image_digest, f.ip, f.started_at, f.ready_at, f.crash_count, f.crash_token, f.last_exit_at, f.last_exit_code, \
             f.failed_digest, f.failed_at, f.failed_count \
             FROM containers c JOIN users u ON u.uid = c.uid JOIN objects o ON o.kind = 'container' AND o.uid = c.uid \
             CROSS JOIN config_state g CROSS JOIN adapter_state a \
             LEFT JOIN objects k ON k.kind = 'agent-config' AND k.uid = c.uid LEFT JOIN agent_config_facts y ON y.uid = c.uid \
             LEFT JOIN finalizers z ON z.kind = 'container' AND z.uid = c.uid AND z.name = 'container' \
             LEFT JOIN container_facts f ON f.uid = c.uid ",
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
    SET_DESIRED = "UPDATE containers SET desired = $2, debug = $3 WHERE uid = $1";
    /// Restart: a new token; the container is to run from now on.
    SET_RESTART_TOKEN = "UPDATE containers SET desired = 'running', debug = $3, restart_token = $2 WHERE uid = $1";
    /// A fresh container, if it is to run at all.
    SET_FRESH_TOKEN = "UPDATE containers SET restart_token = $2, debug = 0 WHERE uid = $1";
    /// Own limits; NULL = as configured for everybody.
    SET_LIMITS = "UPDATE containers SET cpu_limit = $2, memory_limit_mb = $3 WHERE uid = $1";
    /// Another image.
    SET_IMAGE = "UPDATE containers SET image_ref = $2, image_id = $3, image_digest = $4, health_timeout_ms = $5 WHERE uid = $1";
    /// A rollout no longer waits for it.
    FORGET_HEALTH_TIMEOUT = "UPDATE containers SET health_timeout_ms = NULL WHERE uid = $1";
    /// How many containers the agent network has, or is about to have.
    COUNT_ON_NETWORK = "SELECT count(*) FROM containers c JOIN users u ON u.uid = c.uid JOIN objects o ON o.kind = 'container' AND o.uid = c.uid \
                        LEFT JOIN container_facts f ON f.uid = c.uid \
                        WHERE f.engine_id IS NOT NULL OR (c.desired = 'running' AND u.disabled = 0 AND o.deleted_at IS NULL)";
    /// Removes the row.
    DELETE = "DELETE FROM containers WHERE uid = $1";
    /// What the reconciler remembers.
    SAVE_FACTS = "INSERT INTO container_facts (uid, engine_id, image_ref, image_id, image_digest, ip, started_at, ready_at, crash_count, crash_token, last_exit_at, last_exit_code, failed_digest, failed_at, failed_count) \
                  SELECT uid, $2, $3, $4, $5, $6, CAST($7 AS BIGINT), CAST($8 AS BIGINT), CAST($9 AS BIGINT), $10, CAST($11 AS BIGINT), CAST($12 AS BIGINT), $13, CAST($14 AS BIGINT), CAST($15 AS BIGINT) FROM containers WHERE uid = $1 \
                  ON CONFLICT (uid) DO UPDATE SET engine_id = excluded.engine_id, image_ref = excluded.image_ref, image_id = excluded.image_id, image_digest = excluded.image_digest, \
                  ip = excluded.ip, started_at = excluded.started_at, ready_at = excluded.ready_at, crash_count = excluded.crash_count, crash_token = excluded.crash_token, last_exit_at = excluded.last_exit_at, \
                  last_exit_code = excluded.last_exit_code, failed_digest = excluded.failed_digest, failed_at = excluded.failed_at, failed_count = excluded.failed_count";
}

/// Records a container with generation 1. Called by [`crate::user::create`].
pub(crate) async fn create(
    tx: &mut Tx,
    uid: &Uid,
    name: &str,
    desired: Desired,
    image_ref: &str,
    now: Timestamp,
) -> Result<Generation, DbError> {
    sqlx::query(INSERT)
        .bind(uid.as_str())
        .bind::<&str>(desired.into())
        .bind(image_ref)
        .execute(&mut **tx)
        .await?;
    object::insert(tx, Kind::Container, uid, name, now).await
}

/// Reads one container.
pub async fn get(
    connection: &mut AnyConnection,
    uid: &Uid,
) -> Result<Option<ContainerRow>, DbError> {
    let raw: Option<RawContainer> = sqlx::query_as(GET)
        .bind(uid.as_str())
        .fetch_optional(connection)
        .await?;
    raw.map(ContainerRow::try_from).transpose()
}

/// Reads all containers, in one scan.
pub async fn all(connection: &mut AnyConnection) -> Result<Vec<ContainerRow>, DbError> {
    let raws: Vec<RawContainer> = sqlx::query_as(ALL).fetch_all(connection).await?;
    raws.into_iter().map(ContainerRow::try_from).collect()
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
    sqlx::query(SET_DESIRED)
        .bind(uid.as_str())
        .bind::<&str>(desired.into())
        .bind(i64::from(debug))
        .execute(&mut **tx)
        .await?;
    Ok(generation)
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
    sqlx::query(SET_RESTART_TOKEN)
        .bind(uid.as_str())
        .bind(token)
        .bind(i64::from(debug))
        .execute(&mut **tx)
        .await?;
    Ok(generation)
}

/// Records that a container is to be replaced by a fresh one, once, if it is to run at all: a stopped one
/// stays stopped.
pub async fn request_fresh(tx: &mut Tx, uid: &Uid, token: &str) -> Result<Generation, DbError> {
    let generation = object::bump(tx, Kind::Container, uid, None).await?;
    sqlx::query(SET_FRESH_TOKEN)
        .bind(uid.as_str())
        .bind(token)
        .execute(&mut **tx)
        .await?;
    Ok(generation)
}

/// Records own limits of one container; `None` = as configured for everybody.
pub async fn set_limits(
    tx: &mut Tx,
    uid: &Uid,
    cpu_limit: Option<f64>,
    memory_limit_mb: Option<i64>,
    expected: Option<Generation>,
) -> Result<Generation, DbError> {
    let generation = object::bump(tx, Kind::Container, uid, expected).await?;
    sqlx::query(SET_LIMITS)
        .bind(uid.as_str())
        .bind(cpu_limit)
        .bind(memory_limit_mb)
        .execute(&mut **tx)
        .await?;
    Ok(generation)
}

/// Records another image, as part of a change of many containers: whoever waits for something else comes
/// first. The agent's files follow from the image, too. With `health_timeout` the replacement may take that long to become ready.
pub(crate) async fn set_image(
    tx: &mut Tx,
    uid: &Uid,
    image: &ImageChoice,
    health_timeout: Option<Duration>,
) -> Result<Generation, DbError> {
    let generation = object::bump_in_bulk(tx, Kind::Container, uid).await?;
    match object::bump_in_bulk(tx, Kind::AgentConfig, uid).await {
        Ok(_) | Err(DbError::NotFound(_)) => {}
        Err(error) => return Err(error),
    }
    let millis = health_timeout.map(|limit| i64::try_from(limit.as_millis()).unwrap_or(i64::MAX));
    sqlx::query(SET_IMAGE)
        .bind(uid.as_str())
        .bind(&image.reference)
        .bind(&image.image_id)
        .bind(&image.digest)
        .bind(millis)
        .execute(&mut **tx)
        .await?;
    Ok(generation)
}

/// A rollout no longer waits for this container.
pub(crate) async fn forget_health_timeout(tx: &mut Tx, uid: &Uid) -> Result<(), DbError> {
    sqlx::query(FORGET_HEALTH_TIMEOUT)
        .bind(uid.as_str())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// How many containers the agent network has, or is about to have because they are to run.
pub async fn count_on_network(connection: &mut AnyConnection) -> Result<i64, DbError> {
    let (n,): (i64,) = sqlx::query_as(COUNT_ON_NETWORK)
        .fetch_one(connection)
        .await?;
    Ok(n)
}

/// Removes a deleted container's rows, if no finalizer is left. Returns whether it did.
pub async fn purge(tx: &mut Tx, uid: &Uid) -> Result<bool, DbError> {
    if !object::purge_if_finalized(tx, Kind::Container, uid).await? {
        return Ok(false);
    }
    sqlx::query(DELETE)
        .bind(uid.as_str())
        .execute(&mut **tx)
        .await?;
    // Whoever waits for the container to be gone reads again: the user's own removal.
    tx.ring_on_commit();
    Ok(true)
}

/// Saves what the reconciler remembers; nothing happens when the container is gone.
pub async fn save_facts(tx: &mut Tx, uid: &Uid, facts: &ContainerFacts) -> Result<(), DbError> {
    sqlx::query(SAVE_FACTS)
        .bind(uid.as_str())
        .bind(&facts.engine_id)
        .bind(&facts.image_ref)
        .bind(&facts.image_id)
        .bind(&facts.image_digest)
        .bind(&facts.ip)
        .bind(facts.started_at.map(Timestamp::as_millis))
        .bind(facts.ready_at.map(Timestamp::as_millis))
        .bind(i64::from(facts.crash_count))
        .bind(&facts.crash_token)
        .bind(facts.last_exit_at.map(Timestamp::as_millis))
        .bind(facts.last_exit_code)
        .bind(&facts.failed_digest)
        .bind(facts.failed_at.map(Timestamp::as_millis))
        .bind(i64::from(facts.failed_count))
        .execute(&mut **tx)
        .await?;
    Ok(())
}
