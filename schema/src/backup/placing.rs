//! Placing the entries of a backup, one line after the other.
//!
//! A line may be hostile: what it asks for beyond an entry below the target is refused, and the line is named.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, Uid};
use rustix::io::Errno;

use super::checked::{Checked, copy_checked, open_checked};
use super::copying::key_of;
use super::link::{FileId, id_of, link_beneath};
use super::manifest::{EntryKind, Line, unescape};
use super::place::{Owners, Placed, SealedFiles};
use super::read::Backup;
use super::{BackupError, Progress, ROOTS, Watch};
use crate::home::beneath;

/// Of so many files with several names it is remembered that this restore has made them: some 100 MB. Other names of further ones
/// get copies.
const MOST_LINKED: usize = 1_000_000;

pub(super) struct Placing<'a> {
    backup: &'a Backup,
    top: OwnedFd,
    /// The directory of the entry before.
    parent: Option<(PathBuf, OwnedFd)>,
    owners: Owners,
    sealed: SealedFiles<'a>,
    /// Files that other lines name as the same, by the digests of their paths.
    expected: HashSet<[u8; 16]>,
    /// Those of them that this restore has made.
    made: HashMap<[u8; 16], MadeFile>,
    pub(super) placed: Placed,
    progress: Progress,
    watch: Watch<'a>,
}

/// A file that this restore has made.
struct MadeFile {
    id: FileId,
    sha256: Option<String>,
}

/// Outcome of one line.
enum Done {
    Placed,
    /// It was named already.
    LeftOut,
}

/// Reason for which a line is left out, or what ends the restore.
enum Refused {
    Line(&'static str),
    Fatal(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        let errno = Errno::from_io_error(&error);
        match errno {
            Some(Errno::EXIST) => {
                Self::Line("refused: something was restored to this path already")
            }
            Some(Errno::LOOP | Errno::NOTDIR) => {
                Self::Line("refused: a directory of its path is a link or a file in the backup")
            }
            Some(Errno::INVAL | Errno::NOENT | Errno::ISDIR) => {
                Self::Line("refused: its path or target is not one of a file")
            }
            Some(Errno::NAMETOOLONG) => Self::Line("its name is too long for the target"),
            Some(Errno::FBIG | Errno::OVERFLOW) => Self::Line("it is too large for the target"),
            _ => Self::Fatal(error),
        }
    }
}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Self {
        io::Error::from(errno).into()
    }
}

impl<'a> Placing<'a> {
    pub(super) fn new(
        backup: &'a Backup,
        top: OwnedFd,
        owners: Owners,
        sealed: SealedFiles<'a>,
        watch: Watch<'a>,
    ) -> Self {
        Self {
            backup,
            top,
            parent: None,
            owners,
            sealed,
            expected: HashSet::new(),
            made: HashMap::new(),
            placed: Placed::default(),
            progress: Progress::default(),
            watch,
        }
    }

    /// Notes that a line names another file as the same.
    pub(super) fn expect_link_to(&mut self, line: &Line) {
        if let Some(first) = &line.same_as
            && self.expected.len() < MOST_LINKED
        {
            self.expected.insert(key_of(&unescape(first)));
        }
    }

    /// Places the entry of a line. `link_to`: place and path of the file that it is another name of.
    pub(super) fn line(
        &mut self,
        line: &Line,
        path: &Path,
        place: &Path,
        link_to: Option<(PathBuf, PathBuf)>,
    ) -> Result<(), BackupError> {
        let done = match find_problem(line, path) {
            Some(problem) => Err(Refused::Line(problem)),
            None => match line.kind {
                EntryKind::Dir => self.directory(line, place),
                EntryKind::Link => self.link(line, place),
                EntryKind::File => self.file(line, path, place, link_to),
            },
        };
        match done {
            Ok(Done::Placed) => self.placed.entries += 1,
            Ok(Done::LeftOut) => {}
            Err(Refused::Line(why)) => self.placed.push_damaged(path, why),
            Err(Refused::Fatal(error)) => return Err(BackupError::io("restoring", place)(error)),
        }
        self.progress.entries += 1;
        match (self.watch)(&self.progress) {
            true => Ok(()),
            false => Err(BackupError::Stopped),
        }
    }

    fn directory(&mut self, line: &Line, place: &Path) -> Result<Done, Refused> {
        let dir = self.dir_at(place)?;
        self.imitate(&dir, line)?;
        Ok(Done::Placed)
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
    fn parent<'p>(&mut self, place: &'p Path) -> io::Result<(OwnedFd, &'p Path)> {
        let parent = place.parent().unwrap_or(Path::new(""));
        let name = Path::new(place.file_name().unwrap_or_default());
        let known = self.parent.take().filter(|(known, _)| known == parent);
        let known = match known {
            Some(known) => known,
            None => (parent.to_owned(), self.dir_at(parent)?),
        };
        Ok((self.parent.insert(known).1.try_clone()?, name))
    }

    fn file(
        &mut self,
        line: &Line,
        path: &Path,
        place: &Path,
        link_to: Option<(PathBuf, PathBuf)>,
    ) -> Result<Done, Refused> {
        let (to, name) = self.parent(place)?;
        let first = link_to.filter(|(_, first)| is_same_section(first, path));
        if let Some((first_place, first)) = &first
            && let Some(made) = self.made.get(&key_of(first))
            && made.sha256 == line.sha256
            && link_beneath(&self.top, first_place, Some(made.id), &to, name).is_ok()
        {
            return Ok(Done::Placed);
        }
        let from = match self.backup.open_file(path) {
            Ok(from) => from,
            Err(errno) => {
                let why = io::Error::from(errno).to_string();
                self.placed.push_damaged(path, &why);
                return Ok(Done::LeftOut);
            }
        };
        let copied = match (line.sealed, self.sealed) {
            (true, SealedFiles::LeaveOut) => {
                self.placed.push_sealed(path);
                return Ok(Done::LeftOut);
            }
            (true, SealedFiles::Open(keys)) => open_checked(&from, line, keys, &to, name)?,
            _ => self.copy(&from, line, &to, name)?,
        };
        match copied {
            Checked::Whole(copy) => {
                self.imitate(&copy, line)?;
                self.placed.bytes = self.placed.bytes.saturating_add(line.size);
                self.remember(&copy, line, path, first.as_ref())?;
                Ok(Done::Placed)
            }
            Checked::Damaged(why) => Err(Refused::Line(why)),
            Checked::Stopped => Ok(Done::LeftOut),
        }
    }

    fn copy(&mut self, from: &File, line: &Line, to: &OwnedFd, name: &Path) -> io::Result<Checked> {
        let (progress, watch) = (&mut self.progress, &mut self.watch);
        copy_checked(from, line, to, name, &mut |read| {
            progress.bytes = progress.bytes.saturating_add(read);
            watch(progress)
        })
    }

    /// Notes a file that other lines may name as the same.
    fn remember(
        &mut self,
        copy: &File,
        line: &Line,
        path: &Path,
        first: Option<&(PathBuf, PathBuf)>,
    ) -> io::Result<()> {
        let key = key_of(path);
        if !self.expected.contains(&key) || first.is_some() || line.sealed {
            return Ok(());
        }
        let made = MadeFile {
            id: id_of(&rustix::fs::fstat(copy)?),
            sha256: line.sha256.clone(),
        };
        self.made.insert(key, made);
        Ok(())
    }

    fn link(&mut self, line: &Line, place: &Path) -> Result<Done, Refused> {
        let owner = self.owner(line);
        let (to, name) = self.parent(place)?;
        let target = line.target.as_deref().map(unescape).unwrap_or_default();
        rustix::fs::symlinkat(&target, &to, name)?;
        if let Some((user, group)) = owner {
            let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            tolerate(rustix::fs::chownat(&to, name, user, group, flags))?;
        }
        rustix::fs::utimensat(&to, name, &line.times(), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(Done::Placed)
    }

    fn owner(&self, line: &Line) -> Option<(u32, u32)> {
        match self.owners {
            Owners::Originals => Some((line.uid, line.gid)),
            Owners::One(user, group) => Some((user, group)),
            Owners::Caller => None,
        }
    }

    /// Gives an entry owner, mode and times of its line, without set-uid, set-gid and sticky bits.
    fn imitate(&self, entry: &impl std::os::fd::AsFd, line: &Line) -> io::Result<()> {
        if let Some((user, group)) = self.owner(line) {
            let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
            tolerate(rustix::fs::fchown(entry, user, group))?;
        }
        rustix::fs::fchmod(entry, Mode::from_raw_mode(line.mode_bits() & 0o777))?;
        Ok(rustix::fs::futimens(entry, &line.times())?)
    }
}

/// Something in a line that no backup has.
fn find_problem(line: &Line, path: &Path) -> Option<&'static str> {
    if !beneath::is_plain(path) || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Some("refused: its path leaves the target");
    }
    let mut parts = path.components();
    let root = parts.next().and_then(|part| part.as_os_str().to_str());
    if !root.is_some_and(|root| ROOTS.contains(&root)) {
        return Some("refused: it lies in no directory that is backed up");
    }
    if parts.next().is_none() && line.kind != EntryKind::Dir {
        return Some("refused: a directory of the installation is another kind of entry");
    }
    if line.uid == u32::MAX || line.gid == u32::MAX {
        return Some("refused: its owner is no user");
    }
    None
}

/// Files of two homes or archives are never the same.
fn is_same_section(first: &Path, path: &Path) -> bool {
    first.components().take(2).eq(path.components().take(2))
}

/// A process that is not root gives nothing away, and keeps what it may read.
fn tolerate(given: rustix::io::Result<()>) -> rustix::io::Result<()> {
    match given {
        Err(Errno::PERM) => Ok(()),
        given => given,
    }
}
