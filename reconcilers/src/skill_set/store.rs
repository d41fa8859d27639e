//! What the skill-set reconciler reads and writes in the database.

use async_trait::async_trait;
use schema::error::DbError;
use schema::ids::Uid;
use schema::skill_set::{self, Deployment, DesiredSkill, SkillSetRow};

use crate::stores::{Database, Rows};

/// What users get, and what was put into their workspaces. Every write is one transaction, and may be repeated.
#[async_trait]
pub trait SkillSetStore: Rows<SkillSetRow> {
    /// What a user gets, and what was put into the user's workspace, both ordered by name, of one moment.
    async fn skills(&self, uid: &Uid) -> Result<(Vec<DesiredSkill>, Vec<Deployment>), DbError>;
    /// Remembers these, and forgets those that hold nothing; nothing happens when the user is gone.
    async fn save_deployments(&self, uid: &Uid, deployments: &[Deployment]) -> Result<(), DbError>;
}

#[async_trait]
impl Rows<SkillSetRow> for Database {
    async fn rows(&self) -> Result<Vec<(Uid, SkillSetRow)>, DbError> {
        let rows = skill_set::all(&mut *self.db.read().await?).await?;
        Ok(rows.into_iter().map(|row| (row.uid.clone(), row)).collect())
    }

    async fn row(&self, uid: &Uid) -> Result<Option<SkillSetRow>, DbError> {
        skill_set::get(&mut *self.db.read().await?, uid).await
    }
}

#[async_trait]
impl SkillSetStore for Database {
    async fn skills(&self, uid: &Uid) -> Result<(Vec<DesiredSkill>, Vec<Deployment>), DbError> {
        let mut snapshot = self.db.snapshot().await?;
        let desired = skill_set::desired(&mut snapshot, uid).await?;
        let deployments = skill_set::deployments(&mut snapshot, uid).await?;
        Ok((desired, deployments))
    }

    async fn save_deployments(&self, uid: &Uid, deployments: &[Deployment]) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        skill_set::save_deployments(&mut tx, uid, deployments).await?;
        tx.commit().await
    }
}
