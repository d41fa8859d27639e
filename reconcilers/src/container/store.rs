//! What the container reconciler reads and writes in the database.

use async_trait::async_trait;
use schema::adapter::Applied;
use schema::agent_config;
use schema::container::{self, ContainerEnd, ContainerFacts, ContainerRow};
use schema::error::DbError;
use schema::ids::{Kind, Uid, UserName};
use schema::object;
use schema::user;

use super::ContainerReconciler;
use crate::runtime::Reconciler;
use crate::stores::{Database, Rows};

/// Desired containers, and what is remembered of them. Every write is one transaction, and may be repeated.
#[async_trait]
pub trait ContainerStore: Rows<ContainerRow> {
    /// Notes that there is something to clean up before the container's rows may go.
    async fn add_container_finalizer(&self, uid: &Uid) -> Result<(), DbError>;
    /// Cleaning up is done: removes the rows if the container is deleted.
    async fn purge_container(&self, uid: &Uid) -> Result<(), DbError>;
    /// No container has this name of the user's any more.
    async fn release_previous_name(&self, uid: &Uid, name: &UserName) -> Result<(), DbError>;
    /// What the service has set in the files of the user's agent.
    async fn settings_applied(&self, uid: &Uid) -> Result<Option<Applied>, DbError>;
    /// Saves what was observed, and an end that was not asked for, in one transaction; nothing happens when the container is gone.
    async fn note_container_end(
        &self,
        uid: &Uid,
        facts: &ContainerFacts,
        end: &ContainerEnd,
    ) -> Result<(), DbError>;
    /// Saves what was observed; nothing happens when the container is gone.
    async fn save_container_facts(&self, uid: &Uid, facts: &ContainerFacts) -> Result<(), DbError>;
}

#[async_trait]
impl Rows<ContainerRow> for Database {
    async fn rows(&self) -> Result<Vec<(Uid, ContainerRow)>, DbError> {
        let rows = container::all(&mut *self.db.read().await?).await?;
        Ok(rows.into_iter().map(|row| (row.uid.clone(), row)).collect())
    }

    async fn row(&self, uid: &Uid) -> Result<Option<ContainerRow>, DbError> {
        container::get(&mut *self.db.read().await?, uid).await
    }
}

#[async_trait]
impl ContainerStore for Database {
    async fn add_container_finalizer(&self, uid: &Uid) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        object::add_finalizer(&mut tx, Kind::Container, uid, ContainerReconciler::NAME).await?;
        tx.commit().await
    }

    async fn purge_container(&self, uid: &Uid) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        object::remove_finalizer(&mut tx, Kind::Container, uid, ContainerReconciler::NAME).await?;
        container::purge(&mut tx, uid).await?;
        tx.commit().await
    }

    async fn release_previous_name(&self, uid: &Uid, name: &UserName) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        user::release_previous_name(&mut tx, uid, name).await?;
        tx.commit().await
    }

    async fn settings_applied(&self, uid: &Uid) -> Result<Option<Applied>, DbError> {
        agent_config::applied(&mut *self.db.read().await?, uid).await
    }

    async fn note_container_end(
        &self,
        uid: &Uid,
        facts: &ContainerFacts,
        end: &ContainerEnd,
    ) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        container::save_facts(&mut tx, uid, facts).await?;
        container::note_end(&mut tx, uid, end).await?;
        tx.commit().await
    }

    async fn save_container_facts(&self, uid: &Uid, facts: &ContainerFacts) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        container::save_facts(&mut tx, uid, facts).await?;
        tx.commit().await
    }
}
