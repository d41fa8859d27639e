//! Adapter packages, in memory.

use std::sync::Arc;

use schema::adapter::Adapter;
use schema::adapter::store::{Activation, AdapterFacts, AdapterState, Installed, object_uid};
use schema::error::DbError;
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::rollout::RolloutKind;
use schema::rollout::held::Affected;

use super::MemoryStore;
use super::tables::Tables;
use reconcilers::adapter::AdapterRow;

/// Which package is in effect, and what is remembered of the source.
#[derive(Debug, Default)]
pub(super) struct Packages {
    /// None at first, as in an empty database.
    active: Option<Arc<Adapter>>,
    previous: Option<String>,
    /// Digest of the package that the source gave last and that was put into effect.
    installed: Option<String>,
    activated_at: Option<Timestamp>,
    refresh_token: String,
    pub(super) facts: AdapterFacts,
    /// How often the active one changed; its generation is one more.
    changes: i64,
}

impl Tables {
    pub(super) fn adapter_generation(&self) -> i64 {
        self.packages.changes + 1
    }

    pub(super) fn active_adapter(&self) -> Result<(i64, Arc<Adapter>), DbError> {
        let adapter = self.packages.active.clone();
        let adapter = adapter.ok_or(DbError::NotFound("active adapter"))?;
        Ok((self.adapter_generation(), adapter))
    }

    pub(super) fn adapter_row(&self) -> Option<AdapterRow> {
        let object = self.object(Kind::Adapter, &object_uid())?;
        let packages = &self.packages;
        Some(AdapterRow {
            generation: object.generation,
            state: AdapterState {
                generation: self.adapter_generation(),
                active: packages.active.as_ref().map(|active| active.digest.clone()),
                previous: packages.previous.clone(),
                activated_at: packages.activated_at,
                refresh_token: packages.refresh_token.clone(),
            },
            facts: packages.facts.clone(),
        })
    }

    /// Puts a package into effect and bumps what is made by it.
    fn switch(&mut self, adapter: Arc<Adapter>, now: Option<Timestamp>) -> Vec<(Uid, Generation)> {
        let packages = &mut self.packages;
        let before = packages.active.replace(adapter);
        packages.previous = before.map(|before| before.digest.clone());
        packages.activated_at = now;
        packages.changes += 1;
        let changed = self.change_in_steps(
            RolloutKind::Adapter,
            Affected::ALL,
            &[Kind::Container, Kind::AgentConfig],
            now.unwrap_or_default(),
        );
        self.bump_all(Kind::User);
        // Before the first start there is no such object yet.
        let _ = self.bump(Kind::Adapter, &object_uid());
        changed
    }

    pub(super) fn install(
        &mut self,
        adapter: &Adapter,
        facts: &AdapterFacts,
        activation: Activation,
        now: Timestamp,
    ) -> (Installed, Vec<(Uid, Generation)>) {
        let packages = &self.packages;
        let version = &adapter.index.adapter_version;
        let active = packages.active.as_ref();
        let left = [&packages.installed, &packages.previous]
            .into_iter()
            .any(|digest| digest.as_ref() == Some(&adapter.digest));
        let mut changed = Vec::new();
        let installed = if active.is_some_and(|active| *version <= active.index.adapter_version) {
            Installed::NotNewer
        } else if left && activation != Activation::Requested {
            Installed::LeftBefore
        } else if activation == Activation::Manual {
            Installed::Waits
        } else {
            changed = self.switch(Arc::new(adapter.clone()), Some(now));
            self.packages.installed = Some(adapter.digest.clone());
            Installed::Newer
        };
        let waits = installed == Installed::Waits;
        self.packages.facts = AdapterFacts {
            update_changes: facts.update_changes.clone().filter(|_| waits),
            seen_generation: Some(self.adapter_generation()),
            ..facts.clone()
        };
        (installed, changed)
    }
}

/// What the API and the start of the service write.
impl MemoryStore {
    /// Puts a package into effect.
    pub fn activate(&self, adapter: impl Into<Arc<Adapter>>) {
        self.tables().switch(adapter.into(), None);
        self.ring();
    }

    /// The package in effect.
    pub fn peek_adapter(&self) -> Option<Arc<Adapter>> {
        self.tables().packages.active.clone()
    }

    /// Asks the source for a newer package.
    ///
    /// # Errors
    /// Without an adapter object.
    pub fn refresh_adapter(&self, token: &str) -> Result<Generation, DbError> {
        let generation = {
            let mut tables = self.tables();
            token.clone_into(&mut tables.packages.refresh_token);
            tables.bump(Kind::Adapter, &object_uid())?
        };
        self.ring();
        Ok(generation)
    }
}
