//! The archive reconciler: no archived user's directory is kept longer than `archive.retention` says.
//!
//! Owns: `archive_facts`; the removal of directories from `archive/` in the data directory, through [`DataDir`]. The
//! reconciler `user` puts them there. Key: the one archive object. A new retention raises its generation; a new
//! archive is found by the resync.
//!
//! Invariants: what is younger than the retention, or no archive of ours, is never touched; what cannot be listed is
//! no reason to remove anything; a removal that was begun is finished, whatever the retention is by then, and is in the
//! audit trail.
//!
//! [`DataDir`]: crate::stores::DataDir

mod plan;
mod store;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schema::archive::object_uid;
use schema::clock::Cautious;
use schema::condition::Reason;
use schema::config::keys;
use schema::error::{DbError, chain};
use schema::home::HomeError;
use schema::ids::{Generation, Kind, Timestamp, Uid};

pub use plan::{Action, Snapshot};
pub use store::ArchiveStore;

use crate::runtime::{Classify, Controllers, ErrorClass, Plan, Purpose, Reconciler};
use crate::shared::Shared;

/// Starts the reconciler of the archive.
pub fn register(
    store: Arc<dyn ArchiveStore>,
    shared: &Arc<Shared>,
    controllers: &mut Controllers<'_>,
) {
    controllers.add(ArchiveReconciler::new(store, Arc::clone(shared)));
}

/// How long one that could not be removed is left alone.
const RETRY: Duration = Duration::from_secs(5 * 60);

/// Removes archives that are older than they are to be kept.
pub struct ArchiveReconciler {
    store: Arc<dyn ArchiveStore>,
    shared: Arc<Shared>,
    today: Cautious,
    /// What could not be removed, when, and why.
    failed: Mutex<BTreeMap<String, (Timestamp, String)>>,
}

impl std::fmt::Debug for ArchiveReconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArchiveReconciler").finish_non_exhaustive()
    }
}

/// What observing the archive or removing from it can fail with.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The database failed.
    #[error("desired state cannot be read or written")]
    Db(#[from] DbError),
    /// The directory failed.
    #[error("{}", chain(.0))]
    Home(#[from] HomeError),
}

impl Classify for ArchiveError {
    fn classify(&self) -> (ErrorClass, Reason) {
        match self {
            Self::Db(error) => error.classify(),
            Self::Home(error) => error.classify(),
        }
    }
}

impl ArchiveReconciler {
    /// A reconciler that has read nothing yet.
    pub fn new(store: Arc<dyn ArchiveStore>, shared: Arc<Shared>) -> Self {
        Self {
            store,
            today: Cautious::new(Arc::clone(&shared.clock)),
            shared,
            failed: Mutex::default(),
        }
    }

    fn failed(&self) -> MutexGuard<'_, BTreeMap<String, (Timestamp, String)>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reconciler for ArchiveReconciler {
    const NAME: &'static str = "archive";
    const KIND: Kind = Kind::Archive;
    const RESYNC: Duration = Duration::from_secs(60);
    type Key = Uid;
    type Snapshot = Snapshot;
    type Action = Action;
    type Error = ArchiveError;

    async fn keys(&self) -> Result<Vec<Uid>, ArchiveError> {
        Ok(vec![object_uid()])
    }

    async fn observe(&self, _: &Uid, _: Purpose) -> Result<Option<Snapshot>, ArchiveError> {
        let Some((generation, facts)) = self.store.archive_row().await? else {
            return Ok(None);
        };
        let config = self.shared.config.newest().await?;
        let archives = self.shared.data_dir.archives().await?;
        let now = self.shared.clock.now();
        let failed = {
            let mut failed = self.failed();
            failed.retain(|directory, (at, _)| {
                let listed = archives
                    .iter()
                    .any(|archive| archive.directory == *directory);
                listed && now.left_of(*at, RETRY).is_some()
            });
            failed
                .iter()
                .map(|(directory, (_, why))| (directory.clone(), why.clone()))
                .collect()
        };
        Ok(Some(Snapshot {
            generation,
            facts,
            today: self.today.now(),
            retention: config.get(&keys::archive::RETENTION),
            archives,
            failed,
        }))
    }

    fn leads(&self) {
        self.failed().clear();
    }

    fn generation(snapshot: &Snapshot) -> Generation {
        snapshot.generation
    }

    fn name(_: &Snapshot) -> Option<&str> {
        Self::KIND.descriptor().single
    }

    fn plan(snapshot: &Snapshot, _now: Timestamp) -> Plan<Action> {
        plan::plan(snapshot)
    }

    fn describe(action: &Action) -> String {
        match action {
            Action::Remove { directory, .. } => format!("remove the archive {directory}"),
            Action::SaveFacts(_) => "remember what is in the archive".to_owned(),
        }
    }

    fn is_event(action: &Action) -> bool {
        matches!(action, Action::Remove { .. })
    }

    fn progress(snapshot: &Snapshot) -> u64 {
        snapshot.archives.len() as u64
    }

    /// A removal that is cancelled goes on on its thread; it is only not waited for.
    fn action_timeout(_action: &Action) -> Duration {
        Duration::from_secs(600)
    }

    async fn apply(&self, _key: &Uid, action: &Action) -> Result<(), ArchiveError> {
        match action {
            Action::Remove { directory, begun } => {
                // Before anything is gone: there is no removal without its entry.
                let recorded = match begun {
                    true => Ok(()),
                    false => self.store.record_removal(directory).await,
                };
                // On a full disk there is room for the entry once the archive is gone.
                let full = matches!(recorded, Err(DbError::StorageFull(_)));
                if !full {
                    recorded?;
                }
                let removed = self.shared.data_dir.remove_archive(directory).await;
                if let Err(error) = &removed {
                    // The next pass goes on with the others.
                    let failure = (self.shared.clock.now(), chain(error));
                    self.failed().insert(directory.clone(), failure);
                }
                removed?;
                if full {
                    self.store.record_removal(directory).await?;
                }
                Ok(())
            }
            Action::SaveFacts(facts) => Ok(self.store.save_archive_facts(facts).await?),
        }
    }
}
