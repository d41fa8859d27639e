//! The container reconciler: every ordinary user has exactly one agent container, or none when it is
//! stopped.
//!
//! Owns: containers that carry our owner label and a user's uid, and the `container_facts` rows.
//! Who else writes: nobody; people with their hands on the engine are repaired.
//!
//! Invariants:
//! - at most one container of a user runs at any moment, replacement included;
//! - a container without our owner label and the user's uid is never touched, whatever its name;
//! - a user who shall not run has no container; only the directory stays;
//! - a failed replacement puts the old container back;
//! - what the engine did not tell is not assumed: no listing, no action.
//!
//! Layout: [`settings`] says what a container is made of, [`observe`] reads, [`plan`] decides,
//! `apply` does, [`readiness`] and [`pulls`](crate::image::pulls) watch what takes time.

mod apply;
mod names;
pub mod observe;
pub mod plan;
pub(crate) mod profile;
pub mod readiness;
pub mod settings;
mod store;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;
use std::time::Duration;

use schema::clock::SharedClock;
use schema::condition::Condition;
use schema::container::ContainerRow;
use schema::ids::{Generation, Kind, Timestamp, Uid};

use crate::engine::data_dir::DataDirProbe;
use crate::engine::view::EngineView;
use crate::image::pulls::Pulls;
use crate::runtime::{Controllers, Plan, Purpose, Reconciler};
use crate::shared::Shared;
use crate::stores::{ConfigSource, DataDir, Desired, Rows};

pub use apply::ContainerError;
pub(crate) use apply::classify_engine;
pub use plan::Action;
pub use profile::Agents;
pub use store::ContainerStore;

/// Starts the reconciler of containers.
pub fn register<S: ContainerStore>(shared: &Shared<S>, controllers: &mut Controllers<'_>) {
    let parts = Parts {
        store: shared.stores.clone(),
        view: Arc::clone(&shared.view),
        data_dir: Arc::clone(&shared.data_dir),
        config: Arc::clone(&shared.config),
        agents: Arc::clone(&shared.agents),
        probe: Arc::clone(&shared.probe),
        pulls: Arc::clone(&shared.pulls),
    };
    let options = Options {
        engine_data_dir: shared.options.engine_data_dir.clone(),
        service_user: shared.options.service_user,
        readiness_timeout: shared.options.readiness_timeout,
        verify_every: shared.options.verify_every,
    };
    let containers = ContainerReconciler::new(parts, &shared.clock, options);
    controllers.add_with(containers, Arc::clone(&shared.view).events());
}

/// What the container reconciler works with.
pub struct ContainerReconciler {
    store: Arc<dyn ContainerStore>,
    view: Arc<EngineView>,
    data_dir: Arc<dyn DataDir>,
    config: Arc<ConfigSource>,
    agents: Arc<dyn Agents>,
    probe: Arc<DataDirProbe>,
    pulls: Arc<Pulls>,
    prober: readiness::Prober,
    desired: Desired<ContainerRow>,
    verified: observe::Verified,
    options: Options,
}

/// What does not change while the service runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// The data directory as the engine's host sees it.
    pub engine_data_dir: String,
    /// `uid:gid` the service runs as.
    pub service_user: (u32, u32),
    /// How long a replacement may take to become ready before the old container is put back.
    pub readiness_timeout: Duration,
    /// How often each container's settings are compared in full.
    pub verify_every: Duration,
}

impl std::fmt::Debug for ContainerReconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContainerReconciler")
            .field("view", &self.view)
            .finish_non_exhaustive()
    }
}

/// The parts a [`ContainerReconciler`] is made of.
pub struct Parts {
    /// The database.
    pub store: Arc<dyn ContainerStore>,
    /// The shared view of the engine.
    pub view: Arc<EngineView>,
    /// Users' directories.
    pub data_dir: Arc<dyn DataDir>,
    /// Effective configuration.
    pub config: Arc<ConfigSource>,
    /// How agents are run.
    pub agents: Arc<dyn Agents>,
    /// Whether engine and service see the same data directory.
    pub probe: Arc<DataDirProbe>,
    /// Pulls under way.
    pub pulls: Arc<Pulls>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

impl ContainerReconciler {
    /// Puts the parts together.
    pub fn new(parts: Parts, clock: &SharedClock, options: Options) -> Self {
        let rows: Arc<dyn Rows<ContainerRow>> = parts.store.clone();
        let started = clock.now();
        Self {
            store: parts.store,
            view: parts.view,
            data_dir: parts.data_dir,
            config: parts.config,
            agents: parts.agents,
            probe: parts.probe,
            pulls: parts.pulls,
            prober: readiness::Prober::default(),
            desired: Desired::new(rows),
            verified: observe::Verified::new(options.verify_every, started),
            options,
        }
    }
}

impl Reconciler for ContainerReconciler {
    const NAME: &'static str = "container";
    const KIND: Kind = Kind::Container;
    const RESYNC: Duration = Duration::from_secs(60);
    type Key = Uid;
    type Snapshot = observe::Snapshot;
    type Action = Action;
    type Error = ContainerError;

    async fn keys(&self) -> Result<Vec<Uid>, ContainerError> {
        self.observe_keys().await
    }

    async fn observe(
        &self,
        key: &Uid,
        purpose: Purpose,
    ) -> Result<Option<observe::Snapshot>, ContainerError> {
        self.observe_one(key, purpose).await
    }

    fn generation(snapshot: &observe::Snapshot) -> Generation {
        snapshot
            .row
            .as_ref()
            .map_or(Generation(0), |row| row.generation)
    }

    fn plan(snapshot: &observe::Snapshot, now: Timestamp) -> Plan<Action> {
        plan::plan(snapshot, now)
    }

    /// Only a pass that would have acted on what it found has verified anything.
    fn converged(&self, key: &Uid, snapshot: &observe::Snapshot, _conditions: &[Condition]) {
        if let observe::World::Seen(seen) = &snapshot.world
            && seen.verified
        {
            self.verified.done(key);
        }
    }

    fn changed(&self, key: &Uid) {
        self.desired.mark(key);
    }

    fn describe(action: &Action) -> String {
        action.to_string()
    }

    fn is_event(action: &Action) -> bool {
        !matches!(
            action,
            Action::AddFinalizer | Action::ReleaseFinalizer | Action::SaveFacts(_)
        )
    }

    async fn apply(&self, key: &Uid, action: &Action) -> Result<(), ContainerError> {
        self.apply_one(key, action).await
    }
}
