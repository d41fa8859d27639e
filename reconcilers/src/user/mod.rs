//! The user reconciler: every ordinary user has a directory, and a deleted one leaves only an archive.
//!
//! Owns: `users/<name>` and `archive/…` in the data directory, through [`Homes`]; purges the rows of
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
use schema::container;
use schema::db::Db;
use schema::error::DbError;
use schema::home::{HomeError, Homes};
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::{object, user};

use crate::runtime::{Classify, ErrorClass, Plan, Reconciler};
use crate::stores::{Cache, DbStatusStore, DirtyObserver, Marks as ScanMarks};

pub use plan::{Action, Snapshot};

/// Reconciles users' directories.
#[derive(Debug)]
pub struct UserReconciler {
    db: Db,
    homes: Arc<Homes>,
    owner: Option<(u32, u32)>,
    clock: SharedClockDebug,
    desired: Arc<Cache<user::UserRow>>,
}

struct SharedClockDebug(SharedClock);

impl std::fmt::Debug for SharedClockDebug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("clock")
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
    /// A task for blocking work ended without a result.
    #[error("a background task failed: {0}")]
    Blocking(String),
}

/// How an error of users' directories is handled, whichever reconciler meets it.
pub(crate) fn classify_home(error: &HomeError) -> (ErrorClass, Reason) {
    match error {
        HomeError::RefusedRoot { .. }
        | HomeError::Conflict(_)
        | HomeError::UnsafePath { .. }
        | HomeError::NotRegular { .. }
        | HomeError::TooLarge { .. } => (ErrorClass::Terminal, Reason::HomeConflict),
        HomeError::CopyDiffers { .. } => (ErrorClass::Transient, Reason::Retrying),
        HomeError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
            (ErrorClass::Transient, Reason::StorageFull)
        }
        HomeError::Io { .. } => (ErrorClass::Transient, Reason::Retrying),
    }
}

impl Classify for UserError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Db(_) | Self::Blocking(_) => ErrorClass::Transient,
            Self::Home(error) => classify_home(error).0,
        }
    }

    fn reason(&self) -> Reason {
        match self {
            Self::Db(_) | Self::Blocking(_) => Reason::Retrying,
            Self::Home(error) => classify_home(error).1,
        }
    }
}

impl UserReconciler {
    /// Puts the parts together. `owner`: to whom new directories belong, when that is not the service.
    pub fn new(db: Db, homes: Arc<Homes>, owner: Option<(u32, u32)>, clock: SharedClock) -> Self {
        Self {
            db,
            homes,
            owner,
            clock: SharedClockDebug(clock),
            desired: Arc::default(),
        }
    }

    /// The status store of users; it tells this reconciler which rows to read anew.
    pub fn status_store(&self) -> DbStatusStore {
        struct Marks(Arc<Cache<user::UserRow>>);
        impl DirtyObserver for Marks {
            fn dirty(&self, uid: &Uid) {
                self.0.mark(uid);
            }
        }
        DbStatusStore::new(
            self.db.clone(),
            Kind::User,
            Self::NAME,
            Arc::clone(&self.clock.0),
            Arc::new(Marks(Arc::clone(&self.desired))),
        )
    }

    /// What the bell does: the next pass reads the row anew.
    #[cfg(test)]
    pub(crate) fn mark_dirty(&self, uid: &Uid) {
        self.desired.mark(uid);
    }

    async fn row(&self, uid: &Uid) -> Result<Option<Arc<user::UserRow>>, UserError> {
        if let Some(row) = self.desired.get(uid) {
            return Ok(row);
        }
        let ticket = self.desired.begin();
        let result = async {
            let mut connection = self.db.read().await?;
            user::row(&mut connection, uid).await
        }
        .await;
        match result {
            Ok(row) => {
                let row = row.map(Arc::new);
                self.desired.put(uid, ticket, row.clone());
                Ok(row)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn with_homes<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Homes) -> Result<T, HomeError> + Send + 'static,
    ) -> Result<T, UserError> {
        let homes = Arc::clone(&self.homes);
        let result = tokio::task::spawn_blocking(move || work(&homes))
            .await
            .map_err(|error| UserError::Blocking(error.to_string()))?;
        result.map_err(UserError::Home)
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
        let mut connection = self.db.read().await?;
        let rows = user::rows(&mut connection).await?;
        drop(connection);
        let keys = rows.iter().map(|row| row.uid.clone()).collect();
        let rows = rows.into_iter().map(|row| (row.uid.clone(), row));
        self.desired.replace(ticket, ScanMarks::Answered, rows);
        Ok(keys)
    }

    async fn observe(&self, key: &Uid) -> Result<Option<Snapshot>, UserError> {
        let Some(row) = self.row(key).await? else {
            return Ok(None);
        };
        let container_gone = if row.deleted_at.is_some() {
            let mut connection = self.db.read().await?;
            container::get(&mut connection, key).await?.is_none()
        } else {
            false
        };
        let (name, uid) = (row.name.clone(), row.uid.clone());
        let owner = self.owner;
        let home = self
            .with_homes(move |homes| homes.state(&name, &uid, owner))
            .await?;
        Ok(Some(Snapshot {
            row,
            container_gone,
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
            Action::EnsureHome { name } => format!("make the directory of {name}"),
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
                let mut tx = self.db.begin().await?;
                object::add_finalizer(&mut tx, Kind::User, key, Self::NAME).await?;
                tx.commit().await?;
                self.desired.mark(key);
            }
            Action::EnsureHome { name } => {
                let (name, uid, owner) = (name.clone(), key.clone(), self.owner);
                self.with_homes(move |homes| homes.ensure(&name, &uid, owner).map(drop))
                    .await?;
            }
            Action::ArchiveHome { name, deleted_at } => {
                let (name, uid, deleted_at) = (name.clone(), key.clone(), *deleted_at);
                self.with_homes(move |homes| homes.archive(&name, &uid, deleted_at).map(drop))
                    .await?;
            }
            Action::Purge => {
                let mut tx = self.db.begin().await?;
                object::remove_finalizer(&mut tx, Kind::User, key, Self::NAME).await?;
                user::purge(&mut tx, key).await?;
                tx.commit().await?;
                self.desired.mark(key);
            }
        }
        Ok(())
    }
}
