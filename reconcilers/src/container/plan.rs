//! Decides what to do next for one user's container. Pure: no IO, clock, randomness or logging.
//!
//! The way of a replacement, each arrow one observable state, so that a service killed anywhere goes
//! on from what it finds:
//!
//! ```text
//! base(old, running)                      create next
//! base(old, running)  next(created)       rename base → prev, stop prev, rename next → base, start base
//! prev(old, stopped)  base(new, running)  wait until ready for `min_ready`, remove prev
//! prev(old, stopped)  base(new, broken)   note the failure, remove base, rename prev → base, start base
//! ```

mod action;
mod crash;
mod replacement;

use std::time::Duration;

use engine::{Container, ContainerSettings, ContainerState, NETWORK, NetworkState};
use schema::condition::{Condition, Reason};
use schema::config::PullPolicy;
use schema::config::query::{ENGINE_NAME, engine_uid};
use schema::container::{ContainerEnd, ContainerFacts, ContainerRow, Desired};
use schema::home::HomeState;
use schema::ids::{Kind, Timestamp, UserName};

use super::names::Names;
use super::observe::{Pin, Seen, Snapshot, Source, World};
use crate::runtime::Plan;
use crate::shared::network::describe_foreign_network;
use crate::shared::probe::ProbeState;
use crate::shared::pulls::{self, PullState};
use crate::shared::view::describe_absence;

pub use action::{Action, Seed};
pub use crash::{CRASH_LOOP_FROM, crash_delay};
pub(super) use crash::{EVICTED, NODE_LOST, NOT_STARTED, OUT_OF_MEMORY, REMOVED, WITH_ENGINE};
pub(super) use replacement::{START_LIMIT, ended_with_engine, failed_to_start};
pub use schema::container::CRASH_WINDOW;

const SHORT: Duration = Duration::from_millis(300);
/// Time after which a container that the engine does not go on with is looked at again, if no event comes before.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

fn act(actions: Vec<Action>, message: &str) -> Plan<Action> {
    Plan::act(actions, Condition::not_ready(Reason::Progressing, message))
}

/// The plan for one user.
pub fn plan(snapshot: &Snapshot, now: Timestamp) -> Plan<Action> {
    let seen = match &snapshot.world {
        World::Unavailable(reason, why) => {
            // The reconnect itself observes all containers again.
            return Plan::say(describe_absence(*reason, why)).blocked_by(Kind::Engine, ENGINE_NAME);
        }
        World::Seen(seen) => seen,
    };
    let Some(row) = &snapshot.row else {
        return act(remove_all(&seen.containers), "removing an orphan");
    };
    if let Some(said) = await_lost_machine(&seen.containers) {
        return said;
    }
    if row.deleted_at.is_some() {
        let mut actions = remove_all(&seen.containers);
        if actions.is_empty() {
            actions.push(Action::ReleaseFinalizer);
        }
        let condition = Condition::not_ready(Reason::Terminating, "removing the container");
        return Plan::act(actions, condition);
    }
    if let Some(previous) = &row.previous_name {
        return leave_name(row, previous, &seen.containers, now);
    }
    if row.desired_running() {
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

/// Says that a machine does not answer on which one of these containers may still run; nothing is started, and nothing can be
/// removed, before that is known.
fn await_lost_machine(containers: &[Container]) -> Option<Plan<Action>> {
    let lost = |c: &&Container| c.state == ContainerState::Removing && c.waiting.is_some();
    let lost = containers.iter().find(lost)?;
    Some(say_waiting(lost, "the engine removes it").after(LOOK_AGAIN))
}

/// Stops what runs, then removes everything.
fn remove_all(containers: &[Container]) -> Vec<Action> {
    let stop = containers
        .iter()
        .filter(|c| c.state.is_up())
        .map(|c| Action::Stop {
            container: c.id.clone(),
        });
    let remove = containers.iter().map(|c| Action::Remove {
        container: c.id.clone(),
    });
    stop.chain(remove).collect()
}

/// Removes all containers of a renamed user: they mount the directory under the name before, which it keeps until they are gone.
fn leave_name(
    row: &ContainerRow,
    previous: &UserName,
    containers: &[Container],
    now: Timestamp,
) -> Plan<Action> {
    let mut actions = Vec::new();
    if row.facts.engine_id.is_some() {
        actions.push(save_facts(forgotten(&row.facts, now)));
    }
    actions.extend(remove_all(containers));
    if actions.is_empty() {
        actions.push(Action::ReleaseName(previous.clone()));
    }
    let said = format!("removing the container of {previous}, as the user was called before");
    act(actions, &said)
}

/// What is remembered of a user whose container is gone on purpose.
fn forgotten(facts: &ContainerFacts, now: Timestamp) -> ContainerFacts {
    ContainerFacts {
        crash_count: facts.crashes_in_a_row(now),
        engine_id: None,
        ip: None,
        started_at: None,
        ready_at: None,
        ..facts.clone()
    }
}

fn stopped(row: &ContainerRow, seen: &Seen) -> Plan<Action> {
    let mut quiet = ContainerFacts {
        image_ref: row.facts.image_ref.clone(),
        image_id: row.facts.image_id.clone(),
        image_digest: row.facts.image_digest.clone(),
        ..ContainerFacts::default()
    };
    if let Some(pin) = &seen.pin {
        quiet = pinned(row, pin, quiet);
    }
    let mut actions = Vec::new();
    // Forgotten first: a container that is missing on purpose is not a loss.
    if row.facts != quiet {
        actions.push(Action::SaveFacts(Box::new(quiet)));
    }
    actions.extend(remove_all(&seen.containers));
    if !actions.is_empty() {
        return act(actions, "stopping the container");
    }
    let mut message = if row.disabled {
        "stopped because the account is disabled".to_owned()
    } else {
        "stopped as asked".to_owned()
    };
    if let Some(note) = quota_stop(row) {
        return Plan::say(Condition::not_ready(Reason::QuotaExceeded, note));
    }
    if row.pinned_image().is_some() {
        return Plan::say(Condition::ready(Reason::Stopped, message));
    }
    let reference = &row.image_ref;
    message.push_str(&match seen.pull_policy {
        PullPolicy::Always => format!("; {reference} is pulled at the first start"),
        PullPolicy::Missing | PullPolicy::Never => {
            format!("; {reference} is not on the engine yet")
        }
    });
    let mut plan = Plan::say(Condition::ready(Reason::Stopped, message));
    let image = (Kind::Image, pulls::awaited(reference));
    plan.waits_for.push(image);
    plan
}

/// Reason for which the quota stops a container that would run without it.
fn quota_stop(row: &ContainerRow) -> Option<&String> {
    let note = row.quota_stop.as_ref();
    note.filter(|_| row.desired == Desired::Running && !row.disabled)
}

/// What is remembered, with this image.
fn pinned(row: &ContainerRow, pin: &Pin, facts: ContainerFacts) -> ContainerFacts {
    ContainerFacts {
        image_ref: Some(row.image_ref.clone()),
        image_id: Some(pin.image_id.clone()),
        image_digest: pin.digest.clone(),
        ..facts
    }
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
        if let Some(pin) = &self.seen.pin
            && let Some(plan) = self.forgive_for_another_image(pin)
        {
            return plan;
        }
        let mut plan = self.unless_open(self.converge(wanted));
        // Remembered before anything is made from it, and once for all; what a reference means, at once.
        if let Some(pin) = &self.seen.pin
            && (!plan.actions.is_empty() || self.row.image_id.is_none())
        {
            let saves = plan.actions.iter().position(|it| it.facts().is_some());
            let save = saves.map(|at| plan.actions.remove(at));
            let save = save.unwrap_or_else(|| save_facts(self.row.facts.clone()));
            let facts = save.facts().unwrap_or(&self.row.facts).clone();
            let save = save.with_facts(pinned(self.row, pin, facts));
            plan.actions.insert(0, save);
        }
        plan.actions = self.restricted(self.one_at_a_time(plan.actions));
        plan
    }

    /// Replaces a plan that starts a container while none may be started; nothing of it is done, so that no agent stops for it.
    fn unless_open(&self, plan: Plan<Action>) -> Plan<Action> {
        match self.host_open() {
            Some(refused) if plan.actions.iter().any(starts) => refused,
            _ => plan,
        }
    }

    /// Returns what is said while no container may be started, since the host cannot be restricted.
    fn host_open(&self) -> Option<Plan<Action>> {
        let why = self.seen.host_open.as_ref()?;
        let condition = Condition::not_ready(Reason::HostOpen, why);
        Some(Plan::say(condition).waiting_for(Kind::Engine, &engine_uid(), ENGINE_NAME))
    }

    /// Nothing starts before the host is out of its reach.
    fn restricted(&self, mut actions: Vec<Action>) -> Vec<Action> {
        if let Some(rules) = self.seen.restrict.clone()
            && let Some(first) = actions.iter().position(starts)
        {
            actions.insert(first, Action::RestrictHost { rules });
        }
        actions
    }

    /// Crashes of another image say nothing about this one: it is started at once, and what it does is
    /// counted from the beginning.
    fn forgive_for_another_image(&self, pin: &Pin) -> Option<Plan<Action>> {
        let facts = &self.row.facts;
        let another = facts
            .image_id
            .as_ref()
            .is_some_and(|id| *id != pin.image_id);
        if !another || (facts.crash_count == 0 && facts.last_exit_at.is_none()) {
            return None;
        }
        let forgiven = ContainerFacts {
            crash_count: 0,
            last_exit_at: None,
            last_exit_code: None,
            last_exit_cause: None,
            ..pinned(self.row, pin, facts.clone())
        };
        Some(act(
            vec![Action::SaveFacts(Box::new(forgiven))],
            "beginning with another image",
        ))
    }

    /// Never two at once, whatever somebody has started by hand: whoever runs besides the container
    /// in use is stopped, and everybody else before a start.
    fn one_at_a_time(&self, actions: Vec<Action>) -> Vec<Action> {
        let mut running: Vec<&Container> = self
            .seen
            .containers
            .iter()
            .filter(|c| c.state.is_up())
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

    fn get_image(&self) -> Plan<Action> {
        let reference = match &self.seen.source {
            Source::Pull(reference) => reference,
            Source::Nowhere(why) => {
                return Plan::say(Condition::not_ready(Reason::ImageMissing, why));
            }
        };
        let start = || {
            act(
                vec![Action::StartPull {
                    reference: reference.clone(),
                }],
                &format!("pulling {reference}"),
            )
        };
        match &self.seen.pull {
            _ if self.seen.pull_policy == PullPolicy::Never => Plan::say(Condition::not_ready(
                Reason::ImageMissing,
                format!("the engine has no image {reference}, and image.pull_policy is never"),
            )),
            PullState::Idle => start(),
            PullState::Running => Plan::say(Condition::not_ready(
                Reason::ImagePulling,
                format!("pulling {reference}"),
            ))
            .waiting_for(Kind::Image, &pulls::awaited(reference), reference),
            PullState::Failed {
                at,
                message,
                failures,
                ..
            } => {
                let delay = pulls::retry_delay(*failures);
                match self.left_of(*at, delay) {
                    None => start(),
                    Some(left) => Plan::say(Condition::not_ready(
                        Reason::ImagePullFailed,
                        format!("{reference}: {message}"),
                    ))
                    .after(left),
                }
            }
        }
    }

    /// What is left of `delay` since `at`; `None` when it has passed.
    fn left_of(&self, at: Timestamp, delay: Duration) -> Option<Duration> {
        self.now.left_of(at, delay)
    }

    fn converge(&self, wanted: &ContainerSettings) -> Plan<Action> {
        let base = self.seen.named(&self.names.base);
        let next = self.seen.named(&self.names.next);
        let prev = self.seen.named(&self.names.prev);
        if let Some(prev) = prev {
            return self.finish_replacement(prev, base, next, wanted);
        }
        match (base, next) {
            (Some(base), next) if self.seen.fits(base, self.row) || self.is_held(base) => {
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

    /// Reports that a container keeps what it was made from until its user's turn in a rollout comes.
    fn is_held(&self, base: &Container) -> bool {
        let goes_on = matches!(
            base.state,
            ContainerState::Starting
                | ContainerState::Running
                | ContainerState::Exited
                | ContainerState::Created
        );
        let pinned = self.row.pinned_image();
        let has_image = pinned.is_none_or(|image| image == base.image_id);
        self.row.held_by.is_some() && goes_on && has_image && !self.is_made_afresh(base)
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
        if let Some(home) = &self.seen.seed {
            actions.push(Action::SeedHome {
                seed: Seed {
                    name: self.row.name.clone(),
                    image: wanted.image.clone(),
                    home: home.clone(),
                },
            });
        }
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
        let wait = |reason, message: &str| Plan::say(Condition::not_ready(reason, message));
        let for_engine =
            |plan: Plan<Action>| Some(plan.waiting_for(Kind::Engine, &engine_uid(), ENGINE_NAME));
        if self.seen.needs_root {
            return Some(wait(
                Reason::NeedsRoot,
                "the adapter runs agents as a user of the image, which needs a service that runs as root",
            ));
        }
        match self.seen.network {
            NetworkState::AsDesired => {}
            NetworkState::Missing => {
                let message = "the agent network does not exist yet";
                return for_engine(wait(Reason::NetworkMissing, message));
            }
            NetworkState::Outdated => {
                let message = "the agent network has to be recreated first";
                return for_engine(wait(Reason::NetworkMissing, message));
            }
            NetworkState::Drifted => {
                let message = "the rules of the agent network have to be mended first";
                return for_engine(wait(Reason::NetworkMissing, message));
            }
            NetworkState::Foreign(owner) => {
                let message = describe_foreign_network(owner);
                return for_engine(wait(Reason::NameConflict, &message));
            }
        }
        // One proof for all: the engine reconciler tries it again.
        if let ProbeState::Mismatch(why) = &self.seen.data_dir {
            return for_engine(wait(Reason::DataDirMismatch, why));
        }
        if let Some(refused) = self.host_open() {
            return Some(refused);
        }
        let home = match &self.seen.home {
            Some(HomeState::Missing) => wait(
                Reason::HomeMissing,
                "the user's directory does not exist yet",
            ),
            Some(HomeState::Conflict(why)) => wait(Reason::HomeConflict, why),
            Some(HomeState::Ready) if self.seen.place.holds().is_none() => wait(
                Reason::HomeMissing,
                "the user's directory was made a moment ago",
            )
            .after(SHORT),
            Some(HomeState::Ready) | None => return self.without_files(),
        };
        Some(home.waiting_for(Kind::User, &self.row.uid, self.row.name.as_str()))
    }

    /// A container is made once its files are as desired. Files that cannot be brought to what the
    /// image reads keep it from being made; others that only their user can mend do not, because the agent
    /// may be the way to mend them.
    fn without_files(&self) -> Option<Plan<Action>> {
        let files = &self.row.files;
        let place = self.seen.place.holds();
        let elsewhere = files.home.is_some() && files.home.as_ref() != place;
        let condition = if files.pending {
            Condition::not_ready(Reason::ConfigPending, "the agent's files are being written")
        } else if elsewhere && files.refused.is_none() {
            Condition::not_ready(
                Reason::ConfigPending,
                "the user's directory was replaced, and the agent's files are being written there",
            )
        } else if files.refused == Some(Reason::NoMigrationPath) {
            Condition::not_ready(
                Reason::NoMigrationPath,
                format!(
                    "the agent's files cannot be migrated to the version that {} reads",
                    self.row.image_ref
                ),
            )
        } else {
            return None;
        };
        let (uid, name) = (&self.row.uid, self.row.name.as_str());
        Some(Plan::say(condition).waiting_for(Kind::AgentConfig, uid, name))
    }

    /// The container is as it should be: does it run, and is it ready?
    fn keep(&self, base: &Container) -> Plan<Action> {
        if let Some(times) = self.seen.failed_starts
            && matches!(base.state, ContainerState::Created | ContainerState::Exited)
        {
            let cause = format!("{NOT_STARTED} in {times} attempts");
            return self.remove_ended(base, &cause);
        }
        match base.state {
            ContainerState::Running => self.running(base),
            ContainerState::Starting => {
                say_waiting(base, "the engine is starting it").after(LOOK_AGAIN)
            }
            ContainerState::Created => act(vec![start(base)], "starting the container"),
            ContainerState::Exited => self.exited(base),
            ContainerState::Paused => self.remove_ended(base, "paused by hand"),
            ContainerState::Dead => self.remove_ended(base, "dead on the engine"),
            ContainerState::Restarting | ContainerState::Removing => Plan::say(
                Condition::not_ready(Reason::Progressing, "the engine is still busy with it"),
            )
            .after(Duration::from_secs(1)),
        }
    }

    fn remove_ended(&self, base: &Container, cause: &str) -> Plan<Action> {
        let end = ContainerEnd {
            at: self.now,
            exit_code: None,
            cause: cause.to_owned(),
            log: String::new(),
        };
        let note = Action::NoteEnd {
            facts: Box::new(forgotten(&self.row.facts, self.now)),
            end: Box::new(end),
        };
        act(
            vec![note, remove(base)],
            "removing a container that cannot go on",
        )
    }

    fn running(&self, base: &Container) -> Plan<Action> {
        if self.seen.ready != Some(true) {
            let running_for = self.seen.waited;
            let message = if running_for > self.seen.readiness_timeout {
                "running, but not ready for longer than a start should take"
            } else {
                "running, not ready yet"
            };
            // Asked often at first, then at leisure.
            let pause = (running_for / 10).clamp(SHORT, Duration::from_secs(60));
            return Plan::say(Condition::not_ready(Reason::NotReady, message)).after(pause);
        }
        if let Some(times) = self.seen.unanswered {
            let message = format!(
                "the agent has not answered {times} readiness checks in a row; it is restarted"
            );
            let condition = Condition::not_ready(Reason::Unresponsive, message);
            return Plan::act(vec![stop(base)], condition);
        }
        if let Some(save) = self.remember(self.facts_of_success(base)) {
            return act(vec![save], "the container became ready");
        }
        let message = match &self.row.held_by {
            _ if self.row.debug => "running in debug mode".to_owned(),
            Some(rollout) => format!("running and ready; its turn in rollout {rollout} comes"),
            None => "running and ready".to_owned(),
        };
        Plan::say(Condition::ready(Reason::Running, message))
    }

    /// The step that remembers these facts, if there is anything new in them. That nothing has happened for long is no step: a
    /// healthy container stays ready.
    fn remember(&self, facts: ContainerFacts) -> Option<Action> {
        let only_forgiven = ContainerFacts {
            crash_count: self.row.facts.crash_count,
            ..facts.clone()
        };
        (only_forgiven != self.row.facts).then(|| save_facts(facts))
    }

    /// The same of one that needs no way back any more.
    fn facts_of_success(&self, base: &Container) -> ContainerFacts {
        ContainerFacts {
            failed_digest: None,
            failed_at: None,
            failed_count: 0,
            failure: None,
            failure_log: None,
            ..self.facts_of_run(base)
        }
    }

    /// What is to be remembered of a container that runs and is ready.
    fn facts_of_run(&self, base: &Container) -> ContainerFacts {
        let facts = &self.row.facts;
        let details = self.seen.details.get(&base.id);
        let started_at = details.map_or(facts.started_at, |d| d.started_at);
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
            crash_count: facts.crashes_in_a_row(self.now),
            ..self.facts_of_image()
        }
    }

    /// What is remembered, with what a rollout gave: the container in use may have been made from it
    /// before, such as one that was put back.
    fn facts_of_image(&self) -> ContainerFacts {
        let facts = self.row.facts.clone();
        match &self.row.image_id {
            None => facts,
            Some(image_id) => {
                let pin = Pin {
                    image_id: image_id.clone(),
                    digest: self.row.image_digest.clone(),
                };
                pinned(self.row, &pin, facts)
            }
        }
    }
}

/// Says the engine's cause for which it does not go on with a container, or `otherwise`.
fn say_waiting(container: &Container, otherwise: &str) -> Plan<Action> {
    Plan::say(match &container.waiting {
        Some(waiting) => Condition::not_ready(waiting.reason, &waiting.message),
        None => Condition::not_ready(Reason::Progressing, otherwise),
    })
}

fn starts(action: &Action) -> bool {
    matches!(action, Action::Create { .. } | Action::Start { .. })
}

fn save_facts(facts: ContainerFacts) -> Action {
    Action::SaveFacts(Box::new(facts))
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
