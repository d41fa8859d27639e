//! The archive object, in memory.

use async_trait::async_trait;
use reconcilers::archive::ArchiveStore;
use schema::archive::{ArchiveFacts, object_uid};
use schema::error::DbError;
use schema::ids::{Generation, Kind};

use super::MemoryStore;

#[async_trait]
impl ArchiveStore for MemoryStore {
    async fn archive_row(&self) -> Result<Option<(Generation, ArchiveFacts)>, DbError> {
        self.transaction(|tables| {
            let object = tables.object(Kind::Archive, &object_uid());
            Ok(object.map(|object| (object.generation, tables.archive.clone())))
        })
        .await
    }

    async fn save_archive_facts(&self, facts: &ArchiveFacts) -> Result<(), DbError> {
        self.transaction(|tables| {
            tables.archive = facts.clone();
            Ok(())
        })
        .await
    }

    /// There is no audit trail in memory; only the call can fail.
    async fn record_removal(&self, _directory: &str) -> Result<(), DbError> {
        self.transaction(|_| Ok(())).await
    }
}
