//! Bringing entries of a backup to a directory.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::checked::{Checked, copy_checked};
use super::keys::Keys;
use super::lines::Lines;
use super::manifest::{EntryKind, Line, escape, unescape};
use super::placing::Placing;
use super::read::Backup;
use super::{BackupError, Watch};

/// Most damaged files that are named.
const MOST_NAMED: usize = 20;

/// The entries that are wanted.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Their common path in the backup: an entry and all in it, or everything for an empty one.
    pub under: PathBuf,
    /// The path that `under` gets; empty: what is in `under` is placed without it.
    pub to: PathBuf,
}

impl Selection {
    /// Everything but the database.
    pub fn all() -> Self {
        Self {
            under: PathBuf::new(),
            to: PathBuf::new(),
        }
    }

    fn place_of(&self, path: &Path) -> Option<PathBuf> {
        let rest = path.strip_prefix(&self.under).ok()?;
        Some(match rest.as_os_str().is_empty() {
            true => self.to.clone(),
            false => self.to.join(rest),
        })
    }
}

/// To whom restored entries belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owners {
    /// To whom the originals belonged, as far as this process may.
    Originals,
    /// To this user and group.
    One(u32, u32),
    /// To the user that this process runs as.
    Caller,
}

/// Treatment of sealed settings files of agents.
#[derive(Debug, Clone, Copy)]
pub enum SealedFiles<'a> {
    /// They are opened with these keys.
    Open(&'a Keys),
    /// They are left out, and named.
    LeaveOut,
    /// They are copied as they are.
    Keep,
}

/// Counts of restored and damaged entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placed {
    /// Files, directories and links.
    pub entries: u64,
    /// Bytes in files.
    pub bytes: u64,
    /// Files that are missing in the backup, or whose content is not that of the manifest, and lines that are refused; they were
    /// left out.
    pub damaged: u64,
    /// The first of them, with what is wrong.
    pub damaged_names: Vec<String>,
    /// Sealed files that were left out because the key is missing.
    pub sealed: u64,
    /// The first of them.
    pub sealed_names: Vec<String>,
    /// Kind of the selected entry itself.
    pub kind: Option<EntryKind>,
}

impl Placed {
    pub(super) fn push_damaged(&mut self, path: &Path, why: &str) {
        self.damaged += 1;
        if self.damaged_names.len() < MOST_NAMED {
            self.damaged_names.push(format!("{}: {why}", escape(path)));
        }
    }

    pub(super) fn push_sealed(&mut self, path: &Path) {
        self.sealed += 1;
        if self.sealed_names.len() < MOST_NAMED {
            self.sealed_names.push(escape(path));
        }
    }
}

impl Backup {
    /// Restores the selected entries into the directory `to`, in which they must not exist yet. Digests are compared while
    /// contents are copied; damaged files, and lines that are not of a backup, are left out and named. Set-uid, set-gid and sticky
    /// bits are not restored. Nothing outside of `to` is changed, whatever the manifest says.
    ///
    /// # Errors
    /// [`BackupError::NoEntry`] when nothing is selected, [`BackupError::Stopped`], [`BackupError::Io`].
    pub fn place(
        &self,
        selection: &Selection,
        to: &OwnedFd,
        owners: Owners,
        sealed: SealedFiles<'_>,
        watch: Watch<'_>,
    ) -> Result<Placed, BackupError> {
        self.check_lines()?;
        let top = rustix::io::fcntl_dupfd_cloexec(to, 0);
        let top = top.map_err(BackupError::io("opening", &selection.to))?;
        let mut placing = Placing::new(self, top, owners, sealed, watch);
        for line in self.lines_under(&selection.under)? {
            placing.expect_link_to(&line?);
        }
        let mut found = selection.under.as_os_str().is_empty();
        for line in self.lines_under(&selection.under)? {
            let line = line?;
            let path = line.to_path();
            if line.path == self.head.database.file {
                continue;
            }
            let Some(place) = selection.place_of(&path) else {
                continue;
            };
            if path == selection.under {
                found = true;
                placing.placed.kind = Some(line.kind);
            }
            if place.as_os_str().is_empty() {
                // The directory that is there.
                continue;
            }
            let first = line.same_as.as_deref().map(unescape);
            let link_to = first.and_then(|path| Some((selection.place_of(&path)?, path)));
            placing.line(&line, &path, &place, link_to)?;
        }
        match found {
            true => Ok(placing.placed),
            false => Err(BackupError::NoEntry(escape(&selection.under))),
        }
    }

    /// The lines of the section that a path is in.
    pub(super) fn lines_under(&self, path: &Path) -> Result<Lines, BackupError> {
        let names: PathBuf = path.components().take(2).collect();
        let known = self
            .head
            .sections
            .iter()
            .any(|section| section.path == escape(&names));
        match known && names.components().count() == 2 {
            true => self.lines_of(&names),
            false => self.lines(),
        }
    }

    /// Copies the copy, or dump, of the database to the new file `name` in `to`, which is for this process's user only.
    ///
    /// # Errors
    /// [`BackupError::NotABackup`] when it is damaged; then there is no such file.
    pub fn place_database(&self, to: &OwnedFd, name: &Path) -> Result<Line, BackupError> {
        let file = &self.head.database.file;
        let damaged = |detail: &str| BackupError::NotABackup {
            path: self.database_path(),
            detail: format!("{detail}; use an older backup"),
        };
        let line = self.lines_of(Path::new(file))?.next();
        let line = line.ok_or_else(|| damaged("the manifest does not list it"))??;
        let from = self.open_file(Path::new(file));
        let from = from.map_err(BackupError::io("opening", self.database_path()))?;
        let copied = copy_checked(&from, &line, to, name, &mut |_| true)
            .map_err(BackupError::io("copying", self.database_path()))?;
        match copied {
            Checked::Whole(copy) => {
                copy.sync_all().map_err(BackupError::io("saving", name))?;
                Ok(line)
            }
            Checked::Damaged(why) => Err(damaged(why)),
            Checked::Stopped => Err(BackupError::Stopped),
        }
    }
}
