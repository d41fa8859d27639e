//! Changes of what all agents are made from, in steps: agents that run keep what they have until their turn comes.
//!
//! The turn is a rollout's, whose users are the held ones. All others (stopped, not ready, or changed already) get the change at
//! once. A held agent that is changed otherwise before its turn (restarted, given another image) gets the new values with that.

use super::model::{DesiredRollout, NewRollout, Phase, RolloutKind};
use super::query::record;
use crate::config::history::SavedBy;
use crate::config::{Config, keys};
use crate::connection::Connection;
use crate::db::{ObservedTx, Tx};
use crate::error::{DbError, unless_gone};
use crate::ids::{Generation, Kind, Timestamp, Uid};
use crate::statement::{execute, fetch_all, scalar, scalar_optional, scalars, statements};
use crate::{meta, object, operation};

/// Containers that are to run, and use what is changed: `$2` = 1 all of them, `$3` = 1 those without their own processor
/// limit, `$4` = 1 those without their own memory limit.
macro_rules! affected {
    ($joins:literal, $rest:literal) => {
        concat!(
            "FROM containers c JOIN users u ON u.uid = c.uid JOIN objects o ON o.kind = 'container' AND o.uid = c.uid ",
            $joins,
            "WHERE c.desired = 'running' AND u.disabled = 0 AND o.deleted_at IS NULL ",
            $rest
        )
    };
}

statements! {
    /// Counts the containers that a change recreates.
    COUNT_AFFECTED = concat!("SELECT count(*) ", affected!("",
        "AND (CAST($1 AS BIGINT) = 1 OR (CAST($2 AS BIGINT) = 1 AND c.cpu_limit IS NULL) OR (CAST($3 AS BIGINT) = 1 AND c.memory_limit_mb IS NULL))"));
    /// Names the first of their users.
    NAME_AFFECTED = concat!("SELECT u.name ", affected!("",
        "AND (CAST($1 AS BIGINT) = 1 OR (CAST($2 AS BIGINT) = 1 AND c.cpu_limit IS NULL) OR (CAST($3 AS BIGINT) = 1 AND c.memory_limit_mb IS NULL)) \
         ORDER BY lower(u.name) LIMIT $4"));
    /// Holds agents that are as desired and ready, and those of them that are held already.
    HOLD = concat!(
        "INSERT INTO held_agents (uid, rollout_uid, container_generation, files_generation) SELECT c.uid, $1, o.generation, k.generation ",
        affected!(
            "JOIN objects k ON k.kind = 'agent-config' AND k.uid = c.uid JOIN object_status s ON s.kind = 'container' AND s.uid = c.uid \
             LEFT JOIN held_agents h ON h.uid = c.uid AND h.container_generation = o.generation AND h.files_generation = k.generation ",
            "AND c.debug = 0 AND c.min_ready_ms IS NULL AND o.paused = 0 AND k.paused = 0 AND s.observed_generation = o.generation AND s.ready = 'True' \
             AND (h.uid IS NOT NULL OR CAST($2 AS BIGINT) = 1 OR (CAST($3 AS BIGINT) = 1 AND c.cpu_limit IS NULL) OR (CAST($4 AS BIGINT) = 1 AND c.memory_limit_mb IS NULL)) \
             ON CONFLICT (uid) DO UPDATE SET rollout_uid = excluded.rollout_uid, container_generation = excluded.container_generation, files_generation = excluded.files_generation"
        )
    );
    /// Makes the held agents the users of their rollout.
    INSERT_HELD_TARGETS = "INSERT INTO rollout_targets (rollout_uid, uid, name, position, state) \
                           SELECT h.rollout_uid, u.uid, u.name, ROW_NUMBER() OVER (ORDER BY lower(u.name)) - 1, 'pending' \
                           FROM held_agents h JOIN users u ON u.uid = h.uid WHERE h.rollout_uid = $1";
    /// Rollouts of this kind of change that have not ended.
    UNFINISHED_STEPS = "SELECT f.uid FROM rollout_facts f JOIN rollouts r ON r.uid = f.uid WHERE f.finished_at IS NULL AND r.type IN ('config', 'adapter')";
    /// The newest of one kind.
    UNFINISHED_OF_KIND = "SELECT f.uid FROM rollout_facts f JOIN rollouts r ON r.uid = f.uid WHERE f.finished_at IS NULL AND r.type = $1 \
                          ORDER BY f.uid DESC LIMIT 1";
    /// Ends the way of the users of a rollout whose place another one takes.
    LEAVE_TARGETS = "UPDATE rollout_targets SET state = 'cancelled', finished_at = $2, message = $3 WHERE rollout_uid = $1 AND state IN ('pending', 'moving')";
    /// Ends such a rollout.
    LEAVE = "UPDATE rollout_facts SET phase = $2, message = $3, finished_at = $4 WHERE uid = $1";
    /// Lets one agent have the change.
    RELEASE = "DELETE FROM held_agents WHERE uid = $1";
    /// Lets all have it that a rollout still holds.
    RELEASE_ALL = "DELETE FROM held_agents WHERE rollout_uid = $1";
    /// Keeps agents held although their files are reconciled once more.
    KEEP_HELD = "UPDATE held_agents SET files_generation = files_generation + 1";
    /// Reads the values of three keys that are no secrets.
    PACE = "SELECT key, value FROM config_values WHERE key IN ($1, $2, $3) AND value IS NOT NULL";
}

/// Agents that a change concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Affected {
    /// All of them.
    pub all: bool,
    /// Those without their own processor limit.
    pub cpu: bool,
    /// Those without their own memory limit.
    pub memory: bool,
}

impl Affected {
    /// All agents.
    pub const ALL: Self = Self {
        all: true,
        cpu: true,
        memory: true,
    };

    fn flags(self) -> [i64; 3] {
        [self.all, self.cpu, self.memory].map(i64::from)
    }
}

/// Counts the containers that a change recreates.
pub async fn count_affected(
    connection: &mut Connection,
    affected: Affected,
) -> Result<i64, DbError> {
    let [all, cpu, memory] = affected.flags();
    scalar!(connection, COUNT_AFFECTED, all, cpu, memory)
}

/// Names the first users whose containers a change recreates, at most `limit`.
pub async fn name_affected(
    connection: &mut Connection,
    affected: Affected,
    limit: i64,
) -> Result<Vec<String>, DbError> {
    let [all, cpu, memory] = affected.flags();
    scalars!(connection, NAME_AFFECTED, all, cpu, memory, limit)
}

/// The rollout of a change of this kind that has not ended.
pub async fn unfinished(
    connection: &mut Connection,
    kind: RolloutKind,
) -> Result<Option<Uid>, DbError> {
    scalar_optional!(connection, UNFINISHED_OF_KIND, kind.to_string())
}

/// A change of what agents are made from.
#[derive(Debug)]
pub struct Change<'a> {
    /// Kind of the change.
    pub kind: RolloutKind,
    /// The new one, in words that end with its number or version.
    pub to: String,
    /// The former one, in the same words.
    pub from: String,
    /// The agents that it concerns.
    pub affected: Affected,
    /// The kinds of objects that are reconciled for it.
    pub kinds: &'a [Kind],
}

/// Brings a change to the agents: to those that are ready in steps, to all others at once. Returns the rollout of the former, if
/// there are any. A rollout of this kind that has not ended is ended, and its users are in the new one.
pub async fn change_in_steps(
    tx: &mut Tx,
    change: &Change<'_>,
    by: SavedBy<'_>,
) -> Result<Option<Uid>, DbError> {
    // In this order, as by the steps of rollouts: nothing else changes who is held meanwhile.
    for guard in ["rollouts", "bulk"] {
        meta::take_guard(tx, guard).await?;
    }
    let uid = Uid::from(operation::new_id());
    let [all, cpu, memory] = change.affected.flags();
    let held = execute!(tx, HOLD, &uid, all, cpu, memory)?;
    let others = leave_others(tx, &uid, by.at).await?;
    if held > 0 {
        let pace = read_pace(tx).await?;
        let new = NewRollout {
            kind: change.kind,
            reference: change.to.clone(),
            source: Some(change.from.clone()),
            max_unavailable: pace
                .get(&keys::container::MAX_UNAVAILABLE)
                .try_into()
                .unwrap_or(1),
            pause_on_failure: true,
            // 0 is not taken.
            health_timeout: pace
                .get(&keys::container::HEALTH_TIMEOUT)
                .unwrap_or_default(),
            min_ready: pace.get(&keys::container::MIN_READY).unwrap_or_default(),
        };
        record(tx, &uid, &new, by.actor, by.at).await?;
        execute!(tx, INSERT_HELD_TARGETS, &uid)?;
        object::insert(tx, Kind::Rollout, &uid, uid.as_str(), by.at).await?;
    }
    // Those that the former one held and that are not ready have its change to come, too.
    let kinds = match others {
        true => &[Kind::Container, Kind::AgentConfig],
        false => change.kinds,
    };
    for kind in kinds {
        object::bump_all_but(tx, *kind, Some(&uid)).await?;
    }
    Ok((held > 0).then_some(uid))
}

/// Reads the settings that say how a change reaches the agents; none of them is secret.
async fn read_pace(connection: &mut Connection) -> Result<Config, DbError> {
    let most = keys::container::MAX_UNAVAILABLE.row.key;
    let timeout = keys::container::HEALTH_TIMEOUT.row.key;
    let lasts = keys::container::MIN_READY.row.key;
    let rows: Vec<(String, String)> = fetch_all!(connection, PACE, most, timeout, lasts)?;
    let read = |(key, text): (String, String)| match serde_json::from_str(&text) {
        Ok(value) => Ok((key, value)),
        Err(error) => Err(DbError::Corrupt(format!("{key}: {error}"))),
    };
    let values = rows.into_iter().map(read);
    Ok(Config::from_stored(values.collect::<Result<_, _>>()?))
}

/// Ends rollouts of former changes, and reports that there were any: their users are held by the new one, or get the new values.
async fn leave_others(tx: &mut Tx, new: &Uid, now: Timestamp) -> Result<bool, DbError> {
    let message = format!("a newer change took its place: {new}");
    let others: Vec<Uid> = scalars!(tx, UNFINISHED_STEPS)?;
    for uid in others.iter().filter(|uid| *uid != new) {
        execute!(tx, LEAVE_TARGETS, uid, now, &message)?;
        execute!(tx, LEAVE, uid, Phase::Cancelled, &message, now)?;
        execute!(tx, RELEASE_ALL, uid)?;
        unless_gone(object::bump(tx, Kind::Rollout, uid, None).await)?;
    }
    Ok(!others.is_empty())
}

/// Lets an agent have the change. Returns the generation of its container.
///
/// # Errors
/// [`DbError::NotFound`] when the user is gone or going.
pub(super) async fn release(tx: &mut Tx, user: &Uid) -> Result<Generation, DbError> {
    execute!(tx, RELEASE, user)?;
    let generation = object::bump_in_bulk(tx, Kind::Container, user).await?;
    unless_gone(object::bump_in_bulk(tx, Kind::AgentConfig, user).await)?;
    Ok(generation)
}

/// Ends the hold of an agent whose container is changed: its files follow from the new values, too.
pub(crate) async fn end_hold(tx: &mut ObservedTx, user: &Uid) -> Result<(), DbError> {
    if execute!(tx, RELEASE, user)? > 0 {
        unless_gone(Box::pin(object::bump(tx, Kind::AgentConfig, user, None)).await)?;
    }
    Ok(())
}

/// Ends all that a rollout still holds.
pub(super) async fn release_all(tx: &mut ObservedTx, rollout: &Uid) -> Result<(), DbError> {
    execute!(tx, RELEASE_ALL, rollout)?;
    Ok(())
}

/// Keeps agents held although the files of all are reconciled once more in this transaction.
pub async fn keep_held(tx: &mut Tx) -> Result<(), DbError> {
    execute!(tx, KEEP_HELD)?;
    Ok(())
}

/// Says that a rollout of a change ends by the next change, and by nothing else.
pub(super) const GOES_ON: DbError = DbError::WrongState(
    "agents cannot be left between two configurations: resume the rollout, or go back with `agentyard config rollback` or `agentyard adapter rollback` (secrets: save the former ones)",
);

/// Reports that what is desired of a rollout can be desired of one of this kind.
pub(super) fn check_desired(kind: RolloutKind, desired: DesiredRollout) -> Result<(), DbError> {
    let ends = matches!(desired, DesiredRollout::Rollback | DesiredRollout::Cancel);
    if kind.changes_image() || !ends {
        Ok(())
    } else {
        Err(GOES_ON)
    }
}
