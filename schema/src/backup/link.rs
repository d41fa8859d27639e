//! Hard links whose parents cannot be links themselves.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use crate::home::beneath;

/// Device and inode of a file.
pub(super) type FileId = (u64, u64);

pub(super) fn id_of(stat: &Stat) -> FileId {
    (stat.st_dev, stat.st_ino)
}

/// Inspects an entry of a directory without following it.
pub(super) fn inspect(dir: impl AsFd, name: &Path) -> rustix::io::Result<Stat> {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// Gives the regular file at `path` beneath `from` the name `name` in `to`. Its parents are opened beneath the handle, without
/// following links. What gets the name is compared with what was there before, and with `known`; otherwise the name goes and
/// the answer is `ESTALE`.
pub(super) fn link_beneath(
    from: &OwnedFd,
    path: &Path,
    known: Option<FileId>,
    to: &OwnedFd,
    name: &Path,
) -> rustix::io::Result<Stat> {
    if !beneath::is_plain(path) {
        return Err(Errno::INVAL);
    }
    let own = Path::new(path.file_name().ok_or(Errno::INVAL)?);
    let parent = match path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        Some(parent) => Some(beneath::open_dir(from, parent)?),
        None => None,
    };
    let parent = parent.as_ref().unwrap_or(from);
    let before = inspect(parent, own)?;
    let is_file = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !is_file(&before) || known.is_some_and(|known| known != id_of(&before)) {
        return Err(Errno::STALE);
    }
    rustix::fs::linkat(parent, own, to, name, AtFlags::empty())?;
    let after = inspect(to, name)?;
    if is_file(&after) && id_of(&after) == id_of(&before) {
        return Ok(after);
    }
    rustix::fs::unlinkat(to, name, AtFlags::empty())?;
    Err(Errno::STALE)
}
