//! The adapter reconciler: when a source of packages is configured, a newer package that it has is reported
//! (`UpdateAvailable`, with what would change), and comes into effect when somebody asks for it, or with
//! `adapter.auto_activate`.
//!
//! Owns: `adapter_facts`; puts newer packages into effect. Key: the one adapter object. Uploads and going back are
//! writes of the API and need nothing done here.
//!
//! Invariants: whatever the source gives, a package that is not valid, or not newer, never takes the place of the
//! active one; one that somebody left for another comes back only when somebody asks for it.

mod plan;
mod store;

use std::sync::Arc;
use std::time::Duration;

use schema::adapter::store::{AdapterFacts, Installed, object_uid};
use schema::condition::Reason;
use schema::config::keys;
use schema::error::DbError;
use schema::ids::{Generation, Kind, Timestamp, Uid};
use tracing::info;

pub use plan::{Action, Snapshot};
pub use store::{AdapterRow, AdapterStore};

use crate::drivers::adapter_source::{Answer, SourceError};
use crate::runtime::{Classify, Controllers, ErrorClass, Plan, Purpose, Reconciler};
use crate::shared::Shared;

/// Starts the reconciler of the adapter.
pub fn register(
    store: Arc<dyn AdapterStore>,
    shared: &Arc<Shared>,
    controllers: &mut Controllers<'_>,
) {
    let reconciler = AdapterReconciler::new(store, Arc::clone(shared));
    controllers.add(reconciler);
}

/// Keeps the active adapter up to date.
pub struct AdapterReconciler {
    store: Arc<dyn AdapterStore>,
    shared: Arc<Shared>,
}

impl std::fmt::Debug for AdapterReconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdapterReconciler").finish_non_exhaustive()
    }
}

/// What the search for a newer adapter can fail with.
#[derive(Debug, thiserror::Error)]
pub enum AdapterError {
    /// The database failed.
    #[error("desired state cannot be read or written")]
    Db(#[from] DbError),
    /// The source failed.
    #[error("{0}")]
    Source(#[source] SourceError),
}

impl Classify for AdapterError {
    fn classify(&self) -> (ErrorClass, Reason) {
        match self {
            Self::Db(error) => error.classify(),
            Self::Source(SourceError::Read(_)) => (ErrorClass::Transient, Reason::Retrying),
            Self::Source(_) => (ErrorClass::Transient, Reason::AdapterSourceFailed),
        }
    }
}

impl AdapterReconciler {
    /// A reconciler that has read nothing yet.
    pub fn new(store: Arc<dyn AdapterStore>, shared: Arc<Shared>) -> Self {
        Self { store, shared }
    }

    async fn fetch(&self, fetch: &plan::Fetch) -> Result<(), AdapterError> {
        let packages = &self.shared.packages;
        let answer = packages.fetch(&fetch.url, &fetch.hosts, &fetch.known).await;
        let answer = answer.map_err(AdapterError::Source)?;
        let now = self.shared.clock.now();
        let mut facts = AdapterFacts {
            source_url: fetch.url.clone(),
            checked_at: Some(now),
            refresh_token: fetch.token.clone(),
            ..fetch.before.clone()
        };
        let Answer::Package {
            package,
            validators,
        } = answer
        else {
            return Ok(self.store.save_adapter_facts(&facts).await?);
        };
        facts.etag = validators.etag;
        facts.last_modified = validators.last_modified;
        facts.seen_generation = Some(fetch.active_generation);
        let adapter = match package {
            Ok(adapter) => adapter,
            Err(invalid) => {
                facts.offered = None;
                facts.update_changes = None;
                facts.invalid = Some(invalid.brief());
                return Ok(self.store.save_adapter_facts(&facts).await?);
            }
        };
        let version = adapter.index.adapter_version.to_string();
        facts.offered = Some(version.clone());
        facts.invalid = None;
        let active = self.shared.adapters.at(fetch.active_generation).await?;
        facts.update_changes = Some(active.changes(&adapter));
        let installed = self
            .store
            .install_adapter(&adapter, &facts, fetch.activation, now)
            .await?;
        match installed {
            Installed::Newer => info!(
                version,
                digest = adapter.digest,
                "a newer adapter is in effect"
            ),
            Installed::Waits => info!(version, "a newer adapter waits for its activation"),
            Installed::NotNewer | Installed::LeftBefore => {
                info!(
                    version,
                    ?installed,
                    "the adapter of the source is not installed"
                );
            }
        }
        Ok(())
    }
}

impl Reconciler for AdapterReconciler {
    const NAME: &'static str = "adapter";
    const KIND: Kind = Kind::Adapter;
    const RESYNC: Duration = Duration::from_secs(60);
    type Key = Uid;
    type Snapshot = Snapshot;
    type Action = Action;
    type Error = AdapterError;

    async fn keys(&self) -> Result<Vec<Uid>, AdapterError> {
        Ok(vec![object_uid()])
    }

    async fn observe(
        &self,
        key: &Uid,
        _purpose: Purpose,
    ) -> Result<Option<Snapshot>, AdapterError> {
        let Some(row) = self.store.adapter_row(key).await? else {
            return Ok(None);
        };
        let config = self.shared.config.newest().await?;
        let active = self.shared.adapters.at(row.state.generation).await?;
        Ok(Some(Snapshot {
            row,
            url: config.get(&keys::adapter::SOURCE_URL).unwrap_or_default(),
            auto_activate: config.get(&keys::adapter::AUTO_ACTIVATE),
            hosts: config.get(&keys::adapter::REDIRECT_HOSTS),
            interval: config.get(&keys::adapter::REFRESH_INTERVAL),
            active: active.index.adapter_version.to_string(),
        }))
    }

    /// Nothing is remembered.
    fn leads(&self) {}

    fn generation(snapshot: &Snapshot) -> Generation {
        snapshot.row.generation
    }

    fn name(_: &Snapshot) -> Option<&str> {
        Self::KIND.descriptor().single
    }

    fn plan(snapshot: &Snapshot, now: Timestamp) -> Plan<Action> {
        plan::plan(snapshot, now)
    }

    fn describe(action: &Action) -> String {
        // The address may hold a secret.
        match action {
            Action::Fetch(_) => "ask the source for a newer adapter package".to_owned(),
        }
    }

    async fn apply(&self, _key: &Uid, action: &Action) -> Result<(), AdapterError> {
        match action {
            Action::Fetch(fetch) => self.fetch(fetch).await,
        }
    }
}
