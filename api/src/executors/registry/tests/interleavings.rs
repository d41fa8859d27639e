//! Schedules of everything that may happen, in any order.
//!
//! Beside the registry stands what the world knows: which sockets are open, whose they are, and who has asked what. After each
//! event the two are compared.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};

use super::*;

/// Users of a schedule.
const USERS: u8 = 3;
/// Installations of a user's executors.
const INSTANCES: u8 = 2;
/// The tokens of a user, from the oldest on.
const TOKENS: i64 = 3;

/// A step of a schedule. Numbers choose among what there is.
#[derive(Debug, Clone)]
enum Step {
    Connect(u8, Service, bool, i64),
    Introduce(usize, u8),
    Disconnect(usize),
    Dismiss(usize),
    Silent(usize),
    Revoke(u8, i64),
    Enter(u8, Service, Lane, i64, Option<u8>),
    Ask(usize, u8),
    /// What has been asked is answered.
    Answer(usize),
    /// Something is answered, whether it was asked or not.
    Babble(usize, u64),
    Leave(usize),
    Later(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let service = || prop_oneof![Just(Service::Browser), Just(Service::Computer)];
    let lane = prop_oneof![Just(Lane::Read), Just(Lane::Act)];
    prop_oneof![
        3 => (0..USERS, service(), any::<bool>(), 0..TOKENS)
            .prop_map(|(u, s, a, t)| Step::Connect(u, s, a, t)),
        1 => (any::<usize>(), 0..INSTANCES).prop_map(|(c, i)| Step::Introduce(c, i)),
        2 => any::<usize>().prop_map(Step::Disconnect),
        1 => any::<usize>().prop_map(Step::Dismiss),
        1 => any::<usize>().prop_map(Step::Silent),
        1 => (0..USERS, 0..TOKENS).prop_map(|(u, t)| Step::Revoke(u, t)),
        6 => (0..USERS, service(), lane, 0..TOKENS, prop::option::weighted(0.3, 0..INSTANCES))
            .prop_map(|(u, s, l, t, d)| Step::Enter(u, s, l, t, d)),
        6 => (any::<usize>(), 0..60_u8).prop_map(|(j, limit)| Step::Ask(j, limit)),
        5 => any::<usize>().prop_map(Step::Answer),
        2 => (any::<usize>(), 0..8_u64).prop_map(|(c, id)| Step::Babble(c, id)),
        3 => any::<usize>().prop_map(Step::Leave),
        4 => (0..40_000_u16).prop_map(Step::Later),
    ]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    Granted,
    Asked(ConnectionId, u64),
    Over,
}

/// A job, as the world knows it.
struct Known {
    key: Key,
    token: i64,
    /// The only installation that it may be given to.
    device: Option<u8>,
    stage: Stage,
}

/// What the world knows.
#[derive(Default)]
struct World {
    bench: Bench,
    next: u64,
    /// With the tokens that were shown.
    open: BTreeMap<ConnectionId, (Key, i64)>,
    /// The newest token that each user has shown.
    newest: BTreeMap<Uid, i64>,
    /// The greatest number that was written to each connection.
    written: BTreeMap<ConnectionId, u64>,
    /// What is not answered: its limit, and until when it holds up others once nobody waits for it.
    wire: BTreeMap<(ConnectionId, u64), (Moment, Option<Moment>)>,
    jobs: BTreeMap<JobId, Known>,
}

fn pick<T: Copy>(all: impl Iterator<Item = T>, number: usize) -> Option<T> {
    let all: Vec<T> = all.collect();
    let index = number.checked_rem(all.len())?;
    all.get(index).copied()
}

/// Whether it does one thing at a time.
fn is_serial(presence: Presence<'_>) -> bool {
    presence.key.service == Service::Computer && presence.protocol == &Protocol::First
}

impl World {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        let key = |user, service| Key {
            user: uid(user),
            service,
        };
        let connection = |world: &Self, number| pick(world.open.keys().copied(), number);
        let job = |world: &Self, number| pick(world.jobs.keys().copied(), number);
        let event = match step {
            Step::Connect(user, service, tablet, token) => {
                let connection = ConnectionId(self.number());
                self.open.insert(connection, (key(user, service), token));
                Some(Event::Connected {
                    connection,
                    key: key(user, service),
                    address: if tablet { TABLET } else { LAPTOP },
                    token,
                })
            }
            Step::Introduce(number, instance) => connection(self, number).map(|connection| {
                let instance = instance.to_string();
                Event::Introduced {
                    connection,
                    protocol: Protocol::Introduced { instance },
                }
            }),
            Step::Disconnect(number) => connection(self, number).map(|connection| {
                self.open.remove(&connection);
                Event::Disconnected { connection }
            }),
            Step::Dismiss(number) => connection(self, number).map(|connection| {
                let close = Close::Dismissed;
                Event::Dismissed { connection, close }
            }),
            Step::Silent(number) => connection(self, number).map(|connection| Event::Silent {
                connection,
                heard: Moment::default(),
            }),
            Step::Revoke(user, token) => {
                let user = uid(user);
                Some(Event::Revoked { user, token })
            }
            Step::Enter(user, service, lane, token, device) => {
                let job = JobId(self.number());
                let key = key(user, service);
                let known = Known {
                    key: key.clone(),
                    token,
                    device,
                    stage: Stage::Waiting,
                };
                self.jobs.insert(job, known);
                let devices = device.map(|device| [device.to_string()].into());
                Some(Event::Entered {
                    job,
                    key,
                    token,
                    lane,
                    devices,
                })
            }
            Step::Ask(number, limit) => {
                let idle = self.jobs.iter();
                let idle = idle.filter(|(_, known)| known.stage == Stage::Granted);
                let idle = idle.map(|(job, _)| *job);
                pick(idle, number).map(|job| Event::Asked {
                    job,
                    limit: Duration::from_secs(limit.into()),
                })
            }
            Step::Answer(number) => {
                let asked = self.jobs.values().filter_map(|known| match known.stage {
                    Stage::Asked(connection, id) => Some((connection, id)),
                    _ => None,
                });
                pick(asked, number).map(|(connection, id)| Event::Answered { connection, id })
            }
            Step::Babble(number, id) => {
                connection(self, number).map(|connection| Event::Answered { connection, id })
            }
            Step::Leave(number) => job(self, number).map(|job| Event::Left { job }),
            Step::Later(milliseconds) => {
                return self.later(Duration::from_millis(milliseconds.into()));
            }
        };
        match event {
            Some(event) => self.apply(event),
            None => Ok(()),
        }
    }

    fn later(&mut self, time: Duration) -> Result<(), TestCaseError> {
        let end = self.bench.now.after(time);
        while let Some(at) = self.bench.registry.due_at()
            && at <= end
        {
            self.bench.now = self.bench.now.max(at);
            self.apply(Event::Due)?;
        }
        self.bench.now = end;
        Ok(())
    }

    fn apply(&mut self, event: Event) -> Result<(), TestCaseError> {
        match &event {
            Event::Connected { key, token, .. } | Event::Entered { key, token, .. } => {
                let newest = self.newest.entry(key.user.clone()).or_default();
                *newest = (*newest).max(*token);
            }
            Event::Left { job } => {
                self.jobs.remove(job);
            }
            Event::Answered { connection, id } => {
                self.wire.remove(&(*connection, *id));
            }
            _ => {}
        }
        let effects = self.bench.apply(event.clone());
        for effect in &effects {
            self.check(&event, effect)?;
        }
        if let Event::Revoked { user, token } = &event {
            self.check_revoked(user, *token)?;
        }
        self.check_registrations()?;
        self.check_lanes()
    }

    /// Whether what comes of an event is right, after it.
    fn check(&mut self, event: &Event, effect: &Effect) -> Result<(), TestCaseError> {
        match effect {
            Effect::Granted { job } => {
                let at = self.bench.registry.executor_of(*job);
                let at = self
                    .bench
                    .registry
                    .presences()
                    .find(|it| Some(it.connection) == at);
                let known = self.jobs.get_mut(job).expect("a job that is here");
                prop_assert_eq!(known.stage, Stage::Waiting, "{:?}", effect);
                let shown = at.and_then(|at| self.open.get(&at.connection));
                let shown = shown.map(|(_, token)| *token);
                let same = shown.is_none_or(|token| token == known.token);
                prop_assert!(same, "{:?}", effect);
                if let (Some(device), Some(at)) = (known.device, at) {
                    let instance = device.to_string();
                    prop_assert_eq!(at.protocol, &Protocol::Introduced { instance });
                }
                if let Event::Revoked { user, token } = event {
                    prop_assert!(known.key.user != *user || known.token > *token, "{:?}", job);
                }
                known.stage = Stage::Granted;
            }
            Effect::Refused { job, why } => {
                let known = self.jobs.get_mut(job).expect("a job that is here");
                prop_assert_eq!(known.stage, Stage::Waiting, "{:?}", effect);
                known.stage = Stage::Over;
                let (user, token) = (known.key.user.clone(), known.token);
                if *why == Refusal::Revoked {
                    prop_assert!(self.is_revoked(event, &user, token), "{:?}", effect);
                }
            }
            Effect::Write {
                job,
                connection,
                id,
            } => {
                let Event::Asked { limit, .. } = event else {
                    return Err(TestCaseError::fail("written without a question"));
                };
                self.check_wire(*connection)?;
                let known = self.jobs.get_mut(job).expect("a job that is here");
                prop_assert_eq!(known.stage, Stage::Granted);
                prop_assert!(!limit.is_zero());
                // Never to another user's executor, nor to one that is gone.
                let open = self.open.get(connection).map(|(key, _)| key);
                prop_assert_eq!(open, Some(&known.key));
                let last = self.written.insert(*connection, *id).unwrap_or_default();
                prop_assert_eq!(*id, last + 1);
                let until = self.bench.now.after(*limit);
                self.wire.insert((*connection, *id), (until, None));
                known.stage = Stage::Asked(*connection, *id);
            }
            Effect::Completed { job } => {
                let known = self.jobs.get_mut(job).expect("a job that is here");
                let Event::Answered { connection, id } = event else {
                    return Err(TestCaseError::fail("completed without an answer"));
                };
                prop_assert_eq!(
                    known.stage,
                    Stage::Asked(*connection, *id),
                    "the wrong caller"
                );
                known.stage = Stage::Granted;
            }
            Effect::Failed { job, why } => {
                let known = self.jobs.get_mut(job).expect("a job that is here");
                match why {
                    Failure::Gone | Failure::Held | Failure::NoTime => {
                        prop_assert_eq!(known.stage, Stage::Granted);
                    }
                    _ => prop_assert!(matches!(known.stage, Stage::Asked(..)), "{:?}", known.stage),
                }
                known.stage = match why {
                    Failure::TimedOut | Failure::Held | Failure::NoTime => Stage::Granted,
                    _ => Stage::Over,
                };
            }
            Effect::Close { connection, close } => {
                let closed = self.open.remove(connection);
                prop_assert!(closed.is_some(), "closed twice");
                let Some((key, shown)) = closed else {
                    return Ok(());
                };
                let revoked = self.is_revoked(event, &key.user, shown);
                match (close, event) {
                    (Close::Revoked, _) => prop_assert!(revoked, "{:?}", effect),
                    (_, Event::Revoked { .. }) => prop_assert!(false, "{:?}", effect),
                    _ => {}
                }
            }
            Effect::Cancel { connection, id } => {
                prop_assert!(self.written.get(connection).is_some_and(|last| id <= last));
                if let Some((until, holds)) = self.wire.get_mut(&(*connection, *id)) {
                    *holds = Some(self.bench.now.after(BUSY).max(*until));
                }
            }
            Effect::Changed { .. } => {}
        }
        Ok(())
    }

    /// Whether a token is no longer valid: that is what has happened, or a newer one was shown.
    fn is_revoked(&self, event: &Event, user: &Uid, shown: i64) -> bool {
        match event {
            Event::Revoked { user: whose, token } => whose == user && shown <= *token,
            _ => self.newest.get(user).is_some_and(|newest| shown < *newest),
        }
    }

    /// One that does one thing at a time is at nothing that was asked before.
    fn check_wire(&self, connection: ConnectionId) -> Result<(), TestCaseError> {
        let mut known = self.bench.registry.presences();
        let known = known.find(|presence| presence.connection == connection);
        if known.is_some_and(is_serial) {
            for (question, (_, holds)) in &self.wire {
                let free = holds.is_some_and(|holds| holds <= self.bench.now);
                prop_assert!(
                    question.0 != connection || free,
                    "two at once: {:?}",
                    question
                );
            }
        }
        Ok(())
    }

    /// Nothing is left of what came with a token that is no longer valid.
    fn check_revoked(&self, user: &Uid, token: i64) -> Result<(), TestCaseError> {
        let ended = |key: &Key, shown: i64| key.user == *user && shown <= token;
        prop_assert!(!self.open.values().any(|(key, shown)| ended(key, *shown)));
        for (job, known) in &self.jobs {
            let waits = known.stage == Stage::Waiting;
            prop_assert!(!waits || !ended(&known.key, known.token), "{:?}", job);
        }
        Ok(())
    }

    /// Whoever is open is registered, under the right user, and nobody else is. All of a key have shown the same token.
    fn check_registrations(&self) -> Result<(), TestCaseError> {
        let registry = &self.bench.registry;
        let known = registry.presences();
        let known = known.map(|presence| (presence.connection, presence.key));
        // Both in the order of their numbers.
        let open = self.open.iter().map(|(id, (key, _))| (*id, key));
        prop_assert!(known.eq(open), "{:?}: {:?}", registry, self.open);
        for presence in registry.presences() {
            let mut reached = registry.of_key(presence.key);
            let greets = presence.protocol == &Protocol::First
                && self.bench.now.since(presence.since) < GREETING;
            let reached = reached.any(|other| other.connection == presence.connection);
            prop_assert!(reached || greets, "lost");
        }
        let mut tokens = HashMap::new();
        for (key, token) in self.open.values() {
            let other = tokens.insert(key, token).unwrap_or(token);
            prop_assert_eq!(token, other, "{:?}", key);
        }
        Ok(())
    }

    fn check_lanes(&self) -> Result<(), TestCaseError> {
        for presence in self.bench.registry.presences() {
            let most = if is_serial(presence) { 1 } else { 5 };
            prop_assert!(presence.jobs <= most, "{:?}", presence);
        }
        Ok(())
    }

    /// Everything comes to an end by itself, and nothing is kept.
    fn end(mut self) -> Result<(), TestCaseError> {
        self.later(Duration::from_secs(600))?;
        for (job, known) in &self.jobs {
            let open = matches!(known.stage, Stage::Waiting | Stage::Asked(..));
            // One that was let in and asks nothing holds up others for as long as it stays.
            prop_assert!(!open, "{:?} {:?}", job, known.stage);
        }
        for job in self.jobs.keys().copied().collect::<Vec<_>>() {
            self.apply(Event::Left { job })?;
        }
        for connection in self.open.keys().copied().collect::<Vec<_>>() {
            self.open.remove(&connection);
            self.apply(Event::Disconnected { connection })?;
        }
        self.later(Duration::from_secs(600))?;
        self.bench.registry.events = SWEEP - 1;
        self.apply(Event::Due)?;
        let registry = &self.bench.registry;
        prop_assert!(registry.slots.is_empty() && registry.jobs.is_empty());
        prop_assert!(registry.connections.is_empty() && registry.timers.is_empty());
        Ok(())
    }
}

#[test]
fn l48_l49_l54_any_order_loses_no_executor_and_gives_no_answer_to_another() {
    let long = std::env::var_os("AGENTYARD_TEST_LONG").is_some();
    let cases = if long { 100_000 } else { 1_000 };
    let config = ProptestConfig {
        cases,
        ..ProptestConfig::default()
    };
    let schedules = prop::collection::vec(step(), 1..40);
    let run = TestRunner::new(config).run(&schedules, |steps| {
        let mut world = World::default();
        for step in steps {
            world.step(step)?;
        }
        world.end()
    });
    run.unwrap();
}
