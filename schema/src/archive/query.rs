//! SQL for the archive.

use super::ArchiveFacts;
use crate::connection::Connection;
use crate::db::ObservedTx;
use crate::error::DbError;
use crate::statement::{execute, scalar, statements};

statements! {
    /// What was last seen.
    FACTS = "SELECT facts FROM archive_facts WHERE id = 1";
    /// Remembers what was seen.
    SAVE_FACTS = "UPDATE archive_facts SET facts = $1 WHERE id = 1";
}

/// What was last seen in the archive.
pub async fn facts(connection: &mut Connection) -> Result<ArchiveFacts, DbError> {
    let facts: String = scalar!(connection, FACTS)?;
    serde_json::from_str(&facts).map_err(|error| DbError::Corrupt(error.to_string()))
}

/// Remembers what was seen in the archive.
pub async fn save_facts(tx: &mut ObservedTx, facts: &ArchiveFacts) -> Result<(), DbError> {
    let facts =
        serde_json::to_string(facts).map_err(|error| DbError::Corrupt(error.to_string()))?;
    execute!(tx, SAVE_FACTS, facts)?;
    Ok(())
}
