//! Reads a rollout, its users with what is known of their containers, and, while the image is not resolved,
//! what the engine and the pulls say of it.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use engine::{EngineError, Image};
use schema::condition::ConditionStatus;
use schema::config::{PullPolicy, keys};
use schema::ids::{Timestamp, Uid};
use schema::image::ImageReference;
use schema::rollout::{DesiredRollout, ImageChoice, RolloutRow, RolloutTarget, TargetState};

use super::{RolloutError, RolloutReconciler, lock};
use crate::runtime::Purpose;
use crate::shared::pulls::PullState;

/// A rollout as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// What is wanted, and what is remembered.
    pub row: RolloutRow,
    /// Its users, in order.
    pub targets: Vec<RolloutTarget>,
    /// What its image is; observed only while it has to be resolved.
    pub image: Option<ObservedImage>,
    /// Images that users are to get back and that are gone from the engine for good; observed only while
    /// the whole is rolled back. `Err`: the engine could not be asked.
    pub lost: Result<BTreeSet<String>, String>,
    /// For how long the containers of users under way have been ready, or else not.
    pub waited: BTreeMap<Uid, Duration>,
    /// For how long pulls of the image have failed.
    pub pull_failing: Duration,
    /// How often rollouts had changed before it was read.
    pub(super) marks: u64,
}

/// What is known of the image that a rollout moves to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedImage {
    /// What the reference means on the engine now; `Err`: the engine could not be asked.
    pub there: Result<Option<Found>, String>,
    /// What became of pulling it.
    pub pull: PullState,
    /// When a pull was last asked for in this attempt.
    pub asked: Option<Timestamp>,
    /// How images are got.
    pub policy: PullPolicy,
    /// The reference names a digest, so it never means anything else.
    pub fixed: bool,
}

/// An image on the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// `sha256:…`
    pub id: String,
    /// Its digest in the repository of the reference, or any other.
    pub digest: Option<String>,
    /// It is wherever containers run.
    pub is_local: bool,
}

impl Found {
    fn of(image: Image, reference: &str) -> Self {
        let wanted = reference.parse::<ImageReference>().ok();
        let in_repository = |digest: &&String| {
            let parsed = digest.parse::<ImageReference>().ok();
            parsed
                .zip(wanted.as_ref())
                .is_some_and(|(one, other)| one.same_repository(other))
        };
        let digests = &image.repo_digests;
        let digest = digests.iter().find(in_repository).or(digests.first());
        Self {
            digest: digest.cloned(),
            id: image.id,
            is_local: image.is_local,
        }
    }
}

impl Snapshot {
    /// Another value after every step of the way.
    pub fn progress(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for target in &self.targets {
            (target.state, target.generation).hash(&mut hasher);
        }
        self.row.facts.resolved_attempt.hash(&mut hasher);
        hasher.finish()
    }
}

/// The previous image of a user who is still to go back.
pub(super) fn previous_image(target: &RolloutTarget) -> Option<&ImageChoice> {
    let to_go_back = matches!(target.state, TargetState::Done | TargetState::Moving);
    target.previous.as_ref().filter(|_| to_go_back)
}

impl RolloutReconciler {
    pub(super) async fn observe_one(
        &self,
        uid: &Uid,
        purpose: Purpose,
    ) -> Result<Option<Snapshot>, RolloutError> {
        let marks = {
            let memory = lock(&self.memory);
            if purpose == Purpose::Pass && memory.ended.contains(uid) {
                return Ok(None);
            }
            memory.marks
        };
        let Some((row, targets)) = self.store.rollout(uid).await? else {
            if purpose == Purpose::Pass {
                lock(&self.memory).asked.remove(uid);
            }
            return Ok(None);
        };
        let ended = row.facts.finished_at.is_some();
        let unresolved = row.is_unresolved();
        let image = if unresolved && row.desired == DesiredRollout::Run && !ended {
            Some(self.see_image(&row).await?)
        } else {
            None
        };
        let lost = if row.desired == DesiredRollout::Rollback && !ended {
            self.see_lost(&targets).await?
        } else {
            Ok(BTreeSet::new())
        };
        Ok(Some(Snapshot {
            waited: self.waited(&targets),
            pull_failing: self.pull_failing(&row),
            row,
            targets,
            image,
            lost,
            marks,
        }))
    }

    /// For how long pulls of the image have failed in this attempt.
    fn pull_failing(&self, row: &RolloutRow) -> Duration {
        match row.facts.pull_failed_at {
            Some(at) => self.pulling.since(row.uid.clone(), at),
            None => {
                self.pulling.forget(&row.uid);
                Duration::ZERO
            }
        }
    }

    /// Since their containers are ready; else since they were moved, or since what their containers wait for began to be so: time
    /// during which nobody could observe does not count.
    fn waited(&self, targets: &[RolloutTarget]) -> BTreeMap<Uid, Duration> {
        let mut waited = BTreeMap::new();
        for target in targets {
            let ready = target.container.as_ref().and_then(|it| it.ready.as_ref());
            match (target.state.is_under_way(), target.moved_at, ready) {
                (true, Some(moved_at), Some(ready)) => {
                    let since = match ready.status {
                        ConditionStatus::True => ready.last_transition_at,
                        _ => moved_at.max(ready.last_transition_at),
                    };
                    let uid = target.uid.clone();
                    waited.insert(uid, self.waiting.since(target.uid.clone(), since));
                }
                _ => self.waiting.forget(&target.uid),
            }
        }
        waited
    }

    /// Each image is asked for by itself: the engine's list leaves some out that are there.
    async fn see_lost(
        &self,
        targets: &[RolloutTarget],
    ) -> Result<Result<BTreeSet<String>, String>, RolloutError> {
        let config = self.shared.config.newest().await?;
        let pulls = config.get(&keys::image::PULL_POLICY) != PullPolicy::Never;
        // Without a digest no registry can give it.
        let only_there = |image: &&ImageChoice| !pulls || image.digest.is_none();
        let previous = targets.iter().filter_map(previous_image).filter(only_there);
        let wanted: BTreeSet<&str> = previous.filter_map(|it| it.image_id.as_deref()).collect();
        let mut lost = BTreeSet::new();
        for id in wanted {
            match self.shared.compute.images.image(id).await {
                Ok(Some(_)) => {}
                Ok(None) => {
                    lost.insert(id.to_owned());
                }
                Err(error @ EngineError::Unavailable(_)) => {
                    self.shared.view.note_error(&error);
                    return Ok(Err(error.to_string()));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Ok(lost))
    }

    async fn see_image(&self, row: &RolloutRow) -> Result<ObservedImage, RolloutError> {
        let reference = &row.reference;
        // The pull is observed first: what it brought is then seen on the engine.
        let pull = self.shared.pulls.state(reference);
        let there = match self.shared.compute.images.image(reference).await {
            Ok(image) => Ok(image.map(|image| Found::of(image, reference))),
            // The pull asks the registry again, says why it fails, and is not tried for ever.
            Err(EngineError::RegistryFailed(_)) => Ok(None),
            Err(error @ EngineError::Unavailable(_)) => {
                self.shared.view.note_error(&error);
                Err(error.to_string())
            }
            Err(error) => return Err(error.into()),
        };
        let config = self.shared.config.newest().await?;
        let parsed = reference.parse::<ImageReference>();
        Ok(ObservedImage {
            there,
            pull,
            asked: lock(&self.memory)
                .asked
                .get(&row.uid)
                .filter(|(attempt, _)| *attempt == row.attempt)
                .map(|(_, at)| *at),
            policy: config.get(&keys::image::PULL_POLICY),
            fixed: parsed.is_ok_and(|parsed| parsed.digest().is_some()),
        })
    }
}
