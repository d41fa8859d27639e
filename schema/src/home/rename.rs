//! Renaming that replaces nothing.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, RenameFlags};
use rustix::io::Errno;
use rustix::path::Arg;

/// Renames unless the new name is taken: then it is `EEXIST`.
pub(super) fn rename_to_free<A: Arg + Copy, B: Arg + Copy>(
    from: impl AsFd,
    old: A,
    to: impl AsFd,
    new: B,
) -> rustix::io::Result<()> {
    let (from, to) = (from.as_fd(), to.as_fd());
    match rustix::fs::renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
        // Or a directory was to be moved into itself: the other way says the same again.
        Err(Errno::INVAL | Errno::NOSYS) => rename_in_steps(from, old, to, new),
        outcome => outcome,
    }
}

/// The same on a file system without RENAME_NOREPLACE, such as NFS.
pub(super) fn rename_in_steps<A: Arg + Copy, B: Arg + Copy>(
    from: impl AsFd,
    old: A,
    to: impl AsFd,
    new: B,
) -> rustix::io::Result<()> {
    let (from, to) = (from.as_fd(), to.as_fd());
    let stat = rustix::fs::statat(from, old, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        // A second name replaces nothing.
        rustix::fs::linkat(from, old, to, new, AtFlags::empty())?;
        return rustix::fs::unlinkat(from, old, AtFlags::empty());
    }
    match rustix::fs::statat(to, new, AtFlags::SYMLINK_NOFOLLOW) {
        // Whoever takes the name now loses no more than an empty directory: nothing else is replaced by one.
        Err(Errno::NOENT) => rustix::fs::renameat(from, old, to, new),
        Ok(_) => Err(Errno::EXIST),
        Err(errno) => Err(errno),
    }
}
