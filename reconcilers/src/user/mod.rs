//! The user reconciler: every ordinary user has a directory, and a deleted one leaves only an archive.
//!
//! Owns: `users/<name>` and `archive/…` in the data directory, through [`DataDir`]; purges the rows of
//! deleted users. It waits until the user's container is gone before it touches the directory.
//!
//! A directory without a row is left alone: it may be all that is left of a lost database.

mod plan;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use schema::clock::SharedClock;
use schema::condition::Reason;
use schema::error::DbError;
use schema::home::HomeError;
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::user;

use crate::container::Agents;
use crate::runtime::{Classify, ErrorClass, Plan, Reconciler, StatusStore};
use crate::stores::{Cache, DataDir, Marks as ScanMarks, Store};

pub use plan::{Action, Snapshot};

/// Reconciles users' directories.
pub struct UserReconciler {
    store: Arc<dyn Store>,
    data_dir: Arc<dyn DataDir>,
    agents: Arc<dyn Agents>,
    service_user: (u32, u32),
    clock: SharedClock,
    desired: Arc<Cache<user::UserRow>>,
}

impl std::fmt::Debug for UserReconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserReconciler").finish_non_exhaustive()
    }
}

/// What observing or changing a user can fail with.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// The database failed.
    #[error("desired state cannot be read or written")]
    Db(#[from] DbError),
    /// The directory could not be read, made or archived.
    #[error("{0}")]
    Home(#[source] HomeError),
}

/// How an error of users' directories is handled, whichever reconciler meets it.
pub(crate) fn classify_home(error: &HomeError) -> (ErrorClass, Reason) {
    match error {
        HomeError::RefusedRoot { .. }
        | HomeError::Conflict(_)
        | HomeError::UnsafePath { .. }
        | HomeError::NotRegular { .. }
        | HomeError::TooLarge { .. } => (ErrorClass::Terminal, Reason::HomeConflict),
        HomeError::Changed { .. } => (ErrorClass::Conflict, Reason::Retrying),
        HomeError::Forbidden { .. } | HomeError::CopyDiffers { .. } => {
            (ErrorClass::Transient, Reason::Retrying)
        }
        HomeError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
            (ErrorClass::Transient, Reason::StorageFull)
        }
        HomeError::Io { .. } => (ErrorClass::Transient, Reason::Retrying),
    }
}

impl Classify for UserError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Db(_) => ErrorClass::Transient,
            Self::Home(error) => classify_home(error).0,
        }
    }

    fn reason(&self) -> Reason {
        match self {
            Self::Db(_) => Reason::Retrying,
            Self::Home(error) => classify_home(error).1,
        }
    }
}

impl UserReconciler {
    /// Puts the parts together. `agents`: to whom directories belong, when that is not `service_user`.
    pub fn new(
        store: Arc<dyn Store>,
        data_dir: Arc<dyn DataDir>,
        agents: Arc<dyn Agents>,
        service_user: (u32, u32),
        clock: SharedClock,
    ) -> Self {
        Self {
            store,
            data_dir,
            agents,
            service_user,
            clock,
            desired: Arc::default(),
        }
    }

    /// The status store of users; it tells this reconciler which rows to read anew.
    pub fn status_store(&self) -> Arc<dyn StatusStore<Uid>> {
        self.store.statuses(
            Kind::User,
            Self::NAME,
            Arc::clone(&self.clock),
            Arc::<Cache<_>>::clone(&self.desired),
        )
    }

    /// What the bell does: the next pass reads the row anew.
    #[cfg(test)]
    pub(crate) fn mark_dirty(&self, uid: &Uid) {
        self.desired.mark(uid);
    }

    /// To whom the directory belongs, when that is not the service.
    async fn owner(&self, row: &user::UserRow) -> Result<Option<(u32, u32)>, DbError> {
        let agent = self.agents.at(row.adapter_generation).await?;
        Ok(agent.home_owner(self.service_user))
    }

    async fn row(&self, uid: &Uid) -> Result<Option<Arc<user::UserRow>>, UserError> {
        if let Some(row) = self.desired.get(uid) {
            return Ok(row);
        }
        let ticket = self.desired.begin();
        let row = self.store.user(uid).await?.map(Arc::new);
        self.desired.put(uid, ticket, row.clone());
        Ok(row)
    }
}

impl Reconciler for UserReconciler {
    const NAME: &'static str = "user";
    const RESYNC: Duration = Duration::from_secs(60);
    type Key = Uid;
    type Snapshot = Snapshot;
    type Action = Action;
    type Error = UserError;

    async fn keys(&self) -> Result<Vec<Uid>, UserError> {
        let ticket = self.desired.begin();
        let rows = self.store.users().await?;
        let keys = rows.iter().map(|row| row.uid.clone()).collect();
        let rows = rows.into_iter().map(|row| (row.uid.clone(), row));
        self.desired.replace(ticket, ScanMarks::Answered, rows);
        Ok(keys)
    }

    async fn observe(&self, key: &Uid) -> Result<Option<Snapshot>, UserError> {
        let Some(row) = self.row(key).await? else {
            return Ok(None);
        };
        let container_gone = row.deleted_at.is_some() && self.store.container(key).await?.is_none();
        let owner = self.owner(&row).await?;
        let home = self
            .data_dir
            .state(&row.name, &row.uid, owner)
            .await
            .map_err(UserError::Home)?;
        Ok(Some(Snapshot {
            row,
            container_gone,
            owner,
            home,
        }))
    }

    fn generation(snapshot: &Snapshot) -> Generation {
        snapshot.row.generation
    }

    fn plan(snapshot: &Snapshot, _now: Timestamp) -> Plan<Action> {
        plan::plan(snapshot)
    }

    fn describe(action: &Action) -> String {
        match action {
            Action::AddFinalizer => "take responsibility for cleaning up".to_owned(),
            Action::EnsureHome { name, .. } => format!("make the directory of {name}"),
            Action::ArchiveHome { name, .. } => format!("archive the directory of {name}"),
            Action::Purge => "remove the last trace".to_owned(),
        }
    }

    fn is_event(action: &Action) -> bool {
        !matches!(action, Action::AddFinalizer | Action::Purge)
    }

    async fn apply(&self, key: &Uid, action: &Action) -> Result<(), UserError> {
        match action {
            Action::AddFinalizer => {
                self.desired.mark(key);
                self.store
                    .add_finalizer(Kind::User, key, Self::NAME)
                    .await?;
                self.desired.mark(key);
            }
            Action::EnsureHome { name, owner } => self
                .data_dir
                .ensure(name, key, *owner)
                .await
                .map_err(UserError::Home)?,
            Action::ArchiveHome { name, deleted_at } => self
                .data_dir
                .archive(name, key, *deleted_at)
                .await
                .map_err(UserError::Home)?,
            Action::Purge => {
                self.store.purge_user(key, Self::NAME).await?;
                self.desired.mark(key);
            }
        }
        Ok(())
    }
}
