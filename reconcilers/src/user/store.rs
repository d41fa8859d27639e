//! What the user reconciler reads and writes in the database.

use async_trait::async_trait;
use schema::adapter::Applied;
use schema::agent_config;
use schema::error::DbError;
use schema::ids::{Kind, Uid, UserName};
use schema::object;
use schema::usage;
use schema::user::{self, UserRow};

use super::UserReconciler;
use crate::runtime::Reconciler;
use crate::stores::{Database, Rows};

/// Ordinary users. Every write is one transaction, and may be repeated.
#[async_trait]
pub trait UserStore: Rows<UserRow> {
    /// Whether the user's container and its rows are gone.
    async fn is_container_gone(&self, uid: &Uid) -> Result<bool, DbError>;
    /// What the service has set in the files of the user's agent.
    async fn applied(&self, uid: &Uid) -> Result<Option<Applied>, DbError>;
    /// Bytes that the user's directory takes, as last measured.
    async fn used_bytes(&self, uid: &Uid) -> Result<Option<u64>, DbError>;
    /// Notes that there is something to clean up before the user's rows may go.
    async fn add_user_finalizer(&self, uid: &Uid) -> Result<(), DbError>;
    /// The directory of a renamed user has no longer this name.
    async fn end_rename(&self, uid: &Uid, previous: &UserName) -> Result<(), DbError>;
    /// Cleaning up is done: removes the rows if the user is deleted.
    async fn purge_user(&self, uid: &Uid) -> Result<(), DbError>;
}

#[async_trait]
impl Rows<UserRow> for Database {
    async fn rows(&self) -> Result<Vec<(Uid, UserRow)>, DbError> {
        let rows = user::rows(&mut *self.db.read().await?).await?;
        Ok(rows.into_iter().map(|row| (row.uid.clone(), row)).collect())
    }

    async fn row(&self, uid: &Uid) -> Result<Option<UserRow>, DbError> {
        user::row(&mut *self.db.read().await?, uid).await
    }
}

#[async_trait]
impl UserStore for Database {
    async fn is_container_gone(&self, uid: &Uid) -> Result<bool, DbError> {
        let mut connection = self.db.read().await?;
        let container = object::get(&mut connection, Kind::Container, uid).await?;
        Ok(container.is_none())
    }

    async fn applied(&self, uid: &Uid) -> Result<Option<Applied>, DbError> {
        agent_config::applied(&mut *self.db.read().await?, uid).await
    }

    async fn used_bytes(&self, uid: &Uid) -> Result<Option<u64>, DbError> {
        let usage = usage::get(&mut *self.db.read().await?, uid).await?;
        Ok(usage.map(|usage| usage.used_bytes))
    }

    async fn add_user_finalizer(&self, uid: &Uid) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        object::add_finalizer(&mut tx, Kind::User, uid, UserReconciler::NAME).await?;
        tx.commit().await
    }

    async fn end_rename(&self, uid: &Uid, previous: &UserName) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        user::end_rename(&mut tx, uid, previous).await?;
        tx.commit().await
    }

    async fn purge_user(&self, uid: &Uid) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        object::remove_finalizer(&mut tx, Kind::User, uid, UserReconciler::NAME).await?;
        user::purge(&mut tx, uid).await?;
        tx.commit().await
    }
}
