//! The work queue: which key is passed over next, and when.
//!
//! # Guarantees
//! - A key is in flight at most once. A wakeup during a pass makes the key run again after it.
//! - Wakeups of one key collapse; of two times the earlier wins: a wakeup replaces a later timer.
//! - A key in back-off runs before its time only for a new generation or an operator; a parked key
//!   (a failure that trying again does not mend, or a pause) also for the resync.
//! - Memory is bounded by one slot per key that waits, runs or has failed; an idle key has none.
//!
//! # Priorities
//! Three lanes: what somebody waits for (a change by a user, an event of the world, an operator), then
//! changes of many objects at once (a rollout), then the resync. A key keeps its lane over its follow-up
//! passes until it settles; the events that a change of many causes are part of it, so they stay in its
//! lane, and only a change of the key by itself or an operator raises it. What was waited for wakes in the lane
//! of the pass that brought it.
//! - Within a lane, a key that was begun goes on before others are begun: each of its follow-up passes is one place behind the one
//!   before, as if it had come a little later. So the first of a burst is done first, and none is overtaken for ever.
//! - One in eight passes goes to a lower lane when both wait, so that a busy hour cannot starve it.
//! - One worker is kept for the highest lane ([`Queue::with_workers`]): an interactive change never waits
//!   for the slow steps of a rollout.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schema::ids::{Generation, Timestamp};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::backoff::{Backoff, Jitter, Policy};

/// With two lanes waiting, every eighth pass is one of the lower.
const FAIR_SHARE: u32 = 8;
/// The shortest time after which a settled key can ask to be observed again; a zero would spin.
const SHORTEST_AFTER: Duration = Duration::from_millis(100);
/// A key that asks to be observed again within this time is still under way, and keeps its place.
const UNDER_WAY: Duration = Duration::from_secs(5);
/// The longest such time; anything longer is the resync's business.
const LONGEST_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Why a key should be observed. It decides priority and what it may interrupt, and goes to logs;
/// the pass never sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The desired state has a newer generation than the one observed.
    Generation {
        /// The newest.
        generation: Generation,
        /// It came with the change of many objects, and can wait.
        bulk: bool,
    },
    /// Something happened to it in the world.
    Event,
    /// An object that it waits for has changed.
    Awaited {
        /// In the course of a change of many, or of a full pass.
        bulk: bool,
    },
    /// Its turn in the full pass.
    Resync,
    /// An operator asked for it: retry, pause or resume.
    Operator,
    /// An operator asked for all of them.
    OperatorForAll,
}

/// A key to pass over. Must be given back with [`Queue::done`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job<K> {
    /// The key.
    pub key: K,
    /// The newest generation that the key was reported to have before the pass began; zero when the
    /// key was not reported as changed.
    pub generation: Generation,
    /// It is part of a change of many, or of a full pass.
    pub bulk: bool,
}

/// What becomes of a key after its pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// Settled until something wakes it. Resets the back-off.
    Settled,
    /// Settled, but observe again after this time. Resets the back-off.
    After(Duration),
    /// Something was done: observe again at once. Resets the back-off.
    Progressed,
    /// Observe again at once; the back-off stays as it is.
    Again,
    /// Failed for a passing reason: see [`Queue::fail`].
    BackOff(Attempt),
    /// Nothing but a new generation, the resync or an operator helps.
    Park,
}

/// When a failing key is tried again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attempt {
    /// Failures in a row.
    pub failures: u32,
    /// The wait.
    pub delay: Duration,
    /// The moment to show.
    pub next_attempt_at: Timestamp,
    at: Instant,
}

/// When a key runs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextRun {
    /// It runs, or is about to.
    Now,
    /// At this time, unless something wakes it earlier.
    At(Instant),
    /// When something wakes it.
    Unplanned,
}

/// How much is waiting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Depth {
    /// Keys that could run now.
    pub ready: usize,
    /// Keys that wait for a time.
    pub delayed: usize,
    /// Keys whose pass is running.
    pub in_flight: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Priority {
    /// Its turn in the full pass.
    #[default]
    Low,
    /// A change of many.
    Bulk,
    /// Somebody waits for it.
    High,
}

/// How strong a wakeup is against a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Force {
    Weak,
    OpensParked,
    OpensAll,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Gate {
    #[default]
    Open,
    BackOff,
    Parked,
}

/// A place in a lane: the turn, and what tells two of the same turn apart.
type Place = (u64, u64);

#[derive(Debug, Default)]
struct Slot {
    in_flight: bool,
    /// The pass in flight holds one of the workers that the lower lanes may have.
    holds_lower: bool,
    ready: Option<(Priority, Place)>,
    /// Since when it could run.
    ready_since: Option<Instant>,
    /// Of its next pass, while it is under way.
    turn: Option<u64>,
    timer: Option<(Instant, u64)>,
    /// Of the interest in this key until it settles.
    priority: Priority,
    /// Woken while in flight.
    dirty: Option<Force>,
    gate: Gate,
    backoff: Option<Box<Backoff>>,
    next_attempt_at: Option<Timestamp>,
    /// The newest generation for which a pass was begun: a report of it is old news.
    attempted: Generation,
    /// The newest generation reported.
    reported: Generation,
}

struct State<K> {
    slots: HashMap<K, Slot>,
    high: BTreeMap<Place, K>,
    bulk: BTreeMap<Place, K>,
    low: BTreeMap<Place, K>,
    timers: BTreeMap<(Instant, u64), K>,
    sequence: u64,
    /// The turn that was given out last to a key that was not under way.
    turns: u64,
    in_flight: usize,
    /// Of those, passes of the lower lanes.
    lower_in_flight: usize,
    /// How many of those there may be.
    lower_limit: usize,
    high_in_a_row: u32,
    /// Passes of the middle lane since the last one of the lowest.
    bulk_in_a_row: u32,
    jitter: Jitter,
    /// Since when there has always been a key that could run.
    waiting_since: Option<Instant>,
}

/// See the [module](self).
pub struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
    policy: Policy,
}

impl<K> fmt::Debug for Queue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// An empty queue.
    pub fn new(policy: Policy, jitter: Jitter) -> Self {
        Self {
            state: Mutex::new(State {
                slots: HashMap::new(),
                high: BTreeMap::new(),
                bulk: BTreeMap::new(),
                low: BTreeMap::new(),
                timers: BTreeMap::new(),
                sequence: 0,
                turns: 0,
                in_flight: 0,
                lower_in_flight: 0,
                lower_limit: usize::MAX,
                high_in_a_row: 0,
                bulk_in_a_row: 0,
                jitter,
                waiting_since: None,
            }),
            changed: Notify::new(),
            policy,
        }
    }

    /// With so many workers, of which one is kept for the highest lane if there is more than one.
    pub fn with_workers(self, workers: usize) -> Self {
        self.state().lower_limit = workers.saturating_sub(1).max(1);
        self
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        // Each operation leaves the state whole before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a pass over `key`. False when the wakeup changes nothing: the key waits in a back-off
    /// or is parked, or the generation is already being tried.
    pub fn add(&self, key: &K, wake: Wake) -> bool {
        let woken = self.state().add(key, wake);
        if woken {
            self.changed.notify_one();
        }
        woken
    }

    /// Ends the back-off of every key.
    pub fn hurry(&self) {
        let waiting = {
            let state = self.state();
            let waits = |key: &&K| {
                let slot = state.slots.get(key);
                slot.is_some_and(|slot| slot.gate == Gate::BackOff)
            };
            let waiting: Vec<K> = state.timers.values().filter(waits).cloned().collect();
            waiting
        };
        for key in waiting {
            self.add(&key, Wake::OperatorForAll);
        }
    }

    /// The next key that may run, when there is one. Safe to cancel.
    ///
    /// Each new key or timer wakes one idle worker, the one that has looked longest ago: so whenever a
    /// worker leaves to work, every worker that stays idle has looked since, and knows the next timer.
    pub async fn take(&self) -> Job<K> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Interest first, look second: what is added in between is not missed.
            changed.as_mut().enable();
            let next_timer = {
                let mut state = self.state();
                state.ring_timers(Instant::now());
                if let Some(job) = state.pop() {
                    return job;
                }
                state.timers.keys().next().map(|(at, _)| *at)
            };
            match next_timer {
                Some(at) => {
                    let _ = tokio::time::timeout_at(at, changed).await;
                }
                None => changed.await,
            }
        }
    }

    /// Counts a failure of a key in flight, and decides when it is tried again. To be followed by
    /// [`done`](Self::done) with [`Verdict::BackOff`]; in between the caller can save what it says.
    pub fn fail(&self, key: &K, now: Timestamp) -> Attempt {
        let mut state = self.state();
        let State { slots, jitter, .. } = &mut *state;
        let slot = slots.entry(key.clone()).or_default();
        let backoff = slot
            .backoff
            .get_or_insert_with(|| Box::new(Backoff::new(self.policy)));
        let delay = backoff.fail(jitter);
        Attempt {
            failures: backoff.failures(),
            delay,
            next_attempt_at: now.plus(delay),
            at: Instant::now() + delay,
        }
    }

    /// Gives back a key after its pass. `observed` is the generation that the pass worked on.
    pub fn done(&self, key: &K, verdict: Verdict, observed: Option<Generation>) {
        self.state().done(key, verdict, observed);
        self.changed.notify_one();
    }

    /// Forgets everything but the passes that run, each of which is followed by another.
    pub fn forget(&self) {
        self.state().forget();
    }

    /// When a failing key is tried again; `None` when it is not in back-off.
    pub fn next_attempt_at(&self, key: &K) -> Option<Timestamp> {
        self.state().slots.get(key)?.next_attempt_at
    }

    /// When the key runs next by itself, as far as the queue knows.
    pub fn next_run(&self, key: &K) -> NextRun {
        let state = self.state();
        let Some(slot) = state.slots.get(key) else {
            return NextRun::Unplanned;
        };
        match slot.timer {
            _ if slot.in_flight || slot.ready.is_some() => NextRun::Now,
            Some((at, _)) => NextRun::At(at),
            None => NextRun::Unplanned,
        }
    }

    /// Since when there has always been a key that could run; `None` while there is none.
    pub fn waiting_since(&self) -> Option<Instant> {
        self.state().waiting_since
    }

    /// Longest time for which a key has been able to run; `None` while there is none.
    pub fn oldest_wait(&self) -> Option<Duration> {
        let state = self.state();
        let since = state.slots.values().filter_map(|slot| slot.ready_since);
        since.min().map(|since| since.elapsed())
    }

    /// How much is waiting.
    pub fn depth(&self) -> Depth {
        let state = self.state();
        Depth {
            ready: state.high.len() + state.bulk.len() + state.low.len(),
            delayed: state.timers.len(),
            in_flight: state.in_flight,
        }
    }

    /// Slots held, for tests of boundedness.
    #[cfg(test)]
    pub(crate) fn slots(&self) -> usize {
        self.state().slots.len()
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn forget(&mut self) {
        self.high.clear();
        self.bulk.clear();
        self.low.clear();
        self.timers.clear();
        self.waiting_since = None;
        self.slots.retain(|_, slot| slot.in_flight);
        for slot in self.slots.values_mut() {
            *slot = Slot {
                in_flight: true,
                holds_lower: slot.holds_lower,
                dirty: Some(Force::OpensAll),
                ..Slot::default()
            };
        }
    }

    fn add(&mut self, key: &K, wake: Wake) -> bool {
        let attempted = self.slots.get(key).map(|slot| slot.attempted);
        let reported = match wake {
            Wake::Generation { generation, .. } if Some(generation) <= attempted => return false,
            Wake::Generation { generation, .. } => generation,
            Wake::Event
            | Wake::Awaited { .. }
            | Wake::Resync
            | Wake::Operator
            | Wake::OperatorForAll => Generation::default(),
        };
        let slot = self.slots.entry(key.clone()).or_default();
        slot.reported = slot.reported.max(reported);
        let (priority, force) = match wake {
            Wake::Generation { bulk: true, .. } | Wake::OperatorForAll => {
                (Priority::Bulk, Force::OpensAll)
            }
            Wake::Generation { bulk: false, .. } | Wake::Operator => {
                (Priority::High, Force::OpensAll)
            }
            Wake::Awaited { bulk: true } => (Priority::Bulk, Force::Weak),
            Wake::Awaited { bulk: false } => (Priority::High, Force::Weak),
            Wake::Event if slot.priority == Priority::Bulk => (Priority::Bulk, Force::Weak),
            Wake::Event => (Priority::High, Force::Weak),
            Wake::Resync => (Priority::Low, Force::OpensParked),
        };
        if slot.in_flight {
            slot.priority = slot.priority.max(priority);
            slot.dirty = slot.dirty.max(Some(force));
            return true;
        }
        let closed = match slot.gate {
            Gate::Open => false,
            Gate::Parked => force < Force::OpensParked,
            Gate::BackOff => force < Force::OpensAll,
        };
        if closed {
            return false;
        }
        slot.priority = slot.priority.max(priority);
        self.make_ready(key);
        true
    }

    fn sequence(&mut self) -> u64 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }

    fn make_ready(&mut self, key: &K) {
        let sequence = self.sequence();
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        if slot.ready.is_some_and(|(lane, _)| lane < slot.priority) {
            // It joins the higher lane now.
            slot.turn = None;
        }
        let turns = &mut self.turns;
        let turn = *slot.turn.get_or_insert_with(|| {
            *turns += 1;
            *turns
        });
        let place = (turn, sequence);
        if let Some(timer) = slot.timer.take() {
            self.timers.remove(&timer);
        }
        slot.gate = Gate::Open;
        slot.next_attempt_at = None;
        match slot.ready {
            Some((priority, _)) if priority >= slot.priority => return,
            Some((Priority::Bulk, old)) => {
                self.bulk.remove(&old);
            }
            Some((Priority::Low | Priority::High, old)) => {
                self.low.remove(&old);
            }
            None => {}
        }
        slot.ready = Some((slot.priority, place));
        slot.ready_since.get_or_insert_with(Instant::now);
        self.waiting_since.get_or_insert_with(Instant::now);
        match slot.priority {
            Priority::High => self.high.insert(place, key.clone()),
            Priority::Bulk => self.bulk.insert(place, key.clone()),
            Priority::Low => self.low.insert(place, key.clone()),
        };
    }

    fn set_timer(&mut self, key: &K, at: Instant) {
        let sequence = self.sequence();
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        if let Some(old) = slot.timer.replace((at, sequence)) {
            self.timers.remove(&old);
        }
        self.timers.insert((at, sequence), key.clone());
    }

    fn ring_timers(&mut self, now: Instant) {
        while let Some(entry) = self.timers.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let key = entry.remove();
            if let Some(slot) = self.slots.get_mut(&key) {
                slot.timer = None;
            }
            self.make_ready(&key);
        }
    }

    /// The lower lane whose turn it is, if it may have another worker.
    fn lower_lane(&self) -> Option<Priority> {
        if self.lower_in_flight >= self.lower_limit {
            return None;
        }
        let low_is_due = self.bulk_in_a_row + 1 >= FAIR_SHARE;
        match (self.bulk.is_empty(), self.low.is_empty()) {
            (true, true) => None,
            (false, true) => Some(Priority::Bulk),
            (true, false) => Some(Priority::Low),
            (false, false) if low_is_due => Some(Priority::Low),
            (false, false) => Some(Priority::Bulk),
        }
    }

    fn pop(&mut self) -> Option<Job<K>> {
        let lower = self.lower_lane();
        let lower_is_due = self.high_in_a_row + 1 >= FAIR_SHARE && lower.is_some();
        let lane = if self.high.is_empty() || lower_is_due {
            lower?
        } else {
            Priority::High
        };
        let ((turn, _), key) = match lane {
            Priority::High => {
                self.high_in_a_row = self.high_in_a_row.saturating_add(1);
                self.high.pop_first()?
            }
            Priority::Bulk => {
                self.high_in_a_row = 0;
                self.bulk_in_a_row = self.bulk_in_a_row.saturating_add(1);
                self.bulk.pop_first()?
            }
            Priority::Low => {
                self.high_in_a_row = 0;
                self.bulk_in_a_row = 0;
                self.low.pop_first()?
            }
        };
        let holds_lower = lane != Priority::High;
        self.lower_in_flight += usize::from(holds_lower);
        let slot = self.slots.entry(key.clone()).or_default();
        slot.ready = None;
        slot.ready_since = None;
        slot.turn = Some(turn + 1);
        slot.in_flight = true;
        slot.holds_lower = holds_lower;
        slot.dirty = None;
        slot.attempted = slot.attempted.max(slot.reported);
        self.in_flight += 1;
        if self.high.is_empty() && self.bulk.is_empty() && self.low.is_empty() {
            self.waiting_since = None;
        }
        Some(Job {
            generation: slot.reported,
            bulk: holds_lower,
            key,
        })
    }

    fn done(&mut self, key: &K, verdict: Verdict, observed: Option<Generation>) {
        let Some(slot) = self.slots.get_mut(key) else {
            return;
        };
        if !slot.in_flight {
            return;
        }
        slot.in_flight = false;
        self.in_flight -= 1;
        self.lower_in_flight -= usize::from(slot.holds_lower);
        slot.attempted = slot.attempted.max(observed.unwrap_or_default());
        let dirty = slot.dirty.take();
        match verdict {
            Verdict::Settled | Verdict::After(_) | Verdict::Progressed | Verdict::Park => {
                slot.backoff = None;
            }
            Verdict::Again | Verdict::BackOff(_) => {}
        }
        let is_under_way = match verdict {
            Verdict::Progressed | Verdict::Again => true,
            Verdict::After(delay) => delay <= UNDER_WAY,
            Verdict::Settled | Verdict::Park | Verdict::BackOff(_) => false,
        };
        if !is_under_way {
            slot.turn = None;
        }
        match verdict {
            Verdict::Settled if dirty.is_none() => {
                self.slots.remove(key);
            }
            Verdict::After(delay) if dirty.is_none() => {
                let delay = delay.clamp(SHORTEST_AFTER, LONGEST_AFTER);
                self.set_timer(key, Instant::now() + delay);
            }
            Verdict::Park if dirty < Some(Force::OpensParked) => slot.gate = Gate::Parked,
            Verdict::BackOff(attempt) if dirty < Some(Force::OpensAll) => {
                slot.gate = Gate::BackOff;
                slot.next_attempt_at = Some(attempt.next_attempt_at);
                self.set_timer(key, attempt.at);
            }
            Verdict::Settled
            | Verdict::After(_)
            | Verdict::Progressed
            | Verdict::Again
            | Verdict::Park
            | Verdict::BackOff(_) => self.make_ready(key),
        }
    }
}
