//! Facts about this installation, sealed secrets that are not configuration, and guard rows.

use secrecy::ExposeSecret;
use zeroize::Zeroizing;

use crate::connection::Connection;
use crate::db::{ObservedTx, Tx};
use crate::error::DbError;
use crate::ids::Uid;
use crate::secrets::{self, MasterKey};
use crate::statement::{execute, scalar, scalar_optional, statements};

statements! {
    /// Answers nothing, quickly.
    PING = "SELECT 1";
    /// Reads one fact.
    GET_META = "SELECT value FROM meta WHERE name = $1";
    /// Writes a fact once.
    INSERT_META = "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    /// Forgets a fact.
    REMOVE_META = "DELETE FROM meta WHERE name = $1";
    /// Reads one sealed secret.
    GET_SEALED = "SELECT value FROM sealed WHERE name = $1";
    /// Whether anything was ever sealed.
    COUNT_SEALED = "SELECT count(*) FROM sealed";
    /// Writes a sealed secret once.
    INSERT_SEALED = "INSERT INTO sealed (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    /// Takes a guard row: a second transaction waits here until the first has ended.
    TAKE_GUARD = "UPDATE guards SET n = n + 1 WHERE name = $1 RETURNING n";
    /// How often a guard row was taken.
    GUARD = "SELECT n FROM guards WHERE name = $1";
}

/// Wakes other replicas (PostgreSQL only).
pub(crate) const NOTIFY: &str = "SELECT pg_notify($1, '')";
/// Writes a table's rows to new files, without the bytes of former ones; names of tables follow (PostgreSQL only).
pub(crate) const REWRITE_TABLES: &str = "VACUUM (FULL) ";
/// Ends a session whose transaction nobody goes on with (PostgreSQL only).
pub(crate) const LIMIT_IDLE: &str = "SET idle_in_transaction_session_timeout = '4s'";
/// Bounds the wait for locks (PostgreSQL only).
pub(crate) const LIMIT_LOCKS: &str = "SET lock_timeout = '2s'";
/// Reason for which the database takes no changes, or has no tables (PostgreSQL only).
pub(crate) const STATE: &str = "SELECT CASE WHEN pg_is_in_recovery() THEN 'standby' \
    WHEN current_setting('transaction_read_only') = 'on' THEN 'read-only' \
    WHEN to_regclass('objects') IS NULL OR to_regclass('users') IS NULL THEN 'empty' ELSE '' END";
/// Marks a session; the mark follows (PostgreSQL only).
pub(crate) const MARK: &str = "SELECT set_config('agentyard.mark', ";
/// The mark of a session (PostgreSQL only).
pub(crate) const MARKED: &str = "SELECT coalesce(current_setting('agentyard.mark', true), '')";
/// Writes a file anew, without the bytes of former rows (SQLite only).
pub(crate) const REWRITE_FILE: &str = "VACUUM";
/// Folds the log into the file and empties it; the first column says whether somebody was in the way (SQLite only).
pub(crate) const EMPTY_LOG: &str = "PRAGMA wal_checkpoint(TRUNCATE)";
/// Copies a file as it is at one moment; the path of the copy is bound (SQLite only).
pub(crate) const COPY_FILE: &str = "VACUUM INTO $1";
/// The first ten faults of a file, or `ok` (SQLite only).
pub(crate) const INTEGRITY_CHECK: &str =
    "SELECT integrity_check FROM pragma_integrity_check LIMIT 10";
/// Integrity of a file (SQLite only).
pub(crate) const QUICK_CHECK: &str = "SELECT quick_check FROM pragma_quick_check";
/// Tables of a file (SQLite only).
pub(crate) const SQLITE_TABLES: &str =
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
/// Migrations that were applied (table of the migration library).
pub(crate) const APPLIED_MIGRATIONS: &str =
    "SELECT version FROM _sqlx_migrations WHERE success ORDER BY version";

/// Takes the guard row `name` for the rest of the transaction and returns its new count.
pub async fn take_guard(tx: &mut ObservedTx, name: &'static str) -> Result<i64, DbError> {
    scalar_optional!(tx, TAKE_GUARD, name)?.ok_or(DbError::NotFound("guard row"))
}

/// How often what the guard row `name` guards may have changed.
pub(crate) async fn guard(connection: &mut Connection, name: &'static str) -> Result<i64, DbError> {
    scalar_optional!(connection, GUARD, name)?.ok_or(DbError::NotFound("guard row"))
}

/// The identity of this installation: made once, carried by every object it owns in the world. Also returns
/// whether it was made just now, by this transaction, which therefore begins the installation.
pub async fn ensure_instance_id(tx: &mut Tx) -> Result<(String, bool), DbError> {
    let inserted = execute!(tx, INSERT_META, "instance_id", Uid::random())?;
    let id = get(tx, "instance_id")
        .await?
        .ok_or(DbError::NotFound("instance id"))?;
    Ok((id, inserted > 0))
}

/// Writes a fact unless it has a value, and returns the value it has.
pub async fn ensure(tx: &mut Tx, name: &str, value: &str) -> Result<String, DbError> {
    execute!(tx, INSERT_META, name, value)?;
    get(tx, name).await?.ok_or(DbError::NotFound("fact"))
}

/// Reads one fact.
pub async fn get(connection: &mut Connection, name: &str) -> Result<Option<String>, DbError> {
    scalar_optional!(connection, GET_META, name)
}

/// Forgets a fact.
pub async fn remove(tx: &mut Tx, name: &str) -> Result<(), DbError> {
    execute!(tx, REMOVE_META, name)?;
    Ok(())
}

/// Whether the database holds secrets that were sealed under a master key.
pub async fn has_sealed(connection: &mut Connection) -> Result<bool, DbError> {
    let n: i64 = scalar!(connection, COUNT_SEALED)?;
    Ok(n > 0)
}

/// The secret that signs sessions: made once, sealed under the master key, so that sessions stay
/// valid across restarts.
pub async fn ensure_session_secret(
    tx: &mut Tx,
    key: &MasterKey,
) -> Result<Zeroizing<Vec<u8>>, DbError> {
    const NAME: &str = "session_secret";
    let fresh = secrets::random_secret()
        .and_then(|secret| key.seal(NAME, secret.expose_secret().as_bytes()))
        .map_err(|e| DbError::Sealed(e.to_string()))?;
    execute!(tx, INSERT_SEALED, NAME, fresh)?;
    let sealed: Vec<u8> = scalar!(tx, GET_SEALED, NAME)?;
    key.open(NAME, &sealed)
        .map_err(|e| DbError::Sealed(e.to_string()))
}
