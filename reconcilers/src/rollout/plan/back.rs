//! Everybody goes back to the image of before, a few at a time.

use std::collections::BTreeSet;

use schema::rollout::{Phase, RolloutTarget, TargetState};

use super::judge::{CHANGED, GONE};
use super::{Action, End, View};
use crate::rollout::observe::previous_image;
use crate::runtime::Plan;

const LOST: &str = "the previous image is gone from the engine";

impl View<'_> {
    pub(super) fn roll_back(&self) -> Plan<Action> {
        if let Some(plan) = self.enter(Phase::RollingBack, "rolled back by an administrator") {
            return plan;
        }
        let left_out = self.finish_alike(self.targets.iter(), |t| self.not_to_go_back(t));
        if !left_out.is_empty() {
            return self.act(left_out);
        }
        if self.is_under_way() {
            return self.wait();
        }
        let most = usize::try_from(self.row.max_unavailable).unwrap_or(1);
        let batch: Vec<Action> = self
            .in_state(TargetState::Done)
            .take(most)
            .map(|target| self.put_back(target, TargetState::RollingBack, ""))
            .collect();
        if !batch.is_empty() {
            self.act(batch)
        } else if self.count(TargetState::Failed) > 0 {
            self.end(Phase::Failed)
        } else {
            self.end(Phase::RolledBack)
        }
    }

    /// Who has nothing to go back to, or no reason.
    fn not_to_go_back(&self, target: &RolloutTarget) -> Option<End> {
        match target.state {
            TargetState::Pending => Some((TargetState::Cancelled, "")),
            TargetState::Done if target.previous.is_none() => {
                Some((TargetState::Cancelled, "it had this image before"))
            }
            TargetState::Done if target.container.is_none() => Some((TargetState::Skipped, GONE)),
            TargetState::Done if !self.has_what_it_was_moved_to(target) => {
                Some((TargetState::Skipped, CHANGED))
            }
            TargetState::Done
            | TargetState::Moving
            | TargetState::PuttingBack
            | TargetState::Failed
            | TargetState::RollingBack
            | TargetState::RolledBack
            | TargetState::Skipped
            | TargetState::Cancelled => None,
        }
    }

    /// Who would be given an image that cannot exist any more: they keep what they have.
    pub(super) fn without_a_way_back(&self, lost: &BTreeSet<String>) -> Vec<Action> {
        let stays = |target: &RolloutTarget| {
            let id = previous_image(target).and_then(|image| image.image_id.as_ref());
            self.has_what_it_was_moved_to(target) && id.is_some_and(|id| lost.contains(id))
        };
        let end = |target: &RolloutTarget| stays(target).then_some((TargetState::Failed, LOST));
        let mut stay = self.finish_alike(self.in_state(TargetState::Done), end);
        let moving = self.in_state(TargetState::Moving).filter(|t| stays(t));
        stay.extend(moving.map(|target| self.finish(target, TargetState::Failed, LOST)));
        stay
    }
}
