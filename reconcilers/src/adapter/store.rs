//! What the adapter reconciler reads and writes in the database.

use async_trait::async_trait;
use schema::adapter::Adapter;
use schema::adapter::store::{self, Activation, AdapterFacts, AdapterState, Installed};
use schema::audit::About;
use schema::config::history::SavedBy;
use schema::error::DbError;
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::object;

use super::AdapterReconciler;
use crate::runtime::Reconciler;
use crate::stores::Database;

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

/// The adapter object, and packages to put into effect. Every write is one transaction, and may be repeated.
#[async_trait]
pub trait AdapterStore: Send + Sync + 'static {
    /// The object; `None` before the first start.
    async fn adapter_row(&self, uid: &Uid) -> Result<Option<AdapterRow>, DbError>;
    /// Saves what the source answered; nothing else changes.
    async fn save_adapter_facts(&self, facts: &AdapterFacts) -> Result<(), DbError>;
    /// Puts a package of the source into effect if it is newer and may come into effect, and saves what the source answered:
    /// what would change only where it waits.
    async fn install_adapter(
        &self,
        adapter: &Adapter,
        facts: &AdapterFacts,
        activation: Activation,
        now: Timestamp,
    ) -> Result<Installed, DbError>;
}

#[async_trait]
impl AdapterStore for Database {
    async fn adapter_row(&self, uid: &Uid) -> Result<Option<AdapterRow>, DbError> {
        let mut snapshot = self.db.snapshot().await?;
        let Some(object) = object::get(&mut snapshot, Kind::Adapter, uid).await? else {
            return Ok(None);
        };
        Ok(Some(AdapterRow {
            generation: object.generation,
            state: store::state(&mut snapshot).await?,
            facts: store::facts(&mut snapshot).await?,
        }))
    }

    async fn save_adapter_facts(&self, facts: &AdapterFacts) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        store::save_facts(&mut tx, facts).await?;
        tx.commit().await
    }

    async fn install_adapter(
        &self,
        adapter: &Adapter,
        facts: &AdapterFacts,
        activation: Activation,
        now: Timestamp,
    ) -> Result<Installed, DbError> {
        let mut tx = self.begin_as("adapter", "adapter_activate").await?;
        let by = SavedBy {
            actor: AdapterReconciler::NAME,
            at: now,
        };
        let installed = store::install(&mut tx, adapter, activation, by).await?;
        let waits = installed == Installed::Waits;
        let facts = AdapterFacts {
            update_changes: facts.update_changes.clone().filter(|_| waits),
            seen_generation: Some(store::generation(&mut tx).await?),
            ..facts.clone()
        };
        if installed != Installed::Newer {
            // Nothing desired has changed.
            drop(tx);
            self.save_adapter_facts(&facts).await?;
            return Ok(installed);
        }
        store::save_facts(&mut tx, &facts).await?;
        let cause = match activation {
            Activation::Requested => "as requested",
            Activation::Manual | Activation::Automatic => "by adapter.auto_activate",
        };
        let detail = format!("version {}, {cause}", adapter.index.adapter_version);
        let about = About::object(Kind::Adapter, store::OBJECT_NAME).detail(detail);
        tx.commit(about).await?;
        Ok(installed)
    }
}
