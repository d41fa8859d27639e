//! Statements on API tokens.

use secrecy::SecretString;

use super::model::{ApiToken, Lookup, NewApiToken, digest, generate};
use crate::connection::Connection;
use crate::db::{ObservedTx, Tx};
use crate::error::DbError;
use crate::ids::{Timestamp, Uid};
use crate::statement::{
    execute, fetch_all, fetch_optional, like_pattern, scalar, scalar_optional, statements,
};

/// Columns of a token.
macro_rules! select_token {
    ($rest:literal) => {
        concat!(
            "SELECT uid, name, role, created_by, created_at, expires_at, last_used_at FROM api_tokens ",
            $rest
        )
    };
}

statements! {
    /// Records a token, unless its name is taken.
    INSERT = "INSERT INTO api_tokens (uid, name, role, digest, created_by, created_at, expires_at) \
              VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (name) DO NOTHING";
    /// Finds a token by its digest.
    FIND = select_token!("WHERE digest = $1");
    /// One page of tokens; `$1` is a LIKE pattern on the name.
    LIST = select_token!("WHERE name LIKE $1 ESCAPE '!' ORDER BY name LIMIT $2 OFFSET $3");
    /// Number of tokens that `LIST` would give without paging.
    COUNT = "SELECT count(*) FROM api_tokens WHERE name LIKE $1 ESCAPE '!'";
    /// The valid token that ends first.
    FIRST_TO_END = select_token!("WHERE expires_at >= $1 ORDER BY expires_at, name LIMIT 1");
    /// The end of a token.
    EXPIRES = "SELECT expires_at FROM api_tokens WHERE uid = $1";
    /// Records a use of a token.
    USED = "UPDATE api_tokens SET last_used_at = $2 WHERE uid = $1 AND (last_used_at IS NULL OR last_used_at < $2)";
    /// Removes a token.
    REVOKE = "DELETE FROM api_tokens WHERE name = $1 RETURNING uid";
}

/// Creates a token. Returns it as it is shown to its owner, once, and as it is stored.
///
/// # Errors
/// [`DbError::NameTaken`]; [`DbError::Corrupt`] without random bytes.
pub async fn create(
    tx: &mut Tx,
    new: &NewApiToken,
    now: Timestamp,
) -> Result<(SecretString, ApiToken), DbError> {
    let secret = generate().map_err(|error| DbError::Corrupt(error.to_string()))?;
    let uid = Uid::random();
    let inserted = execute!(
        tx,
        INSERT,
        &uid,
        &new.name,
        new.role,
        digest(&secret),
        &new.created_by,
        now,
        new.expires_at
    )?;
    if inserted == 0 {
        return Err(DbError::NameTaken);
    }
    let stored = ApiToken {
        uid,
        name: new.name.clone(),
        role: new.role,
        created_by: new.created_by.clone(),
        created_at: now,
        expires_at: new.expires_at,
        last_used_at: None,
    };
    Ok((secret, stored))
}

/// Returns the valid token that ends first.
pub async fn first_to_end(
    connection: &mut Connection,
    now: Timestamp,
) -> Result<Option<ApiToken>, DbError> {
    fetch_optional!(connection, FIRST_TO_END, now)
}

/// Finds the token with this digest.
pub async fn find(
    connection: &mut Connection,
    digest: &str,
    now: Timestamp,
) -> Result<Lookup, DbError> {
    let found: Option<ApiToken> = fetch_optional!(connection, FIND, digest)?;
    Ok(match found {
        None => Lookup::Unknown,
        Some(token) if token.is_expired(now) => Lookup::Expired(token),
        Some(token) => Lookup::Valid(token),
    })
}

/// Reports that a token was neither revoked nor has expired.
pub async fn is_live(
    connection: &mut Connection,
    uid: &Uid,
    now: Timestamp,
) -> Result<bool, DbError> {
    let expires_at: Option<i64> = scalar_optional!(connection, EXPIRES, uid)?;
    Ok(expires_at.is_some_and(|expires_at| Timestamp::from_millis(expires_at) >= now))
}

/// One page of tokens by name, with the total. `search` is a case-insensitive substring.
pub async fn list(
    connection: &mut Connection,
    search: &str,
    limit: i64,
    offset: i64,
) -> Result<(Vec<ApiToken>, i64), DbError> {
    let pattern = like_pattern(search);
    let total = scalar!(connection, COUNT, &pattern)?;
    let tokens = fetch_all!(connection, LIST, &pattern, limit, offset)?;
    Ok((tokens, total))
}

/// Records that a token was used.
pub async fn mark_used(tx: &mut ObservedTx, uid: &Uid, at: Timestamp) -> Result<(), DbError> {
    execute!(tx, USED, uid, at).map(drop)
}

/// Removes a token, whose name is free again. Returns its uid.
///
/// # Errors
/// [`DbError::NotFound`].
pub async fn revoke(tx: &mut Tx, name: &str) -> Result<Uid, DbError> {
    let uid: Option<Uid> = scalar_optional!(tx, REVOKE, name)?;
    uid.ok_or(DbError::NotFound("API token"))
}
