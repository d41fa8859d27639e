//! What the skill reconciler reads and writes in the database.

use std::collections::BTreeMap;

use async_trait::async_trait;
use schema::error::DbError;
use schema::ids::{SkillName, Uid};
use schema::skill::{self, SkillRow, TreeDigest};

use crate::stores::{Database, Rows};

/// A skill with the versions of it that are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillState {
    /// The skill.
    pub row: SkillRow,
    /// Digests of its versions, ordered.
    pub kept: Vec<TreeDigest>,
}

/// Skills. Every write is one transaction, and may be repeated.
#[async_trait]
pub trait SkillStore: Rows<SkillState> {
    /// The digests of the skills of one name that lie in workspaces, or are about to.
    async fn deployed(&self, name: &SkillName) -> Result<Vec<TreeDigest>, DbError>;
    /// Removes the last trace of a deleted skill.
    async fn purge_skill(&self, uid: &Uid) -> Result<(), DbError>;
}

#[async_trait]
impl Rows<SkillState> for Database {
    async fn rows(&self) -> Result<Vec<(Uid, SkillState)>, DbError> {
        let mut snapshot = self.db.snapshot().await?;
        let rows = skill::all(&mut snapshot).await?;
        let mut kept: BTreeMap<Uid, Vec<TreeDigest>> = BTreeMap::new();
        for (uid, digest) in skill::kept_digests(&mut snapshot).await? {
            kept.entry(uid).or_default().push(digest);
        }
        let rows = rows.into_iter().map(|row| {
            let kept = kept.remove(&row.uid).unwrap_or_default();
            (row.uid.clone(), SkillState { row, kept })
        });
        Ok(rows.collect())
    }

    async fn row(&self, uid: &Uid) -> Result<Option<SkillState>, DbError> {
        let mut snapshot = self.db.snapshot().await?;
        let Some(row) = skill::get(&mut snapshot, uid).await? else {
            return Ok(None);
        };
        let versions = skill::versions(&mut snapshot, uid).await?.into_iter();
        let mut kept: Vec<TreeDigest> = versions.map(|version| version.digest).collect();
        kept.sort();
        kept.dedup();
        Ok(Some(SkillState { row, kept }))
    }
}

#[async_trait]
impl SkillStore for Database {
    async fn deployed(&self, name: &SkillName) -> Result<Vec<TreeDigest>, DbError> {
        skill::deployed(&mut *self.db.read().await?, name).await
    }

    async fn purge_skill(&self, uid: &Uid) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        skill::purge(&mut tx, uid).await?;
        tx.commit().await
    }
}
