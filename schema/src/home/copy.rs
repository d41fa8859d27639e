//! A verified copy of a tree to another file system.
//!
//! Owners, modes and times are kept (as far as a service may that is not root), links stay links,
//! holes stay holes; fifos, sockets and devices are skipped and reported. Nothing is followed.
//! Afterwards the copy was compared with the original by SHA-256 and is on disk.

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
use super::remove::entries;

const BLOCK: usize = 64 * 1024;

/// Copies the directory `source` (shown as `path`) to the new directory `name` in `target`.
pub(super) fn copy_verified(
    source: &OwnedFd,
    path: &Path,
    target: &OwnedFd,
    name: &Path,
) -> Result<Skipped, HomeError> {
    rustix::fs::mkdirat(target, name, Mode::RWXU)
        .and_then(|()| beneath::open_dir(target, name))
        .map_err(HomeError::io("creating", name))
        .and_then(|copy| {
            let mut walk = Walk {
                source,
                copy: &copy,
                path,
                directories: Vec::new(),
                skipped: Skipped::default(),
            };
            walk.copy_all()?;
            if let Some(detail) = differs(source, &copy, path)? {
                return Err(HomeError::CopyDiffers {
                    path: path.to_owned(),
                    detail,
                });
            }
            walk.finish_all()?;
            // One syncfs is as safe as an fsync per file and does not take minutes.
            rustix::fs::syncfs(&copy).map_err(HomeError::io("saving", name))?;
            Ok(walk.skipped)
        })
}

struct Walk<'a> {
    source: &'a OwnedFd,
    copy: &'a OwnedFd,
    path: &'a Path,
    /// Every directory below the top, parents first. Only one is open at a time, so that neither
    /// depth nor width exhausts handles or the stack.
    directories: Vec<PathBuf>,
    skipped: Skipped,
}

impl Walk<'_> {
    fn copy_all(&mut self) -> Result<(), HomeError> {
        let mut next = 0;
        let mut current = Some(PathBuf::new());
        while let Some(directory) = current {
            self.copy_directory(&directory)
                .map_err(HomeError::io("copying", self.path.join(&directory)))?;
            current = self.directories.get(next).cloned();
            next += 1;
        }
        Ok(())
    }

    /// Owners, modes and times come last and deepest first: writing into a directory changes its
    /// time, and what was made unreadable could not be verified.
    fn finish_all(&self) -> Result<(), HomeError> {
        let top = std::iter::once(Path::new(""));
        let deepest_first = self.directories.iter().rev().map(PathBuf::as_path);
        for directory in deepest_first.chain(top) {
            self.finish_directory(directory)
                .map_err(HomeError::io("copying", self.path.join(directory)))?;
        }
        Ok(())
    }

    fn finish_directory(&self, directory: &Path) -> rustix::io::Result<()> {
        let from = open_at(self.source, directory)?;
        let to = open_at(self.copy, directory)?;
        for (name, kind) in entries(&from)? {
            if kind == FileType::RegularFile {
                let stat = rustix::fs::statat(&from, &name, AtFlags::SYMLINK_NOFOLLOW)?;
                imitate(open_file(&to, &name)?, &stat)?;
            }
        }
        imitate(&to, &rustix::fs::fstat(&from)?)
    }

    fn copy_directory(&mut self, directory: &Path) -> io::Result<()> {
        let from = open_unlocked(self.source, directory)?;
        let to = open_at(self.copy, directory)?;
        for (name, kind) in entries(&from)? {
            let path = directory.join(&name);
            match kind {
                FileType::Directory => {
                    rustix::fs::mkdirat(&to, &name, Mode::RWXU)?;
                    self.directories.push(path);
                }
                FileType::RegularFile => copy_file(&from, &to, &name)?,
                FileType::Symlink => copy_link(&from, &to, &name)?,
                _ => self.skipped.push(&path),
            }
        }
        Ok(())
    }
}

/// Compares two trees: `None` when every directory, file and link of `source` is in `copy` with the
/// same content and nothing else is there; otherwise what differs. Owners, modes and times are not
/// inspected.
pub(super) fn differs(
    source: &OwnedFd,
    copy: &OwnedFd,
    path: &Path,
) -> Result<Option<String>, HomeError> {
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        let detail = directory_differs(source, copy, &directory, &mut directories)
            .map_err(HomeError::io("verifying", path.join(&directory)))?;
        if detail.is_some() {
            return Ok(detail);
        }
    }
    Ok(None)
}

fn directory_differs(
    source: &OwnedFd,
    copy: &OwnedFd,
    directory: &Path,
    directories: &mut Vec<PathBuf>,
) -> io::Result<Option<String>> {
    let from = open_at(source, directory)?;
    let to = open_at(copy, directory)?;
    let mut originals = entries(&from)?;
    originals.retain(|(_, kind)| {
        matches!(
            kind,
            FileType::Directory | FileType::RegularFile | FileType::Symlink
        )
    });
    let mut copies = entries(&to)?;
    originals.sort_by(|a, b| a.0.cmp(&b.0));
    copies.sort_by(|a, b| a.0.cmp(&b.0));
    if originals != copies {
        return Ok(Some(format!("{directory:?} has other entries")));
    }
    for (name, kind) in originals {
        let same = match kind {
            FileType::RegularFile => {
                digest(&open_file(&from, &name)?)? == digest(&open_file(&to, &name)?)?
            }
            FileType::Symlink => {
                rustix::fs::readlinkat(&from, &name, Vec::new())?
                    == rustix::fs::readlinkat(&to, &name, Vec::new())?
            }
            _ => {
                directories.push(directory.join(&name));
                true
            }
        };
        if !same {
            return Ok(Some(format!(
                "{:?} has other content",
                directory.join(&name)
            )));
        }
    }
    Ok(None)
}

/// Opens the directory `path` beneath `dir`; the empty path is `dir` itself.
fn open_at(dir: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    if path.as_os_str().is_empty() {
        rustix::io::fcntl_dupfd_cloexec(dir, 0)
    } else {
        beneath::open_dir(dir, path)
    }
}

/// The same for the original, where the agent may have taken the permissions away.
fn open_unlocked(dir: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    if path.as_os_str().is_empty() {
        open_at(dir, path)
    } else {
        beneath::open_dir_unlocked(dir, path, Mode::RUSR | Mode::XUSR)
    }
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

fn copy_file(from: &OwnedFd, to: &OwnedFd, name: &Path) -> io::Result<()> {
    let original = open_file(from, name)?;
    let stat = rustix::fs::fstat(&original)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let copy = File::from(beneath::open(to, name, flags, Mode::RUSR | Mode::WUSR)?);
    copy.set_len(u64::try_from(stat.st_size).unwrap_or(0))?;
    for_each_block(&original, |offset, block| copy.write_all_at(block, offset))?;
    Ok(imitate(&copy, &stat)?)
}

fn copy_link(from: &OwnedFd, to: &OwnedFd, name: &Path) -> io::Result<()> {
    let goal = rustix::fs::readlinkat(from, name, Vec::new())?;
    let stat = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
    rustix::fs::symlinkat(goal.as_c_str(), to, name)?;
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

fn times(stat: &Stat) -> Timestamps {
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
