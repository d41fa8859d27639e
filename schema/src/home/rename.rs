//! Renaming that replaces nothing.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, FileType, RenameFlags};
use rustix::io::Errno;
use rustix::path::Arg;

/// Renames unless the new name is taken: then it is `EEXIST`. For directories, and for files where nobody else gives
/// names.
pub(super) fn rename_to_free<A: Arg + Copy, B: Arg + Copy>(
    from: impl AsFd,
    old: A,
    to: impl AsFd,
    new: B,
) -> rustix::io::Result<()> {
    let (from, to) = (from.as_fd(), to.as_fd());
    match rustix::fs::renameat_with(from, old, to, new, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => look_and_rename(from, old, to, new),
        outcome => outcome,
    }
}

/// The same where an agent gives names, too.
pub(super) fn rename_beside_agent<A: Arg + Copy, B: Arg + Copy>(
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
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        // Whoever takes the name meanwhile loses an empty directory at most: a directory replaces nothing else.
        return look_and_rename(from, old, to, new);
    }
    // A link replaces nothing.
    match rustix::fs::linkat(from, old, to, new, AtFlags::empty()) {
        // A file system without links.
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
            look_and_rename(from, old, to, new)
        }
        linked => {
            linked?;
            let removed = rustix::fs::unlinkat(from, old, AtFlags::empty());
            // Undone only while the file has its other name.
            let named = rustix::fs::statat(to, new, AtFlags::SYMLINK_NOFOLLOW);
            if removed.is_err() && named.is_ok_and(|stat| stat.st_nlink > 1) {
                let _ = rustix::fs::unlinkat(to, new, AtFlags::empty());
                return removed;
            }
            Ok(())
        }
    }
}

fn look_and_rename<A: Arg + Copy, B: Arg + Copy>(
    from: BorrowedFd<'_>,
    old: A,
    to: BorrowedFd<'_>,
    new: B,
) -> rustix::io::Result<()> {
    match rustix::fs::statat(to, new, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => rustix::fs::renameat(from, old, to, new),
        Ok(_) => Err(Errno::EXIST),
        Err(errno) => Err(errno),
    }
}
