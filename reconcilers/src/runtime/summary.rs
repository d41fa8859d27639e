//! What an operator sees of a reconciler, and may ask of it.

use async_trait::async_trait;
use schema::condition::Reason;
use schema::ids::Timestamp;
pub use schema::live::DryRun;
use schema::live::{LiveNumbers, NextReconciliation};
use tokio::sync::watch;

/// How one reconciler is. On a standby, which observes nothing, all numbers are zero.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The reconciler.
    pub name: &'static str,
    /// Objects with a status.
    pub objects: usize,
    /// Objects observed as desired.
    pub ready: usize,
    /// All others.
    pub not_ready: usize,
    /// Objects whose last pass failed.
    pub failing: usize,
    /// Whether the whole reconciler is paused.
    pub paused: bool,
    /// What no table knows.
    pub live: LiveNumbers,
}

/// The object could not be observed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DryRunError {
    /// Why, for programs.
    pub reason: Reason,
    /// Why, for people.
    pub message: String,
}

/// A reconciler as an operator sees it, whatever its types. Keys are given in their text form.
#[async_trait]
pub trait ReconcilerHandle: Send + Sync {
    /// The reconciler's name.
    fn name(&self) -> &'static str;
    /// Live numbers.
    fn summary(&self) -> Summary;
    /// Since when the reconciler gets nowhere although it should, and how that shows.
    fn stuck(&self) -> Option<(Timestamp, String)>;
    /// Observes and plans, but does nothing. `None`: nothing is desired and nothing is there.
    ///
    /// # Errors
    /// When the object cannot be observed now, with the reason that a pass would give.
    async fn dry_run(&self, key: &str) -> Result<Option<DryRun>, DryRunError>;
    /// Asks for a pass over one key at once, back-off or not. Does nothing on a standby.
    fn retry(&self, key: &str);
    /// Asks for a full pass at once, which observes everything afresh. Does nothing on a standby.
    fn retry_all(&self);
    /// When a failing key is tried again; `None` when it is not in back-off.
    fn next_attempt(&self, key: &str) -> Option<Timestamp>;
    /// When an object is reconciled next; `None` on a standby, which does not know.
    fn next_reconciliation(&self, key: &str) -> Option<NextReconciliation>;
    /// Reads once for changes of desired state, and begins a full pass.
    fn wake(&self);
}

/// Counts the status saves of this process, so that whoever waits for an object to converge knows
/// when to look. Other replicas' saves are not counted: look every second or so as well.
#[derive(Debug, Clone)]
pub struct StatusTick(watch::Sender<u64>);

impl Default for StatusTick {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl StatusTick {
    /// A status was saved.
    pub fn bump(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Changes with every save. Subscribe before reading a status, so that no save is missed.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
