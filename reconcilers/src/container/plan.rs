//! Decides what to do next for one user's container. Pure: no IO, clock, randomness or logging.
//!
//! The way of a replacement, each arrow one observable state, so that a service killed anywhere goes
//! on from what it finds:
//!
//! ```text
//! base(old, running)                      create next
//! base(old, running)  next(created)       stop base, rename base → prev, rename next → base, start base
//! prev(old, stopped)  base(new, running)  wait until ready, remove prev
//! prev(old, stopped)  base(new, broken)   note the failure, remove base, rename prev → base, start base
//! ```

use std::time::Duration;

use schema::condition::{Condition, Reason};
use schema::config::PullPolicy;
use schema::container::{ContainerFacts, ContainerRow};
use schema::home::HomeState;
use schema::ids::Timestamp;

use super::names::Names;
use super::observe::{Seen, Snapshot, World};
use super::pull::PullState;
use super::settings::LABEL_DEBUG;
use crate::drivers::docker::{
    Container, ContainerDetails, ContainerSettings, ContainerState, LABEL_RESTART_TOKEN,
    LABEL_SPEC_DIGEST,
};
use crate::engine::data_dir::ProbeState;
use crate::engine::plan::{NetworkState, foreign_network};
use crate::engine::view::NETWORK;
use crate::runtime::{Plan, Requeue};

/// One step. Nothing in it is left to choose.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Notes that this reconciler must clean up before the user may be purged.
    AddFinalizer,
    /// Cleaning up is done: the container's rows may go.
    ReleaseFinalizer,
    /// Remembers what was observed.
    SaveFacts(Box<ContainerFacts>),
    /// Starts (or joins) the pull of an image.
    StartPull {
        /// The reference.
        reference: String,
    },
    /// Proves that engine and service see the same data directory.
    VerifyDataDir {
        /// An image that is on the engine.
        image: String,
    },
    /// Creates a container.
    Create {
        /// Its name.
        name: String,
        /// What it is made of.
        settings: Box<ContainerSettings>,
    },
    /// Starts a container.
    Start {
        /// Id, or the name of one that was created just before.
        container: String,
    },
    /// Stops a container.
    Stop {
        /// Id.
        container: String,
    },
    /// Removes a container.
    Remove {
        /// Id.
        container: String,
    },
    /// Renames a container.
    Rename {
        /// Id.
        container: String,
        /// The new name.
        name: String,
    },
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Ids are long; names are told in full.
        let short = |id: &str| {
            let digits = id.strip_prefix("sha256:").unwrap_or(id);
            let is_id = digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit());
            digits.get(..12).filter(|_| is_id).unwrap_or(id).to_owned()
        };
        match self {
            Self::AddFinalizer => f.write_str("take responsibility for cleaning up"),
            Self::ReleaseFinalizer => f.write_str("cleaning up is done"),
            Self::SaveFacts(_) => f.write_str("remember what was observed"),
            Self::StartPull { reference } => write!(f, "pull {reference}"),
            Self::VerifyDataDir { image } => {
                write!(f, "probe the data directory with {}", short(image))
            }
            Self::Create { name, settings } => {
                write!(f, "create {name} from {}", short(&settings.image))
            }
            Self::Start { container } => write!(f, "start {}", short(container)),
            Self::Stop { container } => write!(f, "stop {}", short(container)),
            Self::Remove { container } => write!(f, "remove {}", short(container)),
            Self::Rename { container, name } => {
                write!(f, "rename {} to {name}", short(container))
            }
        }
    }
}

/// An exit this soon after a start counts as a crash.
pub const CRASH_WINDOW: Duration = Duration::from_secs(10 * 60);
/// From this many crashes in a row on, it is a crash loop.
pub const CRASH_LOOP_FROM: u32 = 3;
const LONGEST_CRASH_DELAY: Duration = Duration::from_secs(5 * 60);
const FIRST_RETRY_OF_REPLACEMENT: Duration = Duration::from_secs(5 * 60);
const LONGEST_RETRY_OF_REPLACEMENT: Duration = Duration::from_secs(60 * 60);
const FIRST_RETRY_OF_PULL: Duration = Duration::from_secs(5);
const SHORT: Duration = Duration::from_millis(300);

/// How long to wait before start number `count + 1`: the first exit is repaired at once, then
/// 2 s, 4 s, … up to five minutes.
pub fn crash_delay(count: u32) -> Duration {
    match count {
        0 | 1 => Duration::ZERO,
        n => Duration::from_secs(1_u64 << (n - 1).min(16)).min(LONGEST_CRASH_DELAY),
    }
}

fn retry_delay(first: Duration, most: Duration, failures: u32) -> Duration {
    first
        .saturating_mul(1_u32 << failures.saturating_sub(1).min(16))
        .min(most)
}

fn say(condition: Condition, requeue: Requeue) -> Plan<Action> {
    Plan {
        actions: Vec::new(),
        conditions: vec![condition],
        requeue,
    }
}

fn act(actions: Vec<Action>, message: &str) -> Plan<Action> {
    Plan {
        actions,
        conditions: vec![Condition::not_ready(Reason::Progressing, message)],
        requeue: Requeue::AtResync,
    }
}

/// The plan for one user.
pub fn plan(snapshot: &Snapshot, now: Timestamp) -> Plan<Action> {
    let seen = match &snapshot.world {
        World::Unavailable(reason, why) => {
            let condition = if *reason == Reason::EngineUnavailable {
                Condition::unknown(*reason, why)
            } else {
                Condition::not_ready(*reason, why)
            };
            return say(condition, Requeue::AtResync);
        }
        World::Seen(seen) => seen,
    };
    let Some(row) = &snapshot.row else {
        return act(remove_all(&seen.containers), "removing an orphan");
    };
    if row.deleted_at.is_some() {
        let mut actions = remove_all(&seen.containers);
        if actions.is_empty() {
            actions.push(Action::ReleaseFinalizer);
        }
        return Plan {
            actions,
            conditions: vec![Condition::not_ready(
                Reason::Terminating,
                "removing the container",
            )],
            requeue: Requeue::AtResync,
        };
    }
    if row.shall_run() {
        let machine = Running {
            row,
            seen,
            now,
            names: Names::of(&row.name, &row.uid),
        };
        let mut plan = machine.plan();
        if !row.has_finalizer && !plan.actions.is_empty() {
            plan.actions.insert(0, Action::AddFinalizer);
        }
        plan
    } else {
        stopped(row, seen)
    }
}

/// Stops what runs, then removes everything.
fn remove_all(containers: &[Container]) -> Vec<Action> {
    let stop = containers
        .iter()
        .filter(|c| c.state == ContainerState::Running)
        .map(|c| Action::Stop {
            container: c.id.clone(),
        });
    let remove = containers.iter().map(|c| Action::Remove {
        container: c.id.clone(),
    });
    stop.chain(remove).collect()
}

/// What is remembered of a user whose container is gone on purpose.
fn forgotten(facts: &ContainerFacts) -> ContainerFacts {
    ContainerFacts {
        engine_id: None,
        ip: None,
        started_at: None,
        ready_at: None,
        ..facts.clone()
    }
}

fn stopped(row: &ContainerRow, seen: &Seen) -> Plan<Action> {
    let quiet = ContainerFacts {
        image_ref: row.facts.image_ref.clone(),
        image_id: row.facts.image_id.clone(),
        image_digest: row.facts.image_digest.clone(),
        ..ContainerFacts::default()
    };
    let mut actions = Vec::new();
    // Forgotten first: a container that is missing on purpose is not a loss.
    if row.facts != quiet {
        actions.push(Action::SaveFacts(Box::new(quiet)));
    }
    actions.extend(remove_all(&seen.containers));
    if !actions.is_empty() {
        return act(actions, "stopping the container");
    }
    let message = if row.disabled {
        "stopped because the account is disabled"
    } else {
        "stopped as asked"
    };
    say(
        Condition::ready(Reason::Stopped, message),
        Requeue::AtResync,
    )
}

/// The state machine of a container that shall run.
struct Running<'a> {
    row: &'a ContainerRow,
    seen: &'a Seen,
    now: Timestamp,
    names: Names,
}

impl Running<'_> {
    fn plan(&self) -> Plan<Action> {
        let known = [&self.names.base, &self.names.next, &self.names.prev];
        let strays: Vec<Action> = self
            .seen
            .containers
            .iter()
            .filter(|c| !known.contains(&&c.name))
            .map(|c| Action::Remove {
                container: c.id.clone(),
            })
            .collect();
        if !strays.is_empty() {
            return act(strays, "removing a container of another name");
        }
        let Some(wanted) = &self.seen.wanted else {
            return self.get_image();
        };
        let mut plan = self.converge(wanted);
        if let Some(image) = &self.seen.pin
            && !plan.actions.is_empty()
        {
            // Remembered before anything is made from it, and once for all.
            let facts = ContainerFacts {
                image_ref: Some(self.row.image_ref.clone()),
                image_id: Some(image.id.clone()),
                image_digest: image.repo_digests.first().cloned(),
                ..self.facts_in(&plan.actions)
            };
            plan.actions
                .retain(|action| !matches!(action, Action::SaveFacts(_)));
            plan.actions.insert(0, Action::SaveFacts(Box::new(facts)));
        }
        plan.actions = self.one_at_a_time(plan.actions);
        plan
    }

    /// Never two at once, whatever somebody has started by hand: whoever runs besides the container
    /// in use is stopped, and everybody else before a start.
    fn one_at_a_time(&self, actions: Vec<Action>) -> Vec<Action> {
        let mut running: Vec<&Container> = self
            .seen
            .containers
            .iter()
            .filter(|c| c.state == ContainerState::Running)
            .collect();
        let mut safe = Vec::with_capacity(actions.len());
        if running.iter().any(|c| c.name == self.names.base) {
            safe.extend(
                running
                    .iter()
                    .filter(|c| c.name != self.names.base)
                    .map(|c| stop(c)),
            );
            running.retain(|c| c.name == self.names.base);
        }
        for action in actions {
            match &action {
                Action::Start { container } => {
                    let others = running.iter().filter(|c| c.id != *container);
                    safe.extend(others.map(|c| stop(c)));
                    running.clear();
                }
                Action::Stop { container } => {
                    if !running.iter().any(|c| c.id == *container)
                        && safe.iter().any(
                            |done| matches!(done, Action::Stop { container: id } if id == container),
                        )
                    {
                        continue;
                    }
                    running.retain(|c| c.id != *container);
                }
                Action::Remove { container } => running.retain(|c| c.id != *container),
                _ => {}
            }
            safe.push(action);
        }
        safe
    }

    /// The facts that the actions would save, or the present ones.
    fn facts_in(&self, actions: &[Action]) -> ContainerFacts {
        actions
            .iter()
            .find_map(|action| match action {
                Action::SaveFacts(facts) => Some((**facts).clone()),
                _ => None,
            })
            .unwrap_or_else(|| self.row.facts.clone())
    }

    fn get_image(&self) -> Plan<Action> {
        let reference = &self.row.image_ref;
        let start = || {
            act(
                vec![Action::StartPull {
                    reference: reference.clone(),
                }],
                &format!("pulling {reference}"),
            )
        };
        match &self.seen.pull {
            _ if self.seen.pull_policy == PullPolicy::Never => say(
                Condition::not_ready(
                    Reason::ImageMissing,
                    format!("the engine has no image {reference}, and image.pull_policy is never"),
                ),
                Requeue::AtResync,
            ),
            PullState::Idle => start(),
            PullState::Running => say(
                Condition::not_ready(Reason::ImagePulling, format!("pulling {reference}")),
                Requeue::After(SHORT),
            ),
            PullState::Failed {
                at,
                message,
                failures,
            } => {
                let delay = retry_delay(FIRST_RETRY_OF_PULL, LONGEST_CRASH_DELAY, *failures);
                match self.left_of(*at, delay) {
                    None => start(),
                    Some(left) => say(
                        Condition::not_ready(
                            Reason::ImagePullFailed,
                            format!("{reference}: {message}"),
                        ),
                        Requeue::After(left),
                    ),
                }
            }
        }
    }

    /// What is left of `delay` since `at`; `None` when it has passed.
    fn left_of(&self, at: Timestamp, delay: Duration) -> Option<Duration> {
        delay
            .checked_sub(self.now.since(at))
            .filter(|left| !left.is_zero())
    }

    fn converge(&self, wanted: &ContainerSettings) -> Plan<Action> {
        let base = self.seen.named(&self.names.base);
        let next = self.seen.named(&self.names.next);
        let prev = self.seen.named(&self.names.prev);
        if let Some(prev) = prev {
            return self.finish_replacement(prev, base, next, wanted);
        }
        match (base, next) {
            (Some(base), next) if self.seen.fits(base, self.row) => {
                if let Some(next) = next {
                    return act(vec![remove(next)], "removing an unused replacement");
                }
                self.keep(base)
            }
            (Some(base), next) => self.replace(base, next, wanted),
            (None, Some(next)) if self.seen.fits(next, self.row) => act(
                vec![rename(next, &self.names.base), start(next)],
                "starting the container",
            ),
            (None, Some(next)) => act(vec![remove(next)], "removing an unused replacement"),
            (None, None) => self.create(wanted),
        }
    }

    /// Nothing is there: make it, unless something stands in the way.
    fn create(&self, wanted: &ContainerSettings) -> Plan<Action> {
        if let Some(plan) = self.note_loss() {
            return plan;
        }
        if let Some(wait) = self.crash_wait() {
            return wait;
        }
        if let Some(blocked) = self.blocked() {
            return blocked;
        }
        let mut actions = self.verify_data_dir(wanted);
        actions.push(Action::Create {
            name: self.names.base.clone(),
            settings: Box::new(wanted.clone()),
        });
        actions.push(Action::Start {
            container: self.names.base.clone(),
        });
        act(actions, "starting the container")
    }

    fn verify_data_dir(&self, wanted: &ContainerSettings) -> Vec<Action> {
        match self.seen.data_dir {
            ProbeState::Unknown => vec![Action::VerifyDataDir {
                image: wanted.image.clone(),
            }],
            ProbeState::Same | ProbeState::Mismatch(_) => Vec::new(),
        }
    }

    /// What must be so before a container can be made.
    fn blocked(&self) -> Option<Plan<Action>> {
        let wait = |reason, message: &str, requeue| {
            Some(say(Condition::not_ready(reason, message), requeue))
        };
        if self.seen.needs_root {
            return wait(
                Reason::NeedsRoot,
                "the adapter runs agents as a user of the image, which needs a service that runs as root",
                Requeue::AtResync,
            );
        }
        match self.seen.network {
            NetworkState::AsWanted => {}
            NetworkState::Missing => {
                return wait(
                    Reason::NetworkMissing,
                    "the agents' network is not there yet",
                    Requeue::After(SHORT),
                );
            }
            NetworkState::Outdated => {
                return wait(
                    Reason::NetworkMissing,
                    "the agents' network has to be made anew first",
                    Requeue::After(Duration::from_secs(1)),
                );
            }
            NetworkState::Foreign => {
                return wait(Reason::NameConflict, &foreign_network(), Requeue::AtResync);
            }
        }
        // One proof for all: the engine reconciler tries it again.
        if let ProbeState::Mismatch(why) = &self.seen.data_dir {
            return wait(Reason::DataDirMismatch, why, Requeue::AtResync);
        }
        match &self.seen.home {
            Some(HomeState::Missing) => wait(
                Reason::HomeMissing,
                "the user's directory is not there yet",
                Requeue::After(SHORT),
            ),
            Some(HomeState::Conflict(why)) => wait(Reason::HomeConflict, why, Requeue::AtResync),
            Some(HomeState::Ready) | None => None,
        }
    }

    /// The container is as it should be: does it run, and is it ready?
    fn keep(&self, base: &Container) -> Plan<Action> {
        match base.state {
            ContainerState::Running => self.running(base),
            ContainerState::Created => act(vec![start(base)], "starting the container"),
            ContainerState::Exited => self.exited(base),
            ContainerState::Paused | ContainerState::Dead => act(
                vec![
                    Action::SaveFacts(Box::new(forgotten(&self.row.facts))),
                    remove(base),
                ],
                "removing a container that cannot go on",
            ),
            ContainerState::Restarting | ContainerState::Removing => say(
                Condition::not_ready(Reason::Progressing, "the engine is still busy with it"),
                Requeue::After(Duration::from_secs(1)),
            ),
        }
    }

    fn running(&self, base: &Container) -> Plan<Action> {
        let facts = &self.row.facts;
        let details = self.seen.details.get(&base.id);
        let started_at = details.map_or(facts.started_at, |d| d.started_at);
        if self.seen.ready != Some(true) {
            let running_for = started_at.map_or(Duration::ZERO, |at| self.now.since(at));
            let message = if running_for > self.seen.readiness_timeout {
                "running, but not ready for longer than a start should take"
            } else {
                "running, not ready yet"
            };
            // Asked often at first, then at leisure.
            let pause = (running_for / 10).clamp(SHORT, Duration::from_secs(60));
            return say(
                Condition::not_ready(Reason::NotReady, message),
                Requeue::After(pause),
            );
        }
        let seen_now = ContainerFacts {
            failed_digest: None,
            failed_at: None,
            failed_count: 0,
            ..self.facts_of_run(base)
        };
        if seen_now != *facts {
            return act(
                vec![Action::SaveFacts(Box::new(seen_now))],
                "the container became ready",
            );
        }
        let requeue = match started_at {
            Some(at) if facts.crash_count > 0 => self
                .left_of(at, CRASH_WINDOW)
                .map_or(Requeue::AtResync, Requeue::After),
            _ => Requeue::AtResync,
        };
        let message = if self.row.debug {
            "running in debug mode"
        } else {
            "running and ready"
        };
        say(Condition::ready(Reason::Running, message), requeue)
    }

    /// What is to be remembered of a container that runs and is ready.
    fn facts_of_run(&self, base: &Container) -> ContainerFacts {
        let facts = &self.row.facts;
        let details = self.seen.details.get(&base.id);
        let started_at = details.map_or(facts.started_at, |d| d.started_at);
        let forgiven = started_at.is_some_and(|at| self.now.since(at) >= CRASH_WINDOW);
        let same_run = facts.engine_id.as_deref() == Some(&base.id)
            && facts.started_at == started_at
            && facts.ready_at.is_some();
        ContainerFacts {
            engine_id: Some(base.id.clone()),
            ip: base.networks.get(NETWORK).cloned().flatten(),
            started_at,
            ready_at: if same_run {
                facts.ready_at
            } else {
                Some(self.now)
            },
            crash_count: if forgiven { 0 } else { facts.crash_count },
            ..facts.clone()
        }
    }

    /// It ended and nobody asked for it.
    fn exited(&self, base: &Container) -> Plan<Action> {
        let Some(details) = self.seen.details.get(&base.id) else {
            return say(
                Condition::not_ready(Reason::Exited, "the container ended"),
                Requeue::After(SHORT),
            );
        };
        let at = details.finished_at.unwrap_or(base.created_at);
        if self.row.facts.last_exit_at != Some(at) {
            return self.note_exit(at, details.started_at, details.exit_code);
        }
        if let Some(wait) = self.crash_wait() {
            return wait;
        }
        act(vec![start(base)], "starting the container again")
    }

    /// It was there and ready, and now there is no trace of it.
    fn note_loss(&self) -> Option<Plan<Action>> {
        self.row.facts.engine_id.as_ref()?;
        Some(self.note_exit(self.now, self.row.facts.started_at, None))
    }

    fn note_exit(
        &self,
        at: Timestamp,
        started_at: Option<Timestamp>,
        code: Option<i64>,
    ) -> Plan<Action> {
        let facts = &self.row.facts;
        let early = started_at.is_none_or(|started| at.since(started) < CRASH_WINDOW);
        let before = if facts.crash_token == self.row.restart_token {
            facts.crash_count
        } else {
            0
        };
        let noted = ContainerFacts {
            crash_count: if early { before.saturating_add(1) } else { 0 },
            crash_token: self.row.restart_token.clone(),
            last_exit_at: Some(at),
            last_exit_code: code,
            ..forgotten(facts)
        };
        let message = match code {
            Some(code) => format!("the container ended with exit code {code}"),
            None => "the container was removed by somebody else".to_owned(),
        };
        Plan {
            actions: vec![Action::SaveFacts(Box::new(noted))],
            conditions: vec![Condition::not_ready(Reason::Exited, message)],
            requeue: Requeue::AtResync,
        }
    }

    /// Whether the next start has to wait, because starts fail again and again.
    fn crash_wait(&self) -> Option<Plan<Action>> {
        let facts = &self.row.facts;
        if facts.crash_token != self.row.restart_token {
            return None;
        }
        let at = facts.last_exit_at?;
        let left = self.left_of(at, crash_delay(facts.crash_count))?;
        let ending = match facts.last_exit_code {
            Some(code) => format!("ended with exit code {code}"),
            None => "was removed by somebody else".to_owned(),
        };
        let (reason, times) = if facts.crash_count >= CRASH_LOOP_FROM {
            (Reason::CrashLoop, facts.crash_count)
        } else {
            (Reason::Exited, facts.crash_count)
        };
        Some(say(
            Condition::not_ready(
                reason,
                format!("the container {ending}, {times} times in a row soon after its start"),
            ),
            Requeue::After(left),
        ))
    }

    /// The container is not what it should be.
    fn replace(
        &self,
        base: &Container,
        next: Option<&Container>,
        wanted: &ContainerSettings,
    ) -> Plan<Action> {
        let label = |key: &str| base.labels.get(key).map_or("", String::as_str);
        let wanted_digest = digest_of(wanted);
        let other_token = label(LABEL_RESTART_TOKEN) != self.row.restart_token;
        let debugging = self.row.debug || base.labels.contains_key(LABEL_DEBUG);
        let by_hand = self.seen.drift(base).is_some();
        let facts = &self.row.facts;
        let mut actions = Vec::new();
        let fresh = other_token || debugging || by_hand;
        if !fresh && facts.failed_digest.as_deref() == Some(wanted_digest) {
            let delay = retry_delay(
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
        // A swap that was interrupted after the stop goes on: the old one is still worth going back to.
        let swapping = next.is_some_and(|next| self.seen.fits(next, self.row));
        if fresh || (base.state != ContainerState::Running && !swapping) {
            if let Some(blocked) = self.blocked() {
                return blocked;
            }
            let mut actions = vec![Action::SaveFacts(Box::new(forgotten(&self.row.facts)))];
            actions.extend(next.map(remove));
            if base.state == ContainerState::Running {
                actions.push(stop(base));
            }
            actions.push(remove(base));
            return act(actions, "replacing the container");
        }
        match next {
            Some(next) if self.seen.fits(next, self.row) => {
                actions.extend([
                    stop(base),
                    rename(base, &self.names.prev),
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

    /// The replacement has failed: the previous container is kept going until the next attempt.
    fn keep_previous(&self, base: &Container, left: Duration) -> Plan<Action> {
        match base.state {
            ContainerState::Running => {}
            ContainerState::Exited => return self.exited(base),
            ContainerState::Created => {
                return act(vec![start(base)], "putting the previous container back");
            }
            ContainerState::Paused
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
        say(
            Condition::not_ready(
                Reason::ReplacementFailed,
                "the replacement did not become ready; the previous container runs",
            ),
            Requeue::After(left),
        )
    }

    /// The old container is aside: the new one takes over, or the old one comes back.
    fn finish_replacement(
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
        let fits = self.seen.fits(base, self.row);
        match base.state {
            ContainerState::Running if fits && self.seen.ready == Some(true) => {
                act(vec![remove(prev)], "removing the replaced container")
            }
            ContainerState::Running if fits && !going_back => {
                let started_at = details.and_then(|d| d.started_at);
                let waited = started_at.map_or(Duration::ZERO, |at| self.now.since(at));
                if waited < self.seen.readiness_timeout {
                    return say(
                        Condition::not_ready(
                            Reason::NotReady,
                            "the replacement runs, not ready yet",
                        ),
                        Requeue::After(SHORT),
                    );
                }
                self.put_back(prev, base, wanted)
            }
            ContainerState::Created if fits && !going_back && !failed_to_start(details) => {
                act(vec![start(base)], "replacing the container")
            }
            _ if fits => self.put_back(prev, base, wanted),
            // What is wanted has changed meanwhile: neither is it.
            _ => {
                let mut actions = Vec::new();
                if base.state == ContainerState::Running {
                    actions.push(stop(base));
                }
                actions.extend([remove(base), rename(prev, &self.names.base), start(prev)]);
                act(actions, "putting the previous container back")
            }
        }
    }

    fn put_back(
        &self,
        prev: &Container,
        base: &Container,
        wanted: &ContainerSettings,
    ) -> Plan<Action> {
        let facts = &self.row.facts;
        let digest = digest_of(wanted);
        let mut actions = Vec::new();
        if facts.failed_digest.as_deref() != Some(digest) {
            actions.push(Action::SaveFacts(Box::new(ContainerFacts {
                failed_digest: Some(digest.to_owned()),
                failed_at: Some(self.now),
                failed_count: facts.failed_count.saturating_add(1),
                ..forgotten(facts)
            })));
        }
        if base.state == ContainerState::Running {
            actions.push(stop(base));
        }
        actions.extend([remove(base), rename(prev, &self.names.base), start(prev)]);
        act(actions, "putting the previous container back")
    }
}

/// The engine tried to start it and could not.
fn failed_to_start(details: Option<&ContainerDetails>) -> bool {
    details.is_some_and(|d| !d.error.is_empty() || d.exit_code.is_some_and(|code| code != 0))
}

fn digest_of(settings: &ContainerSettings) -> &str {
    settings
        .labels
        .get(LABEL_SPEC_DIGEST)
        .map_or("", String::as_str)
}

fn start(container: &Container) -> Action {
    Action::Start {
        container: container.id.clone(),
    }
}

fn stop(container: &Container) -> Action {
    Action::Stop {
        container: container.id.clone(),
    }
}

fn remove(container: &Container) -> Action {
    Action::Remove {
        container: container.id.clone(),
    }
}

fn rename(container: &Container, name: &str) -> Action {
    Action::Rename {
        container: container.id.clone(),
        name: name.to_owned(),
    }
}
