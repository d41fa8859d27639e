//! Making, moving, removing and editing entries.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, Stat};
use rustix::io::Errno;

use super::error::FileError;
use super::path::WorkspacePath;
use super::read::{EDITABLE, etag_of};
use super::{Workspace, regular, stat};
use crate::fault;
use crate::home::beneath;
use crate::home::error::HomeError;
use crate::home::remove::remove_tree_of;
use crate::home::rename::rename_beside_agent;

/// Most entries that one request removes: an agent may fill a directory as fast as it is emptied.
const MOST_REMOVED: u64 = 5_000_000;

/// An open directory, and a name in it.
type EntryPlace<'a> = (OwnedFd, &'a OsStr);

impl Workspace {
    /// Whether a directory could be made, as far as can be said before.
    ///
    /// # Errors
    /// As [`Workspace::make_directory`].
    pub fn can_make_directory(&self, path: &WorkspacePath) -> Result<(), FileError> {
        let (parent, name) = self.parent(path)?;
        must_be_free(&parent, name, path)
    }

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
            .map_err(|errno| FileError::of("making", path)(errno).after(true))
    }

    /// Whether an entry could be moved, as far as can be said before.
    ///
    /// # Errors
    /// As [`Workspace::rename`].
    pub fn can_rename(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<(), FileError> {
        self.to_move(from, to).map(drop)
    }

    /// Opens the directories of an entry that can be moved and of where it is to be.
    fn to_move<'a>(
        &self,
        from: &'a WorkspacePath,
        to: &'a WorkspacePath,
    ) -> Result<(EntryPlace<'a>, EntryPlace<'a>), FileError> {
        let (old_parent, old_name) = self.parent(from)?;
        let (new_parent, new_name) = self.parent(to)?;
        if from == to {
            return Err(FileError::exists(to));
        }
        if from.contains(to) {
            return Err(FileError::IntoItself);
        }
        must_be_there(&old_parent, old_name, from)?;
        must_be_free(&new_parent, new_name, to)?;
        Ok(((old_parent, old_name), (new_parent, new_name)))
    }

    /// Moves an entry of any type; never over another one.
    ///
    /// # Errors
    /// [`FileError::Exists`], [`FileError::IntoItself`]; otherwise [`FileError`].
    pub fn rename(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<(), FileError> {
        let ((old_parent, old_name), (new_parent, new_name)) = self.to_move(from, to)?;
        rename_beside_agent(&old_parent, old_name, &new_parent, new_name).map_err(|errno| {
            match errno {
                // Somebody has moved its goal into it meanwhile.
                Errno::INVAL => FileError::IntoItself,
                errno => FileError::of("moving", to)(errno),
            }
        })?;
        rustix::fs::fsync(&new_parent)
            .and_then(|()| rustix::fs::fsync(&old_parent))
            .map_err(|errno| FileError::of("moving", to)(errno).after(true))
    }

    /// Whether an entry could be removed, as far as can be said before.
    ///
    /// # Errors
    /// As [`Workspace::remove`].
    pub fn can_remove(&self, path: &WorkspacePath) -> Result<(), FileError> {
        let (parent, name) = self.parent(path)?;
        must_be_there(&parent, name, path).map(drop)
    }

    /// Removes an entry, and everything in it.
    ///
    /// # Errors
    /// [`FileError::Top`]; [`FileError::Partly`] when a fault, or what the agent did meanwhile, may have left a part of it;
    /// otherwise [`FileError`].
    pub fn remove(&self, path: &WorkspacePath) -> Result<(), FileError> {
        self.remove_at_most(path, MOST_REMOVED)
    }

    /// As [`Workspace::remove`]; it fails after so many entries.
    pub(super) fn remove_at_most(&self, path: &WorkspacePath, most: u64) -> Result<(), FileError> {
        let (parent, name) = self.parent(path)?;
        let stat = must_be_there(&parent, name, path)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            remove_tree_of(&parent, Path::new(name), path.as_ref(), most).map_err(|error| {
                let error = match error {
                    HomeError::Io { source, .. } => FileError::of("removing", path)(source),
                    error => error.into(),
                };
                error.after(true)
            })?;
        } else {
            match rustix::fs::unlinkat(&parent, name, AtFlags::empty()) {
                // Somebody else has removed it.
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(FileError::of("removing", path)(errno)),
            }
        }
        rustix::fs::fsync(&parent).map_err(FileError::of("removing", path))
    }

    /// Whether a text could be written, as far as can be said before.
    ///
    /// # Errors
    /// As [`Workspace::write_text`].
    pub fn can_write_text(
        &self,
        path: &WorkspacePath,
        content: &str,
        etag: Option<&str>,
    ) -> Result<(), FileError> {
        self.to_write(path, content, etag).map(drop)
    }

    /// Opens the directory of a file that can be written, with the permissions that it is to have.
    fn to_write<'a>(
        &self,
        path: &'a WorkspacePath,
        content: &str,
        etag: Option<&str>,
    ) -> Result<(EntryPlace<'a>, u32), FileError> {
        if content.len() as u64 > EDITABLE {
            return Err(FileError::NotText { limit: EDITABLE });
        }
        let (parent, name) = self.parent(path)?;
        let mode = expected(&parent, name, path, etag)?;
        Ok(((parent, name), mode))
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
        let ((parent, name), mode) = self.to_write(path, content, etag)?;
        let temporary = self
            .home
            .prepare(parent.as_fd(), content.as_bytes(), mode)
            .map_err(FileError::of("writing", path))?;
        fault::point("workspace.edit.before_rename");
        // Asked once more: writing takes longer than this.
        expected(&parent, name, path, etag)?;
        temporary
            .replace(&parent, name)
            .map_err(FileError::of("writing", path))?;
        // Of what was written, and not of what the agent may have put there since.
        let written = rustix::fs::fsync(&parent).and_then(|()| temporary.stat());
        written
            .map(|stat| etag_of(&stat))
            .map_err(|errno| FileError::of("writing", path)(errno).after(true))
    }
}

/// The permissions of the file that is to be replaced, if it is the one that is expected.
fn expected(
    parent: &OwnedFd,
    name: &OsStr,
    path: &WorkspacePath,
    etag: Option<&str>,
) -> Result<u32, FileError> {
    let changed = || FileError::Changed {
        path: path.to_string(),
    };
    match stat(parent, name, path)? {
        Some(stat) => {
            regular(stat.st_mode, path)?;
            match etag {
                Some(etag) if etag != etag_of(&stat) => Err(changed()),
                _ => Ok(stat.st_mode & 0o777),
            }
        }
        None if etag.is_some() => Err(changed()),
        None => Ok(0o644),
    }
}

fn must_be_there(parent: &OwnedFd, name: &OsStr, path: &WorkspacePath) -> Result<Stat, FileError> {
    stat(parent, name, path)?.ok_or_else(|| FileError::NotFound {
        path: path.to_string(),
    })
}

fn must_be_free(parent: &OwnedFd, name: &OsStr, path: &WorkspacePath) -> Result<(), FileError> {
    match stat(parent, name, path)? {
        Some(_) => Err(FileError::exists(path)),
        None => Ok(()),
    }
}
