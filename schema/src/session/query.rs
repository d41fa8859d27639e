//! Statements on sessions.

use sqlx::FromRow;

use crate::column::Flag;
use crate::connection::Connection;
use crate::db::{ObservedTx, Tx};
use crate::error::DbError;
use crate::ids::{Timestamp, Uid, UserName};
use crate::statement::{execute, fetch_all, fetch_optional, scalar_optional, statements};
use crate::user::{Role, Source};

statements! {
    /// The next free session time of an account: unique, and never that of an earlier session.
    NEXT_ISSUED_AT = "UPDATE users SET last_session_at = CASE WHEN last_session_at >= $2 THEN last_session_at + 1 ELSE CAST($2 AS BIGINT) END WHERE uid = $1 RETURNING last_session_at";
    /// Records a session.
    INSERT = "INSERT INTO sessions (uid, issued_at, address, client) VALUES ($1, $2, $3, $4)";
    /// The account behind a live session.
    FIND_LIVE = "SELECT u.uid, u.name, u.role, u.source, x.issued_at, \
                 CASE WHEN c.desired = 'running' AND coalesce(s.ready, '') <> 'True' THEN 1 ELSE 0 END AS initializing FROM sessions x JOIN users u ON u.uid = x.uid \
                 LEFT JOIN objects o ON o.kind = 'user' AND o.uid = u.uid \
                 LEFT JOIN containers c ON c.uid = u.uid \
                 LEFT JOIN object_status s ON s.kind = 'container' AND s.uid = u.uid \
                 WHERE u.name_key = $1 AND x.issued_at = $2 AND u.disabled = 0 AND o.deleted_at IS NULL";
    /// Ends one session.
    REVOKE = "DELETE FROM sessions WHERE uid = $1 AND issued_at = $2";
    /// Ends all sessions of an account but one.
    REVOKE_ALL = "DELETE FROM sessions WHERE uid = $1 AND issued_at <> $2";
    /// Sessions of an account, newest first.
    LIST = "SELECT issued_at, address, client FROM sessions WHERE uid = $1 AND issued_at > $2 ORDER BY issued_at DESC";
    /// Forgets sessions that are too old to be valid.
    PRUNE = "DELETE FROM sessions WHERE issued_at < $1";
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
    /// The container is to run but is not ready yet.
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

/// Starts a session and returns its time: `max(now, the account's newest + 1)`, so that no two are alike.
pub async fn issue(
    tx: &mut Tx,
    uid: &Uid,
    now: Timestamp,
    address: &str,
    client: &str,
) -> Result<i64, DbError> {
    let issued_at = scalar_optional!(tx, NEXT_ISSUED_AT, uid, now.as_secs())?;
    let issued_at = issued_at.ok_or(DbError::NotFound("account"))?;
    execute!(tx, INSERT, uid, issued_at, address, client)?;
    Ok(issued_at)
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

/// Forgets sessions older than `oldest` (Unix seconds).
pub async fn prune(tx: &mut ObservedTx, oldest: i64) -> Result<u64, DbError> {
    execute!(tx, PRUNE, oldest)
}
