//! What the usage reconciler reads and writes in the database.

use async_trait::async_trait;
use schema::error::DbError;
use schema::ids::{Generation, Kind, Timestamp};
use schema::object;
use schema::usage::{self, Attempt, Due, Failing, Judgement, Quota, object_uid};

use crate::stores::Database;

/// Statements on the use of users' directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    /// Generation of the one object.
    pub generation: Generation,
    /// Directories that are to be measured, the longest due first.
    pub due: Vec<Due>,
    /// Those that could not be measured.
    pub failing: Option<Failing>,
    /// Directories that the quota judges otherwise than was saved.
    pub judgements: Vec<Judgement>,
}

/// The one object, and what users' directories take. Every write is one transaction, and may be repeated.
#[async_trait]
pub trait UsageStore: Send + Sync + 'static {
    /// What there is to do, with at most `most` workspaces that are due; `None` before the first start.
    async fn usage_row(
        &self,
        now: Timestamp,
        most: usize,
        quota: &Quota,
    ) -> Result<Option<UsageRow>, DbError>;
    /// Remembers what came of measurements.
    async fn save_usage(&self, attempts: &[Attempt], now: Timestamp) -> Result<(), DbError>;
    /// Saves judgements, with their events; what follows from them is observed again.
    async fn save_judgements(
        &self,
        judgements: &[Judgement],
        now: Timestamp,
    ) -> Result<(), DbError>;
}

#[async_trait]
impl UsageStore for Database {
    async fn usage_row(
        &self,
        now: Timestamp,
        most: usize,
        quota: &Quota,
    ) -> Result<Option<UsageRow>, DbError> {
        let mut snapshot = self.db.snapshot().await?;
        let object = object::get(&mut snapshot, Kind::Usage, &object_uid()).await?;
        let Some(object) = object else {
            return Ok(None);
        };
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let held = usage::held(&mut snapshot, quota).await?;
        Ok(Some(UsageRow {
            generation: object.generation,
            due: usage::due(&mut snapshot, now, most, quota).await?,
            failing: usage::failing(&mut snapshot).await?,
            judgements: held.into_iter().filter_map(|it| quota.judge(it)).collect(),
        }))
    }

    async fn save_usage(&self, attempts: &[Attempt], now: Timestamp) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        usage::save(&mut tx, attempts, now).await?;
        tx.commit().await
    }

    async fn save_judgements(
        &self,
        judgements: &[Judgement],
        now: Timestamp,
    ) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        usage::save_judgements(&mut tx, judgements, now).await?;
        tx.commit().await
    }
}
