//! Opening paths that cannot leave a directory, whatever is planted inside it.
//!
//! `openat2` (Linux 5.6) does it in the kernel and without races. Where it is missing or forbidden
//! by a seccomp profile, each component is opened on its own without following links.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Whether a path has only plain names: not empty, not absolute, no `.` or `..`, no NUL.
pub(crate) fn is_plain(path: &Path) -> bool {
    let mut components = path.components().peekable();
    components.peek().is_some()
        && components.all(|component| matches!(component, Component::Normal(_)))
        && !path.as_os_str().as_encoded_bytes().contains(&0)
}

/// Opens `path` beneath `dir`. A link anywhere on the way, or at its end, is `ELOOP` or `ENOTDIR`;
/// only with `O_PATH` is a link at the end opened itself, so such callers check the type.
/// A path that is not [`is_plain`] is `EINVAL`.
pub(crate) fn open(
    dir: impl AsFd,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    if !is_plain(path) {
        return Err(Errno::INVAL);
    }
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match rustix::fs::openat2(dir.as_fd(), path, flags, mode, resolve) {
        // EPERM may also be the file's own; then the second way says the same again.
        Err(Errno::NOSYS | Errno::PERM) => open_by_component(dir.as_fd(), path, flags, mode),
        outcome => outcome,
    }
}

/// The same without `openat2`.
pub(super) fn open_by_component(
    dir: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::INVAL);
    };
    let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut current: Option<OwnedFd> = None;
    for component in parent.components() {
        let Component::Normal(component) = component else {
            return Err(Errno::INVAL);
        };
        let at = current.as_ref().map_or(dir, AsFd::as_fd);
        current = Some(rustix::fs::openat(at, component, step, Mode::empty())?);
    }
    let at = current.as_ref().map_or(dir, AsFd::as_fd);
    rustix::fs::openat(at, name, flags, mode)
}

/// Opens a directory beneath `dir` for reading its entries.
pub(crate) fn open_dir(dir: impl AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    open(dir, path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
}

/// Opens a directory beneath `dir`, giving the owner the permissions `needed` on it when the agent took
/// them away. Root needs none and changes nothing.
pub(super) fn open_dir_unlocked(
    dir: impl AsFd,
    path: &Path,
    needed: Mode,
) -> rustix::io::Result<OwnedFd> {
    let dir = dir.as_fd();
    let fd = match open_dir(dir, path) {
        Err(Errno::ACCESS) => {
            make_usable(dir, path, Mode::RWXU)?;
            open_dir(dir, path)?
        }
        outcome => outcome?,
    };
    if !rustix::process::geteuid().is_root() {
        let mode = Mode::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode);
        if !mode.contains(needed) {
            // Somebody else's directory stays as it is; what follows then says what it lacks.
            let _ = rustix::fs::fchmod(&fd, mode | needed);
        }
    }
    Ok(fd)
}

/// Gives the owner back the permissions on a file or directory beneath `dir` that the agent took
/// away, so that a service which is not root can open it.
pub(super) fn make_usable(dir: impl AsFd, path: &Path, mode: Mode) -> rustix::io::Result<()> {
    let fd = open(dir, path, OFlags::PATH, Mode::empty())?;
    // fchmod refuses O_PATH handles and chmodat would follow a link put there meanwhile; the name
    // in /proc is the handle itself (and fails for a link).
    rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), mode)
}
