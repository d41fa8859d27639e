//! Removing a tree without following links.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode};
use rustix::io::Errno;

use super::beneath;
use super::error::HomeError;

/// Removes the directory `name` in `parent` with everything in it. What is gone already is fine;
/// the entries are removed, not what links among them point to.
///
/// `shown` is the path of `parent`, for messages.
pub(super) fn remove_tree(parent: &OwnedFd, name: &Path, shown: &Path) -> Result<(), HomeError> {
    // Breadth first, then the emptied directories deepest first: no recursion that a deep tree
    // could exhaust, and only one directory open at a time.
    let mut directories = vec![name.to_owned()];
    let mut next = 0;
    while let Some(directory) = directories.get(next).cloned() {
        next += 1;
        empty(parent, &directory, &mut directories)
            .map_err(HomeError::io("removing", shown.join(&directory)))?;
    }
    for directory in directories.iter().rev() {
        remove_entry(parent, directory, AtFlags::REMOVEDIR)
            .map_err(HomeError::io("removing", shown.join(directory)))?;
    }
    Ok(())
}

/// Removes what is not a directory in `directory` and notes the directories.
fn empty(
    root: &OwnedFd,
    directory: &Path,
    directories: &mut Vec<PathBuf>,
) -> rustix::io::Result<()> {
    // Entries of a read-only directory cannot be removed.
    let fd = match beneath::open_dir_unlocked(root, directory, Mode::RWXU) {
        Err(Errno::NOENT) => return Ok(()),
        outcome => outcome?,
    };
    for (name, kind) in entries(&fd)? {
        if kind == FileType::Directory {
            directories.push(directory.join(name));
        } else {
            match rustix::fs::unlinkat(&fd, name.as_path(), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(())
}

fn remove_entry(root: &OwnedFd, path: &Path, flags: AtFlags) -> rustix::io::Result<()> {
    let (parent, name) = match open_parent(root, path) {
        Err(Errno::NOENT) => return Ok(()),
        outcome => outcome?,
    };
    match rustix::fs::unlinkat(parent.as_ref().unwrap_or(root), name, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

fn open_parent<'a>(
    root: &OwnedFd,
    path: &'a Path,
) -> rustix::io::Result<(Option<OwnedFd>, &'a OsStr)> {
    let name = path.file_name().ok_or(Errno::INVAL)?;
    let parent = match path.parent().filter(|p| !p.as_os_str().is_empty()) {
        Some(parent) => Some(beneath::open_dir(root, parent)?),
        None => None,
    };
    Ok((parent, name))
}

/// The entries of an open directory with their types, `.` and `..` left out.
pub(super) fn entries(dir: &OwnedFd) -> rustix::io::Result<Vec<(PathBuf, FileType)>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        // Some file systems do not report the type in the listing.
        let kind = match entry.file_type() {
            FileType::Unknown => {
                match rustix::fs::statat(dir.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    Err(Errno::NOENT) => continue,
                    Err(errno) => return Err(errno),
                }
            }
            kind => kind,
        };
        found.push((PathBuf::from(name), kind));
    }
    Ok(found)
}
