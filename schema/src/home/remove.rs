//! Removing a tree without following links.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::beneath;
use super::error::HomeError;
use super::walk::{Entry, Visit, walk};

/// How often directories may be left in which nothing was found that could be removed, and that are not empty all the same.
const STUBBORN: u32 = 100;

/// Removes the directory `name` in `parent` with everything in it. What is gone already is fine;
/// the entries are removed, not what links among them point to.
///
/// `shown` is the path of `parent`, for messages.
pub(crate) fn remove_tree(parent: &OwnedFd, name: &Path, shown: &Path) -> Result<(), HomeError> {
    remove_tree_of(parent, name, shown, u64::MAX)
}

/// The same for what an agent can reach, and may fill as fast as it is emptied: after `most` entries it fails.
pub(super) fn remove_tree_of(
    parent: &OwnedFd,
    name: &Path,
    shown: &Path,
    most: u64,
) -> Result<(), HomeError> {
    let path = shown.join(name);
    let mut removal = Removal {
        left: most,
        removed: false,
        in_vain: 0,
    };
    loop {
        // Entries of a read-only directory cannot be removed.
        match beneath::open_dir_unlocked(parent, name, Mode::RWXU) {
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(HomeError::io("removing", path)(errno)),
            Ok(top) => walk([top], &mut removal, "removing", &path)?,
        }
        match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            // Some file systems leave entries out of a listing from which others were removed.
            Err(Errno::NOTEMPTY | Errno::EXIST) if removal.in_vain < STUBBORN => {}
            Err(errno) => return Err(HomeError::io("removing", path)(errno)),
        }
    }
}

struct Removal {
    /// Entries that may still be removed.
    left: u64,
    /// Something was removed since a directory was left.
    removed: bool,
    /// Directories that were left without that, since one was left with it.
    in_vain: u32,
}

impl Visit<1> for Removal {
    /// Empty by then.
    const AGAIN: bool = true;

    fn entry(
        &mut self,
        [at]: &[OwnedFd; 1],
        entry: &Entry<'_>,
    ) -> io::Result<Option<[OwnedFd; 1]>> {
        let flags = match entry.kind {
            FileType::Directory => AtFlags::REMOVEDIR,
            _ => AtFlags::empty(),
        };
        match rustix::fs::unlinkat(at, entry.name, flags) {
            Ok(()) | Err(Errno::NOENT) => {
                let left = self.left.checked_sub(1);
                self.left = left.ok_or_else(|| io::Error::other("too much is in it"))?;
                self.removed = true;
                Ok(None)
            }
            Err(Errno::NOTEMPTY | Errno::EXIST) if self.in_vain < STUBBORN => {
                match beneath::open_dir_unlocked(at, entry.name, Mode::RWXU) {
                    Err(Errno::NOENT) => Ok(None),
                    opened => Ok(Some([opened?])),
                }
            }
            Err(errno) => Err(errno.into()),
        }
    }

    fn leave(&mut self, _at: &[OwnedFd; 1]) -> io::Result<()> {
        self.in_vain = match std::mem::take(&mut self.removed) {
            true => 0,
            false => self.in_vain + 1,
        };
        Ok(())
    }
}
