//! The runtime: one loop that every reconciler shares.

use std::fmt::{Debug, Display};
use std::future::Future;
use std::hash::Hash;
use std::time::Duration;

use async_trait::async_trait;
use schema::condition::{Condition, Reason};
use schema::ids::{Epoch, Generation, Timestamp};

/// Compares desired with observed state of one kind of object, and converges.
pub trait Reconciler: Send + Sync + 'static {
    /// Folder name, metric label, finalizer and log field.
    const NAME: &'static str;
    /// Time between two full passes over `keys()`.
    const RESYNC: Duration;
    /// What an object is known by; a uid, never a name.
    type Key: Clone + Eq + Hash + Ord + Debug + Display + Send + Sync + 'static;
    /// Desired and observed state, plain data.
    type Snapshot: Send + Sync;
    /// A small named step.
    type Action: Clone + Debug + PartialEq + Send + Sync;
    /// What observing and applying can fail with.
    type Error: Classify;

    /// Desired keys ∪ keys of owned objects in the world, so that orphans are found.
    fn keys(&self) -> impl Future<Output = Result<Vec<Self::Key>, Self::Error>> + Send;
    /// Reads desired rows in one short transaction, then asks the world. `None`: nothing is desired and nothing is there.
    fn observe(
        &self,
        key: &Self::Key,
    ) -> impl Future<Output = Result<Option<Self::Snapshot>, Self::Error>> + Send;
    /// The generation the snapshot's desired state has.
    fn generation(snapshot: &Self::Snapshot) -> Generation;
    /// Decides, purely: no IO, clock, randomness, environment or logging.
    fn plan(snapshot: &Self::Snapshot, now: Timestamp) -> Plan<Self::Action>;
    /// Does one step; idempotent and safe to cancel at any await.
    fn apply(
        &self,
        key: &Self::Key,
        action: &Self::Action,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// What a pass would do, what it says of the object, and when to look again.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan<A> {
    /// Steps in order; removals first. Empty when the world is as desired.
    pub actions: Vec<A>,
    /// What the observation says.
    pub conditions: Vec<Condition>,
    /// When to look again although nothing happened.
    pub requeue: Requeue,
}

/// When to look again.
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
}

/// What to do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// Try again with growing delay.
    Transient,
    /// Somebody else was faster: look again at once, not a failure.
    Conflict,
    /// Trying again changes nothing: wait for a new generation or the resync.
    Terminal,
}

/// Maps every error to a class and to the reason shown in the condition.
pub trait Classify: std::error::Error + Send + Sync + 'static {
    /// What the runtime does about it.
    fn class(&self) -> ErrorClass;
    /// What the condition says.
    fn reason(&self) -> Reason;
}

/// What is stored of an object between passes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ObjectStatus {
    /// The newest generation that a pass has observed.
    pub observed_generation: Generation,
    /// What is known.
    pub conditions: Vec<Condition>,
    /// Failed passes in a row.
    pub failures: u32,
    /// When the next attempt is due, if the object is in back-off.
    pub next_attempt_at: Option<Timestamp>,
    /// Whether passes are switched off for this object (written by the API, read-only here).
    pub paused: bool,
}

/// Where the runtime keeps statuses and events of one reconciler's objects.
#[async_trait]
pub trait StatusStore<K>: Send + Sync + 'static {
    /// Keys with `generation > observed_generation`.
    async fn dirty_keys(&self) -> Result<Vec<K>, StoreError>;
    /// The stored status; the default when there is none yet.
    async fn load(&self, key: &K) -> Result<ObjectStatus, StoreError>;
    /// Saves a status under the epoch of the writer. Never moves `observed_generation` back.
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
    /// Whether passes of this whole reconciler, or of all, are switched off.
    async fn paused(&self) -> Result<bool, StoreError>;
}

/// The status store could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("the status store failed")]
pub struct StoreError(#[source] pub Box<dyn std::error::Error + Send + Sync>);
