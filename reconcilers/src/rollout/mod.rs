//! The rollout reconciler: users move from their images to another one, a few at a time, and back.
//!
//! Owns: `rollout_facts`, the states in `rollout_targets`, and, while a rollout has not ended, the image of
//! its users' containers. Who else writes: the API (what is desired, and attempts).
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
//! Layout: [`observe`] reads, [`plan`] decides, `apply` does.

mod apply;
pub mod observe;
pub mod plan;
mod store;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schema::condition::Condition;
use schema::ids::{Generation, Kind, Timestamp, Uid};

use crate::runtime::stopwatch::Stopwatch;
use crate::runtime::{Controllers, Plan, Purpose, Reconciler};
use crate::shared::Shared;

pub use apply::RolloutError;
pub use plan::Action;
pub use store::{RolloutStep, RolloutStore};

/// Starts the reconciler of rollouts.
pub fn register(
    store: Arc<dyn RolloutStore>,
    shared: &Arc<Shared>,
    controllers: &mut Controllers<'_>,
) {
    let reconciler = RolloutReconciler::new(store, Arc::clone(shared));
    controllers.add(reconciler);
}

/// What the rollout reconciler works with.
pub struct RolloutReconciler {
    store: Arc<dyn RolloutStore>,
    shared: Arc<Shared>,
    memory: Mutex<Memory>,
    /// Since when users under way have waited.
    waiting: Stopwatch<Uid>,
    /// Since when pulls of rollouts' images have failed.
    pulling: Stopwatch<Uid>,
}

impl std::fmt::Debug for RolloutReconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RolloutReconciler").finish_non_exhaustive()
    }
}

/// What is in memory only; all of it can be lost.
#[derive(Debug, Default)]
struct Memory {
    /// Ended rollouts whose end was observed; nothing of them changes until they are dirty.
    ended: HashSet<Uid>,
    /// How often any rollout has changed.
    marks: u64,
    /// The attempt for which this process has last asked for a pull, and when.
    asked: HashMap<Uid, (i64, Timestamp)>,
}

impl Memory {
    /// A rollout has changed: it is observed again, even if it had ended.
    fn mark(&mut self, uid: &Uid) {
        self.ended.remove(uid);
        self.marks += 1;
    }
}

fn lock(memory: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RolloutReconciler {
    /// A reconciler that has read nothing yet.
    pub fn new(store: Arc<dyn RolloutStore>, shared: Arc<Shared>) -> Self {
        Self {
            store,
            memory: Mutex::default(),
            waiting: Stopwatch::new(Arc::clone(&shared.clock)),
            pulling: Stopwatch::new(Arc::clone(&shared.clock)),
            shared,
        }
    }
}

impl Reconciler for RolloutReconciler {
    const NAME: &'static str = "rollout";
    const KIND: Kind = Kind::Rollout;
    const RESYNC: Duration = Duration::from_secs(60);
    type Key = Uid;
    type Snapshot = observe::Snapshot;
    type Action = Action;
    type Error = RolloutError;

    async fn keys(&self) -> Result<Vec<Uid>, RolloutError> {
        Ok(self.store.rollouts().await?)
    }

    async fn observe(
        &self,
        key: &Uid,
        purpose: Purpose,
    ) -> Result<Option<observe::Snapshot>, RolloutError> {
        self.observe_one(key, purpose).await
    }

    fn leads(&self) {
        let mut memory = lock(&self.memory);
        // A pass that goes on remembers nothing.
        *memory = Memory {
            marks: memory.marks + 1,
            ..Memory::default()
        };
    }

    fn generation(snapshot: &observe::Snapshot) -> Generation {
        snapshot.row.generation
    }

    fn name(snapshot: &observe::Snapshot) -> Option<&str> {
        Some(snapshot.row.uid.as_str())
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

    /// Of one that has ended nothing changes until it is desired again; what was read may be older than that.
    fn converged(&self, key: &Uid, snapshot: &observe::Snapshot, _conditions: &[Condition]) {
        if snapshot.row.facts.finished_at.is_none() {
            return;
        }
        let mut memory = lock(&self.memory);
        memory.asked.remove(key);
        if memory.marks == snapshot.marks {
            memory.ended.insert(key.clone());
        }
    }

    fn changed(&self, key: &Uid) {
        lock(&self.memory).mark(key);
    }

    fn progress(snapshot: &observe::Snapshot) -> u64 {
        snapshot.progress()
    }

    async fn apply(&self, key: &Uid, action: &Action) -> Result<(), RolloutError> {
        self.apply_one(key, action).await
    }
}
