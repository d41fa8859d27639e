//! Statuses and events of one kind of object, in the database.

use async_trait::async_trait;
use schema::clock::SharedClock;
use schema::condition::Reason;
use schema::error::DbError;
use schema::event;
use schema::ids::{Epoch, Kind, Uid};
use schema::object::{self, StatusRow};
use schema::recorder::Recorder;

use crate::runtime::{Dirty, DirtyKeys, ObjectStatus, PauseState, StatusStore, StoreError};

/// The status store of one kind of object.
pub struct DbStatusStore {
    db: Recorder,
    kind: Kind,
    reconciler: &'static str,
    clock: SharedClock,
}

impl std::fmt::Debug for DbStatusStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DbStatusStore")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl DbStatusStore {
    /// The store for `kind`.
    pub fn new(db: Recorder, kind: Kind, reconciler: &'static str, clock: SharedClock) -> Self {
        Self {
            db,
            kind,
            reconciler,
            clock,
        }
    }
}

fn failed(error: DbError) -> StoreError {
    StoreError(Box::new(error))
}

fn status(row: object::ObjectRow) -> (Uid, ObjectStatus) {
    let status = ObjectStatus {
        observed_generation: row.status.observed_generation,
        conditions: row.status.conditions,
        failures: row.status.failures,
        next_attempt_at: row.status.next_attempt_at,
        paused: row.paused,
    };
    (row.uid, status)
}

#[async_trait]
impl StatusStore<Uid> for DbStatusStore {
    async fn dirty(&self, since: Option<i64>) -> Result<DirtyKeys<Uid>, StoreError> {
        let mut connection = self.db.read().await.map_err(failed)?;
        let (dirty, through) = object::dirty_since(&mut connection, self.kind, since)
            .await
            .map_err(failed)?;
        let dirty = dirty.into_iter().map(|object| Dirty {
            key: object.uid,
            generation: object.generation,
            bulk: object.bulk,
        });
        Ok(DirtyKeys {
            dirty: dirty.collect(),
            through,
        })
    }

    async fn load_all(&self) -> Result<Vec<(Uid, ObjectStatus)>, StoreError> {
        let mut connection = self.db.read().await.map_err(failed)?;
        let rows = object::statuses(&mut connection, self.kind)
            .await
            .map_err(failed)?;
        Ok(rows.into_iter().map(status).collect())
    }

    async fn load(&self, key: &Uid) -> Result<ObjectStatus, StoreError> {
        let mut connection = self.db.read().await.map_err(failed)?;
        let row = object::get(&mut connection, self.kind, key)
            .await
            .map_err(failed)?;
        Ok(row.map(|row| status(row).1).unwrap_or_default())
    }

    async fn save(
        &self,
        key: &Uid,
        status: &ObjectStatus,
        epoch: Epoch,
    ) -> Result<bool, StoreError> {
        let row = StatusRow {
            observed_generation: status.observed_generation,
            conditions: status.conditions.clone(),
            failures: status.failures,
            next_attempt_at: status.next_attempt_at,
        };
        let mut tx = self.db.begin().await.map_err(failed)?;
        let saved = object::save_status(&mut tx, self.kind, key, &row, epoch)
            .await
            .map_err(failed)?;
        tx.commit().await.map_err(failed)?;
        Ok(saved)
    }

    async fn record_event(
        &self,
        key: &Uid,
        reason: Reason,
        action: &str,
        message: &str,
    ) -> Result<(), StoreError> {
        let mut tx = self.db.begin().await.map_err(failed)?;
        event::record(
            &mut tx,
            self.kind,
            key,
            reason,
            action,
            message,
            self.clock.now(),
        )
        .await
        .map_err(failed)?;
        tx.commit().await.map_err(failed)
    }

    async fn paused(&self) -> Result<PauseState<Uid>, StoreError> {
        let mut connection = self.db.read().await.map_err(failed)?;
        let reconcilers = object::paused_reconcilers(&mut connection)
            .await
            .map_err(failed)?;
        let keys = object::paused_uids(&mut connection, self.kind)
            .await
            .map_err(failed)?;
        Ok(PauseState {
            all: reconcilers
                .iter()
                .any(|name| name == "*" || name == self.reconciler),
            keys: keys.into_iter().collect(),
        })
    }
}
