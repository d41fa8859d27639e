//! The usage reconciler: how much space users' workspaces take is known.
//!
//! Owns: `workspace_usage`, but for the count of changes in it, which requests raise. Key: the one object of this kind. It reads
//! workspaces through [`DataDir`] and changes nothing there. What is to be measured is found by the resync.
//!
//! Invariants: no request walks through a workspace; one walk runs at a time, and each is bounded; a workspace that cannot be measured
//! keeps its number, is reported, and holds up no other; what a request changes during a walk is measured again.
//!
//! [`DataDir`]: crate::stores::DataDir

mod plan;
#[cfg(test)]
mod plan_tests;
mod store;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use schema::condition::Reason;
use schema::error::{DbError, chain};
use schema::home::Measured;
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::usage::{Attempt, Due, object_uid};

pub use plan::{Action, Snapshot};
pub use store::{UsageRow, UsageStore};

use crate::runtime::{Classify, Controllers, ErrorClass, Plan, Purpose, Reconciler};
use crate::shared::Shared;

/// Most workspaces that are measured in one pass.
const AT_ONCE: usize = 20;
/// After this time a pass saves what it has, and leaves the others to the next one.
const LONG_ENOUGH: Duration = Duration::from_secs(60);
/// Most characters that are remembered of a failure, which may name a path of the agent's.
const LONGEST_PROBLEM: usize = 300;

/// Starts the reconciler of the space that workspaces take.
pub fn register(
    store: Arc<dyn UsageStore>,
    shared: &Arc<Shared>,
    controllers: &mut Controllers<'_>,
) {
    controllers.add(UsageReconciler::new(store, Arc::clone(shared)));
}

/// Measures workspaces.
pub struct UsageReconciler {
    store: Arc<dyn UsageStore>,
    shared: Arc<Shared>,
    /// How often something was measured and saved: passes that follow each other are no fight.
    rounds: AtomicU64,
}

impl std::fmt::Debug for UsageReconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UsageReconciler").finish_non_exhaustive()
    }
}

/// What finding out and remembering can fail with. A workspace that cannot be measured is no failure of the pass.
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
            shared,
            rounds: AtomicU64::new(0),
        }
    }

    /// Measures one workspace, or says why that cannot be done.
    async fn measure(&self, due: &Due) -> Result<Measured, String> {
        match self.shared.data_dir.measure(&due.name, &due.uid).await {
            Ok(Some(measured)) => Ok(measured),
            Ok(None) => Err("there is no workspace".to_owned()),
            Err(error) => {
                let problem = one_line(&chain(&error));
                tracing::warn!(user = %due.name, %problem, "the workspace cannot be measured");
                Err(problem)
            }
        }
    }
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

    /// Nothing is remembered but a number that only has to change.
    fn leads(&self) {}

    async fn keys(&self) -> Result<Vec<Uid>, UsageError> {
        Ok(vec![object_uid()])
    }

    async fn observe(&self, _: &Uid, _: Purpose) -> Result<Option<Snapshot>, UsageError> {
        let now = self.shared.clock.now();
        let row = self.store.usage_row(now, AT_ONCE).await?;
        Ok(row.map(|row| Snapshot {
            row,
            rounds: self.rounds.load(Ordering::Relaxed),
        }))
    }

    fn generation(snapshot: &Snapshot) -> Generation {
        snapshot.row.generation
    }

    fn plan(snapshot: &Snapshot, now: Timestamp) -> Plan<Action> {
        plan::plan(snapshot, now)
    }

    fn describe(Action::Measure(due): &Action) -> String {
        match &**due {
            [one] => format!("measure the workspace of {}", one.name),
            many => format!("measure the workspaces of {} users", many.len()),
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

    async fn apply(&self, _key: &Uid, Action::Measure(due): &Action) -> Result<(), UsageError> {
        let clock = &self.shared.clock;
        let begun = clock.steady();
        let mut attempts = Vec::with_capacity(due.len());
        for due in due {
            attempts.push(Attempt {
                uid: due.uid.clone(),
                changes: due.changes,
                outcome: self.measure(due).await,
            });
            if clock.steady().saturating_sub(begun) > LONG_ENOUGH {
                break;
            }
        }
        self.store.save_usage(&attempts, clock.now()).await?;
        self.rounds.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
