//! The directory that backups are kept in.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::BackupError;
use super::manifest::{HEAD, Head};
use super::read::Backup;
use crate::home::beneath;
use crate::home::remove::remove_tree;
use crate::home::walk;
use crate::ids::Timestamp;

/// Beginning of the name of a backup that is being made, or removed.
const PARTIAL: &str = ".partial-";
/// Beginning of the name of a directory that a backup is verified in.
const VERIFY: &str = ".verify-";

/// A directory of backups, held open.
#[derive(Debug)]
pub struct Directory {
    pub(super) fd: OwnedFd,
    pub(super) path: PathBuf,
}

/// A complete backup in a directory.
#[derive(Debug, Clone)]
pub struct Kept {
    /// Its name.
    pub name: String,
    /// Its head, without the sections.
    pub head: Head,
}

impl Directory {
    /// Makes a directory for backups of `data_dir`, in which it must not lie, unless it is there, and opens it.
    ///
    /// # Errors
    /// As [`Directory::open`].
    pub fn make(path: &Path, data_dir: &Path) -> Result<Self, BackupError> {
        use std::os::unix::fs::DirBuilderExt;
        refuse_inside(path, data_dir)?;
        let mut builder = std::fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(path);
        made.map_err(BackupError::io("making", path))?;
        Self::open(path)
    }

    /// Opens a directory of backups of `data_dir`, in which it must not lie.
    ///
    /// # Errors
    /// As [`Directory::open`].
    pub fn open_for(path: &Path, data_dir: &Path) -> Result<Self, BackupError> {
        refuse_inside(path, data_dir)?;
        Self::open(path)
    }

    /// Opens a directory of backups.
    ///
    /// # Errors
    /// [`BackupError::RefusedDirectory`] when others may write in it; [`BackupError::Io`].
    pub fn open(path: &Path) -> Result<Self, BackupError> {
        let refused = |detail: String| BackupError::RefusedDirectory {
            path: path.to_owned(),
            detail,
        };
        let absolute = std::path::absolute(path).map_err(BackupError::io("finding", path))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, &absolute, flags, Mode::empty())
            .map_err(BackupError::io("opening", path))?;
        let stat = rustix::fs::fstat(&fd).map_err(BackupError::io("inspecting", path))?;
        let us = rustix::process::geteuid().as_raw();
        if stat.st_uid != us && stat.st_uid != 0 {
            return Err(refused(format!(
                "it belongs to user {}, and this process runs as user {us}; change its owner, or use another directory",
                stat.st_uid
            )));
        }
        if stat.st_mode & 0o022 != 0 {
            return Err(refused(format!(
                "its mode is {:04o}, so others might plant or remove backups; make it 0700",
                stat.st_mode & 0o7777
            )));
        }
        Ok(Self { fd, path: absolute })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps other backups away for as long as this value lives.
    pub(super) fn lock(&self) -> Result<(), BackupError> {
        match rustix::fs::flock(&self.fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(()),
            Err(Errno::WOULDBLOCK) => Err(BackupError::Busy(self.path.clone())),
            Err(errno) => Err(BackupError::io("locking", &self.path)(errno)),
        }
    }

    /// Complete backups, oldest first, of all installations. What is no backup is not listed.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn list(&self) -> Result<Vec<Kept>, BackupError> {
        let entries = walk::entries(&self.fd).map_err(BackupError::io("listing", &self.path))?;
        let mut kept: Vec<Kept> = entries
            .into_iter()
            .filter(|(_, kind)| *kind == FileType::Directory)
            .filter_map(|(name, _)| {
                let name = name.to_str().filter(|name| is_dated(name))?.to_owned();
                let mut head = Backup::open(&self.path.join(&name)).ok()?.head;
                // Thousands of homes, of many backups.
                head.sections = Vec::new();
                Some(Kept { name, head })
            })
            .collect();
        kept.sort_by(|a, b| (a.head.started_at, &a.name).cmp(&(b.head.started_at, &b.name)));
        Ok(kept)
    }

    /// Removes backups of `instance` beyond the newest `count` and those older than `age`, never the newest one; 0 and `None`
    /// set no limit. Tells the names.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn prune(
        &self,
        instance: &str,
        count: u64,
        age: Option<Duration>,
        now: Timestamp,
    ) -> Result<Vec<String>, BackupError> {
        let mut removed = Vec::new();
        let ours = self.list()?.into_iter().rev();
        // One from the future was made while the clock was wrong: it neither counts nor goes.
        let ours =
            ours.filter(|kept| kept.head.instance == instance && kept.head.started_at <= now);
        for (newer, kept) in (0_u64..).zip(ours) {
            let surplus = count > 0 && newer >= count;
            let old = age.is_some_and(|age| now.since(kept.head.started_at) > age);
            if newer > 0 && (surplus || old) {
                self.remove(&kept.name)?;
                removed.push(kept.name);
            }
        }
        Ok(removed)
    }

    /// Removes a backup: first it loses its name, so that what is left of it at any time looks like none.
    fn remove(&self, name: &str) -> Result<(), BackupError> {
        let partial = format!("{PARTIAL}{name}.removed");
        rustix::fs::renameat(&self.fd, name, &self.fd, partial.as_str())
            .map_err(BackupError::io("removing", self.path.join(name)))?;
        Ok(remove_tree(&self.fd, Path::new(&partial), &self.path)?)
    }

    /// Removes what interrupted backups and verifications have left.
    pub(super) fn clear(&self) -> Result<(), BackupError> {
        let entries = walk::entries(&self.fd).map_err(BackupError::io("listing", &self.path))?;
        for (name, kind) in entries {
            let Some(text) = name.to_str() else { continue };
            let partial = text.strip_prefix(PARTIAL).or(text.strip_prefix(VERIFY));
            if kind != FileType::Directory || !partial.is_some_and(is_dated) {
                continue;
            }
            let Ok(left) = beneath::open_dir(&self.fd, &name) else {
                continue;
            };
            // A verification holds the lock of its own.
            if rustix::fs::flock(&left, FlockOperation::NonBlockingLockExclusive).is_ok() {
                remove_tree(&self.fd, &name, &self.path)?;
            }
        }
        Ok(())
    }

    /// Makes a directory for a new backup; tells its name, and the name that it gets at the end.
    pub(super) fn make_partial(
        &self,
        now: Timestamp,
    ) -> Result<(OwnedFd, String, String), BackupError> {
        let base = now.to_basic();
        let taken = |name: &str| {
            rustix::fs::accessat(
                &self.fd,
                name,
                rustix::fs::Access::EXISTS,
                rustix::fs::AtFlags::empty(),
            )
            .is_ok()
        };
        let name = std::iter::once(base.clone())
            .chain((2_u32..).map(|number| format!("{base}-{number}")))
            .find(|name| !taken(name))
            .unwrap_or(base);
        let partial = format!("{PARTIAL}{name}");
        Ok((self.make_dir(&partial)?, partial, name))
    }

    /// Makes a locked directory to verify a backup in; tells its name.
    pub(super) fn make_scratch(&self, now: Timestamp) -> Result<(OwnedFd, String), BackupError> {
        let random = uuid::Uuid::new_v4().simple().to_string();
        let name = format!("{VERIFY}{}-{random}", now.to_basic());
        let fd = self.make_dir(&name)?;
        rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive)
            .map_err(BackupError::io("locking", self.path.join(&name)))?;
        Ok((fd, name))
    }

    fn make_dir(&self, name: &str) -> Result<OwnedFd, BackupError> {
        rustix::fs::mkdirat(&self.fd, name, Mode::RWXU)
            .and_then(|()| beneath::open_dir(&self.fd, Path::new(name)))
            .map_err(BackupError::io("making", self.path.join(name)))
    }

    pub(super) fn remove_own(&self, name: &str) -> Result<(), BackupError> {
        Ok(remove_tree(&self.fd, Path::new(name), &self.path)?)
    }
}

/// Reports that a name begins with a time as [`Timestamp::to_basic`] writes it, and goes on with nothing that is hidden.
pub(super) fn is_dated(name: &str) -> bool {
    let bytes = name.as_bytes();
    let digits = |range: std::ops::Range<usize>| {
        bytes
            .get(range)
            .is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    digits(0..8)
        && bytes.get(8) == Some(&b'T')
        && digits(9..15)
        && bytes.get(15) == Some(&b'Z')
        && bytes
            .get(16)
            .is_none_or(|&byte| byte == b'-' || byte == b'.')
}

/// A backup in the data directory would be lost with it, and would grow by itself.
fn refuse_inside(path: &Path, data_dir: &Path) -> Result<(), BackupError> {
    let absolute = std::path::absolute(path).map_err(BackupError::io("finding", path))?;
    // A path that does not exist yet is below one that does.
    let known = absolute
        .ancestors()
        .find_map(|above| std::fs::canonicalize(above).ok());
    let known = known.unwrap_or(absolute);
    match known.ancestors().any(|above| is_same(above, data_dir)) {
        true => Err(BackupError::RefusedDirectory {
            path: path.to_owned(),
            detail: "it lies in the data directory, and would be lost with it; use another disk or machine".to_owned(),
        }),
        false => Ok(()),
    }
}

pub(super) fn is_same(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino()));
    matches!((id(a), id(b)), (Ok(a), Ok(b)) if a == b)
}

/// Opens the head of the backup in `dir`.
pub(super) fn open_head(dir: &OwnedFd) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    beneath::open(dir, Path::new(HEAD), flags, Mode::empty()).map(File::from)
}
