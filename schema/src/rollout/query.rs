//! Statements on rollouts.

use std::collections::{HashMap, HashSet};

use super::held;
use super::model::{
    DesiredRollout, ImageChoice, NewRollout, Phase, PreviousImage, ReadinessPolicy, RolloutFacts,
    RolloutRow, RolloutTarget, TargetState,
};
use crate::column::Millis;
use crate::connection::Connection;
use crate::db::{ObservedTx, Tx};
use crate::error::DbError;
use crate::ids::{Generation, Kind, Timestamp, Uid};
use crate::object::status_columns;
use crate::operation::Progress;
use crate::statement::{
    execute, fetch_all, fetch_optional, like_pattern, scalar, scalar_optional, scalars, statements,
};
use crate::{container, meta, object, operation};

/// Rollouts found by `$1`, a LIKE pattern on id, reference and actor.
macro_rules! matching {
    ($rest:literal) => {
        concat!(
            "WHERE lower(r.uid) LIKE $1 ESCAPE '!' OR lower(r.reference) LIKE $1 ESCAPE '!' OR lower(p.actor) LIKE $1 ESCAPE '!' ",
            $rest
        )
    };
}

macro_rules! select_rollout {
    ($rest:expr) => {
        concat!(
            "SELECT r.uid, r.type, r.reference, r.source, r.max_unavailable, r.pause_on_failure, r.health_timeout_ms, r.min_ready_ms, r.desired, r.attempt, \
             o.generation, p.actor, p.created_at, f.image_id, f.image_digest, f.resolved_attempt, f.paused_attempt, f.phase, f.message, f.finished_at, f.pull_failed_at \
             FROM rollouts r JOIN objects o ON o.kind = 'rollout' AND o.uid = r.uid \
             JOIN operations p ON p.id = r.uid JOIN rollout_facts f ON f.uid = r.uid ",
            $rest
        )
    };
}

statements! {
    /// Reads one rollout.
    GET = select_rollout!("WHERE r.uid = $1");
    /// One page of rollouts, newest first; `$1` is a LIKE pattern on id, reference and actor.
    LIST = select_rollout!(matching!("ORDER BY p.created_at DESC, r.uid DESC LIMIT $2 OFFSET $3"));
    /// How many there are that fit.
    COUNT = concat!("SELECT count(*) FROM rollouts r JOIN operations p ON p.id = r.uid ", matching!(""));
    /// How many users of each rollout of such a page are how far.
    LIST_STATES = concat!(
        "SELECT t.rollout_uid, t.state, count(*) FROM rollout_targets t JOIN (SELECT r.uid FROM rollouts r JOIN operations p ON p.id = r.uid ",
        matching!("ORDER BY p.created_at DESC, r.uid DESC LIMIT $2 OFFSET $3"),
        ") page ON page.uid = t.rollout_uid GROUP BY t.rollout_uid, t.state"
    );
    /// How many users of one rollout are how far.
    STATES = "SELECT state, count(*) FROM rollout_targets WHERE rollout_uid = $1 GROUP BY state";
    /// Those that have not ended.
    UNFINISHED = "SELECT uid FROM rollout_facts WHERE finished_at IS NULL ORDER BY uid";
    /// Those that have not ended, or whose end has not been reported: a rollout whose place another one took ends without a pass.
    UNSETTLED = "SELECT f.uid FROM rollout_facts f JOIN objects o ON o.kind = 'rollout' AND o.uid = f.uid \
                 LEFT JOIN object_status s ON s.kind = 'rollout' AND s.uid = f.uid \
                 WHERE f.finished_at IS NULL OR coalesce(s.observed_generation, 0) < o.generation ORDER BY f.uid";
    /// Those of images that have not ended.
    UNFINISHED_OF_IMAGE = "SELECT f.uid FROM rollout_facts f JOIN rollouts r ON r.uid = f.uid \
                           WHERE f.finished_at IS NULL AND r.type IN ('migrate', 'upgrade') ORDER BY f.uid";
    /// Users of a rollout with their containers, in order.
    TARGETS = concat!("SELECT t.uid, t.name, t.state, t.image_id, t.previous_ref, t.previous_id, t.previous_digest, t.generation, t.moved_at, t.finished_at, t.message, t.log, \
               CASE WHEN c.desired = 'running' AND u.disabled = 0 AND coalesce(w.quota_stops, 0) = 0 THEN 1 ELSE 0 END AS desired_running, c.image_ref, coalesce(c.image_id, CASE WHEN f.image_ref = c.image_ref THEN f.image_id END) AS current_id, \
               o.generation AS container_generation, k.generation AS files_generation, coalesce(ks.observed_generation, 0) AS files_observed, \
               coalesce(ks.conditions, '[]') AS files_conditions, ", status_columns!(), " \
               FROM rollout_targets t LEFT JOIN containers c ON c.uid = t.uid LEFT JOIN users u ON u.uid = t.uid \
               LEFT JOIN container_facts f ON f.uid = t.uid LEFT JOIN workspace_usage w ON w.uid = t.uid \
               LEFT JOIN objects o ON o.kind = 'container' AND o.uid = t.uid AND o.deleted_at IS NULL \
               LEFT JOIN object_status s ON s.kind = 'container' AND s.uid = t.uid \
               LEFT JOIN objects k ON k.kind = 'agent-config' AND k.uid = t.uid AND k.deleted_at IS NULL \
               LEFT JOIN object_status ks ON ks.kind = 'agent-config' AND ks.uid = t.uid \
               WHERE t.rollout_uid = $1 ORDER BY t.position");
    /// The newest rollout of an image.
    NEWEST_OF_IMAGE = "SELECT r.uid FROM rollouts r JOIN operations p ON p.id = r.uid WHERE r.type IN ('migrate', 'upgrade') \
                       ORDER BY p.created_at DESC, r.uid DESC LIMIT 1";
    /// Users of a rollout of an image that are in another one that has not ended.
    CONFLICTS = "SELECT t.name, t.rollout_uid FROM rollout_targets mine \
                 JOIN rollout_targets t ON t.uid = mine.uid AND t.rollout_uid <> mine.rollout_uid \
                 JOIN rollout_facts f ON f.uid = t.rollout_uid AND f.finished_at IS NULL \
                 JOIN rollouts r ON r.uid = t.rollout_uid AND r.type IN ('migrate', 'upgrade') \
                 WHERE mine.rollout_uid = $1 ORDER BY t.position LIMIT 20";
    /// Users of all rollouts of an image that have not ended.
    TAKEN = "SELECT t.uid, t.name, t.rollout_uid FROM rollout_targets t \
             JOIN rollout_facts f ON f.uid = t.rollout_uid AND f.finished_at IS NULL \
             JOIN rollouts r ON r.uid = t.rollout_uid AND r.type IN ('migrate', 'upgrade') ORDER BY t.rollout_uid, t.position";
    /// Records a rollout.
    INSERT = "INSERT INTO rollouts (uid, type, reference, source, max_unavailable, pause_on_failure, health_timeout_ms, min_ready_ms, desired) \
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'run')";
    /// Records that it has not begun.
    INSERT_FACTS = "INSERT INTO rollout_facts (uid, phase) VALUES ($1, $2)";
    /// Records one of its users, in the given order.
    INSERT_TARGET = "INSERT INTO rollout_targets (rollout_uid, uid, name, position, state) \
                     SELECT $1, u.uid, u.name, CAST($3 AS BIGINT), 'pending' FROM users u WHERE u.uid = $2";
    /// What is desired of it now.
    SET_DESIRED = "UPDATE rollouts SET desired = $2 WHERE uid = $1";
    /// It goes on, with the image resolved once more.
    SET_RESUMED = "UPDATE rollouts SET desired = 'run', attempt = attempt + 1 WHERE uid = $1";
    /// Failed users are retried.
    RETRY_FAILED = "UPDATE rollout_targets SET state = 'pending', message = '', log = '', finished_at = NULL WHERE rollout_uid = $1 AND state = 'failed'";
    /// Failed users are left as they are.
    LEAVE_FAILED = "UPDATE rollout_targets SET state = 'skipped' WHERE rollout_uid = $1 AND state = 'failed'";
    /// Pulls of the image are counted anew.
    FORGET_FAILED_PULL = "UPDATE rollout_facts SET pull_failed_at = NULL WHERE uid = $1";
    /// It goes on after its end.
    REOPEN = "UPDATE rollout_facts SET finished_at = NULL WHERE uid = $1";
    /// What the reconciler remembers.
    SAVE_FACTS = "UPDATE rollout_facts SET image_id = $2, image_digest = $3, resolved_attempt = $4, paused_attempt = $5, phase = $6, message = $7, finished_at = $8, pull_failed_at = $9 \
                  WHERE uid = $1";
    /// Remembers what a user had before it was first moved.
    KEEP_PREVIOUS = "UPDATE rollout_targets SET (previous_ref, previous_id, previous_digest) = \
                     (SELECT c.image_ref, coalesce(c.image_id, CASE WHEN f.image_ref = c.image_ref THEN f.image_id END), \
                      coalesce(c.image_digest, CASE WHEN f.image_ref = c.image_ref THEN f.image_digest END) \
                      FROM containers c LEFT JOIN container_facts f ON f.uid = c.uid WHERE c.uid = rollout_targets.uid) \
                     WHERE rollout_uid = $1 AND uid = $2 AND previous_ref IS NULL";
    /// Keeps the end of the log of a user's container that failed since it was moved.
    KEEP_LOG = "UPDATE rollout_targets SET log = coalesce((SELECT e.log FROM container_ends e WHERE e.uid = rollout_targets.uid \
                AND e.ended_at >= rollout_targets.moved_at ORDER BY e.ended_at DESC LIMIT 1), '') WHERE rollout_uid = $1 AND uid = $2 AND log = ''";
    /// A user has another image and is waited for.
    SET_TARGET_UNDER_WAY = "UPDATE rollout_targets SET state = $3, image_id = $4, generation = $5, moved_at = $6, finished_at = NULL, message = $7 \
                            WHERE rollout_uid = $1 AND uid = $2";
    /// A user is at the end of its way.
    SET_TARGET_FINISHED = "UPDATE rollout_targets SET state = $3, finished_at = $4, message = $5 WHERE rollout_uid = $1 AND uid = $2";
    /// Users are at the end of their way; `$2` lists them, each between commas.
    SET_TARGETS_FINISHED = "UPDATE rollout_targets SET state = $3, finished_at = $4, message = $5 \
                            WHERE rollout_uid = $1 AND $2 LIKE ('%,' || uid || ',%')";
    /// What a user had before.
    PREVIOUS = "SELECT previous_ref, previous_id, previous_digest FROM rollout_targets WHERE rollout_uid = $1 AND uid = $2";
}

/// Records a rollout of `users`, in this order, with its operation.
///
/// # Errors
/// [`DbError::InRollout`] when one of them is in another rollout that has not ended.
pub async fn create(
    tx: &mut Tx,
    new: &NewRollout,
    users: &[Uid],
    actor: &str,
    now: Timestamp,
) -> Result<Uid, DbError> {
    // The guard orders two rollouts of one user, so that the second finds the first.
    meta::take_guard(tx, "rollouts").await?;
    let uid = Uid::from(operation::new_id());
    record(tx, &uid, new, actor, now).await?;
    for (position, user) in (0_i64..).zip(users) {
        execute!(tx, INSERT_TARGET, &uid, user, position)?;
    }
    no_conflict(tx, &uid).await?;
    object::insert(tx, Kind::Rollout, &uid, uid.as_str(), now).await?;
    Ok(uid)
}

/// Records a rollout without users, with its operation.
pub(super) async fn record(
    tx: &mut Tx,
    uid: &Uid,
    new: &NewRollout,
    actor: &str,
    now: Timestamp,
) -> Result<(), DbError> {
    let kind = new.kind.to_string();
    operation::record(tx, uid.as_str(), &kind, actor, now).await?;
    execute!(
        tx,
        INSERT,
        uid,
        kind,
        &new.reference,
        &new.source,
        i64::from(new.max_unavailable),
        i64::from(new.pause_on_failure),
        Millis::from(Some(new.health_timeout)),
        Millis::from(Some(new.min_ready))
    )?;
    let phase = match new.kind.changes_image() {
        true => Phase::Pulling,
        false => Phase::Rolling,
    };
    execute!(tx, INSERT_FACTS, uid, phase)?;
    Ok(())
}

async fn no_conflict(tx: &mut Tx, uid: &Uid) -> Result<(), DbError> {
    let conflicts: Vec<(String, String)> = fetch_all!(tx, CONFLICTS, uid)?;
    match conflicts.first() {
        None => Ok(()),
        Some((_, rollout)) => Err(DbError::InRollout {
            rollout: rollout.clone(),
            users: conflicts.iter().map(|(name, _)| name.clone()).collect(),
        }),
    }
}

/// Most users that a conflict names.
const NAMED: usize = 20;

/// Checks that none of `users` is in a rollout of an image that has not ended. Nothing is written.
///
/// # Errors
/// [`DbError::InRollout`], as [`create`] returns it.
pub async fn check_free(connection: &mut Connection, users: &[Uid]) -> Result<(), DbError> {
    let taken: Vec<(Uid, String, String)> = fetch_all!(connection, TAKEN)?;
    let wanted: HashSet<&Uid> = users.iter().collect();
    let mut conflicts = taken
        .iter()
        .filter(|(uid, ..)| wanted.contains(uid))
        .peekable();
    let Some((_, _, rollout)) = conflicts.peek() else {
        return Ok(());
    };
    Err(DbError::InRollout {
        rollout: rollout.clone(),
        users: conflicts
            .take(NAMED)
            .map(|(_, name, _)| name.clone())
            .collect(),
    })
}

/// Reads one rollout with its users.
pub async fn get(
    connection: &mut Connection,
    uid: &Uid,
) -> Result<Option<(RolloutRow, Vec<RolloutTarget>)>, DbError> {
    let Some(row) = fetch_optional!(connection, GET, uid)? else {
        return Ok(None);
    };
    Ok(Some((row, fetch_all!(connection, TARGETS, uid)?)))
}

/// Reads one rollout without its users.
pub(crate) async fn row(
    connection: &mut Connection,
    uid: &Uid,
) -> Result<Option<RolloutRow>, DbError> {
    fetch_optional!(connection, GET, uid)
}

/// Reads one rollout, and how far its users are, without reading each.
pub async fn head(
    connection: &mut Connection,
    uid: &Uid,
) -> Result<Option<(RolloutRow, Progress)>, DbError> {
    let Some(row) = fetch_optional!(connection, GET, uid)? else {
        return Ok(None);
    };
    let states: Vec<(TargetState, i64)> = fetch_all!(connection, STATES, uid)?;
    let mut progress = Progress::default();
    for (state, users) in states {
        progress.add(state.into(), users);
    }
    Ok(Some((row, progress)))
}

/// Rollouts, newest first, one page, with how far their users are, and the total. An empty `search` fits
/// all; others are found in id, reference and actor.
pub async fn list(
    connection: &mut Connection,
    search: &str,
    limit: i64,
    offset: i64,
) -> Result<(Vec<(RolloutRow, Progress)>, i64), DbError> {
    let pattern = like_pattern(search);
    let total = scalar!(connection, COUNT, &pattern)?;
    let rows: Vec<RolloutRow> = fetch_all!(connection, LIST, &pattern, limit, offset)?;
    let states: Vec<(Uid, TargetState, i64)> =
        fetch_all!(connection, LIST_STATES, &pattern, limit, offset)?;
    let mut progress: HashMap<Uid, Progress> = HashMap::new();
    for (rollout, state, users) in states {
        let progress = progress.entry(rollout).or_default();
        progress.add(state.into(), users);
    }
    let rows = rows.into_iter().map(|row| {
        let progress = progress.remove(&row.uid).unwrap_or_default();
        (row, progress)
    });
    Ok((rows.collect(), total))
}

/// The newest rollout of an image, whether it has ended or not.
pub async fn newest_of_image(connection: &mut Connection) -> Result<Option<Uid>, DbError> {
    scalar_optional!(connection, NEWEST_OF_IMAGE)
}

/// Rollouts of images that have not ended.
pub async fn unfinished_of_image(connection: &mut Connection) -> Result<Vec<Uid>, DbError> {
    scalars!(connection, UNFINISHED_OF_IMAGE)
}

/// Rollouts that have not ended.
pub async fn unfinished(connection: &mut Connection) -> Result<Vec<Uid>, DbError> {
    scalars!(connection, UNFINISHED)
}

/// Rollouts that have not ended, and those that a pass has not seen since their last change.
pub async fn unsettled(connection: &mut Connection) -> Result<Vec<Uid>, DbError> {
    scalars!(connection, UNSETTLED)
}

/// The rollout, with its row taken for the rest of the transaction.
async fn change(
    tx: &mut Tx,
    uid: &Uid,
    expected: Option<Generation>,
) -> Result<(RolloutRow, Generation), DbError> {
    meta::take_guard(tx, "rollouts").await?;
    let row = fetch_optional!(tx, GET, uid)?.ok_or(DbError::NotFound("rollout"))?;
    let generation = object::bump(tx, Kind::Rollout, uid, expected).await?;
    Ok((row, generation))
}

async fn set_desired(tx: &mut Tx, uid: &Uid, desired: DesiredRollout) -> Result<(), DbError> {
    execute!(tx, SET_DESIRED, uid, desired)?;
    Ok(())
}

/// Records that no more users are to be moved until it is resumed.
///
/// # Errors
/// [`DbError::WrongState`] when it has ended, is rolled back or cancelled.
pub async fn pause(
    tx: &mut Tx,
    uid: &Uid,
    expected: Option<Generation>,
) -> Result<Generation, DbError> {
    let (row, generation) = change(tx, uid, expected).await?;
    match row.desired {
        _ if row.facts.finished_at.is_some() => return Err(ENDED),
        DesiredRollout::Run | DesiredRollout::Pause => {}
        DesiredRollout::Rollback => {
            return Err(DbError::WrongState("the rollout is being rolled back"));
        }
        DesiredRollout::Cancel => {
            return Err(DbError::WrongState("the rollout is being cancelled"));
        }
    }
    set_desired(tx, uid, DesiredRollout::Pause).await?;
    Ok(generation)
}

/// Records that it is to continue: the image is pulled and resolved once more, and failed users are
/// retried; those of a changed configuration or adapter are left out.
///
/// # Errors
/// [`DbError::WrongState`] when it is not paused.
pub async fn resume(
    tx: &mut Tx,
    uid: &Uid,
    expected: Option<Generation>,
) -> Result<Generation, DbError> {
    let (row, generation) = change(tx, uid, expected).await?;
    match row.desired {
        _ if row.facts.finished_at.is_some() => return Err(ENDED),
        DesiredRollout::Pause => {}
        DesiredRollout::Run if row.paused_itself() => {}
        DesiredRollout::Run | DesiredRollout::Rollback | DesiredRollout::Cancel => {
            return Err(DbError::WrongState("the rollout is not paused"));
        }
    }
    // Those that failed with a change have it already: there is nothing to give them.
    let failed = match row.kind.changes_image() {
        true => RETRY_FAILED,
        false => LEAVE_FAILED,
    };
    for statement in [SET_RESUMED, failed, FORGET_FAILED_PULL] {
        execute!(tx, statement, uid)?;
    }
    Ok(generation)
}

/// Records that all users are to go back to their previous images; also of a rollout that has ended.
///
/// # Errors
/// [`DbError::WrongState`] when it was rolled back already; [`DbError::InRollout`] when one of its users
/// is in another rollout by now.
pub async fn roll_back(
    tx: &mut Tx,
    uid: &Uid,
    expected: Option<Generation>,
) -> Result<Generation, DbError> {
    let (row, generation) = change(tx, uid, expected).await?;
    held::check_desired(row.kind, DesiredRollout::Rollback)?;
    if row.facts.phase == Phase::RolledBack {
        return Err(DbError::WrongState("the rollout was rolled back already"));
    }
    if row.facts.finished_at.is_some() {
        no_conflict(tx, uid).await?;
        execute!(tx, REOPEN, uid)?;
    }
    set_desired(tx, uid, DesiredRollout::Rollback).await?;
    Ok(generation)
}

/// Records that no more users are to be moved, and that it ends.
///
/// # Errors
/// [`DbError::WrongState`] when it has ended or is being rolled back.
pub async fn cancel(
    tx: &mut Tx,
    uid: &Uid,
    expected: Option<Generation>,
) -> Result<Generation, DbError> {
    let (row, generation) = change(tx, uid, expected).await?;
    held::check_desired(row.kind, DesiredRollout::Cancel)?;
    match row.desired {
        _ if row.facts.finished_at.is_some() => return Err(ENDED),
        DesiredRollout::Run | DesiredRollout::Pause | DesiredRollout::Cancel => {}
        DesiredRollout::Rollback => {
            return Err(DbError::WrongState("the rollout is being rolled back"));
        }
    }
    set_desired(tx, uid, DesiredRollout::Cancel).await?;
    Ok(generation)
}

const ENDED: DbError = DbError::WrongState("the rollout has ended");

/// Saves what the reconciler remembers.
pub async fn save_facts(
    tx: &mut ObservedTx,
    uid: &Uid,
    facts: &RolloutFacts,
) -> Result<(), DbError> {
    execute!(
        tx,
        SAVE_FACTS,
        uid,
        &facts.image_id,
        &facts.image_digest,
        facts.resolved_attempt,
        facts.paused_attempt,
        facts.phase,
        &facts.message,
        facts.finished_at,
        facts.pull_failed_at
    )?;
    if facts.finished_at.is_some() {
        held::release_all(tx, uid).await?;
    }
    tx.changed(Kind::Rollout, uid);
    Ok(())
}

/// Gives a user's container the rollout's image, and remembers what it had before it was first moved.
/// Whether it runs is not touched.
///
/// # Errors
/// [`DbError::NotFound`] when the user is gone or going.
pub async fn move_target(
    tx: &mut Tx,
    rollout: &Uid,
    user: &Uid,
    image: &ImageChoice,
    policy: ReadinessPolicy,
    now: Timestamp,
) -> Result<(), DbError> {
    execute!(tx, KEEP_PREVIOUS, rollout, user)?;
    let generation = container::set_image(tx, user, image, Some(policy)).await?;
    let state = TargetState::Moving;
    let id = image.image_id.as_deref();
    under_way(tx, rollout, user, state, id, generation, "", now).await
}

/// Lets a user's agent have what is changed.
///
/// # Errors
/// [`DbError::NotFound`] when the user is gone or going.
pub async fn release_target(
    tx: &mut Tx,
    rollout: &Uid,
    user: &Uid,
    now: Timestamp,
) -> Result<(), DbError> {
    let generation = held::release(tx, user).await?;
    let state = TargetState::Moving;
    under_way(tx, rollout, user, state, None, generation, "", now).await
}

/// Gives a user's container its previous image: after a failure (`PuttingBack`) or because the whole is
/// rolled back (`RollingBack`).
///
/// # Errors
/// [`DbError::NotFound`] when the user is gone or going, or was never moved.
pub async fn put_back(
    tx: &mut Tx,
    rollout: &Uid,
    user: &Uid,
    state: TargetState,
    message: &str,
    now: Timestamp,
) -> Result<(), DbError> {
    let previous: Option<PreviousImage> = fetch_optional!(tx, PREVIOUS, rollout, user)?;
    let image: ImageChoice = previous
        .and_then(PreviousImage::into)
        .ok_or(DbError::NotFound("previous image"))?;
    let generation = container::set_image(tx, user, &image, None).await?;
    if state == TargetState::PuttingBack {
        execute!(tx, KEEP_LOG, rollout, user)?;
    }
    let id = image.image_id.as_deref();
    under_way(tx, rollout, user, state, id, generation, message, now).await
}

#[allow(clippy::too_many_arguments)] // The columns of one row.
async fn under_way(
    tx: &mut ObservedTx,
    rollout: &Uid,
    user: &Uid,
    state: TargetState,
    image_id: Option<&str>,
    generation: Generation,
    message: &str,
    now: Timestamp,
) -> Result<(), DbError> {
    execute!(
        tx,
        SET_TARGET_UNDER_WAY,
        rollout,
        user,
        state,
        image_id,
        generation,
        now,
        message
    )?;
    tx.changed(Kind::Rollout, rollout);
    Ok(())
}

/// Records that a user is at the end of its way.
pub async fn finish_target(
    tx: &mut ObservedTx,
    rollout: &Uid,
    user: &Uid,
    state: TargetState,
    message: &str,
    now: Timestamp,
) -> Result<(), DbError> {
    execute!(tx, SET_TARGET_FINISHED, rollout, user, state, now, message)?;
    if state == TargetState::Failed {
        execute!(tx, KEEP_LOG, rollout, user)?;
    }
    container::forget_readiness_policy(tx, user, rollout).await?;
    tx.changed(Kind::Rollout, rollout);
    Ok(())
}

/// Records that users who are not under way are at the end of their way, all in the same way and at once,
/// however many they are. Nothing of their containers is touched.
pub async fn finish_targets(
    tx: &mut ObservedTx,
    rollout: &Uid,
    users: &[Uid],
    state: TargetState,
    message: &str,
    now: Timestamp,
) -> Result<(), DbError> {
    let listed: String = users.iter().map(|user| format!(",{user},")).collect();
    execute!(
        tx,
        SET_TARGETS_FINISHED,
        rollout,
        listed,
        state,
        now,
        message
    )?;
    tx.changed(Kind::Rollout, rollout);
    Ok(())
}
