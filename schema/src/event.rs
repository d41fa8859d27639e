//! Events: what happened to objects, for people. Append-only; repeats within five minutes are merged.

use std::time::Duration;

use serde::Serialize;
use sqlx::{AnyConnection, FromRow};

use crate::condition::Reason;
use crate::db::Tx;
use crate::error::DbError;
use crate::ids::{Kind, Timestamp, Uid};
use crate::meta;
use crate::statement::statements;

/// Longest message in bytes.
pub const MAX_MESSAGE: usize = 1024;
/// Repeats within this time of each other are one event.
pub const MERGE_WINDOW: Duration = Duration::from_secs(5 * 60);

statements! {
    /// Merges a repeat into the newest event like it.
    MERGE = "UPDATE events SET count = count + 1, last_at = $1 WHERE id = (SELECT max(id) FROM events WHERE kind = $2 AND uid = $3 AND last_at >= $4) \
             AND reason = $5 AND action = $6 AND message = $7";
    /// Appends an event; the name is the object's, while it has a row.
    INSERT = "INSERT INTO events (id, kind, uid, name, reason, action, message, count, first_at, last_at) \
              VALUES (CAST($1 AS BIGINT), $2, $3, coalesce((SELECT name FROM objects WHERE kind = $2 AND uid = $3), $3), $4, $5, $6, 1, CAST($7 AS BIGINT), CAST($7 AS BIGINT))";
    /// Newest first; empty kind or uid = all.
    LIST = "SELECT id, kind, uid, name, reason, action, message, count, first_at, last_at FROM events \
            WHERE ($1 = '' OR kind = $1) AND ($2 = '' OR uid = $2) AND last_at >= $3 ORDER BY last_at DESC, id DESC LIMIT $4";
    /// Newest first, of the objects that have or had a name.
    LIST_BY_NAME = "SELECT id, kind, uid, name, reason, action, message, count, first_at, last_at FROM events \
                    WHERE kind = $1 AND lower(name) = $2 AND last_at >= $3 ORDER BY last_at DESC, id DESC LIMIT $4";
    /// Forgets old events.
    PRUNE = "DELETE FROM events WHERE last_at < $1";
}

/// Something that happened to an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Event {
    /// Rises with every event.
    pub id: i64,
    /// `kind/name` of the object.
    pub object: String,
    /// Why, for programs.
    pub reason: String,
    /// The step that was taken; empty when none was.
    pub action: String,
    /// What happened, for people. Never a secret.
    pub message: String,
    /// How often.
    pub count: i64,
    /// First time.
    pub first_at: Timestamp,
    /// Latest time.
    pub last_at: Timestamp,
}

#[derive(FromRow)]
struct RawEvent {
    id: i64,
    kind: String,
    name: String,
    reason: String,
    action: String,
    message: String,
    count: i64,
    first_at: i64,
    last_at: i64,
}

impl From<RawEvent> for Event {
    fn from(raw: RawEvent) -> Self {
        Self {
            id: raw.id,
            object: format!("{}/{}", raw.kind, raw.name),
            reason: raw.reason,
            action: raw.action,
            message: raw.message,
            count: raw.count,
            first_at: Timestamp::from_millis(raw.first_at),
            last_at: Timestamp::from_millis(raw.last_at),
        }
    }
}

/// Appends an event, or merges it into the newest one of the object when that says the same.
pub async fn record(
    tx: &mut Tx,
    kind: Kind,
    uid: &Uid,
    reason: Reason,
    action: &str,
    message: &str,
    now: Timestamp,
) -> Result<(), DbError> {
    let message = truncate(message);
    let merged = sqlx::query(MERGE)
        .bind(now.as_millis())
        .bind(kind.as_str())
        .bind(uid.as_str())
        .bind(now.minus(MERGE_WINDOW).as_millis())
        .bind(reason.as_str())
        .bind(action)
        .bind(message)
        .execute(&mut **tx)
        .await?;
    if merged.rows_affected() > 0 {
        return Ok(());
    }
    let id = meta::take_guard(tx, "events").await?;
    sqlx::query(INSERT)
        .bind(id)
        .bind(kind.as_str())
        .bind(uid.as_str())
        .bind(reason.as_str())
        .bind(action)
        .bind(message)
        .bind(now.as_millis())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Events since a moment, newest first; of one kind or one object, if given.
pub async fn list(
    connection: &mut AnyConnection,
    kind: Option<Kind>,
    uid: Option<&Uid>,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<Event>, DbError> {
    let raws: Vec<RawEvent> = sqlx::query_as(LIST)
        .bind(kind.map_or("", Kind::as_str))
        .bind(uid.map_or("", Uid::as_str))
        .bind(since.as_millis())
        .bind(limit)
        .fetch_all(connection)
        .await?;
    Ok(raws.into_iter().map(Event::from).collect())
}

/// Events of the objects of a kind that have or had this name (case-insensitively), newest first:
/// what happened to an object that is gone can still be told.
pub async fn list_by_name(
    connection: &mut AnyConnection,
    kind: Kind,
    name: &str,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<Event>, DbError> {
    let raws: Vec<RawEvent> = sqlx::query_as(LIST_BY_NAME)
        .bind(kind.as_str())
        .bind(name.to_ascii_lowercase())
        .bind(since.as_millis())
        .bind(limit)
        .fetch_all(connection)
        .await?;
    Ok(raws.into_iter().map(Event::from).collect())
}

/// Forgets events older than `oldest`.
pub async fn prune(tx: &mut Tx, oldest: Timestamp) -> Result<u64, DbError> {
    let result = sqlx::query(PRUNE)
        .bind(oldest.as_millis())
        .execute(&mut **tx)
        .await?;
    Ok(result.rows_affected())
}

fn truncate(message: &str) -> &str {
    let mut end = message.len().min(MAX_MESSAGE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.get(..end).unwrap_or_default()
}
