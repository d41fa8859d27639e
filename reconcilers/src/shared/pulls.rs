//! Pulls under way. One per reference, however many ask for it or watch it; each belongs to the
//! service, not to the pass or the request that asked, because it may take minutes.

mod progress;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::{EngineError, Image, Images, RegistryCredentials};
use futures::{FutureExt, StreamExt};
use schema::clock::SharedClock;
use schema::error::chain;
use schema::ids::{Kind, Timestamp, Uid};
use schema::image::{ImageReference, PullLog, PullSum, PullUpdate, RunningPull};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use self::progress::Progress;
use crate::runtime::Waits;
use crate::runtime::backoff::doubled;

/// Pulls that the engine makes at once; the others wait for their turn.
const AT_ONCE: usize = 3;
/// With `image.pull_policy=always`, a pull this recent is fresh enough: a hundred users created
/// together share one. As long is its log shown to viewers who come late.
const FRESH: Duration = Duration::from_secs(60);
/// Results of references are dropped at this number.
const KEPT: usize = 256;
/// Pause after the first failed pull; it doubles with each further one.
pub const FIRST_RETRY: Duration = Duration::from_secs(5);
/// The longest pause, and that after a pull that trying again does not mend.
pub const LONGEST_RETRY: Duration = Duration::from_secs(5 * 60);
/// What viewers of a cancelled pull are shown.
pub const CANCELLED: &str = "the pull was cancelled";

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
        /// Trying again soon leads to the same words.
        refused: bool,
        /// Somebody cancelled it.
        cancelled: bool,
    },
}

/// What became of pulling a reference, and of whose request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullReport {
    /// Nobody tried.
    Idle,
    /// Under way.
    Running {
        /// The newest request that it answers.
        token: String,
        /// How far it is.
        sum: PullSum,
    },
    /// It failed.
    Failed {
        /// The newest request that it answers.
        token: String,
        /// When.
        at: Timestamp,
        /// Why, in the registry's or engine's words.
        message: String,
        /// How often in a row.
        failures: u32,
        /// Trying again soon leads to the same words.
        refused: bool,
        /// Somebody cancelled it.
        cancelled: bool,
        /// The engine went away, so nobody knows whether the image can be had.
        engine_lost: bool,
    },
    /// It succeeded.
    Done {
        /// The newest request that it answers.
        token: String,
        /// When.
        at: Timestamp,
        /// The image (`sha256:…`).
        image_id: String,
        /// Its repository digest (`name@sha256:…`), if it has one.
        digest: Option<String>,
    },
}

struct Running {
    /// Tells a pull from a later one of the same reference.
    number: u64,
    token: String,
    failures_before: u32,
    started_at: Timestamp,
    cancel: CancellationToken,
}

enum Entry {
    Running(Running),
    /// How it ended.
    Ended(PullReport),
}

struct Failure {
    message: String,
    refused: bool,
    cancelled: bool,
    engine_lost: bool,
}

impl Failure {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            refused: false,
            cancelled: false,
            engine_lost: false,
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self {
            refused: matches!(error, EngineError::PullRefused(_) | EngineError::Refused(_)),
            engine_lost: matches!(error, EngineError::Unavailable(_)),
            ..Self::new(chain(&error))
        }
    }
}

#[derive(Default)]
struct State {
    entries: HashMap<String, (Entry, Arc<PullLog>)>,
    numbers: u64,
}

/// The pulls of one engine.
pub struct Pulls {
    images: Arc<dyn Images>,
    state: Mutex<State>,
    at_once: Semaphore,
    clock: SharedClock,
    waits: Waits,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl std::fmt::Debug for Pulls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pulls").finish_non_exhaustive()
    }
}

/// How long after its failure a pull is tried again, after so many in a row.
pub fn retry_delay(failures: u32) -> Duration {
    doubled(FIRST_RETRY, LONGEST_RETRY, failures)
}

/// The full form of a reference, so that each image has one pull, however it was written.
fn full(reference: &str) -> String {
    if reference.starts_with("sha256:") {
        // An id, which no registry knows; the engine's driver says so.
        return reference.to_owned();
    }
    let parsed: Result<ImageReference, _> = reference.parse();
    parsed.map_or_else(|_| reference.to_owned(), |parsed| parsed.to_string())
}

/// What whoever waits for the pull of this reference waits for.
pub fn awaited(reference: &str) -> Uid {
    Uid::from(full(reference))
}

/// The digest under which the reference's own repository knows the image; `given`, what the registry
/// just gave, where the image has several.
fn repository_digest(image: &Image, reference: &str, given: Option<&str>) -> Option<String> {
    let reference: ImageReference = reference.parse().ok()?;
    let mut own = image.repo_digests.iter().filter(|digest| {
        let digest: Result<ImageReference, _> = digest.parse();
        digest.is_ok_and(|digest| digest.same_repository(&reference))
    });
    let expected = given.or(reference.digest());
    let fits = |digest: &&String| expected.is_some_and(|expected| digest.ends_with(expected));
    own.clone().find(fits).or_else(|| own.next()).cloned()
}

impl Pulls {
    /// No pull yet. `tasks` and `shutdown` are the process's own, so that no pull outlives it.
    pub fn new(
        images: Arc<dyn Images>,
        clock: SharedClock,
        waits: Waits,
        tasks: TaskTracker,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            images,
            state: Mutex::default(),
            #[expect(
                clippy::disallowed_methods,
                reason = "all pulls share it; administrators start them"
            )]
            at_once: Semaphore::new(AT_ONCE),
            clock,
            waits,
            tasks,
            shutdown,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What became of pulling `reference`.
    pub fn state(&self, reference: &str) -> PullState {
        match self.report(reference) {
            PullReport::Idle | PullReport::Done { .. } => PullState::Idle,
            PullReport::Running { .. } => PullState::Running,
            PullReport::Failed {
                at,
                message,
                failures,
                refused,
                cancelled,
                ..
            } => PullState::Failed {
                at,
                message,
                failures,
                refused,
                cancelled,
            },
        }
    }

    /// What became of pulling `reference`, and of whose request.
    pub fn report(&self, reference: &str) -> PullReport {
        match self.lock().entries.get(&full(reference)) {
            None => PullReport::Idle,
            Some((Entry::Running(running), log)) => PullReport::Running {
                token: running.token.clone(),
                sum: log.sum(),
            },
            Some((Entry::Ended(report), _)) => report.clone(),
        }
    }

    /// Whether `reference` was pulled within the last minute.
    pub fn recently_done(&self, reference: &str) -> bool {
        let now = self.clock.now();
        matches!(self.report(reference), PullReport::Done { at, .. } if now.left_of(at, FRESH).is_some())
    }

    /// The log of the pull of `reference`; `None` when there is none, now or within the last minute.
    pub fn log(&self, reference: &str) -> Option<Arc<PullLog>> {
        let state = self.lock();
        let (entry, log) = state.entries.get(&full(reference))?;
        let shown = match entry {
            Entry::Ended(PullReport::Failed { at, .. } | PullReport::Done { at, .. }) => {
                self.clock.now().left_of(*at, FRESH).is_some()
            }
            Entry::Running(_) | Entry::Ended(_) => true,
        };
        shown.then(|| Arc::clone(log))
    }

    /// Pulls that wait or run, by reference.
    pub fn list(&self) -> Vec<RunningPull> {
        let state = self.lock();
        let running = state
            .entries
            .iter()
            .filter_map(|(reference, (entry, log))| {
                let Entry::Running(running) = entry else {
                    return None;
                };
                Some(RunningPull {
                    reference: reference.clone(),
                    sum: log.sum(),
                    started_at: running.started_at,
                    viewers: log.viewers(),
                })
            });
        let mut running: Vec<_> = running.collect();
        running.sort_by(|a, b| a.reference.cmp(&b.reference));
        running
    }

    /// Starts a pull, or joins the one under way. `token` names the request that it answers; it is
    /// empty for those who only want the image to be there.
    pub fn start(
        self: &Arc<Self>,
        reference: &str,
        credentials: Option<RegistryCredentials>,
        token: &str,
    ) {
        let reference = full(reference);
        let log = Arc::new(PullLog::default());
        let cancel = CancellationToken::new();
        let number = {
            let mut state = self.lock();
            let mut failures_before = 0;
            match state.entries.get_mut(&reference) {
                Some((Entry::Running(running), _)) => {
                    if !token.is_empty() {
                        token.clone_into(&mut running.token);
                    }
                    return;
                }
                Some((
                    Entry::Ended(PullReport::Failed {
                        token: before,
                        failures,
                        ..
                    }),
                    _,
                )) if token.is_empty() || before == token => failures_before = *failures,
                Some(_) | None => {}
            }
            if state.entries.len() >= KEPT {
                let running = |entry: &Entry| matches!(entry, Entry::Running(_));
                state.entries.retain(|_, (entry, _)| running(entry));
            }
            state.numbers += 1;
            let number = state.numbers;
            let running = Running {
                number,
                token: token.to_owned(),
                failures_before,
                started_at: self.clock.now(),
                cancel: cancel.clone(),
            };
            let entry = (Entry::Running(running), Arc::clone(&log));
            state.entries.insert(reference.clone(), entry);
            number
        };
        let pulls = Arc::clone(self);
        self.tasks.spawn(async move {
            let work = AssertUnwindSafe(pulls.pull(&reference, credentials, &log)).catch_unwind();
            let result = tokio::select! {
                biased;
                () = pulls.shutdown.cancelled() => {
                    let message = "the service is ending".to_owned();
                    return log.end(PullUpdate::Failed { message });
                }
                // Whoever cancelled has said what became of it.
                () = cancel.cancelled() => return,
                result = work => result,
            };
            let result =
                result.unwrap_or_else(|_| Err(Failure::new("the pull crashed; this is a defect")));
            pulls.finish(&reference, number, result);
        });
    }

    /// Cancels the pull of `reference`, if there is one: the engine stops when nobody reads what it
    /// reports.
    pub fn cancel(&self, reference: &str) {
        let reference = full(reference);
        let number = match self.lock().entries.get(&reference) {
            Some((Entry::Running(running), _)) => {
                running.cancel.cancel();
                running.number
            }
            Some(_) | None => return,
        };
        let failure = Failure {
            cancelled: true,
            ..Failure::new(CANCELLED)
        };
        self.finish(&reference, number, Err(failure));
    }

    async fn pull(
        &self,
        reference: &str,
        credentials: Option<RegistryCredentials>,
        log: &PullLog,
    ) -> Result<(String, Option<String>), Failure> {
        let _turn = self.at_once.acquire().await;
        info!(reference, "pulling an image");
        let mut events = self.images.pull(reference, credentials.as_ref()).await?;
        let mut progress = Progress::default();
        while let Some(event) = events.next().await {
            let event = event?;
            progress.take(&event);
            log.push(event, progress.sum());
        }
        // A stream can end without a word; only the image itself says that the pull succeeded.
        let image = self.images.image(reference).await?.ok_or_else(|| {
            Failure::new(format!(
                "the engine ended the pull of {reference} without having the image"
            ))
        })?;
        let digest = repository_digest(&image, reference, progress.digest());
        Ok((image.id, digest))
    }

    fn finish(
        &self,
        reference: &str,
        number: u64,
        result: Result<(String, Option<String>), Failure>,
    ) {
        let at = self.clock.now();
        let mut state = self.lock();
        let Some((entry, log)) = state.entries.get_mut(reference) else {
            return;
        };
        let Entry::Running(running) = entry else {
            return;
        };
        if running.number != number {
            return;
        }
        let token = std::mem::take(&mut running.token);
        let (report, last) = match result {
            Ok((image_id, digest)) => {
                info!(reference, image_id, "pulled an image");
                let last = PullUpdate::Done {
                    image_id: image_id.clone(),
                    digest: digest.clone(),
                };
                let report = PullReport::Done {
                    token,
                    at,
                    image_id,
                    digest,
                };
                (report, last)
            }
            Err(failure) => {
                let message = failure.message;
                warn!(reference, message, "could not pull an image");
                let last = PullUpdate::Failed {
                    message: message.clone(),
                };
                let report = PullReport::Failed {
                    token,
                    at,
                    message,
                    failures: running.failures_before.saturating_add(1),
                    refused: failure.refused,
                    cancelled: failure.cancelled,
                    engine_lost: failure.engine_lost,
                };
                (report, last)
            }
        };
        *entry = Entry::Ended(report);
        log.end(last);
        drop(state);
        self.waits.changed(Kind::Image, &awaited(reference), true);
    }
}
