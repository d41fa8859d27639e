//! How much space a user's workspace takes.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::error::HomeError;
use super::user_home::UserHome;
use super::walk::{Entry, Visit, walk};
use super::{WORKSPACE_DIR, beneath};

/// Most entries that one walk counts.
const MOST_ENTRIES: u64 = 5_000_000;
/// Of so many files with several names it is remembered that they were counted: some 10 MB. Those beyond count once for each
/// name, so that nobody hides what is taken.
const MOST_LINKED: usize = 200_000;
/// The unit of `st_blocks`, whatever the block size of the file system.
const BLOCK: u64 = 512;

/// What a walk through a workspace has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measured {
    /// Bytes that everything in it takes on the disk: of a sparse file only what is allocated, of one with several names its
    /// space once.
    pub bytes: u64,
    /// Regular files, one with several names once.
    pub files: u64,
    /// Directories that could not be read, and what is in them is not counted.
    pub unreadable: u64,
    /// The walk stopped early: there were too many entries, or it was not to go on.
    pub stopped: bool,
}

impl Measured {
    /// Whether everything was counted; else the numbers are a lower bound.
    pub fn is_complete(&self) -> bool {
        !self.stopped && self.unreadable == 0
    }
}

impl UserHome {
    /// Measures the workspace, in bounded memory and without following links; `None` when there is none. `goes_on` is asked at each
    /// entry, and ends the walk.
    ///
    /// Nothing is changed. What vanishes meanwhile is not counted, and a directory that cannot be read is left out.
    ///
    /// # Errors
    /// [`HomeError::Io`]; also when somebody moves a directory while the walk is in it: another walk may have more luck.
    pub fn measure(&self, goes_on: impl Fn() -> bool) -> Result<Option<Measured>, HomeError> {
        self.measure_at_most(MOST_ENTRIES, goes_on)
    }

    pub(super) fn measure_at_most(
        &self,
        most: u64,
        goes_on: impl Fn() -> bool,
    ) -> Result<Option<Measured>, HomeError> {
        const ACTION: &str = "measuring";
        let path = self.path().join(WORKSPACE_DIR);
        let top = match beneath::open_dir(self.dir(), Path::new(WORKSPACE_DIR)) {
            Ok(top) => top,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(HomeError::io(ACTION, path)(errno)),
        };
        let mut measuring = Measuring {
            measured: Measured::default(),
            left: most,
            linked: HashSet::new(),
            goes_on,
        };
        walk([top], &mut measuring, ACTION, &path)?;
        Ok(Some(measuring.measured))
    }
}

struct Measuring<F> {
    measured: Measured,
    /// Entries that may still be counted.
    left: u64,
    /// Files with several names that were counted.
    linked: HashSet<(u64, u64)>,
    goes_on: F,
}

impl<F> Measuring<F> {
    fn count(&mut self, stat: &Stat) {
        let kind = FileType::from_raw_mode(stat.st_mode);
        // A directory has several links and one name.
        if kind != FileType::Directory && stat.st_nlink > 1 && self.was_counted(stat) {
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

impl<F: Fn() -> bool> Visit<1> for Measuring<F> {
    fn entry(
        &mut self,
        [at]: &[OwnedFd; 1],
        entry: &Entry<'_>,
    ) -> io::Result<Option<[OwnedFd; 1]>> {
        if self.left == 0 || !(self.goes_on)() {
            self.measured.stopped = true;
            return Ok(None);
        }
        self.left -= 1;
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
            Ok((directory, stat)) => {
                self.count(&stat);
                Ok(directory.map(|directory| [directory]))
            }
            // Gone, or something else by now.
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => Ok(None),
            Err(Errno::ACCESS | Errno::PERM) => {
                self.measured.unreadable += 1;
                Ok(None)
            }
            Err(errno) => Err(errno.into()),
        }
    }

    fn is_done(&self) -> bool {
        self.measured.stopped
    }
}

/// Opens a directory whose entries can be inspected, and which can be left again: a service that is not root may be allowed to list
/// one and no more.
pub(super) fn open_searchable(at: &OwnedFd, name: &Path) -> rustix::io::Result<OwnedFd> {
    let directory = beneath::open_dir(at, name)?;
    rustix::fs::statat(&directory, ".", AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(directory)
}
