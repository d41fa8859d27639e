//! Statements on objects. Functions that change desired state take a [`Tx`], which rings the bell.

use super::model::{Dirty, ObjectRow, ReadyCount, StatusRow, Unsettled};
use crate::change;
use crate::condition::{self, Condition, ConditionStatus, ConditionType};
use crate::connection::Connection;
use crate::db::{ObservedTx, Tx};
use crate::error::DbError;
use crate::ids::{Epoch, Generation, Kind, Timestamp, Uid};
use crate::rollout::held;
use crate::statement::{
    execute, fetch_all, fetch_optional, insert_rows, like_pattern, scalar, scalar_optional,
    scalars, statements,
};
use crate::{meta, operation};

/// Columns of a status `s` that need not be there: its defaults stand for the time before the first
/// reconciliation.
macro_rules! status_columns {
    () => {
        "coalesce(s.observed_generation, 0) AS observed_generation, coalesce(s.conditions, '[]') AS conditions, \
         coalesce(s.failures, 0) AS failures, s.next_attempt_at"
    };
}
pub(crate) use status_columns;

/// Columns of an object with its status.
macro_rules! select_object {
    ($rest:literal) => {
        concat!(
            "SELECT o.kind, o.uid, o.name, o.generation, o.paused, o.created_at, o.deleted_at, ",
            status_columns!(),
            " FROM objects o LEFT JOIN object_status s ON s.kind = o.kind AND s.uid = o.uid ",
            $rest
        )
    };
}

/// True if an object is there and not observed as desired, or not observed at all since its reconciler is paused.
macro_rules! is_unready {
    ($object:literal, $status:literal) => {
        concat!(
            "(",
            $object,
            ".uid IS NOT NULL AND (coalesce(",
            $status,
            ".ready, '') <> 'True' OR ",
            $status,
            ".observed_generation < ",
            $object,
            ".generation \
             OR EXISTS (SELECT 1 FROM paused_reconcilers p WHERE p.name = '*' OR p.name = ",
            $object,
            ".kind)))"
        )
    };
}
pub(crate) use is_unready;

/// For [`list`]: all objects that are not ready, or not observed since their last change.
pub const UNREADY: &str = "unready";

/// The generation of a new object.
const FIRST: Generation = Generation(1);

statements! {
    /// Records a new object with generation 1.
    INSERT = "INSERT INTO objects (kind, uid, name, generation, created_at) VALUES ($1, $2, $3, $4, $5)";
    /// Reads one object.
    GET = select_object!("WHERE o.kind = $1 AND o.uid = $2");
    /// Finds an object by its name.
    FIND_BY_NAME = select_object!("WHERE o.kind = $1 AND lower(o.name) = $2");
    /// Lists objects; empty `$1` = every kind, empty `$2` = ready or not, `unready` = all that are not; `$3` is a LIKE pattern on the
    /// lower-case name.
    LIST = concat!(
        select_object!("WHERE ($1 = '' OR o.kind = $1) AND ($2 = '' OR coalesce(s.ready, 'Unknown') = $2 OR ($2 = 'unready' AND "),
        is_unready!("o", "s"),
        ")) AND lower(o.name) LIKE $3 ESCAPE '!' ORDER BY o.kind, lower(o.name) LIMIT $4 OFFSET $5"
    );
    /// Counts what `LIST` would list.
    COUNT = concat!(
        "SELECT count(*) FROM objects o LEFT JOIN object_status s ON s.kind = o.kind AND s.uid = o.uid \
         WHERE ($1 = '' OR o.kind = $1) AND ($2 = '' OR coalesce(s.ready, 'Unknown') = $2 OR ($2 = 'unready' AND ",
        is_unready!("o", "s"),
        ")) AND lower(o.name) LIKE $3 ESCAPE '!'"
    );
    /// All uids of a kind.
    UIDS = "SELECT uid FROM objects WHERE kind = $1";
    /// Everything known of a kind, in one scan.
    STATUSES = select_object!("WHERE o.kind = $1");
    /// Objects whose newest desired state no pass has observed yet.
    DIRTY = "SELECT o.uid, o.generation, CASE WHEN o.bulk_generation = o.generation THEN 1 ELSE 0 END AS bulk FROM objects o LEFT JOIN object_status s ON s.kind = o.kind AND s.uid = o.uid \
             WHERE o.kind = $1 AND o.generation > coalesce(s.observed_generation, 0)";
    /// The same of objects that changed after a version. The kind is compared in a way that no index answers: what
    /// has changed is little, and all of a kind is much.
    DIRTY_SINCE = "SELECT o.uid, o.generation, CASE WHEN o.bulk_generation = o.generation THEN 1 ELSE 0 END AS bulk FROM changes c \
                   JOIN objects o ON o.kind = c.kind AND o.uid = c.uid \
                   LEFT JOIN object_status s ON s.kind = c.kind AND s.uid = c.uid \
                   WHERE c.version > $2 AND c.kind || '' = $1 AND o.generation > coalesce(s.observed_generation, 0)";
    /// How many of a kind are under way, and how many are not but need manual action. Nobody waits for what is paused.
    UNSETTLED = "SELECT coalesce(sum(CASE WHEN o.generation > coalesce(s.observed_generation, 0) OR s.ready = 'Unknown' OR (s.ready = 'False' AND s.needs_action = 0) THEN 1 ELSE 0 END), 0) AS pending, \
                 coalesce(sum(CASE WHEN o.generation = s.observed_generation AND s.ready = 'False' AND s.needs_action = 1 THEN 1 ELSE 0 END), 0) AS failed \
                 FROM objects o LEFT JOIN object_status s ON s.kind = o.kind AND s.uid = o.uid WHERE o.kind = $1 AND o.deleted_at IS NULL AND o.paused = 0";
    /// One more change of desired state; with `$3`, only if that is still the generation.
    BUMP = "UPDATE objects SET generation = generation + 1 WHERE kind = $1 AND uid = $2 AND deleted_at IS NULL \
            AND generation = coalesce(CAST($3 AS BIGINT), generation) RETURNING generation";
    /// The same, as part of a change of many objects; not so while a change of this one alone waits to be observed.
    BUMP_IN_BULK = "UPDATE objects SET generation = generation + 1, bulk_generation = CASE WHEN bulk_generation = generation \
                    OR generation <= coalesce((SELECT observed_generation FROM object_status s WHERE s.kind = objects.kind AND s.uid = objects.uid), 0) \
                    THEN generation + 1 ELSE bulk_generation END \
                    WHERE kind = $1 AND uid = $2 AND deleted_at IS NULL RETURNING generation";
    /// The same for all of a kind, but those that the rollout `$2` holds.
    BUMP_ALL = "UPDATE objects SET generation = generation + 1, bulk_generation = CASE WHEN bulk_generation = generation \
                OR generation <= coalesce((SELECT observed_generation FROM object_status s WHERE s.kind = objects.kind AND s.uid = objects.uid), 0) \
                THEN generation + 1 ELSE bulk_generation END \
                WHERE kind = $1 AND deleted_at IS NULL \
                AND NOT EXISTS (SELECT 1 FROM held_agents h WHERE h.uid = objects.uid AND h.rollout_uid = $2)";
    /// Asks for removal.
    DELETE = "UPDATE objects SET deleted_at = $3, generation = generation + 1 WHERE kind = $1 AND uid = $2 AND deleted_at IS NULL RETURNING generation";
    /// The same for all of a kind.
    DELETE_ALL = "UPDATE objects SET deleted_at = $2, generation = generation + 1, bulk_generation = generation + 1 WHERE kind = $1 AND deleted_at IS NULL";
    /// Purges a deleted object that nobody still has to clean up after.
    PURGE = "DELETE FROM objects WHERE kind = $1 AND uid = $2 AND deleted_at IS NOT NULL \
             AND NOT EXISTS (SELECT 1 FROM finalizers f WHERE f.kind = objects.kind AND f.uid = objects.uid) \
             RETURNING name, generation, deleted_at";
    /// Adds a finalizer to an object that exists.
    ADD_FINALIZER = "INSERT INTO finalizers (kind, uid, name) SELECT kind, uid, $3 FROM objects WHERE kind = $1 AND uid = $2 ON CONFLICT (kind, uid, name) DO NOTHING";
    /// Removes a finalizer.
    REMOVE_FINALIZER = "DELETE FROM finalizers WHERE kind = $1 AND uid = $2 AND name = $3";
    /// Finalizers of an object.
    FINALIZERS = "SELECT name FROM finalizers WHERE kind = $1 AND uid = $2 ORDER BY name";
    /// Saves a status; never moves back, neither in generation nor in epoch, and only while the object exists.
    SAVE_STATUS = "INSERT INTO object_status (kind, uid, observed_generation, epoch, ready, conditions, failures, next_attempt_at, needs_action, ready_since, reason) \
                   SELECT kind, uid, CAST($3 AS BIGINT), CAST($4 AS BIGINT), $5, $6, CAST($7 AS BIGINT), CAST($8 AS BIGINT), CAST($9 AS BIGINT), CAST($10 AS BIGINT), $11 \
                   FROM objects WHERE kind = $1 AND uid = $2 \
                   ON CONFLICT (kind, uid) DO UPDATE SET observed_generation = excluded.observed_generation, epoch = excluded.epoch, \
                   ready = excluded.ready, conditions = excluded.conditions, failures = excluded.failures, next_attempt_at = excluded.next_attempt_at, \
                   needs_action = excluded.needs_action, ready_since = excluded.ready_since, reason = excluded.reason \
                   WHERE object_status.observed_generation <= excluded.observed_generation AND object_status.epoch <= excluded.epoch";
    /// Pauses or resumes one object; with `$4`, only if that is still the generation.
    SET_PAUSED = "UPDATE objects SET paused = $3, generation = generation + 1 WHERE kind = $1 AND uid = $2 \
                  AND generation = coalesce(CAST($4 AS BIGINT), generation) RETURNING generation";
    /// Objects whose passes are switched off.
    PAUSED_UIDS = "SELECT uid FROM objects WHERE kind = $1 AND paused = 1";
    /// Switches a reconciler off.
    PAUSE_RECONCILER = "INSERT INTO paused_reconcilers (name) VALUES ($1) ON CONFLICT (name) DO NOTHING";
    /// Switches a reconciler on.
    RESUME_RECONCILER = "DELETE FROM paused_reconcilers WHERE name = $1";
    /// Reconcilers that are switched off.
    PAUSED_RECONCILERS = "SELECT name FROM paused_reconcilers ORDER BY name";
    /// Numbers for the operators' summary.
    READY_COUNTS = "SELECT o.kind, coalesce(s.ready, '') AS ready, count(*) AS n, \
                    CAST(sum(CASE WHEN coalesce(s.failures, 0) > 0 THEN 1 ELSE 0 END) AS BIGINT) AS failing \
                    FROM objects o LEFT JOIN object_status s ON s.kind = o.kind AND s.uid = o.uid GROUP BY o.kind, coalesce(s.ready, '')";
}

/// Records a new object with generation 1.
pub async fn insert(
    tx: &mut Tx,
    kind: Kind,
    uid: &Uid,
    name: &str,
    now: Timestamp,
) -> Result<Generation, DbError> {
    insert_many(tx, kind, &[(uid, name)], now).await
}

/// Records new objects of one kind, by uid and name, with generation 1, in few statements.
pub(crate) async fn insert_many(
    tx: &mut Tx,
    kind: Kind,
    objects: &[(&Uid, &str)],
    now: Timestamp,
) -> Result<Generation, DbError> {
    let _: Vec<Uid> = insert_rows!(
        tx,
        INSERT,
        objects,
        |(uid, name)| kind,
        *uid,
        *name,
        FIRST,
        now
    )?;
    for (uid, _) in objects {
        tx.changed(kind, uid);
    }
    tx.ring_on_commit();
    Ok(FIRST)
}

/// Makes the objects of those kinds of which there is one; those that are there stay as they are.
pub async fn ensure_singles(tx: &mut Tx, now: Timestamp) -> Result<(), DbError> {
    for (kind, uid, name) in Kind::singles() {
        if get(tx, kind, &uid).await?.is_none() {
            insert(tx, kind, &uid, name, now).await?;
        }
    }
    Ok(())
}

/// Reads one object.
pub async fn get(
    connection: &mut Connection,
    kind: Kind,
    uid: &Uid,
) -> Result<Option<ObjectRow>, DbError> {
    fetch_optional!(connection, GET, kind, uid)
}

/// Finds an object by its name, case-insensitively.
pub async fn find_by_name(
    connection: &mut Connection,
    kind: Kind,
    name: &str,
) -> Result<Option<ObjectRow>, DbError> {
    fetch_optional!(connection, FIND_BY_NAME, kind, name.to_ascii_lowercase())
}

/// Lists objects, one page, with the total. `ready` is `True`, `False`, `Unknown`, or [`UNREADY`]; `search` is a
/// case-insensitive substring of the name.
pub async fn list(
    connection: &mut Connection,
    kind: Option<Kind>,
    ready: Option<&str>,
    search: &str,
    limit: i64,
    offset: i64,
) -> Result<(Vec<ObjectRow>, i64), DbError> {
    let kind = kind.map_or("", Kind::as_str);
    let ready = ready.unwrap_or_default();
    let pattern = like_pattern(search);
    let total = scalar!(connection, COUNT, kind, ready, &pattern)?;
    let rows = fetch_all!(connection, LIST, kind, ready, &pattern, limit, offset)?;
    Ok((rows, total))
}

/// All uids of a kind.
pub async fn uids(connection: &mut Connection, kind: Kind) -> Result<Vec<Uid>, DbError> {
    scalars!(connection, UIDS, kind)
}

/// Everything known of a kind, in one scan.
pub async fn statuses(connection: &mut Connection, kind: Kind) -> Result<Vec<ObjectRow>, DbError> {
    fetch_all!(connection, STATUSES, kind)
}

/// Objects whose newest desired state no pass has observed yet.
pub async fn dirty(connection: &mut Connection, kind: Kind) -> Result<Vec<Dirty>, DbError> {
    fetch_all!(connection, DIRTY, kind)
}

/// How many objects of a kind are under way, and how many are not but need manual action.
pub async fn unsettled(connection: &mut Connection, kind: Kind) -> Result<Unsettled, DbError> {
    let counted = fetch_optional!(connection, UNSETTLED, kind)?;
    Ok(counted.unwrap_or_default())
}

/// The same, and the version of changes through which it holds. With `since`, of what has changed after that
/// version only; the whole when the history was put back to before it.
pub async fn dirty_since(
    connection: &mut Connection,
    kind: Kind,
    since: Option<i64>,
) -> Result<(Vec<Dirty>, i64), DbError> {
    // Read first: what is committed in between is found by the next read again, and never missed. Versions
    // are committed in their order, since a transaction holds their row from taking one until its end.
    let through = change::query::newest(connection).await?;
    let dirty = match since {
        Some(since) if since == through => Vec::new(),
        Some(since) if since < through => fetch_all!(connection, DIRTY_SINCE, kind, since)?,
        _ => dirty(connection, kind).await?,
    };
    Ok((dirty, through))
}

/// One more change of desired state; with `expected`, only if that is still the generation.
pub async fn bump(
    tx: &mut ObservedTx,
    kind: Kind,
    uid: &Uid,
    expected: Option<Generation>,
) -> Result<Generation, DbError> {
    let new = scalar_optional!(tx, BUMP, kind, uid, expected)?;
    end_hold(tx, kind, uid, new).await?;
    recorded(tx, kind, uid, new, |object| object.deleted_at.is_none()).await
}

/// Ends the hold of a container that has a new generation.
async fn end_hold(
    tx: &mut ObservedTx,
    kind: Kind,
    uid: &Uid,
    new: Option<Generation>,
) -> Result<(), DbError> {
    match (kind, new) {
        (Kind::Container, Some(_)) => held::end_hold(tx, uid).await,
        _ => Ok(()),
    }
}

/// A change of desired state, if there is a new generation. Without one, the object is gone, or the caller
/// expected another generation of one that could be `changed`.
async fn recorded(
    tx: &mut ObservedTx,
    kind: Kind,
    uid: &Uid,
    new: Option<Generation>,
    changed: impl FnOnce(&ObjectRow) -> bool,
) -> Result<Generation, DbError> {
    if let Some(generation) = new {
        tx.changed(kind, uid);
        tx.ring_on_commit();
        return Ok(generation);
    }
    match get(tx, kind, uid).await?.filter(changed) {
        Some(object) => Err(DbError::StaleGeneration {
            actual: object.generation.0,
        }),
        None => Err(DbError::NotFound("object")),
    }
}

/// One more change of desired state, as part of a change of many objects: whoever waits for something
/// else comes first.
pub async fn bump_in_bulk(
    tx: &mut ObservedTx,
    kind: Kind,
    uid: &Uid,
) -> Result<Generation, DbError> {
    let new = scalar_optional!(tx, BUMP_IN_BULK, kind, uid)?;
    end_hold(tx, kind, uid, new).await?;
    recorded(tx, kind, uid, new, |_| false).await
}

/// One more change of desired state for all objects of a kind, in one statement: whoever waits for something
/// else comes first.
pub async fn bump_all(tx: &mut ObservedTx, kind: Kind) -> Result<u64, DbError> {
    bump_all_but(tx, kind, None).await
}

/// The same for all but those that a rollout holds until their turn comes.
pub async fn bump_all_but(
    tx: &mut ObservedTx,
    kind: Kind,
    held: Option<&Uid>,
) -> Result<u64, DbError> {
    // PostgreSQL locks the rows in no order of ours: two changes of all would wait for each other.
    meta::take_guard(tx, "bulk").await?;
    let bumped = execute!(tx, BUMP_ALL, kind, held.map_or("", Uid::as_str))?;
    tx.all_changed(kind);
    tx.ring_on_commit();
    Ok(bumped)
}

/// Asks for removal. Returns the new generation; `NotFound` when it is gone or going already.
pub async fn delete(
    tx: &mut Tx,
    kind: Kind,
    uid: &Uid,
    now: Timestamp,
) -> Result<Generation, DbError> {
    let new = scalar_optional!(tx, DELETE, kind, uid, now)?;
    recorded(tx, kind, uid, new, |_| false).await
}

/// Asks for the removal of all objects of a kind, in one statement. Returns how many they are.
pub(crate) async fn delete_all(tx: &mut Tx, kind: Kind, now: Timestamp) -> Result<u64, DbError> {
    meta::take_guard(tx, "bulk").await?;
    let deleted = execute!(tx, DELETE_ALL, kind, now)?;
    tx.all_changed(kind);
    tx.ring_on_commit();
    Ok(deleted)
}

/// Purges a deleted object's header if no finalizer is left. The caller has removed its spec rows.
pub async fn purge_if_finalized(
    tx: &mut ObservedTx,
    kind: Kind,
    uid: &Uid,
) -> Result<bool, DbError> {
    let Some(gone) = fetch_optional!(tx, PURGE, kind, uid)? else {
        return Ok(false);
    };
    tx.gone(kind, uid, gone);
    Ok(true)
}

/// Adds a finalizer; idempotent. Returns whether the object exists.
pub async fn add_finalizer(
    tx: &mut ObservedTx,
    kind: Kind,
    uid: &Uid,
    name: &str,
) -> Result<(), DbError> {
    execute!(tx, ADD_FINALIZER, kind, uid, name)?;
    Ok(())
}

/// Removes a finalizer; idempotent.
pub async fn remove_finalizer(
    tx: &mut ObservedTx,
    kind: Kind,
    uid: &Uid,
    name: &str,
) -> Result<(), DbError> {
    execute!(tx, REMOVE_FINALIZER, kind, uid, name)?;
    Ok(())
}

/// Finalizers of an object.
pub async fn finalizers(
    connection: &mut Connection,
    kind: Kind,
    uid: &Uid,
) -> Result<Vec<String>, DbError> {
    scalars!(connection, FINALIZERS, kind, uid)
}

/// Saves a status, and ends with it what operations asked of the object (`operation::query::end_targets`). False when
/// a newer epoch or generation was written meanwhile, or the object is gone.
pub async fn save_status(
    tx: &mut ObservedTx,
    kind: Kind,
    uid: &Uid,
    status: &StatusRow,
    epoch: Epoch,
) -> Result<bool, DbError> {
    let condition = condition::find(&status.conditions, ConditionType::Ready);
    let ready = condition.map_or("Unknown", |c| c.status.into());
    let needs_action = condition.is_some_and(Condition::needs_action);
    let since = condition.map(|c| c.last_transition_at);
    let not_ready = condition.filter(|c| c.status != ConditionStatus::True);
    let reason = not_ready.map_or("", |c| c.reason.as_str());
    let saved = execute!(
        tx,
        SAVE_STATUS,
        kind,
        uid,
        status.observed_generation,
        epoch,
        ready,
        serde_json::to_string(&status.conditions)?,
        i64::from(status.failures),
        status.next_attempt_at,
        i64::from(needs_action),
        since,
        reason
    )?;
    if saved > 0 {
        if let Some(ready) = condition {
            let generation = status.observed_generation;
            operation::query::end_targets(tx, kind, uid, generation, ready).await?;
        }
        tx.changed(kind, uid);
    }
    Ok(saved > 0)
}

/// Pauses or resumes one object; bumps its generation so that it is reconciled. With
/// `expected`, only if that is still the generation. An object that is going can be paused, too.
pub async fn set_paused(
    tx: &mut Tx,
    kind: Kind,
    uid: &Uid,
    paused: bool,
    expected: Option<Generation>,
) -> Result<Generation, DbError> {
    let new = scalar_optional!(tx, SET_PAUSED, kind, uid, i64::from(paused), expected)?;
    recorded(tx, kind, uid, new, |_| true).await
}

/// Objects whose passes are switched off.
pub async fn paused_uids(connection: &mut Connection, kind: Kind) -> Result<Vec<Uid>, DbError> {
    scalars!(connection, PAUSED_UIDS, kind)
}

/// Switches a whole reconciler (or all: `*`) on or off.
pub async fn set_reconciler_paused(tx: &mut Tx, name: &str, paused: bool) -> Result<(), DbError> {
    let statement = if paused {
        PAUSE_RECONCILER
    } else {
        RESUME_RECONCILER
    };
    execute!(tx, statement, name)?;
    tx.ring_on_commit();
    Ok(())
}

/// Names of reconcilers that are switched off; `*` stands for all.
pub async fn paused_reconcilers(connection: &mut Connection) -> Result<Vec<String>, DbError> {
    scalars!(connection, PAUSED_RECONCILERS)
}

/// Whether no object of a kind is reconciled until somebody resumes all of them.
pub async fn is_kind_paused(connection: &mut Connection, kind: Kind) -> Result<bool, DbError> {
    let paused = paused_reconcilers(connection).await?;
    Ok(paused
        .iter()
        .any(|name| name == "*" || name == kind.as_str()))
}

/// Numbers for the operators' summary.
pub async fn ready_counts(connection: &mut Connection) -> Result<Vec<ReadyCount>, DbError> {
    fetch_all!(connection, READY_COUNTS)
}
