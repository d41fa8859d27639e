//! The rollout reconciler: users move from their images to another one, a few at a time, and back.
//!
//! Owns: `rollout_facts`, the states in `rollout_targets`, and, while a rollout has not ended, the image of
//! its users' containers. Who else writes: the API (what is wished, and attempts).
//!
//! It never touches the engine's containers: a move is another image in the container's desired state, and
//! what becomes of it is read from that container's status.
//!
//! Invariants:
//! - never more than `max_unavailable` users under way, and nobody new while anybody is;
//! - the image is resolved once for all users of an attempt; a canary of one goes first;
//! - nobody more is moved after a failure, a pause or a cancel; who is under way is always judged to the end;
//! - whether a container runs is never touched;
//! - each step is one transaction, which is refused when somebody wants something else by now.
//!
//! Layout: [`observe`] reads, [`plan`] decides, `apply` does, `waking` hears of the containers' progress.

mod apply;
pub mod observe;
pub mod plan;
#[cfg(test)]
mod tests;
mod waking;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schema::bell::Bell;
use schema::clock::SharedClock;
use schema::ids::{Generation, Kind, Timestamp, Uid};

use crate::engine::view::EngineView;
use crate::image::pulls::Pulls;
use crate::runtime::{Plan, Reconciler, StatusStore, WorldEvents};
use crate::stores::{ConfigSource, DirtyObserver, Store};

pub use apply::RolloutError;
pub use plan::Action;

/// The parts a [`RolloutReconciler`] is made of.
pub struct Parts {
    /// The database.
    pub store: Arc<dyn Store>,
    /// The shared view of the engine.
    pub view: Arc<EngineView>,
    /// Effective configuration.
    pub config: Arc<ConfigSource>,
    /// Pulls under way.
    pub pulls: Arc<Pulls>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

/// What is in memory only; all of it can be lost.
#[derive(Debug, Default)]
struct Memory {
    /// Rollouts with users under way: those that changes of the database wake.
    under_way: HashSet<Uid>,
    /// Ended rollouts whose end was looked at; nothing of them changes until they are dirty.
    ended: HashSet<Uid>,
    /// How often anything was found dirty.
    marks: u64,
    /// The attempt for which this process has asked for a pull.
    asked: HashMap<Uid, i64>,
}

impl Memory {
    /// A rollout is dirty: it is looked at again, even if it had ended.
    fn mark(&mut self, uid: &Uid) {
        self.ended.remove(uid);
        self.marks += 1;
    }
}

/// What the rollout reconciler works with.
pub struct RolloutReconciler {
    parts: Parts,
    clock: SharedClock,
    memory: Arc<Mutex<Memory>>,
}

impl std::fmt::Debug for RolloutReconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RolloutReconciler").finish_non_exhaustive()
    }
}

fn lock(memory: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RolloutReconciler {
    /// Puts the parts together.
    pub fn new(parts: Parts, clock: SharedClock) -> Self {
        Self {
            parts,
            clock,
            memory: Arc::default(),
        }
    }

    /// The status store of rollouts; it tells this reconciler of ended ones that are wanted again.
    pub fn status_store(&self) -> Arc<dyn StatusStore<Uid>> {
        struct Marks(Arc<Mutex<Memory>>);
        impl DirtyObserver for Marks {
            fn dirty(&self, uid: &Uid) {
                lock(&self.0).mark(uid);
            }
        }
        self.parts.store.statuses(
            Kind::Rollout,
            Self::NAME,
            Arc::clone(&self.clock),
            Arc::new(Marks(Arc::clone(&self.memory))),
        )
    }

    /// Wakes rollouts with users under way when `changes` says that something was written.
    pub fn events(&self, changes: Bell) -> WorldEvents<Uid> {
        waking::events(changes, Arc::clone(&self.memory))
    }
}

impl Reconciler for RolloutReconciler {
    const NAME: &'static str = "rollout";
    const RESYNC: Duration = Duration::from_secs(60);
    type Key = Uid;
    type Snapshot = observe::Snapshot;
    type Action = Action;
    type Error = RolloutError;

    async fn keys(&self) -> Result<Vec<Uid>, RolloutError> {
        Ok(self.parts.store.rollouts().await?)
    }

    async fn observe(&self, key: &Uid) -> Result<Option<observe::Snapshot>, RolloutError> {
        self.observe_one(key).await
    }

    fn generation(snapshot: &observe::Snapshot) -> Generation {
        snapshot.row.generation
    }

    fn plan(snapshot: &observe::Snapshot, now: Timestamp) -> Plan<Action> {
        plan::plan(snapshot, now)
    }

    fn describe(action: &Action) -> String {
        action.to_string()
    }

    fn is_event(action: &Action) -> bool {
        action.is_event()
    }

    fn progress(snapshot: &observe::Snapshot) -> u64 {
        snapshot.progress()
    }

    async fn apply(&self, key: &Uid, action: &Action) -> Result<(), RolloutError> {
        self.apply_one(key, action).await
    }
}
