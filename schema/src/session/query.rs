//! Statements on sessions.

use sqlx::{AnyConnection, FromRow};

use crate::db::Tx;
use crate::error::DbError;
use crate::ids::{Timestamp, Uid, UserName};
use crate::statement::statements;
use crate::user::{Role, Source};

statements! {
    /// The next free session time of an account: unique, and never that of an earlier session.
    NEXT_ISSUED_AT = "UPDATE users SET last_session_at = CASE WHEN last_session_at >= $2 THEN last_session_at + 1 ELSE CAST($2 AS BIGINT) END WHERE uid = $1 RETURNING last_session_at";
    /// Records a session.
    INSERT = "INSERT INTO sessions (uid, issued_at, address, client) VALUES ($1, $2, $3, $4)";
    /// The account behind a live session.
    FIND_LIVE = "SELECT u.uid, u.name, u.role, u.source, u.disabled, o.deleted_at, c.desired, s.ready FROM sessions x JOIN users u ON u.uid = x.uid \
                 LEFT JOIN objects o ON o.kind = 'user' AND o.uid = u.uid \
                 LEFT JOIN containers c ON c.uid = u.uid \
                 LEFT JOIN object_status s ON s.kind = 'container' AND s.uid = u.uid \
                 WHERE u.name_key = $1 AND x.issued_at = $2";
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
#[derive(Debug, Clone)]
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
    pub initializing: bool,
}

#[derive(FromRow)]
struct RawLive {
    uid: String,
    name: String,
    role: String,
    source: String,
    disabled: i64,
    deleted_at: Option<i64>,
    desired: Option<String>,
    ready: Option<String>,
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
    let row: Option<(i64,)> = sqlx::query_as(NEXT_ISSUED_AT)
        .bind(uid.as_str())
        .bind(now.as_secs())
        .fetch_optional(&mut **tx)
        .await?;
    let (issued_at,) = row.ok_or(DbError::NotFound("account"))?;
    sqlx::query(INSERT)
        .bind(uid.as_str())
        .bind(issued_at)
        .bind(address)
        .bind(client)
        .execute(&mut **tx)
        .await?;
    Ok(issued_at)
}

/// The account behind a session, unless the session ended or the account is disabled or going.
pub async fn find_live(
    connection: &mut AnyConnection,
    name: &UserName,
    issued_at: i64,
) -> Result<Option<Live>, DbError> {
    let raw: Option<RawLive> = sqlx::query_as(FIND_LIVE)
        .bind(name.key())
        .bind(issued_at)
        .fetch_optional(connection)
        .await?;
    let Some(raw) = raw else { return Ok(None) };
    if raw.disabled != 0 || raw.deleted_at.is_some() {
        return Ok(None);
    }
    Ok(Some(Live {
        uid: Uid::from(raw.uid),
        name: raw.name.parse()?,
        role: raw
            .role
            .parse()
            .map_err(|_| DbError::Corrupt(format!("role {:?}", raw.role)))?,
        source: raw
            .source
            .parse()
            .map_err(|_| DbError::Corrupt(format!("source {:?}", raw.source)))?,
        issued_at,
        initializing: raw.desired.as_deref() == Some("running")
            && raw.ready.as_deref() != Some("True"),
    }))
}

/// Ends one session; idempotent. Returns whether it was live.
pub async fn revoke(tx: &mut Tx, uid: &Uid, issued_at: i64) -> Result<bool, DbError> {
    let result = sqlx::query(REVOKE)
        .bind(uid.as_str())
        .bind(issued_at)
        .execute(&mut **tx)
        .await?;
    Ok(result.rows_affected() > 0)
}

/// Ends all sessions of an account, except `keep`. Returns how many ended.
pub async fn revoke_all(tx: &mut Tx, uid: &Uid, keep: Option<i64>) -> Result<u64, DbError> {
    let result = sqlx::query(REVOKE_ALL)
        .bind(uid.as_str())
        .bind(keep.unwrap_or(-1))
        .execute(&mut **tx)
        .await?;
    Ok(result.rows_affected())
}

/// Live sessions of an account, newest first; `oldest` is the oldest time (Unix seconds) still valid.
pub async fn list(
    connection: &mut AnyConnection,
    uid: &Uid,
    oldest: i64,
) -> Result<Vec<SessionRow>, DbError> {
    Ok(sqlx::query_as(LIST)
        .bind(uid.as_str())
        .bind(oldest)
        .fetch_all(connection)
        .await?)
}

/// Forgets sessions older than `oldest` (Unix seconds).
pub async fn prune(tx: &mut Tx, oldest: i64) -> Result<u64, DbError> {
    let result = sqlx::query(PRUNE).bind(oldest).execute(&mut **tx).await?;
    Ok(result.rows_affected())
}
