//! The user reconciler: every ordinary user has a directory, and a deleted one leaves only an archive.
//!
//! Owns: `users/<name>` and `archive/…` in the data directory, through [`DataDir`](crate::stores::DataDir); purges the rows of
//! deleted users. It waits until the user's container is gone before it touches the directory, and takes what the service
//! has set out of the agent's files before it archives them.
//!
//! The directory of a renamed user gets the new name once no container has the one before; until that is recorded, the name
//! before stays taken, and nothing is made under the new one.
//!
//! A directory without a row is left alone: it may be all that is left of a lost database.

mod plan;
mod store;

use std::sync::Arc;
use std::time::Duration;

use schema::condition::Reason;
use schema::error::DbError;
use schema::home::{HomeError, HomeState, Note};
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::user::UserRow;

use crate::agent_config::{LIMIT, are_long, is_unreadable, notes_of};
use crate::runtime::{Classify, Controllers, ErrorClass, Plan, Purpose, Reconciler};
use crate::shared::Shared;
use crate::stores::{Desired, Rows};

pub use plan::{Action, Settings, Snapshot};
pub use store::UserStore;

/// Starts the reconciler of users.
pub fn register(
    store: Arc<dyn UserStore>,
    shared: &Arc<Shared>,
    controllers: &mut Controllers<'_>,
) {
    let reconciler = UserReconciler::new(store, Arc::clone(shared));
    controllers.add(reconciler);
}

/// Reconciles users' directories.
pub struct UserReconciler {
    store: Arc<dyn UserStore>,
    shared: Arc<Shared>,
    desired: Desired<UserRow>,
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

impl Classify for UserError {
    fn classify(&self) -> (ErrorClass, Reason) {
        match self {
            Self::Db(error) => error.classify(),
            Self::Home(error) => error.classify(),
        }
    }
}

impl UserReconciler {
    /// A reconciler that has read nothing yet.
    pub fn new(store: Arc<dyn UserStore>, shared: Arc<Shared>) -> Self {
        let rows: Arc<dyn Rows<UserRow>> = store.clone();
        Self {
            store,
            desired: Desired::new(rows),
            shared,
        }
    }

    /// To whom the directory belongs, when that is not the service.
    async fn owner(&self, row: &UserRow) -> Result<Option<(u32, u32)>, DbError> {
        let agent = self.shared.adapters.agent(row.adapter_generation).await?;
        Ok(agent.home_owner(self.shared.options.service_user))
    }

    /// What the service has set in the agent's files.
    async fn settings(&self, row: &UserRow) -> Result<Option<Settings>, UserError> {
        let Some(applied) = self.store.applied(&row.uid).await? else {
            return Ok(None);
        };
        let adapter = self.shared.adapters.at(row.adapter_generation).await?;
        let agent = &adapter.index.agent;
        let paths = [agent.config_file.as_str(), agent.security_file.as_str()];
        let data_dir = &self.shared.data_dir;
        let found = data_dir
            .read_agent_files(&row.name, &row.uid, paths, LIMIT)
            .await;
        match found {
            Ok(found) => Ok(Some(Settings {
                adapter,
                applied,
                found,
            })),
            Err(error) if is_unreadable(&error) => Ok(None),
            Err(error) => Err(UserError::Home(error)),
        }
    }
}

impl Reconciler for UserReconciler {
    const NAME: &'static str = "user";
    const KIND: Kind = Kind::User;
    const RESYNC: Duration = Duration::from_secs(60);
    type Key = Uid;
    type Snapshot = Snapshot;
    type Action = Action;
    type Error = UserError;

    async fn keys(&self) -> Result<Vec<Uid>, UserError> {
        Ok(self.desired.keys().await?)
    }

    async fn observe(&self, key: &Uid, _purpose: Purpose) -> Result<Option<Snapshot>, UserError> {
        let Some(row) = self.desired.row(key).await? else {
            return Ok(None);
        };
        let container_gone = row.deleted_at.is_some() && self.store.is_container_gone(key).await?;
        let owner = self.owner(&row).await?;
        let home = self
            .shared
            .data_dir
            .state(&row.name, &row.uid, owner)
            .await
            .map_err(UserError::Home)?;
        let settings = if container_gone && home == HomeState::Ready {
            self.settings(&row).await?
        } else {
            None
        };
        Ok(Some(Snapshot {
            row,
            container_gone,
            owner,
            home,
            settings,
        }))
    }

    fn leads(&self) {
        self.desired.distrust();
    }

    fn generation(snapshot: &Snapshot) -> Generation {
        snapshot.row.generation
    }

    fn name(snapshot: &Snapshot) -> Option<&str> {
        Some(snapshot.row.name.as_str())
    }

    fn plan(snapshot: &Snapshot, _now: Timestamp) -> Plan<Action> {
        plan::plan(snapshot)
    }

    /// Agents write what is parsed here.
    fn is_long(snapshot: &Snapshot) -> bool {
        let settings = snapshot.settings.as_ref();
        settings.is_some_and(|settings| are_long(settings.found.each_ref()))
    }

    fn note_parsing(snapshot: &Snapshot) -> Vec<Note> {
        let settings = snapshot.settings.as_ref();
        settings.map_or_else(Vec::new, |settings| notes_of(settings.found.each_ref()))
    }

    fn changed(&self, key: &Uid) {
        self.desired.mark(key);
    }

    fn describe(action: &Action) -> String {
        match action {
            Action::AddFinalizer => "take responsibility for cleaning up".to_owned(),
            Action::EnsureHome { name, .. } => format!("make the directory of {name}"),
            Action::RenameHome { from, to } => {
                format!("rename the directory of {from} to {to}")
            }
            Action::EndRename { .. } => "remember that the directory is renamed".to_owned(),
            Action::WithdrawSettings { name, .. } => {
                format!("remove the service's settings from the agent's files of {name}")
            }
            Action::ArchiveHome { name, .. } => format!("archive the directory of {name}"),
            Action::Purge => "remove the last trace".to_owned(),
        }
    }

    fn is_event(action: &Action) -> bool {
        !matches!(
            action,
            Action::AddFinalizer | Action::EndRename { .. } | Action::Purge
        )
    }

    async fn apply(&self, key: &Uid, action: &Action) -> Result<(), UserError> {
        match action {
            Action::AddFinalizer => {
                self.desired.mark(key);
                self.store.add_user_finalizer(key).await?;
                self.desired.mark(key);
            }
            Action::EnsureHome { name, owner } => self
                .shared
                .data_dir
                .ensure(name, key, *owner)
                .await
                .map_err(UserError::Home)?,
            Action::RenameHome { from, to } => self
                .shared
                .data_dir
                .rename(from, to, key)
                .await
                .map_err(UserError::Home)?,
            Action::EndRename { previous } => {
                self.desired.mark(key);
                self.store.end_rename(key, previous).await?;
                self.desired.mark(key);
            }
            Action::WithdrawSettings { name, files } => self
                .shared
                .data_dir
                .write_agent_files(name, key, files)
                .await
                .map_err(UserError::Home)?,
            Action::ArchiveHome {
                name,
                deleted_at,
                batch,
            } => {
                let bytes = self.store.used_bytes(key).await?;
                self.shared
                    .data_dir
                    .archive(name, key, *deleted_at, batch.as_ref(), bytes)
                    .await
                    .map_err(UserError::Home)?;
            }
            Action::Purge => {
                self.store.purge_user(key).await?;
                self.desired.mark(key);
            }
        }
        Ok(())
    }
}
