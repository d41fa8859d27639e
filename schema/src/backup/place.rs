//! Bringing entries of a backup to a directory.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use super::content::{self, CopyError};
use super::manifest::{EntryKind, Line, escape, unescape};
use super::read::Backup;
use super::{BackupError, Progress, Watch};
use crate::home::beneath;

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
    /// To this user and group; permission bits beyond reading, writing and executing are dropped.
    One(u32, u32),
    /// To the user that this process runs as; the same of permission bits.
    Caller,
}

/// Counts of restored and damaged entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placed {
    /// Files, directories and links.
    pub entries: u64,
    /// Bytes in files.
    pub bytes: u64,
    /// Files that are missing in the backup, or whose content is not that of the manifest; they were left out.
    pub damaged: u64,
    /// The first of them, with what is wrong.
    pub damaged_names: Vec<String>,
    /// Kind of the selected entry itself.
    pub kind: Option<EntryKind>,
}

impl Placed {
    fn push_damaged(&mut self, path: &Path, why: &str) {
        self.damaged += 1;
        if self.damaged_names.len() < MOST_NAMED {
            self.damaged_names.push(format!("{}: {why}", escape(path)));
        }
    }
}

impl Backup {
    /// Restores the selected entries into the directory `to`, in which they must not exist yet. Digests are compared while
    /// contents are copied; damaged files are left out.
    ///
    /// # Errors
    /// [`BackupError::NoEntry`] when nothing is selected, [`BackupError::Stopped`], [`BackupError::Io`].
    pub fn place(
        &self,
        selection: &Selection,
        to: &OwnedFd,
        owners: Owners,
        watch: Watch<'_>,
    ) -> Result<Placed, BackupError> {
        self.check_lines()?;
        let top = rustix::io::fcntl_dupfd_cloexec(to, 0);
        let mut placing = Placing {
            backup: self,
            top: top.map_err(BackupError::io("opening", &selection.to))?,
            parent: None,
            owners,
            placed: Placed::default(),
            progress: Progress::default(),
            watch,
        };
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
            let link_to = line.same_as.as_deref().map(unescape);
            let link_to = link_to.and_then(|path| selection.place_of(&path));
            placing.line(&line, &path, &place, link_to.as_deref())?;
        }
        match found {
            true => Ok(placing.placed),
            false => Err(BackupError::NoEntry(escape(&selection.under))),
        }
    }

    /// The lines of the section that a path is in.
    pub(super) fn lines_under(&self, path: &Path) -> Result<super::manifest::Lines, BackupError> {
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

enum Checked {
    Whole(File),
    Damaged(&'static str),
    Stopped,
}

/// Copies a file whose digest is known; a copy that is not whole is removed.
fn copy_checked(
    from: &File,
    line: &Line,
    to: &OwnedFd,
    name: &Path,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> io::Result<Checked> {
    let stat = rustix::fs::fstat(from)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(Checked::Damaged("not a file in the backup"));
    }
    if content::size_of(&stat) != line.size {
        return Ok(Checked::Damaged("its size is not that of the manifest"));
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let copy = File::from(beneath::open(to, name, flags, Mode::RUSR | Mode::WUSR)?);
    if line.sparse {
        copy.set_len(line.size)?;
    }
    let write = |offset: u64, block: &[u8]| copy.write_all_at(block, offset);
    let copied = content::copy(from, line.size, line.sparse, write, go_on);
    let outcome = match copied {
        Ok((size, digest)) if size == line.size && line.sha256 == Some(hex::encode(digest)) => {
            return Ok(Checked::Whole(copy));
        }
        Ok(_) => Checked::Damaged("its content is not that of the manifest"),
        Err(CopyError::Read(_)) => Checked::Damaged("it cannot be read in the backup"),
        Err(CopyError::Stopped) => Checked::Stopped,
        Err(CopyError::Write(error)) => return Err(error),
    };
    rustix::fs::unlinkat(to, name, AtFlags::empty())?;
    Ok(outcome)
}

struct Placing<'a> {
    backup: &'a Backup,
    top: OwnedFd,
    /// The directory of the entry before.
    parent: Option<(PathBuf, OwnedFd)>,
    owners: Owners,
    placed: Placed,
    progress: Progress,
    watch: Watch<'a>,
}

impl Placing<'_> {
    fn line(
        &mut self,
        line: &Line,
        path: &Path,
        place: &Path,
        link_to: Option<&Path>,
    ) -> Result<(), BackupError> {
        let failed = || BackupError::io("restoring", place);
        let done = match line.kind {
            EntryKind::Dir => {
                let dir = self.dir_at(place).map_err(failed())?;
                self.imitate(&dir, line).map_err(failed())?;
                true
            }
            EntryKind::Link => {
                self.link(line, place).map_err(failed())?;
                true
            }
            EntryKind::File => self.file(line, path, place, link_to)?,
        };
        self.placed.entries += u64::from(done);
        self.progress.entries += 1;
        match (self.watch)(&self.progress) {
            true => Ok(()),
            false => Err(BackupError::Stopped),
        }
    }

    /// Opens a directory below the top, making what is missing of it.
    fn dir_at(&mut self, place: &Path) -> io::Result<OwnedFd> {
        let mut dir = rustix::io::fcntl_dupfd_cloexec(&self.top, 0)?;
        for name in place.components() {
            let name = Path::new(name.as_os_str());
            dir = match beneath::open_dir(&dir, name) {
                Err(Errno::NOENT) => {
                    rustix::fs::mkdirat(&dir, name, Mode::RWXU)?;
                    beneath::open_dir(&dir, name)?
                }
                opened => opened?,
            };
        }
        Ok(dir)
    }

    /// The directory of an entry, and its name there.
    fn parent<'p>(&mut self, place: &'p Path) -> io::Result<(&OwnedFd, &'p Path)> {
        let parent = place.parent().unwrap_or(Path::new(""));
        let name = Path::new(place.file_name().unwrap_or_default());
        let known = self.parent.take().filter(|(known, _)| known == parent);
        let known = match known {
            Some(known) => known,
            None => (parent.to_owned(), self.dir_at(parent)?),
        };
        Ok((&self.parent.insert(known).1, name))
    }

    fn file(
        &mut self,
        line: &Line,
        path: &Path,
        place: &Path,
        link_to: Option<&Path>,
    ) -> Result<bool, BackupError> {
        let failed = || BackupError::io("restoring", place);
        let top = self.top.try_clone().map_err(failed())?;
        if let Some(first) = link_to.filter(|first| beneath::is_plain(first)) {
            let (to, name) = self.parent(place).map_err(failed())?;
            if rustix::fs::linkat(&top, first, to, name, AtFlags::empty()).is_ok() {
                return Ok(true);
            }
        }
        let from = match self.backup.open_file(path) {
            Ok(from) => from,
            Err(errno) => {
                let why = io::Error::from(errno).to_string();
                self.placed.push_damaged(path, &why);
                return Ok(false);
            }
        };
        let mut progress = std::mem::take(&mut self.progress);
        let (to, name) = {
            let (to, name) = self.parent(place).map_err(failed())?;
            (to.try_clone().map_err(failed())?, name)
        };
        let watch = &mut self.watch;
        let copied = copy_checked(&from, line, &to, name, &mut |read| {
            progress.bytes += read;
            watch(&progress)
        });
        self.progress = progress;
        match copied.map_err(failed())? {
            Checked::Whole(copy) => {
                self.imitate(&copy, line).map_err(failed())?;
                self.placed.bytes += line.size;
                Ok(true)
            }
            Checked::Damaged(why) => {
                self.placed.push_damaged(path, why);
                Ok(false)
            }
            Checked::Stopped => Err(BackupError::Stopped),
        }
    }

    fn link(&mut self, line: &Line, place: &Path) -> io::Result<()> {
        let owner = self.owner(line);
        let (to, name) = self.parent(place)?;
        let target = line.target.as_deref().map(unescape).unwrap_or_default();
        rustix::fs::symlinkat(&target, to, name)?;
        if let Some((user, group)) = owner {
            let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
            tolerate(rustix::fs::chownat(
                to,
                name,
                user,
                group,
                AtFlags::SYMLINK_NOFOLLOW,
            ))?;
        }
        let times = times(line);
        Ok(rustix::fs::utimensat(
            to,
            name,
            &times,
            AtFlags::SYMLINK_NOFOLLOW,
        )?)
    }

    fn owner(&self, line: &Line) -> Option<(u32, u32)> {
        match self.owners {
            Owners::Originals => Some((line.uid, line.gid)),
            Owners::One(user, group) => Some((user, group)),
            Owners::Caller => None,
        }
    }

    /// Gives an entry owner, mode and times of its line.
    fn imitate(&self, entry: &impl std::os::fd::AsFd, line: &Line) -> io::Result<()> {
        if let Some((user, group)) = self.owner(line) {
            let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
            tolerate(rustix::fs::fchown(entry, user, group))?;
        }
        let kept = match self.owners {
            Owners::Originals => 0o7777,
            Owners::One(..) | Owners::Caller => 0o777,
        };
        // After the owner: changing that takes set-uid bits away.
        rustix::fs::fchmod(entry, Mode::from_raw_mode(line.mode_bits() & kept))?;
        Ok(rustix::fs::futimens(entry, &times(line))?)
    }
}

/// A process that is not root gives nothing away, and keeps what it may read.
fn tolerate(given: rustix::io::Result<()>) -> rustix::io::Result<()> {
    match given {
        Err(Errno::PERM) => Ok(()),
        given => given,
    }
}

fn times(line: &Line) -> Timestamps {
    let at = Timespec {
        tv_sec: line.mtime.0,
        tv_nsec: line.mtime.1,
    };
    Timestamps {
        last_access: at,
        last_modification: at,
    }
}
