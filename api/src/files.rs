//! Users' files, off the async threads.
//!
//! A handler reads and writes files of its own caller's workspace, and of no other. Calls to the system may take long: they
//! run on threads of their own, a bounded number at once; one user has at most half of the places.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use schema::home::workspace::{FileError, Workspace};
use schema::home::{Archive, Homes};
use schema::ids::Uid;
use schema::under_way::track_call;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use crate::auth::Account;
use crate::error::{ApiError, Result};
use crate::limits::{
    ARRIVING, FILE_CALLS, FILE_CHANGES, KeyedCounter, LONG_CALLS, PerOwner, Place, REMOVALS, ZIPS,
};

/// Longest time that a call waits for others.
const PATIENCE: Duration = Duration::from_secs(4);
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
    calls_of_users: PerOwner<Uid>,
    long_calls: Arc<Semaphore>,
    changes: Arc<Semaphore>,
    removals: Arc<Semaphore>,
    long_of_users: PerOwner<Uid>,
    removals_of_users: KeyedCounter<Uid>,
    changes_of_users: KeyedCounter<Uid>,
    /// Whether what is removed frees the disk of the database.
    pub(crate) with_database: bool,
    zips: Arc<Semaphore>,
    zips_of_users: KeyedCounter<Uid>,
    arriving: Arc<Semaphore>,
    arriving_of_users: KeyedCounter<Uid>,
}

/// The client of a long call, as the call sees it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Client(Arc<AtomicBool>);

impl Client {
    /// Returns true once nothing waits for the outcome.
    pub(crate) fn is_gone(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Marks the client as gone when the request ends.
struct Leaving(Client);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
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

/// Waits for a place of the user, then for one of all.
async fn both_turns(
    of_users: &PerOwner<Uid>,
    account: &Account,
    of_all: &Arc<Semaphore>,
) -> Result<[OwnedSemaphorePermit; 2]> {
    let own = of_users.part_of(&account.uid).acquire_owned().await;
    let own = own.map_err(ApiError::internal)?;
    let all = Arc::clone(of_all).acquire_owned().await;
    Ok([own, all.map_err(ApiError::internal)?])
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
            calls: FILE_CALLS.semaphore(),
            calls_of_users: PerOwner::new(FILE_CALLS.each()),
            long_calls: LONG_CALLS.semaphore(),
            changes: FILE_CHANGES.semaphore(),
            removals: REMOVALS.semaphore(),
            long_of_users: PerOwner::new(LONG_CALLS.each()),
            removals_of_users: KeyedCounter::new(&REMOVALS),
            changes_of_users: KeyedCounter::new(&FILE_CHANGES),
            with_database,
            zips: ZIPS.semaphore(),
            zips_of_users: KeyedCounter::new(&ZIPS),
            arriving: ARRIVING.semaphore(),
            arriving_of_users: KeyedCounter::new(&ARRIVING),
        }
    }

    /// Runs what calls the file system for a user and does not take long.
    ///
    /// # Errors
    /// 503 `busy` when it has to wait too long; [`ApiError::Internal`] when it panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        account: &Account,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        call(self.short_turn(account).await?, work).await
    }

    /// Waits for a place among short calls: one of the user's, then one of all.
    async fn short_turn(&self, account: &Account) -> Result<[OwnedSemaphorePermit; 2]> {
        let waiting = self.wait_for_turn(account);
        let turn = tokio::time::timeout(PATIENCE, waiting).await;
        turn.map_err(|_| BUSY)?
    }

    async fn wait_for_turn(&self, account: &Account) -> Result<[OwnedSemaphorePermit; 2]> {
        both_turns(&self.calls_of_users, account, &self.calls).await
    }

    /// Runs what calls the file system for a user and does not take long, however long it has to wait.
    ///
    /// # Errors
    /// [`ApiError::Internal`] when it panics.
    pub(crate) async fn run_always<T: Send + 'static>(
        &self,
        account: &Account,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        call(self.wait_for_turn(account).await?, work).await
    }

    /// Runs what calls the file system for administrators and does not take long.
    async fn run_for_all<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        call(turn(&self.calls).await?, work).await
    }

    /// Lists the archives of deleted users, the oldest first.
    ///
    /// # Errors
    /// 503 `busy` when it has to wait too long; those of the file system.
    pub(crate) async fn list_archives(&self) -> Result<Vec<Archive>> {
        let homes = Arc::clone(&self.homes);
        let listed = self.run_for_all(move || homes.archives()).await?;
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
        self.run_for_all(move || homes.archive_sizes(&archives))
            .await
    }

    /// Begins what calls the file system and does not take long; it goes on by itself.
    ///
    /// # Errors
    /// 503 `busy` when it has to wait too long.
    pub(crate) async fn begin<T: Send + 'static>(
        &self,
        account: &Account,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<T>> {
        Ok(begin(self.short_turn(account).await?, work))
    }

    /// Runs what calls the file system and may take long. It does not hold up what is short, and is asked to end once its client has gone.
    ///
    /// # Errors
    /// As [`Files::run`].
    pub(crate) async fn run_long<T: Send + 'static>(
        &self,
        account: &Account,
        work: impl FnOnce(&Client) -> T + Send + 'static,
    ) -> Result<T> {
        let waiting = both_turns(&self.long_of_users, account, &self.long_calls);
        let turn = tokio::time::timeout(PATIENCE, waiting).await;
        let turn = turn.map_err(|_| BUSY)??;
        let client = Client::default();
        let leaving = Leaving(client.clone());
        let done = call(turn, move || work(&client)).await;
        drop(leaving);
        done
    }

    /// The turn of a change, and whether it `removes` something, which may take long. Others than changes do not wait for it, so it may be
    /// kept while the change is recorded.
    ///
    /// # Errors
    /// 503 `busy` when it has to wait too long, or the user has as many of them as may be.
    pub(crate) async fn change(&self, account: &Account, removes: bool) -> Result<ChangeTurn> {
        let (turns, tally) = match removes {
            true => (&self.removals, &self.removals_of_users),
            false => (&self.changes, &self.changes_of_users),
        };
        let place = tally.enter(&account.uid).ok_or(BUSY)?;
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
        let place = self.arriving_of_users.enter(&account.uid);
        let place = place.ok_or(BUSY)?;
        let turn = Arc::clone(&self.arriving).try_acquire_owned();
        Ok((turn.map_err(|_| BUSY)?, place))
    }

    /// The workspace of a user; `None` when it has not been made yet.
    pub(crate) async fn find(&self, account: &Account) -> Result<Option<Arc<Workspace>>> {
        let homes = Arc::clone(&self.homes);
        let (name, uid) = (account.name.clone(), account.uid.clone());
        let found = self
            .run(account, move || homes.workspace(&name, &uid))
            .await?;
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
                    .run(account, move || homes.workspace_to_change(&name, &uid))
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
        let place = self.zips_of_users.enter(&account.uid).ok_or(BUSY)?;
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
