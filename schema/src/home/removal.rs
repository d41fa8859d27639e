//! Listing archives, and removing one.
//!
//! A directory of the archive is ours when its name is one that [`archive_names`] makes and a marker of that name says
//! whose it is. The order of the steps makes every crash point recognisable afterwards:
//! 1. rename the marker `archive/.owners/<dir>` to `.removing-<dir>`: the removal is decided;
//! 2. rename `archive/<dir>` to `archive/.removing-<dir>`: nobody mistakes what is left of it for an archive;
//! 3. remove the tree;
//! 4. remove the marker, last: until then the archive is listed as one that is being removed.
//!
//! The directory of a batch goes with its last archive.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use time::format_description::well_known::Rfc3339;

use super::archive::{ArchiveBatch, archive_names};
use super::ensure::type_of;
use super::error::HomeError;
use super::rename::rename_to_free;
use super::root::{OWNERS, Root};
use super::{Homes, marker, remove, walk};
use crate::fault;
use crate::ids::{Timestamp, UserName};

/// An archived user's directory.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
pub struct Archive {
    /// Time at which the user was deleted.
    pub archived_at: Timestamp,
    /// Its name in the archive, behind that of its batch and a slash if it has left in one.
    #[schema(example = "alice-20260511T114640Z")]
    pub directory: String,
    /// Whose it was.
    pub user: UserName,
    /// It is being removed: a part of it may be gone.
    pub removing: bool,
}

impl Archive {
    /// Reads a name that [`archive_names`] makes; `None` when it is none.
    pub fn parse(directory: &str) -> Option<Self> {
        let (batch, name) = split(directory);
        if let Some(batch) = batch {
            ArchiveBatch::read(batch)?;
        }
        let (rest, last) = name.rsplit_once('-')?;
        let (user, at) = match read_stamp(last) {
            Some(at) => (rest, at),
            // The uid of the account, or its beginning.
            None if is_hex(last) => {
                let (user, stamp) = rest.rsplit_once('-')?;
                (user, read_stamp(stamp)?)
            }
            None => return None,
        };
        Some(Self {
            archived_at: at,
            directory: directory.to_owned(),
            user: user.parse().ok()?,
            removing: false,
        })
    }
}

/// The name of the batch, if there is one, and the name in it.
pub(super) fn split(directory: &str) -> (Option<&str>, &str) {
    match directory.split_once('/') {
        Some((batch, name)) => (Some(batch), name),
        None => (None, directory),
    }
}

fn is_hex(text: &str) -> bool {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    matches!(text.len(), 6 | 32) && text.bytes().all(digit)
}

/// `YYYYMMDDTHHMMSSZ`.
pub(super) fn read_stamp(text: &str) -> Option<Timestamp> {
    if text.len() != 16 || !text.is_ascii() {
        return None;
    }
    let parts = [0..4, 4..6, 6..11, 11..13, 13..16].map(|part| &text[part]);
    let [year, month, day_and_hour, minute, second] = parts;
    let moment = format!("{year}-{month}-{day_and_hour}:{minute}:{second}");
    let moment = time::OffsetDateTime::parse(&moment, &Rfc3339).ok()?;
    Some(Timestamp::from_secs(moment.unix_timestamp()))
}

fn removing_name(directory: &str) -> String {
    format!(".removing-{directory}")
}

impl Homes {
    /// The archives of users, the oldest first: with those whose removal was begun, and without whatever else lies
    /// in the archive.
    ///
    /// # Errors
    /// [`HomeError::Io`] when the archive cannot be listed.
    pub fn archives(&self) -> Result<Vec<Archive>, HomeError> {
        let mut archives = listed(&self.archive, None)?;
        for batch in names(&self.archive.fd, FileType::Directory, &self.archive.path)? {
            let Some(batch) = ArchiveBatch::read(&batch) else {
                continue;
            };
            if let Some(shelf) = self.present_shelf(&batch)? {
                archives.extend(listed(&shelf, Some(&batch))?);
            }
        }
        archives.sort();
        Ok(archives)
    }

    /// Bytes that these archives took on the disk when they were made, in their order; `None` where that was not measured, and of one
    /// that is gone meanwhile. No archive is opened.
    pub fn archive_sizes(&self, archives: &[Archive]) -> Vec<Option<u64>> {
        let size = |archive: &Archive| {
            let (batch, directory) = split(&archive.directory);
            let name = match archive.removing {
                true => removing_name(directory),
                false => directory.to_owned(),
            };
            let marker = match batch.and_then(ArchiveBatch::read) {
                None => self.archive.archive_marker(&name),
                Some(batch) => self.present_shelf(&batch).ok()??.archive_marker(&name),
            };
            marker.ok()??.bytes
        };
        archives.iter().map(size).collect()
    }

    /// Removes an archive with everything in it; links in it are removed, not followed. What is not an archive of
    /// ours, or gone, stays as it is.
    ///
    /// Interrupted at any step and called again, it ends the same.
    ///
    /// # Errors
    /// [`HomeError::Conflict`] when the marker does not belong to the name; [`HomeError::Io`].
    pub fn remove_archive(&self, directory: &str) -> Result<(), HomeError> {
        let Some(archive) = Archive::parse(directory) else {
            return Ok(());
        };
        let (batch, directory) = split(directory);
        let Some(batch) = batch.and_then(ArchiveBatch::read) else {
            return remove_from(&self.archive, &archive, directory);
        };
        let Some(shelf) = self.present_shelf(&batch)? else {
            return Ok(());
        };
        remove_from(&shelf, &archive, directory)?;
        // The last one of its batch: what is not empty stays.
        for (at, name) in [(&shelf.fd, OWNERS), (&self.archive.fd, batch.as_str())] {
            match rustix::fs::unlinkat(at, name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::NOTEMPTY | Errno::EXIST) => break,
                Err(errno) => return Err(HomeError::io("removing", &shelf.path)(errno)),
            }
        }
        Ok(())
    }
}

/// The archives in the archive itself, or in a batch.
fn listed(shelf: &Root, batch: Option<&ArchiveBatch>) -> Result<Vec<Archive>, HomeError> {
    let owners = names(&shelf.owners, FileType::RegularFile, &shelf.path)?;
    let directories = names(&shelf.fd, FileType::Directory, &shelf.path)?;
    let removing = removing_name("");
    let mut archives = Vec::new();
    for owner in &owners {
        let begun = owner.strip_prefix(&removing);
        if begun.is_none() && !directories.contains(owner) {
            // Claimed: the directory comes, or the claim goes.
            continue;
        }
        let name = begun.unwrap_or(owner);
        let directory = match batch {
            Some(batch) => format!("{}/{name}", batch.as_str()),
            None => name.to_owned(),
        };
        if let Some(archive) = Archive::parse(&directory) {
            archives.push(Archive {
                removing: begun.is_some(),
                ..archive
            });
        }
    }
    Ok(archives)
}

fn remove_from(shelf: &Root, archive: &Archive, directory: &str) -> Result<(), HomeError> {
    let (root, owners) = (&shelf.fd, &shelf.owners);
    let removing = removing_name(directory);
    let failed = |action| HomeError::io(action, shelf.archive_path(directory));
    let is_directory = || {
        let found = type_of(root, directory).map_err(failed("inspecting"))?;
        Ok::<_, HomeError>(found == Some(FileType::Directory))
    };
    if shelf.archive_marker(&removing)?.is_none() {
        let Some(marker) = shelf.archive_marker(directory)? else {
            return Ok(());
        };
        if !is_directory()? {
            return Ok(());
        }
        let names = archive_names(&archive.user, &marker.uid, archive.archived_at);
        if !names.iter().any(|name| name == directory) {
            return Err(HomeError::Conflict(format!(
                "{} is marked as the archive of another account; move it away",
                shelf.archive_path(directory).display()
            )));
        }
        rename_to_free(owners, directory, owners, &removing).map_err(failed("releasing"))?;
        rustix::fs::fsync(owners).map_err(failed("releasing"))?;
        fault::point("home.removal.after_release");
    }
    // With a marker, what lies there is a later archive of the same name.
    if is_directory()? && shelf.archive_marker(directory)?.is_none() {
        rename_to_free(root, directory, root, &removing).map_err(failed("removing"))?;
        rustix::fs::fsync(root).map_err(failed("removing"))?;
        fault::point("home.removal.after_rename");
    }
    remove::remove_tree(root, Path::new(&removing), &shelf.path)?;
    rustix::fs::fsync(root).map_err(failed("removing"))?;
    fault::point("home.removal.after_tree");
    let result = marker::remove(owners, &removing);
    result.map_err(HomeError::io("releasing", shelf.archive_path(directory)))
}

/// The names of the entries of one type.
fn names(directory: &OwnedFd, of: FileType, shown: &Path) -> Result<BTreeSet<String>, HomeError> {
    let entries = walk::entries(directory).map_err(HomeError::io("listing", shown))?;
    let entries = entries.into_iter().filter(|(_, found)| *found == of);
    // A name that is no text is not ours.
    Ok(entries
        .filter_map(|(name, _)| name.into_os_string().into_string().ok())
        .collect())
}
