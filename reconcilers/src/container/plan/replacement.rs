//! One container takes the place of another, and the way back.

use std::time::Duration;

use engine::{
    Container, ContainerDetails, ContainerSettings, ContainerState, LABEL_RESTART_TOKEN,
    LABEL_SPEC_DIGEST,
};
use schema::condition::{Condition, Reason};
use schema::container::{ContainerEnd, ContainerFacts};
use schema::live::Loss;

use super::super::evidence::exit_time;
use super::super::settings::LABEL_CONFIG_DIGEST;
use super::{
    Action, LOOK_AGAIN, Running, SHORT, act, forgotten, remove, rename, save_facts, say_waiting,
    start, stop,
};
use crate::runtime::Plan;
use crate::runtime::backoff::doubled;

const FIRST_RETRY_OF_REPLACEMENT: Duration = Duration::from_secs(5 * 60);
const LONGEST_RETRY_OF_REPLACEMENT: Duration = Duration::from_secs(60 * 60);
/// Who saves again and again is answered by one restart for all of that, not by one for each.
const REST: Duration = Duration::from_secs(2);

/// Longest time that the engine may take to start a replacement: its image is there, and the previous container does not serve.
pub(in crate::container) const START_LIMIT: Duration = Duration::from_secs(2 * 60);
/// What is said of a failure of which nothing is known.
const UNKNOWN: &str = "the replacement did not become ready";

impl Running<'_> {
    /// The container is not what it should be.
    pub(super) fn replace(
        &self,
        base: &Container,
        next: Option<&Container>,
        wanted: &ContainerSettings,
    ) -> Plan<Action> {
        if let Some(noted) = self.note_end_before_replacement(base) {
            return noted;
        }
        let label = |key: &str| base.labels.get(key).map_or("", String::as_str);
        let wanted_digest = digest_of(wanted);
        let debugging = self.row.debug || base.debug();
        let by_hand = self.seen.drift(base).is_some();
        let facts = &self.row.facts;
        let mut actions = Vec::new();
        let other_home = !self.seen.mounts_home(base);
        let fresh = self.is_made_afresh(base);
        if !fresh && facts.failed_digest.as_deref() == Some(wanted_digest) {
            let delay = doubled(
                FIRST_RETRY_OF_REPLACEMENT,
                LONGEST_RETRY_OF_REPLACEMENT,
                facts.failed_count,
            );
            let at = facts.failed_at.unwrap_or(self.now);
            if let Some(left) = self.left_of(at, delay) {
                return self.keep_previous(base, left);
            }
            actions.push(Action::SaveFacts(Box::new(ContainerFacts {
                failed_digest: None,
                ..facts.clone()
            })));
        }
        if self.row.files.refused == Some(Reason::NoMigrationPath)
            && let Some(blocked) = self.blocked()
        {
            // That may last: what is there goes on with its old image.
            return match base.state {
                ContainerState::Starting
                | ContainerState::Running
                | ContainerState::Exited
                | ContainerState::Created => self.keep_on(base, blocked),
                ContainerState::Paused
                | ContainerState::Dead
                | ContainerState::Restarting
                | ContainerState::Removing => blocked,
            };
        }
        if fresh || base.state != ContainerState::Running {
            if let Some(blocked) = self.blocked() {
                return blocked;
            }
            let only_afresh = !debugging && !by_hand && label(LABEL_SPEC_DIGEST) == wanted_digest;
            if only_afresh && let Some(left) = self.rest_of(base) {
                let message = "the container was started a moment ago and is replaced shortly";
                return Plan::say(Condition::not_ready(Reason::Progressing, message)).after(left);
            }
            let mut actions = vec![Action::SaveFacts(Box::new(forgotten(
                &self.row.facts,
                self.now,
            )))];
            if other_home {
                actions.push(Action::NoteReplacedHome);
            }
            actions.extend(next.map(remove));
            if base.state.is_up() {
                actions.push(stop(base));
            }
            actions.push(remove(base));
            return act(actions, "replacing the container");
        }
        match next {
            Some(next) if self.seen.fits(next, self.row) => {
                // Put aside before it is stopped: the name may be taken, and then the old one goes on.
                actions.extend([
                    rename(base, &self.names.prev),
                    stop(base),
                    rename(next, &self.names.base),
                    start(next),
                ]);
            }
            Some(next) => actions.push(remove(next)),
            None => {
                if let Some(blocked) = self.blocked() {
                    return blocked;
                }
                actions.extend(self.verify_data_dir(wanted));
                actions.push(Action::Create {
                    name: self.names.next.clone(),
                    settings: Box::new(wanted.clone()),
                });
            }
        }
        act(actions, "replacing the container")
    }

    /// Reports that a container goes before another one is made, to which there is no way back.
    pub(super) fn is_made_afresh(&self, base: &Container) -> bool {
        let label = |key: &str| base.labels.get(key).map_or("", String::as_str);
        let other_token = label(LABEL_RESTART_TOKEN) != self.row.restart_token;
        // What the files say goes with the container that reads them.
        let digest = self.row.files.restart_digest.as_deref().unwrap_or("");
        let other_files = label(LABEL_CONFIG_DIGEST) != digest;
        // It writes into a directory that is gone, and a way back would lead there.
        let other_home = !self.seen.mounts_home(base);
        let debugging = self.row.debug || base.debug();
        let by_hand = self.seen.drift(base).is_some();
        other_token || other_files || other_home || debugging || by_hand
    }

    /// What is left of the rest that a container has after its start before the same is made afresh.
    fn rest_of(&self, base: &Container) -> Option<Duration> {
        let details = self.seen.details.get(&base.id);
        let started_at = details.map_or(self.row.facts.started_at, |d| d.started_at);
        let at = started_at.unwrap_or(base.created_at);
        self.left_of(at, REST)
    }

    /// The replacement has failed: the previous container is kept going until the next attempt.
    pub(super) fn keep_previous(&self, base: &Container, left: Duration) -> Plan<Action> {
        let why = self.row.facts.failure_text();
        let why = why.as_deref().unwrap_or(UNKNOWN);
        let failed = Condition::not_ready(
            Reason::ReplacementFailed,
            format!("the previous container runs, since {why}"),
        );
        self.keep_on(base, Plan::say(failed).after(left))
    }

    /// The container in use is not what it should be and goes on all the same; `said`, while it runs.
    fn keep_on(&self, base: &Container, said: Plan<Action>) -> Plan<Action> {
        match base.state {
            ContainerState::Running => {}
            ContainerState::Exited => return self.exited(base),
            ContainerState::Created => {
                return act(vec![start(base)], "putting the previous container back");
            }
            ContainerState::Starting
            | ContainerState::Paused
            | ContainerState::Dead
            | ContainerState::Restarting
            | ContainerState::Removing => return self.keep(base),
        }
        if self.seen.ready == Some(true) {
            let facts = self.facts_of_run(base);
            if facts != self.row.facts {
                return act(
                    vec![Action::SaveFacts(Box::new(facts))],
                    "the previous container is back",
                );
            }
        }
        said
    }

    /// The old container is aside: the new one takes over, or the old one comes back.
    pub(super) fn finish_replacement(
        &self,
        prev: &Container,
        base: Option<&Container>,
        next: Option<&Container>,
        wanted: &ContainerSettings,
    ) -> Plan<Action> {
        let going_back = self.row.facts.failed_digest.as_deref() == Some(digest_of(wanted));
        let Some(base) = base else {
            return match next {
                Some(next) if self.seen.fits(next, self.row) && !going_back => act(
                    vec![rename(next, &self.names.base), start(next)],
                    "replacing the container",
                ),
                next => {
                    let mut actions: Vec<Action> = next.map(remove).into_iter().collect();
                    actions.extend([rename(prev, &self.names.base), start(prev)]);
                    act(actions, "putting the previous container back")
                }
            };
        };
        let details = self.seen.details.get(&base.id);
        let fits = self.seen.fits(base, self.row) || self.is_held(base);
        match base.state {
            ContainerState::Running if fits && self.seen.ready == Some(true) => {
                self.keep_until_proven(prev, base)
            }
            ContainerState::Running if fits && !going_back => {
                let facts = &self.row.facts;
                if self.seen.waited < self.seen.readiness_timeout {
                    if self.is_known_ready(base) {
                        let forgotten = save_facts(forgotten(facts, self.now));
                        let message = "the replacement was ready and does not answer any more";
                        return act(vec![forgotten], message);
                    }
                    let message = "the replacement runs, not ready yet";
                    return Plan::say(Condition::not_ready(Reason::NotReady, message)).after(SHORT);
                }
                self.put_back(prev, base, wanted)
            }
            ContainerState::Starting
                if fits && !going_back && self.seen.starting_for < START_LIMIT =>
            {
                let left = START_LIMIT.saturating_sub(self.seen.starting_for);
                say_waiting(base, "the engine is starting the replacement")
                    .after(left.min(LOOK_AGAIN))
            }
            ContainerState::Created if fits && !going_back && !failed_to_start(details) => {
                act(vec![start(base)], "replacing the container")
            }
            ContainerState::Exited if fits && !going_back && ended_with_engine(details) => {
                act(vec![start(base)], "starting the replacement again")
            }
            _ if fits => self.put_back(prev, base, wanted),
            // What is wanted has changed meanwhile: neither is it.
            _ => {
                let mut actions = Vec::new();
                if base.state.is_up() {
                    actions.push(stop(base));
                }
                actions.extend([remove(base), rename(prev, &self.names.base), start(prev)]);
                act(actions, "putting the previous container back")
            }
        }
    }

    /// The replacement has been observed ready, and is remembered as such.
    fn is_known_ready(&self, base: &Container) -> bool {
        let facts = &self.row.facts;
        facts.engine_id.as_ref() == Some(&base.id) && facts.ready_at.is_some()
    }

    /// The replacement is ready and serves: the previous container goes once that has lasted.
    fn keep_until_proven(&self, prev: &Container, base: &Container) -> Plan<Action> {
        let min_ready = self.seen.min_ready;
        if min_ready.is_zero() && !self.is_known_ready(base) {
            return act(vec![remove(prev)], "removing the replaced container");
        }
        if let Some(save) = self.remember(self.facts_of_run(base)) {
            return act(vec![save], "the replacement became ready");
        }
        let seconds = min_ready.as_secs();
        let message = format!(
            "running and ready; the previous container is kept until this one has been ready for {seconds} s"
        );
        let ready = Condition::ready(Reason::Running, message);
        let left = min_ready.saturating_sub(self.seen.ready_for);
        if !left.is_zero() {
            return Plan::say(ready).after(left);
        }
        let mut steps = vec![remove(prev)];
        steps.extend(self.remember(self.facts_of_success(base)));
        Plan::tidy(steps, ready)
    }

    pub(super) fn put_back(
        &self,
        prev: &Container,
        base: &Container,
        wanted: &ContainerSettings,
    ) -> Plan<Action> {
        let facts = &self.row.facts;
        let digest = digest_of(wanted);
        let mut actions = Vec::new();
        if facts.failed_digest.as_deref() != Some(digest) {
            let failure = self.seen.end.as_ref();
            let details = self.seen.details.get(&base.id);
            let ended = details.filter(|_| base.state == ContainerState::Exited);
            let end = ContainerEnd {
                at: ended.map_or(self.now, |_| exit_time(base, ended)),
                exit_code: ended.and_then(|details| details.exit_code),
                cause: failure.map_or(UNKNOWN, |failure| &failure.cause).to_owned(),
                log: failure.map_or_else(String::new, |failure| failure.log.join("\n")),
            };
            let noted = ContainerFacts {
                failed_digest: Some(digest.to_owned()),
                failed_at: Some(self.now),
                failed_count: facts.failed_count.saturating_add(1),
                failure: Some(end.cause.clone()),
                failure_log: Some(end.log.clone()),
                ..forgotten(facts, self.now)
            };
            actions.push(Action::NoteEnd {
                facts: Box::new(noted),
                end: Box::new(end),
            });
        }
        if base.state.is_up() {
            actions.push(stop(base));
        }
        actions.extend([remove(base), rename(prev, &self.names.base), start(prev)]);
        act(actions, "putting the previous container back")
    }
}

/// The engine tried to start it and could not.
pub(in crate::container) fn failed_to_start(details: Option<&ContainerDetails>) -> bool {
    details.is_some_and(|d| !d.error.is_empty() || d.exit_code.is_some_and(|code| code != 0))
}

/// The engine's own end is no failure of a replacement.
pub(in crate::container) fn ended_with_engine(details: Option<&ContainerDetails>) -> bool {
    details.is_some_and(|details| details.loss == Some(Loss::EngineStopped))
}

fn digest_of(settings: &ContainerSettings) -> &str {
    settings
        .labels
        .get(LABEL_SPEC_DIGEST)
        .map_or("", String::as_str)
}
