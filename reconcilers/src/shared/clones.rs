//! Fetches of repositories under way. Each belongs to the service, not to the pass that began it, because it may take minutes.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use schema::clock::SharedClock;
use schema::condition::Reason;
use schema::error::chain;
use schema::ids::{Kind, Timestamp, Uid};
use schema::skill_repository::Offer;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::drivers::git::{Git, GitError, Progress, Remote};
use crate::runtime::{Classify, ErrorClass, Waits};
use crate::stores::DataDir;

/// Repositories that are fetched at once; the others wait for their turn.
const AT_ONCE: usize = 6;
/// Of these from one host: a slow one does not hold up the others.
const PER_HOST: usize = 2;

/// What is to be fetched.
#[derive(Debug, Clone)]
pub struct Fetch {
    /// The repository.
    pub uid: Uid,
    /// Its name, for the log.
    pub name: String,
    /// The request that it answers.
    pub token: String,
    /// Where it is, once for each credential, in the order in which they are tried.
    pub remotes: Vec<Remote>,
    /// The commit whose files are here.
    pub here: Option<String>,
    /// The skills in it were listed by other rules than now.
    pub relist: bool,
}

/// What was fetched.
#[derive(Debug, Clone, PartialEq)]
pub struct Fetched {
    /// The commit.
    pub commit: String,
    /// The skills in it, and what was left out; `None`: they are those that are known, since the commit is.
    pub skills: Option<Offer>,
    /// Keys of the host.
    pub known_hosts: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// What became of fetching a repository.
#[derive(Debug, Clone, PartialEq)]
pub enum CloneReport {
    /// Nobody tried.
    Idle,
    /// Under way.
    Running {
        /// The request that it answers.
        token: String,
        /// How far it is.
        progress: Option<Progress>,
    },
    /// It failed.
    Failed {
        /// The request that it answers.
        token: String,
        /// Why, stable for programs.
        reason: Reason,
        /// Why, as a sentence.
        message: String,
        /// Trying again soon leads to the same words.
        terminal: bool,
        /// How often in a row.
        failures: u32,
        /// When.
        at: Timestamp,
    },
    /// It succeeded.
    Done {
        /// The request that it answers.
        token: String,
        /// What was fetched.
        fetched: Fetched,
    },
}

struct Failure {
    reason: Reason,
    message: String,
    terminal: bool,
}

impl From<GitError> for Failure {
    fn from(error: GitError) -> Self {
        let (class, reason) = error.classify();
        Self {
            reason: match reason {
                Reason::Retrying | Reason::Failed => Reason::CloneFailed,
                reason => reason,
            },
            message: chain(&error),
            terminal: class == ErrorClass::Terminal,
        }
    }
}

struct Entry {
    report: CloneReport,
    /// Tells it from a later one of the same repository.
    number: u64,
    failures: u32,
    cancel: CancellationToken,
}

#[derive(Default)]
struct State {
    entries: HashMap<Uid, Entry>,
    numbers: u64,
    /// Turns of each host that is fetched from.
    hosts: HashMap<String, Arc<Semaphore>>,
}

/// The fetches of repositories.
pub struct Clones {
    git: Arc<dyn Git>,
    data_dir: Arc<dyn DataDir>,
    state: Mutex<State>,
    at_once: Semaphore,
    clock: SharedClock,
    waits: Waits,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl std::fmt::Debug for Clones {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clones").finish_non_exhaustive()
    }
}

impl Clones {
    /// Nothing is under way. `tasks` and `shutdown` are the process's own, so that nothing outlives it.
    pub fn new(
        git: Arc<dyn Git>,
        data_dir: Arc<dyn DataDir>,
        clock: SharedClock,
        waits: Waits,
        tasks: TaskTracker,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            git,
            data_dir,
            state: Mutex::default(),
            #[expect(
                clippy::disallowed_methods,
                reason = "all fetches share it; administrators start them"
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

    /// What became of fetching a repository.
    pub fn report(&self, uid: &Uid) -> CloneReport {
        let state = self.lock();
        let entry = state.entries.get(uid);
        entry.map_or(CloneReport::Idle, |entry| entry.report.clone())
    }

    /// Starts fetching, in the place of what is under way for another request.
    pub fn start(self: &Arc<Self>, fetch: Fetch) {
        let cancel = CancellationToken::new();
        let number = {
            let mut state = self.lock();
            let mut failures = 0;
            if let Some(entry) = state.entries.get(&fetch.uid) {
                match &entry.report {
                    CloneReport::Running { token, .. } if *token == fetch.token => return,
                    CloneReport::Running { .. } => entry.cancel.cancel(),
                    CloneReport::Failed { token, .. } if *token == fetch.token => {
                        failures = entry.failures;
                    }
                    _ => {}
                }
            }
            state.numbers += 1;
            let entry = Entry {
                report: CloneReport::Running {
                    token: fetch.token.clone(),
                    progress: None,
                },
                number: state.numbers,
                failures,
                cancel: cancel.clone(),
            };
            let number = entry.number;
            state.entries.insert(fetch.uid.clone(), entry);
            number
        };
        let clones = Arc::clone(self);
        self.tasks.spawn(async move {
            let work = AssertUnwindSafe(clones.fetch(&fetch, number)).catch_unwind();
            let result = tokio::select! {
                biased;
                () = clones.shutdown.cancelled() => return,
                // Whoever cancelled has said what became of it.
                () = cancel.cancelled() => return,
                result = work => result,
            };
            let result = result.unwrap_or_else(|_| {
                Err(Failure {
                    reason: Reason::Panicked,
                    message: "fetching the repository crashed; this is a defect".to_owned(),
                    terminal: true,
                })
            });
            clones.finish(fetch, number, result);
        });
    }

    /// Ends what is under way for a repository, and forgets what became of it.
    pub fn forget(&self, uid: &Uid) {
        if let Some(entry) = self.lock().entries.remove(uid) {
            entry.cancel.cancel();
        }
    }

    /// Ends everything that is under way, and forgets what became of the rest: another process may have led since.
    pub fn forget_all(&self) {
        for (_, entry) in self.lock().entries.drain() {
            entry.cancel.cancel();
        }
    }

    fn turns_at(&self, host: &str) -> Arc<Semaphore> {
        let hosts = &mut self.lock().hosts;
        hosts.retain(|_, turns| Arc::strong_count(turns) > 1);
        let turns = hosts.entry(host.to_ascii_lowercase());
        #[expect(
            clippy::disallowed_methods,
            reason = "a semaphore of each host that administrators have named"
        )]
        let turns = turns.or_insert_with(|| Arc::new(Semaphore::new(PER_HOST)));
        Arc::clone(turns)
    }

    async fn fetch(&self, fetch: &Fetch, number: u64) -> Result<Fetched, Failure> {
        let host = fetch.remotes.first().map(|remote| remote.url.host());
        let at_host = self.turns_at(host.unwrap_or_default());
        let _at_host = at_host.acquire().await;
        let _turn = self.at_once.acquire().await;
        tracing::info!(repository = fetch.name, uid = %fetch.uid, "fetching a repository");
        let mut refused = None;
        for remote in &fetch.remotes {
            match self.fetch_by(fetch, number, remote).await {
                // Another credential may be let in.
                Err(Attempt::Git(
                    error @ (GitError::Unauthorized(_)
                    | GitError::NotFound(_)
                    | GitError::Credentials(_)),
                )) => {
                    refused = Some(error.into());
                }
                Err(Attempt::Git(error)) => return Err(error.into()),
                Err(Attempt::Other(failure)) => return Err(failure),
                Ok(fetched) => return Ok(fetched),
            }
        }
        Err(refused.unwrap_or_else(|| Failure {
            reason: Reason::CloneFailed,
            message: "the repository is not public and has no credentials; add some".to_owned(),
            terminal: true,
        }))
    }

    async fn fetch_by(
        &self,
        fetch: &Fetch,
        number: u64,
        remote: &Remote,
    ) -> Result<Fetched, Attempt> {
        let resolved = self.git.resolve(remote).await.map_err(Attempt::Git)?;
        let at = || self.clock.now();
        if fetch.here.as_ref() == Some(&resolved.commit) && !fetch.relist {
            return Ok(Fetched {
                commit: resolved.commit,
                skills: None,
                known_hosts: resolved.known_hosts,
                at: at(),
            });
        }
        let checkout = self
            .data_dir
            .begin_checkout(&fetch.uid, fetch.here.as_deref())
            .await?;
        let remote = Remote {
            known_hosts: resolved.known_hosts,
            ..remote.clone()
        };
        let progress = |progress| self.progressed(&fetch.uid, number, progress);
        let exported = self
            .git
            .export(&remote, &checkout.path, &progress)
            .await
            .map_err(Attempt::Git)?;
        let commit = exported.commit;
        let skills = self
            .data_dir
            .publish_checkout(&fetch.uid, checkout, &commit, exported.skipped)
            .await?;
        Ok(Fetched {
            commit,
            skills: Some(skills),
            known_hosts: exported.known_hosts,
            at: at(),
        })
    }

    fn progressed(&self, uid: &Uid, of: u64, now: Progress) {
        if let Some(entry) = self.lock().entries.get_mut(uid)
            && let CloneReport::Running { progress, .. } = &mut entry.report
            && entry.number == of
        {
            *progress = Some(now);
        }
    }

    fn finish(&self, fetch: Fetch, number: u64, result: Result<Fetched, Failure>) {
        let (uid, name) = (fetch.uid, fetch.name);
        {
            let mut state = self.lock();
            let entry = state.entries.get_mut(&uid);
            let Some(entry) = entry.filter(|entry| entry.number == number) else {
                return;
            };
            entry.report = match result {
                Ok(fetched) => {
                    tracing::info!(repository = name, %uid, commit = fetched.commit, "fetched a repository");
                    CloneReport::Done {
                        token: fetch.token,
                        fetched,
                    }
                }
                Err(failure) => {
                    let message = failure.message;
                    tracing::warn!(repository = name, %uid, message, "could not fetch a repository");
                    entry.failures = entry.failures.saturating_add(1);
                    CloneReport::Failed {
                        token: fetch.token,
                        reason: failure.reason,
                        message,
                        terminal: failure.terminal,
                        failures: entry.failures,
                        at: self.clock.now(),
                    }
                }
            };
        }
        self.waits
            .changed(Kind::SkillRepository, &awaited(&uid), true);
    }
}

/// What whoever waits for the fetch of this repository waits for. Not the object itself, which nobody waits for by itself.
pub fn awaited(uid: &Uid) -> Uid {
    Uid::from(format!("clone-{uid}"))
}

enum Attempt {
    Git(GitError),
    Other(Failure),
}

impl From<schema::home::HomeError> for Attempt {
    fn from(error: schema::home::HomeError) -> Self {
        let (class, reason) = error.classify();
        Self::Other(Failure {
            reason,
            message: chain(&error),
            terminal: class == ErrorClass::Terminal,
        })
    }
}
