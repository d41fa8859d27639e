//! Copying one file into a backup: its content, or a link to the copy in the backup before.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::BackupError;
use super::content::{self, CopyError, Digest, Exactly};
use super::copying::{Copying, First, Skip, key_of, line_of, stamp_of, unread};
use super::keys::SEALED_OVERHEAD;
use super::link::{id_of, inspect, link_beneath};
use super::make::{Target, create, tar_header};
use super::manifest::{EntryKind, Line, NOT_READ_TO_ITS_END, TOO_LARGE_TO_SEAL, escape};
use super::settings_files::LARGEST_SEALED;
use crate::home::beneath;
use crate::ids::Timestamp;

/// Of so many files of a section with several names the first is remembered: some 20 MB.
const MOST_NAMES: usize = 100_000;
/// Most names of a file that are copied one by one once [`MOST_NAMES`] files with several names are known.
const MOST_COPIES: u64 = 16;
/// Largest file with holes that is written to a stream.
const LARGEST_STREAMED: u64 = 1 << 30;

impl Copying<'_> {
    pub(super) fn file(
        &mut self,
        at: BorrowedFd<'_>,
        to: Option<&OwnedFd>,
        name: &Path,
        path: &Path,
    ) -> Result<(), Skip> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let original = beneath::open(at, name, flags, Mode::empty()).map_err(unread)?;
        let stat = rustix::fs::fstat(&original).map_err(unread)?;
        // It may have been swapped for something else since it was listed.
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(unread(Errno::NOENT));
        }
        let original = File::from(original);
        let sealed = self.settings.contains(path);
        // A settings file is sealed for its path, so it never shares the copy of another name.
        let several = stat.st_nlink > 1 && !sealed;
        let id = (stat.st_dev, stat.st_ino);
        if several && let Some(line) = self.other_name(id, to, name, path)? {
            return Ok(self.write(&line)?);
        }
        if stat.st_nlink > MOST_COPIES && self.names.len() >= MOST_NAMES {
            return Err(Skip::Entry("one of too many files with several names"));
        }
        let stamp = stamp_of(&stat);
        let shared = self.share(&stat, (stamp, sealed), to, name, path)?;
        let (size, digest, sparse) = match shared {
            Some(shared) => shared,
            None if sealed => self.copy_sealed(&original, &stat, to, name, path)?,
            None => self.copy(&original, &stat, to, name, path)?,
        };
        let line = Line {
            size,
            sha256: Some(hex::encode(digest)),
            sparse,
            sealed,
            stamp: Some(hex::encode(stamp)),
            ..line_of(path, EntryKind::File, &stat)
        };
        self.bytes = self.bytes.saturating_add(size);
        if several && self.names.len() < MOST_NAMES {
            let copy = to.map(|to| inspect(to, name)).transpose();
            let copy = copy.map_err(BackupError::io("inspecting", path))?;
            let first = First {
                path: path.to_owned(),
                line: line.clone(),
                copy: copy.as_ref().map(id_of),
            };
            self.names.insert(id, first);
        }
        Ok(self.write(&line)?)
    }

    /// Gives the copy of a file with several names another one.
    fn other_name(
        &mut self,
        id: (u64, u64),
        to: Option<&OwnedFd>,
        name: &Path,
        path: &Path,
    ) -> Result<Option<Line>, Skip> {
        let Some(first) = self.names.get(&id) else {
            return Ok(None);
        };
        match (&mut *self.target, to) {
            (Target::Folder { top, .. }, Some(to)) => {
                match link_beneath(top, &first.path, first.copy, to, name) {
                    Err(Errno::EXIST) => return Err(Skip::Entry("listed twice")),
                    // As many names as a file may have: this one is the next.
                    Err(_) => return Ok(None),
                    Ok(_) => {}
                }
            }
            (Target::Stream { tar, .. }, _) => {
                let mut header = tar_header(tar::EntryType::Link, 0, Timestamp::from_secs(0));
                tar.append_link(&mut header, path, &first.path)
                    .map_err(BackupError::io("writing", path))?;
            }
            (Target::Folder { .. }, None) => return Ok(None),
        }
        Ok(Some(Line {
            path: escape(path),
            same_as: Some(escape(&first.path)),
            stamp: None,
            ..first.line.clone()
        }))
    }

    /// Shares a file that is as it was with the backup before.
    fn share(
        &mut self,
        stat: &Stat,
        (stamp, sealed): ([u8; 16], bool),
        to: Option<&OwnedFd>,
        name: &Path,
        path: &Path,
    ) -> Result<Option<(u64, Digest, bool)>, Skip> {
        let Target::Folder { before, .. } = &*self.target else {
            return Ok(None);
        };
        let (Some(before), Some(to)) = (before, to) else {
            return Ok(None);
        };
        let Some(known) = self.before.get(&key_of(path)) else {
            return Ok(None);
        };
        if (known.stamp, known.sealed) != (stamp, sealed)
            || stat.st_ctime >= self.before_is_older_than
        {
            return Ok(None);
        }
        let linked = match link_beneath(before.dir(), path, None, to, name) {
            Err(Errno::EXIST) => return Err(Skip::Entry("listed twice")),
            Err(_) => return Ok(None),
            Ok(linked) => linked,
        };
        let overhead = if sealed { SEALED_OVERHEAD } else { 0 };
        let size = content::size_of(stat).saturating_add(overhead);
        let is_whole = content::size_of(&linked) == size && known.size == size;
        if !is_whole {
            let removed = rustix::fs::unlinkat(to, name, AtFlags::empty());
            removed.map_err(BackupError::io("replacing", path))?;
            return Ok(None);
        }
        self.shared += 1;
        Ok(Some((size, known.digest, known.sparse)))
    }

    fn copy(
        &mut self,
        original: &File,
        stat: &Stat,
        to: Option<&OwnedFd>,
        name: &Path,
        path: &Path,
    ) -> Result<(u64, Digest, bool), Skip> {
        let size = content::size_of(stat);
        let failed = || BackupError::io("writing", path);
        match (&mut *self.target, to) {
            (Target::Stream { tar, .. }, _) => {
                if content::has_holes(stat) && size > LARGEST_STREAMED {
                    return Err(Skip::Entry(
                        "a large file with holes, which a stream cannot hold",
                    ));
                }
                let mut exactly = Exactly::new(original, size);
                let mut header = tar_header(
                    tar::EntryType::Regular,
                    size,
                    Timestamp::from_secs(stat.st_mtime),
                );
                tar.append_data(&mut header, path, &mut exactly)
                    .map_err(failed())?;
                self.progress.bytes += size;
                Ok((size, exactly.digest(), false))
            }
            (Target::Folder { .. }, Some(to)) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                let copy = match beneath::open(to, name, flags, Mode::RUSR | Mode::WUSR) {
                    Err(Errno::EXIST) => return Err(Skip::Entry("listed twice")),
                    opened => File::from(opened.map_err(io::Error::from).map_err(failed())?),
                };
                let sparse = content::has_holes(stat);
                if sparse {
                    copy.set_len(size).map_err(failed())?;
                }
                let (progress, watch) = (&mut self.progress, &mut self.watch);
                let copied = content::copy(
                    original,
                    size,
                    sparse,
                    |offset, block| copy.write_all_at(block, offset),
                    &mut |read| {
                        progress.bytes += read;
                        watch(progress)
                    },
                );
                match copied {
                    Ok((size, digest)) => Ok((size, digest, sparse)),
                    Err(CopyError::Write(error)) => Err(failed()(error).into()),
                    Err(CopyError::Stopped) => Err(BackupError::Stopped.into()),
                    Err(CopyError::Read(_)) => {
                        let removed = rustix::fs::unlinkat(to, name, AtFlags::empty());
                        removed.map_err(io::Error::from).map_err(failed())?;
                        Err(Skip::Entry(NOT_READ_TO_ITS_END))
                    }
                }
            }
            (Target::Folder { .. }, None) => Err(unread(Errno::NOENT)),
        }
    }

    /// Copies a settings file of an agent, sealed.
    fn copy_sealed(
        &mut self,
        original: &File,
        stat: &Stat,
        to: Option<&OwnedFd>,
        name: &Path,
        path: &Path,
    ) -> Result<(u64, Digest, bool), Skip> {
        let length = content::size_of(stat);
        if length > LARGEST_SEALED {
            return Err(Skip::Entry(TOO_LARGE_TO_SEAL));
        }
        let mut plain = Zeroizing::new(Vec::new());
        let read = original.take(length).read_to_end(&mut plain);
        read.map_err(|_| Skip::Entry(NOT_READ_TO_ITS_END))?;
        let failed = || BackupError::io("writing", path);
        let sealed = self.keys.seal(&escape(path), &plain);
        let sealed = sealed.map_err(io::Error::other).map_err(failed())?;
        let size = sealed.len() as u64;
        match (&mut *self.target, to) {
            (Target::Stream { tar, .. }, _) => {
                let at = Timestamp::from_secs(stat.st_mtime);
                let mut header = tar_header(tar::EntryType::Regular, size, at);
                tar.append_data(&mut header, path, &*sealed)
                    .map_err(failed())?;
            }
            (Target::Folder { .. }, Some(to)) => {
                let copy = match create(to, name) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        return Err(Skip::Entry("listed twice"));
                    }
                    copy => copy.map_err(failed())?,
                };
                copy.write_all_at(&sealed, 0).map_err(failed())?;
            }
            (Target::Folder { .. }, None) => return Err(unread(Errno::NOENT)),
        }
        self.progress.bytes = self.progress.bytes.saturating_add(length);
        Ok((size, Sha256::digest(&sealed).into(), false))
    }
}
