//! Whether the database can be used, as all connections of one [`Db`](crate::db::Db) know it.
//!
//! Every statement, and every wait for a connection, goes through [`Link::bound`]. On PostgreSQL it ends at
//! once when the database is found to be away, by whoever finds it: nobody waits for a server that does
//! not answer, and nobody asks again before [`Db::keep`](crate::db::Db::keep) has seen it answer.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::error::DbError;

/// A lock on the file that takes longer is another program's.
const LOCKED: Duration = Duration::from_secs(1);

/// The storage of the database refuses to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageFault {
    /// There is no space left.
    Full,
    /// Another program has locked the file: what is written waits.
    Locked,
    /// Anything else; in words, what.
    Failed(&'static str),
}

/// The reason why the database is not used as it otherwise would be, although it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It takes no changes.
    Changes(&'static str),
    /// It is not the service's any more, or holds nothing of it.
    Everything(&'static str),
}

impl Refusal {
    /// In words.
    pub fn why(self) -> &'static str {
        match self {
            Self::Changes(why) | Self::Everything(why) => why,
        }
    }
}

#[derive(Debug)]
struct Shared {
    /// Why the database is away; never on SQLite, which is a file.
    away: watch::Sender<Option<Arc<str>>>,
    /// Somebody has seen a connection fail: it is worth a look.
    suspicion: Notify,
    storage: Mutex<Option<StorageFault>>,
    /// Since when a transaction has waited for its lock on the file.
    waiting: Mutex<Option<Instant>>,
    refusal: Mutex<Option<Refusal>>,
    /// Reason why the database is not the service's any more, for good.
    abandoned: OnceLock<&'static str>,
}

/// See the [module](self). Clones are the same link.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    shared: Arc<Shared>,
    /// It may go away, and somebody watches it.
    remote: bool,
}

impl Link {
    pub fn new(remote: bool) -> Self {
        Self {
            shared: Arc::new(Shared {
                away: watch::Sender::new(None),
                suspicion: Notify::new(),
                storage: Mutex::new(None),
                waiting: Mutex::new(None),
                refusal: Mutex::new(None),
                abandoned: OnceLock::new(),
            }),
            remote,
        }
    }

    fn storage(&self) -> MutexGuard<'_, Option<StorageFault>> {
        let storage = self.shared.storage.lock();
        storage.unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails while the database is known to be away, or must not even be read.
    pub fn check(&self) -> Result<(), DbError> {
        if let Some(Refusal::Everything(why)) = self.refusal() {
            return Err(DbError::Unavailable(why.to_owned()));
        }
        match &*self.shared.away.borrow() {
            None => Ok(()),
            Some(why) => Err(DbError::Unavailable(why.to_string())),
        }
    }

    /// Fails while changes are refused.
    pub fn check_changes(&self) -> Result<(), DbError> {
        match self.refusal() {
            None => Ok(()),
            Some(refusal) => Err(DbError::Unavailable(refusal.why().to_owned())),
        }
    }

    /// Reason why the database is not used as it otherwise would be.
    pub fn refusal(&self) -> Option<Refusal> {
        let abandoned = self.shared.abandoned.get();
        match abandoned {
            Some(why) => Some(Refusal::Everything(why)),
            None => *self.refusal_lock(),
        }
    }

    /// Refuses everything, for good.
    pub fn abandon(&self, why: &'static str) {
        let _ = self.shared.abandoned.set(why);
    }

    /// Sets the refusal; returns the one before.
    pub fn refuse(&self, refusal: Option<Refusal>) -> Option<Refusal> {
        std::mem::replace(&mut *self.refusal_lock(), refusal)
    }

    fn refusal_lock(&self) -> MutexGuard<'_, Option<Refusal>> {
        let refusal = self.shared.refusal.lock();
        refusal.unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the database is away, while it is.
    pub fn away(&self) -> Option<Arc<str>> {
        self.shared.away.borrow().clone()
    }

    /// The fault of the last write, if that failed for its storage, or of the one that waits.
    pub fn storage_fault(&self) -> Option<StorageFault> {
        let is_locked = self.waiting().is_some_and(|at| at.elapsed() >= LOCKED);
        match is_locked {
            true => Some(StorageFault::Locked),
            false => *self.storage(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Option<Instant>> {
        let waiting = self.shared.waiting.lock();
        waiting.unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a transaction that takes the lock on a file: one at a time, since they share a connection.
    pub async fn lock_file<T>(&self, begin: impl Future<Output = T>) -> T {
        /// Ends the wait, also of a call that is cut off.
        struct Waiting<'a>(&'a Link);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                *self.0.waiting() = None;
            }
        }
        *self.waiting() = Some(Instant::now());
        let _waiting = Waiting(self);
        begin.await
    }

    /// Does what needs the database, for as long as that is not known to be away. What is cut off may have
    /// been done all the same: its connection must not be used again. Boxed, because it is part of every function
    /// that has statements.
    pub fn bound<'a, T: Send + 'a>(
        &'a self,
        call: impl Future<Output = Result<T, sqlx::Error>> + Send + 'a,
    ) -> Pin<Box<dyn Future<Output = Result<T, DbError>> + Send + 'a>> {
        Box::pin(self.bind(call))
    }

    async fn bind<T>(
        &self,
        call: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, DbError> {
        let result = if self.remote {
            tokio::select! {
                biased;
                result = call => result.map_err(DbError::from),
                why = self.gone() => Err(DbError::Unavailable(why.to_string())),
            }
        } else {
            call.await.map_err(DbError::from)
        };
        match &result {
            Err(DbError::StorageFull(_)) => *self.storage() = Some(StorageFault::Full),
            Err(DbError::StorageFailed(what, _)) => {
                *self.storage() = Some(StorageFault::Failed(what));
            }
            Err(DbError::Unavailable(_)) => self.shared.suspicion.notify_one(),
            _ => {}
        }
        result
    }

    /// Something was written for good.
    pub fn written(&self) {
        *self.storage() = None;
    }

    /// Waits until the database is away.
    pub async fn gone(&self) -> Arc<str> {
        let mut away = self.shared.away.subscribe();
        // The sender lives as long as this link.
        let gone = away.wait_for(Option::is_some).await;
        let why = gone.ok().and_then(|why| why.clone());
        match why {
            Some(why) => why,
            None => std::future::pending().await,
        }
    }

    /// Waits until the database is not away.
    pub async fn back(&self) {
        let mut away = self.shared.away.subscribe();
        let _ = away.wait_for(Option::is_none).await;
    }

    /// Waits until a connection has failed.
    pub async fn suspected(&self) {
        self.shared.suspicion.notified().await;
    }

    /// The database does not answer. False when that was known.
    pub fn lost(&self, why: &str) -> bool {
        self.shared
            .away
            .send_replace(Some(Arc::from(why)))
            .is_none()
    }

    /// The database answers.
    pub fn restored(&self) {
        self.shared.away.send_replace(None);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_database_that_goes_away_is_told_at_once() {
        let link = Link::new(true);
        let waiting = link.bound(std::future::pending::<Result<(), sqlx::Error>>());
        let goes = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(link.lost("it does not answer"));
            assert!(!link.lost("it still does not answer"), "known");
        };
        let (result, ()) = tokio::join!(waiting, goes);
        assert!(matches!(result, Err(DbError::Unavailable(_))));
        assert!(link.check().is_err());
        link.restored();
        assert!(link.check().is_ok());
        assert!(link.bound(async { Ok(()) }).await.is_ok());
    }

    #[test]
    fn refused_changes_leave_reads_alone() {
        let link = Link::new(true);
        for (refusal, reads, changes) in [
            (Some(Refusal::Changes("it is read-only")), true, false),
            (Some(Refusal::Everything("it is gone")), false, false),
            (None, true, true),
        ] {
            link.refuse(refusal);
            assert_eq!(link.check().is_ok(), reads, "{refusal:?}");
            assert_eq!(link.check_changes().is_ok(), changes, "{refusal:?}");
        }
    }

    #[tokio::test]
    async fn a_fault_of_the_storage_is_known_until_something_is_written() {
        let link = Link::new(false);
        assert_eq!(link.storage_fault(), None);
        let full = link.bound(async { Err::<(), _>(sqlx::Error::PoolTimedOut) });
        assert!(matches!(full.await, Err(DbError::Unavailable(_))));
        assert_eq!(link.storage_fault(), None, "another fault");
        *link.storage() = Some(StorageFault::Full);
        assert!(link.bound(async { Ok(()) }).await.is_ok());
        assert_eq!(link.storage_fault(), Some(StorageFault::Full), "only read");
        link.written();
        assert_eq!(link.storage_fault(), None);
    }
}
