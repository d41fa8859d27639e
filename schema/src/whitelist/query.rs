//! Statements on the whitelist.

use crate::connection::Connection;
use crate::db::Tx;
use crate::error::DbError;
use crate::ids::UserName;
use crate::meta;
use crate::statement::{execute, fetch_all, scalar, statements};

statements! {
    /// One page of names; `$1` is a LIKE pattern on the lower-case name.
    LIST = "SELECT name FROM whitelist WHERE name_key LIKE $1 ESCAPE '!' ORDER BY name_key LIMIT $2 OFFSET $3";
    /// How many names `LIST` would give without paging.
    COUNT = "SELECT count(*) FROM whitelist WHERE name_key LIKE $1 ESCAPE '!'";
    /// Whether a name is on it.
    HAS = "SELECT count(*) FROM whitelist WHERE name_key = $1";
    /// Adds a name.
    ADD = "INSERT INTO whitelist (name_key, name) VALUES ($1, $2) ON CONFLICT (name_key) DO NOTHING";
    /// Removes a name.
    REMOVE = "DELETE FROM whitelist WHERE name_key = $1";
    /// Gives a name that is on it another bearer's name.
    RENAME = "INSERT INTO whitelist (name_key, name) SELECT $2, $3 FROM whitelist WHERE name_key = $1 ON CONFLICT (name_key) DO NOTHING";
    /// Removes all names.
    CLEAR = "DELETE FROM whitelist";
}

/// One page of names, with the total. `search` is a case-insensitive substring.
pub async fn list(
    connection: &mut Connection,
    search: &str,
    limit: i64,
    offset: i64,
) -> Result<(Vec<UserName>, i64), DbError> {
    let pattern = crate::statement::like_pattern(search);
    let total = scalar!(connection, COUNT, &pattern)?;
    let names: Vec<(UserName,)> = fetch_all!(connection, LIST, &pattern, limit, offset)?;
    Ok((names.into_iter().map(|(name,)| name).collect(), total))
}

/// Whether a name is on it.
pub async fn has(connection: &mut Connection, name: &UserName) -> Result<bool, DbError> {
    let found: i64 = scalar!(connection, HAS, name.key())?;
    Ok(found > 0)
}

/// Reports that no name is on it: where it is enabled, nobody may sign in.
pub async fn is_empty(connection: &mut Connection) -> Result<bool, DbError> {
    let names: i64 = scalar!(connection, COUNT, "%")?;
    Ok(names == 0)
}

/// A number that is another one after each change.
pub async fn revision(connection: &mut Connection) -> Result<i64, DbError> {
    meta::guard(connection, "whitelist").await
}

/// Makes it these names, and no others. Of names that differ in case only, the first stays.
pub async fn replace(tx: &mut Tx, names: &[UserName]) -> Result<(), DbError> {
    // Orders two who replace it: it is the list of one of them.
    meta::take_guard(tx, "whitelist").await?;
    execute!(tx, CLEAR)?;
    insert(tx, names).await.map(drop)
}

/// Adds names; returns how many were not on it.
pub async fn add(tx: &mut Tx, names: &[UserName]) -> Result<u64, DbError> {
    meta::take_guard(tx, "whitelist").await?;
    insert(tx, names).await
}

/// Puts a user's new name in the place of the one before, if that is on it.
pub(crate) async fn rename(tx: &mut Tx, before: &UserName, name: &UserName) -> Result<(), DbError> {
    meta::take_guard(tx, "whitelist").await?;
    execute!(tx, RENAME, before.key(), name.key(), name)?;
    execute!(tx, REMOVE, before.key())?;
    Ok(())
}

async fn insert(tx: &mut Tx, names: &[UserName]) -> Result<u64, DbError> {
    let mut added = 0;
    for name in names {
        added += execute!(tx, ADD, name.key(), name)?;
    }
    Ok(added)
}

/// Removes names; returns how many were on it.
pub async fn remove(tx: &mut Tx, names: &[UserName]) -> Result<u64, DbError> {
    meta::take_guard(tx, "whitelist").await?;
    let mut removed = 0;
    for name in names {
        removed += execute!(tx, REMOVE, name.key())?;
    }
    Ok(removed)
}
