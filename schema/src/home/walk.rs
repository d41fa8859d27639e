//! Going through a tree of any depth and width in bounded memory.
//!
//! Nothing is kept of an entry that was seen. Of each directory on the way its identity is kept and how far its listing
//! was read; the way back is `..`, which must lead to that directory. So one directory of each tree is open at a time, no
//! path is longer than a name, and nothing recurses.

use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::error::HomeError;

/// Most bytes of a path that is shown.
const SHOWN: usize = 4096;

/// What is done on the way through `N` trees side by side, of which the first is listed.
pub(super) trait Visit<const N: usize> {
    /// A directory is shown once more after what is in it.
    const AGAIN: bool = false;

    /// Sees an entry of the first directory; gives the directories of that name when what is in it is to be seen, too.
    fn entry(&mut self, at: &[OwnedFd; N], entry: &Entry<'_>) -> io::Result<Option<[OwnedFd; N]>>;

    /// Everything in a directory was seen.
    fn leave(&mut self, _at: &[OwnedFd; N]) -> io::Result<()> {
        Ok(())
    }

    /// Nothing more is to be seen.
    fn is_done(&self) -> bool {
        false
    }
}

/// An entry of a directory.
pub(super) struct Entry<'a> {
    pub(super) name: &'a Path,
    pub(super) kind: FileType,
    trail: &'a Trail,
}

impl Entry<'_> {
    /// The path from the top, for people.
    pub(super) fn path(&self) -> PathBuf {
        self.trail.path.join(self.name)
    }
}

/// The way from the top to where the walk is, as far as it is shown.
#[derive(Default)]
struct Trail {
    path: PathBuf,
    /// Levels that are not shown any more.
    hidden: usize,
}

impl Trail {
    fn push(&mut self, name: &Path) {
        if self.hidden > 0 || self.path.as_os_str().len() + name.as_os_str().len() > SHOWN {
            self.hidden += 1;
        } else {
            self.path.push(name);
        }
    }

    fn pop(&mut self) {
        match self.hidden.checked_sub(1) {
            Some(hidden) => self.hidden = hidden,
            None => {
                self.path.pop();
            }
        }
    }
}

/// A directory on the way.
struct Level<const N: usize> {
    ids: [(u64, u64); N],
    /// Where its listing goes on.
    next: i64,
}

/// Goes through everything below `top`. `action` and `shown`, the path of the first tree, are for messages.
pub(super) fn walk<const N: usize>(
    top: [OwnedFd; N],
    visit: &mut impl Visit<N>,
    action: &'static str,
    shown: &Path,
) -> Result<(), HomeError> {
    let mut walk = Walk::begin(top).map_err(HomeError::io(action, shown))?;
    walk.go_on(visit, action, shown).map(drop)
}

/// A walk that can be interrupted.
pub(super) struct Walk<const N: usize> {
    /// Where it is.
    dirs: [OwnedFd; N],
    listing: Dir,
    /// Where the entry begins that comes next.
    place: i64,
    /// The directories above.
    levels: Vec<Level<N>>,
    trail: Trail,
}

impl<const N: usize> Walk<N> {
    /// Begins at `top`.
    pub(super) fn begin(top: [OwnedFd; N]) -> io::Result<Self> {
        Ok(Self {
            listing: Dir::read_from(&top[0])?,
            dirs: top,
            place: 0,
            levels: Vec::new(),
            trail: Trail::default(),
        })
    }

    /// Goes on until everything was seen, which it says, or `visit` wants to see no more.
    pub(super) fn go_on(
        &mut self,
        visit: &mut impl Visit<N>,
        action: &'static str,
        shown: &Path,
    ) -> Result<bool, HomeError> {
        self.steps(visit).map_err(|error| {
            let path = match self.trail.path.as_os_str().is_empty() {
                true => shown.to_owned(),
                false => shown.join(&self.trail.path),
            };
            HomeError::io(action, path)(error)
        })
    }

    fn steps<V: Visit<N>>(&mut self, visit: &mut V) -> io::Result<bool> {
        while !visit.is_done() {
            if let Some(entry) = self.listing.read() {
                let entry = entry?;
                let begin = std::mem::replace(&mut self.place, entry.offset());
                let name = Path::new(OsStr::from_bytes(entry.file_name().to_bytes()));
                if name == Path::new(".") || name == Path::new("..") {
                    continue;
                }
                let Some(kind) = kind_of(&self.dirs[0], &entry)? else {
                    continue;
                };
                let trail = &self.trail;
                let seen = Entry { name, kind, trail };
                if let Some(children) = visit.entry(&self.dirs, &seen)? {
                    self.levels.push(Level {
                        ids: ids(&self.dirs)?,
                        next: if V::AGAIN { begin } else { self.place },
                    });
                    self.trail.push(name);
                    self.dirs = children;
                    self.listing = Dir::read_from(&self.dirs[0])?;
                    self.place = 0;
                }
                continue;
            }
            let Some(level) = self.levels.pop() else {
                visit.leave(&self.dirs)?;
                return Ok(true);
            };
            // Before it is left: what it is left with may let nobody through.
            let parents = parents(&self.dirs)?;
            if ids(&parents)? != level.ids {
                return Err(io::Error::other("a directory was moved meanwhile"));
            }
            visit.leave(&self.dirs)?;
            self.trail.pop();
            self.dirs = parents;
            self.listing = Dir::read_from(&self.dirs[0])?;
            self.listing.seek(level.next)?;
            self.place = level.next;
        }
        Ok(false)
    }
}

/// The type of an entry, which some file systems do not list; `None` when it is gone.
fn kind_of(dir: &OwnedFd, entry: &DirEntry) -> rustix::io::Result<Option<FileType>> {
    match entry.file_type() {
        FileType::Unknown => {
            match rustix::fs::statat(dir.as_fd(), entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
                Err(Errno::NOENT) => Ok(None),
                Err(errno) => Err(errno),
            }
        }
        kind => Ok(Some(kind)),
    }
}

fn ids<const N: usize>(dirs: &[OwnedFd; N]) -> rustix::io::Result<[(u64, u64); N]> {
    let mut ids = [(0, 0); N];
    for (id, dir) in ids.iter_mut().zip(dirs) {
        let stat = rustix::fs::fstat(dir)?;
        *id = (stat.st_dev, stat.st_ino);
    }
    Ok(ids)
}

fn parents<const N: usize>(dirs: &[OwnedFd; N]) -> io::Result<[OwnedFd; N]> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = dirs
        .iter()
        .map(|dir| rustix::fs::openat(dir, "..", flags, Mode::empty()));
    let opened: Vec<OwnedFd> = opened.collect::<Result<_, _>>()?;
    opened
        .try_into()
        .map_err(|_| io::Error::other("as many parents as directories"))
}

/// The entries of an open directory that has few, with their types.
pub(crate) fn entries(dir: &OwnedFd) -> rustix::io::Result<Vec<(PathBuf, FileType)>> {
    let mut found = Vec::new();
    for_each(dir, |name, kind| found.push((name.to_owned(), kind)))?;
    Ok(found)
}

/// Calls `see` with each entry of an open directory and its type, `.` and `..` left out.
pub(crate) fn for_each(
    dir: &OwnedFd,
    mut see: impl FnMut(&Path, FileType),
) -> rustix::io::Result<()> {
    for_each_until(dir, |name, kind| {
        see(name, kind);
        ControlFlow::Continue(())
    })
}

/// The same, until `see` has seen enough.
pub(super) fn for_each_until(
    dir: &OwnedFd,
    mut see: impl FnMut(&Path, FileType) -> ControlFlow<()>,
) -> rustix::io::Result<()> {
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = Path::new(OsStr::from_bytes(entry.file_name().to_bytes()));
        if name == Path::new(".") || name == Path::new("..") {
            continue;
        }
        if let Some(kind) = kind_of(dir, &entry)?
            && see(name, kind).is_break()
        {
            break;
        }
    }
    Ok(())
}
