//! What must hold at every moment. The numbers are those of the invariants in the issue that asked
//! for this simulation: I1 one container, I2 no write lost or doubled, I3 honest statuses.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use engine::{
    Container, ContainerDetails, ContainerState, LABEL_OWNER, LABEL_RESTART_TOKEN, LABEL_UID,
};
use kit::Change;
use reconcilers::container::settings::{LABEL_CONFIG_DIGEST, LABEL_DEBUG};
use schema::condition::{ConditionStatus, ConditionType, Reason, find};
use schema::ids::{Epoch, Generation, Kind, Timestamp, Uid};
use schema::object::StatusRow;

use crate::model::{Common, Model, Wanted};
use crate::report::Trace;

/// The instance that the service is.
pub const OWNER: &str = "simulated-instance";

/// The variable in which containers carry the number of their adapter.
pub const ADAPTER_VARIABLE: &str = "ADAPTER_NUMBER";

/// How long a container may count as running after its end when the engine's event of it was lost: two
/// full passes, of which the first may fail.
const LATEST_FOUND: Duration = Duration::from_secs(180);

/// What a container was made with, as far as statuses are judged by it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Made {
    token: String,
    memory_bytes: i64,
    debug: bool,
    files: String,
    adapter: Option<String>,
}

/// When containers of one making ran the last time.
#[derive(Debug, Clone, Copy)]
struct Run {
    since: Timestamp,
    /// `None`: one runs.
    ended: Option<Timestamp>,
    /// It did not end because the service asked it to.
    by_hand: bool,
}

/// Watches everything and judges it.
#[derive(Debug, Default)]
pub struct Monitor {
    pub model: Model,
    pub trace: Trace,
    /// The first thing that was broken.
    pub violation: Option<String>,
    /// Changes of the world, and rows written by reconcilers.
    pub changes: u64,
    pub writes: u64,
    now: Timestamp,
    start: Timestamp,
    seen: BTreeMap<String, (String, ContainerState)>,
    /// Users who have a container.
    present: BTreeSet<Uid>,
    foreign: BTreeMap<String, (String, ContainerState)>,
    expects_foreign: bool,
    /// What each user's containers that have run were made with, and when the last such one did.
    ran: BTreeMap<Uid, BTreeMap<Made, Run>>,
    /// When each user was last seen without a running container; absent: for ever.
    running_since: BTreeMap<Uid, Option<Timestamp>>,
    observed: BTreeMap<(Kind, Uid), (Generation, Epoch)>,
    /// When somebody last had a hand on the engine.
    hand_at: Option<Timestamp>,
}

pub fn uid_of(container: &Container) -> Option<Uid> {
    let uid = container.labels.get(LABEL_UID);
    let uid = uid.filter(|_| is_ours(container))?;
    Some(Uid::from(uid.clone()))
}

/// Whether the service made it.
pub fn is_ours(container: &Container) -> bool {
    container.labels.get(LABEL_OWNER).map(String::as_str) == Some(OWNER)
}

impl Monitor {
    pub fn new(start: Timestamp, keep_all: bool) -> Self {
        Self {
            start,
            now: start,
            trace: Trace::new(keep_all),
            ..Self::default()
        }
    }

    /// To be called before anything else is told.
    pub fn at(&mut self, now: Timestamp) -> &mut Self {
        self.now = now;
        self
    }

    pub fn line(&mut self, text: &str) {
        let millis = self.now.since(self.start).as_millis();
        self.trace
            .line(u64::try_from(millis).unwrap_or(u64::MAX), text);
    }

    pub fn broken(&mut self, what: String) {
        self.line(&format!("BROKEN {what}"));
        self.violation.get_or_insert(what);
    }

    /// The next container that appears without our label was made by hand.
    pub fn expect_foreign(&mut self) {
        self.expects_foreign = true;
    }

    /// Whatever ends now does so by hand, or with the engine.
    pub fn hand(&mut self) {
        self.hand_at = Some(self.now);
    }

    /// A foreign container is about to be removed by hand.
    pub fn forget_foreign(&mut self, id: &str) {
        self.foreign.remove(id);
    }

    pub fn foreign_ids(&self) -> Vec<String> {
        self.foreign.keys().cloned().collect()
    }

    /// The world has changed.
    pub fn world(&mut self, containers: &mut dyn Iterator<Item = &ContainerDetails>) {
        let mut seen = BTreeMap::new();
        let mut running: BTreeMap<Uid, u32> = BTreeMap::new();
        let now = self.now;
        let before = self.ran.clone();
        for run in self.ran.values_mut().flat_map(BTreeMap::values_mut) {
            if run.ended.is_none() {
                run.ended = Some(now);
                run.by_hand = self.hand_at == Some(now);
            }
        }
        let mut strangers = BTreeSet::new();
        self.present.clear();
        for details in containers {
            let container = &details.container;
            self.present.extend(uid_of(container));
            let look = (container.name.clone(), container.state);
            if !is_ours(container) {
                strangers.insert(container.id.clone());
                self.stranger(&container.id, &look);
            } else if (container.state.is_up() || container.state == ContainerState::Removing)
                && let Some(uid) = uid_of(container)
            {
                *running.entry(uid.clone()).or_default() += 1;
                let made = made(details);
                let goes_on = before.get(&uid).and_then(|runs| runs.get(&made));
                let run = goes_on.copied().filter(|run| run.ended.is_none());
                let run = run.unwrap_or(Run {
                    since: now,
                    ended: None,
                    by_hand: false,
                });
                self.ran.entry(uid).or_default().insert(made, run);
            }
            seen.insert(container.id.clone(), look);
        }
        let lost = self.foreign.keys().find(|id| !strangers.contains(*id));
        if let Some(lost) = lost.cloned() {
            self.broken(format!("I1: the foreign container {lost} was removed"));
        }
        if let Some((uid, _)) = running.iter().find(|(_, count)| **count > 1) {
            self.broken(format!("I1: two containers of {uid} run at once"));
        }
        for uid in running.keys() {
            let since = self.running_since.entry(uid.clone()).or_default();
            since.get_or_insert(now);
        }
        for (uid, since) in &mut self.running_since {
            if !running.contains_key(uid) {
                *since = None;
            }
        }
        self.difference(seen);
    }

    fn stranger(&mut self, id: &str, look: &(String, ContainerState)) {
        match self.foreign.get(id) {
            None if self.expects_foreign => {
                self.expects_foreign = false;
                self.foreign.insert(id.to_owned(), look.clone());
            }
            None => self.broken(format!("I1: {} was made without our label", look.0)),
            Some(known) if known != look => {
                self.broken(format!("I1: the foreign container {} was touched", known.0));
            }
            Some(_) => {}
        }
    }

    fn difference(&mut self, seen: BTreeMap<String, (String, ContainerState)>) {
        let old = std::mem::take(&mut self.seen);
        let short = |id: &str| id.get(..6).unwrap_or(id).to_owned();
        for (id, look) in &seen {
            match old.get(id) {
                Some(before) if before == look => continue,
                Some(before) => {
                    let text = format!(
                        "    world: {} {} {} -> {} {}",
                        short(id),
                        before.0,
                        before.1,
                        look.0,
                        look.1
                    );
                    self.line(&text);
                }
                None => self.line(&format!("    world: {} + {} {}", short(id), look.0, look.1)),
            }
            self.changes += 1;
        }
        for (id, before) in old.iter().filter(|(id, _)| !seen.contains_key(*id)) {
            self.line(&format!("    world: {} - {}", short(id), before.0));
            self.changes += 1;
        }
        self.seen = seen;
    }

    /// A reconciler has written something.
    pub fn store(&mut self, change: &Change) {
        self.writes += 1;
        match change {
            Change::Status {
                kind,
                uid,
                status,
                epoch,
                generation,
                saved,
            } => self.status(*kind, uid, status, *epoch, *generation, *saved),
            Change::Facts { uid, facts } => {
                let failure = facts.failure.as_deref().unwrap_or_default();
                if failure.contains("after it was ready") {
                    self.trace.count("short-lived replacement");
                }
                let text = format!(
                    "    facts {uid}: ready {} crashes {} failed {}",
                    facts.ready_at.is_some(),
                    facts.crash_count,
                    facts.failed_count
                );
                self.line(&text);
            }
            Change::AgentConfigFacts { uid, facts, bumped } => {
                let text = format!(
                    "    files {uid}: generation {} refused {:?} bumped {bumped:?}",
                    facts.generation, facts.refused
                );
                self.line(&text);
                let (now, common) = (self.now, self.model.common());
                if bumped.is_some()
                    && let Some(account) = self.model.accounts.get_mut(uid)
                {
                    let files = facts.restart_digest.clone().unwrap_or_default();
                    account.push(now, common, |wanted| wanted.files = files);
                    self.trace.count("files changed");
                }
            }
            Change::Moved { uid, generation } => {
                self.line(&format!("    moved {uid} {generation}"));
                self.trace.count("moved");
                let (now, common) = (self.now, self.model.common());
                if let Some(account) = self.model.accounts.get_mut(uid) {
                    account.push(now, common, |_| {});
                    if account.container_generation() != generation.0 {
                        self.broken(format!("I2: the move of {uid} is not one write more"));
                    }
                }
            }
            Change::AdapterInstalled { version } => {
                self.line(&format!("    adapter {version}"));
                self.trace.count("adapter installed");
                let (now, number) = (self.now, number_of(version));
                // A newer one may have come between its fetch and its installation.
                if number > self.model.published || number <= self.model.adapter {
                    self.broken(format!("I2: adapter {version} was installed"));
                }
                self.model.adapter = number;
                self.model.note_common(now);
                for account in self.model.accounts.values_mut().filter(|a| !a.deleted) {
                    account.user_generation += 1;
                }
            }
            Change::FinalizerAdded { kind, uid } => {
                self.line(&format!("    finalizer {kind}/{uid}"));
            }
            Change::Purged { kind, uid } => {
                self.observed.remove(&(*kind, uid.clone()));
                let wanted_gone = self
                    .model
                    .accounts
                    .get(uid)
                    .is_none_or(|account| account.deleted);
                if !wanted_gone {
                    self.broken(format!("I2: {kind}/{uid} was purged, nobody deleted it"));
                }
                if *kind == Kind::Container {
                    self.trace.count("purge");
                    // What follows is the archive, which nobody may still write into.
                    if self.present.contains(uid) {
                        self.broken(format!(
                            "I1: {uid} was purged before its container was gone"
                        ));
                    }
                }
                self.line(&format!("    purged {kind}/{uid}"));
            }
            Change::Event {
                kind,
                uid,
                action,
                message,
            } => {
                if message.contains("unresponsive, stopped") {
                    self.trace.count("unresponsive");
                }
                self.line(&format!("    event {kind}/{uid} {action}: {message}"));
            }
        }
    }

    fn status(
        &mut self,
        kind: Kind,
        uid: &Uid,
        status: &StatusRow,
        epoch: Epoch,
        generation: Option<Generation>,
        saved: bool,
    ) {
        let ready = find(&status.conditions, ConditionType::Ready);
        let text = format!(
            "    status {kind}/{uid} g{} e{} {} failures {}{}",
            status.observed_generation,
            epoch.0,
            ready.map_or("none".to_owned(), |ready| format!(
                "{}/{} {}",
                ready.status, ready.reason, ready.message
            )),
            status.failures,
            if saved { "" } else { " REFUSED" }
        );
        self.line(&text);
        if !saved {
            self.trace.count("status refused");
            return;
        }
        let seen = status.observed_generation;
        if generation.is_none_or(|generation| seen > generation) {
            self.broken(format!(
                "I3: {kind}/{uid} observed generation {seen}, which nobody wrote"
            ));
        }
        let key = (kind, uid.clone());
        if let Some((before, by)) = self.observed.insert(key, (seen, epoch))
            && (before > seen || by > epoch)
        {
            self.broken(format!("I3: the status of {kind}/{uid} moved back"));
        }
        let Some(ready) = ready else {
            // Paused before anybody has looked.
            if find(&status.conditions, ConditionType::Paused).is_some() {
                return;
            }
            return self.broken(format!("I3: {kind}/{uid} has no Ready"));
        };
        if ready.reason == Reason::Panicked {
            self.broken(format!("a pass over {kind}/{uid} panicked"));
        }
        if ready.reason == Reason::NoProgress {
            self.trace.count("stalled");
        }
        if ready.reason == Reason::ReplacementFailed {
            self.trace.count("replacement failed");
        }
        if kind == Kind::Rollout && uid.as_str().starts_with("step-") {
            match ready.reason {
                Reason::RolloutPaused => self.trace.count("change paused"),
                Reason::Converged => self.trace.count("change in steps"),
                _ => {}
            }
        }
        if ready.reason == Reason::CrashLoop {
            self.trace.count("crash loop");
        }
        if kind == Kind::SkillSet {
            let is_ready = ready.status == ConditionStatus::True;
            let now = self.now;
            self.model.skills.said(uid, seen, is_ready, now);
            match ready.reason {
                Reason::NameConflict => self.trace.count("skill conflict"),
                Reason::Converged => self.trace.count("skills ready"),
                _ => {}
            }
        }
        if kind == Kind::Container && ready.status == ConditionStatus::True {
            self.claim(uid, seen, ready.reason);
        }
    }

    /// A container is said to be as desired: was it seen so lately, and since it was last asked
    /// to stop?
    fn claim(&mut self, uid: &Uid, generation: Generation, reason: Reason) {
        let Some(account) = self.model.accounts.get(uid) else {
            return self.broken(format!("I3: {uid} is ready, but nobody created it"));
        };
        let Some(wanted) = account.at(generation).cloned() else {
            return self.broken(format!(
                "I2: {uid} has a generation {generation} that nobody wrote"
            ));
        };
        let expected = if wanted.desired_running() {
            Reason::Running
        } else {
            Reason::Stopped
        };
        if reason != expected {
            return self.broken(format!(
                "I3: {uid} is said to be {reason}, but {expected} was asked for"
            ));
        }
        if wanted.desired_running() {
            // Configuration is read after the row and may be newer, which makes the status one that is
            // behind, not ahead.
            // So may the adapter be.
            let later = account.since(generation);
            let own = later.iter().map(|later| Common {
                memory_mb: later.memory_mb,
                adapter: later.adapter,
            });
            // One that waits for its turn may have been made anew meanwhile.
            let all = own.chain(self.model.commons_since(wanted.at));
            let (memory, adapters): (BTreeSet<i64>, BTreeSet<u32>) =
                all.map(|common| (common.memory_mb, common.adapter)).unzip();
            let newer = memory.into_iter().flat_map(|memory_mb| {
                let wanted = wanted.clone();
                adapters.iter().map(move |adapter| Wanted {
                    memory_mb,
                    adapter: *adapter,
                    ..wanted.clone()
                })
            });
            // A container that ended by itself or by hand is found missing by the next listing, at the
            // latest. One that was asked to end before is known to be gone.
            let stops: Vec<Timestamp> = account.stops_before(generation).collect();
            let (now, asked) = (self.now, wanted.at);
            let counts = |run: &Run| {
                run.ended.is_none_or(|ended| {
                    // Nobody obeys at once: who ended at the very moment did so by itself.
                    let asked_to_end = |stop: &Timestamp| (run.since..ended).contains(stop);
                    let obeyed = !run.by_hand && ended < asked && stops.iter().any(asked_to_end);
                    !obeyed && now.since(ended) <= LATEST_FOUND
                })
            };
            let ran = self.ran.get(uid);
            let ran = |wanted: Wanted| {
                ran.and_then(|ran| ran.get(&of(&wanted)))
                    .is_some_and(counts)
            };
            if !newer.into_iter().any(ran) {
                self.broken(format!(
                    "I3: {uid} is said to run as asked for, but does not: {wanted:?}"
                ));
            }
            self.trace.count("ready");
        } else {
            let since = self.running_since.get(uid).copied().flatten();
            if since.is_some_and(|since| since <= wanted.at) {
                self.broken(format!("I3: {uid} is said to be stopped, but still runs"));
            }
            self.trace.count("stopped");
        }
    }
}

fn made(details: &ContainerDetails) -> Made {
    let labels = &details.container.labels;
    Made {
        token: labels.get(LABEL_RESTART_TOKEN).cloned().unwrap_or_default(),
        memory_bytes: details.settings.memory_bytes,
        debug: labels.contains_key(LABEL_DEBUG),
        files: labels.get(LABEL_CONFIG_DIGEST).cloned().unwrap_or_default(),
        adapter: details.settings.environment.get(ADAPTER_VARIABLE).cloned(),
    }
}

fn of(wanted: &Wanted) -> Made {
    Made {
        token: wanted.token.clone(),
        memory_bytes: wanted.memory_bytes(),
        debug: wanted.debug,
        files: wanted.files.clone(),
        adapter: Some(wanted.adapter.to_string()),
    }
}

/// The number in the version of a published adapter.
fn number_of(version: &str) -> u32 {
    let number = version.rsplit('.').next();
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::ContainerSettings;
    use kit::engine::FakeEngine;
    use schema::clock::ManualClock;

    use super::*;
    use crate::model::Account;

    /// Judges "it runs" of a container that ended at second 20, was asked for at the first of these
    /// seconds, and to stop and to run again at the others.
    fn judge(writes: &[(u64, bool)], told_at: u64) -> Option<String> {
        judge_end(writes, told_at, false)
    }

    fn judge_end(writes: &[(u64, bool)], told_at: u64, by_hand: bool) -> Option<String> {
        let second = |n: u64| Timestamp::from_secs(0).plus(Duration::from_secs(n));
        let uid = Uid::from("u".to_owned());
        let wanted = |(at, running): &(u64, bool)| Wanted {
            running: *running,
            disabled: false,
            debug: false,
            token: String::new(),
            own_memory_mb: None,
            memory_mb: 0,
            adapter: 0,
            files: String::new(),
            at: second(*at),
        };
        let mut monitor = Monitor::new(second(0), false);
        let account = Account {
            name: "ada".parse().unwrap(),
            wanted: writes.iter().map(wanted).collect(),
            user_generation: 1,
            deleted: false,
            paused: [false; 2],
            files: Vec::new(),
            saved: None,
            own: None,
        };
        monitor.model.accounts.insert(uid.clone(), account);
        let fake = FakeEngine::new(Arc::new(ManualClock::new(second(0))));
        let labels = [(LABEL_OWNER, OWNER), (LABEL_UID, "u")];
        let settings = ContainerSettings {
            labels: labels
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            environment: [(ADAPTER_VARIABLE.to_owned(), "0".to_owned())].into(),
            ..ContainerSettings::default()
        };
        fake.hand_create("ada", &settings).unwrap();
        let mut container = fake.container("ada").unwrap();
        container.container.state = ContainerState::Running;
        monitor.at(second(10)).world(&mut [&container].into_iter());
        monitor.at(second(20));
        if by_hand {
            monitor.hand();
        }
        monitor.world(&mut [].into_iter());
        let generation = Generation(i64::try_from(writes.len()).unwrap());
        monitor
            .at(second(told_at))
            .claim(&uid, generation, Reason::Running);
        monitor.violation
    }

    #[test]
    fn what_ran_before_it_was_stopped_does_not_count_after_the_next_start() {
        let too_early = judge(&[(1, true), (15, false), (25, true)], 30);
        assert!(too_early.unwrap().contains("does not"));
        // Started again before it was stopped.
        assert_eq!(judge(&[(1, true), (15, false), (18, true)], 30), None);
        // It ended by itself, which is found out by a listing; also when it was to stop just then.
        assert_eq!(judge(&[(1, true), (20, false), (25, true)], 30), None);
        // The engine ended it, after it was to stop and before anybody could obey.
        let writes = [(1, true), (15, false), (25, true)];
        assert_eq!(judge_end(&writes, 30, true), None);
        assert_eq!(judge(&[(1, true)], 30), None);
        assert!(judge(&[(1, true)], 1000).is_some());
    }
}
