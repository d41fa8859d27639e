//! Statuses of one kind of object, in memory.

use async_trait::async_trait;
use schema::condition::Reason;
use schema::ids::{Epoch, Kind, Uid};
use schema::object::StatusRow;

use super::tables::Tables;
use super::{MemoryStore, away, delayed};
use crate::Change;
use reconcilers::runtime::{Dirty, DirtyKeys, ObjectStatus, PauseState, StatusStore, StoreError};

pub(super) struct MemoryStatuses {
    pub(super) store: MemoryStore,
    pub(super) kind: Kind,
    pub(super) reconciler: &'static str,
}

fn status(paused: bool, row: Option<&StatusRow>) -> ObjectStatus {
    let row = row.cloned().unwrap_or_default();
    ObjectStatus {
        observed_generation: row.observed_generation,
        conditions: row.conditions,
        failures: row.failures,
        next_attempt_at: row.next_attempt_at,
        paused,
    }
}

impl MemoryStatuses {
    async fn call<T>(&self, work: impl FnOnce(&mut Tables) -> T + Send) -> Result<T, StoreError> {
        let work = || Ok(work(&mut self.store.tables()));
        delayed(self.store.pace(), work, || StoreError(Box::new(away()))).await
    }

    fn of_kind(&self, tables: &Tables) -> Vec<(Uid, ObjectStatus)> {
        let objects = tables.objects.iter();
        objects
            .filter(|((kind, _), _)| *kind == self.kind)
            .map(|(key, _)| {
                let row = tables.statuses.get(key).map(|(row, _)| row);
                (key.1.clone(), status(tables.paused.contains(key), row))
            })
            .collect()
    }
}

#[async_trait]
impl StatusStore<Uid> for MemoryStatuses {
    async fn dirty(&self, since: Option<i64>) -> Result<DirtyKeys<Uid>, StoreError> {
        self.call(|tables| {
            let changes = tables.changes_of(self.kind, since.unwrap_or_default());
            let dirty = changes.filter_map(|uid| {
                let key = (self.kind, uid.clone());
                let object = tables.objects.get(&key)?;
                let status = tables.statuses.get(&key);
                let observed = status.map(|(row, _)| row.observed_generation);
                (object.generation > observed.unwrap_or_default()).then(|| Dirty {
                    key: uid.clone(),
                    generation: object.generation,
                    bulk: object.bulk_generation == object.generation,
                })
            });
            DirtyKeys {
                dirty: dirty.collect(),
                through: tables.version,
            }
        })
        .await
    }

    async fn load_all(&self) -> Result<Vec<(Uid, ObjectStatus)>, StoreError> {
        self.call(|tables| self.of_kind(tables)).await
    }

    async fn load(&self, key: &Uid) -> Result<ObjectStatus, StoreError> {
        self.call(|tables| {
            let key = (self.kind, key.clone());
            if !tables.objects.contains_key(&key) {
                return ObjectStatus::default();
            }
            let row = tables.statuses.get(&key).map(|(row, _)| row);
            status(tables.paused.contains(&key), row)
        })
        .await
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
        self.call(|tables| {
            let saved = tables.save_status(self.kind, key, &row, epoch);
            let generation = tables.object(self.kind, key).map(|o| o.generation);
            self.store.tell(&Change::Status {
                kind: self.kind,
                uid: key.clone(),
                status: row,
                epoch,
                generation,
                saved,
            });
            saved
        })
        .await
    }

    /// Told, and not kept: nothing that reconciles reads events.
    async fn record_event(
        &self,
        key: &Uid,
        _reason: Reason,
        action: &str,
        message: &str,
    ) -> Result<(), StoreError> {
        self.call(|_| {
            self.store.tell(&Change::Event {
                kind: self.kind,
                uid: key.clone(),
                action: action.to_owned(),
                message: message.to_owned(),
            });
        })
        .await
    }

    async fn paused(&self) -> Result<PauseState<Uid>, StoreError> {
        self.call(|tables| PauseState {
            all: tables
                .paused_reconcilers
                .iter()
                .any(|name| name == "*" || name == self.reconciler),
            keys: tables.paused_of(self.kind),
        })
        .await
    }
}
