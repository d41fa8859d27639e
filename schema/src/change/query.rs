//! Statements on changes.

use sqlx::AnyConnection;

use super::model::{Change, Filter, News, Position, RawChange};
use super::pending::Pending;
use crate::db::Tx;
use crate::error::DbError;
use crate::ids::{Kind, Timestamp};
use crate::statement::statements;

/// Most purged objects that are remembered.
pub const KEPT: i64 = 10_000;
/// Versions that one changed object may need: its own and that of the object it is shown with.
const VERSIONS: i64 = 2;

statements! {
    /// Takes so many versions and returns the newest: a second transaction waits here until the first has ended.
    TAKE = "UPDATE change_state SET version = version + $1 WHERE id = 1 RETURNING version";
    /// Writes one object's change, and that of the object it is shown with (`$2`); `$4` is the version before.
    RECORD = "INSERT INTO changes (kind, uid, name, version) \
              SELECT kind, uid, name, CAST($4 AS BIGINT) + row_number() OVER (ORDER BY kind) FROM objects WHERE kind IN ($1, $2) AND uid = $3 \
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
    AFTER = "SELECT c.version, c.kind, c.uid, c.name, c.last_generation, o.generation, o.deleted_at, s.observed_generation, s.conditions, \
             u.disabled, k.desired, ko.generation AS container_generation, \
             ks.observed_generation AS container_observed_generation, ks.conditions AS container_conditions \
             FROM changes c \
             LEFT JOIN objects o ON o.kind = c.kind AND o.uid = c.uid \
             LEFT JOIN object_status s ON s.kind = c.kind AND s.uid = c.uid \
             LEFT JOIN users u ON u.uid = c.uid \
             LEFT JOIN containers k ON k.uid = c.uid \
             LEFT JOIN objects ko ON ko.kind = 'container' AND ko.uid = c.uid \
             LEFT JOIN object_status ks ON ks.kind = 'container' AND ks.uid = c.uid \
             WHERE c.version > $1 AND ($2 = '' OR c.kind = $2) AND ($3 = '' OR lower(c.name) = $3) ORDER BY c.version LIMIT $4";
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

async fn take(connection: &mut AnyConnection, count: i64) -> Result<i64, DbError> {
    let (version,): (i64,) = sqlx::query_as(TAKE)
        .bind(count)
        .fetch_one(connection)
        .await?;
    Ok(version)
}

/// Writes what a transaction has changed. Called as its last statement but the notification.
pub(crate) async fn write(
    connection: &mut AnyConnection,
    pending: &Pending,
) -> Result<(), DbError> {
    let single: Vec<_> = pending.single().collect();
    let objects = i64::try_from(single.len() + pending.gone.len()).unwrap_or(i64::MAX / VERSIONS);
    let mut newest = take(connection, objects * VERSIONS).await?;
    let mut next = newest - objects * VERSIONS;
    for (kind, uid) in single {
        sqlx::query(RECORD)
            .bind(kind.as_str())
            .bind(shown_with(kind))
            .bind(uid.as_str())
            .bind(next)
            .execute(&mut *connection)
            .await?;
        next += VERSIONS;
    }
    for ((kind, uid), gone) in &pending.gone {
        next += 1;
        sqlx::query(RECORD_GONE)
            .bind(kind.as_str())
            .bind(uid.as_str())
            .bind(&gone.name)
            .bind(next)
            .bind(gone.generation.0)
            .bind(gone.deleted_at.as_millis())
            .execute(&mut *connection)
            .await?;
    }
    for kind in &pending.kinds {
        let written = sqlx::query(RECORD_ALL)
            .bind(kind.as_str())
            .bind(shown_with(*kind))
            .bind(newest)
            .execute(&mut *connection)
            .await?;
        let written = i64::try_from(written.rows_affected()).unwrap_or(i64::MAX);
        newest = take(connection, written).await?;
    }
    Ok(())
}

#[derive(sqlx::FromRow)]
struct State {
    version: i64,
    floor: i64,
    instance: String,
}

async fn state(connection: &mut AnyConnection) -> Result<State, DbError> {
    Ok(sqlx::query_as(STATE).fetch_one(connection).await?)
}

/// The newest version.
pub(crate) async fn newest(connection: &mut AnyConnection) -> Result<i64, DbError> {
    let (version,): (i64,) = sqlx::query_as(NEWEST).fetch_one(connection).await?;
    Ok(version)
}

/// Where the history stands: everything that this connection can see has happened until then.
pub async fn position(connection: &mut AnyConnection) -> Result<Position, DbError> {
    let State {
        version, instance, ..
    } = state(connection).await?;
    Ok(Position { instance, version })
}

/// What has changed since a position, at most `limit` objects. Needs a connection that sees one
/// moment: [`crate::db::Db::snapshot`].
pub async fn after(
    connection: &mut AnyConnection,
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
    let raws: Vec<RawChange> = sqlx::query_as(AFTER)
        .bind(since.version)
        .bind(filter.kind.map_or("", Kind::as_str))
        .bind(filter.name.as_deref().unwrap_or_default())
        .bind(i64::from(limit))
        .fetch_all(connection)
        .await?;
    let more = raws.len() >= usize::from(limit);
    let changes = raws
        .into_iter()
        .map(Change::try_from)
        .collect::<Result<Vec<_>, _>>()?;
    let last = changes.last().map(|change| change.version);
    Ok(News::Changes {
        through: last.filter(|_| more).unwrap_or(newest),
        changes,
        more,
    })
}

/// Forgets purged objects beyond the newest `kept`, and those whose removal was asked for before
/// `oldest`. Whoever has not seen them yet must list again.
pub async fn prune(tx: &mut Tx, kept: i64, oldest: Timestamp) -> Result<u64, DbError> {
    // Nobody adds or forgets meanwhile, so the floor is exact.
    take(tx, 0).await?;
    let (version,): (i64,) = sqlx::query_as(TO_FORGET)
        .bind(kept)
        .bind(oldest.as_millis())
        .fetch_one(&mut **tx)
        .await?;
    if version == 0 {
        return Ok(0);
    }
    sqlx::query(RAISE_FLOOR)
        .bind(version)
        .execute(&mut **tx)
        .await?;
    let result = sqlx::query(FORGET).bind(version).execute(&mut **tx).await?;
    Ok(result.rows_affected())
}
