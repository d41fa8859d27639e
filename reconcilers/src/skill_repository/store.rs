//! What the skill-repository reconciler reads and writes in the database.

use async_trait::async_trait;
use schema::error::DbError;
use schema::ids::Uid;
use schema::skill_repository::{self, Credential, RepositoryFacts, RepositoryRow};

use crate::stores::{Database, Rows};

/// Repositories. Every write is one transaction, and may be repeated.
#[async_trait]
pub trait RepositoryStore: Rows<RepositoryRow> {
    /// A repository's credentials, opened.
    async fn credentials(&self, uid: &Uid) -> Result<Vec<Credential>, DbError>;
    /// Saves what was observed; nothing happens when the repository is gone.
    async fn save_repository_facts(
        &self,
        uid: &Uid,
        facts: &RepositoryFacts,
    ) -> Result<(), DbError>;
    /// Removes the last trace of a deleted repository.
    async fn purge_repository(&self, uid: &Uid) -> Result<(), DbError>;
}

#[async_trait]
impl Rows<RepositoryRow> for Database {
    async fn rows(&self) -> Result<Vec<(Uid, RepositoryRow)>, DbError> {
        let rows = skill_repository::all(&mut *self.db.read().await?).await?;
        Ok(rows.into_iter().map(|row| (row.uid.clone(), row)).collect())
    }

    async fn row(&self, uid: &Uid) -> Result<Option<RepositoryRow>, DbError> {
        skill_repository::get(&mut *self.db.read().await?, uid).await
    }
}

#[async_trait]
impl RepositoryStore for Database {
    async fn credentials(&self, uid: &Uid) -> Result<Vec<Credential>, DbError> {
        let mut connection = self.db.read().await?;
        skill_repository::credentials(&mut connection, &self.master_key, uid).await
    }

    async fn save_repository_facts(
        &self,
        uid: &Uid,
        facts: &RepositoryFacts,
    ) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        skill_repository::save_facts(&mut tx, uid, facts).await?;
        tx.commit().await
    }

    async fn purge_repository(&self, uid: &Uid) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        skill_repository::purge(&mut tx, uid).await?;
        tx.commit().await
    }
}
