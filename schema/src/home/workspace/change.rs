//! Making, moving, removing and editing entries.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::error::FileError;
use super::path::WorkspacePath;
use super::read::{EDITABLE, etag_of};
use super::{Workspace, regular};
use crate::fault;
use crate::home::beneath;
use crate::home::error::HomeError;
use crate::home::remove::remove_tree_of;
use crate::home::rename::rename_to_free;

/// Most entries that one request removes: an agent may fill a directory as fast as it is emptied.
const MOST_REMOVED: u64 = 5_000_000;

impl Workspace {
    /// Makes a directory. The one that it lies in must be there.
    ///
    /// # Errors
    /// [`FileError::Exists`]; otherwise [`FileError`].
    pub fn make_directory(&self, path: &WorkspacePath) -> Result<(), FileError> {
        let (parent, name) = self.parent(path)?;
        // The agent may change what is in it whoever it runs as.
        rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755))
            .map_err(FileError::of("making", path))?;
        let made = beneath::open_dir(&parent, Path::new(name));
        made.and_then(|made| self.give(made))
            .and_then(|()| rustix::fs::fsync(&parent))
            .map_err(FileError::of("making", path))
    }

    /// Moves an entry of any type; never over another one.
    ///
    /// # Errors
    /// [`FileError::Exists`], [`FileError::IntoItself`]; otherwise [`FileError`].
    pub fn rename(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<(), FileError> {
        let (old_parent, old_name) = self.parent(from)?;
        let (new_parent, new_name) = self.parent(to)?;
        if from == to {
            return Err(FileError::Exists {
                path: to.to_string(),
            });
        }
        if from.contains(to) {
            return Err(FileError::IntoItself);
        }
        stat(&old_parent, old_name).map_err(FileError::of("moving", from))?;
        rename_to_free(&old_parent, old_name, &new_parent, new_name).map_err(
            |errno| match errno {
                // Somebody has moved its goal into it meanwhile.
                Errno::INVAL => FileError::IntoItself,
                errno => FileError::of("moving", to)(errno),
            },
        )?;
        rustix::fs::fsync(&new_parent)
            .and_then(|()| rustix::fs::fsync(&old_parent))
            .map_err(FileError::of("moving", to))
    }

    /// Removes an entry, and everything in it.
    ///
    /// # Errors
    /// [`FileError::Top`]; [`FileError::Partly`] when a fault, or what the agent did meanwhile, may have left a part of it;
    /// otherwise [`FileError`].
    pub fn remove(&self, path: &WorkspacePath) -> Result<(), FileError> {
        let (parent, name) = self.parent(path)?;
        let stat = stat(&parent, name).map_err(FileError::of("removing", path))?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            remove_tree_of(&parent, Path::new(name), path.as_ref(), MOST_REMOVED).map_err(
                |error| {
                    let error = match error {
                        HomeError::Io { source, .. } => FileError::of("removing", path)(source),
                        error => error.into(),
                    };
                    error.after(true)
                },
            )?;
        } else {
            match rustix::fs::unlinkat(&parent, name, AtFlags::empty()) {
                // Somebody else has removed it.
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(FileError::of("removing", path)(errno)),
            }
        }
        rustix::fs::fsync(&parent).map_err(FileError::of("removing", path))
    }

    /// Replaces the text of a file, or makes a file: whoever reads it sees the old or the new text. With `etag`, only while
    /// the file is the one that bears it. Its permissions stay. Returns the new etag.
    ///
    /// # Errors
    /// [`FileError::Changed`], [`FileError::NotText`] for a longer text; otherwise [`FileError`].
    pub fn write_text(
        &self,
        path: &WorkspacePath,
        content: &str,
        etag: Option<&str>,
    ) -> Result<String, FileError> {
        if content.len() as u64 > EDITABLE {
            return Err(FileError::NotText { limit: EDITABLE });
        }
        let (parent, name) = self.parent(path)?;
        let mode = self.expected(&parent, name, path, etag)?;
        let temporary = self
            .home
            .prepare(parent.as_fd(), content.as_bytes(), mode)
            .map_err(FileError::of("writing", path))?;
        fault::point("workspace.edit.before_rename");
        // Asked once more: writing takes longer than this.
        self.expected(&parent, name, path, etag)?;
        temporary
            .replace(&parent, name)
            .and_then(|()| rustix::fs::fsync(&parent))
            .map_err(FileError::of("writing", path))?;
        // Of what was written, and not of what the agent may have put there since.
        let written = temporary.stat().map_err(FileError::of("writing", path))?;
        Ok(etag_of(&written))
    }

    /// The permissions of the file that is to be replaced, if it is the one that is expected.
    fn expected(
        &self,
        parent: &OwnedFd,
        name: &OsStr,
        path: &WorkspacePath,
        etag: Option<&str>,
    ) -> Result<u32, FileError> {
        let changed = || FileError::Changed {
            path: path.to_string(),
        };
        match stat(parent, name) {
            Ok(stat) => {
                regular(stat.st_mode, path)?;
                match etag {
                    Some(etag) if etag != etag_of(&stat) => Err(changed()),
                    _ => Ok(stat.st_mode & 0o777),
                }
            }
            Err(Errno::NOENT) if etag.is_some() => Err(changed()),
            Err(Errno::NOENT) => Ok(0o644),
            Err(errno) => Err(FileError::of("writing", path)(errno)),
        }
    }
}

fn stat(parent: &OwnedFd, name: &OsStr) -> rustix::io::Result<rustix::fs::Stat> {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
}
