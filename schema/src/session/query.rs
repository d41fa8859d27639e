//! Statements on sessions.
//!
//! A session is named by its account and the second at which it began. The clock may be set back, so that
//! second is the next from now that no session of the name has had, and a session that lies in the future
//! is dead: it is forgotten, and its second stays taken.

use std::time::Duration;

use sqlx::FromRow;

use crate::column::Flag;
use crate::connection::Connection;
use crate::db::{ObservedTx, Tx};
use crate::error::DbError;
use crate::ids::{Timestamp, Uid, UserName};
use crate::statement::{execute, fetch_all, fetch_optional, scalar_optional, statements};
use crate::user::{Role, Source};

/// How far the time of a session may lie in the future: clocks differ, and sessions of one account that begin in
/// one second get different seconds.
pub const SKEW: Duration = Duration::from_secs(60);

statements! {
    /// Orders the sessions of an account, and gives its name.
    LOCK = "UPDATE users SET name_key = name_key WHERE uid = $1 RETURNING name_key";
    /// The seconds that sessions of a name have had, whatever became of them.
    TAKEN = "SELECT issued_at FROM session_times WHERE name_key = $1 AND issued_at >= $2 AND issued_at <= $3";
    /// Takes a second for good.
    TAKE = "INSERT INTO session_times (name_key, issued_at) VALUES ($1, $2)";
    /// Forgets sessions of an account that lie in the future.
    FORGET = "DELETE FROM sessions WHERE uid = $1 AND issued_at > $2";
    /// Whether sessions lie in the future.
    AHEAD = "SELECT issued_at FROM sessions WHERE issued_at > $1 LIMIT 1";
    /// Records a session.
    INSERT = "INSERT INTO sessions (uid, issued_at, address, client) VALUES ($1, $2, $3, $4)";
    /// The account behind a live session.
    FIND_LIVE = "SELECT u.uid, u.name, u.role, u.source, x.issued_at, CASE WHEN w.name_key IS NULL THEN 0 ELSE 1 END AS whitelisted, \
                 CASE WHEN c.desired = 'running' AND coalesce(s.ready, '') <> 'True' AND coalesce(p.paused, 0) = 0 THEN 1 ELSE 0 END AS initializing FROM sessions x JOIN users u ON u.uid = x.uid \
                 LEFT JOIN objects o ON o.kind = 'user' AND o.uid = u.uid \
                 LEFT JOIN containers c ON c.uid = u.uid \
                 LEFT JOIN objects p ON p.kind = 'container' AND p.uid = u.uid \
                 LEFT JOIN object_status s ON s.kind = 'container' AND s.uid = u.uid \
                 LEFT JOIN whitelist w ON w.name_key = u.name_key \
                 WHERE u.name_key = $1 AND x.issued_at = $2 AND u.disabled = 0 AND o.deleted_at IS NULL";
    /// Ends one session.
    REVOKE = "DELETE FROM sessions WHERE uid = $1 AND issued_at = $2";
    /// Ends all sessions of an account but one.
    REVOKE_ALL = "DELETE FROM sessions WHERE uid = $1 AND issued_at <> $2";
    /// Sessions of an account, newest first.
    LIST = "SELECT issued_at, address, client FROM sessions WHERE uid = $1 AND issued_at > $2 ORDER BY issued_at DESC";
    /// Forgets sessions that are too old to be valid, or lie in the future.
    PRUNE = "DELETE FROM sessions WHERE issued_at < $1 OR issued_at > $2";
    /// Frees the seconds of cookies that are too old to be valid.
    PRUNE_TIMES = "DELETE FROM session_times WHERE issued_at < $1";
}

/// The account behind a live session.
#[derive(Debug, Clone, FromRow)]
pub struct Live {
    /// Identity.
    pub uid: Uid,
    /// Name.
    pub name: UserName,
    /// What it may do.
    pub role: Role,
    /// Where it comes from.
    pub source: Source,
    /// The session's own time, in Unix seconds.
    pub issued_at: i64,
    /// The name is on the whitelist.
    #[sqlx(try_from = "Flag")]
    pub whitelisted: bool,
    /// The container is to run but is not ready yet. One that is paused is not on its way.
    #[sqlx(try_from = "Flag")]
    pub initializing: bool,
}

/// One session of an account.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct SessionRow {
    /// Unix seconds; also names the session.
    pub issued_at: i64,
    /// Address of the client at sign-in.
    pub address: String,
    /// `web`, `extension` or `desktop`.
    pub client: String,
}

/// Starts a session and returns its time: the next second from now that no session of this name has had, so
/// that no two are alike, whoever bore the name.
///
/// # Errors
/// [`DbError::TooManySessions`] when it would lie further in the future than cookies may.
pub async fn issue(
    tx: &mut Tx,
    uid: &Uid,
    now: Timestamp,
    address: &str,
    client: &str,
) -> Result<i64, DbError> {
    let name: Option<String> = scalar_optional!(tx, LOCK, uid)?;
    let name = name.ok_or(DbError::NotFound("account"))?;
    let (now, last) = (now.as_secs(), newest(now));
    execute!(tx, FORGET, uid, last)?;
    let taken: Vec<(i64,)> = fetch_all!(tx, TAKEN, &name, now, last)?;
    let issued_at = (now..=last)
        .find(|second| !taken.contains(&(*second,)))
        .ok_or(DbError::TooManySessions)?;
    execute!(tx, TAKE, &name, issued_at)?;
    execute!(tx, INSERT, uid, issued_at, address, client)?;
    Ok(issued_at)
}

/// The newest time (Unix seconds) that a session may have now.
fn newest(now: Timestamp) -> i64 {
    now.plus(SKEW).as_secs()
}

/// The account behind a session, unless the session ended or the account is disabled or going.
pub async fn find_live(
    connection: &mut Connection,
    name: &UserName,
    issued_at: i64,
) -> Result<Option<Live>, DbError> {
    fetch_optional!(connection, FIND_LIVE, name.key(), issued_at)
}

/// Ends one session; idempotent. Returns whether it was live.
pub async fn revoke(tx: &mut Tx, uid: &Uid, issued_at: i64) -> Result<bool, DbError> {
    Ok(execute!(tx, REVOKE, uid, issued_at)? > 0)
}

/// Ends all sessions of an account, except `keep`. Returns how many ended.
pub async fn revoke_all(tx: &mut Tx, uid: &Uid, keep: Option<i64>) -> Result<u64, DbError> {
    execute!(tx, REVOKE_ALL, uid, keep.unwrap_or(-1))
}

/// Live sessions of an account, newest first; `oldest` is the oldest time (Unix seconds) still valid.
pub async fn list(
    connection: &mut Connection,
    uid: &Uid,
    oldest: i64,
) -> Result<Vec<SessionRow>, DbError> {
    fetch_all!(connection, LIST, uid, oldest)
}

/// Whether sessions lie in the future: the clock was set back.
pub async fn ahead(connection: &mut Connection, now: Timestamp) -> Result<bool, DbError> {
    let ahead: Option<i64> = scalar_optional!(connection, AHEAD, newest(now))?;
    Ok(ahead.is_some())
}

/// Forgets sessions that are older than `oldest`, or lie in the future. Returns how many they were.
pub async fn prune(tx: &mut ObservedTx, oldest: Timestamp, now: Timestamp) -> Result<u64, DbError> {
    execute!(tx, PRUNE_TIMES, oldest.as_secs())?;
    execute!(tx, PRUNE, oldest.as_secs(), newest(now))
}
