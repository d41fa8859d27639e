//! Files that the agent writes too: read with a stamp, replaced only where they are still what was read,
//! and several at a time.

use std::fmt;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::beneath;
use super::error::HomeError;
use super::reading::FileNotes;
use super::temporary::is_temporary;
use super::user_home::{UserHome, not_regular, unsafe_path};
use crate::fault;

/// So many entries of a directory are searched for what was left there.
const MOST_LOOKED_AT: usize = 10_000;

/// Which state of a file was read: another write leaves another stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Number of the file in its file system: whoever replaces a file changes it.
    pub inode: u64,
    /// Length in bytes.
    pub size: u64,
    /// When it was last written, in nanoseconds since 1970: whoever writes in place changes it.
    pub modified_ns: i128,
}

impl Stamp {
    pub(super) fn of(stat: &Stat) -> Self {
        // The types of the fields differ from one machine to another.
        #[allow(clippy::useless_conversion, clippy::unnecessary_fallible_conversions)]
        Self {
            inode: u64::try_from(stat.st_ino).unwrap_or(u64::MAX),
            size: u64::try_from(stat.st_size).unwrap_or(u64::MAX),
            modified_ns: i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec),
        }
    }
}

/// A file as it was found. It may hold secrets, so its content is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// What is in it.
    pub bytes: Vec<u8>,
    /// Which state of it that is.
    pub stamp: Stamp,
    /// Its permission bits.
    pub mode: u32,
    /// Notes that it is being parsed, where that may take long.
    pub notes: FileNotes,
}

impl fmt::Debug for FoundFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoundFile")
            .field("stamp", &self.stamp)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// A desired file. It may hold secrets, so its content is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct NewFile {
    /// Where, relative to the directory it is given for.
    pub path: String,
    /// What is in it.
    pub bytes: Vec<u8>,
    /// Its permission bits.
    pub mode: u32,
    /// Which state of the file it takes the place of; `None`: there must be none.
    pub expected: Option<Stamp>,
}

impl fmt::Debug for NewFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewFile")
            .field("path", &self.path)
            .field("length", &self.bytes.len())
            .field("mode", &self.mode)
            .field("expected", &self.expected)
            .finish_non_exhaustive()
    }
}

impl UserHome {
    /// The regular file at `relative`, at most `limit` bytes of it, with its stamp; `None` when nothing is
    /// there.
    ///
    /// # Errors
    /// [`HomeError::Forbidden`] when its permissions are in the way. Otherwise as [`UserHome::read`].
    pub fn read_stamped(
        &self,
        relative: impl AsRef<Path>,
        limit: u64,
    ) -> Result<Option<FoundFile>, HomeError> {
        let relative = relative.as_ref();
        let found = self
            .read_with_stat(relative, limit)
            .map_err(|error| match error {
                HomeError::Io { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                    HomeError::Forbidden {
                        path: relative.display().to_string(),
                    }
                }
                error => error,
            })?;
        let Some((bytes, stat)) = found else {
            return Ok(None);
        };
        Ok(Some(FoundFile {
            bytes,
            stamp: Stamp::of(&stat),
            mode: stat.st_mode & 0o777,
            notes: FileNotes::default(),
        }))
    }

    /// Replaces files, each as [`UserHome::write_atomic`] does. The new versions of all are on the disk before
    /// the first takes its place, and none does when one of the files is not what its writer read: so what
    /// the agent wrote meanwhile is not lost. Directories that are missing are made. New versions that a
    /// writer which was killed has left in `directory` are removed.
    ///
    /// # Errors
    /// [`HomeError::Changed`] when a file is not what was expected; those before it in the list may have
    /// been replaced if that happened in the very moment. Otherwise as [`UserHome::write_atomic`].
    pub fn write_files(&self, directory: &str, files: &[NewFile]) -> Result<(), HomeError> {
        let mut parents = Vec::with_capacity(files.len());
        for file in files {
            parents.push(self.parent_of(&Path::new(directory).join(&file.path))?);
        }
        let parent_names = files.iter().map(|file| Path::new(&file.path).parent());
        for (parent, name) in parents.iter().zip(parent_names) {
            if name == Some(Path::new("")) {
                sweep(parent);
                break;
            }
        }
        let mut prepared = Vec::with_capacity(files.len());
        for (file, parent) in files.iter().zip(&parents) {
            let relative = Path::new(directory).join(&file.path);
            let temporary = self
                .prepare(parent.as_fd(), file.bytes.as_slice(), file.mode)
                .map_err(|error| self.not_written(&relative, error))?;
            prepared.push((file, parent, relative, temporary));
        }
        for (file, parent, relative, _) in &prepared {
            unchanged(file, relative, parent)?;
        }
        fault::point("home.files.prepared");
        for (file, parent, relative, temporary) in &prepared {
            unchanged(file, relative, parent)?;
            let name = relative.file_name().ok_or_else(|| unsafe_path(relative))?;
            temporary
                .replace(parent, name)
                .map_err(|error| self.not_written(relative, error.into()))?;
            fault::point("home.files.renamed");
        }
        for (_, parent, relative, _) in &prepared {
            rustix::fs::fsync(parent).map_err(|error| self.not_written(relative, error.into()))?;
        }
        Ok(())
    }

    /// The directory that the file `relative` lies in, made when it is missing.
    fn parent_of(&self, relative: &Path) -> Result<OwnedFd, HomeError> {
        if !beneath::is_plain(relative) {
            return Err(unsafe_path(relative));
        }
        self.directory(relative.parent().unwrap_or(Path::new("")))
            .map_err(|errno| self.refused("opening the directory of", relative, errno))
    }

    /// Opens a directory, and makes what is missing of the way to it.
    pub(super) fn directory(&self, relative: &Path) -> rustix::io::Result<OwnedFd> {
        let mut at = rustix::io::fcntl_dupfd_cloexec(self.dir(), 0)?;
        for name in relative.components() {
            at = self.part(&at, Path::new(name.as_os_str()))?;
        }
        Ok(at)
    }

    fn part(&self, above: impl AsFd, name: &Path) -> rustix::io::Result<OwnedFd> {
        let above = above.as_fd();
        match beneath::open_dir_unlocked(above, name, Mode::RWXU) {
            Err(Errno::NOENT) => {}
            outcome => return outcome,
        }
        match rustix::fs::mkdirat(above, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        let made = beneath::open_dir(above, name)?;
        self.give_to_owner(&made)?;
        rustix::fs::fsync(above)?;
        Ok(made)
    }
}

/// Removes what a writer that was killed has left. That may fail: nothing depends on it.
fn sweep(directory: &OwnedFd) {
    let Ok(entries) = Dir::read_from(directory) else {
        return;
    };
    // An agent may have filled its directory.
    let names = entries.take(MOST_LOOKED_AT).map_while(Result::ok);
    let left: Vec<_> = names
        .filter(|entry| is_temporary(entry.file_name().to_bytes()))
        .collect();
    for entry in left {
        let name = entry.file_name();
        let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        if stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile) {
            let _ = rustix::fs::unlinkat(directory, name, AtFlags::empty());
        }
    }
}

/// Whether the file is still what its new version takes the place of.
fn unchanged(file: &NewFile, relative: &Path, parent: &OwnedFd) -> Result<(), HomeError> {
    let name = relative.file_name().ok_or_else(|| unsafe_path(relative))?;
    let found = match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
            Some(Stamp::of(&stat))
        }
        Ok(_) => return Err(not_regular(relative)),
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(HomeError::io("inspecting", relative)(errno)),
    };
    if found == file.expected {
        Ok(())
    } else {
        Err(HomeError::Changed {
            path: relative.display().to_string(),
        })
    }
}

/// Flags for opening a file that may be anything: without `NONBLOCK` opening a fifo would wait for a writer.
pub(super) const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);
