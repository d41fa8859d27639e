//! Decides which versions of a skill go. Pure.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schema::condition::{Condition, Reason};
use schema::ids::{SkillName, Timestamp};
use schema::skill::TreeDigest;

use super::store::SkillState;
use crate::runtime::Plan;

/// How long a version stays that nobody needs: the row of a new one is written after its files.
pub(super) const GRACE: Duration = Duration::from_secs(3600);

/// How long an upload takes at most from its files to its row. What was imported later than that before a removal may be
/// of the next skill of that name.
pub(super) const UPLOAD: Duration = Duration::from_secs(60);

/// Desired and observed state of one skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Name of the skill.
    pub name: SkillName,
    /// What is desired; `None`: there is no skill of this name.
    pub state: Option<Arc<SkillState>>,
    /// The versions in the store, with the time at which each was last imported.
    pub stored: Vec<(TreeDigest, Timestamp)>,
    /// Those in workspaces; asked only when one is to go.
    pub deployed: Vec<TreeDigest>,
}

impl Snapshot {
    /// Whether the skill is to be removed.
    pub fn is_going(&self) -> bool {
        let state = self.state.as_ref();
        state.is_some_and(|state| state.row.deleted_at.is_some())
    }
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Removes a version from the store.
    RemoveVersion {
        /// Name of the skill.
        skill: SkillName,
        /// The version.
        digest: TreeDigest,
        /// One that was imported later stays.
        not_newer_than: Timestamp,
    },
    /// Removes the last trace of the skill.
    Purge,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RemoveVersion { skill, digest, .. } => {
                let digest = digest.as_str().get(..12).unwrap_or_default();
                write!(f, "remove version {digest} of skill {skill} from the store")
            }
            Self::Purge => f.write_str("remove the last trace"),
        }
    }
}

/// Versions in the store that are neither kept nor new.
pub(super) fn unused(snapshot: &Snapshot, now: Timestamp) -> impl Iterator<Item = &TreeDigest> {
    let Snapshot {
        state,
        stored,
        deployed,
        ..
    } = snapshot;
    let old = now.minus(GRACE);
    let is_kept = |digest| {
        let state = state.as_ref();
        state.is_some_and(|state| state.kept.contains(digest))
    };
    let unused = stored.iter().filter(move |(digest, imported)| {
        *imported <= old && !is_kept(digest) && !deployed.contains(digest)
    });
    unused.map(|(digest, _)| digest)
}

/// The plan for one skill.
pub(super) fn plan(snapshot: &Snapshot, now: Timestamp) -> Plan<Action> {
    let remove = |digest: &TreeDigest, not_newer_than| Action::RemoveVersion {
        skill: snapshot.name.clone(),
        digest: digest.clone(),
        not_newer_than,
    };
    let deleted_at = snapshot.state.as_ref().and_then(|it| it.row.deleted_at);
    if let Some(deleted_at) = deleted_at {
        // Later ones go after their hour, when no skill has the name.
        let last = deleted_at.minus(UPLOAD);
        let ours = snapshot.stored.iter().filter(|(_, at)| *at <= last);
        let mut actions: Vec<Action> = ours.map(|(digest, _)| remove(digest, last)).collect();
        if actions.is_empty() {
            actions.push(Action::Purge);
        }
        let going = Condition::not_ready(Reason::Terminating, "the skill is being removed");
        return Plan::act(actions, going);
    }
    let old = now.minus(GRACE);
    let unused = || unused(snapshot, now).map(|digest| remove(digest, old));
    let Some(state) = &snapshot.state else {
        let tidying = Condition::not_ready(Reason::Terminating, "no skill has this name");
        return Plan::act(unused().collect(), tidying);
    };
    let row = &state.row;
    let digest = &row.version.digest;
    if !snapshot.stored.iter().any(|(stored, _)| stored == digest) {
        let message = format!("the store does not have version {digest}");
        return Plan::say(Condition::not_ready(Reason::SkillMissing, message));
    }
    let actions: Vec<Action> = unused().collect();
    if !actions.is_empty() {
        let tidying = Condition::not_ready(Reason::Progressing, "old versions are being removed");
        return Plan::act(actions, tidying);
    }
    let (reason, state) = match row.version.has_manifest {
        true => (Reason::Converged, "the store has the version in effect"),
        false => (
            Reason::NoManifest,
            "the package has no SKILL.md; agents may not find the skill",
        ),
    };
    let mut said = vec![state.to_owned()];
    said.extend(row.version.warnings.iter().cloned());
    Plan::say(Condition::ready(reason, said.join("; ")))
}
