//! Files that arrive piece by piece.
//!
//! What arrives is written to a file without a name, which disappears with its last handle, also when the service is
//! killed. It gets its name when it is whole.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::Workspace;
use super::error::FileError;
use super::path::WorkspacePath;
use crate::fault;

/// A file that arrives.
#[derive(Debug)]
pub struct Incoming {
    file: File,
    length: u64,
}

impl Incoming {
    /// Writes the next piece.
    ///
    /// # Errors
    /// [`FileError::Full`]; otherwise [`FileError`].
    pub fn write(&mut self, piece: &[u8]) -> Result<(), FileError> {
        let top = WorkspacePath::default();
        let written = self.file.write_all(piece);
        written.map_err(FileError::of("writing into", &top))?;
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
        let top = WorkspacePath::default();
        let saved = self.file.sync_all();
        saved.map_err(FileError::of("writing into", &top))?;
        Ok(Received {
            file: self.file,
            length: self.length,
        })
    }
}

/// A file that has arrived and has no name yet.
#[derive(Debug)]
pub struct Received {
    file: File,
    length: u64,
}

impl Received {
    /// Its length, in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }
}

impl Workspace {
    /// A file to write what arrives to. It lies on the file system of the workspace and has no name.
    ///
    /// # Errors
    /// [`FileError::Full`]; otherwise [`FileError`].
    pub fn incoming(&self) -> Result<Incoming, FileError> {
        let top = WorkspacePath::default();
        let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.top, ".", flags, Mode::from_raw_mode(0o644))
            .map_err(FileError::of("writing into", &top))?;
        self.give(&file)
            .map_err(FileError::of("writing into", &top))?;
        Ok(Incoming {
            file: File::from(file),
            length: 0,
        })
    }

    /// Whether a file could be put at each of the paths, as far as can be said before.
    ///
    /// # Errors
    /// As [`Workspace::place`].
    pub fn can_place(&self, path: &WorkspacePath, overwrite: bool) -> Result<(), FileError> {
        let (parent, name) = self.parent(path)?;
        free(&parent, name, path, overwrite).map(drop)
    }

    /// Gives a file that has arrived its name. With `overwrite` a regular file of this name is replaced.
    ///
    /// # Errors
    /// [`FileError::Exists`], [`FileError::NotAFile`] when something else than a regular file is in the way; otherwise
    /// [`FileError`].
    pub fn place(
        &self,
        path: &WorkspacePath,
        received: &Received,
        overwrite: bool,
    ) -> Result<(), FileError> {
        let (parent, name) = self.parent(path)?;
        let failed = |errno| FileError::of("writing", path)(errno);
        if free(&parent, name, path, overwrite)? {
            match link(&received.file, &parent, name) {
                // Somebody was faster: replaced below, if it may be.
                Err(Errno::EXIST) if overwrite => {
                    free(&parent, name, path, overwrite)?;
                }
                linked => {
                    return linked
                        .and_then(|()| rustix::fs::fsync(&parent))
                        .map_err(failed);
                }
            }
        }
        let temporary = format!(".agentyard-{}.tmp", uuid::Uuid::new_v4().simple());
        link(&received.file, &parent, OsStr::new(&temporary)).map_err(failed)?;
        fault::point("workspace.upload.before_rename");
        rustix::fs::renameat(&parent, temporary.as_str(), &parent, name)
            .and_then(|()| rustix::fs::fsync(&parent))
            .map_err(|errno| {
                let _ = rustix::fs::unlinkat(&parent, temporary.as_str(), AtFlags::empty());
                failed(errno)
            })
    }
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

/// Gives a file without a name one that nothing bears.
fn link(file: &File, parent: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    // The name in /proc is the handle itself; AT_EMPTY_PATH would need a capability.
    let handle = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    let cwd = rustix::fs::CWD;
    rustix::fs::linkat(cwd, handle.as_str(), parent, name, AtFlags::SYMLINK_FOLLOW)
}
