//! Statuses of one kind of object, in memory.

use std::sync::Arc;

use async_trait::async_trait;
use schema::condition::Reason;
use schema::ids::{Epoch, Kind, Uid};
use schema::object::StatusRow;

use super::tables::{Object, Tables};
use super::{Change, MemoryStore, away, delayed};
use crate::runtime::{Dirty, ObjectStatus, PauseState, StatusStore, StoreError};
use crate::stores::DirtyObserver;

pub(super) struct MemoryStatuses {
    pub(super) store: MemoryStore,
    pub(super) kind: Kind,
    pub(super) reconciler: &'static str,
    pub(super) observer: Arc<dyn DirtyObserver>,
}

fn status(object: &Object, row: Option<&StatusRow>) -> ObjectStatus {
    let row = row.cloned().unwrap_or_default();
    ObjectStatus {
        observed_generation: row.observed_generation,
        conditions: row.conditions,
        failures: row.failures,
        next_attempt_at: row.next_attempt_at,
        paused: object.paused,
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
            .map(|(key, object)| {
                let row = tables.statuses.get(key).map(|(row, _)| row);
                (key.1.clone(), status(object, row))
            })
            .collect()
    }
}

#[async_trait]
impl StatusStore<Uid> for MemoryStatuses {
    async fn dirty_keys(&self) -> Result<Vec<Dirty<Uid>>, StoreError> {
        let dirty = self
            .call(|tables| {
                let all = self.of_kind(tables).into_iter();
                all.filter_map(|(uid, status)| {
                    let object = tables.object(self.kind, &uid)?;
                    (object.generation > status.observed_generation).then_some(Dirty {
                        key: uid,
                        generation: object.generation,
                        bulk: object.bulk_generation == object.generation,
                    })
                })
                .collect::<Vec<_>>()
            })
            .await?;
        for object in &dirty {
            self.observer.dirty(&object.key);
        }
        Ok(dirty)
    }

    async fn load_all(&self) -> Result<Vec<(Uid, ObjectStatus)>, StoreError> {
        self.call(|tables| self.of_kind(tables)).await
    }

    async fn load(&self, key: &Uid) -> Result<ObjectStatus, StoreError> {
        self.call(|tables| {
            let row = tables.statuses.get(&(self.kind, key.clone()));
            tables
                .object(self.kind, key)
                .map(|object| status(object, row.map(|(row, _)| row)))
                .unwrap_or_default()
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
            keys: tables
                .objects
                .iter()
                .filter(|((kind, _), object)| *kind == self.kind && object.paused)
                .map(|((_, uid), _)| uid.clone())
                .collect(),
        })
        .await
    }
}
