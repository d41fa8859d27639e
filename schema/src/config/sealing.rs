//! Sealing at rest what documents mask, also where an earlier release has stored it in the clear.

use tracing::info;

use super::keys::find;
use super::query::PUT;
use super::setting::KeyDef;
use crate::connection::Connection;
use crate::db::{Db, Tx};
use crate::error::DbError;
use crate::meta;
use crate::secrets::MasterKey;
use crate::statement::{execute, fetch_all, statements};

statements! {
    /// Values in the clear.
    PLAIN_VALUES = "SELECT key, value FROM config_values WHERE value IS NOT NULL AND sealed IS NULL";
    /// A few saves in the clear.
    PLAIN_SAVES = "SELECT revision, changes FROM config_history WHERE sealed IS NULL ORDER BY revision LIMIT 20";
    /// Seals a save.
    SEAL_SAVE = "UPDATE config_history SET changes = '[]', sealed = $2 WHERE revision = $1";
}

/// The fact that no bytes of values in the clear are left in the database's files.
const SCRUBBED: &str = "configuration_scrubbed";
/// The tables that had such values.
const TABLES: &str = "config_values, config_history";

/// Where a key's value is sealed for.
pub(super) fn value_place(key: &str) -> String {
    format!("config:{key}")
}

/// Where a save is sealed for.
pub(super) fn save_place(revision: i64) -> String {
    format!("config_history:{revision}")
}

pub(super) fn seal(key: &MasterKey, place: &str, text: &str) -> Result<Vec<u8>, DbError> {
    let sealed = key.seal(place, text.as_bytes());
    sealed.map_err(|e| DbError::Sealed(format!("{place}: {e}")))
}

/// Seals what an earlier release has stored in the clear; a replica of one may do so again. Call it at each start, and
/// [`scrub`] after the transaction.
///
/// # Errors
/// When the database fails.
pub async fn seal_plain(tx: &mut Tx, key: &MasterKey) -> Result<(), DbError> {
    let values: Vec<(String, String)> = fetch_all!(tx, PLAIN_VALUES)?;
    let mut sealed_any = false;
    for (name, text) in values {
        if find(&name).is_none_or(KeyDef::is_sealed) {
            let sealed = seal(key, &value_place(&name), &text)?;
            execute!(tx, PUT, name, None::<String>, sealed)?;
            sealed_any = true;
        }
    }
    loop {
        // A save may hold a megabyte: a few at a time.
        let saves: Vec<(i64, String)> = fetch_all!(tx, PLAIN_SAVES)?;
        if saves.is_empty() {
            break;
        }
        for (revision, changes) in saves {
            let sealed = seal(key, &save_place(revision), &changes)?;
            execute!(tx, SEAL_SAVE, revision, sealed)?;
        }
        sealed_any = true;
    }
    if sealed_any {
        meta::remove(tx, SCRUBBED).await?;
    }
    Ok(())
}

/// Removes the bytes that values in the clear have left in the database's files, unless that was done before.
///
/// # Errors
/// When the database fails, or somebody else uses the file; then the next start tries again.
pub async fn scrub(db: &Db) -> Result<(), DbError> {
    if is_scrubbed(&mut *db.read().await?).await? {
        return Ok(());
    }
    db.rewrite(TABLES).await?;
    let mut tx = db.begin().await?;
    meta::ensure(&mut tx, SCRUBBED, "1").await?;
    tx.commit().await?;
    info!("the configuration is sealed, and nothing of it is left in the clear");
    Ok(())
}

async fn is_scrubbed(connection: &mut Connection) -> Result<bool, DbError> {
    Ok(meta::get(connection, SCRUBBED).await?.is_some())
}
