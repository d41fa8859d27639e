//! Moving a user's directory to the archive.
//!
//! The order of the steps makes every crash point recognisable afterwards:
//! 1. claim a name: write `archive/.owners/<dir>` with the uid;
//! 2. rename `users/<name>` to `archive/<dir>`; or, when the archive is another file system, copy to
//!    `archive/.partial-<uid>`, verify, note `copied` in the claim, rename the copy, delete the original;
//! 3. remove `users/.owners/<name>`, last: until then the place is not free for another account.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::RenameFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::ensure::{Found, type_of};
use super::error::HomeError;
use super::marker::{self, Marker};
use super::{Homes, copy, remove};
use crate::fault;
use crate::ids::{Timestamp, Uid, UserName};

/// How many skipped entries are named; the rest is only counted.
const NAMED_SKIPPED: usize = 100;
/// Longest path of those that is kept, in characters: all of them have to fit into a marker.
const LONGEST_SKIPPED: usize = 500;

/// What [`Homes::archive`] did, now or in an earlier call that was interrupted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArchiveOutcome {
    /// The account never had a directory, or it was gone already.
    NothingToArchive,
    /// Everything is in the archive and the place is free.
    Archived {
        /// The directory's name inside `<data>/archive`.
        directory: String,
        /// What a copy to another file system left out; nothing after a rename.
        skipped: Skipped,
    },
}

/// Entries that have no content to keep: fifos, sockets and devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// How many there were.
    pub count: u64,
    /// The first hundred of them, as paths inside the user's directory.
    pub paths: Vec<String>,
}

impl Skipped {
    /// Whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn push(&mut self, path: &Path) {
        self.count = self.count.saturating_add(1);
        if self.paths.len() < NAMED_SKIPPED {
            let shown = path.display().to_string();
            self.paths
                .push(shown.chars().take(LONGEST_SKIPPED).collect());
        }
    }
}

/// How a directory gets to the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// Rename, and copy when that crosses file systems.
    Automatic,
    /// Copy, as if the archive were another file system.
    #[cfg(test)]
    Copy,
}

/// The archive directory that was claimed for an account.
struct Claim {
    directory: String,
    marker: Marker,
    /// Whether the directory is there already.
    published: bool,
}

impl Homes {
    /// Moves `users/<name>` to `archive/<name>-<deleted_at as YYYYMMDDTHHMMSSZ>`, byte for byte, and
    /// frees the place. When that name belongs to another account, the first six hex digits of the
    /// uid are appended.
    ///
    /// Interrupted at any step and called again with the same arguments, it ends the same; called
    /// again after its end, it says the same. Links are moved or copied as links, never followed.
    ///
    /// # Errors
    /// [`HomeError::Conflict`] when something that is not a directory lies at the account's place;
    /// [`HomeError::CopyDiffers`] when a copy could not be verified (the original is kept);
    /// [`HomeError::Io`]. A directory of another account is never touched.
    pub fn archive(
        &self,
        name: &UserName,
        uid: &Uid,
        deleted_at: Timestamp,
    ) -> Result<ArchiveOutcome, HomeError> {
        self.archive_by(name, uid, deleted_at, Method::Automatic)
    }

    pub(super) fn archive_by(
        &self,
        name: &UserName,
        uid: &Uid,
        deleted_at: Timestamp,
        method: Method,
    ) -> Result<ArchiveOutcome, HomeError> {
        let ours = self.owner_of(name)?.is_some_and(|owner| owner.uid == *uid);
        let source = if ours {
            self.found_unlocked(name)?
        } else {
            Found::Nothing
        };
        let outcome = match source {
            Found::Other | Found::Locked => {
                return Err(HomeError::Conflict(format!(
                    "{} is a link or a file where the account's directory was; move it away",
                    self.path_of(name).display()
                )));
            }
            Found::Directory(home) => {
                let claim = self.claim(name, uid, deleted_at)?;
                self.move_home(name, uid, home, claim, method)?
            }
            Found::Nothing => self.finished(name, uid, deleted_at)?,
        };
        self.remove_partial(uid)?;
        self.clear_staging(uid)?;
        if ours {
            fault::point("home.archive.before_release");
            marker::remove(&self.users.owners, name.as_str())
                .map_err(HomeError::io("releasing", self.path_of(name)))?;
            fault::point("home.archive.after_release");
        }
        Ok(outcome)
    }

    pub(super) fn archive_path(&self, directory: &str) -> PathBuf {
        self.archive.path.join(directory)
    }

    pub(super) fn archive_marker(&self, directory: &str) -> Result<Option<Marker>, HomeError> {
        marker::read(&self.archive.owners, directory).map_err(HomeError::io(
            "reading the owner of",
            self.archive_path(directory),
        ))
    }

    fn is_published(&self, directory: &str) -> Result<bool, HomeError> {
        Ok(type_of(&self.archive.fd, directory)
            .map_err(HomeError::io("inspecting", self.archive_path(directory)))?
            .is_some())
    }

    /// The first name that is ours already or free, with its marker written.
    fn claim(&self, name: &UserName, uid: &Uid, deleted_at: Timestamp) -> Result<Claim, HomeError> {
        for directory in archive_names(name, uid, deleted_at) {
            let published = self.is_published(&directory)?;
            match self.archive_marker(&directory)? {
                // A copy in place: what is left is to delete the original.
                Some(marker) if marker.uid == *uid && (marker.copied || !published) => {
                    return Ok(Claim {
                        directory,
                        marker,
                        published,
                    });
                }
                // Of another account; or renamed here before, so what lies at the place now came
                // later: it gets an archive of its own.
                Some(_) => {}
                None if published => {}
                None => {
                    let marker = Marker::of(uid);
                    marker::write(&self.archive.owners, &directory, &marker)
                        .map_err(HomeError::io("claiming", self.archive_path(&directory)))?;
                    fault::point("home.archive.after_claim");
                    return Ok(Claim {
                        directory,
                        marker,
                        published,
                    });
                }
            }
        }
        Err(HomeError::Conflict(format!(
            "every archive name of {name} is taken; move older archives away from {}",
            self.archive.path.display()
        )))
    }

    fn move_home(
        &self,
        name: &UserName,
        uid: &Uid,
        home: OwnedFd,
        claim: Claim,
        method: Method,
    ) -> Result<ArchiveOutcome, HomeError> {
        let renamed = match method {
            // A verified copy of an earlier call is kept, complete or still under its partial name.
            _ if claim.marker.copied => false,
            Method::Automatic => self.rename_home(name, &claim.directory)?,
            #[cfg(test)]
            Method::Copy => false,
        };
        let marker = if renamed {
            claim.marker
        } else {
            self.copy_home(
                name,
                uid,
                home,
                claim.marker,
                &claim.directory,
                claim.published,
            )?
        };
        Ok(ArchiveOutcome::Archived {
            directory: claim.directory,
            skipped: marker.skipped,
        })
    }

    /// `false` when the archive is another file system.
    fn rename_home(&self, name: &UserName, directory: &str) -> Result<bool, HomeError> {
        let (from, to) = (&self.users.fd, &self.archive.fd);
        match rename_noreplace(from, name.as_str(), to, directory) {
            Ok(()) => {}
            Err(Errno::XDEV) => return Ok(false),
            Err(errno) => return Err(HomeError::io("archiving", self.path_of(name))(errno)),
        }
        fault::point("home.archive.after_rename");
        self.sync_roots()?;
        Ok(true)
    }

    fn copy_home(
        &self,
        name: &UserName,
        uid: &Uid,
        home: OwnedFd,
        mut marker: Marker,
        directory: &str,
        published: bool,
    ) -> Result<Marker, HomeError> {
        let partial = partial_name(uid);
        let source = self.path_of(name);
        if !published {
            let whole = marker.copied
                && type_of(&self.archive.fd, &partial)
                    .map_err(HomeError::io("inspecting", self.archive_path(&partial)))?
                    .is_some();
            if !whole {
                self.remove_partial(uid)?;
                fault::point("home.archive.before_copy");
                marker.skipped =
                    copy::copy_verified(&home, &source, &self.archive.fd, Path::new(&partial))?;
                fault::point("home.archive.after_copy");
                marker.copied = true;
                marker::write(&self.archive.owners, directory, &marker)
                    .map_err(HomeError::io("claiming", self.archive_path(directory)))?;
            }
            fault::point("home.archive.after_verify");
            let archive = &self.archive.fd;
            rename_noreplace(archive, &partial, archive, directory)
                .map_err(HomeError::io("publishing", self.archive_path(directory)))?;
            fault::point("home.archive.after_publish");
            rustix::fs::fsync(archive).map_err(HomeError::io("saving", &self.archive.path))?;
        }
        drop(home);
        remove::remove_tree(&self.users.fd, Path::new(name.as_str()), &self.users.path)?;
        fault::point("home.archive.after_source_removed");
        self.sync_roots()?;
        Ok(marker)
    }

    /// What an earlier call left in the archive, when there is nothing at the account's place.
    fn finished(
        &self,
        name: &UserName,
        uid: &Uid,
        deleted_at: Timestamp,
    ) -> Result<ArchiveOutcome, HomeError> {
        let mut outcome = ArchiveOutcome::NothingToArchive;
        for directory in archive_names(name, uid, deleted_at) {
            let Some(marker) = self.archive_marker(&directory)? else {
                continue;
            };
            if marker.uid != *uid {
                continue;
            }
            if self.is_published(&directory)? {
                // The last one: an earlier name of ours held what was there before.
                outcome = ArchiveOutcome::Archived {
                    directory,
                    skipped: marker.skipped,
                };
            } else {
                // Claimed, but the directory vanished before anything was moved.
                marker::remove(&self.archive.owners, &directory)
                    .map_err(HomeError::io("releasing", self.archive_path(&directory)))?;
            }
        }
        self.sync_roots()?;
        Ok(outcome)
    }

    fn remove_partial(&self, uid: &Uid) -> Result<(), HomeError> {
        let partial = partial_name(uid);
        let there = type_of(&self.archive.fd, &partial)
            .map_err(HomeError::io("inspecting", self.archive_path(&partial)))?;
        if there.is_some() {
            remove::remove_tree(&self.archive.fd, Path::new(&partial), &self.archive.path)?;
        }
        Ok(())
    }

    fn sync_roots(&self) -> Result<(), HomeError> {
        for root in [&self.archive, &self.users] {
            rustix::fs::fsync(&root.fd).map_err(HomeError::io("saving", &root.path))?;
        }
        Ok(())
    }
}

/// The names that the archive of an account may have, the preferred one first.
pub fn archive_names(name: &UserName, uid: &Uid, deleted_at: Timestamp) -> [String; 3] {
    let base = format!("{name}-{}", deleted_at.to_basic());
    [
        base.clone(),
        format!("{base}-{}", uid.short()),
        format!("{base}-{uid}"),
    ]
}

fn partial_name(uid: &Uid) -> String {
    format!(".partial-{uid}")
}

/// Renames unless the new name is taken.
pub(super) fn rename_noreplace(
    from: &OwnedFd,
    old: &str,
    to: &OwnedFd,
    new: &str,
) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
        // A file system without RENAME_NOREPLACE. A directory never replaces a file or a directory
        // with entries, and nobody else creates names in the archive.
        Err(Errno::INVAL | Errno::NOSYS) => match type_of(to, new)? {
            Some(_) => Err(Errno::EXIST),
            None => rustix::fs::renameat(from, old, to, new),
        },
        outcome => outcome,
    }
}
