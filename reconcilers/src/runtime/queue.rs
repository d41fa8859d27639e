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
//! A change by a user and an event of the world come before the resync. A key keeps its priority
//! over its follow-up passes until it settles. One in eight passes goes to the resync when
//! both wait, so that a busy hour cannot starve it.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schema::ids::{Generation, Timestamp};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::backoff::{Backoff, Jitter, Policy};

/// With both priorities waiting, every eighth pass is one of the low priority.
const FAIR_SHARE: u32 = 8;
/// The shortest time after which a settled key can ask to be looked at again; a zero would spin.
const SHORTEST_AFTER: Duration = Duration::from_millis(100);
/// The longest such time; anything longer is the resync's business.
const LONGEST_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Why a key should be looked at. It decides priority and what it may interrupt, and goes to logs;
/// the pass never sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// The desired state has this generation, which is newer than the one observed.
    Generation(Generation),
    /// Something happened to it in the world.
    Event,
    /// Its turn in the full pass.
    Resync,
    /// An operator asked for it: retry, pause or resume.
    Operator,
}

/// A key to pass over. Must be given back with [`Queue::done`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job<K> {
    /// The key.
    pub key: K,
    /// The newest generation that the key was reported to have before the pass began; zero when the
    /// key was not reported as changed.
    pub generation: Generation,
}

/// What becomes of a key after its pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// Settled until something wakes it. Resets the back-off.
    Settled,
    /// Settled, but look again after this time. Resets the back-off.
    After(Duration),
    /// Something was done: look again at once. Resets the back-off.
    Progressed,
    /// Look again at once; the back-off stays as it is.
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
    #[default]
    Low,
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

#[derive(Debug, Default)]
struct Slot {
    in_flight: bool,
    ready: Option<(Priority, u64)>,
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
    high: BTreeMap<u64, K>,
    low: BTreeMap<u64, K>,
    timers: BTreeMap<(Instant, u64), K>,
    sequence: u64,
    in_flight: usize,
    high_in_a_row: u32,
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
                low: BTreeMap::new(),
                timers: BTreeMap::new(),
                sequence: 0,
                in_flight: 0,
                high_in_a_row: 0,
                jitter,
                waiting_since: None,
            }),
            changed: Notify::new(),
            policy,
        }
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

    /// How much is waiting.
    pub fn depth(&self) -> Depth {
        let state = self.state();
        Depth {
            ready: state.high.len() + state.low.len(),
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
    fn add(&mut self, key: &K, wake: Wake) -> bool {
        let attempted = self.slots.get(key).map(|slot| slot.attempted);
        let reported = match wake {
            Wake::Generation(generation) if Some(generation) <= attempted => return false,
            Wake::Generation(generation) => generation,
            Wake::Event | Wake::Resync | Wake::Operator => Generation::default(),
        };
        let slot = self.slots.entry(key.clone()).or_default();
        slot.reported = slot.reported.max(reported);
        let (priority, force) = match wake {
            Wake::Generation(_) | Wake::Operator => (Priority::High, Force::OpensAll),
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
        if let Some(timer) = slot.timer.take() {
            self.timers.remove(&timer);
        }
        slot.gate = Gate::Open;
        slot.next_attempt_at = None;
        match slot.ready {
            Some((priority, _)) if priority >= slot.priority => return,
            Some((_, old)) => {
                self.low.remove(&old);
            }
            None => {}
        }
        slot.ready = Some((slot.priority, sequence));
        self.waiting_since.get_or_insert_with(Instant::now);
        match slot.priority {
            Priority::High => self.high.insert(sequence, key.clone()),
            Priority::Low => self.low.insert(sequence, key.clone()),
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

    fn pop(&mut self) -> Option<Job<K>> {
        let low_is_due = self.high_in_a_row + 1 >= FAIR_SHARE && !self.low.is_empty();
        let (key, high) = match self.high.first_entry() {
            Some(entry) if !low_is_due => (entry.remove(), true),
            _ => (self.low.pop_first()?.1, false),
        };
        self.high_in_a_row = if high {
            self.high_in_a_row.saturating_add(1)
        } else {
            0
        };
        let slot = self.slots.entry(key.clone()).or_default();
        slot.ready = None;
        slot.in_flight = true;
        slot.dirty = None;
        slot.attempted = slot.attempted.max(slot.reported);
        self.in_flight += 1;
        if self.high.is_empty() && self.low.is_empty() {
            self.waiting_since = None;
        }
        Some(Job {
            generation: slot.reported,
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
        slot.attempted = slot.attempted.max(observed.unwrap_or_default());
        let dirty = slot.dirty.take();
        match verdict {
            Verdict::Settled | Verdict::After(_) | Verdict::Progressed | Verdict::Park => {
                slot.backoff = None;
            }
            Verdict::Again | Verdict::BackOff(_) => {}
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
