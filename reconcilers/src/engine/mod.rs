//! The engine reconciler: what all containers share on the engine, namely the agents' network, and
//! the proof that engine and service see the same data directory.
//!
//! Owns: the network `agentyard`; the chains `AGENTYARD-…` of the host's packet filter and what leads to it. Key: the one engine. Nobody else creates or removes networks.
//!
//! Invariants: a network of that name without our owner label is never touched; the network is made
//! again for another subnet only while no container is on it.

pub mod plan;
mod store;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::{EngineError, FirewallError, Found, HostRules, Image, NETWORK, Network, NetworkState};
use schema::condition::{self, Condition, Reason};
use schema::config::{self, Config};
use schema::error::{DbError, chain};
use schema::ids::{Generation, Kind, Timestamp, Uid};

use crate::runtime::{Classify, Controllers, ErrorClass, Plan, Purpose, Reconciler};
use crate::shared::Shared;
use crate::shared::probe::{ProbeError, ProbeState};
use crate::shared::view::Connection;

pub use plan::{Action, Host, Snapshot, Trials};
pub use store::{EngineRow, EngineStore};

/// Starts the reconciler of the engine.
pub fn register(
    store: Arc<dyn EngineStore>,
    shared: &Arc<Shared>,
    controllers: &mut Controllers<'_>,
) {
    let reconciler = EngineReconciler::new(store, Arc::clone(shared));
    let events = shared.view.engine_events(config::query::engine_uid());
    controllers.add_with(reconciler, events);
}

/// Reconciles what all containers share.
pub struct EngineReconciler {
    store: Arc<dyn EngineStore>,
    shared: Arc<Shared>,
    /// Warnings that the log has.
    warned: Mutex<Vec<String>>,
}

impl std::fmt::Debug for EngineReconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineReconciler").finish_non_exhaustive()
    }
}

/// What observing or changing the engine can fail with.
#[derive(Debug, thiserror::Error)]
pub enum EngineReconcilerError {
    /// The database failed.
    #[error("desired state cannot be read")]
    Db(#[from] DbError),
    /// The engine failed.
    #[error("{0}")]
    Engine(#[source] EngineError),
    /// A network of that name exists that is not ours.
    #[error("a network named {0} exists that Agentyard does not own")]
    NameConflict(&'static str),
    /// The data directory could not be probed.
    #[error("{}", chain(.0))]
    DataDir(#[from] ProbeError),
    /// The packet filter of the host.
    #[error("{0}")]
    Firewall(#[from] FirewallError),
}

impl Classify for EngineReconcilerError {
    fn classify(&self) -> (ErrorClass, Reason) {
        match self {
            Self::Db(error) => error.classify(),
            Self::Engine(error) => error.classify(),
            Self::NameConflict(_) => (ErrorClass::Terminal, Reason::NameConflict),
            Self::DataDir(error) => error.classify(),
            Self::Firewall(error) => error.classify(),
        }
    }
}

impl EngineReconciler {
    /// A reconciler that has read nothing yet.
    pub fn new(store: Arc<dyn EngineStore>, shared: Arc<Shared>) -> Self {
        Self {
            store,
            shared,
            warned: Mutex::new(Vec::new()),
        }
    }

    /// An image to give the proof with.
    async fn image(&self, reference: &str) -> Result<Option<Image>, EngineReconcilerError> {
        match self.shared.compute.images.image(reference).await {
            // Another one does as well, and the engine is not to blame.
            Err(EngineError::RegistryFailed(_)) => Ok(None),
            image => image.map_err(EngineReconcilerError::Engine),
        }
    }

    /// Returns the rules for agents; `None`: they may reach everything.
    fn host_rules(&self, config: &Config, network: Option<&Network>) -> Option<HostRules> {
        self.shared.host_rules(config, network)
    }

    /// Returns true if an agent is on the network, or is about to be: nothing is restricted for nobody.
    fn has_agents(&self, engine: EngineRow) -> bool {
        engine.in_use || self.shared.view.container_count() > 0
    }

    /// Removes the rules, unless a container has been asked for since they were seen to be needless.
    async fn open_host(&self) -> Result<(), EngineReconcilerError> {
        let config = self.shared.config.newest().await?;
        let engine = self.store.engine().await?;
        let in_use = engine.is_some_and(|engine| self.has_agents(engine));
        let network = self.shared.view.network();
        if !in_use || self.host_rules(&config, network.as_ref()).is_none() {
            self.shared.host_access.open().await?;
        }
        Ok(())
    }
}

impl Reconciler for EngineReconciler {
    const NAME: &'static str = "engine";
    const KIND: Kind = Kind::Engine;
    const RESYNC: Duration = Duration::from_secs(60);
    type Key = Uid;
    type Snapshot = Snapshot;
    type Action = Action;
    type Error = EngineReconcilerError;

    async fn keys(&self) -> Result<Vec<Uid>, EngineReconcilerError> {
        Ok(vec![config::query::engine_uid()])
    }

    async fn observe(
        &self,
        _key: &Uid,
        purpose: Purpose,
    ) -> Result<Option<Snapshot>, EngineReconcilerError> {
        let Some(engine) = self.store.engine().await? else {
            return Ok(None);
        };
        let config = self.shared.config.newest().await?;
        // The ports of its agents are part of the network.
        self.shared.adapters.newest().await?;
        let mut snapshot = Snapshot {
            generation: engine.generation,
            connection: self.shared.view.connection(),
            facts: self.shared.compute.facts,
            wanted: self.shared.wanted_network(&config).await?,
            in_place: self.shared.compute.network.mends_in_place(),
            network: None,
            network_state: NetworkState::Missing,
            containers: self.shared.view.container_count(),
            data_dir: self.shared.probe.state(),
            image: None,
            left_over: false,
            host: Host {
                rules: None,
                in_use: false,
                found: Ok(Found::Nothing),
            },
            trial: None,
        };
        if snapshot.connection != Connection::Up {
            // Whoever forces a pass wants to know now.
            if purpose == Purpose::Pass {
                self.shared.view.hurry();
            }
            // The answer of a lost engine may be another one's: prove it again when it is back.
            self.shared.probe.forget();
            // An engine that starts puts rules of its own before ours.
            self.shared.host_access.forget();
            return Ok(Some(snapshot));
        }
        match self.shared.view.refresh_network().await {
            Ok(network) => {
                snapshot.network_state = self
                    .shared
                    .network_state(network.as_ref(), &snapshot.wanted);
                snapshot.network = network;
            }
            Err(EngineError::Unavailable(_)) => {
                snapshot.connection = self.shared.view.connection();
                return Ok(Some(snapshot));
            }
            Err(error) => return Err(EngineReconcilerError::Engine(error)),
        }
        let rules = self.host_rules(&config, snapshot.network.as_ref());
        let in_use = self.has_agents(engine);
        let access = &self.shared.host_access;
        let found = access.observe(rules.as_ref(), in_use, purpose).await;
        snapshot.host = Host {
            rules,
            in_use,
            found,
        };
        if self.shared.compute.network.proves_isolation() {
            let trials = &self.shared.isolation;
            snapshot.trial = Some(Trials {
                outcome: trials.outcome(&snapshot.wanted),
                is_due: trials.is_due(&snapshot.wanted),
            });
        }
        if snapshot.data_dir != ProbeState::Same {
            // The image of new users, else the one that was tried last.
            let mut image = self.image(&config.image_reference()).await?;
            if image.is_none()
                && let Some(last) = self.shared.probe.image()
            {
                image = self.image(&last).await?;
            }
            snapshot.image = image.map(|image| image.id);
            if snapshot.image.is_none() {
                snapshot.left_over = self
                    .shared
                    .probe
                    .is_left_over()
                    .await
                    .map_err(EngineReconcilerError::Engine)?;
            }
        }
        Ok(Some(snapshot))
    }

    fn leads(&self) {
        self.shared.host_access.forget();
        self.shared.isolation.forget();
    }

    /// Has the isolation tried again: the caller wants to know its present state.
    fn refresh(&self, _key: &Uid) {
        self.shared.isolation.forget();
    }

    fn generation(snapshot: &Snapshot) -> Generation {
        snapshot.generation
    }

    fn name(_: &Snapshot) -> Option<&str> {
        Self::KIND.descriptor().single
    }

    fn plan(snapshot: &Snapshot, _now: Timestamp) -> Plan<Action> {
        plan::plan(snapshot)
    }

    fn describe(action: &Action) -> String {
        match action {
            Action::CreateNetwork(settings) => {
                format!(
                    "create network {} with subnet {}",
                    settings.name, settings.subnet
                )
            }
            Action::MendNetwork(settings) => {
                format!("make the rules of the network {} as desired", settings.name)
            }
            Action::RemoveNetwork { .. } => "remove the network, to recreate it".to_owned(),
            Action::ProbeDataDir { .. } => "probe the data directory".to_owned(),
            Action::CleanUpProbe => "remove what a probe has left".to_owned(),
            Action::RestrictHost(rules) => format!("let {rules}"),
            Action::TryIsolation(_) => "try what agents reach".to_owned(),
            Action::OpenHost => {
                "let agents reach the host's services and all networks behind it".to_owned()
            }
        }
    }

    fn converged(&self, _key: &Uid, _snapshot: &Snapshot, conditions: &[Condition]) {
        let warnings = condition::warnings(conditions);
        let warnings: Vec<String> = warnings.map(|one| one.message.clone()).collect();
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        for warning in warnings.iter().filter(|warning| !warned.contains(warning)) {
            tracing::warn!("{warning}");
        }
        *warned = warnings;
    }

    async fn apply(&self, _key: &Uid, action: &Action) -> Result<(), EngineReconcilerError> {
        let engine = &self.shared.compute.network;
        let result = match action {
            Action::CreateNetwork(settings) => engine.create_network(settings).await,
            Action::MendNetwork(settings) => {
                self.shared.isolation.forget();
                engine.mend_network(settings).await
            }
            Action::RemoveNetwork { id } => engine.remove_network(id).await,
            Action::ProbeDataDir { image } => return Ok(self.shared.probe.run(image).await?),
            Action::RestrictHost(rules) => {
                return Ok(self.shared.host_access.restrict(rules).await?);
            }
            Action::OpenHost => return self.open_host().await,
            Action::TryIsolation(wanted) => self.shared.isolation.run(wanted).await,
            Action::CleanUpProbe => return Ok(self.shared.probe.clean_up().await?),
        };
        result.map_err(|error| match (action, error) {
            (Action::CreateNetwork(_) | Action::MendNetwork(_), EngineError::NameTaken(_)) => {
                EngineReconcilerError::NameConflict(NETWORK)
            }
            (_, error) => EngineReconcilerError::Engine(error),
        })
    }
}
