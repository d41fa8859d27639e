//! Reading a backup.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::BackupError;
use super::directory::{is_dated, open_head};
use super::keys::{Keys, ManifestDigests};
use super::lines::{self, Lines};
use super::manifest::{self, Head, LINES, MAC, escape};
use crate::home::beneath;
use crate::secrets::MasterKey;

/// A complete backup, held open.
#[derive(Debug)]
pub struct Backup {
    dir: OwnedFd,
    path: PathBuf,
    /// SHA-256 of the bytes of the head.
    digest: [u8; 32],
    /// Its head.
    pub head: Head,
}

/// Longest file of a MAC that is read.
const LONGEST_MAC: u64 = 100;

/// Result of checking the MAC of a manifest: only the holder of the master key can make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// This installation made the manifest, and it was not changed.
    Authentic,
    /// There is no MAC: an earlier release made the backup, or the MAC was removed.
    NoMac,
    /// The manifest names another master key.
    OtherKey,
    /// There is no key to check it with.
    NoKey,
    /// The MAC is not that of the manifest: one of them was changed.
    Changed,
}

impl Backup {
    /// Opens the backup in a folder.
    ///
    /// # Errors
    /// [`BackupError::NotABackup`].
    pub fn open(path: &Path) -> Result<Self, BackupError> {
        let not_one = |detail: String| BackupError::NotABackup {
            path: path.to_owned(),
            detail,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(CWD, path, flags, Mode::empty())
            .map_err(|errno| not_one(std::io::Error::from(errno).to_string()))?;
        let head = open_head(&dir).map_err(|errno| {
            not_one(format!(
                "it has no {} that can be read, so it was not completed ({})",
                manifest::HEAD,
                std::io::Error::from(errno)
            ))
        })?;
        let text = manifest::read_head(head, path)?;
        let head = manifest::parse_head(&text, path)?;
        let path = std::path::absolute(path).map_err(BackupError::io("finding", path))?;
        let digest = Sha256::digest(&text).into();
        Ok(Self {
            dir,
            path,
            digest,
            head,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the name of its folder is a time, and not that of the manifest: a folder that was unpacked from a stream may
    /// have any other name.
    pub fn names_another_time(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        is_dated(&name) && !name.starts_with(&self.head.started_at.to_basic())
    }

    pub(super) fn dir(&self) -> &OwnedFd {
        &self.dir
    }

    pub(super) fn open_file(&self, path: &Path) -> rustix::io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        beneath::open(&self.dir, path, flags, Mode::empty()).map(File::from)
    }

    /// Compares the list of entries with its digest in the head.
    ///
    /// # Errors
    /// [`BackupError::NotABackup`] when it was changed.
    pub fn check_lines(&self) -> Result<(), BackupError> {
        let read = || lines::digest_of_lines(self.open_file(Path::new(LINES))?);
        let digest = read().map_err(BackupError::io("reading", self.path.join(LINES)))?;
        match digest == self.head.lines_sha256 {
            true => Ok(()),
            false => Err(BackupError::NotABackup {
                path: self.path.clone(),
                detail: format!("its {LINES} was changed or is damaged; use an older backup"),
            }),
        }
    }

    /// Checks the MAC of head and lines. The lines are those that [`Backup::check_lines`] accepts.
    ///
    /// # Errors
    /// When the MAC cannot be read.
    pub fn trust(&self, keys: Option<&Keys>) -> Result<Trust, BackupError> {
        let file = match self.open_file(Path::new(MAC)) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Trust::NoMac),
            Err(errno) => return Err(BackupError::io("reading", self.path.join(MAC))(errno)),
        };
        let mut mac = Vec::new();
        let read = file.take(LONGEST_MAC).read_to_end(&mut mac);
        read.map_err(BackupError::io("reading", self.path.join(MAC)))?;
        let Some(keys) = keys else {
            return Ok(Trust::NoKey);
        };
        let mut lines = [0; 32];
        let is_mac = hex::decode_to_slice(&self.head.lines_sha256, &mut lines).is_ok()
            && keys.is_mac(&ManifestDigests::new(self.digest, lines), &mac);
        Ok(match is_mac {
            true => Trust::Authentic,
            false if self.head.key.fingerprint != keys.fingerprint() => Trust::OtherKey,
            false => Trust::Changed,
        })
    }

    /// All entries.
    ///
    /// # Errors
    /// When the list cannot be opened.
    pub fn lines(&self) -> Result<Lines, BackupError> {
        self.lines_at(0, self.head.entries)
    }

    /// The entries of a section; none when there is no such section.
    pub(super) fn lines_of(&self, section: &Path) -> Result<Lines, BackupError> {
        let path = escape(section);
        let found = self.head.sections.iter().find(|known| known.path == path);
        let (offset, lines) = found.map_or((0, 0), |found| (found.offset, found.lines));
        self.lines_at(offset, lines)
    }

    fn lines_at(&self, offset: u64, lines: u64) -> Result<Lines, BackupError> {
        let failed = || BackupError::io("reading", self.path.join(LINES));
        let file = self
            .open_file(Path::new(LINES))
            .map_err(std::io::Error::from);
        let file = file.map_err(failed())?;
        Lines::new(file, &self.path, offset, lines).map_err(failed())
    }

    /// Reports that an entry is listed.
    ///
    /// # Errors
    /// When the list is damaged.
    pub fn has(&self, path: &Path) -> Result<bool, BackupError> {
        // Without a slash at the end.
        let path: PathBuf = path.components().collect();
        let escaped = escape(&path);
        for line in self.lines_under(&path)? {
            if line?.path == escaped {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reports that this is the master key that the backup needs.
    pub fn is_key(&self, key: &MasterKey) -> bool {
        key.fingerprint() == self.head.key.fingerprint
    }

    /// Path of the copy, or dump, of the database.
    pub fn database_path(&self) -> PathBuf {
        self.path.join(&self.head.database.file)
    }
}
