//! Directories of the store that are not skills: what is being taken in, and what is being removed.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::{SkillStore, SkillStoreError};
use crate::home::remove::remove_tree;
use crate::home::{beneath, walk};
use crate::ids::SkillName;

pub(super) const IMPORT: &str = ".import-";
pub(super) const REMOVING: &str = ".removing-";

/// How often a new directory may be taken for a leftover before it could be locked.
const TRIES: usize = 16;

/// A directory of the store under a name of its own, removed when this is dropped unless it was renamed. It is locked
/// while somebody works on it.
pub(super) struct Temporary<'a> {
    store: &'a SkillStore,
    pub(super) name: String,
    pub(super) dir: OwnedFd,
}

impl<'a> Temporary<'a> {
    /// A new one, empty, that nobody else may enter.
    pub(super) fn create(store: &'a SkillStore) -> Result<Self, SkillStoreError> {
        let io = SkillStoreError::io("creating a directory in", &store.path);
        for _ in 0..TRIES {
            let name = random_name(IMPORT);
            let made = rustix::fs::mkdirat(store.root(), name.as_str(), Mode::RWXU)
                .and_then(|()| lock_new(store, &name));
            match made {
                Ok(dir) => return Ok(Self { store, name, dir }),
                // Somebody clears leftovers just now.
                Err(Errno::NOENT | Errno::AGAIN) => {}
                Err(errno) => return Err(io(errno)),
            }
        }
        Err(io(Errno::AGAIN))
    }

    /// Renames a directory of `parent` to be one that is removed when this is dropped.
    pub(super) fn take(
        store: &'a SkillStore,
        parent: &OwnedFd,
        old: &str,
        dir: OwnedFd,
    ) -> rustix::io::Result<Self> {
        let name = random_name(REMOVING);
        // Only so that nobody takes it for a leftover; whoever has just brought it may still have it.
        let _ = rustix::fs::flock(&dir, FlockOperation::NonBlockingLockExclusive);
        rustix::fs::renameat(parent, old, store.root(), name.as_str())?;
        Ok(Self { store, name, dir })
    }

    /// Removes it, and says what hinders that.
    pub(super) fn remove(self) -> Result<(), SkillStoreError> {
        Ok(remove_tree(
            &self.store.root,
            Path::new(&self.name),
            &self.store.path,
        )?)
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // After a rename nothing is there any more. What cannot be removed now is a leftover.
        let _ = remove_tree(&self.store.root, Path::new(&self.name), &self.store.path);
    }
}

fn random_name(prefix: &str) -> String {
    format!("{prefix}{}", uuid::Uuid::new_v4().simple())
}

fn lock_new(store: &SkillStore, name: &str) -> rustix::io::Result<OwnedFd> {
    let dir = beneath::open_dir(store.root(), Path::new(name))?;
    rustix::fs::flock(&dir, FlockOperation::NonBlockingLockExclusive)?;
    match is_at(&dir, store.root(), Path::new(name))? {
        true => Ok(dir),
        false => Err(Errno::AGAIN),
    }
}

/// Whether an open directory is the one that is called `name` in `parent`.
pub(super) fn is_at(dir: &OwnedFd, parent: impl AsFd, name: &Path) -> rustix::io::Result<bool> {
    let open = rustix::fs::fstat(dir)?;
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) => Ok((open.st_dev, open.st_ino) == (there.st_dev, there.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno),
    }
}

impl SkillStore {
    /// A new file on the storage of the store, which nobody else can open and nothing is left of once it is closed.
    ///
    /// # Errors
    /// What the system says.
    pub fn spool(&self) -> std::io::Result<File> {
        let mode = Mode::RUSR | Mode::WUSR;
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.root, ".", flags, mode) {
            Ok(file) => return Ok(File::from(file)),
            // A file system without files that have no name.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {}
            Err(errno) => return Err(errno.into()),
        }
        let name = random_name(IMPORT);
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.root, name.as_str(), flags, mode)?;
        rustix::fs::unlinkat(&self.root, name.as_str(), AtFlags::empty())?;
        Ok(File::from(file))
    }

    /// Removes what a process that was ended has left, names without any content too, and leaves alone what somebody works
    /// on.
    ///
    /// # Errors
    /// [`SkillStoreError::Io`], [`SkillStoreError::Removal`]; the rest was tried all the same.
    pub fn clear_leftovers(&self) -> Result<(), SkillStoreError> {
        let mut leftovers = Vec::new();
        walk::for_each(&self.root, |name, _| {
            let bytes = name.as_os_str().as_encoded_bytes();
            if bytes.starts_with(IMPORT.as_bytes()) || bytes.starts_with(REMOVING.as_bytes()) {
                leftovers.push(name.to_owned());
            }
        })
        .map_err(SkillStoreError::io("listing", &self.path))?;
        let mut outcome = Ok(());
        for name in leftovers {
            if let Err(error) = self.clear_leftover(&name) {
                outcome = Err(error);
            }
        }
        for name in self.names()? {
            if let Some(_locked) = self.lock(&name, false)? {
                self.forget_if_empty(&name)?;
            }
        }
        outcome
    }

    /// Removes the directory of a name, which is locked, unless something is in it.
    pub(super) fn forget_if_empty(&self, name: &SkillName) -> Result<(), SkillStoreError> {
        match rustix::fs::unlinkat(&self.root, name.as_str(), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            Err(errno) => {
                let io = SkillStoreError::io("removing", self.path.join(name.as_str()));
                Err(io(errno))
            }
        }
    }

    fn clear_leftover(&self, name: &Path) -> Result<(), SkillStoreError> {
        // Held until it is removed.
        let _locked = match beneath::open_dir(&self.root, name) {
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => {
                let io = SkillStoreError::io("opening", self.path.join(name));
                return Err(io(errno));
            }
            Ok(dir) => match rustix::fs::flock(&dir, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::AGAIN) => return Ok(()),
                locked => locked
                    .map(|()| dir)
                    .map_err(SkillStoreError::io("locking", self.path.join(name)))?,
            },
        };
        Ok(remove_tree(&self.root, name, &self.path)?)
    }
}
