//! The agent-config reconciler: the agent's two files say what the user, the administrator and the service want
//! them to say.
//!
//! Owns: in users' directories, the places in the agent's files that the adapter makes the service's; the
//! `agent_config_facts` and `kept_files` rows. Who else writes: the agent and its user, in the same files, at any moment.
//!
//! Invariants:
//! - what the agent or the user wrote for themselves stays; a file that cannot be read is left as it is;
//! - both files' new versions are on the disk before one of them takes its place, and none does when a file
//!   is not what was read any more;
//! - the file that says its version comes last, so that a service killed in between migrates both again;
//! - files first, then facts: what is remembered was written;
//! - files of another version are kept before one of them is replaced, and what a migration that was cut short
//!   has left is never kept in their place;
//! - never a wrong address: without the network's gateway nothing is written;
//! - no value leaves this module but into the files: conditions, events and logs name places only.
//!
//! Layout: [`observe`] reads, [`plan`] renders and decides (`back`: what is kept, and when it comes back), `apply` writes, `looks` remembers when each
//! user's files were last looked at, [`settled`] wakes containers that wait for them.

mod apply;
mod back;
mod looks;
pub mod observe;
pub mod plan;
pub mod settled;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use schema::agent_config::AgentConfigRow;
use schema::clock::SharedClock;
use schema::ids::{Generation, Kind, Timestamp, Uid};

use crate::engine::view::EngineView;
use crate::runtime::{Plan, Reconciler, StatusStore};
use crate::stores::{AdapterSource, Cache, ConfigSource, DataDir, Store};

pub use apply::ConfigError;
pub use plan::Action;

/// What the agent-config reconciler works with.
pub struct AgentConfigReconciler {
    store: Arc<dyn Store>,
    view: Arc<EngineView>,
    data_dir: Arc<dyn DataDir>,
    config: Arc<ConfigSource>,
    adapters: Arc<AdapterSource>,
    clock: SharedClock,
    desired: Arc<Cache<AgentConfigRow>>,
    looks: looks::Looks,
    settled: settled::Settled,
    options: Options,
}

/// What does not change while the service runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// `uid:gid` the service runs as.
    pub service_user: (u32, u32),
    /// The port at which agents reach the service on the gateway of their network.
    pub agent_port: u16,
    /// How often each user's files are looked at although nothing has changed.
    pub verify_every: Duration,
}

/// The parts a [`AgentConfigReconciler`] is made of.
pub struct Parts {
    /// The database.
    pub store: Arc<dyn Store>,
    /// The shared view of the engine: where the gateway is.
    pub view: Arc<EngineView>,
    /// Users' directories.
    pub data_dir: Arc<dyn DataDir>,
    /// Effective configuration.
    pub config: Arc<ConfigSource>,
    /// How agents are configured.
    pub adapters: Arc<AdapterSource>,
    /// Tells containers that their files are settled.
    pub settled: settled::Settled,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for AgentConfigReconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentConfigReconciler")
            .finish_non_exhaustive()
    }
}

impl AgentConfigReconciler {
    /// Puts the parts together.
    pub fn new(parts: Parts, clock: SharedClock, options: Options) -> Self {
        let looks = looks::Looks::new(options.verify_every, clock.now());
        Self {
            store: parts.store,
            view: parts.view,
            data_dir: parts.data_dir,
            config: parts.config,
            adapters: parts.adapters,
            clock,
            desired: Arc::default(),
            looks,
            settled: parts.settled,
            options,
        }
    }

    /// The status store of agents' configurations; it tells this reconciler which rows to read anew.
    pub fn status_store(&self) -> Arc<dyn StatusStore<Uid>> {
        self.store.statuses(
            Kind::AgentConfig,
            Self::NAME,
            Arc::clone(&self.clock),
            Arc::<Cache<_>>::clone(&self.desired),
        )
    }

    /// What the bell does: the next pass reads the row anew.
    #[cfg(test)]
    pub(crate) fn mark_dirty(&self, uid: &Uid) {
        self.desired.mark(uid);
    }
}

impl Reconciler for AgentConfigReconciler {
    const NAME: &'static str = "agent-config";
    const RESYNC: Duration = Duration::from_secs(60);
    type Key = Uid;
    type Snapshot = observe::Snapshot;
    type Action = Action;
    type Error = ConfigError;

    async fn keys(&self) -> Result<Vec<Uid>, ConfigError> {
        self.observe_keys().await
    }

    async fn observe(&self, key: &Uid) -> Result<Option<observe::Snapshot>, ConfigError> {
        self.observe_one(key).await
    }

    fn generation(snapshot: &observe::Snapshot) -> Generation {
        snapshot.row.generation
    }

    fn plan(snapshot: &observe::Snapshot, _now: Timestamp) -> Plan<Action> {
        snapshot.plan().clone()
    }

    fn describe(action: &Action) -> String {
        action.to_string()
    }

    fn is_event(action: &Action) -> bool {
        matches!(action, Action::WriteFiles { .. })
    }

    fn look_closely(&self, key: &Uid) {
        self.looks.again(key);
    }

    async fn apply(&self, key: &Uid, action: &Action) -> Result<(), ConfigError> {
        self.apply_one(key, action).await
    }
}
