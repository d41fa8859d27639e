//! Directories in which calls keep what they fetch.
//!
//! Each is locked while its call runs, so one that a call, or a process that was killed, has left behind is told from one
//! in use, and the next call removes it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use schema::ids::Uid;

/// A directory of one call. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    _lock: OwnedFd,
}

impl Scratch {
    /// A new directory in `parent`, which holds nothing else than these and is made if it is missing. Blocks.
    pub(super) fn new(parent: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(parent)?;
        rustix::fs::chmod(parent, Mode::RWXU)?;
        sweep(parent)?;
        loop {
            let path = parent.join(Uid::random().as_str());
            rustix::fs::mkdir(&path, Mode::RWXU)?;
            // Before it was locked somebody else may have taken it for one that was left behind.
            if let Some(lock) = lock(&path)?
                && path.exists()
            {
                return Ok(Self { path, _lock: lock });
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A few dozen files. A process that was killed a moment ago may still end its last write; what it leaves is
        // found by the next call.
        for _ in 0..3 {
            if std::fs::remove_dir_all(&self.path).is_ok() {
                return;
            }
        }
    }
}

/// Locks a directory; `None` when somebody else has, or it is gone.
fn lock(path: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(fd)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Removes what no call is using.
fn sweep(parent: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(parent)? {
        let path = entry?.path();
        match lock(&path) {
            Ok(Some(_lock)) => {
                let _ = std::fs::remove_dir_all(&path);
            }
            Ok(None) => {}
            // Nothing of ours; it is in nobody's way.
            Err(_) => {}
        }
    }
    Ok(())
}

/// The bytes of all files in a directory, and below it. Blocks.
pub(super) fn size(directory: &Path) -> u64 {
    let mut sum = 0;
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        // What vanishes meanwhile counts for nothing.
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => left.push(entry.path()),
                Ok(metadata) => sum += metadata.len(),
                Err(_) => {}
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l28_what_was_left_behind_is_removed_and_what_is_in_use_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join("left");
        std::fs::create_dir_all(left.join("objects")).unwrap();
        std::fs::write(left.join("objects/pack"), "x").unwrap();
        let one = Scratch::new(parent.path()).unwrap();
        assert!(!left.exists());
        std::fs::create_dir(one.path().join("a")).unwrap();
        std::fs::write(one.path().join("a/b"), "123").unwrap();
        assert_eq!(size(one.path()), 3);
        let two = Scratch::new(parent.path()).unwrap();
        assert!(one.path().join("a/b").exists());
        drop((one, two));
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
