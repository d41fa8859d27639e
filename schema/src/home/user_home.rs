//! A handle on one user's directory that cannot be led out of it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid as UnixUid};
use rustix::io::Errno;

use super::beneath;
use super::error::HomeError;
use super::files::READ;
use super::reading::{FileNotes, Note, NotesOfUser};
use super::temporary::TemporaryFile;
use crate::fault;
use crate::ids::Timestamp;

/// An open user directory. Paths given to it are relative to it, have no `..`, and are resolved
/// beneath it without following a link, whatever the agent does to the tree meanwhile.
#[derive(Debug)]
pub struct UserHome {
    dir: OwnedFd,
    path: PathBuf,
    notes: NotesOfUser,
}

impl UserHome {
    pub(super) fn new(dir: OwnedFd, path: PathBuf, notes: NotesOfUser) -> Self {
        Self { dir, path, notes }
    }

    /// Notes that a file of the user is about to be read and parsed, which may take long: from [`LONG_READING`](super::LONG_READING)
    /// bytes on. `path` is relative to this directory. [`Note::finish`] ends it when all was read.
    pub fn note_reading(&self, path: &str) -> Note {
        self.notes.note(path)
    }

    /// Notes of a file that is parsed later, and may take long.
    pub fn notes_of(&self, path: &str) -> FileNotes {
        self.notes.of_file(path)
    }

    /// Another handle on the same directory.
    pub(super) fn try_clone(&self) -> rustix::io::Result<Self> {
        let dir = rustix::io::fcntl_dupfd_cloexec(&self.dir, 0)?;
        Ok(Self::new(dir, self.path.clone(), self.notes.clone()))
    }

    /// The directory itself, for callers that resolve beneath it on their own.
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Where it is, for messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is a regular file at `relative`. A link, a directory or a device is none.
    ///
    /// # Errors
    /// [`HomeError::UnsafePath`], [`HomeError::Io`].
    pub fn file_exists(&self, relative: impl AsRef<Path>) -> Result<bool, HomeError> {
        Ok(self.stat_file(relative.as_ref())?.is_some())
    }

    /// When the regular file at `relative` was last written; `None` when there is none.
    ///
    /// # Errors
    /// As [`UserHome::file_exists`].
    pub fn file_modified(
        &self,
        relative: impl AsRef<Path>,
    ) -> Result<Option<Timestamp>, HomeError> {
        Ok(self.stat_file(relative.as_ref())?.map(|stat| {
            let millis = i64::try_from(stat.st_mtime_nsec).unwrap_or(0) / 1_000_000;
            Timestamp::from_millis(stat.st_mtime.saturating_mul(1000).saturating_add(millis))
        }))
    }

    /// The bytes of the regular file at `relative`, at most `limit`; `None` when nothing is there.
    ///
    /// # Errors
    /// [`HomeError::TooLarge`] past the limit (no more than that is read), [`HomeError::NotRegular`]
    /// for anything but a regular file and for a path through a link, [`HomeError::UnsafePath`],
    /// [`HomeError::Io`].
    pub fn read(
        &self,
        relative: impl AsRef<Path>,
        limit: u64,
    ) -> Result<Option<Vec<u8>>, HomeError> {
        let found = self.read_with_stat(relative.as_ref(), limit)?;
        Ok(found.map(|(content, _)| content))
    }

    /// The same, and what the system says of the file that was read.
    pub(super) fn read_with_stat(
        &self,
        relative: &Path,
        limit: u64,
    ) -> Result<Option<(Vec<u8>, Stat)>, HomeError> {
        let path = self.checked(relative)?;
        let file = match beneath::open(&self.dir, relative, READ, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(self.refused("opening", relative, errno)),
        };
        // Inspected before it is read: whoever writes meanwhile leaves another stamp.
        let stat = rustix::fs::fstat(&file).map_err(HomeError::io("inspecting", &path))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(not_regular(relative));
        }
        let mut content = Vec::new();
        let length = file
            .take(limit.saturating_add(1))
            .read_to_end(&mut content)
            .map_err(HomeError::io("reading", &path))?;
        if length as u64 > limit {
            return Err(HomeError::TooLarge {
                path: relative.display().to_string(),
                limit,
            });
        }
        Ok(Some((content, stat)))
    }

    /// Replaces the file at `relative` by `content` with permission bits `mode`: whoever reads it sees
    /// the old or the new bytes, never a part, even after a loss of power. Its directory must exist.
    /// The new file belongs to whom the user's directory belongs to.
    ///
    /// # Errors
    /// [`HomeError::NotRegular`] when the path leads through a link or a directory is in the way,
    /// [`HomeError::UnsafePath`], [`HomeError::Io`].
    pub fn write_atomic(
        &self,
        relative: impl AsRef<Path>,
        content: &[u8],
        mode: u32,
    ) -> Result<(), HomeError> {
        let relative = relative.as_ref();
        self.checked(relative)?;
        let name = relative.file_name().ok_or_else(|| unsafe_path(relative))?;
        let parent = match relative.parent().filter(|p| !p.as_os_str().is_empty()) {
            Some(parent) => Some(
                beneath::open_dir(&self.dir, parent)
                    .map_err(|errno| self.refused("opening the directory of", relative, errno))?,
            ),
            None => None,
        };
        let parent = parent.as_ref().unwrap_or(&self.dir).as_fd();
        self.write_in(parent, name, content, mode)
            .map_err(|error| self.not_written(relative, error))
    }

    fn write_in(
        &self,
        parent: BorrowedFd<'_>,
        name: &OsStr,
        content: &[u8],
        mode: u32,
    ) -> io::Result<()> {
        let temporary = self.prepare(parent, content, mode)?;
        fault::point("home.write.before_rename");
        temporary.replace(parent, name)?;
        fault::point("home.write.after_rename");
        Ok(rustix::fs::fsync(parent)?)
    }

    /// Makes a file whose name is free: it is there completely or not at all, even after a loss of power.
    pub(super) fn write_new(
        &self,
        parent: BorrowedFd<'_>,
        name: &OsStr,
        content: impl Read,
        mode: u32,
    ) -> io::Result<()> {
        // Asked first: what is there is not written in vain.
        match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let temporary = self.prepare(parent, content, mode)?;
        fault::point("home.write_new.before_rename");
        Ok(temporary.link_new(parent, name)?)
    }

    /// A new file on the file system of its place, complete and on the disk.
    pub(super) fn prepare<P: AsFd>(
        &self,
        parent: P,
        mut content: impl Read,
        mode: u32,
    ) -> io::Result<TemporaryFile<P>> {
        let temporary = TemporaryFile::create(parent)?;
        let mut file = temporary.file();
        self.give_to_owner(file)?;
        io::copy(&mut content, &mut file)?;
        rustix::fs::fchmod(file, Mode::from_raw_mode(mode & 0o777))?;
        file.sync_all()?;
        Ok(temporary)
    }

    /// What is made in the user's directory belongs to whom that belongs to.
    pub(super) fn give_to_owner(&self, made: impl AsFd) -> rustix::io::Result<()> {
        let home = rustix::fs::fstat(&self.dir)?;
        let now = rustix::fs::fstat(made.as_fd())?;
        if (home.st_uid, home.st_gid) == (now.st_uid, now.st_gid) {
            return Ok(());
        }
        rustix::fs::fchown(
            made.as_fd(),
            Some(UnixUid::from_raw(home.st_uid)),
            Some(Gid::from_raw(home.st_gid)),
        )
    }

    pub(super) fn not_written(&self, relative: &Path, error: io::Error) -> HomeError {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::ISDIR) => not_regular(relative),
            _ => HomeError::io("writing", self.path.join(relative))(error),
        }
    }

    fn stat_file(&self, relative: &Path) -> Result<Option<Stat>, HomeError> {
        self.checked(relative)?;
        match beneath::open(&self.dir, relative, OFlags::PATH, Mode::empty())
            .and_then(|fd| rustix::fs::fstat(&fd))
        {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                Ok(Some(stat))
            }
            Ok(_) | Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(self.refused("inspecting", relative, errno)),
        }
    }

    fn checked(&self, relative: &Path) -> Result<PathBuf, HomeError> {
        if beneath::is_plain(relative) {
            Ok(self.path.join(relative))
        } else {
            Err(unsafe_path(relative))
        }
    }

    pub(super) fn refused(&self, action: &'static str, relative: &Path, errno: Errno) -> HomeError {
        match errno {
            // Links, files in place of directories, sockets and devices without a driver.
            Errno::LOOP | Errno::NOTDIR | Errno::NXIO | Errno::XDEV => not_regular(relative),
            errno => HomeError::io(action, self.path.join(relative))(errno),
        }
    }
}

pub(super) fn unsafe_path(relative: &Path) -> HomeError {
    HomeError::UnsafePath {
        path: relative.display().to_string(),
    }
}

pub(super) fn not_regular(relative: &Path) -> HomeError {
    HomeError::NotRegular {
        path: relative.display().to_string(),
    }
}
