//! Statements on changes.

use std::sync::LazyLock;

use super::model::{Change, Filter, News, Position, RawChange};
use super::pending::Pending;
use crate::connection::Connection;
use crate::db::ObservedTx;
use crate::error::DbError;
use crate::ids::{Kind, Timestamp, Uid};
use crate::object::status_columns;
use crate::statement::{ROWS, execute, fetch_all, fetch_one, finish, scalar, statements};

/// Most purged objects that are remembered.
pub const KEPT: i64 = 10_000;
/// Versions that one changed object may need: its own and that of the object it is shown with.
const VERSIONS: i64 = 2;

/// Objects that changed, as they are now: a statement up to its WHERE.
macro_rules! changed_objects {
    () => {
        concat!("SELECT c.version, c.kind, c.uid, c.name, coalesce(c.last_generation, 0) AS last_generation, o.generation, \
             CASE WHEN o.deleted_at IS NULL THEN 0 ELSE 1 END AS deleted, ", status_columns!(), ", \
             CASE WHEN k.desired = 'running' AND coalesce(u.disabled, 0) = 0 THEN 1 ELSE 0 END AS container_desired, \
             coalesce(ko.generation, 0) AS container_generation, \
             coalesce(ks.observed_generation, 0) AS container_observed_generation, CASE WHEN c.kind IN ('user', 'container') THEN coalesce(ks.conditions, '[]') ELSE '[]' END AS container_conditions \
             FROM changes c \
             LEFT JOIN objects o ON o.kind = c.kind AND o.uid = c.uid \
             LEFT JOIN object_status s ON s.kind = c.kind AND s.uid = c.uid \
             LEFT JOIN users u ON u.uid = c.uid \
             LEFT JOIN containers k ON k.uid = c.uid \
             LEFT JOIN objects ko ON ko.kind = 'container' AND ko.uid = c.uid \
             LEFT JOIN object_status ks ON ks.kind = 'container' AND ks.uid = c.uid ")
    };
}

statements! {
    /// Takes so many versions and returns the newest: a second transaction waits here until the first has ended.
    TAKE = "UPDATE change_state SET version = version + $1 WHERE id = 1 RETURNING version";
    /// Writes one object's change, and that of the object it is shown with (`$2`); `$3` is the version before.
    RECORD = "INSERT INTO changes (kind, uid, name, version) \
              SELECT kind, uid, name, CAST($3 AS BIGINT) + row_number() OVER (ORDER BY uid, kind) FROM objects WHERE kind IN ($1, $2) AND uid IN ($4) \
              ON CONFLICT (kind, uid) DO UPDATE SET name = excluded.name, version = excluded.version, last_generation = NULL, deleted_at = NULL";
    /// The same for all objects of a kind, in one statement; `$3` is the version before.
    RECORD_ALL = "INSERT INTO changes (kind, uid, name, version) \
                  SELECT kind, uid, name, CAST($3 AS BIGINT) + row_number() OVER (ORDER BY kind, uid) FROM objects WHERE kind IN ($1, $2) \
                  ON CONFLICT (kind, uid) DO UPDATE SET name = excluded.name, version = excluded.version, last_generation = NULL, deleted_at = NULL";
    /// Writes that an object is gone.
    RECORD_GONE = "INSERT INTO changes (kind, uid, name, version, last_generation, deleted_at) VALUES ($1, $2, $3, $4, $5, $6) \
                   ON CONFLICT (kind, uid) DO UPDATE SET name = excluded.name, version = excluded.version, \
                   last_generation = excluded.last_generation, deleted_at = excluded.deleted_at";
    /// The newest version, the newest one that was forgotten, and whose history it is.
    STATE = "SELECT s.version, s.floor, coalesce(m.value, '') AS instance FROM change_state s LEFT JOIN meta m ON m.name = 'instance_id' WHERE s.id = 1";
    /// The newest version.
    NEWEST = "SELECT version FROM change_state WHERE id = 1";
    /// Objects that changed after a version, as they are now; empty `$2` = every kind, empty `$3` = every name.
    AFTER = concat!(changed_objects!(), "WHERE c.version > $1 AND ($2 = '' OR c.kind = $2) AND ($3 = '' OR lower(c.name) = $3) ORDER BY c.version LIMIT $4");
    /// The same for container, configuration and skills of a user, found by their keys.
    AFTER_OF_USER = concat!(changed_objects!(), "WHERE c.uid = $2 AND c.kind IN ('container', 'agent-config', 'skill-set') AND c.version > $1 ORDER BY c.version LIMIT $3");
    /// The newest version to forget: of purged objects beyond the newest `$1`, or deleted before `$2`.
    TO_FORGET = "SELECT coalesce(max(version), 0) FROM changes WHERE last_generation IS NOT NULL AND (deleted_at < $2 OR version <= coalesce( \
                 (SELECT version FROM changes WHERE last_generation IS NOT NULL ORDER BY version DESC LIMIT 1 OFFSET $1), 0))";
    /// Remembers what was forgotten.
    RAISE_FLOOR = "UPDATE change_state SET floor = $1 WHERE id = 1 AND floor < $1";
    /// Forgets purged objects.
    FORGET = "DELETE FROM changes WHERE last_generation IS NOT NULL AND version <= $1";
}

/// The kind that an object of this one is shown with, or the kind itself.
fn shown_with(kind: Kind) -> &'static str {
    kind.descriptor().shown_with.unwrap_or(kind).as_str()
}

async fn take(connection: &mut Connection, count: i64) -> Result<i64, DbError> {
    scalar!(connection, TAKE, count)
}

/// Writes what a transaction has changed. Called as its last statement but the notification.
pub(crate) async fn write(connection: &mut Connection, pending: &Pending) -> Result<(), DbError> {
    let single: Vec<_> = pending.single().collect();
    let objects = i64::try_from(single.len() + pending.gone.len()).unwrap_or(i64::MAX / VERSIONS);
    let mut newest = take(connection, objects * VERSIONS).await?;
    let mut next = newest - objects * VERSIONS;
    for of_kind in single.chunk_by(|(one, _), (other, _)| one == other) {
        let mut chunks = of_kind.chunks_exact(ROWS);
        for chunk in &mut chunks {
            record_many(connection, chunk, &mut next).await?;
        }
        for (kind, uid) in chunks.remainder() {
            execute!(connection, RECORD, kind, shown_with(*kind), next, *uid)?;
            next += VERSIONS;
        }
    }
    for ((kind, uid), gone) in &pending.gone {
        next += 1;
        execute!(
            connection,
            RECORD_GONE,
            kind,
            uid,
            &gone.name,
            next,
            gone.generation,
            gone.deleted_at
        )?;
    }
    for kind in &pending.kinds {
        let written = execute!(connection, RECORD_ALL, kind, shown_with(*kind), newest)?;
        let written = i64::try_from(written).unwrap_or(i64::MAX);
        newest = take(connection, written).await?;
    }
    Ok(())
}

/// Writes the changes of [`ROWS`] objects of one kind.
async fn record_many(
    connection: &mut Connection,
    objects: &[(Kind, &Uid)],
    next: &mut i64,
) -> Result<(), DbError> {
    static RECORD_MANY: LazyLock<String> = LazyLock::new(|| {
        let uids: Vec<_> = (0..ROWS).map(|at| format!("${}", at + 4)).collect();
        RECORD.replace("$4", &uids.join(", "))
    });
    let Some((kind, _)) = objects.first() else {
        return Ok(());
    };
    let query = sqlx::query(RECORD_MANY.as_str());
    let mut query = query.bind(kind).bind(shown_with(*kind)).bind(*next);
    for (_, uid) in objects {
        query = query.bind(*uid);
        *next += VERSIONS;
    }
    finish!(query.execute(connection))?;
    Ok(())
}

#[derive(sqlx::FromRow)]
struct State {
    version: i64,
    floor: i64,
    instance: String,
}

async fn state(connection: &mut Connection) -> Result<State, DbError> {
    fetch_one!(connection, STATE)
}

/// The newest version.
pub(crate) async fn newest(connection: &mut Connection) -> Result<i64, DbError> {
    scalar!(connection, NEWEST)
}

/// Where the history stands: everything that this connection can read has happened until then.
pub async fn position(connection: &mut Connection) -> Result<Position, DbError> {
    let State {
        version, instance, ..
    } = state(connection).await?;
    Ok(Position { instance, version })
}

/// What has changed since a position, at most `limit` objects. Needs a connection that reads one
/// moment: [`crate::db::Db::snapshot`].
pub async fn after(
    connection: &mut Connection,
    since: &Position,
    filter: &Filter,
    limit: u16,
) -> Result<News, DbError> {
    let State {
        version: newest,
        floor,
        instance,
    } = state(connection).await?;
    if since.instance != instance || since.version < floor || since.version > newest {
        let version = newest;
        return Ok(News::Resync(Position { instance, version }));
    }
    if since.version == newest {
        return Ok(News::Changes {
            changes: Vec::new(),
            through: newest,
            more: false,
        });
    }
    let raws: Vec<RawChange> = match &filter.of_user {
        Some(uid) => fetch_all!(
            connection,
            AFTER_OF_USER,
            since.version,
            uid,
            i64::from(limit)
        )?,
        None => fetch_all!(
            connection,
            AFTER,
            since.version,
            filter.kind.map_or("", Kind::as_str),
            filter.name.as_deref().unwrap_or_default(),
            i64::from(limit)
        )?,
    };
    let more = raws.len() >= usize::from(limit);
    let changes: Vec<_> = raws.into_iter().map(Change::from).collect();
    let last = changes.last().map(|change| change.version);
    Ok(News::Changes {
        through: last.filter(|_| more).unwrap_or(newest),
        changes,
        more,
    })
}

/// Forgets purged objects beyond the newest `kept`, and those whose removal was asked for before
/// `oldest`. Whoever has not read them yet must list again.
pub async fn prune(tx: &mut ObservedTx, kept: i64, oldest: Timestamp) -> Result<u64, DbError> {
    // Nobody adds or forgets meanwhile, so the floor is exact.
    take(tx, 0).await?;
    let version: i64 = scalar!(tx, TO_FORGET, kept, oldest)?;
    if version == 0 {
        return Ok(0);
    }
    execute!(tx, RAISE_FLOOR, version)?;
    execute!(tx, FORGET, version)
}
