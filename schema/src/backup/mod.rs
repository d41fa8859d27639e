//! Backups: what is at rest, copied while the service runs.
//!
//! ```text
//! <DIR>/20261127T195003Z/manifest.json      head, written last: a folder without it is no backup
//! <DIR>/20261127T195003Z/manifest.jsonl     a line for each entry, with its digest
//! <DIR>/20261127T195003Z/manifest.mac       MAC of both, by a key that is derived from the master key
//! <DIR>/20261127T195003Z/database.sqlite    or database.pgdump
//! <DIR>/20261127T195003Z/users/…            files of users, under their names, with mode 0600
//! <DIR>/20261127T195003Z/archive/…  skills/…
//! <DIR>/.partial-20261127T195003Z/          one that is being made; the next one removes it unless a process holds it
//! ```
//!
//! Users' files are hostile: directories are opened by handles and without following links, what is read is bounded by the size
//! that a file had when it was opened, and links, owners and modes are in the manifest only. A file that did not change since the
//! backup before is a hard link to the copy in that one, never to the live file. The master key is not in a backup; settings files
//! of agents, which hold secrets, are sealed under a key that is derived from it.
//!
//! A backup may lie where others write. A restore makes entries below its target only, whatever the manifest says: directories
//! are opened beneath a handle, hard links lead to files that the same restore has made. Contents are as good as the manifest,
//! which [`Backup::trust`] checks.
//!
//! All functions block; callers on async threads use `spawn_blocking`.

mod allowed;
mod checked;
mod content;
mod copied_file;
mod copying;
mod directory;
#[cfg(test)]
mod directory_tests;
#[cfg(test)]
mod hostile_tests;
mod keys;
mod lines;
mod link;
mod make;
mod manifest;
mod place;
mod placing;
mod read;
#[cfg(test)]
mod sealing_tests;
mod settings_files;
#[cfg(test)]
mod tests;
mod verify;

use std::io;
use std::path::{Path, PathBuf};

use crate::home::HomeError;

pub use allowed::{Allowed, DIRECTORY_BEFORE, Permission, check_allowed, name_flag};
pub use directory::{Directory, Kept};
pub use keys::Keys;
pub use lines::parse_manifest;
pub use make::{Made, Making, Origin, Progress};
pub use manifest::{
    DatabaseHead, EntryKind, FORMAT, HEAD, Head, KeyHead, LINES, LeftOut, Line, MAC, Section,
    escape, unescape,
};
pub use place::{Owners, Placed, SealedFiles, Selection};
pub use read::{Backup, Trust};
pub use settings_files::SettingsFiles;
pub use verify::Difference;

/// Directories of the data directory that are backed up; each may be missing.
pub const ROOTS: [&str; 4] = ["skills", "skill-repositories", "users", "archive"];

/// Receives the progress of work under way; false ends it.
pub type Watch<'a> = &'a mut (dyn FnMut(&Progress) -> bool + Send);

/// Failures of backups.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The folder is not a complete backup, or its manifest is damaged.
    #[error("{} is not a backup that can be used: {detail}", path.display())]
    NotABackup {
        /// The folder.
        path: PathBuf,
        /// The fault.
        detail: String,
    },
    /// Backups must not be kept in this directory.
    #[error("backups cannot be kept in {}: {detail}", path.display())]
    RefusedDirectory {
        /// The directory.
        path: PathBuf,
        /// Reason and remedy.
        detail: String,
    },
    /// Another process makes a backup in the directory.
    #[error("another backup to {} is in progress; repeat the command when it has ended", .0.display())]
    Busy(PathBuf),
    /// The caller ended it.
    #[error("the backup was interrupted; what was copied is removed")]
    Stopped,
    /// The backup has no such entry.
    #[error("{0} is not in the backup; its manifest.jsonl lists all entries")]
    NoEntry(String),
    /// A directory of users or archives cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The operating system refused.
    #[error("{action} {} failed", path.display())]
    Io {
        /// The step that failed.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl BackupError {
    /// Describes a failed call.
    pub(crate) fn io<E: Into<io::Error>>(
        action: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(E) -> Self {
        let path = path.as_ref().to_owned();
        move |error| Self::Io {
            action,
            path,
            source: error.into(),
        }
    }
}
