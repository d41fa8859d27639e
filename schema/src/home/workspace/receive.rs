//! Files that arrive piece by piece.
//!
//! What arrives is written to a [`TemporaryFile`]. It gets its name when it is whole.

use std::ffi::OsStr;
use std::io::Write;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, Mode};
use rustix::io::Errno;

use super::error::FileError;
use super::path::WorkspacePath;
use super::{Workspace, stat};
use crate::home::temporary::TemporaryFile;

/// A file that arrives.
#[derive(Debug)]
pub struct Incoming {
    file: TemporaryFile<OwnedFd>,
    length: u64,
}

impl Incoming {
    /// Writes the next piece.
    ///
    /// # Errors
    /// [`FileError::Full`]; otherwise [`FileError`].
    pub fn write(&mut self, piece: &[u8]) -> Result<(), FileError> {
        let written = self.file.file().write_all(piece);
        written.map_err(failed)?;
        self.length += piece.len() as u64;
        Ok(())
    }

    /// Everything has arrived: it is on the disk.
    ///
    /// # Errors
    /// [`FileError::Full`]; otherwise [`FileError`].
    pub fn finish(self) -> Result<Received, FileError> {
        let saved = self.file.file().sync_all();
        saved.map_err(failed)?;
        Ok(Received {
            file: self.file,
            length: self.length,
        })
    }
}

/// A file that has arrived, and does not have its name yet.
#[derive(Debug)]
pub struct Received {
    file: TemporaryFile<OwnedFd>,
    length: u64,
}

impl Received {
    /// Its length, in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Gives it the name of `path` in `directory`, which nothing may have.
    pub(in crate::home) fn place_new(
        &self,
        directory: &OwnedFd,
        path: &WorkspacePath,
    ) -> Result<(), FileError> {
        place(directory, path, &self.file, false)?;
        rustix::fs::fsync(directory).map_err(FileError::of("writing", path))
    }
}

impl Workspace {
    /// A file to write what arrives to. It lies on the file system of the workspace.
    ///
    /// # Errors
    /// [`FileError::Full`]; otherwise [`FileError`].
    pub fn incoming(&self) -> Result<Incoming, FileError> {
        let top = rustix::io::fcntl_dupfd_cloexec(&self.top, 0);
        let file = top.and_then(TemporaryFile::create).map_err(failed)?;
        self.give(file.file())
            .and_then(|()| rustix::fs::fchmod(file.file(), Mode::from_raw_mode(0o644)))
            .map_err(failed)?;
        Ok(Incoming { file, length: 0 })
    }

    /// Whether files could be put at these paths of one directory, as far as can be said before.
    ///
    /// # Errors
    /// As [`Workspace::place_all`].
    pub fn can_place_all(
        &self,
        directory: &WorkspacePath,
        files: &[WorkspacePath],
        overwrite: bool,
    ) -> Result<(), FileError> {
        let directory = self.directory(directory)?;
        for path in files {
            free(&directory, path, overwrite)?;
        }
        Ok(())
    }

    /// Gives files that have arrived their names in one directory. With `overwrite` regular files of these names are replaced.
    ///
    /// # Errors
    /// [`FileError::Exists`], [`FileError::NotAFile`] when something else than a regular file is in the way;
    /// [`FileError::Partly`] when some have got theirs; otherwise [`FileError`].
    pub fn place_all<'a>(
        &self,
        directory: &WorkspacePath,
        files: impl IntoIterator<Item = (&'a WorkspacePath, &'a Received)>,
        overwrite: bool,
    ) -> Result<(), FileError> {
        let opened = self.directory(directory)?;
        let mut files = files.into_iter().enumerate();
        let placed = files.try_for_each(|(index, (path, received))| {
            let placed = place(&opened, path, &received.file, overwrite);
            placed.map_err(|error| error.after(index > 0))
        });
        let saved = rustix::fs::fsync(&opened);
        placed
            .and(saved.map_err(|errno| FileError::of("writing into", directory)(errno).after(true)))
    }
}

fn place(
    directory: &OwnedFd,
    path: &WorkspacePath,
    file: &TemporaryFile<OwnedFd>,
    overwrite: bool,
) -> Result<(), FileError> {
    let name = OsStr::new(path.name());
    let placed = match free(directory, path, overwrite)? {
        true => match file.link_new(directory, name) {
            // Somebody was faster: replaced, if it may be.
            Err(Errno::EXIST) if overwrite => {
                free(directory, path, overwrite)?;
                file.replace(directory, name)
            }
            placed => placed,
        },
        false => file.replace(directory, name),
    };
    placed.map_err(|errno| match errno {
        // The directory was there: it has vanished, or the file where it needs a name on its way.
        Errno::NOENT => FileError::Meanwhile {
            path: path.to_string(),
        },
        errno => FileError::of("writing", path)(errno),
    })
}

fn failed<E: Into<std::io::Error>>(error: E) -> FileError {
    FileError::of("writing into", &WorkspacePath::default())(error)
}

/// Whether nothing has the name. Fails for what may not be replaced.
fn free(directory: &OwnedFd, path: &WorkspacePath, overwrite: bool) -> Result<bool, FileError> {
    let taken = stat(directory, OsStr::new(path.name()), path)?;
    match taken.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        None => Ok(true),
        Some(_) if !overwrite => Err(FileError::exists(path)),
        Some(FileType::RegularFile) => Ok(false),
        Some(_) => Err(FileError::NotAFile {
            path: path.to_string(),
        }),
    }
}
