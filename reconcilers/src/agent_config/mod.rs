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
//! Layout: [`observe`] reads, [`plan`] renders and decides (`back`: what is kept, and when it comes back), `apply` writes,
//! [`Verified`] remembers when each user's files were last read.

mod apply;
mod back;
pub mod observe;
pub mod plan;
#[cfg(test)]
mod plan_tests;
mod store;

use std::sync::Arc;
use std::time::Duration;

use schema::agent_config::AgentConfigRow;
use schema::condition::{self, Condition, ConditionType};
use schema::home::{HomeLook, Note};
use schema::ids::{Generation, Kind, Timestamp, Uid};

use self::observe::World;
use crate::runtime::{Controllers, Plan, Purpose, Reconciler};
use crate::shared::Shared;
use crate::stores::{Desired, Rows, Verified};

pub use apply::ConfigError;
pub(crate) use observe::{LIMIT, are_long, is_unreadable, notes_of, parse_noted};
pub use plan::Action;
pub use store::AgentConfigStore;

/// Starts the reconciler of agents' files.
pub fn register(
    store: Arc<dyn AgentConfigStore>,
    shared: &Arc<Shared>,
    controllers: &mut Controllers<'_>,
) {
    let reconciler = AgentConfigReconciler::new(store, Arc::clone(shared));
    controllers.add(reconciler);
}

/// What the agent-config reconciler works with.
pub struct AgentConfigReconciler {
    store: Arc<dyn AgentConfigStore>,
    shared: Arc<Shared>,
    verified: Verified<Option<HomeLook>>,
    desired: Desired<AgentConfigRow>,
}

impl std::fmt::Debug for AgentConfigReconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentConfigReconciler")
            .finish_non_exhaustive()
    }
}

impl AgentConfigReconciler {
    /// A reconciler that has read nothing yet.
    pub fn new(store: Arc<dyn AgentConfigStore>, shared: Arc<Shared>) -> Self {
        let rows: Arc<dyn Rows<AgentConfigRow>> = store.clone();
        Self {
            store,
            verified: Verified::new(shared.options.verify_every, shared.clock.now()),
            desired: Desired::new(rows),
            shared,
        }
    }
}

impl Reconciler for AgentConfigReconciler {
    const NAME: &'static str = "agent-config";
    const KIND: Kind = Kind::AgentConfig;
    const RESYNC: Duration = Duration::from_secs(60);
    type Key = Uid;
    type Snapshot = observe::Snapshot;
    type Action = Action;
    type Error = ConfigError;

    async fn keys(&self) -> Result<Vec<Uid>, ConfigError> {
        Ok(self.desired.keys().await?)
    }

    async fn observe(
        &self,
        key: &Uid,
        purpose: Purpose,
    ) -> Result<Option<observe::Snapshot>, ConfigError> {
        self.observe_one(key, purpose).await
    }

    fn leads(&self) {
        self.desired.distrust();
        self.verified.forget_all();
    }

    fn generation(snapshot: &observe::Snapshot) -> Generation {
        snapshot.row.generation
    }

    fn name(snapshot: &observe::Snapshot) -> Option<&str> {
        Some(snapshot.row.name.as_str())
    }

    fn plan(snapshot: &observe::Snapshot, _now: Timestamp) -> Plan<Action> {
        plan::plan(snapshot)
    }

    /// Agents write what is parsed here.
    fn is_long(snapshot: &observe::Snapshot) -> bool {
        match &snapshot.world {
            World::Seen(seen) => seen.is_long(),
            _ => false,
        }
    }

    fn note_parsing(snapshot: &observe::Snapshot) -> Vec<Note> {
        match &snapshot.world {
            World::Seen(seen) => notes_of([&seen.config_file, &seen.security_file]),
            _ => Vec::new(),
        }
    }

    fn describe(action: &Action) -> String {
        action.to_string()
    }

    fn is_event(action: &Action) -> bool {
        matches!(action, Action::WriteFiles { .. })
    }

    /// Files count as read once nothing was left to do about them.
    fn converged(&self, key: &Uid, snapshot: &observe::Snapshot, conditions: &[Condition]) {
        match (
            &snapshot.world,
            condition::find(conditions, ConditionType::Ready),
        ) {
            (World::Unchanged(_), _) => {}
            (World::Seen(_) | World::Unreadable(_), Some(ready)) => {
                self.verified
                    .done(key, &ready.message, snapshot.home.clone());
            }
            _ => self.verified.forget(key),
        }
    }

    fn changed(&self, key: &Uid) {
        self.desired.mark(key);
    }

    fn refresh(&self, key: &Uid) {
        self.verified.forget(key);
    }

    fn refresh_all(&self) {
        self.verified.forget_all();
    }

    async fn apply(&self, key: &Uid, action: &Action) -> Result<(), ConfigError> {
        self.apply_one(key, action).await
    }
}
