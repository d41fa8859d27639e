//! What the archive reconciler reads and writes in the database.

use async_trait::async_trait;
use schema::archive::{self, ArchiveFacts, object_uid};
use schema::audit::About;
use schema::error::DbError;
use schema::ids::{Generation, Kind};
use schema::object;

use crate::stores::Database;

/// The one archive object. Every write is one transaction, and may be repeated.
#[async_trait]
pub trait ArchiveStore: Send + Sync + 'static {
    /// Its generation, and what was last seen; `None` before the first start.
    async fn archive_row(&self) -> Result<Option<(Generation, ArchiveFacts)>, DbError>;
    /// Remembers what was seen.
    async fn save_archive_facts(&self, facts: &ArchiveFacts) -> Result<(), DbError>;
    /// Records in the audit trail that the removal of an archive begins.
    async fn record_removal(&self, directory: &str) -> Result<(), DbError>;
}

#[async_trait]
impl ArchiveStore for Database {
    async fn archive_row(&self) -> Result<Option<(Generation, ArchiveFacts)>, DbError> {
        let mut snapshot = self.db.snapshot().await?;
        let object = object::get(&mut snapshot, Kind::Archive, &object_uid()).await?;
        let facts = archive::facts(&mut snapshot).await?;
        Ok(object.map(|object| (object.generation, facts)))
    }

    async fn save_archive_facts(&self, facts: &ArchiveFacts) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        archive::save_facts(&mut tx, facts).await?;
        tx.commit().await
    }

    async fn record_removal(&self, directory: &str) -> Result<(), DbError> {
        let tx = self.begin_as("archive", "archive_remove").await?;
        tx.commit(About::object(Kind::Archive, directory)).await
    }
}
