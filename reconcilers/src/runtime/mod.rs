//! The runtime: one loop that every reconciler shares.
//!
//! A reconciler says *what* (its keys, how to observe, plan and apply); the runtime says *when*,
//! and what becomes of the result. The principles, each of which is a defect of some older system
//! turned around:
//!
//! - **Level-triggered.** Whatever wakes a key (a bell, an event of the world, the resync, a timer)
//!   only says *observe*. Wakeups of one key collapse into one pass, and a lost wakeup costs time, never
//!   correctness, because the resync comes anyway.
//! - **One pass at a time per key** ([`queue`]), under a lease that is checked by the clock before
//!   the pass and before every action ([`leader`]).
//! - **Failures wait** ([`backoff`]): only a new generation or an operator cuts a back-off short, so
//!   that neither the poll nor a crash-looping object's own events defeat it.
//! - **`Ready=True` is an observation**, never the echo of a call: a plan with actions cannot say it,
//!   and the pass after one that changed something verifies.
//! - **Nothing to do costs nothing**: the runtime keeps the last saved statuses in memory (the leader
//!   is their only writer), so a pass that finds nothing new neither queries nor writes.
//! - **No detached tasks** ([`supervise`]): a loop that dies takes the process with it, visibly.
//!
//! The parts: [`controller`] ties them together, `pass` is one pass, `status` decides what is saved,
//! `sources` are the tasks that wake keys, [`summary`] is what an operator sees.

pub mod backoff;
mod blocking;
pub mod clock;
pub mod controller;
mod controllers;
pub mod file_lock;
pub mod leader;
mod pass;
mod pulse;
pub mod queue;
mod sources;
mod status;
pub mod stopwatch;
pub mod summary;
pub mod supervise;
#[cfg(test)]
mod tests;
mod waits;

use std::collections::HashSet;
use std::fmt::{Debug, Display};
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

pub use blocking::blocking;
pub use controller::{Context, Controller, Settings, WorldEvent, WorldEvents};
pub use controllers::Controllers;
pub use waits::{Awaited, Waits};

use async_trait::async_trait;
use schema::bell::Bell;
use schema::condition::{Condition, Reason};
use schema::home::Note;
use schema::ids::{Epoch, Generation, Kind, ObjectRef, Timestamp, Uid};

/// Compares desired with observed state of one kind of object, and converges.
pub trait Reconciler: Send + Sync + 'static {
    /// Folder name, metric label, finalizer and log field.
    const NAME: &'static str;
    /// The kind of object.
    const KIND: Kind;
    /// Time between two full passes over `keys()`.
    const RESYNC: Duration;
    /// What an object is known by; a uid, never a name. `From<String>` is the reverse of `Display`,
    /// for operators who name a key.
    type Key: Clone + Eq + Hash + Ord + Debug + Display + From<String> + Send + Sync + 'static;
    /// Desired and observed state, plain data.
    type Snapshot: Send + Sync + 'static;
    /// A small named step.
    type Action: Clone + Debug + PartialEq + Send + Sync + 'static;
    /// What observing and applying can fail with.
    type Error: Classify;

    /// A leadership begins: nothing that was remembered under an earlier one holds, since others may have led
    /// in between.
    fn leads(&self);

    /// Desired keys ∪ keys of owned objects in the world, so that orphans are found.
    fn keys(&self) -> impl Future<Output = Result<Vec<Self::Key>, Self::Error>> + Send;
    /// Reads desired rows in one short transaction, then asks the world. `None`: nothing is desired and nothing is there.
    /// A dry run remembers nothing: whatever a pass would have observed afresh, the next pass still does.
    fn observe(
        &self,
        key: &Self::Key,
        purpose: Purpose,
    ) -> impl Future<Output = Result<Option<Self::Snapshot>, Self::Error>> + Send;
    /// The generation the snapshot's desired state has.
    fn generation(snapshot: &Self::Snapshot) -> Generation;
    /// The name of the snapshot's object, for the log; `None` where nothing says it.
    fn name(_snapshot: &Self::Snapshot) -> Option<&str> {
        None
    }
    /// Decides, purely: no IO, clock, randomness, environment or logging.
    fn plan(snapshot: &Self::Snapshot, now: Timestamp) -> Plan<Self::Action>;
    /// Whether planning may take long, because of what others have written: then it is done on a thread where it holds up
    /// nobody.
    fn is_long(_snapshot: &Self::Snapshot) -> bool {
        false
    }
    /// Notes users' files that a long plan parses, right before it does.
    fn note_parsing(_snapshot: &Self::Snapshot) -> Vec<Note> {
        Vec::new()
    }
    /// Does one step; idempotent and safe to cancel at any await.
    fn apply(
        &self,
        key: &Self::Key,
        action: &Self::Action,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
    /// One step in words, for events and dry runs. Never a secret.
    fn describe(action: &Self::Action) -> String {
        format!("{action:?}")
    }
    /// Whether a step is worth an event; mere bookkeeping is not.
    fn is_event(_action: &Self::Action) -> bool {
        true
    }
    /// Counts a step that was taken, or failed, in metrics of this reconciler's own.
    fn count_step(_snapshot: &Self::Snapshot, _action: &Self::Action, _success: bool) {}
    /// The reason that the event of a step gives.
    fn event_reason(_action: &Self::Action) -> Reason {
        Reason::Progressing
    }
    /// How far the object is, for one that goes a long way of many steps for one generation: as long as
    /// this changes from pass to pass, they are no fight over the same thing.
    fn progress(_snapshot: &Self::Snapshot) -> u64 {
        0
    }
    /// A pass has found nothing left to do: what to remember of it. `conditions` are what its plan said. Never called
    /// for a dry run.
    fn converged(&self, _key: &Self::Key, _snapshot: &Self::Snapshot, _conditions: &[Condition]) {}
    /// The desired state of this key, or something that it waits for, has changed, or a pass could not save its status: what is cached of
    /// it is stale.
    fn changed(&self, _key: &Self::Key) {}
    /// An operator asks for a pass: the next one observes everything afresh.
    fn refresh(&self, _key: &Self::Key) {}
    /// The same for all keys.
    fn refresh_all(&self) {}
    /// How long one step may take before it is cancelled and counts as failed for a passing reason.
    fn action_timeout(_action: &Self::Action) -> Duration {
        Duration::from_secs(120)
    }
}

/// What an observation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A pass, which acts on what is observed and may remember it.
    Pass,
    /// A dry run, which only reports what a pass would do.
    DryRun,
}

/// What a pass would do, what it says of the object, and when to observe again.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A> {
    /// Steps in order; removals first. Empty when the world is as desired.
    pub actions: Vec<A>,
    /// What the observation says. Without a `Ready` condition the runtime adds one: true when
    /// `actions` is empty, else false. A `Ready=True` beside actions that are more than tidying is a defect and is demoted.
    pub conditions: Vec<Condition>,
    /// When to observe again although nothing happened.
    pub requeue: Requeue,
    /// Objects whose change is a reason to observe again.
    pub waits_for: Vec<Awaited>,
    /// The actions change nothing of what is served, such as the removal of what is no longer needed.
    pub is_tidying: bool,
}

impl<A> Plan<A> {
    /// Nothing to do: says `condition` until the next resync or event.
    pub fn say(condition: Condition) -> Self {
        Self {
            actions: Vec::new(),
            conditions: vec![condition],
            requeue: Requeue::AtResync,
            waits_for: Vec::new(),
            is_tidying: false,
        }
    }

    /// Steps to do; `condition` says what for.
    pub fn act(actions: Vec<A>, condition: Condition) -> Self {
        Self {
            actions,
            ..Self::say(condition)
        }
    }

    /// Steps to do beside what is served, of which `condition` stays true.
    pub fn tidy(actions: Vec<A>, condition: Condition) -> Self {
        Self {
            is_tidying: true,
            ..Self::act(actions, condition)
        }
    }

    /// Number of its steps that keep the object from being ready.
    pub(crate) fn steps_before_ready(&self) -> usize {
        if self.is_tidying {
            0
        } else {
            self.actions.len()
        }
    }

    /// Observes again after this time, or earlier on an event.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self {
            requeue: Requeue::After(delay),
            ..self
        }
    }

    /// Its conditions name the object that it waits for. Something else wakes it: an event of the world, or the
    /// resync.
    #[must_use]
    pub fn blocked_by(mut self, kind: Kind, name: impl Into<String>) -> Self {
        let object = ObjectRef::new(kind, name);
        for condition in &mut self.conditions {
            condition.waits_for = Some(object.clone());
        }
        self
    }

    /// Waits for an object, which its conditions name: observes again when that changes.
    #[must_use]
    pub fn waiting_for(self, kind: Kind, uid: &Uid, name: impl Into<String>) -> Self {
        let mut plan = self.blocked_by(kind, name);
        plan.waits_for.push((kind, uid.clone()));
        plan
    }
}

/// When to observe again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requeue {
    /// At the next resync or event.
    AtResync,
    /// After this time, or earlier on an event.
    After(Duration),
}

/// How a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing desired, nothing there.
    Gone,
    /// The plan was empty.
    Converged(Requeue),
    /// Steps ran; the next pass verifies.
    Progressed,
    /// The pass failed.
    Failed(ErrorClass),
    /// Somebody paused the object: nothing was observed.
    Paused,
    /// The lease was lost or the process is ending: the pass stopped before its next step.
    Interrupted,
}

/// What to do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// Try again with growing delay.
    Transient,
    /// Somebody else was faster: observe again at once, not a failure.
    Conflict,
    /// Trying again changes nothing: wait for a new generation or the resync.
    Terminal,
}

impl ErrorClass {
    /// Its name in metrics.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Conflict => "conflict",
            Self::Terminal => "terminal",
        }
    }
}

/// Maps every error to a class and to the reason shown in the condition.
pub trait Classify: std::error::Error + Send + Sync + 'static {
    /// Both.
    fn classify(&self) -> (ErrorClass, Reason);

    /// What the runtime does about it.
    fn class(&self) -> ErrorClass {
        self.classify().0
    }

    /// What the condition says.
    fn reason(&self) -> Reason {
        self.classify().1
    }
}

impl Classify for schema::error::DbError {
    fn classify(&self) -> (ErrorClass, Reason) {
        let reason = match self {
            Self::StorageFull(_) => Reason::StorageFull,
            _ => Reason::Retrying,
        };
        (ErrorClass::Transient, reason)
    }
}

/// What is stored of an object between passes.
///
/// A failed pass writes its generation too, with `Ready` false or unknown: the generation was *seen*,
/// and whoever waits for it learns of the failure. `failures` and `next_attempt_at` tell how it goes
/// on: both set means a retry is scheduled; failures without a next attempt means that trying again
/// changes nothing, so the object waits for a new generation, the resync or an operator.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ObjectStatus {
    /// The newest generation that a pass has seen, whether the pass succeeded or failed.
    pub observed_generation: Generation,
    /// What is known.
    pub conditions: Vec<Condition>,
    /// Failed passes in a row; repeats of a terminal failure are not counted again.
    pub failures: u32,
    /// When the next attempt is due, if the object is in back-off.
    pub next_attempt_at: Option<Timestamp>,
    /// Whether passes are switched off for this object (written by the API, read-only here).
    pub paused: bool,
}

/// Which passes an operator has switched off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PauseState<K: Eq + Hash> {
    /// This whole reconciler, or all of them.
    pub all: bool,
    /// Single objects.
    pub keys: HashSet<K>,
}

impl<K: Eq + Hash> Default for PauseState<K> {
    fn default() -> Self {
        Self {
            all: false,
            keys: HashSet::new(),
        }
    }
}

/// A key whose newest desired state no pass has observed yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dirty<K> {
    /// The key.
    pub key: K,
    /// The newest generation.
    pub generation: Generation,
    /// It was changed together with many others, and can wait.
    pub bulk: bool,
}

/// The dirty keys that a read of the store has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirtyKeys<K> {
    /// The dirty keys.
    pub dirty: Vec<Dirty<K>>,
    /// The version of changes through which that holds: where the next read may begin.
    pub through: i64,
}

/// Where the runtime keeps statuses and events of one reconciler's objects.
///
/// The runtime reads in bulk only: [`load_all`](Self::load_all) once per leadership,
/// [`dirty`](Self::dirty) and [`paused`](Self::paused) at each bell or poll. It asks for a
/// single key only after a save of that key was refused.
#[async_trait]
pub trait StatusStore<K: Eq + Hash>: Send + Sync + 'static {
    /// Keys with `generation > observed_generation`: all of them, or those of what has changed since the version
    /// that an earlier read ended with. A key that was found is not found again before it changes again.
    ///
    /// The generation is what lets the queue tell a new change, which cuts a back-off short, from
    /// one that it has already tried and failed at.
    async fn dirty(&self, since: Option<i64>) -> Result<DirtyKeys<K>, StoreError>;
    /// Every stored status of this reconciler's objects, in one query.
    async fn load_all(&self) -> Result<Vec<(K, ObjectStatus)>, StoreError>;
    /// The stored status; the default when there is none yet.
    async fn load(&self, key: &K) -> Result<ObjectStatus, StoreError>;
    /// Saves a status under the epoch of the writer. Never moves `observed_generation` back, never
    /// writes `paused`.
    /// Returns false when a newer epoch or generation has been written meanwhile (nothing saved),
    /// or when the object no longer exists.
    async fn save(&self, key: &K, status: &ObjectStatus, epoch: Epoch) -> Result<bool, StoreError>;
    /// Appends an event; repeats within five minutes are merged.
    async fn record_event(
        &self,
        key: &K,
        reason: Reason,
        action: &str,
        message: &str,
    ) -> Result<(), StoreError>;
    /// What is switched off: the whole reconciler (or all of them), and single objects.
    async fn paused(&self) -> Result<PauseState<K>, StoreError>;
}

/// The statuses of all kinds of objects, and the bell that rings when desired state has changed.
pub trait Objects: Send + Sync + 'static {
    /// The statuses of one kind.
    fn statuses(&self, kind: Kind, reconciler: &'static str) -> Arc<dyn StatusStore<Uid>>;
    /// A bell for one listener.
    fn bell(&self) -> Bell;
}

/// The status store could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("the status store failed")]
pub struct StoreError(#[source] pub Box<dyn std::error::Error + Send + Sync>);
