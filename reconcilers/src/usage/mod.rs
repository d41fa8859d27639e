//! The usage reconciler: how much space users' directories take is known, and judged against the quota.
//!
//! Owns: `workspace_usage`, but for the count of changes in it, which requests raise. Key: the one object of this kind. It reads
//! directories through [`DataDir`] and changes nothing there, but for what a killed service has left and what has been in a workspace's
//! trash for longer than it is kept. What is to be measured is found by the resync.
//!
//! Invariants: no request walks through a directory; one walk runs at a time, and each is bounded; a directory that cannot be measured
//! keeps its number and what the quota said of it, is reported, and holds up no other; what a request changes during a walk is measured
//! again. A walk that takes long goes on in later passes, as long as this process runs.
//!
//! [`DataDir`]: crate::stores::DataDir

mod plan;
#[cfg(test)]
mod plan_tests;
mod store;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schema::clock::Cautious;
use schema::condition::Reason;
use schema::error::{DbError, chain};
use schema::home::workspace::{Emptied, FileError, TRASH_KEPT};
use schema::home::{Measurement, Walked};
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::usage::{Attempt, Due, Quota, object_uid};

pub use plan::{Action, Snapshot};
pub use store::{UsageRow, UsageStore};

use crate::runtime::{Classify, Controllers, ErrorClass, Plan, Purpose, Reconciler};
use crate::shared::Shared;

/// Most directories that are measured in one pass.
const AT_ONCE: usize = 20;
/// After this time a pass saves what it has, and leaves the others to the next one.
const LONG_ENOUGH: Duration = Duration::from_secs(60);
/// After this time it goes on with what an earlier pass has begun, so that neither waits for all of the other.
const FIRST: Duration = Duration::from_secs(30);
/// Most walks that are interrupted at a time: each keeps a directory open, twice.
const MOST_BEGUN: usize = 4;
/// Most characters that are remembered of a failure, which may name a path of the agent's.
const LONGEST_PROBLEM: usize = 300;

/// Starts the reconciler of the space that users' directories take.
pub fn register(
    store: Arc<dyn UsageStore>,
    shared: &Arc<Shared>,
    controllers: &mut Controllers<'_>,
) {
    controllers.add(UsageReconciler::new(store, Arc::clone(shared)));
}

/// Measures users' directories, and judges them.
pub struct UsageReconciler {
    store: Arc<dyn UsageStore>,
    shared: Arc<Shared>,
    /// Time that has certainly come: a clock that is set forward must empty no trash.
    today: Cautious,
    /// Walks that take longer than a pass, and how often requests had changed the directory when they began.
    begun: Mutex<BTreeMap<Uid, (i64, Measurement)>>,
    /// Number of saves: passes that follow each other are no fight.
    rounds: AtomicU64,
}

impl std::fmt::Debug for UsageReconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UsageReconciler").finish_non_exhaustive()
    }
}

/// Failures of finding out and remembering. A directory that cannot be measured is no failure of the pass.
#[derive(Debug, thiserror::Error)]
#[error("the database cannot be read or written")]
pub struct UsageError(#[from] DbError);

impl Classify for UsageError {
    fn classify(&self) -> (ErrorClass, Reason) {
        self.0.classify()
    }
}

impl UsageReconciler {
    /// A reconciler that has measured nothing yet.
    pub fn new(store: Arc<dyn UsageStore>, shared: Arc<Shared>) -> Self {
        Self {
            store,
            today: Cautious::new(Arc::clone(&shared.clock)),
            shared,
            begun: Mutex::default(),
            rounds: AtomicU64::new(0),
        }
    }

    /// Measures one directory, or says why that cannot be done; `None` when it has only gone on with it.
    async fn measure(&self, due: &Due) -> Option<Attempt> {
        let begun = self.begun().remove(&due.uid);
        let (changes, begun) = match begun {
            Some((changes, begun)) => (changes, Some(begun)),
            None => {
                self.empty_trash(due).await;
                (due.changes, None)
            }
        };
        let data_dir = &self.shared.data_dir;
        let outcome = match data_dir.measure(&due.name, &due.uid, begun).await {
            Ok(Walked::Done(measured)) => Ok(measured),
            Ok(Walked::Paused(walk)) => {
                let mut begun = self.begun();
                if begun.len() < MOST_BEGUN {
                    begun.insert(due.uid.clone(), (changes, *walk));
                    return None;
                }
                Err("other directories are as large, and are measured first".to_owned())
            }
            Ok(Walked::Missing) => Err("it is missing".to_owned()),
            Err(error) => {
                let problem = one_line(&chain(&error));
                tracing::warn!(user = %due.name, %problem, "the user's directory cannot be measured");
                Err(problem)
            }
        };
        Some(Attempt {
            uid: due.uid.clone(),
            changes,
            outcome,
        })
    }

    /// Empties the trash of a workspace before it is measured. What cannot be removed now is removed the next time.
    async fn empty_trash(&self, due: &Due) {
        let before = self.today.now().minus(TRASH_KEPT);
        let data_dir = &self.shared.data_dir;
        match data_dir.empty_trash(&due.name, &due.uid, before).await {
            Ok(Emptied { removed, problem }) => {
                if removed > 0 {
                    tracing::info!(user = %due.name, removed, "removed old entries of the trash");
                }
                if let Some(error) = problem {
                    warn_of_trash(due, &error);
                }
            }
            Err(error) => warn_of_trash(due, &error),
        }
    }

    fn begun(&self) -> MutexGuard<'_, BTreeMap<Uid, (i64, Measurement)>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn warn_of_trash(due: &Due, error: &FileError) {
    let problem = one_line(&chain(error));
    tracing::warn!(user = %due.name, %problem, "the trash of the workspace cannot be emptied");
}

/// A failure in one short line.
fn one_line(problem: &str) -> String {
    let characters = problem.chars().take(LONGEST_PROBLEM);
    characters
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

impl Reconciler for UsageReconciler {
    const NAME: &'static str = "usage";
    const KIND: Kind = Kind::Usage;
    const RESYNC: Duration = Duration::from_secs(10);
    type Key = Uid;
    type Snapshot = Snapshot;
    type Action = Action;
    type Error = UsageError;

    fn leads(&self) {
        self.begun().clear();
    }

    async fn keys(&self) -> Result<Vec<Uid>, UsageError> {
        Ok(vec![object_uid()])
    }

    async fn observe(&self, _: &Uid, _: Purpose) -> Result<Option<Snapshot>, UsageError> {
        let now = self.shared.clock.now();
        let quota = Quota::from_config(&*self.shared.config.newest().await?);
        let row = self.store.usage_row(now, AT_ONCE, &quota).await?;
        Ok(row.map(|row| Snapshot {
            row,
            rounds: self.rounds.load(Ordering::Relaxed),
        }))
    }

    fn generation(snapshot: &Snapshot) -> Generation {
        snapshot.row.generation
    }

    fn name(_: &Snapshot) -> Option<&str> {
        Self::KIND.descriptor().single
    }

    fn plan(snapshot: &Snapshot, now: Timestamp) -> Plan<Action> {
        plan::plan(snapshot, now)
    }

    fn describe(action: &Action) -> String {
        match action {
            Action::Judge(judgements) => match &**judgements {
                [one] => format!("judge the use of the quota by {}", one.name),
                many => format!("judge the use of the quota by {} users", many.len()),
            },
            Action::Measure(due) => match &**due {
                [one] => format!("measure the directory of {}", one.name),
                many => format!("measure the directories of {} users", many.len()),
            },
        }
    }

    fn is_event(_action: &Action) -> bool {
        false
    }

    fn progress(snapshot: &Snapshot) -> u64 {
        snapshot.rounds
    }

    /// Longer than the last walk that is begun in `LONG_ENOUGH` may take.
    fn action_timeout(_action: &Action) -> Duration {
        Duration::from_secs(600)
    }

    async fn apply(&self, _key: &Uid, action: &Action) -> Result<(), UsageError> {
        match action {
            Action::Judge(judgements) => {
                let now = self.shared.clock.now();
                self.store.save_judgements(judgements, now).await?;
                self.rounds.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Action::Measure(due) => self.measure_all(due).await,
        }
    }
}

impl UsageReconciler {
    async fn measure_all(&self, due: &[Due]) -> Result<(), UsageError> {
        let clock = &self.shared.clock;
        let since = clock.steady();
        let mut attempts = Vec::with_capacity(due.len());
        let (begun, new): (Vec<_>, Vec<_>) = {
            let mut begun = self.begun();
            // Of users who are gone; unless others are only more urgent.
            if due.len() < AT_ONCE {
                begun.retain(|uid, _| due.iter().any(|due| due.uid == *uid));
            }
            due.iter().partition(|due| begun.contains_key(&due.uid))
        };
        for (due, enough) in [(new, FIRST), (begun, LONG_ENOUGH)] {
            for due in due {
                attempts.extend(self.measure(due).await);
                if clock.steady().saturating_sub(since) > enough {
                    break;
                }
            }
        }
        if !attempts.is_empty() {
            self.store.save_usage(&attempts, clock.now()).await?;
        }
        self.rounds.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
