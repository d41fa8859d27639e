//! Decides what to do next for one rollout. Pure: no IO, clock, randomness or logging.
//!
//! In this order: who is under way is judged, whatever is desired; then the desired state decides who is next. Nobody
//! new is touched while anybody is under way, so there are never more under way than one batch.

mod action;
mod back;
mod judge;
mod resolve;

use std::collections::BTreeMap;
use std::time::Duration;

use schema::condition::{Condition, Reason};
use schema::config::query::{ENGINE_NAME, engine_uid};
use schema::ids::{Kind, Timestamp, Uid};
use schema::rollout::{
    DesiredRollout, ImageChoice, Phase, ReadinessPolicy, RolloutFacts, RolloutRow, RolloutTarget,
    TargetState,
};

use super::observe::Snapshot;
use crate::runtime::Plan;

pub use action::{Action, Step};
use judge::GONE;

/// Why a rollout stands still that a person has paused.
const BY_HAND: &str = "paused by an administrator";

/// The plan for one rollout.
pub fn plan(snapshot: &Snapshot, now: Timestamp) -> Plan<Action> {
    let row = &snapshot.row;
    let view = View {
        row,
        targets: &snapshot.targets,
        waited: &snapshot.waited,
        pull_failing: snapshot.pull_failing,
        now,
    };
    if row.facts.finished_at.is_some() {
        return view.ended();
    }
    match &snapshot.lost {
        Ok(lost) => {
            let stay = view.without_a_way_back(lost);
            if !stay.is_empty() {
                return view.act(stay);
            }
        }
        Err(why) => {
            let condition = Condition::unknown(Reason::EngineUnavailable, why);
            return Plan::say(condition).waiting_for(Kind::Engine, &engine_uid(), ENGINE_NAME);
        }
    }
    let judged = view.judge();
    if !judged.is_empty() {
        return view.act(judged);
    }
    match row.desired {
        DesiredRollout::Run => view.run(snapshot),
        DesiredRollout::Pause => view.pause(),
        DesiredRollout::Cancel => view.cancel(),
        DesiredRollout::Rollback => view.roll_back(),
    }
}

/// How a user ends, and why, in words.
type End = (TargetState, &'static str);

/// One rollout at one moment.
struct View<'a> {
    row: &'a RolloutRow,
    targets: &'a [RolloutTarget],
    /// For how long those under way have waited.
    waited: &'a BTreeMap<Uid, Duration>,
    /// For how long pulls of the image have failed.
    pull_failing: Duration,
    now: Timestamp,
}

impl View<'_> {
    fn run(&self, snapshot: &Snapshot) -> Plan<Action> {
        if self.is_under_way() {
            return self.wait();
        }
        if self.row.paused_itself() {
            let condition = Condition::not_ready(Reason::RolloutPaused, self.pause_message());
            return Plan::say(condition);
        }
        if self.row.pause_on_failure && self.count(TargetState::Failed) > 0 {
            return self.pause_itself(self.failures());
        }
        if self.row.is_unresolved() {
            return self.resolve(snapshot.image.as_ref());
        }
        let settled = self.without_a_move();
        if !settled.is_empty() {
            return self.act(settled);
        }
        if let Some(batch) = self.batch() {
            return self.act(vec![batch]);
        }
        if self.count(TargetState::Failed) > 0 {
            self.end(Phase::Failed)
        } else {
            self.end(Phase::Succeeded)
        }
    }

    /// Whose turn has come, but who needs no move.
    fn without_a_move(&self) -> Vec<Action> {
        let settle = |target: &RolloutTarget| match &target.container {
            None => Some((TargetState::Skipped, GONE)),
            Some(_) if self.has_the_image(target) => {
                Some((TargetState::Done, "it has this image already"))
            }
            Some(_) => None,
        };
        self.finish_alike(self.in_state(TargetState::Pending), settle)
    }

    /// Who is moved next: one that shall run, as long as nobody who shall run has shown that this image
    /// works; then as many as may be under way.
    fn batch(&self) -> Option<Action> {
        let pending: Vec<&RolloutTarget> = self
            .targets
            .iter()
            .filter(|target| target.state == TargetState::Pending || self.has_older(target))
            .collect();
        let desired_running = |target: &&RolloutTarget| {
            let container = target.container.as_ref();
            container.is_some_and(|container| container.desired_running)
        };
        let proven = self
            .in_state(TargetState::Done)
            .any(|target| target.image_id == self.row.facts.image_id && desired_running(&target));
        let next: Vec<&RolloutTarget> = if proven {
            let most = usize::try_from(self.row.max_unavailable).unwrap_or(1);
            pending.into_iter().take(most).collect()
        } else {
            let canary = pending.iter().copied().find(desired_running);
            canary.or(pending.first().copied()).into_iter().collect()
        };
        if next.is_empty() {
            return None;
        }
        let users = next.iter().map(|target| target.uid.clone()).collect();
        let names = next.iter().map(|target| target.name.clone()).collect();
        if !self.row.kind.changes_image() {
            return Some(Action::Release {
                step: self.step(),
                users,
                names,
                what: self.row.reference.clone(),
            });
        }
        let image = ImageChoice {
            reference: self.row.reference.clone(),
            image_id: self.row.facts.image_id.clone(),
            digest: self.row.facts.image_digest.clone(),
        };
        Some(Action::Move {
            step: self.step(),
            users,
            names,
            image,
            policy: ReadinessPolicy {
                health_timeout: self.row.health_timeout,
                min_ready: self.row.min_ready,
            },
        })
    }

    /// Whether the container has exactly what this attempt was resolved to.
    fn has_the_image(&self, target: &RolloutTarget) -> bool {
        self.row.kind.changes_image()
            && target.container.as_ref().is_some_and(|container| {
                container.image_ref == self.row.reference
                    && container.image_id.is_some()
                    && container.image_id == self.row.facts.image_id
            })
    }

    /// Whether it was done with what the reference meant in an earlier attempt, and nobody else has
    /// changed it since.
    fn has_older(&self, target: &RolloutTarget) -> bool {
        let Some(container) = &target.container else {
            return false;
        };
        self.row.kind.changes_image()
            && target.state == TargetState::Done
            && container.image_ref == self.row.reference
            && container.image_id != self.row.facts.image_id
            && (target.image_id.is_none() || container.image_id == target.image_id)
    }

    fn pause_itself(&self, why: String) -> Plan<Action> {
        let note = format!("paused: {why}");
        let facts = RolloutFacts {
            paused_attempt: self.row.attempt,
            phase: Phase::Paused,
            message: self.beside(&why),
            ..self.row.facts.clone()
        };
        self.act(vec![self.remember(facts, Some(note))])
    }

    fn pause(&self) -> Plan<Action> {
        let before = &self.row.facts;
        if before.phase != Phase::Paused || !before.message.ends_with(BY_HAND) {
            let facts = RolloutFacts {
                phase: Phase::Paused,
                message: self.beside(BY_HAND),
                ..before.clone()
            };
            return self.act(vec![self.remember(facts, Some(BY_HAND.to_owned()))]);
        }
        let condition = Condition::not_ready(Reason::RolloutPaused, self.pause_message());
        self.watching(Plan::say(condition))
    }

    fn cancel(&self) -> Plan<Action> {
        if let Some(plan) = self.enter(Phase::Cancelling, "cancelled by an administrator") {
            return plan;
        }
        if self.is_under_way() {
            return self.wait();
        }
        let pending = self.in_state(TargetState::Pending);
        let left = self.finish_alike(pending, |_| Some((TargetState::Cancelled, "")));
        if left.is_empty() {
            self.end(Phase::Cancelled)
        } else {
            self.act(left)
        }
    }

    /// Remembers that the whole has changed its way.
    fn enter(&self, phase: Phase, message: &str) -> Option<Plan<Action>> {
        if self.row.facts.phase == phase {
            return None;
        }
        let facts = RolloutFacts {
            phase,
            message: message.to_owned(),
            ..self.row.facts.clone()
        };
        Some(self.act(vec![self.remember(facts, Some(message.to_owned()))]))
    }

    fn end(&self, phase: Phase) -> Plan<Action> {
        let word = match phase {
            Phase::Succeeded => "ended",
            Phase::Failed => "ended with failures",
            Phase::RolledBack => "rolled back",
            Phase::Cancelled => "cancelled",
            Phase::Pulling
            | Phase::Rolling
            | Phase::Paused
            | Phase::RollingBack
            | Phase::Cancelling => "under way",
        };
        let mut message = format!("{word}: {}", self.progress());
        if self.count(TargetState::Failed) > 0 {
            message = format!("{message}; {}", self.failures());
        }
        // While it rolls, what is remembered in words is how the image was got.
        if self.row.facts.phase == Phase::Rolling && !self.row.facts.message.is_empty() {
            message = format!("{message}; {}", self.row.facts.message);
        }
        let facts = RolloutFacts {
            phase,
            message: message.clone(),
            finished_at: Some(self.now),
            ..self.row.facts.clone()
        };
        self.act(vec![self.remember(facts, Some(message))])
    }

    fn ended(&self) -> Plan<Action> {
        let message = &self.row.facts.message;
        let condition = if self.row.facts.phase == Phase::Failed {
            Condition::not_ready(Reason::RolloutFailed, message)
        } else {
            Condition::ready(Reason::Converged, message)
        };
        Plan::say(condition)
    }

    fn act(&self, actions: Vec<Action>) -> Plan<Action> {
        let condition = Condition::not_ready(Reason::Progressing, self.progress());
        Plan::act(actions, condition)
    }

    fn wait(&self) -> Plan<Action> {
        let condition = Condition::not_ready(Reason::Progressing, self.progress());
        self.watching(Plan::say(condition))
    }

    /// The containers of users who are under way wake the rollout; the conditions name the first.
    fn watching(&self, plan: Plan<Action>) -> Plan<Action> {
        let mut under_way = self.targets.iter().filter(|t| t.state.is_under_way());
        let Some(first) = under_way.next() else {
            return plan;
        };
        let mut plan = plan.waiting_for(Kind::Container, &first.uid, first.name.clone());
        if let Some(left) = self.next_judgement() {
            plan = plan.after(left);
        }
        let others = under_way.map(|target| (Kind::Container, target.uid.clone()));
        plan.waits_for.extend(others);
        if !self.row.kind.changes_image() {
            let under_way = self.targets.iter().filter(|t| t.state.is_under_way());
            let files = under_way.map(|target| (Kind::AgentConfig, target.uid.clone()));
            plan.waits_for.extend(files);
        }
        plan
    }

    /// What is said by now, after what stays true beside it: how the image was got, and why the rollout
    /// paused itself.
    fn beside(&self, message: &str) -> String {
        let facts = &self.row.facts;
        let stays = self.row.paused_itself() || facts.phase == Phase::Rolling;
        match facts.message.as_str() {
            before if stays && !before.is_empty() => format!("{before}; {message}"),
            _ => message.to_owned(),
        }
    }

    fn pause_message(&self) -> String {
        format!("{}; {}", self.row.facts.message, self.progress())
    }

    /// How far it is, in numbers.
    fn progress(&self) -> String {
        let all = self.targets.len();
        let mut text = if self.row.desired == DesiredRollout::Rollback {
            format!("{} of {all} back", self.count(TargetState::RolledBack))
        } else {
            format!("{} of {all} moved", self.count(TargetState::Done))
        };
        let under_way = self.targets.iter().filter(|t| t.state.is_under_way());
        for (count, what) in [
            (under_way.count(), "under way"),
            (self.count(TargetState::Failed), "failed"),
            (self.count(TargetState::Skipped), "left out"),
        ] {
            if count > 0 {
                text = format!("{text}, {count} {what}");
            }
        }
        text
    }

    /// Who failed, and why; the first of many.
    fn failures(&self) -> String {
        let mut failed = self.in_state(TargetState::Failed);
        let first = failed.next().map_or_else(String::new, |target| {
            format!("{} failed: {}", target.name, target.message)
        });
        let failures = match failed.count() {
            0 => first,
            more => format!("{first}; and {more} more"),
        };
        match self.row.way_back() {
            Some(command) => format!("{failures}; go back with `{command}`"),
            None => failures,
        }
    }

    fn in_state(&self, state: TargetState) -> impl Iterator<Item = &RolloutTarget> {
        self.targets.iter().filter(move |t| t.state == state)
    }

    fn count(&self, state: TargetState) -> usize {
        self.in_state(state).count()
    }

    fn is_under_way(&self) -> bool {
        self.targets.iter().any(|t| t.state.is_under_way())
    }

    fn step(&self) -> Step {
        Step {
            planned_for: self.row.generation,
        }
    }

    fn remember(&self, facts: RolloutFacts, note: Option<String>) -> Action {
        Action::Remember {
            step: self.step(),
            facts: Box::new(facts),
            note,
        }
    }

    fn put_back(&self, target: &RolloutTarget, state: TargetState, message: &str) -> Action {
        Action::PutBack {
            step: self.step(),
            user: target.uid.clone(),
            name: target.name.clone(),
            state,
            message: message.to_owned(),
        }
    }

    /// Ends users who are not under way, those who end alike in one step.
    fn finish_alike<'t>(
        &self,
        targets: impl Iterator<Item = &'t RolloutTarget>,
        end: impl Fn(&RolloutTarget) -> Option<End>,
    ) -> Vec<Action> {
        let mut alike: Vec<(End, Vec<&RolloutTarget>)> = Vec::new();
        for target in targets {
            let Some(end) = end(target) else {
                continue;
            };
            match alike.iter_mut().find(|(of, _)| *of == end) {
                Some((_, users)) => users.push(target),
                None => alike.push((end, vec![target])),
            }
        }
        let step = |((state, message), users): (End, Vec<&RolloutTarget>)| match users[..] {
            [one] => self.finish(one, state, message),
            _ => Action::FinishMany {
                step: self.step(),
                users: users.iter().map(|target| target.uid.clone()).collect(),
                names: users.iter().map(|target| target.name.clone()).collect(),
                state,
                message: message.to_owned(),
            },
        };
        alike.into_iter().map(step).collect()
    }

    fn finish(&self, target: &RolloutTarget, state: TargetState, message: &str) -> Action {
        Action::Finish {
            step: self.step(),
            user: target.uid.clone(),
            name: target.name.clone(),
            state,
            message: message.to_owned(),
        }
    }
}
