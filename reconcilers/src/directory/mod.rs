//! The directory reconciler: in ldap mode, users and groups are those of the directory.
//!
//! Owns: users and groups of source `ldap`, who is in which, and since when somebody is missing. The API writes users, too, when
//! somebody signs in. Key: the one directory object; a request for a synchronisation raises its generation. The directory is
//! asked on request and as often as `ldap.sync_interval` says, and not otherwise.
//!
//! Invariants: who is missing loses an account only by a list that is complete, and only after `ldap.removal_grace`; so much at
//! once that it may be a fault of the directory is not done before somebody confirms it (L1). A synchronisation without
//! changes writes nothing.

pub mod diff;
mod plan;
mod preview;
pub mod settings;
mod store;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use schema::condition::{Condition, Reason};
use schema::config::{AuthMode, Config, keys::ldap, keys::web};
use schema::directory::{SyncScope, UserChange, object_uid};
use schema::error::DbError;
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::metric;
use schema::user::Template;

pub use plan::{Action, Asked, Observed, Snapshot, described};
pub use preview::{Preview, preview};
pub use store::{DirectoryRow, DirectoryStore, Known, UserPage};

use self::diff::Limits;
use crate::drivers::ldap::DirectoryError;
use crate::runtime::{Classify, Controllers, ErrorClass, Plan, Purpose, Reconciler};
use crate::shared::Shared;

/// Starts the reconciler of the directory.
pub fn register(
    store: Arc<dyn DirectoryStore>,
    shared: &Arc<Shared>,
    controllers: &mut Controllers<'_>,
) {
    controllers.add(DirectoryReconciler::new(store, Arc::clone(shared)));
}

/// A list that was begun to be applied is good for so long.
const KEPT: Duration = Duration::from_secs(60);

/// Keeps users and groups as the directory has them.
pub struct DirectoryReconciler {
    store: Arc<dyn DirectoryStore>,
    shared: Arc<Shared>,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// The list that is being applied.
    kept: Option<Kept>,
    /// When users were last found to be as the directory has them. Not in the database: that would be a write each time.
    last: Option<Timestamp>,
    /// An operator wants the directory to be asked.
    forced: bool,
}

/// A list that is being applied.
#[derive(Clone)]
struct Kept {
    asked: Asked,
    /// Which generation of the object it was asked for, settings included.
    generation: Generation,
}

impl std::fmt::Debug for DirectoryReconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectoryReconciler")
            .finish_non_exhaustive()
    }
}

/// What a synchronisation can fail with.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The database failed.
    #[error("desired state cannot be read or written")]
    Db(#[from] DbError),
    /// The directory failed.
    #[error("{0}")]
    Directory(#[from] DirectoryError),
    /// It cannot be asked.
    #[error(transparent)]
    Missing(#[from] settings::Missing),
}

impl Classify for SyncError {
    fn classify(&self) -> (ErrorClass, Reason) {
        match self {
            Self::Db(error) => error.classify(),
            Self::Directory(error) => error.classify(),
            Self::Missing(_) => (ErrorClass::Terminal, Reason::InvalidSettings),
        }
    }
}

fn limits(config: &Config) -> Limits {
    Limits {
        max_removal_percent: config.get(&ldap::MAX_REMOVAL_PERCENT),
        grace: config.get(&ldap::REMOVAL_GRACE),
    }
}

impl DirectoryReconciler {
    /// A reconciler that has read nothing yet.
    pub fn new(store: Arc<dyn DirectoryStore>, shared: Arc<Shared>) -> Self {
        Self {
            store,
            shared,
            memory: Mutex::default(),
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long it is until the next scheduled synchronisation; `None` when none is.
    fn next(&self, config: &Config, row: &DirectoryRow, now: Timestamp) -> Option<Duration> {
        let interval = config.get(&ldap::SYNC_INTERVAL)?;
        let last = self.memory().last.max(row.facts.synced_at);
        let Some(last) = last else {
            return Some(Duration::ZERO);
        };
        // Installations that were started together do not ask one directory together.
        let share = self
            .shared
            .options
            .owner
            .bytes()
            .map(u32::from)
            .sum::<u32>()
            % 100;
        let jitter = interval / 1000 * share;
        Some(now.left_of(last, interval + jitter).unwrap_or_default())
    }

    /// The list to compare with: the one that is being applied, or a new one if it is time for that.
    async fn asked(
        &self,
        config: &Config,
        row: &DirectoryRow,
        due: bool,
        purpose: Purpose,
    ) -> Result<Option<Asked>, SyncError> {
        let now = self.shared.clock.now();
        let due = {
            let mut memory = self.memory();
            memory.kept.take_if(|kept| {
                kept.generation != row.generation || now.left_of(kept.asked.at, KEPT).is_none()
            });
            if let Some(kept) = &memory.kept {
                return Ok(Some(kept.asked.clone()));
            }
            due || memory.forced
        };
        let Some(settings) = settings::of(config).ok().filter(|_| due) else {
            return Ok(None);
        };
        let listing = Arc::new(self.shared.directory.list(&settings).await?);
        let asked = Asked {
            listing,
            at: now,
            // A schedule is for everything.
            scope: match row.is_unanswered() {
                true => row.request.scope,
                false => SyncScope::Users,
            },
        };
        if purpose == Purpose::Pass {
            self.memory().kept = Some(Kept {
                asked: asked.clone(),
                generation: row.generation,
            });
        }
        Ok(Some(asked))
    }
}

impl Reconciler for DirectoryReconciler {
    const NAME: &'static str = "directory";
    const KIND: Kind = Kind::Directory;
    const RESYNC: Duration = Duration::from_secs(60);
    type Key = Uid;
    type Snapshot = Snapshot;
    type Action = Action;
    type Error = SyncError;

    async fn keys(&self) -> Result<Vec<Uid>, SyncError> {
        Ok(vec![object_uid()])
    }

    async fn observe(&self, _: &Uid, purpose: Purpose) -> Result<Option<Snapshot>, SyncError> {
        let Some(row) = self.store.directory_row().await? else {
            return Ok(None);
        };
        let config = self.shared.config.newest().await?;
        let mode = config.get(&web::AUTH_MODE);
        let next = self.next(&config, &row, self.shared.clock.now());
        let due = row.is_unanswered() || next == Some(Duration::ZERO);
        let asked = match mode {
            AuthMode::Ldap => self.asked(&config, &row, due, purpose).await?,
            AuthMode::Local | AuthMode::Oidc => {
                // What was found belongs to users who are gone.
                if purpose == Purpose::Pass {
                    *self.memory() = Memory::default();
                }
                None
            }
        };
        let observed = match asked {
            Some(asked) => Some(Observed {
                asked,
                known: self.store.known().await?,
                limits: limits(&config),
                template: Template::of(&config, None),
            }),
            None => None,
        };
        Ok(Some(Snapshot {
            row,
            mode,
            missing: settings::of(&config).err(),
            next,
            observed,
        }))
    }

    fn leads(&self) {
        *self.memory() = Memory::default();
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

    /// All users are compared.
    fn is_long(snapshot: &Snapshot) -> bool {
        snapshot.observed.is_some()
    }

    fn describe(action: &Action) -> String {
        match action {
            Action::Users(page) => match page.changes.as_slice() {
                [UserChange::Rename { from, listed, .. }] => {
                    format!("rename {from} to {}", listed.name)
                }
                changes => format!("change {} users", changes.len()),
            },
            Action::Groups { add, remove } => {
                format!("add {} groups and delete {}", add.len(), remove.len())
            }
            Action::SaveFacts(_) => "remember what came of the synchronisation".to_owned(),
        }
    }

    fn is_event(action: &Action) -> bool {
        !matches!(action, Action::SaveFacts(_))
    }

    fn converged(&self, _: &Uid, snapshot: &Snapshot, _: &[Condition]) {
        let Some(observed) = &snapshot.observed else {
            return;
        };
        let mut memory = self.memory();
        memory.kept = None;
        memory.forced = false;
        if observed.asked.scope == SyncScope::Users {
            let now = self.shared.clock.now();
            memory.last = Some(now);
            metric::DIRECTORY_SYNCED.set(&[], now.as_secs_f64());
        }
    }

    /// An operator asks for it, so the directory is asked, too.
    fn refresh(&self, _: &Uid) {
        let mut memory = self.memory();
        memory.kept = None;
        memory.forced = true;
    }

    async fn apply(&self, _: &Uid, action: &Action) -> Result<(), SyncError> {
        let now = self.shared.clock.now();
        match action {
            Action::Users(page) => self.store.apply_users(page, now).await?,
            Action::Groups { add, remove } => self.store.apply_groups(add, remove, now).await?,
            Action::SaveFacts(facts) => self.store.save_directory_facts(facts).await?,
        }
        Ok(())
    }
}
