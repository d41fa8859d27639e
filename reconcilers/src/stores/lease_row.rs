//! The leader's lease as a row on PostgreSQL.

use std::time::Duration;

use async_trait::async_trait;
use schema::db::Db;
use schema::ids::{Epoch, Timestamp};
use schema::lease;

use crate::runtime::StoreError;
use crate::runtime::leader::LeaseStore;

/// The lease row. The database server's clock decides, so `now` is not used.
#[derive(Debug, Clone)]
pub struct LeaseRow(pub Db);

fn failed(error: schema::error::DbError) -> StoreError {
    StoreError(Box::new(error))
}

#[async_trait]
impl LeaseStore for LeaseRow {
    async fn try_acquire(
        &self,
        holder: &str,
        ttl: Duration,
        _now: Timestamp,
    ) -> Result<Option<Epoch>, StoreError> {
        let mut tx = self.0.begin().await.map_err(failed)?;
        let epoch = lease::try_acquire(&mut tx, holder, ttl)
            .await
            .map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(epoch)
    }

    async fn renew(
        &self,
        holder: &str,
        epoch: Epoch,
        ttl: Duration,
        _now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut tx = self.0.begin().await.map_err(failed)?;
        let held = lease::renew(&mut tx, holder, epoch, ttl)
            .await
            .map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(held)
    }

    async fn release(&self, holder: &str, epoch: Epoch) -> Result<(), StoreError> {
        let mut tx = self.0.begin().await.map_err(failed)?;
        lease::release(&mut tx, holder, epoch)
            .await
            .map_err(failed)?;
        tx.commit().await.map_err(failed)
    }
}
