//! What the adapter reconciler reads and writes.

use std::sync::Arc;

use schema::adapter::Adapter;
use schema::adapter::store::{self, AdapterFacts, AdapterState, Installed};
use schema::clock::SharedClock;
use schema::db::Db;
use schema::error::DbError;
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::object;

use super::{DbStatusStore, DirtyObserver};
use crate::runtime::StatusStore;

/// The one adapter object, of one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct AdapterRow {
    /// Generation of the object.
    pub generation: Generation,
    /// What is in effect, and what was asked for.
    pub state: AdapterState,
    /// What is remembered of the source.
    pub facts: AdapterFacts,
}

/// The adapter tables of the database.
#[derive(Debug, Clone)]
pub struct AdapterRows(pub Db);

impl AdapterRows {
    /// The object; `None` before the first start.
    pub(crate) async fn read(&self, uid: &Uid) -> Result<Option<AdapterRow>, DbError> {
        let mut snapshot = self.0.snapshot().await?;
        let Some(object) = object::get(&mut snapshot, Kind::Adapter, uid).await? else {
            return Ok(None);
        };
        Ok(Some(AdapterRow {
            generation: object.generation,
            state: store::state(&mut snapshot).await?,
            facts: store::facts(&mut snapshot).await?,
        }))
    }

    /// Remembers what the source said; nothing else changes.
    pub(crate) async fn remember(&self, facts: &AdapterFacts) -> Result<(), DbError> {
        let mut tx = self.0.begin().await?;
        store::save_facts(&mut tx, facts).await?;
        tx.commit().await
    }

    /// Puts a package of the source into effect if it is newer, and remembers what the source said, in one
    /// transaction.
    pub(crate) async fn install(
        &self,
        adapter: &Adapter,
        facts: &AdapterFacts,
        asked_for: bool,
        now: Timestamp,
    ) -> Result<Installed, DbError> {
        let mut tx = self.0.begin().await?;
        let installed = store::install(&mut tx, adapter, asked_for, now).await?;
        let facts = AdapterFacts {
            seen_generation: Some(store::generation(&mut tx).await?),
            ..facts.clone()
        };
        store::save_facts(&mut tx, &facts).await?;
        tx.commit().await?;
        Ok(installed)
    }

    /// The status store of the adapter object.
    pub(crate) fn statuses(
        &self,
        reconciler: &'static str,
        clock: SharedClock,
    ) -> Arc<dyn StatusStore<Uid>> {
        struct Nobody;
        impl DirtyObserver for Nobody {
            fn dirty(&self, _uid: &Uid) {}
        }
        let observer = Arc::new(Nobody);
        Arc::new(DbStatusStore::new(
            self.0.clone(),
            Kind::Adapter,
            reconciler,
            clock,
            observer,
        ))
    }
}
