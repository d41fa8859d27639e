//! Events: what happened to objects, for people. Append-only; repeats within five minutes are merged,
//! whatever happened to the object in between, so that a crash loop of several steps is not an endless
//! list.

use std::time::Duration;

use serde::Serialize;
use sqlx::FromRow;

use crate::condition::Reason;
use crate::connection::Connection;
use crate::db::ObservedTx;
use crate::error::DbError;
use crate::ids::{Kind, Timestamp, Uid};
use crate::meta;
use crate::statement::{execute, fetch_all, like_pattern, scalar, statements};

/// Longest message in bytes.
pub const MAX_MESSAGE: usize = 1024;
/// In place of a kind of object: what happened to the service itself.
pub const SERVICE: &str = "service";
/// The one object of that kind, so that its events are found as `service/agentyard`.
pub const SERVICE_NAME: &str = "agentyard";
/// Repeats within this time of each other are one event.
pub const MERGE_WINDOW: Duration = Duration::from_secs(5 * 60);

/// Columns of an event.
macro_rules! select_event {
    ($rest:expr) => {
        concat!(
            "SELECT id, kind || '/' || name AS object, uid, reason, action, message, count, first_at, last_at FROM events ",
            $rest
        )
    };
}

/// The events of a [`Filter`].
macro_rules! matching {
    ($rest:literal) => {
        concat!(
            "WHERE last_at >= $1 AND ($2 = '' OR kind = $2) AND ($3 = '' OR lower(name) = $3) AND ($4 = '' OR reason = $4) \
             AND ($6 = '' OR (lower(name) = $6 AND kind IN ('user', 'container', 'agent-config', 'skill-set'))) \
             AND (lower(name) LIKE $5 ESCAPE '!' OR lower(message) LIKE $5 ESCAPE '!' OR lower(reason) LIKE $5 ESCAPE '!') ",
            $rest
        )
    };
}

statements! {
    /// Merges a repeat into the newest event like it.
    MERGE = "UPDATE events SET count = count + 1, last_at = $1 WHERE id = (SELECT max(id) FROM events WHERE kind = $2 AND uid = $3 AND last_at >= $4 \
             AND reason = $5 AND action = $6 AND message = $7)";
    /// Appends an event; the name is the object's, or the last it had.
    INSERT = "INSERT INTO events (id, kind, uid, name, reason, action, message, count, first_at, last_at) \
              VALUES (CAST($1 AS BIGINT), $2, $3, coalesce((SELECT name FROM objects WHERE kind = $2 AND uid = $3), (SELECT name FROM changes WHERE kind = $2 AND uid = $3), $3), \
              $4, $5, $6, 1, CAST($7 AS BIGINT), CAST($7 AS BIGINT))";
    /// Newest first; empty kind or uid = all.
    LIST = select_event!("WHERE ($1 = '' OR kind = $1) AND ($2 = '' OR uid = $2) AND last_at >= $3 ORDER BY last_at DESC, id DESC LIMIT $4");
    /// Newest first; empty kind, name (of the present or a former object) or reason = all; `$5` is a LIKE pattern.
    PAGE = select_event!(matching!("ORDER BY last_at DESC, id DESC LIMIT $7 OFFSET $8"));
    /// How many events `PAGE` would give without paging.
    COUNT = concat!("SELECT count(*) FROM events ", matching!(""));
    /// Counts the ends of containers whose names lie between two, both in lower case.
    COUNT_ENDS = "SELECT o.uid, CAST(sum(e.count) AS BIGINT) AS n FROM objects o JOIN events e ON e.kind = o.kind AND e.uid = o.uid \
                  WHERE o.kind = 'container' AND lower(o.name) >= $1 AND lower(o.name) <= $2 AND e.action = 'NoteEnd' AND e.last_at >= $3 GROUP BY o.uid";
    /// Forgets old events.
    PRUNE = "DELETE FROM events WHERE last_at < $1";
}

/// Something that happened to an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, FromRow, utoipa::ToSchema)]
pub struct Event {
    /// Increases with every event.
    pub id: i64,
    /// `kind/name` of the object.
    pub object: String,
    /// Its identity, which differs between objects of the same name.
    pub uid: Uid,
    /// Why, stable for programs.
    pub reason: String,
    /// The step that was taken; empty when none was.
    pub action: String,
    /// What happened, as a sentence. Never contains a secret.
    pub message: String,
    /// How often.
    pub count: i64,
    /// First time.
    pub first_at: Timestamp,
    /// Latest time.
    pub last_at: Timestamp,
}

/// Appends an event, or merges it into the object's newest one that says the same.
pub async fn record(
    tx: &mut ObservedTx,
    kind: Kind,
    uid: &Uid,
    reason: Reason,
    action: &str,
    message: &str,
    now: Timestamp,
) -> Result<(), DbError> {
    let of = (kind.as_str(), uid.as_str());
    append(tx, of, reason, action, message, now).await
}

/// The same for the service itself, under [`SERVICE`]; `action` names the part it is about.
pub async fn record_of_service(
    tx: &mut ObservedTx,
    reason: Reason,
    action: &str,
    message: &str,
    now: Timestamp,
) -> Result<(), DbError> {
    append(tx, (SERVICE, SERVICE_NAME), reason, action, message, now).await
}

async fn append(
    tx: &mut ObservedTx,
    (kind, uid): (&str, &str),
    reason: Reason,
    action: &str,
    message: &str,
    now: Timestamp,
) -> Result<(), DbError> {
    let message = truncate(message);
    let merged = execute!(
        tx,
        MERGE,
        now,
        kind,
        uid,
        now.minus(MERGE_WINDOW),
        reason,
        action,
        message
    )?;
    if merged > 0 {
        return Ok(());
    }
    let id = meta::take_guard(tx, "events").await?;
    execute!(tx, INSERT, id, kind, uid, reason, action, message, now)?;
    Ok(())
}

/// Events since a moment, newest first; of one kind or one object, if given.
pub async fn list(
    connection: &mut Connection,
    kind: Option<Kind>,
    uid: Option<&Uid>,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<Event>, DbError> {
    fetch_all!(
        connection,
        LIST,
        kind.map_or("", Kind::as_str),
        uid.map_or("", Uid::as_str),
        since,
        limit
    )
}

/// To what something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// An object of this kind.
    Object(Kind),
    /// The service itself.
    Service,
}

impl Subject {
    fn as_str(self) -> &'static str {
        match self {
            Self::Object(kind) => kind.as_str(),
            Self::Service => SERVICE,
        }
    }
}

/// Which events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only those that happened (again) from this moment on.
    pub since: Timestamp,
    /// Only those of this kind of object, or of the service.
    pub kind: Option<Subject>,
    /// Only those of objects that have or had this name (case-insensitively): what happened to an
    /// object that is gone can still be shown.
    pub name: Option<String>,
    /// Only those of what belongs, or belonged, to a user of this name (case-insensitively).
    pub user: Option<String>,
    /// Only events with this reason.
    pub reason: Option<Reason>,
    /// Case-insensitive substring of name, reason or message; empty matches all.
    pub search: String,
}

/// One page of events, newest first, with the total.
pub async fn page(
    connection: &mut Connection,
    filter: &Filter,
    limit: i64,
    offset: i64,
) -> Result<(Vec<Event>, i64), DbError> {
    let since = filter.since.as_millis();
    let kind = filter.kind.map_or("", Subject::as_str);
    let name = filter.name.as_deref().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let reason = filter.reason.map_or("", Reason::as_str);
    let pattern = like_pattern(&filter.search);
    let user = filter.user.as_deref().unwrap_or_default();
    let user = user.to_ascii_lowercase();
    let total = scalar!(
        connection, COUNT, since, kind, &name, reason, &pattern, &user
    )?;
    let events = fetch_all!(
        connection, PAGE, since, kind, &name, reason, &pattern, &user, limit, offset
    )?;
    Ok((events, total))
}

/// Ends of a container that events tell of.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct EndCount {
    /// The container.
    pub uid: Uid,
    /// How often it ended without a request.
    pub n: i64,
}

/// Counts the ends since a moment of containers whose names lie between two; none of those that have not ended.
pub async fn count_ends(
    connection: &mut Connection,
    (first, last): (&str, &str),
    since: Timestamp,
) -> Result<Vec<EndCount>, DbError> {
    let (first, last) = (first.to_ascii_lowercase(), last.to_ascii_lowercase());
    fetch_all!(connection, COUNT_ENDS, first, last, since)
}

/// Forgets events older than `oldest`.
pub async fn prune(tx: &mut ObservedTx, oldest: Timestamp) -> Result<u64, DbError> {
    execute!(tx, PRUNE, oldest)
}

fn truncate(message: &str) -> &str {
    let mut end = message.len().min(MAX_MESSAGE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.get(..end).unwrap_or_default()
}
