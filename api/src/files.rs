//! Users' files, off the async threads.
//!
//! A handler reads and writes files of its own caller's workspace, and of no other. Calls to the system may take long: they
//! run on threads of their own, so many at once and no more, and whoever comes later waits.

use std::sync::Arc;
use std::time::Duration;

use schema::home::workspace::{FileError, Workspace};
use schema::home::{Archive, Homes};
use schema::ids::Uid;
use schema::under_way::track_call;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use crate::auth::Account;
use crate::error::{ApiError, Result};
use crate::tally::{Place, Tally};

/// Most calls to the file system at once, and most changes.
const CALLS: usize = 16;
/// Most calls at once that may take long, listings and counting what is to be packed, and most removals.
const LONG_CALLS: usize = 4;
/// Most of those that one user has at once, those that wait included.
const LONG_PER_USER: usize = 3;
/// Most changes at once that one user has, those that wait included.
const CHANGES_PER_USER: usize = 12;
/// How long a call waits for others.
const PATIENCE: Duration = Duration::from_secs(4);
/// Most zip files that are made at once: each takes a thread for as long as it lasts. One user makes one.
const ZIPS: usize = 4;
/// Most files that arrive at once, in all requests: each is a file and a directory that are open.
const ARRIVING: usize = 400;
/// Most of those that one user has.
const ARRIVING_PER_USER: usize = 100;
/// How long a change waits for the workspace of a user who is new.
const NEW_USER: Duration = Duration::from_secs(4);
/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// When whoever was turned away may try again.
const RETRY_AFTER: Duration = Duration::from_secs(2);

const BUSY: ApiError = ApiError::Busy {
    retry_after: RETRY_AFTER,
};

/// Users' files.
#[derive(Debug, Clone)]
pub struct Files {
    homes: Arc<Homes>,
    calls: Arc<Semaphore>,
    long_calls: Arc<Semaphore>,
    changes: Arc<Semaphore>,
    removals: Arc<Semaphore>,
    long_of_users: Tally<Uid>,
    changes_of_users: Tally<Uid>,
    /// Whether what is removed frees the disk of the database.
    pub(crate) with_database: bool,
    zips: Arc<Semaphore>,
    zips_of_users: Tally<Uid>,
    arriving: Arc<Semaphore>,
    arriving_of_users: Tally<Uid>,
}

/// The right to receive a file.
pub(crate) type Arrival = (OwnedSemaphorePermit, Place<Uid>);

/// The turn of a change.
#[derive(Debug)]
pub(crate) struct ChangeTurn {
    homes: Arc<Homes>,
    account: Account,
    _turn: OwnedSemaphorePermit,
    _place: Place<Uid>,
}

impl ChangeTurn {
    /// Makes the change, in the workspace as it is by now: it may have been archived. The turn is kept to its end, also when the client
    /// is gone.
    ///
    /// # Errors
    /// [`ApiError::Internal`] when it panics.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        make: impl FnOnce(&Workspace) -> Result<T, FileError> + Send + 'static,
    ) -> Result<Result<T, FileError>> {
        let (homes, account) = (Arc::clone(&self.homes), self.account.clone());
        let work = move || match homes.workspace(&account.name, &account.uid)? {
            Some(workspace) => make(&workspace),
            None => Err(FileError::Meanwhile {
                path: String::new(),
            }),
        };
        call(self, work).await
    }
}

/// Begins what calls the file system on a thread of its own, which keeps `held` to the end.
fn begin<T: Send + 'static>(
    held: impl Send + 'static,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    tokio::task::spawn_blocking(track_call("files of a user", move || {
        let _held = held;
        work()
    }))
}

async fn call<T: Send + 'static>(
    held: impl Send + 'static,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    begin(held, work).await.map_err(ApiError::internal)
}

async fn turn(turns: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit> {
    let turn = tokio::time::timeout(PATIENCE, Arc::clone(turns).acquire_owned()).await;
    turn.map_err(|_| BUSY)?.map_err(ApiError::internal)
}

impl Files {
    /// Those of this data directory. `with_database`: they lie on the disk of the database.
    pub fn new(homes: Arc<Homes>, with_database: bool) -> Self {
        Self {
            homes,
            calls: Arc::new(Semaphore::new(CALLS)),
            long_calls: Arc::new(Semaphore::new(LONG_CALLS)),
            changes: Arc::new(Semaphore::new(CALLS)),
            removals: Arc::new(Semaphore::new(LONG_CALLS)),
            long_of_users: Tally::default(),
            changes_of_users: Tally::default(),
            with_database,
            zips: Arc::new(Semaphore::new(ZIPS)),
            zips_of_users: Tally::default(),
            arriving: Arc::new(Semaphore::new(ARRIVING)),
            arriving_of_users: Tally::default(),
        }
    }

    /// Runs what calls the file system and does not take long.
    ///
    /// # Errors
    /// 503 `busy` when it has to wait too long; [`ApiError::Internal`] when it panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        call(turn(&self.calls).await?, work).await
    }

    /// Runs what calls the file system and does not take long, however long it has to wait.
    ///
    /// # Errors
    /// [`ApiError::Internal`] when it panics.
    pub(crate) async fn run_always<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let turn = Arc::clone(&self.calls).acquire_owned().await;
        call(turn.map_err(ApiError::internal)?, work).await
    }

    /// Lists the archives of deleted users, the oldest first.
    ///
    /// # Errors
    /// 503 `busy` when it has to wait too long; those of the file system.
    pub(crate) async fn list_archives(&self) -> Result<Vec<Archive>> {
        let homes = Arc::clone(&self.homes);
        let listed = self.run(move || homes.archives()).await?;
        listed.map_err(ApiError::internal)
    }

    /// Reads the sizes of archives, as [`Homes::archive_sizes`].
    ///
    /// # Errors
    /// 503 `busy` when it has to wait too long.
    pub(crate) async fn read_archive_sizes(
        &self,
        archives: Vec<Archive>,
    ) -> Result<Vec<Option<u64>>> {
        let homes = Arc::clone(&self.homes);
        self.run(move || homes.archive_sizes(&archives)).await
    }

    /// Begins what calls the file system and does not take long; it goes on by itself.
    ///
    /// # Errors
    /// 503 `busy` when it has to wait too long.
    pub(crate) async fn begin<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<T>> {
        Ok(begin(turn(&self.calls).await?, work))
    }

    /// Runs what calls the file system and may take long. It does not hold up what is short.
    ///
    /// # Errors
    /// As [`Files::run`]; 503 `busy` also when the user has as many such calls as may be.
    pub(crate) async fn run_long<T: Send + 'static>(
        &self,
        account: &Account,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let place = self.long_of_users.enter(&account.uid, LONG_PER_USER);
        let place = place.ok_or(BUSY)?;
        call((turn(&self.long_calls).await?, place), work).await
    }

    /// The turn of a change, and whether it `removes` something, which may take long. Others than changes do not wait for it, so it may be
    /// kept while the change is recorded.
    ///
    /// # Errors
    /// 503 `busy` when it has to wait too long, or the user has as many of them as may be.
    pub(crate) async fn change(&self, account: &Account, removes: bool) -> Result<ChangeTurn> {
        let (turns, tally, most) = match removes {
            true => (&self.removals, &self.long_of_users, LONG_PER_USER),
            false => (&self.changes, &self.changes_of_users, CHANGES_PER_USER),
        };
        let place = tally.enter(&account.uid, most).ok_or(BUSY)?;
        Ok(ChangeTurn {
            homes: Arc::clone(&self.homes),
            account: account.clone(),
            _turn: turn(turns).await?,
            _place: place,
        })
    }

    /// The right to receive a file.
    ///
    /// # Errors
    /// 503 `busy` when as many arrive as may be, altogether or of this user.
    pub(crate) fn arriving(&self, account: &Account) -> Result<Arrival> {
        let place = self
            .arriving_of_users
            .enter(&account.uid, ARRIVING_PER_USER);
        let place = place.ok_or(BUSY)?;
        let turn = Arc::clone(&self.arriving).try_acquire_owned();
        Ok((turn.map_err(|_| BUSY)?, place))
    }

    /// The workspace of a user; `None` when it has not been made yet.
    pub(crate) async fn find(&self, account: &Account) -> Result<Option<Arc<Workspace>>> {
        let homes = Arc::clone(&self.homes);
        let (name, uid) = (account.name.clone(), account.uid.clone());
        let found = self.run(move || homes.workspace(&name, &uid)).await?;
        Ok(found.map_err(refused)?.map(Arc::new))
    }

    /// The workspace of a user, to change what is in it. That of a new user is waited for; one that the agent has removed is made
    /// again.
    ///
    /// # Errors
    /// 503 `busy` when it is still not made.
    pub(crate) async fn open(&self, account: &Account) -> Result<Arc<Workspace>> {
        let looking = async {
            loop {
                let homes = Arc::clone(&self.homes);
                let (name, uid) = (account.name.clone(), account.uid.clone());
                let found = self
                    .run(move || homes.workspace_to_change(&name, &uid))
                    .await?;
                if let Some(workspace) = found.map_err(refused)? {
                    return Ok(Arc::new(workspace));
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let found = tokio::time::timeout(NEW_USER, looking).await;
        found.unwrap_or(Err(BUSY))
    }

    /// The right to make a zip file.
    ///
    /// # Errors
    /// 503 `busy` when as many are made as may be, or one of this user.
    pub(crate) fn zip(&self, account: &Account) -> Result<(Place<Uid>, OwnedSemaphorePermit)> {
        let place = self.zips_of_users.enter(&account.uid, 1).ok_or(BUSY)?;
        let turn = Arc::clone(&self.zips).try_acquire_owned();
        Ok((place, turn.map_err(|_| BUSY)?))
    }
}

/// What a failure means to the client.
pub(crate) fn refused(error: FileError) -> ApiError {
    let message = error.to_string();
    let conflict = |code| ApiError::conflict(code, message.clone());
    match error {
        FileError::NotFound { path } => ApiError::not_found(format!("{path:?}")),
        FileError::Exists { path } => ApiError::AlreadyExists {
            what: format!("{path:?}"),
        },
        FileError::NotADirectory { .. } => conflict("not_a_directory"),
        FileError::NotAFile { .. } => conflict("not_a_file"),
        FileError::Link { .. } => conflict("symbolic_link"),
        FileError::Forbidden { .. } => conflict("no_permission"),
        FileError::Meanwhile { .. } => conflict("changed_meanwhile"),
        FileError::TooMany { .. } | FileError::TooManyConversations { .. } => {
            conflict("too_many_entries")
        }
        FileError::Top => ApiError::invalid("path", message.clone()),
        FileError::TooLong { .. } | FileError::TooLarge { .. } => {
            ApiError::invalid("path", message.clone())
        }
        FileError::InTrash { .. } => ApiError::invalid("permanent", message.clone()),
        FileError::IntoItself => ApiError::invalid("to", message.clone()),
        FileError::Changed { .. } => ApiError::StaleFile,
        FileError::OtherFileSystem { .. } => conflict("other_file_system"),
        FileError::Partly(cause) => match *cause {
            FileError::Full(_) | FileError::Home(_) | FileError::Io { .. } => refused(*cause),
            FileError::Forbidden { .. } => conflict("no_permission"),
            // Anything else could be seen before it was begun.
            _ => conflict("changed_meanwhile"),
        },
        FileError::NotText { .. } => ApiError::UnsupportedMediaType(
            "only UTF-8 text of at most 1 MiB can be edited; download the file instead",
        ),
        FileError::Full(cause) => ApiError::DiskFull(cause.into()),
        error @ (FileError::Home(_) | FileError::Io { .. }) => ApiError::internal(error),
    }
}
