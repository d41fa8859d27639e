//! Making a backup.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags};
use sha2::{Digest as _, Sha256};

use super::copying::Copying;
use super::directory::Directory;
use super::keys::{Keys, ManifestDigests};
use super::lines::LineWriter;
use super::manifest::{DatabaseHead, FORMAT, HEAD, Head, KeyHead, LINES, LeftOut, MAC};
use super::read::{Backup, Trust};
use super::settings_files::SettingsFiles;
use super::{BackupError, ROOTS, Watch};
use crate::home::beneath;
use crate::ids::Timestamp;

/// Progress of a backup, a restore or a verification.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Directory that is being copied, such as `users/alice`.
    pub section: String,
    /// Entries so far.
    pub entries: u64,
    /// Bytes that were read so far.
    pub bytes: u64,
}

/// The installation that is backed up.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The data directory.
    pub data_dir: PathBuf,
    /// Identity of the installation.
    pub instance: String,
    /// The database and its copy.
    pub database: DatabaseHead,
    /// Where the master key is.
    pub key_file: String,
    /// Keys that are derived from it.
    pub keys: Arc<Keys>,
    /// Files of agents that are sealed.
    pub settings: SettingsFiles,
    /// Release that makes the backup.
    pub release: String,
}

/// A backup that was made.
#[derive(Debug, Clone)]
pub struct Made {
    /// Its folder; `None` when it was streamed.
    pub path: Option<PathBuf>,
    /// Its head.
    pub head: Head,
}

/// Where a backup is written.
pub(super) enum Target {
    Folder {
        directory: Directory,
        top: OwnedFd,
        partial: String,
        name: String,
        before: Option<Box<Backup>>,
    },
    Stream {
        tar: tar::Builder<Box<dyn Write + Send>>,
        /// Holds the copy of the database and the lines.
        scratch: PathBuf,
    },
}

/// A backup that is being made. Dropped before [`Making::finish`], it leaves nothing that looks like one.
pub struct Making {
    target: Target,
    started_at: Timestamp,
    done: bool,
}

impl Making {
    /// Begins a backup in a folder of `directory`, which shares unchanged files with the newest one of `instance` there if its manifest
    /// has a MAC of these keys: what another manifest says of files is not believed.
    ///
    /// # Errors
    /// [`BackupError::Busy`], [`BackupError::Io`].
    pub fn in_folder(
        directory: Directory,
        instance: &str,
        keys: &Keys,
        now: Timestamp,
    ) -> Result<Self, BackupError> {
        directory.lock()?;
        directory.clear()?;
        let mut kept = directory.list()?;
        kept.retain(|kept| kept.head.instance == instance && kept.head.started_at <= now);
        let before = kept.pop();
        let before = before.and_then(|kept| Backup::open(&directory.path().join(kept.name)).ok());
        let before = before.filter(|before| {
            let trust = before.trust(Some(keys));
            matches!(trust, Ok(Trust::Authentic)) && before.check_lines().is_ok()
        });
        let before = before.map(Box::new);
        let (top, partial, name) = directory.make_partial(now)?;
        Ok(Self {
            target: Target::Folder {
                directory,
                top,
                partial,
                name,
                before,
            },
            started_at: now,
            done: false,
        })
    }

    /// Begins a backup that is written as a tar stream. `scratch` is an empty directory of the caller's, for the copy of the
    /// database.
    pub fn in_stream(out: Box<dyn Write + Send>, scratch: &Path, now: Timestamp) -> Self {
        Self {
            target: Target::Stream {
                tar: tar::Builder::new(out),
                scratch: scratch.to_owned(),
            },
            started_at: now,
            done: false,
        }
    }

    /// The directory that the copy of the database is to be made in, before [`Making::copy_files`].
    pub fn database_dir(&self) -> PathBuf {
        match &self.target {
            Target::Folder {
                directory, partial, ..
            } => directory.path().join(partial),
            Target::Stream { scratch, .. } => scratch.clone(),
        }
    }

    /// Copies everything and completes the backup.
    ///
    /// # Errors
    /// [`BackupError::Stopped`] when `watch` says so, [`BackupError::Io`].
    pub fn finish(
        mut self,
        origin: &Origin,
        now: impl FnOnce() -> Timestamp,
        watch: Watch<'_>,
    ) -> Result<Made, BackupError> {
        let place = self.database_dir();
        let lines = match &self.target {
            Target::Folder { top, .. } => create(top, Path::new(LINES)),
            Target::Stream { scratch, .. } => File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .open(scratch.join(LINES)),
        };
        let lines = lines.map_err(BackupError::io("writing", place.join(LINES)))?;
        let data = rustix::fs::openat(
            CWD,
            &origin.data_dir,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        );
        let data = data.map_err(BackupError::io("opening", &origin.data_dir))?;
        let mut copying = Copying {
            target: &mut self.target,
            keys: &origin.keys,
            settings: &origin.settings,
            lines: LineWriter::new(lines),
            sections: Vec::new(),
            left_out: LeftOut::default(),
            bytes: 0,
            shared: 0,
            before: HashMap::new(),
            before_is_older_than: 0,
            names: HashMap::new(),
            progress: Progress::default(),
            watch,
        };
        copying.database(&origin.database.file, &place)?;
        for root in ROOTS {
            copying.root(&data, root)?;
        }
        let Copying {
            lines,
            sections,
            left_out,
            bytes,
            shared,
            ..
        } = copying;
        let entries = lines.lines;
        let (lines, digest_of_lines) = lines
            .end()
            .map_err(BackupError::io("writing", place.join(LINES)))?;
        let head = Head {
            format: FORMAT,
            agentyard: origin.release.clone(),
            instance: origin.instance.clone(),
            database: origin.database.clone(),
            key: KeyHead {
                fingerprint: origin.keys.fingerprint().to_owned(),
                file: origin.key_file.clone(),
            },
            service_user: (
                rustix::process::geteuid().as_raw(),
                rustix::process::getegid().as_raw(),
            ),
            started_at: self.started_at,
            finished_at: now(),
            entries,
            bytes,
            shared,
            left_out,
            lines_sha256: hex::encode(digest_of_lines),
            sections,
        };
        let path = self
            .publish(&head, lines, digest_of_lines, &origin.keys)
            .map_err(BackupError::io("completing", place))?;
        Ok(Made { path, head })
    }

    /// Writes MAC and head, and gives the backup its name.
    fn publish(
        &mut self,
        head: &Head,
        mut lines: File,
        digest_of_lines: [u8; 32],
        keys: &Keys,
    ) -> io::Result<Option<PathBuf>> {
        let text = serde_json::to_vec_pretty(head)?;
        let digests = ManifestDigests::new(Sha256::digest(&text).into(), digest_of_lines);
        let mac = keys.mac(&digests);
        let path = match &mut self.target {
            Target::Folder {
                directory,
                top,
                partial,
                name,
                ..
            } => {
                create(top, Path::new(MAC))?.write_all(mac.as_bytes())?;
                // One syncfs is as safe as an fsync per file and does not take minutes.
                rustix::fs::syncfs(&*top)?;
                crate::fault::point("backup.before_head");
                let mut file = create(top, Path::new(HEAD))?;
                file.write_all(&text)?;
                file.sync_all()?;
                rustix::fs::fsync(&*top)?;
                crate::fault::point("backup.before_rename");
                rustix::fs::renameat(
                    &directory.fd,
                    partial.as_str(),
                    &directory.fd,
                    name.as_str(),
                )?;
                rustix::fs::fsync(&directory.fd)?;
                Some(directory.path().join(name.as_str()))
            }
            Target::Stream { tar, .. } => {
                lines.rewind()?;
                let length = lines.metadata()?.len();
                let mut header = tar_header(tar::EntryType::Regular, length, self.started_at);
                tar.append_data(&mut header, LINES, &mut lines)?;
                for (name, bytes) in [(MAC, mac.as_bytes()), (HEAD, &text)] {
                    let length = bytes.len() as u64;
                    let mut header = tar_header(tar::EntryType::Regular, length, self.started_at);
                    tar.append_data(&mut header, name, bytes)?;
                }
                tar.finish()?;
                tar.get_mut().flush()?;
                None
            }
        };
        self.done = true;
        Ok(path)
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        if let (
            false,
            Target::Folder {
                directory, partial, ..
            },
        ) = (self.done, &self.target)
        {
            // The next backup removes the rest.
            let _ = directory.remove_own(partial);
        }
    }
}

pub(super) fn tar_header(kind: tar::EntryType, size: u64, at: Timestamp) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(if kind == tar::EntryType::Directory {
        0o700
    } else {
        0o600
    });
    header.set_mtime(u64::try_from(at.as_secs()).unwrap_or(0));
    header
}

/// Makes a private file in a directory.
pub(super) fn create(dir: &OwnedFd, name: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let fd = beneath::open(dir, name, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(File::from(fd))
}
