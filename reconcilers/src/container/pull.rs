//! Pulls under way. One per reference, however many users wait for it; each belongs to the service,
//! not to the pass that asked for it, because it may take minutes.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use schema::clock::SharedClock;
use schema::ids::Timestamp;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use crate::drivers::docker::{ContainerEngine, RegistryCredentials};
use crate::engine::view::describe;

const AT_ONCE: usize = 2;
/// With `image.pull_policy=always`, a pull this recent is fresh enough: a hundred users created
/// together share one.
const FRESH: Duration = Duration::from_secs(60);
/// Results of references that nobody asks for any more are dropped at this number.
const KEPT: usize = 256;

/// What became of pulling a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullState {
    /// Nobody tried, or it succeeded.
    Idle,
    /// Under way.
    Running,
    /// It failed.
    Failed {
        /// When.
        at: Timestamp,
        /// Why, in the registry's or engine's words.
        message: String,
        /// How often in a row.
        failures: u32,
    },
}

#[derive(Debug, Clone)]
enum Entry {
    Running {
        failures_before: u32,
    },
    Failed {
        at: Timestamp,
        message: String,
        failures: u32,
    },
    Done {
        at: Timestamp,
    },
}

/// The pulls of one engine.
pub struct Pulls {
    engine: Arc<dyn ContainerEngine>,
    entries: Mutex<HashMap<String, Entry>>,
    at_once: Arc<Semaphore>,
    clock: SharedClock,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl std::fmt::Debug for Pulls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pulls").finish_non_exhaustive()
    }
}

impl Pulls {
    /// No pull yet. `tasks` and `shutdown` are the process's own, so that no pull outlives it.
    pub fn new(
        engine: Arc<dyn ContainerEngine>,
        clock: SharedClock,
        tasks: TaskTracker,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            engine,
            entries: Mutex::default(),
            at_once: Arc::new(Semaphore::new(AT_ONCE)),
            clock,
            tasks,
            shutdown,
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What became of pulling `reference`.
    pub fn state(&self, reference: &str) -> PullState {
        match self.entries().get(reference) {
            None | Some(Entry::Done { .. }) => PullState::Idle,
            Some(Entry::Running { .. }) => PullState::Running,
            Some(Entry::Failed {
                at,
                message,
                failures,
            }) => PullState::Failed {
                at: *at,
                message: message.clone(),
                failures: *failures,
            },
        }
    }

    /// Whether `reference` was pulled within the last minute.
    pub fn recently_done(&self, reference: &str) -> bool {
        let now = self.clock.now();
        matches!(self.entries().get(reference), Some(Entry::Done { at }) if now.since(*at) < FRESH)
    }

    /// Starts a pull, or joins the one under way.
    pub fn start(self: &Arc<Self>, reference: &str, credentials: Option<RegistryCredentials>) {
        {
            let mut entries = self.entries();
            let failures_before = match entries.get(reference) {
                Some(Entry::Running { .. }) => return,
                Some(Entry::Failed { failures, .. }) => *failures,
                Some(Entry::Done { .. }) | None => 0,
            };
            if entries.len() >= KEPT {
                entries.retain(|_, entry| matches!(entry, Entry::Running { .. }));
            }
            entries.insert(reference.to_owned(), Entry::Running { failures_before });
        }
        let pulls = Arc::clone(self);
        let reference = reference.to_owned();
        self.tasks.spawn(async move {
            let work = AssertUnwindSafe(pulls.pull(&reference, credentials)).catch_unwind();
            let result = tokio::select! {
                biased;
                () = pulls.shutdown.cancelled() => return,
                result = work => result,
            };
            let message = match result {
                Ok(Ok(())) => None,
                Ok(Err(message)) => Some(message),
                Err(_) => Some("the pull crashed; this is a defect".to_owned()),
            };
            pulls.finish(&reference, message);
        });
    }

    async fn pull(
        &self,
        reference: &str,
        credentials: Option<RegistryCredentials>,
    ) -> Result<(), String> {
        let _turn = self
            .at_once
            .acquire()
            .await
            .map_err(|_| "the service is ending".to_owned())?;
        info!(reference, "pulling an image");
        self.engine
            .pull(reference, credentials.as_ref())
            .await
            .map_err(|error| describe(&error))
    }

    fn finish(&self, reference: &str, failure: Option<String>) {
        let at = self.clock.now();
        let mut entries = self.entries();
        let before = match entries.get(reference) {
            Some(Entry::Running { failures_before }) => *failures_before,
            _ => 0,
        };
        let entry = match failure {
            None => {
                info!(reference, "pulled an image");
                Entry::Done { at }
            }
            Some(message) => {
                warn!(reference, message, "could not pull an image");
                Entry::Failed {
                    at,
                    message,
                    failures: before.saturating_add(1),
                }
            }
        };
        entries.insert(reference.to_owned(), entry);
    }
}
