//! The files of a user, as the user manages them.
//!
//! The agent works in the same directory meanwhile, and may be hostile: every path is resolved beneath the workspace
//! without following a link, only regular files and directories are opened, and what is made appears whole or not at all.
//! Nothing here grows with the length of a file.

mod change;
mod error;
pub(super) mod list;
mod path;
mod read;
mod receive;
#[cfg(test)]
mod tests;
mod trash;
mod zip;

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

pub use error::FileError;
pub use list::{EntryType, FileEntry, Listing, Order, Sort};
pub use path::{PathError, WorkspacePath};
pub use read::{EDITABLE, EditableText, OpenFile};
pub use receive::{Incoming, Received};
pub(super) use trash::TRASH;
pub use trash::{Emptied, Restoration, TRASH_KEPT, Trashed};
pub use zip::MOST_PACKED;

use super::user_home::UserHome;
use super::{Homes, WORKSPACE_DIR, beneath};
use crate::ids::{Uid, UserName};

/// An open workspace.
#[derive(Debug)]
pub struct Workspace {
    pub(super) home: UserHome,
    pub(super) top: OwnedFd,
}

impl Homes {
    /// Opens a user's workspace; `None` when it has not been made yet.
    ///
    /// # Errors
    /// As [`Homes::ensure`]; [`FileError`] when the agent has put something else in its place.
    pub fn workspace(&self, name: &UserName, uid: &Uid) -> Result<Option<Workspace>, FileError> {
        let Some(home) = self.open_existing(name, uid)? else {
            return Ok(None);
        };
        match beneath::open_dir(home.dir(), Path::new(WORKSPACE_DIR)) {
            Ok(top) => Ok(Some(Workspace { home, top })),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(FileError::of("opening", &WorkspacePath::default())(errno)),
        }
    }

    /// The same, to change something: a workspace that the agent has removed is made again. `None` when the user's directory has not
    /// been made yet.
    ///
    /// # Errors
    /// As [`Homes::workspace`].
    pub fn workspace_to_change(
        &self,
        name: &UserName,
        uid: &Uid,
    ) -> Result<Option<Workspace>, FileError> {
        if let Some(workspace) = self.workspace(name, uid)? {
            return Ok(Some(workspace));
        }
        let Some(home) = self.open_existing(name, uid)? else {
            return Ok(None);
        };
        let top = home
            .directory(Path::new(WORKSPACE_DIR))
            .map_err(FileError::of("making", &WorkspacePath::default()))?;
        Ok(Some(Workspace { home, top }))
    }
}

impl Workspace {
    /// Opens a directory.
    pub(super) fn directory(&self, path: &WorkspacePath) -> Result<OwnedFd, FileError> {
        let opened = match path.is_top() {
            true => rustix::io::fcntl_dupfd_cloexec(&self.top, 0),
            false => beneath::open_dir(&self.top, path.as_ref()),
        };
        opened.map_err(FileError::of("opening", path))
    }

    /// Opens the directory that an entry lies in, or is to lie in.
    fn parent<'a>(&self, path: &'a WorkspacePath) -> Result<(OwnedFd, &'a OsStr), FileError> {
        let (parent, name) = path.split().ok_or(FileError::Top)?;
        let opened = match parent.as_os_str().is_empty() {
            true => rustix::io::fcntl_dupfd_cloexec(&self.top, 0),
            false => beneath::open_dir(&self.top, parent),
        };
        Ok((opened.map_err(FileError::of("opening", path))?, name))
    }

    /// What is made in the workspace belongs to whom the user's directory belongs to.
    fn give(&self, made: impl AsFd) -> rustix::io::Result<()> {
        self.home.give_to_owner(made)
    }
}

/// Opens a regular file of an open directory. What is none is not opened: that alone may do something.
pub(super) fn open_regular(
    directory: &OwnedFd,
    name: &Path,
    flags: OFlags,
    path: &WorkspacePath,
) -> Result<(File, Stat), FileError> {
    let handle = beneath::open(directory, name, OFlags::PATH, Mode::empty())
        .map_err(FileError::of("opening", path))?;
    let stat = rustix::fs::fstat(&handle).map_err(FileError::of("inspecting", path))?;
    regular(stat.st_mode, path)?;
    // The name in /proc is the handle itself, whatever bears the file's name by now.
    let itself = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let file = rustix::fs::open(itself.as_str(), flags | OFlags::CLOEXEC, Mode::empty());
    let file = File::from(file.map_err(FileError::of("opening", path))?);
    let stat = rustix::fs::fstat(&file).map_err(FileError::of("inspecting", path))?;
    Ok((file, stat))
}

/// What the system says of an entry, without following it; `None` when there is none.
pub(super) fn stat(
    directory: &OwnedFd,
    name: &OsStr,
    path: &WorkspacePath,
) -> Result<Option<Stat>, FileError> {
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(FileError::of("inspecting", path)(errno)),
    }
}

/// Fails for a mode that is not a regular file's.
fn regular(mode: u32, path: &WorkspacePath) -> Result<(), FileError> {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => Ok(()),
        FileType::Symlink => Err(FileError::Link {
            path: path.to_string(),
        }),
        _ => Err(FileError::NotAFile {
            path: path.to_string(),
        }),
    }
}
