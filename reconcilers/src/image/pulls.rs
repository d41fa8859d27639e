//! Pulls under way. One per reference, however many ask for it or watch it; each belongs to the
//! service, not to the pass or the request that asked, because it may take minutes.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use schema::clock::SharedClock;
use schema::ids::{Kind, Timestamp, Uid};
use schema::image::ImageReference;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use super::feed::Feed;
pub use super::feed::Update;
pub use super::progress::Sum;
use crate::drivers::docker::{ContainerEngine, EngineError, Image, RegistryCredentials};
use crate::engine::view::describe;
use crate::runtime::Waits;
use crate::runtime::backoff::doubled;

/// Pulls that the engine makes at once; the others wait for their turn.
const AT_ONCE: usize = 3;
/// With `image.pull_policy=always`, a pull this recent is fresh enough: a hundred users created
/// together share one. As long is its end told to viewers who come late.
const FRESH: Duration = Duration::from_secs(60);
/// Results of references that nobody asks for any more are dropped at this number.
const KEPT: usize = 256;
/// Pause after the first failed pull; it doubles with each further one.
pub const FIRST_RETRY: Duration = Duration::from_secs(5);
/// The longest pause, and that after a pull that trying again does not mend.
pub const LONGEST_RETRY: Duration = Duration::from_secs(5 * 60);
/// What somebody who called a pull off is told of it.
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
        /// Somebody called it off.
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
        sum: Sum,
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

/// A pull that waits or runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningPull {
    /// The full reference.
    pub reference: String,
    /// How far it is.
    pub sum: Sum,
    /// When it was asked for.
    pub started_at: Timestamp,
    /// How many watch it.
    pub viewers: usize,
}

struct Running {
    /// Tells a pull from a later one of the same reference.
    number: u64,
    token: String,
    failures_before: u32,
    started_at: Timestamp,
    cancel: CancellationToken,
}

enum End {
    Failed {
        message: String,
        failures: u32,
        refused: bool,
    },
    Done {
        image_id: String,
        digest: Option<String>,
    },
}

enum Entry {
    Running(Running),
    Ended {
        token: String,
        at: Timestamp,
        end: End,
    },
}

struct Failure {
    message: String,
    refused: bool,
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self {
            message: describe(&error),
            refused: matches!(error, EngineError::PullRefused(_) | EngineError::Refused(_)),
        }
    }
}

#[derive(Default)]
struct State {
    entries: HashMap<String, (Entry, Arc<Feed>)>,
    numbers: u64,
}

/// The pulls of one engine.
pub struct Pulls {
    engine: Arc<dyn ContainerEngine>,
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

/// The digest under which the reference's own repository knows the image; `told`, what the registry
/// just gave, where the image has several.
fn repository_digest(image: &Image, reference: &str, told: Option<&str>) -> Option<String> {
    let reference: ImageReference = reference.parse().ok()?;
    let mut own = image.repo_digests.iter().filter(|digest| {
        let digest: Result<ImageReference, _> = digest.parse();
        digest.is_ok_and(|digest| digest.same_repository(&reference))
    });
    let wanted = told.or(reference.digest());
    let fits = |digest: &&String| wanted.is_some_and(|wanted| digest.ends_with(wanted));
    own.clone().find(fits).or_else(|| own.next()).cloned()
}

impl Pulls {
    /// No pull yet. `tasks` and `shutdown` are the process's own, so that no pull outlives it.
    pub fn new(
        engine: Arc<dyn ContainerEngine>,
        clock: SharedClock,
        waits: Waits,
        tasks: TaskTracker,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            engine,
            state: Mutex::default(),
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
                ..
            } => PullState::Failed {
                at,
                cancelled: message == CANCELLED,
                message,
                failures,
                refused,
            },
        }
    }

    /// What became of pulling `reference`, and of whose request.
    pub fn report(&self, reference: &str) -> PullReport {
        let state = self.lock();
        let Some((entry, feed)) = state.entries.get(&full(reference)) else {
            return PullReport::Idle;
        };
        match entry {
            Entry::Running(running) => PullReport::Running {
                token: running.token.clone(),
                sum: feed.sum(),
            },
            Entry::Ended { token, at, end } => {
                let (token, at) = (token.clone(), *at);
                match end {
                    End::Failed {
                        message,
                        failures,
                        refused,
                    } => PullReport::Failed {
                        token,
                        at,
                        message: message.clone(),
                        failures: *failures,
                        refused: *refused,
                    },
                    End::Done { image_id, digest } => PullReport::Done {
                        token,
                        at,
                        image_id: image_id.clone(),
                        digest: digest.clone(),
                    },
                }
            }
        }
    }

    /// Whether `reference` was pulled within the last minute.
    pub fn recently_done(&self, reference: &str) -> bool {
        let now = self.clock.now();
        matches!(self.report(reference), PullReport::Done { at, .. } if now.since(at) < FRESH)
    }

    /// What happens to the pull of `reference`, for one more viewer; `None` when there is none, now
    /// or within the last minute.
    pub fn watch(&self, reference: &str) -> Option<BoxStream<'static, Update>> {
        let state = self.lock();
        let (entry, feed) = state.entries.get(&full(reference))?;
        let watched = match entry {
            Entry::Running(_) => true,
            Entry::Ended { at, .. } => self.clock.now().since(*at) < FRESH,
        };
        watched.then(|| Arc::clone(feed).watch())
    }

    /// Pulls that wait or run, by reference.
    pub fn list(&self) -> Vec<RunningPull> {
        let state = self.lock();
        let running = state
            .entries
            .iter()
            .filter_map(|(reference, (entry, feed))| {
                let Entry::Running(running) = entry else {
                    return None;
                };
                Some(RunningPull {
                    reference: reference.clone(),
                    sum: feed.sum(),
                    started_at: running.started_at,
                    viewers: feed.viewers(),
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
        let feed = Arc::new(Feed::default());
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
                    Entry::Ended {
                        token: before,
                        end: End::Failed { failures, .. },
                        ..
                    },
                    _,
                )) if token.is_empty() || *before == token => failures_before = *failures,
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
            let entry = (Entry::Running(running), Arc::clone(&feed));
            state.entries.insert(reference.clone(), entry);
            number
        };
        let pulls = Arc::clone(self);
        self.tasks.spawn(async move {
            let work = AssertUnwindSafe(pulls.pull(&reference, credentials, &feed)).catch_unwind();
            let result = tokio::select! {
                biased;
                () = pulls.shutdown.cancelled() => {
                    let message = "the service is ending".to_owned();
                    return feed.end(Update::Failed { message });
                }
                // Whoever cancelled has said what became of it.
                () = cancel.cancelled() => return,
                result = work => result,
            };
            let result = result.unwrap_or_else(|_| {
                Err(Failure {
                    message: "the pull crashed; this is a defect".to_owned(),
                    refused: false,
                })
            });
            pulls.finish(&reference, number, result);
        });
    }

    /// Calls the pull of `reference` off, if there is one: the engine stops when nobody reads what it
    /// tells.
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
            message: CANCELLED.to_owned(),
            refused: false,
        };
        self.finish(&reference, number, Err(failure));
    }

    async fn pull(
        &self,
        reference: &str,
        credentials: Option<RegistryCredentials>,
        feed: &Feed,
    ) -> Result<(String, Option<String>), Failure> {
        let _turn = self.at_once.acquire().await.map_err(|_| Failure {
            message: "the service is ending".to_owned(),
            refused: false,
        })?;
        info!(reference, "pulling an image");
        let mut told = self.engine.pull(reference, credentials.as_ref()).await?;
        while let Some(event) = told.next().await {
            feed.tell(event?);
        }
        // A stream can end without a word; only the image itself says that the pull succeeded.
        let image = self.engine.image(reference).await?.ok_or_else(|| Failure {
            message: format!("the engine ended the pull of {reference} without having the image"),
            refused: false,
        })?;
        let digest = repository_digest(&image, reference, feed.digest().as_deref());
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
        let Some((entry, feed)) = state.entries.get_mut(reference) else {
            return;
        };
        let Entry::Running(running) = entry else {
            return;
        };
        if running.number != number {
            return;
        }
        let (end, last) = match result {
            Ok((image_id, digest)) => {
                info!(reference, image_id, "pulled an image");
                let last = Update::Done {
                    image_id: image_id.clone(),
                    digest: digest.clone(),
                };
                (End::Done { image_id, digest }, last)
            }
            Err(Failure { message, refused }) => {
                warn!(reference, message, "could not pull an image");
                let last = Update::Failed {
                    message: message.clone(),
                };
                let failures = running.failures_before.saturating_add(1);
                let end = End::Failed {
                    message,
                    failures,
                    refused,
                };
                (end, last)
            }
        };
        let token = std::mem::take(&mut running.token);
        *entry = Entry::Ended { token, at, end };
        feed.end(last);
        drop(state);
        self.waits.changed(Kind::Image, &awaited(reference), true);
    }
}
