//! Ownership markers: small JSON files in `<root>/.owners/`, out of the agent's reach.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::archive::Skipped;
use super::seed::Seed;
use crate::ids::Uid;

/// Longest marker that is read.
const LIMIT: u64 = 1 << 20;

/// Whose a directory is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marker {
    /// The account.
    pub uid: Uid,
    /// Archives only: the directory is a complete, verified copy, so the original may go.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copied: bool,
    /// Archives only: what could not be copied.
    #[serde(default, skip_serializing_if = "Skipped::is_empty")]
    pub skipped: Skipped,
    /// Archives only: bytes that the directory took on the disk, as last measured before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Live directories only: whether the image's own home was copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<Seed>,
}

impl Marker {
    pub(super) fn of(uid: &Uid) -> Self {
        Self {
            uid: uid.clone(),
            copied: false,
            skipped: Skipped::default(),
            bytes: None,
            seed: None,
        }
    }
}

/// Reads a marker; `None` when there is none. An unreadable one is an error, not an absence.
pub(super) fn read(owners: impl AsFd, name: &str) -> io::Result<Option<Marker>> {
    let Some(content) = read_file(owners, name)? else {
        return Ok(None);
    };
    serde_json::from_slice(&content)
        .map(Some)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Writes a marker so that it is there completely or not at all, even after a loss of power.
pub(super) fn write(owners: impl AsFd, name: &str, marker: &Marker) -> io::Result<()> {
    let mut content = serde_json::to_vec(marker)?;
    content.push(b'\n');
    write_file(owners, name, &content)
}

/// Removes a marker; one that is not there is removed already.
pub(super) fn remove(owners: impl AsFd, name: &str) -> io::Result<()> {
    match rustix::fs::unlinkat(owners.as_fd(), name, AtFlags::empty()) {
        Ok(()) => Ok(rustix::fs::fsync(owners.as_fd())?),
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Reads a small file of ours that lies directly in `dir`.
pub(super) fn read_file(dir: impl AsFd, name: &str) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    match rustix::fs::openat(dir.as_fd(), name, flags, Mode::empty()) {
        Ok(fd) => {
            let mut content = Vec::new();
            File::from(fd).take(LIMIT).read_to_end(&mut content)?;
            Ok(Some(content))
        }
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Two threads that write the same marker would rename each other's temporary file away.
static WRITING: Mutex<()> = Mutex::new(());

/// The temporary name of a file of ours. Fixed, so that a crash leaves at most one and the next
/// write takes it over.
pub(super) fn temporary_name(name: &str) -> String {
    format!(".{name}.tmp")
}

/// Writes a small file of ours directly in `dir`: temporary file, fsync, rename, fsync.
pub(super) fn write_file(dir: impl AsFd, name: &str, content: &[u8]) -> io::Result<()> {
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let temporary = temporary_name(name);
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mode = Mode::RUSR | Mode::WUSR;
    let mut file = File::from(rustix::fs::openat(
        dir.as_fd(),
        temporary.as_str(),
        flags,
        mode,
    )?);
    file.write_all(content)?;
    file.sync_all()?;
    rustix::fs::renameat(dir.as_fd(), temporary.as_str(), dir.as_fd(), name)?;
    Ok(rustix::fs::fsync(dir.as_fd())?)
}
