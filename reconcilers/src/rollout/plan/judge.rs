//! What became of the users under way, as far as their containers' statuses show.

use std::time::Duration;

use schema::condition::{ConditionStatus, Reason};
use schema::rollout::{DesiredRollout, RolloutTarget, TargetContainer, TargetState};

use super::{Action, View};

/// Beyond the health timeout, which the container reconciler counts from the start of the new container:
/// for what comes before, and for the way back.
const GRACE: Duration = Duration::from_secs(60);
pub(super) const GONE: &str = "the user is gone";
pub(super) const CHANGED: &str = "somebody else changed its image meanwhile";

enum Verdict {
    Wait,
    Good,
    Bad(String),
}

impl View<'_> {
    /// The steps that what is known of users under way calls for.
    pub(super) fn judge(&self) -> Vec<Action> {
        let targets = self.targets.iter();
        targets
            .filter_map(|target| self.judge_one(target))
            .collect()
    }

    fn judge_one(&self, target: &RolloutTarget) -> Option<Action> {
        let all_back = self.row.desired == DesiredRollout::Rollback;
        let ours = match target.state {
            TargetState::Moving => {
                !self.row.kind.changes_image() || self.has_what_it_was_moved_to(target)
            }
            TargetState::PuttingBack | TargetState::RollingBack => has_previous(target),
            TargetState::Failed if all_back => has_previous(target),
            TargetState::Pending
            | TargetState::Done
            | TargetState::Failed
            | TargetState::RolledBack
            | TargetState::Skipped
            | TargetState::Cancelled => return None,
        };
        let Some(container) = &target.container else {
            return target
                .state
                .is_under_way()
                .then(|| self.finish(target, TargetState::Skipped, GONE));
        };
        if !ours {
            return target
                .state
                .is_under_way()
                .then(|| self.finish(target, TargetState::Skipped, CHANGED));
        }
        let verdict = self.verdict(target, container);
        match (target.state, verdict) {
            (TargetState::Moving, _) if all_back => {
                Some(self.put_back(target, TargetState::RollingBack, ""))
            }
            (TargetState::Moving, Verdict::Good) => {
                Some(self.finish(target, TargetState::Done, ""))
            }
            (TargetState::Moving, Verdict::Bad(why)) if !self.row.kind.changes_image() => {
                Some(self.finish(target, TargetState::Failed, &why))
            }
            (TargetState::Moving, Verdict::Bad(why)) => {
                Some(self.put_back(target, TargetState::PuttingBack, &why))
            }
            // What is shown is why it failed; that it is back does not mend it.
            (TargetState::PuttingBack, Verdict::Good | Verdict::Bad(_)) => {
                Some(self.finish(target, TargetState::Failed, &target.message))
            }
            (TargetState::RollingBack, Verdict::Good) => {
                Some(self.finish(target, TargetState::RolledBack, ""))
            }
            (TargetState::RollingBack, Verdict::Bad(why)) => {
                Some(self.finish(target, TargetState::Failed, &why))
            }
            // It was put back after a failure, and everybody shall be back: so it is.
            (TargetState::Failed, Verdict::Good) => {
                Some(self.finish(target, TargetState::RolledBack, &target.message))
            }
            _ => None,
        }
    }

    /// Whether the container still has the image this rollout gave it.
    pub(super) fn has_what_it_was_moved_to(&self, target: &RolloutTarget) -> bool {
        target.container.as_ref().is_some_and(|container| {
            container.image_ref == self.row.reference && container.image_id == target.image_id
        })
    }

    fn verdict(&self, target: &RolloutTarget, container: &TargetContainer) -> Verdict {
        let Some(generation) = target.generation else {
            return Verdict::Wait;
        };
        if container.observed_generation < generation {
            return Verdict::Wait;
        }
        let Some(ready) = &container.ready else {
            return Verdict::Wait;
        };
        if !self.row.kind.changes_image() {
            match self.verdict_on_files(target) {
                Verdict::Good if container.observed_generation >= container.generation => {}
                Verdict::Good => return Verdict::Wait,
                verdict => return verdict,
            }
        }
        match ready.status {
            // Nobody could observe: that says nothing about the image.
            ConditionStatus::Unknown => Verdict::Wait,
            ConditionStatus::True if self.has_lasted(target, container) => Verdict::Good,
            ConditionStatus::True => Verdict::Wait,
            // Stopped: that says nothing about what it was given, either.
            ConditionStatus::False if ready.reason == Reason::QuotaExceeded => Verdict::Good,
            // One that ends again and again is ready again and again, too.
            ConditionStatus::False
                if ready.reason.needs_action() || ready.reason == Reason::CrashLoop =>
            {
                Verdict::Bad(format!("{}: {}", ready.reason, ready.message))
            }
            ConditionStatus::False => {
                let limit = self.row.health_timeout + GRACE;
                let waited = self.waited.get(&target.uid);
                if waited.is_none_or(|waited| *waited <= limit) {
                    return Verdict::Wait;
                }
                let seconds = self.row.health_timeout.as_secs();
                Verdict::Bad(format!(
                    "not ready within {seconds} s: {}: {}",
                    ready.reason, ready.message
                ))
            }
        }
    }
}

impl View<'_> {
    /// Judges the files of an agent that got a change: its container follows once they are written.
    fn verdict_on_files(&self, target: &RolloutTarget) -> Verdict {
        let Some(files) = &target.files else {
            return Verdict::Wait;
        };
        let observed = files.ready.as_ref();
        let ready = observed.filter(|_| files.observed_generation >= files.generation);
        match ready.map(|ready| (ready.status, ready)) {
            Some((ConditionStatus::True, _)) => Verdict::Good,
            Some((ConditionStatus::False, ready)) if ready.needs_action() => {
                Verdict::Bad(format!("{}: {}", ready.reason, ready.message))
            }
            // What could not be observed says nothing about the change.
            Some((ConditionStatus::Unknown, _)) => Verdict::Wait,
            Some((ConditionStatus::False, _)) | None if self.left_of_move(target).is_some() => {
                Verdict::Wait
            }
            Some((ConditionStatus::False, ready)) => Verdict::Bad(format!(
                "its files were not ready in time: {}: {}",
                ready.reason, ready.message
            )),
            None => Verdict::Bad("its files were not observed in time".to_owned()),
        }
    }

    /// The time that is left for what follows from a move, as the wall clock tells.
    fn left_of_move(&self, target: &RolloutTarget) -> Option<Duration> {
        let limit = self.row.health_timeout + GRACE;
        self.now.left_of(target.moved_at?, limit)
    }

    /// Reports that a container that is ready has been so for long enough. A way back needs no proof, and a stopped container none either.
    fn has_lasted(&self, target: &RolloutTarget, container: &TargetContainer) -> bool {
        let is_proven = target.state != TargetState::Moving || !container.desired_running;
        let ready_for = self.waited.get(&target.uid).copied().unwrap_or_default();
        is_proven || ready_for >= self.row.min_ready
    }

    /// When the first of those who are under way is judged although nothing happens.
    pub(super) fn next_judgement(&self) -> Option<Duration> {
        let under_way = self.targets.iter().filter(|t| t.state.is_under_way());
        let left = under_way.filter_map(|target| {
            let ready = target.container.as_ref().and_then(|it| it.ready.as_ref());
            let limit = match ready.map(|ready| ready.status) {
                Some(ConditionStatus::True) => self.row.min_ready,
                _ => self.row.health_timeout + GRACE,
            };
            // A little later, so that the limit is passed then.
            let limit = limit + Duration::from_millis(1);
            let left = limit.checked_sub(*self.waited.get(&target.uid)?);
            let left = left.filter(|left| !left.is_zero());
            let of_move = match self.row.kind.changes_image() {
                true => None,
                false => self.left_of_move(target),
            };
            left.into_iter().chain(of_move).min()
        });
        left.min()
    }
}

/// Whether the container has the image it had before the rollout.
fn has_previous(target: &RolloutTarget) -> bool {
    match (&target.container, &target.previous) {
        (Some(container), Some(previous)) => {
            container.image_ref == previous.reference
                && (previous.image_id.is_none() || container.image_id == previous.image_id)
        }
        _ => false,
    }
}
