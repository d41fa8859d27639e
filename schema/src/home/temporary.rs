//! Files on their way to their names.
//!
//! A new file has no name until it is complete, and disappears with its last handle, also when the service is killed. Where
//! the file system does not know such files (NFS, some of FUSE), and in the moment in which another file is replaced, it
//! has a random one. [`is_left`] finds what a service that was killed at such a time has left.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::rename::rename_beside_agent;
use crate::fault;

const PREFIX: &str = ".agentyard-";
const SUFFIX: &str = ".tmp";
/// A file that has a temporary name and was not changed for so long was left: no request takes that long.
const LEFT_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns true for a name that [`TemporaryFile`] gives.
pub(crate) fn is_temporary(name: &[u8]) -> bool {
    let middle = name
        .strip_prefix(PREFIX.as_bytes())
        .and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
    middle.is_some_and(|middle| {
        let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        middle.len() == 32 && middle.iter().all(is_hex)
    })
}

/// The time of file systems, in seconds since 1970.
pub(super) fn now() -> i64 {
    rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec
}

/// Whether a regular file of this name, of which the system says `stat`, was left by a service that was killed.
pub(super) fn is_left(name: &[u8], stat: &Stat, now: i64) -> bool {
    // The owner of a file can set every time of it but this one.
    let age = u64::try_from(now.saturating_sub(stat.st_ctime)).unwrap_or(0);
    is_temporary(name) && age > LEFT_AFTER.as_secs()
}

/// A name that nobody can foresee.
pub(super) fn temporary_name() -> String {
    format!("{PREFIX}{}{SUFFIX}", uuid::Uuid::new_v4().simple())
}

/// A new file, removed again unless it gets a name.
#[derive(Debug)]
pub(super) struct TemporaryFile<P: AsFd> {
    file: File,
    /// Where it was made.
    parent: P,
    /// Its name there, if it needs one.
    name: Option<String>,
}

impl<P: AsFd> TemporaryFile<P> {
    /// Makes a file on the file system of `parent`.
    pub(super) fn create(parent: P) -> rustix::io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
        match rustix::fs::openat(parent.as_fd(), ".", flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Ok(Self {
                file: File::from(file),
                parent,
                name: None,
            }),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOSYS) => {
                Self::create_named(parent)
            }
            Err(errno) => Err(errno),
        }
    }

    /// The same where there are no files without a name.
    pub(super) fn create_named(parent: P) -> rustix::io::Result<Self> {
        // A random name: the agent cannot have planted anything there, and EXCL would notice.
        let name = temporary_name();
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(parent.as_fd(), name.as_str(), flags, mode)?;
        Ok(Self {
            file: File::from(file),
            parent,
            name: Some(name),
        })
    }

    /// To write to.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name in `parent`, in the place of what has it now.
    pub(super) fn replace(&self, parent: impl AsFd, name: &OsStr) -> rustix::io::Result<()> {
        let parent = parent.as_fd();
        if let Some(own) = &self.name {
            return rustix::fs::renameat(self.parent.as_fd(), own.as_str(), parent, name);
        }
        // A link replaces nothing; a name does.
        let own = temporary_name();
        self.link(parent, OsStr::new(&own))?;
        fault::point("home.temporary.linked");
        let renamed = rustix::fs::renameat(parent, own.as_str(), parent, name);
        if renamed.is_err() {
            let _ = rustix::fs::unlinkat(parent, own.as_str(), AtFlags::empty());
        }
        renamed
    }

    /// Gives the file a name in `parent` that nothing has: else `EEXIST`.
    pub(super) fn link_new(&self, parent: impl AsFd, name: &OsStr) -> rustix::io::Result<()> {
        match &self.name {
            Some(own) => rename_beside_agent(self.parent.as_fd(), own.as_str(), parent, name),
            None => self.link(parent.as_fd(), name),
        }
    }

    fn link(&self, parent: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<()> {
        // The name in /proc is the handle itself; AT_EMPTY_PATH would need a capability.
        let handle = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let cwd = rustix::fs::CWD;
        rustix::fs::linkat(cwd, handle.as_str(), parent, name, AtFlags::SYMLINK_FOLLOW)
    }

    /// What the system says of it, whatever has its name.
    pub(super) fn stat(&self) -> rustix::io::Result<Stat> {
        rustix::fs::fstat(&self.file)
    }
}

impl<P: AsFd> Drop for TemporaryFile<P> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // Once it has its own name this one is free.
            let _ = rustix::fs::unlinkat(self.parent.as_fd(), name.as_str(), AtFlags::empty());
        }
    }
}
