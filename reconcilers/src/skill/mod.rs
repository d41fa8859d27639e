//! The skill reconciler: the store holds the versions of each skill that are kept or deployed, and no others.
//!
//! Owns: what is removed from `skills/`; deletion of `skills` rows. Who else writes: uploads and installations, which add
//! to `skills/` before they write the row; `skill-set`, which copies from it.
//!
//! Invariants:
//! - a version that is kept or lies in a workspace is never removed, and none that was imported within the last hour: its
//!   row may not be there yet;
//! - a deleted skill's versions go at once: workspaces hold copies.

mod plan;
#[cfg(test)]
mod plan_tests;
mod store;

use std::sync::Arc;
use std::time::Duration;

use schema::condition::Reason;
use schema::error::{DbError, chain};
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::skill_store::SkillStoreError;

use crate::runtime::{Classify, Controllers, ErrorClass, Plan, Purpose, Reconciler};
use crate::shared::Shared;
use crate::stores::{Desired, Rows};

pub use plan::{Action, Snapshot};
pub use store::{SkillState, SkillStore};

/// Starts the reconciler of skills.
pub fn register(
    store: Arc<dyn SkillStore>,
    shared: &Arc<Shared>,
    controllers: &mut Controllers<'_>,
) {
    let rows: Arc<dyn Rows<SkillState>> = store.clone();
    controllers.add(SkillReconciler {
        store,
        shared: Arc::clone(shared),
        desired: Desired::new(rows),
    });
}

/// Reconciles the store with the skills that there are.
pub struct SkillReconciler {
    store: Arc<dyn SkillStore>,
    shared: Arc<Shared>,
    desired: Desired<SkillState>,
}

impl std::fmt::Debug for SkillReconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SkillReconciler").finish_non_exhaustive()
    }
}

/// What observing the store or removing from it can fail with.
#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    /// The database failed.
    #[error("desired state cannot be read or written")]
    Db(#[from] DbError),
    /// The store failed.
    #[error("{}", chain(.0))]
    Store(#[from] SkillStoreError),
}

impl Classify for SkillError {
    fn classify(&self) -> (ErrorClass, Reason) {
        match self {
            Self::Db(error) => error.classify(),
            Self::Store(error) if error.is_storage_full() => {
                (ErrorClass::Transient, Reason::StorageFull)
            }
            Self::Store(_) => (ErrorClass::Transient, Reason::Retrying),
        }
    }
}

impl Reconciler for SkillReconciler {
    const NAME: &'static str = "skill";
    const KIND: Kind = Kind::Skill;
    const RESYNC: Duration = Duration::from_secs(60);
    type Key = Uid;
    type Snapshot = Snapshot;
    type Action = Action;
    type Error = SkillError;

    async fn keys(&self) -> Result<Vec<Uid>, SkillError> {
        Ok(self.desired.keys().await?)
    }

    async fn observe(&self, key: &Uid, _: Purpose) -> Result<Option<Snapshot>, SkillError> {
        let Some(state) = self.desired.row(key).await? else {
            return Ok(None);
        };
        let name = &state.row.name;
        let stored = self.shared.data_dir.stored_versions(name).await?;
        let mut snapshot = Snapshot {
            state,
            stored,
            deployed: Vec::new(),
        };
        // Asked only when something is to go: in a no-op pass nothing is.
        let now = self.shared.clock.now();
        if !snapshot.is_going() && plan::unused(&snapshot, now).next().is_some() {
            let name = &snapshot.state.row.name;
            snapshot.deployed = self.store.deployed(name).await?;
        }
        Ok(Some(snapshot))
    }

    fn leads(&self) {
        self.desired.distrust();
    }

    fn generation(snapshot: &Snapshot) -> Generation {
        snapshot.state.row.generation
    }

    fn plan(snapshot: &Snapshot, now: Timestamp) -> Plan<Action> {
        plan::plan(snapshot, now)
    }

    fn describe(action: &Action) -> String {
        action.to_string()
    }

    fn is_event(action: &Action) -> bool {
        matches!(action, Action::RemoveVersion { .. })
    }

    fn changed(&self, key: &Uid) {
        self.desired.mark(key);
    }

    async fn apply(&self, key: &Uid, action: &Action) -> Result<(), SkillError> {
        match action {
            Action::RemoveVersion {
                skill,
                digest,
                not_newer_than,
            } => Ok(self
                .shared
                .data_dir
                .remove_version(skill, digest, *not_newer_than)
                .await?),
            Action::Purge => Ok(self.store.purge_skill(key).await?),
        }
    }
}
