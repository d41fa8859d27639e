//! A scripted world, an in-memory status store, and a controller between them.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::ThreadId;
use std::time::Duration;

use async_trait::async_trait;
use futures::channel::mpsc;
use schema::condition::{Condition, ConditionType, Reason, find};
use schema::ids::{Epoch, Generation, Kind, Timestamp, Uid};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::runtime::backoff::Policy;
use crate::runtime::clock::{Clock, SharedClock};
use crate::runtime::controller::{Context, Controller, Settings, WorldEvent};
use crate::runtime::leader::Leadership;
use crate::runtime::summary::{ReconcilerHandle, StatusTick, Summary};
use crate::runtime::supervise::Supervisor;
use crate::runtime::{
    Classify, Dirty, DirtyKeys, ErrorClass, ObjectStatus, PauseState, Plan, Purpose, Reconciler,
    Requeue, StatusStore, StoreError, Waits, file_lock,
};
use schema::bell::{Ringer, bell};

/// Wall-clock time that follows the paused time of tokio.
pub struct TokioClock(Instant);

impl TokioClock {
    pub fn shared() -> SharedClock {
        Arc::new(Self(Instant::now()))
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_secs(1_000_000).plus(self.0.elapsed())
    }

    fn steady(&self) -> Duration {
        self.0.elapsed()
    }
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("{1}")]
pub struct MockError(pub ErrorClass, pub &'static str);

impl Classify for MockError {
    fn classify(&self) -> (ErrorClass, Reason) {
        let reason = match self.0 {
            ErrorClass::Transient => Reason::EngineUnavailable,
            ErrorClass::Conflict => Reason::Retrying,
            ErrorClass::Terminal => Reason::InvalidSettings,
        };
        (self.0, reason)
    }
}

/// What the next call does instead of working.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    Fail(ErrorClass),
    Panic,
    Hang,
    Slow(Duration),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Advance { to: i64 },
}

#[derive(Debug, Clone)]
pub struct Thing {
    pub generation: i64,
    pub desired: i64,
    pub actual: i64,
    pub requeue: Requeue,
    /// What the plan claims, whether or not it is true.
    pub claims: Vec<Condition>,
    /// Somebody else undoes every step.
    pub contested: bool,
    /// Its changes come with those of many others.
    pub bulk: bool,
    /// Planning takes long; on which threads it was done.
    pub long: Option<Arc<Mutex<HashSet<ThreadId>>>>,
}

impl Thing {
    pub fn new(desired: i64, actual: i64) -> Self {
        Self {
            generation: 1,
            desired,
            actual,
            requeue: Requeue::AtResync,
            claims: Vec::new(),
            contested: false,
            bulk: false,
            long: None,
        }
    }
}

#[derive(Default)]
pub struct WorldState {
    pub things: BTreeMap<Uid, Thing>,
    pub observe_faults: HashMap<Uid, VecDeque<Fault>>,
    pub apply_faults: HashMap<Uid, VecDeque<Fault>>,
    pub keys_faults: VecDeque<Fault>,
    /// Each observation: which key and when.
    pub observed: Vec<(Uid, Instant)>,
    pub applied: Vec<(Uid, i64)>,
    pub listings: Vec<Instant>,
    running: HashSet<Uid>,
    pub overlaps: u32,
    /// How often a leadership has begun.
    leads: u64,
    /// What an operator wants to be observed afresh; `None`: everything.
    pub refreshed: Vec<Option<Uid>>,
}

/// The desired and the observed state in one.
#[derive(Clone, Default)]
pub struct World(Arc<Mutex<WorldState>>);

impl World {
    pub fn state(&self) -> MutexGuard<'_, WorldState> {
        self.0.lock().unwrap()
    }

    pub fn with(things: &[(&str, Thing)]) -> Self {
        let world = Self::default();
        for (name, thing) in things {
            world.state().things.insert(key(name), thing.clone());
        }
        world
    }

    pub fn change(&self, name: &str, desired: i64) {
        let mut state = self.state();
        let thing = state.things.get_mut(&key(name)).unwrap();
        thing.desired = desired;
        thing.generation += 1;
    }

    pub fn forgotten(&self) -> u64 {
        self.state().leads
    }

    pub fn passes(&self, name: &str) -> usize {
        self.state()
            .observed
            .iter()
            .filter(|(k, _)| *k == key(name))
            .count()
    }

    pub fn actual(&self, name: &str) -> i64 {
        self.state().things[&key(name)].actual
    }

    pub fn observe_fault(&self, name: &str, fault: Fault, times: usize) {
        self.state()
            .observe_faults
            .entry(key(name))
            .or_default()
            .extend(std::iter::repeat_n(fault, times));
    }

    pub fn apply_fault(&self, name: &str, fault: Fault, times: usize) {
        self.state()
            .apply_faults
            .entry(key(name))
            .or_default()
            .extend(std::iter::repeat_n(fault, times));
    }
}

pub fn key(name: &str) -> Uid {
    Uid::from(name.to_owned())
}

async fn suffer(fault: Option<Fault>) -> Result<(), MockError> {
    match fault {
        None => Ok(()),
        Some(Fault::Fail(class)) => Err(MockError(class, "as scripted")),
        Some(Fault::Panic) => panic!("as scripted"),
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::Slow(delay)) => {
            tokio::time::sleep(delay).await;
            Ok(())
        }
    }
}

/// Notices two passes of one key at the same time, however they end.
struct Running(World, Uid);

impl Running {
    fn enter(world: &World, key: &Uid) -> Self {
        let mut state = world.state();
        if !state.running.insert(key.clone()) {
            state.overlaps += 1;
        }
        Self(world.clone(), key.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.state().running.remove(&self.1);
    }
}

impl Reconciler for World {
    const NAME: &'static str = "mock";
    const KIND: Kind = Kind::User;
    const RESYNC: Duration = Duration::from_secs(60);
    type Key = Uid;
    type Snapshot = Thing;
    type Action = Step;
    type Error = MockError;

    async fn keys(&self) -> Result<Vec<Uid>, MockError> {
        let fault = {
            let mut state = self.state();
            state.listings.push(Instant::now());
            state.keys_faults.pop_front()
        };
        suffer(fault).await?;
        Ok(self.state().things.keys().cloned().collect())
    }

    async fn observe(&self, key: &Uid, _: Purpose) -> Result<Option<Thing>, MockError> {
        let _running = Running::enter(self, key);
        let fault = {
            let mut state = self.state();
            state.observed.push((key.clone(), Instant::now()));
            state
                .observe_faults
                .get_mut(key)
                .and_then(VecDeque::pop_front)
        };
        let thing = self.state().things.get(key).cloned();
        suffer(fault).await?;
        Ok(thing)
    }

    fn leads(&self) {
        self.state().leads += 1;
    }

    fn refresh(&self, key: &Uid) {
        self.state().refreshed.push(Some(key.clone()));
    }

    fn refresh_all(&self) {
        self.state().refreshed.push(None);
    }

    fn generation(thing: &Thing) -> Generation {
        Generation(thing.generation)
    }

    fn is_long(thing: &Thing) -> bool {
        thing.long.is_some()
    }

    fn plan(thing: &Thing, _now: Timestamp) -> Plan<Step> {
        if let Some(threads) = &thing.long {
            threads.lock().unwrap().insert(std::thread::current().id());
        }
        // One step at a time up or down, or at once to the end when that is near.
        let actions = match thing.desired - thing.actual {
            0 => vec![],
            gap => (1..=gap.abs())
                .map(|n| Step::Advance {
                    to: thing.actual + n * gap.signum(),
                })
                .collect(),
        };
        Plan {
            actions,
            conditions: thing.claims.clone(),
            requeue: thing.requeue,
            waits_for: Vec::new(),
            is_tidying: false,
        }
    }

    async fn apply(&self, key: &Uid, action: &Step) -> Result<(), MockError> {
        let _running = Running::enter(self, key);
        let fault = self
            .state()
            .apply_faults
            .get_mut(key)
            .and_then(VecDeque::pop_front);
        suffer(fault).await?;
        let Step::Advance { to } = action;
        let mut state = self.state();
        state.applied.push((key.clone(), *to));
        if let Some(thing) = state.things.get_mut(key)
            && !thing.contested
        {
            thing.actual = *to;
        }
        Ok(())
    }

    fn action_timeout(_: &Step) -> Duration {
        Duration::from_secs(20)
    }
}

#[derive(Default)]
pub struct StoreState {
    pub statuses: HashMap<Uid, ObjectStatus>,
    pub pauses: PauseState<Uid>,
    pub events: Vec<(Uid, Reason, String, String)>,
    /// Each save, in order.
    pub history: Vec<ObjectStatus>,
    /// Since when each read was asked for.
    pub looks: Vec<Option<i64>>,
    version: i64,
    /// The generations that reads have found, and the versions of their changes.
    versions: HashMap<Uid, (i64, i64)>,
}

/// Statuses in memory; the generations come from the world.
pub struct MemoryStore {
    world: World,
    state: Mutex<StoreState>,
    pub saves: AtomicU64,
    pub loads: AtomicU64,
    pub bulk_loads: AtomicU64,
    pub broken: AtomicBool,
    pub saves_broken: AtomicBool,
    pub looks_broken: AtomicBool,
    pub refusing: AtomicBool,
}

impl MemoryStore {
    pub fn new(world: &World) -> Arc<Self> {
        Arc::new(Self {
            world: world.clone(),
            state: Mutex::default(),
            saves: AtomicU64::new(0),
            loads: AtomicU64::new(0),
            bulk_loads: AtomicU64::new(0),
            broken: AtomicBool::new(false),
            saves_broken: AtomicBool::new(false),
            looks_broken: AtomicBool::new(false),
            refusing: AtomicBool::new(false),
        })
    }

    pub fn state(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock().unwrap()
    }

    pub fn status(&self, name: &str) -> ObjectStatus {
        self.state()
            .statuses
            .get(&key(name))
            .cloned()
            .unwrap_or_default()
    }

    pub fn ready(&self, name: &str) -> Option<Condition> {
        find(&self.status(name).conditions, ConditionType::Ready).cloned()
    }

    pub fn ready_reason(&self, name: &str) -> Option<Reason> {
        self.ready(name).map(|ready| ready.reason)
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.broken.load(SeqCst) {
            return Err(StoreError("the store is scripted to fail".into()));
        }
        Ok(())
    }
}

#[async_trait]
impl StatusStore<Uid> for MemoryStore {
    /// What changed between two reads has the version of the second.
    async fn dirty(&self, since: Option<i64>) -> Result<DirtyKeys<Uid>, StoreError> {
        self.state().looks.push(since);
        self.check()?;
        if self.looks_broken.load(SeqCst) {
            return Err(StoreError("reads are scripted to fail".into()));
        }
        let world = self.world.state();
        let mut state = self.state();
        let state = &mut *state;
        state.version += 1;
        for (key, thing) in &world.things {
            let known = state.versions.get(key).map(|(generation, _)| *generation);
            if known != Some(thing.generation) {
                let version = (thing.generation, state.version);
                state.versions.insert(key.clone(), version);
            }
        }
        let dirty = world
            .things
            .iter()
            .filter(|(key, thing)| {
                let seen = state
                    .statuses
                    .get(*key)
                    .map_or(0, |s| s.observed_generation.0);
                let (_, version) = state.versions[*key];
                thing.generation > seen && since.is_none_or(|since| version > since)
            })
            .map(|(key, thing)| Dirty {
                key: key.clone(),
                generation: Generation(thing.generation),
                bulk: thing.bulk,
            })
            .collect();
        let through = state.version;
        Ok(DirtyKeys { dirty, through })
    }

    async fn load_all(&self) -> Result<Vec<(Uid, ObjectStatus)>, StoreError> {
        self.check()?;
        self.bulk_loads.fetch_add(1, SeqCst);
        Ok(self.state().statuses.clone().into_iter().collect())
    }

    async fn load(&self, key: &Uid) -> Result<ObjectStatus, StoreError> {
        self.check()?;
        self.loads.fetch_add(1, SeqCst);
        Ok(self.state().statuses.get(key).cloned().unwrap_or_default())
    }

    async fn save(&self, key: &Uid, status: &ObjectStatus, _: Epoch) -> Result<bool, StoreError> {
        self.check()?;
        self.saves.fetch_add(1, SeqCst);
        if self.saves_broken.load(SeqCst) {
            return Err(StoreError("saves are scripted to fail".into()));
        }
        if self.refusing.load(SeqCst) {
            return Ok(false);
        }
        let mut state = self.state();
        state.history.push(status.clone());
        let old = state
            .statuses
            .insert(key.clone(), status.clone())
            .unwrap_or_default();
        assert!(
            old.observed_generation <= status.observed_generation,
            "observed_generation moved back"
        );
        Ok(true)
    }

    async fn record_event(
        &self,
        key: &Uid,
        reason: Reason,
        action: &str,
        message: &str,
    ) -> Result<(), StoreError> {
        self.check()?;
        let event = (key.clone(), reason, action.to_owned(), message.to_owned());
        self.state().events.push(event);
        Ok(())
    }

    async fn paused(&self) -> Result<PauseState<Uid>, StoreError> {
        self.check()?;
        Ok(self.state().pauses.clone())
    }
}

/// A controller at work.
pub struct Yard {
    pub world: World,
    pub store: Arc<MemoryStore>,
    pub handle: Arc<dyn ReconcilerHandle>,
    pub ringer: Option<Ringer>,
    pub events: Option<mpsc::UnboundedSender<WorldEvent<Uid>>>,
    pub tick: StatusTick,
    pub supervisor: Supervisor,
    _directory: Option<tempfile::TempDir>,
}

pub fn settings() -> Settings {
    Settings {
        seed: Some(42),
        ..Settings::default()
    }
}

/// No jitter to speak of: the delays are those of the policy, halved on average, but repeatable.
pub fn quick_backoff(initial: u64, cap: u64) -> Settings {
    Settings {
        backoff: Policy {
            initial: Duration::from_secs(initial),
            cap: Duration::from_secs(cap),
        },
        ..settings()
    }
}

impl Yard {
    pub fn new(world: World) -> Self {
        Self::with(world, settings())
    }

    pub fn with(world: World, settings: Settings) -> Self {
        let store = MemoryStore::new(&world);
        Self::on(world, store, settings)
    }

    pub fn on(world: World, store: Arc<MemoryStore>, settings: Settings) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = TokioClock::shared();
        let leadership = file_lock::acquire(directory.path(), clock.clone()).unwrap();
        let mut yard = Self::led(world, store, settings, leadership, clock);
        yard._directory = Some(directory);
        yard
    }

    pub fn led(
        world: World,
        store: Arc<MemoryStore>,
        settings: Settings,
        leadership: Leadership,
        clock: SharedClock,
    ) -> Self {
        let mut supervisor = Supervisor::new(CancellationToken::new());
        let (ringer, bell) = bell();
        let (sender, receiver) = mpsc::unbounded();
        let tick = StatusTick::default();
        let context = Context {
            leadership,
            clock,
            tick: tick.clone(),
            waits: Waits::default(),
            shutdown: supervisor.shutdown(),
        };
        let controller = Controller::new(
            world.clone(),
            store.clone(),
            (bell, Box::pin(receiver)),
            context,
            settings,
        );
        let handle = controller.handle();
        controller.spawn(&mut supervisor);
        Self {
            world,
            store,
            handle,
            ringer: Some(ringer),
            events: Some(sender),
            tick,
            supervisor,
            _directory: None,
        }
    }

    /// A change of desired state, committed and rung.
    pub fn change(&self, name: &str, desired: i64) {
        self.world.change(name, desired);
        self.ringer.as_ref().unwrap().ring();
    }

    pub fn event(&self, event: WorldEvent<Uid>) {
        self.events.as_ref().unwrap().unbounded_send(event).unwrap();
    }

    pub fn summary(&self) -> Summary {
        self.handle.summary()
    }

    /// Waits until `holds`, in virtual time.
    pub async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let started = Instant::now();
        while !holds(self) {
            assert!(
                started.elapsed() < Duration::from_secs(7200),
                "never happened: {what}"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn until_ready(&self, name: &str) {
        self.until("ready", |yard| {
            yard.store.ready(name).is_some_and(|ready| {
                ready.status == schema::condition::ConditionStatus::True
                    && yard.store.status(name).observed_generation.0
                        == yard.world.state().things[&key(name)].generation
            })
        })
        .await;
    }
}

pub async fn pass_time(seconds: f64) {
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
}
