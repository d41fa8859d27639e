//! Removing what nothing uses any more.

use std::path::Path;

use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::temporary::Temporary;
use super::{SkillStore, SkillStoreError, TreeDigest};
use crate::fault;
use crate::home::{beneath, walk};
use crate::ids::{SkillName, Timestamp};

impl SkillStore {
    /// The names of which something is there, sorted.
    ///
    /// # Errors
    /// [`SkillStoreError::Io`].
    pub fn names(&self) -> Result<Vec<SkillName>, SkillStoreError> {
        let mut names: Vec<SkillName> = Vec::new();
        walk::for_each(&self.root, |name, kind| {
            let parsed = name.to_str().and_then(|name| name.parse().ok());
            // Another name in the same form, such as one that is not composed, is not one of ours.
            if kind == FileType::Directory
                && let Some(parsed) = parsed.filter(|parsed: &SkillName| name == parsed.as_str())
            {
                names.push(parsed);
            }
        })
        .map_err(SkillStoreError::io("listing", &self.path))?;
        names.sort_unstable();
        Ok(names)
    }

    /// What is there of a name, sorted, and when each was last taken in.
    ///
    /// # Errors
    /// [`SkillStoreError::Io`].
    pub fn digests(
        &self,
        name: &SkillName,
    ) -> Result<Vec<(TreeDigest, Timestamp)>, SkillStoreError> {
        let io = || SkillStoreError::io("listing", self.path.join(name.as_str()));
        let dir = match beneath::open_dir(&self.root, Path::new(name.as_str())) {
            Err(Errno::NOENT) => return Ok(Vec::new()),
            opened => opened.map_err(io())?,
        };
        let mut found: Vec<TreeDigest> = Vec::new();
        walk::for_each(&dir, |name, kind| {
            if kind == FileType::Directory
                && let Some(digest) = name.to_str().and_then(|name| name.parse().ok())
            {
                found.push(digest);
            }
        })
        .map_err(io())?;
        found.sort_unstable();
        let mut digests = Vec::new();
        for digest in found {
            match rustix::fs::statat(&dir, digest.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => digests.push((digest, modified(&stat))),
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(io()(errno)),
            }
        }
        Ok(digests)
    }

    /// Removes a digest of a name unless it was taken in after `not_newer_than`. Whether it is not there any more; what is
    /// gone already is fine. The name goes with its last digest.
    ///
    /// # Errors
    /// [`SkillStoreError::Io`]; [`SkillStoreError::Removal`] when it could be taken out of the store, but not all of it
    /// removed: the rest is a leftover.
    pub fn remove_unused(
        &self,
        name: &SkillName,
        digest: &TreeDigest,
        not_newer_than: Timestamp,
    ) -> Result<bool, SkillStoreError> {
        let io = || SkillStoreError::io("removing", self.path_of(name, digest));
        let Some(parent) = self.lock(name, false)? else {
            return Ok(true);
        };
        let removal = match beneath::open_dir(&parent, Path::new(digest.as_str())) {
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(io()(errno)),
            Ok(dir) => {
                let stat = rustix::fs::fstat(&dir).map_err(io())?;
                if modified(&stat) > not_newer_than {
                    return Ok(false);
                }
                fault::point("skill_store.remove.old");
                Some(Temporary::take(self, &parent, digest.as_str(), dir).map_err(io())?)
            }
        };
        fault::point("skill_store.remove.renamed");
        self.forget_if_empty(name)?;
        // Not held while files are removed, which may take long.
        drop(parent);
        fault::point("skill_store.remove.unlocked");
        removal.map_or(Ok(()), Temporary::remove)?;
        fault::point("skill_store.remove.done");
        Ok(true)
    }
}

/// When a directory was modified, in milliseconds, rounded up: it is not taken for older than it is.
fn modified(stat: &Stat) -> Timestamp {
    let millis = i64::try_from(stat.st_mtime_nsec.div_ceil(1_000_000)).unwrap_or(0);
    Timestamp::from_millis(stat.st_mtime.saturating_mul(1000).saturating_add(millis))
}
