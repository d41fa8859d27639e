//! The roots `users` and `archive`: created by us, marked as ours, or refused.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Dir, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::error::HomeError;
use super::{beneath, marker};
use crate::private;

const MARKER: &str = ".agentyard";
/// The directory of ownership markers in a root.
pub(super) const OWNERS: &str = ".owners";

const NO_DIRECTORY: &str = "it is not a directory; remove it, or mount the directory itself there";
const FOREIGN: &str =
    "it is not empty and was not created by Agentyard; use another data directory";
const LOST_DATABASE: &str = "it belongs to an installation whose database is missing; restore the database from a backup, \
     or use another data directory";
/// Directories of the system, into which nothing else is to be put.
const SYSTEM: [&str; 15] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/tmp",
    "/usr", "/var", "/var/lib", "/var/tmp",
];

/// The content of a root's marker file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RootMarker {
    root: String,
    instance: String,
}

/// One root and the directory of its ownership markers, both held open.
#[derive(Debug)]
pub(super) struct Root {
    pub fd: OwnedFd,
    pub owners: OwnedFd,
    /// For messages, and for the container engine.
    pub path: PathBuf,
}

impl Root {
    pub(super) fn open(data_dir: &Path, name: &str, instance: &str) -> Result<Self, HomeError> {
        let path = data_dir.join(name);
        let refused = |reason: &str| HomeError::RefusedRoot {
            path: path.clone(),
            reason: reason.to_owned(),
        };
        if instance.is_empty() || instance.chars().any(char::is_control) {
            return Err(refused("the instance has no usable name"));
        }
        let fd = match create_and_open(data_dir, name) {
            Ok(fd) => fd,
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return Err(refused(NO_DIRECTORY));
            }
            Err(errno) => return Err(HomeError::io("opening", &path)(errno)),
        };
        let ours = RootMarker {
            root: name.to_owned(),
            instance: instance.to_owned(),
        };
        let found = marker::read_file(&fd, MARKER).map_err(HomeError::io("reading", &path))?;
        match found.map(|content| serde_json::from_slice::<RootMarker>(&content)) {
            Some(Ok(marker)) if marker == ours => {}
            Some(Ok(_)) => {
                return Err(refused(
                    "its marker file names another instance; use another data directory",
                ));
            }
            Some(Err(_)) => return Err(refused("its marker file cannot be parsed")),
            None if is_empty(&fd).map_err(HomeError::io("listing", &path))? => {
                // Whoever has prepared it need not know how private it is to be.
                match rustix::fs::fchmod(&fd, Mode::RWXU) {
                    // Not ours: that is said below.
                    Ok(()) | Err(Errno::PERM) => {}
                    Err(errno) => return Err(HomeError::io("marking", &path)(errno)),
                }
                let content = serde_json::to_vec(&ours).map_err(HomeError::io("marking", &path))?;
                marker::write_file(&fd, MARKER, &content)
                    .map_err(HomeError::io("marking", &path))?;
            }
            None => {
                return Err(refused(FOREIGN));
            }
        }
        let owners =
            ensure_dir(&fd, OWNERS).map_err(HomeError::io("opening", path.join(OWNERS)))?;
        check_private(&fd, &path)?;
        check_private(&owners, &path.join(OWNERS))?;
        Ok(Self { fd, owners, path })
    }
}

/// Checks a data directory, which need not exist, and the directories in it; writes nothing.
pub(super) fn check_data_dir(
    data_dir: &Path,
    own_home: Option<&Path>,
    is_new: bool,
) -> Result<(), HomeError> {
    let failed = HomeError::io("opening the data directory", data_dir);
    let absolute = std::path::absolute(data_dir).map_err(failed)?;
    for known in absolute.ancestors() {
        // What does not exist yet is below what does.
        let Ok(canonical) = std::fs::canonicalize(known) else {
            continue;
        };
        let below = absolute.strip_prefix(known).unwrap_or(Path::new(""));
        let whole: PathBuf = canonical.join(below).components().collect();
        refuse_precious(&whole, own_home)?;
        break;
    }
    for name in ["users", "archive"] {
        check_root(data_dir, name, is_new)?;
    }
    for name in [crate::skill_store::ROOT, "users/.owners", "archive/.owners"] {
        if let Some(fd) = open_existing(data_dir, Path::new(name))? {
            check_private(&fd, &data_dir.join(name))?;
        }
    }
    Ok(())
}

/// Checks one root, if it exists.
fn check_root(data_dir: &Path, name: &str, is_new: bool) -> Result<(), HomeError> {
    let Some(fd) = open_existing(data_dir, Path::new(name))? else {
        return Ok(());
    };
    let path = data_dir.join(name);
    let refused = |reason: &str| {
        Err(HomeError::RefusedRoot {
            path: path.clone(),
            reason: reason.to_owned(),
        })
    };
    let marker = marker::read_file(&fd, MARKER).map_err(HomeError::io("reading", &path))?;
    match marker {
        Some(_) if is_new => refused(LOST_DATABASE),
        Some(_) => check_private(&fd, &path),
        None if is_empty(&fd).map_err(HomeError::io("listing", &path))? => Ok(()),
        None => refused(FOREIGN),
    }
}

/// Opens a directory in the data directory, if it exists.
fn open_existing(data_dir: &Path, name: &Path) -> Result<Option<OwnedFd>, HomeError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let data = match rustix::fs::openat(CWD, data_dir, flags, Mode::empty()) {
        Ok(data) => data,
        // Its creation reports another kind of entry.
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(HomeError::io("opening", data_dir)(errno)),
    };
    let path = data_dir.join(name);
    match beneath::open_dir(&data, name) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP | Errno::NOTDIR) => Err(HomeError::RefusedRoot {
            path,
            reason: NO_DIRECTORY.to_owned(),
        }),
        Err(errno) => Err(HomeError::io("opening", path)(errno)),
    }
}

pub(super) fn check_private(fd: &OwnedFd, path: &Path) -> Result<(), HomeError> {
    let stat = rustix::fs::fstat(fd).map_err(HomeError::io("reading", path))?;
    private::objection(&stat).map_or(Ok(()), |reason| {
        Err(HomeError::RefusedRoot {
            path: path.to_owned(),
            reason,
        })
    })
}

/// Refuses directories that hold other things: those of the system, `/home`, any home directory.
pub(super) fn refuse_precious(data_dir: &Path, own_home: Option<&Path>) -> Result<(), HomeError> {
    let own_home = own_home.and_then(|home| std::fs::canonicalize(home).ok());
    let reason = if data_dir == Path::new("/") {
        "it is the root of the file system"
    } else if data_dir == Path::new("/home") || data_dir == Path::new("/root") {
        "it holds personal files"
    } else if SYSTEM.iter().any(|system| data_dir == Path::new(system)) {
        "it is a directory of the system"
    } else if data_dir.parent() == Some(Path::new("/home")) || own_home.as_deref() == Some(data_dir)
    {
        "it is a home directory"
    } else {
        return Ok(());
    };
    Err(HomeError::RefusedRoot {
        path: data_dir.to_owned(),
        reason: format!("{reason}; use a dedicated directory, such as one inside it"),
    })
}

fn create_and_open(data_dir: &Path, name: &str) -> rustix::io::Result<OwnedFd> {
    let data = rustix::fs::openat(
        CWD,
        data_dir,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    ensure_dir(&data, name)
}

/// Opens `name` directly in `dir`, creating it with mode 0700 when it is missing.
pub(crate) fn ensure_dir(dir: impl AsFd, name: &str) -> rustix::io::Result<OwnedFd> {
    match beneath::open_dir(dir.as_fd(), Path::new(name)) {
        Err(Errno::NOENT) => {}
        outcome => return outcome,
    }
    match rustix::fs::mkdirat(dir.as_fd(), name, Mode::RWXU) {
        Ok(()) => rustix::fs::fsync(dir.as_fd())?,
        Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    beneath::open_dir(dir, Path::new(name))
}

/// Whether a directory has no entries but a marker that was being written when the power failed.
fn is_empty(dir: impl AsFd) -> rustix::io::Result<bool> {
    has_only(dir, &marker::temporary_name(MARKER))
}

/// Whether a directory has no entries but, possibly, `allowed`.
pub(super) fn has_only(dir: impl AsFd, allowed: &str) -> rustix::io::Result<bool> {
    use std::os::unix::ffi::OsStrExt;
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." && name != allowed {
            return Ok(false);
        }
    }
    Ok(true)
}
