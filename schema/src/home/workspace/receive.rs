//! Files that arrive piece by piece.
//!
//! What arrives is written to a [`TemporaryFile`]. It gets its name when it is whole.

use std::ffi::OsStr;
use std::io::Write;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::Workspace;
use super::error::FileError;
use super::path::WorkspacePath;
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

    /// Bytes so far.
    pub fn length(&self) -> u64 {
        self.length
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

/// A file that has arrived and has no name yet.
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

    /// Gives files that have arrived their names. With `overwrite` regular files of these names are replaced. Nothing is placed if it
    /// is seen before that one of them cannot be.
    ///
    /// # Errors
    /// [`FileError::Exists`], [`FileError::NotAFile`] when something else than a regular file is in the way;
    /// [`FileError::Partly`] when some have got theirs; otherwise [`FileError`].
    pub fn place_all(
        &self,
        files: &[(WorkspacePath, Received)],
        overwrite: bool,
    ) -> Result<(), FileError> {
        for (path, _) in files {
            let (parent, name) = self.parent(path)?;
            free(&parent, name, path, overwrite)?;
        }
        for (index, (path, received)) in files.iter().enumerate() {
            let placed = self.place(path, received, overwrite);
            placed.map_err(|error| error.after(index > 0))?;
        }
        Ok(())
    }

    fn place(
        &self,
        path: &WorkspacePath,
        received: &Received,
        overwrite: bool,
    ) -> Result<(), FileError> {
        let (parent, name) = self.parent(path)?;
        let placed = match free(&parent, name, path, overwrite)? {
            true => match received.file.appear(&parent, name) {
                // Somebody was faster: replaced, if it may be.
                Err(Errno::EXIST) if overwrite => {
                    free(&parent, name, path, overwrite)?;
                    received.file.replace(&parent, name)
                }
                placed => placed,
            },
            false => received.file.replace(&parent, name),
        };
        placed
            .and_then(|()| rustix::fs::fsync(&parent))
            .map_err(FileError::of("writing", path))
    }
}

fn failed<E: Into<std::io::Error>>(error: E) -> FileError {
    FileError::of("writing into", &WorkspacePath::default())(error)
}

/// Whether nothing bears the name. Fails for what may not be replaced.
fn free(
    parent: &OwnedFd,
    name: &OsStr,
    path: &WorkspacePath,
    overwrite: bool,
) -> Result<bool, FileError> {
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(true),
        Err(errno) => Err(FileError::of("inspecting", path)(errno)),
        Ok(_) if !overwrite => Err(FileError::Exists {
            path: path.to_string(),
        }),
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => Ok(false),
        Ok(_) => Err(FileError::NotAFile {
            path: path.to_string(),
        }),
    }
}
