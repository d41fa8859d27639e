//! The skill reconciler: the store holds the versions of each skill that are kept or deployed, and no others.
//!
//! Owns: what is removed from `skills/`, also of names that no skill has; deletion of `skills` rows. Who else writes: uploads and installations, which add
//! to `skills/` before they write the row; `skill-set`, which copies from it.
//!
//! Invariants:
//! - a version that is kept or lies in a workspace is never removed, and none that was imported within the last hour: its
//!   row may not be there yet;
//! - a deleted skill's versions go at once (workspaces hold copies), but none that came with or after the request: it may be
//!   of the next skill of that name;
//! - what no skill is recorded for (an upload that was only tried, or was cut short before its row) goes after that hour.

mod plan;
#[cfg(test)]
mod plan_tests;
mod store;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use schema::condition::Reason;
use schema::error::{DbError, chain};
use schema::ids::{Generation, Kind, SkillName, Timestamp, Uid};
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
    controllers.add(SkillReconciler::new(store, Arc::clone(shared)));
}

/// What stands before the name in the key of a name that is in the store.
const STORED: &str = "store:";

/// The key of a name that is in the store, and of which no skill is.
fn key_of_stored(name: &SkillName) -> Uid {
    Uid::from(format!("{STORED}{name}"))
}

fn stored_of_key(key: &Uid) -> Option<SkillName> {
    key.as_str().strip_prefix(STORED)?.parse().ok()
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

impl SkillReconciler {
    /// A reconciler that has read nothing yet.
    pub fn new(store: Arc<dyn SkillStore>, shared: Arc<Shared>) -> Self {
        let rows: Arc<dyn Rows<SkillState>> = store.clone();
        Self {
            store,
            shared,
            desired: Desired::new(rows),
        }
    }

    /// What is in the store of a name that no skill has; `None` when nothing of it is to go.
    async fn observe_stored(&self, name: SkillName) -> Result<Option<Snapshot>, SkillError> {
        let stored = self.shared.data_dir.stored_versions(&name).await?;
        let snapshot = Snapshot {
            name,
            state: None,
            stored,
            deployed: Vec::new(),
        };
        let now = self.shared.clock.now();
        if plan::unused(&snapshot, now).next().is_none() {
            return Ok(None);
        }
        // The name may have been taken since the keys were listed.
        let rows = self.store.rows().await?;
        let taken = rows
            .iter()
            .any(|(_, state)| state.row.name == snapshot.name);
        Ok((!taken).then_some(snapshot))
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
            Self::Store(error) => error.classify(),
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
        // Before the rows are read: whoever adds a skill writes its row last.
        let stored = self.shared.data_dir.stored_names().await?;
        let rows = self.desired.keys().await?;
        let mut names = BTreeSet::new();
        for uid in &rows {
            if let Some(state) = self.desired.row(uid).await? {
                names.insert(state.row.name.clone());
            }
        }
        let nobodys = stored.iter().filter(|name| !names.contains(*name));
        Ok(rows
            .iter()
            .cloned()
            .chain(nobodys.map(key_of_stored))
            .collect())
    }

    async fn observe(&self, key: &Uid, _: Purpose) -> Result<Option<Snapshot>, SkillError> {
        if let Some(name) = stored_of_key(key) {
            return self.observe_stored(name).await;
        }
        let Some(state) = self.desired.row(key).await? else {
            return Ok(None);
        };
        let name = state.row.name.clone();
        let stored = self.shared.data_dir.stored_versions(&name).await?;
        let mut snapshot = Snapshot {
            name,
            state: Some(state),
            stored,
            deployed: Vec::new(),
        };
        // Asked only when something is to go: in a no-op pass nothing is.
        let now = self.shared.clock.now();
        if !snapshot.is_going() && plan::unused(&snapshot, now).next().is_some() {
            snapshot.deployed = self.store.deployed(&snapshot.name).await?;
        }
        Ok(Some(snapshot))
    }

    fn leads(&self) {
        self.desired.distrust();
    }

    fn generation(snapshot: &Snapshot) -> Generation {
        let state = snapshot.state.as_ref();
        state.map_or(Generation(0), |state| state.row.generation)
    }

    fn name(snapshot: &Snapshot) -> Option<&str> {
        Some(snapshot.name.as_str())
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
            Action::Purge => {
                let purged = self.store.purge_skill(key).await;
                self.desired.mark(key);
                Ok(purged?)
            }
        }
    }
}
