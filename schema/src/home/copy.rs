//! A verified copy of a tree to another file system.
//!
//! Owners, modes and times are kept (as far as a service may that is not root), links stay links,
//! holes stay holes; fifos, sockets and devices are skipped and reported. Nothing is followed.
//! Afterwards the copy was compared with the original by SHA-256 and is on disk.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps, Uid as UnixUid,
};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::archive::Skipped;
use super::beneath;
use super::error::HomeError;
use super::hard_links::{HardLinks, has_names};
use super::walk::{Entry, Visit, for_each, walk};

const BLOCK: usize = 64 * 1024;
/// Of so many files with several names it is remembered that they were compared: some 10 MB.
const MOST_COMPARED: usize = 200_000;

/// Copies the directory `source` (shown as `path`) to the new directory `name` in `target`.
pub(super) fn copy_verified(
    source: &OwnedFd,
    path: &Path,
    target: &OwnedFd,
    name: &Path,
) -> Result<Skipped, HomeError> {
    let copy = rustix::fs::mkdirat(target, name, Mode::RWXU)
        .and_then(|()| beneath::open_dir(target, name))
        .map_err(HomeError::io("creating", name))?;
    let both = || {
        let again = |dir| rustix::io::fcntl_dupfd_cloexec(dir, 0);
        let again = again(source).and_then(|source| Ok([source, again(&copy)?]));
        again.map_err(HomeError::io("copying", path))
    };
    let mut copying = Copying {
        skipped: Skipped::default(),
        links: HardLinks::of(&copy).map_err(HomeError::io("copying", path))?,
    };
    walk(both()?, &mut copying, "copying", path)?;
    copying.links.end(name)?;
    if let Some(detail) = differs(both()?, path)? {
        return Err(HomeError::CopyDiffers {
            path: path.to_owned(),
            detail,
        });
    }
    walk(both()?, &mut Finishing, "copying", path)?;
    // One syncfs is as safe as an fsync per file and does not take minutes.
    rustix::fs::syncfs(&copy).map_err(HomeError::io("saving", name))?;
    Ok(copying.skipped)
}

/// Copies contents.
struct Copying {
    skipped: Skipped,
    links: HardLinks,
}

impl Copying {
    fn copy_file(&mut self, from: &OwnedFd, to: &OwnedFd, name: &Path) -> io::Result<()> {
        let original = open_file(from, name)?;
        let stat = rustix::fs::fstat(&original)?;
        if self.links.link(&stat, to, name)? {
            return Ok(());
        }
        imitate(copy_content(&original, &stat, to, name)?, &stat)?;
        self.links.add(&stat, to, name)
    }
}

impl Visit<2> for Copying {
    fn entry(
        &mut self,
        [from, to]: &[OwnedFd; 2],
        entry: &Entry<'_>,
    ) -> io::Result<Option<[OwnedFd; 2]>> {
        let name = entry.name;
        match entry.kind {
            FileType::Directory => {
                rustix::fs::mkdirat(to, name, Mode::RWXU)?;
                // The agent may have taken the permissions away.
                let original = beneath::open_dir_unlocked(from, name, Mode::RUSR | Mode::XUSR)?;
                return Ok(Some([original, beneath::open_dir(to, name)?]));
            }
            FileType::RegularFile => self.copy_file(from, to, name)?,
            FileType::Symlink => copy_link(from, to, name)?,
            _ => self.skipped.push(&entry.path()),
        }
        Ok(None)
    }
}

/// Gives owners, modes and times. They come last and deepest first: writing into a directory changes its time, and what
/// was made unreadable could not be verified.
struct Finishing;

impl Visit<2> for Finishing {
    fn entry(
        &mut self,
        [from, to]: &[OwnedFd; 2],
        entry: &Entry<'_>,
    ) -> io::Result<Option<[OwnedFd; 2]>> {
        let name = entry.name;
        match entry.kind {
            FileType::Directory => open_both([from, to], name).map(Some),
            FileType::RegularFile => {
                let stat = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
                imitate(open_file(to, name)?, &stat)?;
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn leave(&mut self, [from, to]: &[OwnedFd; 2]) -> io::Result<()> {
        Ok(imitate(to, &rustix::fs::fstat(from)?)?)
    }
}

/// Compares two trees: `None` when every directory, file and link of the first is in the second with the
/// same content and nothing else is there; otherwise what differs. Owners, modes and times are not
/// inspected.
pub(super) fn differs(both: [OwnedFd; 2], path: &Path) -> Result<Option<String>, HomeError> {
    let mut comparison = Comparison {
        detail: None,
        compared: HashSet::new(),
    };
    let begun = comparison.enter(&both, || PathBuf::from("the top"));
    begun.map_err(HomeError::io("verifying", path))?;
    walk(both, &mut comparison, "verifying", path)?;
    Ok(comparison.detail)
}

struct Comparison {
    /// What differs.
    detail: Option<String>,
    /// Files with several names that are the same, each with its copy.
    compared: HashSet<[(u64, u64); 2]>,
}

impl Comparison {
    /// Whether two files have the same content. One with several names is read once.
    fn is_same(&mut self, original: &File, copy: &File) -> io::Result<bool> {
        let [stat, of_copy] = [rustix::fs::fstat(original)?, rustix::fs::fstat(copy)?];
        let both = [(stat.st_dev, stat.st_ino), (of_copy.st_dev, of_copy.st_ino)];
        if self.compared.contains(&both) {
            return Ok(true);
        }
        let same = digest(original)? == digest(copy)?;
        if same && has_names(&stat) && self.compared.len() < MOST_COMPARED {
            self.compared.insert(both);
        }
        Ok(same)
    }

    /// Counts what a directory has; its entries are compared one by one.
    fn enter(
        &mut self,
        [from, to]: &[OwnedFd; 2],
        path: impl FnOnce() -> PathBuf,
    ) -> io::Result<()> {
        let (mut originals, mut copies) = (0_u64, 0_u64);
        for_each(from, |_, kind| originals += u64::from(is_kept(kind)))?;
        for_each(to, |_, _| copies += 1)?;
        if originals != copies {
            self.detail = Some(format!("{:?} has other entries", path()));
        }
        Ok(())
    }
}

/// What has a copy.
fn is_kept(kind: FileType) -> bool {
    matches!(
        kind,
        FileType::Directory | FileType::RegularFile | FileType::Symlink
    )
}

impl Visit<2> for Comparison {
    fn entry(
        &mut self,
        [from, to]: &[OwnedFd; 2],
        entry: &Entry<'_>,
    ) -> io::Result<Option<[OwnedFd; 2]>> {
        let name = entry.name;
        if !is_kept(entry.kind) {
            return Ok(None);
        }
        let copied = match rustix::fs::statat(to, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => None,
            stat => Some(FileType::from_raw_mode(stat?.st_mode)),
        };
        if copied != Some(entry.kind) {
            let detail = format!("{:?} is not there", entry.path());
            self.detail = Some(detail);
            return Ok(None);
        }
        let same = match entry.kind {
            FileType::RegularFile => {
                self.is_same(&open_file(from, name)?, &open_file(to, name)?)?
            }
            FileType::Symlink => {
                let goal = |dir| rustix::fs::readlinkat(dir, name, Vec::new());
                goal(from)? == goal(to)?
            }
            _ => {
                let both = open_both([from, to], name)?;
                self.enter(&both, || entry.path())?;
                return Ok(Some(both));
            }
        };
        if !same {
            self.detail = Some(format!("{:?} has other content", entry.path()));
        }
        Ok(None)
    }

    fn is_done(&self) -> bool {
        self.detail.is_some()
    }
}

/// Opens the directory of this name in both trees.
fn open_both(dirs: [&OwnedFd; 2], name: &Path) -> io::Result<[OwnedFd; 2]> {
    let [from, to] = dirs;
    Ok([beneath::open_dir(from, name)?, beneath::open_dir(to, name)?])
}

fn open_file(dir: &OwnedFd, name: &Path) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let fd = match beneath::open(dir, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            beneath::make_usable(dir, name, Mode::RUSR | Mode::WUSR)?;
            beneath::open(dir, name, flags, Mode::empty())?
        }
        outcome => outcome?,
    };
    // It may have been swapped for something else since it was listed.
    let stat = rustix::fs::fstat(&fd)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(File::from(fd)),
        _ => Err(Errno::INVAL),
    }
}

/// Makes the file `name` with the content of another one, of which the system said `stat`; holes stay holes.
pub(super) fn copy_content(
    original: &File,
    stat: &Stat,
    to: &OwnedFd,
    name: &Path,
) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let copy = File::from(beneath::open(to, name, flags, Mode::RUSR | Mode::WUSR)?);
    copy.set_len(u64::try_from(stat.st_size).unwrap_or(0))?;
    for_each_block(original, |offset, block| copy.write_all_at(block, offset))?;
    Ok(copy)
}

/// Makes a link like the one of this name in `from`; what the system said of that one.
pub(super) fn make_link(from: &OwnedFd, to: &OwnedFd, name: &Path) -> io::Result<Stat> {
    let goal = rustix::fs::readlinkat(from, name, Vec::new())?;
    let stat = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
    rustix::fs::symlinkat(goal.as_c_str(), to, name)?;
    Ok(stat)
}

fn copy_link(from: &OwnedFd, to: &OwnedFd, name: &Path) -> io::Result<()> {
    let stat = make_link(from, to, name)?;
    give(
        |user, group| {
            rustix::fs::chownat(to, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)
        },
        &stat,
    )?;
    Ok(rustix::fs::utimensat(
        to,
        name,
        &times(&stat),
        AtFlags::SYMLINK_NOFOLLOW,
    )?)
}

/// Gives a copy the owner, mode and times of its original.
fn imitate(copy: impl AsFd, stat: &Stat) -> rustix::io::Result<()> {
    let copy = copy.as_fd();
    give(
        |user, group| rustix::fs::fchown(copy, Some(user), Some(group)),
        stat,
    )?;
    // After the owner: changing that takes set-uid bits away.
    rustix::fs::fchmod(copy, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    rustix::fs::futimens(copy, &times(stat))
}

/// Changes the owner; a service that is not root cannot, and then keeps what it may read.
fn give(
    chown: impl FnOnce(UnixUid, Gid) -> rustix::io::Result<()>,
    stat: &Stat,
) -> rustix::io::Result<()> {
    match chown(UnixUid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid)) {
        Err(Errno::PERM) => Ok(()),
        outcome => outcome,
    }
}

pub(super) fn times(stat: &Stat) -> Timestamps {
    let time = |seconds, nanoseconds| Timespec {
        tv_sec: seconds,
        tv_nsec: i64::try_from(nanoseconds).unwrap_or(0),
    };
    Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
    }
}

/// A digest of length and content. Blocks of zeros do not count, so a hole equals written zeros and
/// a huge empty file costs nothing.
fn digest(file: &File) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    hash.update(file.metadata()?.len().to_be_bytes());
    for_each_block(file, |offset, block| {
        hash.update(offset.to_be_bytes());
        hash.update(block);
        Ok(())
    })?;
    Ok(hash.finalize().into())
}

/// Hands over every aligned block that is not all zeros, holes skipped without reading them.
fn for_each_block(
    file: &File,
    mut handle: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = vec![0_u8; BLOCK];
    let mut offset = 0_u64;
    loop {
        offset = match rustix::fs::seek(file, SeekFrom::Data(offset)) {
            Ok(data) => data - data % BLOCK as u64,
            // Nothing but a hole follows.
            Err(Errno::NXIO) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        let mut length = 0;
        while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, offset + length as u64)? {
                0 => break,
                read => length += read,
            }
        }
        let Some(block) = buffer.get(..length).filter(|block| !block.is_empty()) else {
            return Ok(());
        };
        if block.iter().any(|&byte| byte != 0) {
            handle(offset, block)?;
        }
        offset += BLOCK as u64;
    }
}
