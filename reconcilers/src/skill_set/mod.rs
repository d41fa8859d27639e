//! The skill-set reconciler: in each user's workspace lie exactly the skills that the bindings give that user.
//!
//! Owns: `.agent/workspace/skills/<name>/` of the skills that it put there, what it keeps of users' changes in
//! `skills/.replaced/`, `users/.staging/`; the `skill_deployments` rows. Who else writes: agents and users, in the same
//! directories, at any moment.
//!
//! Invariants:
//! - a skill is made where nobody else can reach it, and gets its name complete;
//! - what is about to lie under a name is recorded before it does: a directory that no record explains is somebody else's
//!   (`NameConflict`), and left alone;
//! - what a user has changed is moved aside, never deleted;
//! - nothing is read or written but beneath the user's directory, and no link is followed (L25);
//! - a skill that is as it was is not read in a no-op pass: names, inodes, sizes and times tell. Its bytes are compared
//!   every ten minutes, and by `retry`.
//!
//! Layout: [`observe`] reads, [`plan`] decides, `apply` does.

mod apply;
pub mod observe;
pub mod plan;
#[cfg(test)]
mod plan_tests;
mod store;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schema::condition::{self, Condition, ConditionType};
use schema::home::SkillsLook;
use schema::ids::{Generation, Kind, SkillName, Timestamp, Uid};
use schema::skill::{TreeDigest, TreeStamp};
use schema::skill_set::SkillSetRow;

use self::observe::World;
use crate::runtime::{Controllers, Plan, Purpose, Reconciler};
use crate::shared::Shared;
use crate::stores::{Desired, Rows, Verified};

pub use apply::SkillSetError;
pub use plan::Action;
pub use store::SkillSetStore;

/// Starts the reconciler of users' skills.
pub fn register(
    store: Arc<dyn SkillSetStore>,
    shared: &Arc<Shared>,
    controllers: &mut Controllers<'_>,
) {
    let reconciler = SkillSetReconciler::new(store, Arc::clone(shared));
    controllers.add(reconciler);
}

/// What was known of a set when nothing was left to do: its generation, and what of it has to be looked at.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settled {
    generation: Generation,
    asked: Arc<[observe::Asked]>,
    look: Option<SkillsLook>,
    /// Some directory is somebody else's.
    conflict: bool,
}

/// What was made for each user and is not recorded yet.
type Staged = HashMap<Uid, Vec<(SkillName, TreeStamp, TreeDigest)>>;

/// Reconciles users' skills.
pub struct SkillSetReconciler {
    store: Arc<dyn SkillSetStore>,
    shared: Arc<Shared>,
    desired: Desired<SkillSetRow>,
    verified: Verified<Settled>,
    /// Saves reading what was made a moment ago. After a restart it is read.
    staged: Mutex<Staged>,
}

impl std::fmt::Debug for SkillSetReconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SkillSetReconciler").finish_non_exhaustive()
    }
}

impl SkillSetReconciler {
    /// A reconciler that has read nothing yet.
    pub fn new(store: Arc<dyn SkillSetStore>, shared: Arc<Shared>) -> Self {
        let rows: Arc<dyn Rows<SkillSetRow>> = store.clone();
        Self {
            store,
            verified: Verified::new(shared.options.verify_every, shared.clock.now()),
            desired: Desired::new(rows),
            shared,
            staged: Mutex::default(),
        }
    }

    fn staged(&self) -> MutexGuard<'_, Staged> {
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reconciler for SkillSetReconciler {
    const NAME: &'static str = "skill-set";
    const KIND: Kind = Kind::SkillSet;
    const RESYNC: Duration = Duration::from_secs(60);
    type Key = Uid;
    type Snapshot = observe::Snapshot;
    type Action = Action;
    type Error = SkillSetError;

    async fn keys(&self) -> Result<Vec<Uid>, SkillSetError> {
        Ok(self.desired.keys().await?)
    }

    async fn observe(
        &self,
        key: &Uid,
        purpose: Purpose,
    ) -> Result<Option<observe::Snapshot>, SkillSetError> {
        self.observe_one(key, purpose).await
    }

    fn leads(&self) {
        self.desired.distrust();
        self.verified.forget_all();
        self.staged().clear();
    }

    fn generation(snapshot: &observe::Snapshot) -> Generation {
        snapshot.row.generation
    }

    fn name(snapshot: &observe::Snapshot) -> Option<&str> {
        Some(snapshot.row.name.as_str())
    }

    fn plan(snapshot: &observe::Snapshot, now: Timestamp) -> Plan<Action> {
        plan::plan(snapshot, now)
    }

    fn describe(action: &Action) -> String {
        action.to_string()
    }

    fn is_event(action: &Action) -> bool {
        matches!(action, Action::Swap { .. } | Action::Remove { .. })
    }

    fn converged(&self, key: &Uid, snapshot: &observe::Snapshot, conditions: &[Condition]) {
        let ready = condition::find(conditions, ConditionType::Ready);
        match (&snapshot.world, ready) {
            (World::Unchanged { .. }, _) => {}
            // Whether the store has it by now is asked in each pass.
            (World::Seen(seen), _) if seen.skills.iter().any(plan::is_missing) => {
                self.verified.forget(key);
            }
            (World::Seen(seen), Some(ready)) => {
                self.staged().remove(key);
                self.verified
                    .done(key, &ready.message, seen.settled(&snapshot.row));
            }
            _ => self.verified.forget(key),
        }
    }

    fn changed(&self, key: &Uid) {
        self.desired.mark(key);
    }

    fn refresh(&self, key: &Uid) {
        self.verified.expire(key);
    }

    fn refresh_all(&self) {
        self.verified.expire_all();
    }

    /// The largest skill on a slow disk.
    fn action_timeout(_action: &Action) -> Duration {
        Duration::from_secs(600)
    }

    async fn apply(&self, key: &Uid, action: &Action) -> Result<(), SkillSetError> {
        self.apply_one(key, action).await
    }
}
