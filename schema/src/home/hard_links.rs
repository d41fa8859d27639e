//! Files with several names are copied once, where the file system can do that: whoever gives a file ten thousand names does not
//! fill the disk with its copies.
//!
//! Which files were copied already is remembered on the disk, in a directory of the copy that is removed at its end: that
//! takes no memory however many there are.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, Stat};
use rustix::io::Errno;

use super::beneath;
use super::error::HomeError;
use super::remove::remove_tree;
use super::temporary::temporary_name;

/// Names of files that may have others.
pub(super) struct HardLinks {
    /// The top of the copy.
    top: OwnedFd,
    /// Has a link to each file that was copied, and its name in `top`; made when it is needed.
    copied: Option<(OwnedFd, String)>,
}

impl HardLinks {
    /// Of a copy that is made in `top`.
    pub(super) fn of(top: &OwnedFd) -> rustix::io::Result<Self> {
        Ok(Self {
            top: rustix::io::fcntl_dupfd_cloexec(top, 0)?,
            copied: None,
        })
    }

    /// Whether the file of which the system says `stat` was copied already: then `name` in `to` is that copy.
    pub(super) fn link(&mut self, stat: &Stat, to: &OwnedFd, name: &Path) -> io::Result<bool> {
        let Some((copied, _)) = self.copied.as_ref().filter(|_| has_names(stat)) else {
            return Ok(false);
        };
        match rustix::fs::linkat(copied, key(stat), to, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(errno) if errno == Errno::NOENT || is_unable(errno) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Remembers that `name` in `to` is the copy of the file of which the system says `stat`.
    pub(super) fn add(&mut self, stat: &Stat, to: &OwnedFd, name: &Path) -> io::Result<()> {
        if !has_names(stat) {
            return Ok(());
        }
        let (copied, _) = match self.copied.take() {
            Some(copied) => self.copied.insert(copied),
            None => {
                let own = temporary_name();
                rustix::fs::mkdirat(&self.top, own.as_str(), Mode::RWXU)?;
                let made = beneath::open_dir(&self.top, Path::new(&own))?;
                self.copied.insert((made, own))
            }
        };
        let key = key(stat);
        let copied = &*copied;
        let link = || rustix::fs::linkat(to, name, copied, key.as_str(), AtFlags::empty());
        let linked = match link() {
            // That copy has as many names as a file may have: this one is the next.
            Err(Errno::EXIST) => {
                rustix::fs::unlinkat(copied, key.as_str(), AtFlags::empty()).and_then(|()| link())
            }
            linked => linked,
        };
        match linked {
            Err(errno) if !is_unable(errno) => Err(errno.into()),
            _ => Ok(()),
        }
    }

    /// Removes what was only there for the copy. `shown` is for messages.
    pub(super) fn end(&mut self, shown: &Path) -> Result<(), HomeError> {
        match self.copied.take() {
            Some((_, own)) => remove_tree(&self.top, Path::new(&own), shown),
            None => Ok(()),
        }
    }
}

/// Whether the file system takes no more names for a file, or never more than one.
fn is_unable(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::MLINK | Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::XDEV
    )
}

/// Whether a file has several names. A directory has several links and one name.
pub(super) fn has_names(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) != FileType::Directory && stat.st_nlink > 1
}

fn key(stat: &Stat) -> String {
    format!("{:x}-{:x}", stat.st_dev, stat.st_ino)
}
