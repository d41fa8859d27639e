//! Moving a user's directory to the archive.
//!
//! The order of the steps makes every crash point recognisable afterwards:
//! 1. claim a name: write `archive/.owners/<dir>` with the uid;
//! 2. rename `users/<name>` to `archive/<dir>`; or, when the archive is another file system, copy to
//!    `archive/.partial-<uid>`, verify, note `copied` in the claim, rename the copy, delete the original;
//! 3. remove `users/.owners/<name>`, last: until then the place is not free for another account.
//!
//! What goes in one batch has a directory of its own, `archive/<batch>`, which is made like the archive itself.

use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::ensure::{Found, type_of};
use super::error::HomeError;
use super::marker::{self, Marker};
use super::rename::rename_to_free;
use super::root::{OWNERS, Root, ensure_dir};
use super::{Homes, beneath, copy, remove};
use crate::config::AuthMode;
use crate::fault;
use crate::ids::{Timestamp, Uid, UserName};

/// How many skipped entries are named; the rest is only counted.
const NAMED_SKIPPED: usize = 100;
/// Longest path of those that is kept, in characters: all of them have to fit into a marker.
const LONGEST_SKIPPED: usize = 500;

/// The name of a directory inside the archive for all users who left together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArchiveBatch(String);

impl ArchiveBatch {
    /// That of those who left when the authentication mode changed: `<UTC time>-mode-<old>-to-<new>`.
    pub fn of_mode_switch(at: Timestamp, old: AuthMode, new: AuthMode) -> Self {
        Self(format!("{}-mode-{old}-to-{new}", at.to_basic()))
    }

    /// Reads a name that [`Self::of_mode_switch`] makes; `None` when it is none.
    pub(super) fn read(name: &str) -> Option<Self> {
        let (stamp, modes) = name.split_once("-mode-")?;
        let (old, new) = modes.split_once("-to-")?;
        super::removal::read_stamp(stamp)?;
        let _: (AuthMode, AuthMode) = (old.parse().ok()?, new.parse().ok()?);
        Some(Self(name.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text that is no name of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a name of a batch in the archive")]
pub struct NotABatch;

impl FromStr for ArchiveBatch {
    type Err = NotABatch;

    fn from_str(name: &str) -> Result<Self, NotABatch> {
        Self::read(name).ok_or(NotABatch)
    }
}

/// Where archives are kept together.
pub(super) enum Shelf<'a> {
    /// The archive itself.
    Main(&'a Root),
    /// A batch.
    Batch(Root),
}

impl Deref for Shelf<'_> {
    type Target = Root;

    fn deref(&self) -> &Root {
        match self {
            Self::Main(root) => root,
            Self::Batch(root) => root,
        }
    }
}

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
    /// Moves `users/<name>` to `archive/<name>-<deleted_at as YYYYMMDDTHHMMSSZ>`, or to that inside
    /// `archive/<batch>`, byte for byte, and frees the place. When that name belongs to another account, the
    /// first six hex digits of the uid are appended. `bytes`, what it takes as last measured, is noted beside it.
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
        batch: Option<&ArchiveBatch>,
        bytes: Option<u64>,
    ) -> Result<ArchiveOutcome, HomeError> {
        self.archive_by(name, uid, deleted_at, batch, bytes, Method::Automatic)
    }

    /// The directory of a batch, made when it is missing; the archive itself without one.
    fn shelf(&self, batch: Option<&ArchiveBatch>) -> Result<Shelf<'_>, HomeError> {
        let Some(batch) = batch else {
            return Ok(Shelf::Main(&self.archive));
        };
        let path = self.archive.path.join(batch.as_str());
        let failed = |errno| HomeError::io("making", &path)(errno);
        let fd = ensure_dir(&self.archive.fd, batch.as_str()).map_err(failed)?;
        let owners = ensure_dir(&fd, OWNERS).map_err(failed)?;
        Ok(Shelf::Batch(Root { fd, owners, path }))
    }

    /// The same of a batch that is there; `None` when it is not, or holds no archives.
    pub(super) fn present_shelf(
        &self,
        batch: &ArchiveBatch,
    ) -> Result<Option<Shelf<'_>>, HomeError> {
        let path = self.archive.path.join(batch.as_str());
        let open = || {
            let fd = beneath::open_dir(&self.archive.fd, Path::new(batch.as_str()))?;
            let owners = beneath::open_dir(&fd, Path::new(OWNERS))?;
            Ok((fd, owners))
        };
        match open() {
            Ok((fd, owners)) => Ok(Some(Shelf::Batch(Root { fd, owners, path }))),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(HomeError::io("opening", path)(errno)),
        }
    }

    pub(super) fn archive_by(
        &self,
        name: &UserName,
        uid: &Uid,
        deleted_at: Timestamp,
        batch: Option<&ArchiveBatch>,
        bytes: Option<u64>,
        method: Method,
    ) -> Result<ArchiveOutcome, HomeError> {
        let shelf = self.shelf(batch)?;
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
                let claim = shelf.claim(name, uid, deleted_at, bytes)?;
                self.move_home(name, uid, home, &shelf, claim, method)?
            }
            Found::Nothing => self.finished(&shelf, name, uid, deleted_at)?,
        };
        shelf.remove_partial(uid)?;
        self.clear_staging(uid)?;
        if ours {
            fault::point("home.archive.before_release");
            marker::remove(&self.users.owners, name.as_str())
                .map_err(HomeError::io("releasing", self.path_of(name)))?;
            fault::point("home.archive.after_release");
        }
        Ok(outcome)
    }

    fn move_home(
        &self,
        name: &UserName,
        uid: &Uid,
        home: OwnedFd,
        shelf: &Root,
        claim: Claim,
        method: Method,
    ) -> Result<ArchiveOutcome, HomeError> {
        let renamed = match method {
            // A verified copy of an earlier call is kept, complete or still under its partial name.
            _ if claim.marker.copied => false,
            Method::Automatic => self.rename_home(name, shelf, &claim.directory)?,
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
                shelf,
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
    fn rename_home(
        &self,
        name: &UserName,
        shelf: &Root,
        directory: &str,
    ) -> Result<bool, HomeError> {
        let (from, to) = (&self.users.fd, &shelf.fd);
        match rename_to_free(from, name.as_str(), to, directory) {
            Ok(()) => {}
            Err(Errno::XDEV) => return Ok(false),
            Err(errno) => return Err(HomeError::io("archiving", self.path_of(name))(errno)),
        }
        fault::point("home.archive.after_rename");
        self.sync_roots(shelf)?;
        Ok(true)
    }

    #[expect(clippy::too_many_arguments, reason = "one step of one caller")]
    fn copy_home(
        &self,
        name: &UserName,
        uid: &Uid,
        home: OwnedFd,
        shelf: &Root,
        mut marker: Marker,
        directory: &str,
        published: bool,
    ) -> Result<Marker, HomeError> {
        let partial = partial_name(uid);
        let source = self.path_of(name);
        if !published {
            let whole = marker.copied
                && type_of(&shelf.fd, &partial)
                    .map_err(HomeError::io("inspecting", shelf.archive_path(&partial)))?
                    .is_some();
            if !whole {
                shelf.remove_partial(uid)?;
                fault::point("home.archive.before_copy");
                marker.skipped =
                    copy::copy_verified(&home, &source, &shelf.fd, Path::new(&partial))?;
                fault::point("home.archive.after_copy");
                marker.copied = true;
                marker::write(&shelf.owners, directory, &marker)
                    .map_err(HomeError::io("claiming", shelf.archive_path(directory)))?;
            }
            fault::point("home.archive.after_verify");
            let archive = &shelf.fd;
            rename_to_free(archive, &partial, archive, directory)
                .map_err(HomeError::io("publishing", shelf.archive_path(directory)))?;
            fault::point("home.archive.after_publish");
            rustix::fs::fsync(archive).map_err(HomeError::io("saving", &shelf.path))?;
        }
        drop(home);
        remove::remove_tree(&self.users.fd, Path::new(name.as_str()), &self.users.path)?;
        fault::point("home.archive.after_source_removed");
        self.sync_roots(shelf)?;
        Ok(marker)
    }

    /// What an earlier call left in the archive, when there is nothing at the account's place.
    fn finished(
        &self,
        shelf: &Root,
        name: &UserName,
        uid: &Uid,
        deleted_at: Timestamp,
    ) -> Result<ArchiveOutcome, HomeError> {
        let mut outcome = ArchiveOutcome::NothingToArchive;
        for directory in archive_names(name, uid, deleted_at) {
            let Some(marker) = shelf.archive_marker(&directory)? else {
                continue;
            };
            if marker.uid != *uid {
                continue;
            }
            if shelf.is_published(&directory)? {
                // The last one: an earlier name of ours held what was there before.
                outcome = ArchiveOutcome::Archived {
                    directory,
                    skipped: marker.skipped,
                };
            } else {
                // Claimed, but the directory vanished before anything was moved.
                marker::remove(&shelf.owners, &directory)
                    .map_err(HomeError::io("releasing", shelf.archive_path(&directory)))?;
            }
        }
        self.sync_roots(shelf)?;
        Ok(outcome)
    }

    fn sync_roots(&self, shelf: &Root) -> Result<(), HomeError> {
        for root in [shelf, &self.users] {
            rustix::fs::fsync(&root.fd).map_err(HomeError::io("saving", &root.path))?;
        }
        Ok(())
    }
}

impl Root {
    pub(super) fn archive_path(&self, directory: &str) -> PathBuf {
        self.path.join(directory)
    }

    pub(super) fn archive_marker(&self, directory: &str) -> Result<Option<Marker>, HomeError> {
        marker::read(&self.owners, directory).map_err(HomeError::io(
            "reading the owner of",
            self.archive_path(directory),
        ))
    }

    fn is_published(&self, directory: &str) -> Result<bool, HomeError> {
        Ok(type_of(&self.fd, directory)
            .map_err(HomeError::io("inspecting", self.archive_path(directory)))?
            .is_some())
    }

    /// The first name that is ours already or free, with its marker written.
    fn claim(
        &self,
        name: &UserName,
        uid: &Uid,
        deleted_at: Timestamp,
        bytes: Option<u64>,
    ) -> Result<Claim, HomeError> {
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
                    let marker = Marker {
                        bytes,
                        ..Marker::of(uid)
                    };
                    marker::write(&self.owners, &directory, &marker)
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
            self.path.display()
        )))
    }

    fn remove_partial(&self, uid: &Uid) -> Result<(), HomeError> {
        let partial = partial_name(uid);
        let there = type_of(&self.fd, &partial)
            .map_err(HomeError::io("inspecting", self.archive_path(&partial)))?;
        if there.is_some() {
            remove::remove_tree(&self.fd, Path::new(&partial), &self.path)?;
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
