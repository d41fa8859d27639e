//! What reconcilers share, made once for all of them: the view of the engine, the proof of the data directory, pulls.
//! It knows no reconciler.

pub mod clones;
mod failure;
pub mod host_access;
pub mod image_digests;
pub mod isolation;
pub mod load;
pub mod network;
pub mod probe;
pub mod pulls;
pub mod view;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use engine::{
    AgentAddress, Compute, HostRules, Isolation, LABEL_OWNER, NETWORK, Network, NetworkSettings,
    NetworkState,
};
use schema::clock::SharedClock;
use schema::config::{Config, keys};
use schema::error::DbError;
use schema::image::ImageReference;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::clones::Clones;
use self::host_access::{HostAccess, isolation};
use self::isolation::IsolationTrials;
use self::probe::DataDirProbe;
use self::pulls::Pulls;
use self::view::EngineView;
use crate::drivers::adapter_source::PackageSource;
use crate::drivers::agent_probe::AgentProbe;
use crate::drivers::git::Git;
use crate::drivers::ldap::Directory;
use crate::runtime::Waits;
use crate::stores::{AdapterSource, ConfigSource, ConfigStore, DataDir, PackageStore};

/// What does not change while the service runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// The instance id, which marks what we own.
    pub owner: String,
    /// `uid:gid` the service runs as.
    pub service_user: (u32, u32),
    /// Where agents reach the service; `None`: nowhere.
    pub agents: Option<AgentAddress>,
    /// How long a replacement may take to become ready before the old container is put back.
    pub readiness_timeout: Duration,
    /// How often each container and each user's files are compared in full although nothing has changed.
    pub verify_every: Duration,
}

/// The world of the reconcilers: what they are given.
pub struct World {
    /// Users' directories.
    pub data_dir: Arc<dyn DataDir>,
    /// The container engine.
    pub compute: Compute,
    /// Asks agents whether they are ready.
    pub agents: Arc<dyn AgentProbe>,
    /// Where newer adapter packages come from.
    pub packages: Arc<dyn PackageSource>,
    /// Fetches repositories of skills.
    pub git: Arc<dyn Git>,
    /// Where users come from in ldap mode.
    pub directory: Arc<dyn Directory>,
    /// Wall-clock time.
    pub clock: SharedClock,
    /// Who waits for what.
    pub waits: Waits,
    /// Runs pulls and fetches.
    pub tasks: TaskTracker,
    /// Cancelled when the process is to end.
    pub shutdown: CancellationToken,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

/// What reconcilers share.
pub struct Shared {
    /// Users' directories.
    pub data_dir: Arc<dyn DataDir>,
    /// The container engine.
    pub compute: Compute,
    /// Asks agents whether they are ready.
    pub agents: Arc<dyn AgentProbe>,
    /// Where newer adapter packages come from.
    pub packages: Arc<dyn PackageSource>,
    /// Where users come from in ldap mode.
    pub directory: Arc<dyn Directory>,
    /// Wall-clock time.
    pub clock: SharedClock,
    /// What is known of the engine.
    pub view: Arc<EngineView>,
    /// The effective configuration.
    pub config: ConfigSource,
    /// The active adapter.
    pub adapters: AdapterSource,
    /// Whether engine and service see the same data directory.
    pub probe: DataDirProbe,
    /// What agents reach of the host.
    pub host_access: HostAccess,
    /// Trials of the engine's rules for agents.
    pub isolation: IsolationTrials,
    /// Pulls under way.
    pub pulls: Arc<Pulls>,
    /// Fetches of repositories under way.
    pub clones: Arc<Clones>,
    /// What does not change.
    pub options: Options,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Reports that configuration or adapter were read after a row of these generations: a newer row says whether its agent's turn
    /// to get them has come.
    pub async fn is_newer(&self, config: i64, adapter: i64) -> bool {
        self.config.is_newer(config) || self.adapters.is_newer(adapter).await
    }

    /// The agents' network as desired, with the ports of the newest adapter that was read.
    ///
    /// # Errors
    /// When the database cannot be read, which is asked before the first adapter is known.
    pub async fn wanted_network(&self, config: &Config) -> Result<NetworkSettings, DbError> {
        let adapter = self.adapters.at(0).await?;
        Ok(NetworkSettings {
            name: NETWORK.to_owned(),
            subnet: config.get(&keys::container::NETWORK_SUBNET),
            labels: [(LABEL_OWNER.to_owned(), self.options.owner.clone())].into(),
            isolation: Isolation {
                agent_ports: adapter.agent_ports(),
                ..isolation(config, self.options.agents)
            },
        })
    }

    /// Compares the agents' network with the desired one.
    pub fn network_state(
        &self,
        network: Option<&Network>,
        wanted: &NetworkSettings,
    ) -> NetworkState {
        let engine = &self.compute.network;
        NetworkState::of(network, &self.options.owner, |network| {
            match engine.is_as_desired(network, wanted) {
                true => NetworkState::AsDesired,
                false if engine.mends_in_place() => NetworkState::Drifted,
                false => NetworkState::Outdated,
            }
        })
    }

    /// Returns the rules that agents on this network need in the host's packet filter.
    pub fn host_rules(&self, config: &Config, network: Option<&Network>) -> Option<HostRules> {
        let isolation = isolation(config, self.options.agents);
        self.compute.network.host_rules(network?, &isolation)
    }

    /// Makes what is shared.
    pub fn new<S>(stores: &Arc<S>, world: World, options: Options) -> Arc<Self>
    where
        S: ConfigStore + PackageStore,
    {
        Arc::new(Self {
            view: Arc::new(EngineView::new(
                world.compute.clone(),
                options.owner.clone(),
                Arc::clone(&world.clock),
            )),
            config: ConfigSource::new(stores.clone()),
            adapters: AdapterSource::new(stores.clone()),
            probe: DataDirProbe::new(
                Arc::clone(&world.compute.homes),
                Arc::clone(&world.data_dir),
            ),
            host_access: HostAccess::new(Arc::clone(&world.compute.network)),
            isolation: IsolationTrials::new(Arc::clone(&world.compute.network)),
            clones: Arc::new(Clones::new(
                world.git,
                Arc::clone(&world.data_dir),
                Arc::clone(&world.clock),
                world.waits.clone(),
                world.tasks.clone(),
                world.shutdown.clone(),
            )),
            pulls: Arc::new(Pulls::new(
                Arc::clone(&world.compute.images),
                Arc::clone(&world.clock),
                world.waits,
                world.tasks,
                world.shutdown,
            )),
            data_dir: world.data_dir,
            compute: world.compute,
            agents: world.agents,
            packages: world.packages,
            directory: world.directory,
            clock: world.clock,
            options,
        })
    }

    /// Starts pulling `reference` with what its registry shall know of us, unless it is being pulled. `token`: the
    /// request that the pull answers, or empty.
    ///
    /// # Errors
    /// When the configuration cannot be read.
    pub async fn start_pull(&self, reference: &str, token: &str) -> Result<(), DbError> {
        let credentials = match reference.parse::<ImageReference>() {
            Ok(image) => self.config.newest().await?.registry_credentials_for(&image),
            Err(_) => None,
        };
        self.pulls.start(reference, credentials, token);
        Ok(())
    }
}
