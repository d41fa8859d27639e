//! The skills of the installation, by their content.
//!
//! ```text
//! <data>/skills/<name>/<digest>/      the files of a skill, complete and never changed again
//! <data>/skills/.import-<random>/     one that is being taken in
//! <data>/skills/.removing-<random>/   what is left of one that nothing uses any more
//! ```
//!
//! The digest covers the normalised tree: regular files with their path, whether they are executable, and their bytes. So
//! the same content is one directory, whatever zip or clone it came from. Links, owners, other bits and empty directories
//! are not kept; `.git` and the files that macOS adds (`__MACOSX`, `.DS_Store`, `._*`, Finder's `Icon`) are left out.
//!
//! Packages come from strangers: everything is checked and bounded before it is used, what is refused leaves nothing, and
//! a directory appears under its digest at once and complete, or not at all. Whoever asks whether a digest is there in
//! order to keep or to remove it holds a lock on the directory of the name, so that what was just taken in is not removed.
//!
//! All functions block; callers on async threads use `spawn_blocking`.

mod digest;
mod download;
mod error;
mod found;
pub mod front_matter;
mod garbage;
mod import;
pub(crate) mod left_out;
mod names;
mod package;
mod temporary;
#[cfg(test)]
mod tests;
mod tree;
mod zip_file;

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

pub use digest::{InvalidDigest, TreeDigest, TreeStamp};
pub use download::zip_folder;
pub(crate) use error::listed;
pub use error::{ImportError, Refusal, ShownPath, SkillStoreError};
pub use found::{FoundSkill, FoundSkills, MAX_SKILLS, list_skills};
pub use front_matter::{FrontMatter, InvalidFrontMatter, Reading};
pub use import::Imported;
pub use left_out::{SkipReason, Skipped};
pub use names::find_objection;
pub use package::digest_package;
pub use tree::{Tree, TreeLimits, digest_tree, stamp_tree};
pub use zip_file::MAX_PACKED;

use crate::home::{beneath, root};
use crate::ids::SkillName;
use crate::private;

pub(crate) const ROOT: &str = "skills";

/// The store of an installation. Several may be open, in several processes, too.
#[derive(Debug)]
pub struct SkillStore {
    root: OwnedFd,
    /// For messages.
    path: PathBuf,
}

impl SkillStore {
    /// Opens `<data_dir>/skills`, which is created with mode 0700 when it is missing.
    ///
    /// # Errors
    /// [`SkillStoreError::RefusedRoot`] when it is a link or a file, belongs to somebody else, or others may use it;
    /// [`SkillStoreError::Io`].
    pub fn open(data_dir: &Path) -> Result<Self, SkillStoreError> {
        let path = data_dir.join(ROOT);
        let refused = |reason: &str| SkillStoreError::RefusedRoot {
            path: path.clone(),
            reason: reason.to_owned(),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let data = rustix::fs::openat(CWD, data_dir, flags, Mode::empty())
            .map_err(SkillStoreError::io("opening", data_dir))?;
        let root = match root::ensure_dir(&data, ROOT) {
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return Err(refused(
                    "it is not a directory; remove it, or mount the directory itself there",
                ));
            }
            outcome => outcome.map_err(SkillStoreError::io("opening", &path))?,
        };
        let stat = rustix::fs::fstat(&root).map_err(SkillStoreError::io("reading", &path))?;
        match private::objection(&stat) {
            Some(objection) => Err(refused(&objection)),
            None => Ok(Self { root, path }),
        }
    }

    /// Whether a skill of that name and content is there.
    ///
    /// # Errors
    /// [`SkillStoreError::Io`].
    pub fn contains(&self, name: &SkillName, digest: &TreeDigest) -> Result<bool, SkillStoreError> {
        Ok(self.open_tree(name, digest)?.is_some())
    }

    /// The directory of a skill of that name and content; `None` when it is not there. What it holds is complete, and
    /// nobody may change it.
    ///
    /// # Errors
    /// [`SkillStoreError::Io`].
    pub fn open_tree(
        &self,
        name: &SkillName,
        digest: &TreeDigest,
    ) -> Result<Option<OwnedFd>, SkillStoreError> {
        let path = Path::new(name.as_str()).join(digest.as_str());
        match beneath::open_dir(&self.root, &path) {
            Err(Errno::NOENT) => Ok(None),
            opened => opened
                .map(Some)
                .map_err(SkillStoreError::io("opening", self.path.join(path))),
        }
    }

    /// The directory of a name, alone with it until it is closed; `None` when there is none and `create` does not say to
    /// make one.
    fn lock(&self, name: &SkillName, create: bool) -> Result<Option<OwnedFd>, SkillStoreError> {
        let path = Path::new(name.as_str());
        let locked = || loop {
            let dir = match beneath::open_dir(&self.root, path) {
                Err(Errno::NOENT) if create => root::ensure_dir(&self.root, name.as_str()),
                opened => opened,
            };
            let dir = match dir {
                Ok(dir) => dir,
                // Between making and opening it, it was removed as empty.
                Err(Errno::NOENT) if create => continue,
                Err(Errno::NOENT) => return Ok(None),
                Err(errno) => return Err(errno),
            };
            rustix::io::retry_on_intr(|| rustix::fs::flock(&dir, FlockOperation::LockExclusive))?;
            // Whoever held it may have removed it.
            if temporary::is_at(&dir, &self.root, path)? {
                return Ok(Some(dir));
            }
        };
        locked().map_err(SkillStoreError::io("locking", self.path.join(path)))
    }

    fn path_of(&self, name: &SkillName, digest: &TreeDigest) -> PathBuf {
        self.path.join(name.as_str()).join(digest.as_str())
    }

    fn root(&self) -> std::os::fd::BorrowedFd<'_> {
        self.root.as_fd()
    }
}
