//! What is in an archive, without changing it.

use std::collections::BinaryHeap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::error::HomeError;
use super::removal::Archive;
use super::restore::RestoreError;
use super::walk::{self, Entry, Visit};
use super::{Homes, beneath};

/// So many entries are counted: an agent may have left any number.
const MOST_COUNTED: u64 = 1_000_000;
/// So many entries of the workspace itself are named.
const MOST_NAMED: usize = 50;

/// What is in the workspace of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveContents {
    /// Where the archive is.
    pub path: PathBuf,
    /// Files, directories, links and whatever else there is.
    pub entries: u64,
    /// What is in regular files.
    pub bytes: u64,
    /// Everything was counted.
    pub complete: bool,
    /// Entries that may not be read; what is in them was not counted.
    pub unreadable: u64,
    /// The first entries of the workspace itself, by name.
    pub top: Vec<TopEntry>,
    /// How many it has.
    pub top_count: u64,
}

/// An entry of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopEntry {
    /// Its name. Whoever wrote it may have put anything into it.
    pub name: String,
    /// `file`, `directory`, `link` or `other`.
    pub kind: &'static str,
}

impl Homes {
    /// Where an archive is, for people. Never open it by this path.
    pub fn archive_path(&self, archive: &Archive) -> PathBuf {
        self.archive.path.join(&archive.directory)
    }

    /// What is in the workspace of an archive.
    ///
    /// # Errors
    /// As [`Homes::restore`].
    pub fn archive_contents(&self, archive: &Archive) -> Result<ArchiveContents, RestoreError> {
        let source = self.open_archived(archive)?;
        let gone = |error: RestoreError| match self.is_archived(archive) {
            Ok(false) => RestoreError::ArchiveGone,
            _ => error,
        };
        let contents = self.counted(archive, source.dir(), &source.path);
        contents.map_err(|error| gone(error.into()))
    }

    fn counted(
        &self,
        archive: &Archive,
        workspace: &OwnedFd,
        path: &Path,
    ) -> Result<ArchiveContents, HomeError> {
        let failed = || HomeError::io("listing", path);
        // The greatest on top: no more of them are in memory than are named.
        let mut first = BinaryHeap::new();
        let mut top_count = 0;
        let listed = walk::for_each(workspace, |name, kind| {
            top_count += 1;
            first.push(TopEntry {
                name: name.to_string_lossy().into_owned(),
                kind: word(kind),
            });
            if first.len() > MOST_NAMED {
                first.pop();
            }
        });
        listed.map_err(failed())?;
        let top = rustix::io::fcntl_dupfd_cloexec(workspace, 0).map_err(failed())?;
        let mut count = Count::default();
        walk::walk([top], &mut count, "listing", path)?;
        Ok(ArchiveContents {
            path: self.archive_path(archive),
            entries: count.entries,
            bytes: count.bytes,
            complete: !count.is_done(),
            unreadable: count.unreadable,
            top: first.into_sorted_vec(),
            top_count,
        })
    }
}

fn word(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "file",
        FileType::Directory => "directory",
        FileType::Symlink => "link",
        _ => "other",
    }
}

#[derive(Default)]
struct Count {
    entries: u64,
    bytes: u64,
    unreadable: u64,
}

impl Visit<1> for Count {
    fn entry(
        &mut self,
        [at]: &[OwnedFd; 1],
        entry: &Entry<'_>,
    ) -> io::Result<Option<[OwnedFd; 1]>> {
        self.entries += 1;
        let found = match entry.kind {
            FileType::Directory => {
                beneath::open_dir(at, entry.name).and_then(|dir| {
                    // Of one that can be listed and not entered there is no way back.
                    rustix::fs::statat(&dir, ".", AtFlags::empty())?;
                    Ok(Some([dir]))
                })
            }
            FileType::RegularFile => {
                let stat = rustix::fs::statat(at, entry.name, AtFlags::SYMLINK_NOFOLLOW);
                stat.map(|stat| {
                    let length = u64::try_from(stat.st_size).unwrap_or(0);
                    self.bytes = self.bytes.saturating_add(length);
                    None
                })
            }
            _ => Ok(None),
        };
        match found {
            Err(Errno::ACCESS | Errno::PERM) => {
                self.unreadable += 1;
                Ok(None)
            }
            // It is being removed.
            Err(Errno::NOENT) => Ok(None),
            found => Ok(found?),
        }
    }

    fn is_done(&self) -> bool {
        self.entries >= MOST_COUNTED
    }
}
