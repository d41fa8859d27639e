//! Leadership by an exclusive lock on the data directory.
//!
//! For an installation with one process and SQLite: there is no lease row; a second process on the
//! same directory is refused. The kernel drops the lock when the process ends, however it ends. The
//! directory itself is locked rather than a file in it, which somebody could delete and thereby let a
//! second process in.

use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use schema::ids::Epoch;

use super::clock::SharedClock;
use super::leader::Leadership;

/// The one epoch under a file lock: the kernel excludes a second writer, so nothing needs telling apart.
const EPOCH: Epoch = Epoch(1);

/// The data directory could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("the data directory {0} is in use by another agentyard process")]
    InUse(PathBuf),
    /// The directory could not be opened or locked.
    #[error("the data directory {path} cannot be locked")]
    Io {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Locks `directory` for this process; the lock lasts as long as any clone of the result.
/// Does not wait, and does no IO beyond opening the directory: meant for the start of the process.
///
/// # Errors
/// [`LockError::InUse`] when another process, or another call in this one, holds the lock.
pub fn acquire(directory: &Path, clock: SharedClock) -> Result<Leadership, LockError> {
    let failed = |errno: Errno| LockError::Io {
        path: directory.to_owned(),
        source: errno.into(),
    };
    // Close-on-exec: a child (ssh, git) that outlives the process must not keep the lock.
    let lock = open(
        directory,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(failed)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Leadership::permanent(EPOCH, clock, lock)),
        Err(errno) if errno == Errno::WOULDBLOCK => Err(LockError::InUse(directory.to_owned())),
        Err(errno) => Err(failed(errno)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::runtime::clock::ManualClock;

    #[test]
    fn a_second_holder_is_refused_until_the_first_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        let clock: SharedClock = Arc::new(ManualClock::default());
        let first = acquire(directory.path(), clock.clone()).unwrap();
        let kept = first.clone();
        assert_eq!(first.epoch(), Some(EPOCH));
        let refused = acquire(directory.path(), clock.clone()).unwrap_err();
        assert!(matches!(refused, LockError::InUse(_)));
        assert!(
            refused
                .to_string()
                .contains("in use by another agentyard process")
        );
        drop(first);
        assert!(
            acquire(directory.path(), clock.clone()).is_err(),
            "a clone keeps the lock"
        );
        drop(kept);
        assert!(acquire(directory.path(), clock).is_ok());
    }

    #[test]
    fn a_missing_directory_is_an_error_with_its_path() {
        let error = acquire(
            Path::new("/nonexistent/data"),
            Arc::new(ManualClock::default()),
        )
        .unwrap_err();
        assert!(matches!(&error, LockError::Io { .. }));
        assert!(error.to_string().contains("/nonexistent/data"));
    }
}
