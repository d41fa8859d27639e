//! Space that a user's directory takes: all that the agent can write there.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::error::HomeError;
use super::hard_links::has_names;
use super::user_home::UserHome;
use super::walk::{Entry, Visit, Walk};
use super::{beneath, temporary};

const ACTION: &str = "measuring";
/// Most entries that one walk counts.
const MOST_ENTRIES: u64 = 5_000_000;
/// Most directories in each other: of each on the way something is kept, some 4 MB for so many.
const DEEPEST: u64 = 100_000;
/// Of so many files with several names it is remembered that they were counted: some 10 MB. Those beyond count once for each
/// name, so that nobody hides what is taken.
const MOST_LINKED: usize = 200_000;
/// The unit of `st_blocks`, whatever the block size of the file system.
const BLOCK: u64 = 512;

/// Counts of a walk through a directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measured {
    /// Bytes that everything in it takes on the disk: of a sparse file only what is allocated, of one with several names its
    /// space once.
    pub bytes: u64,
    /// Regular files, one with several names once.
    pub files: u64,
    /// Entries that were inspected.
    pub entries: u64,
    /// Directories that could not be read or lie too deep: what is in them is not counted.
    pub unreadable: u64,
    /// The walk stopped early: there were too many entries.
    pub stopped: bool,
}

impl Measured {
    /// Whether everything was counted; else the numbers are a lower bound.
    pub fn is_complete(&self) -> bool {
        !self.stopped && self.unreadable == 0
    }
}

/// What came of a piece of a walk.
#[derive(Debug)]
pub enum Walked {
    /// There is no directory.
    Missing,
    /// It has come to its end.
    Done(Measured),
    /// It can go on.
    Paused(Box<Measurement>),
}

/// A walk through a directory that has begun. It holds one open directory, twice.
pub struct Measurement {
    walk: Walk<1>,
    count: Count,
    path: PathBuf,
}

impl fmt::Debug for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Measurement")
            .field("path", &self.path)
            .field("measured", &self.count.measured)
            .finish_non_exhaustive()
    }
}

impl UserHome {
    /// Measures everything in the directory, in bounded memory and without following links. `goes_on` is asked at each entry, and interrupts the walk.
    ///
    /// Nothing is changed, but for files that a service which was killed has left on their way to their names: these are removed. What
    /// vanishes meanwhile is not counted, and a directory that cannot be read is left out.
    ///
    /// # Errors
    /// [`HomeError::Io`]; also when somebody moves a directory while the walk is in it: another walk may have more luck.
    pub fn measure(&self, goes_on: impl Fn() -> bool) -> Result<Walked, HomeError> {
        self.measure_within(Bounds::default(), goes_on)
    }

    pub(super) fn measure_within(
        &self,
        bounds: Bounds,
        goes_on: impl Fn() -> bool,
    ) -> Result<Walked, HomeError> {
        let path = self.path().to_owned();
        // Another handle: the walk leaves it.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::openat(self.dir(), ".", flags, Mode::empty());
        let top = top.map_err(HomeError::io(ACTION, &path))?;
        let measurement = Measurement {
            walk: Walk::begin([top]).map_err(HomeError::io(ACTION, &path))?,
            count: Count {
                measured: Measured::default(),
                bounds,
                depth: 0,
                linked: HashSet::new(),
            },
            path,
        };
        measurement.go_on(goes_on)
    }
}

impl Measurement {
    /// Goes on where the walk was interrupted.
    ///
    /// # Errors
    /// As [`UserHome::measure`].
    pub fn go_on(mut self, goes_on: impl Fn() -> bool) -> Result<Walked, HomeError> {
        let mut measuring = Measuring {
            count: &mut self.count,
            goes_on,
        };
        let ended = self.walk.go_on(&mut measuring, ACTION, &self.path)?;
        let measured = self.count.measured;
        match ended || measured.stopped {
            true => Ok(Walked::Done(measured)),
            false => Ok(Walked::Paused(Box::new(self))),
        }
    }
}

/// How far a walk goes.
pub(super) struct Bounds {
    /// Most entries that are counted.
    pub entries: u64,
    /// Most directories in each other.
    pub depth: u64,
    /// The time, by which what was left is told apart from what is being written.
    pub now: i64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            entries: MOST_ENTRIES,
            depth: DEEPEST,
            now: temporary::now(),
        }
    }
}

struct Count {
    measured: Measured,
    bounds: Bounds,
    /// Directories between the top and where the walk is.
    depth: u64,
    /// Files with several names that were counted.
    linked: HashSet<(u64, u64)>,
}

struct Measuring<'a, F> {
    count: &'a mut Count,
    goes_on: F,
}

impl Count {
    fn add(&mut self, stat: &Stat) {
        let kind = FileType::from_raw_mode(stat.st_mode);
        if has_names(stat) && self.was_counted(stat) {
            return;
        }
        let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
        let bytes = blocks.saturating_mul(BLOCK);
        self.measured.bytes = self.measured.bytes.saturating_add(bytes);
        self.measured.files += u64::from(kind == FileType::RegularFile);
    }

    fn was_counted(&mut self, stat: &Stat) -> bool {
        let file = (stat.st_dev, stat.st_ino);
        match self.linked.len() < MOST_LINKED {
            true => !self.linked.insert(file),
            false => self.linked.contains(&file),
        }
    }
}

impl<F: Fn() -> bool> Visit<1> for Measuring<'_, F> {
    fn entry(
        &mut self,
        [at]: &[OwnedFd; 1],
        entry: &Entry<'_>,
    ) -> io::Result<Option<[OwnedFd; 1]>> {
        let measured = &mut self.count.measured;
        if measured.entries == self.count.bounds.entries {
            measured.stopped = true;
            return Ok(None);
        }
        measured.entries += 1;
        let seen = match entry.kind {
            FileType::Directory => open_searchable(at, entry.name).map(Some),
            _ => Ok(None),
        };
        let inspected = seen.and_then(|directory| {
            let stat = match &directory {
                Some(directory) => rustix::fs::fstat(directory),
                None => rustix::fs::statat(at, entry.name, AtFlags::SYMLINK_NOFOLLOW),
            };
            Ok((directory, stat?))
        });
        match inspected {
            Ok((_, stat)) if is_left(entry, &stat, self.count.bounds.now) => {
                // The next walk has another try.
                let _ = rustix::fs::unlinkat(at, entry.name, AtFlags::empty());
                Ok(None)
            }
            Ok((directory, stat)) => {
                self.count.add(&stat);
                if directory.is_some() && self.count.depth == self.count.bounds.depth {
                    self.count.measured.unreadable += 1;
                    return Ok(None);
                }
                self.count.depth += u64::from(directory.is_some());
                Ok(directory.map(|directory| [directory]))
            }
            // Gone, or something else by now.
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => Ok(None),
            Err(Errno::ACCESS | Errno::PERM) => {
                self.count.measured.unreadable += 1;
                Ok(None)
            }
            Err(errno) => Err(errno.into()),
        }
    }

    fn leave(&mut self, _at: &[OwnedFd; 1]) -> io::Result<()> {
        self.count.depth = self.count.depth.saturating_sub(1);
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.count.measured.stopped || !(self.goes_on)()
    }
}

/// Whether a service that was killed has left it.
fn is_left(entry: &Entry<'_>, stat: &Stat, now: i64) -> bool {
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    is_file && temporary::is_left(entry.name.as_os_str().as_bytes(), stat, now)
}

/// Opens a directory whose entries can be inspected, and which can be left again: a service that is not root may be allowed to list
/// one and no more.
pub(super) fn open_searchable(at: &OwnedFd, name: &Path) -> rustix::io::Result<OwnedFd> {
    let directory = beneath::open_dir(at, name)?;
    rustix::fs::statat(&directory, ".", AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(directory)
}
