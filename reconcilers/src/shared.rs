//! What reconcilers share, made once for all of them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schema::clock::SharedClock;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::container::Agents;
use crate::drivers::adapter_source::PackageSource;
use crate::drivers::docker::ContainerEngine;
use crate::engine::data_dir::DataDirProbe;
use crate::engine::view::EngineView;
use crate::image::pulls::Pulls;
use crate::runtime::Waits;
use crate::stores::{AdapterSource, ConfigSource, ConfigStore, DataDir, PackageStore};

/// What does not change while the service runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// The instance id, which marks what we own.
    pub owner: String,
    /// `uid:gid` the service runs as.
    pub service_user: (u32, u32),
    /// The data directory as the engine's host sees it.
    pub engine_data_dir: String,
    /// The port at which agents reach the service on the gateway of their network.
    pub agent_port: u16,
    /// How long a replacement may take to become ready before the old container is put back.
    pub readiness_timeout: Duration,
    /// How often each container and each user's files are compared in full although nothing has changed.
    pub verify_every: Duration,
}

/// The world of the reconcilers: what they are given.
pub struct World<S> {
    /// The database.
    pub stores: Arc<S>,
    /// Users' directories.
    pub data_dir: Arc<dyn DataDir>,
    /// The container engine.
    pub engine: Arc<dyn ContainerEngine>,
    /// Where newer adapter packages come from.
    pub packages: Arc<dyn PackageSource>,
    /// Wall-clock time.
    pub clock: SharedClock,
    /// Who waits for what.
    pub waits: Waits,
    /// Runs pulls.
    pub tasks: TaskTracker,
    /// Cancelled when the process is to end.
    pub shutdown: CancellationToken,
}

impl<S> fmt::Debug for World<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

/// What reconcilers share.
pub struct Shared<S> {
    /// The database.
    pub stores: Arc<S>,
    /// Users' directories.
    pub data_dir: Arc<dyn DataDir>,
    /// Where newer adapter packages come from.
    pub packages: Arc<dyn PackageSource>,
    /// Wall-clock time.
    pub clock: SharedClock,
    /// What is known of the engine.
    pub view: Arc<EngineView>,
    /// The effective configuration.
    pub config: Arc<ConfigSource>,
    /// The active adapter.
    pub adapters: Arc<AdapterSource>,
    /// How agents are run.
    pub agents: Arc<dyn Agents>,
    /// Whether engine and service see the same data directory.
    pub probe: Arc<DataDirProbe>,
    /// Pulls under way.
    pub pulls: Arc<Pulls>,
    /// What does not change.
    pub options: Options,
}

impl<S> fmt::Debug for Shared<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl<S: ConfigStore + PackageStore> Shared<S> {
    /// Makes what is shared. `agents` says how agents are run, given the active adapter.
    pub fn new(
        world: World<S>,
        options: Options,
        agents: impl FnOnce(&Arc<AdapterSource>) -> Arc<dyn Agents>,
    ) -> Self {
        let config: Arc<dyn ConfigStore> = world.stores.clone();
        let packages: Arc<dyn PackageStore> = world.stores.clone();
        let adapters = Arc::new(AdapterSource::new(packages));
        let probe = DataDirProbe::new(
            Arc::clone(&world.engine),
            options.owner.clone(),
            Arc::clone(&world.data_dir),
            options.engine_data_dir.clone(),
        );
        Self {
            view: Arc::new(EngineView::new(
                Arc::clone(&world.engine),
                options.owner.clone(),
            )),
            config: Arc::new(ConfigSource::new(config)),
            agents: agents(&adapters),
            adapters,
            probe: Arc::new(probe),
            pulls: Arc::new(Pulls::new(
                world.engine,
                Arc::clone(&world.clock),
                world.waits,
                world.tasks,
                world.shutdown,
            )),
            stores: world.stores,
            data_dir: world.data_dir,
            packages: world.packages,
            clock: world.clock,
            options,
        }
    }
}
