//! Copying out of an archive, which stays as it is, for another owner.
//!
//! Content, permissions and times are kept, links stay links, holes stay holes. Everything belongs to the new owner, without
//! set-uid, set-gid and sticky bits; fifos, sockets and devices are skipped. Nothing is followed. What the agent made unreadable for a
//! service that is not root is made readable for as long as it is read.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, Mode, Stat, Uid as UnixUid};
use rustix::io::Errno;

use super::archive::Skipped;
use super::conversations::has_conversations;
use super::copy::{copy_content, make_link, times};
use super::error::HomeError;
use super::files::READ;
use super::hard_links::HardLinks;
use super::restore::Recipient;
use super::skills::give;
use super::walk::{Entry, Visit, walk};
use super::{Owner, beneath};

/// Permissions that are kept: without the set-uid, set-gid and sticky bits.
const KEPT: u32 = 0o777;

/// What was copied.
#[derive(Debug, Default)]
pub(super) struct Copied {
    /// Regular files, one with several names once.
    pub files: u64,
    /// What is in them.
    pub bytes: u64,
    /// What has no content to keep.
    pub skipped: Skipped,
    /// Conversations of another account, or the agent's history of them, were left out.
    pub conversations_left_out: bool,
}

/// Copies what is in `from` (shown as `path`) to the empty directory `to`, and gives it to its recipient.
pub(super) fn copy_for(
    from: OwnedFd,
    to: OwnedFd,
    recipient: &Recipient<'_>,
    path: &Path,
) -> Result<Copied, HomeError> {
    let mut copying = Copying {
        owner: recipient.owner,
        is_same_user: recipient.is_same_user,
        links: HardLinks::of(&to).map_err(HomeError::io("copying to", path))?,
        copied: Copied::default(),
        locked: Vec::new(),
    };
    walk([from, to], &mut copying, "copying", path)?;
    Ok(copying.copied)
}

/// A directory of an archive that is open for reading. Its permissions are put back when it is dropped.
pub(super) struct Unlocked {
    pub dir: OwnedFd,
    was: Option<Mode>,
}

impl Unlocked {
    /// Opens the directory `name` in `parent`.
    pub(super) fn open(parent: impl AsFd, name: &Path) -> rustix::io::Result<Self> {
        let (dir, was) = unlock(parent, name)?;
        Ok(Self { dir, was })
    }
}

impl Drop for Unlocked {
    fn drop(&mut self) {
        if let Some(was) = self.was {
            // What cannot be undone leaves its owner a right more.
            let _ = rustix::fs::fchmod(&self.dir, was);
        }
    }
}

/// Opens a directory for reading; with the permissions that it had if they had to be changed for it.
fn unlock(parent: impl AsFd, name: &Path) -> rustix::io::Result<(OwnedFd, Option<Mode>)> {
    let parent = parent.as_fd();
    let needed = Mode::RUSR | Mode::XUSR;
    let before = match rustix::process::geteuid().is_root() {
        true => None,
        false => {
            let stat = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
            (!mode.contains(needed)).then_some(mode)
        }
    };
    let dir = match before {
        None => beneath::open_dir(parent, name)?,
        Some(_) => beneath::open_dir_unlocked(parent, name, needed)?,
    };
    Ok((dir, before))
}

struct Copying {
    owner: Owner,
    is_same_user: bool,
    links: HardLinks,
    copied: Copied,
    /// Of each directory on the way, but the first, the permissions that it gets back.
    locked: Vec<Option<Mode>>,
}

impl Visit<2> for Copying {
    fn entry(
        &mut self,
        [from, to]: &[OwnedFd; 2],
        entry: &Entry<'_>,
    ) -> io::Result<Option<[OwnedFd; 2]>> {
        let name = entry.name;
        match entry.kind {
            FileType::Directory if !self.is_same_user && has_conversations(&entry.path()) => {
                self.copied.conversations_left_out = true;
            }
            FileType::Directory => {
                rustix::fs::mkdirat(to, name, Mode::RWXU)?;
                let copy = beneath::open_dir(to, name)?;
                let (original, was) = unlock(from, name)?;
                self.locked.push(was);
                return Ok(Some([original, copy]));
            }
            FileType::RegularFile => self.copy_file(from, to, name)?,
            FileType::Symlink => self.copy_link(from, to, name)?,
            _ => self.copied.skipped.push(&entry.path()),
        }
        Ok(None)
    }

    /// Last and deepest first: writing into a directory changes its time, and what it is left with may let nobody in.
    fn leave(&mut self, [from, to]: &[OwnedFd; 2]) -> io::Result<()> {
        let stat = rustix::fs::fstat(from)?;
        let is_top = self.locked.is_empty();
        if is_top {
            self.links.end(Path::new("")).map_err(io::Error::other)?;
        }
        let was = self.locked.pop().flatten();
        let mode = was.map_or(stat.st_mode, |was| was.bits());
        // What cannot be written to cannot be moved to its place.
        let mode = if is_top { mode | 0o700 } else { mode };
        self.finish(to, &stat, mode)?;
        if let Some(was) = was {
            rustix::fs::fchmod(from, was)?;
        }
        Ok(())
    }
}

impl Copying {
    fn copy_file(&mut self, from: &OwnedFd, to: &OwnedFd, name: &Path) -> io::Result<()> {
        let (original, stat) = open_file(from, name)?;
        if self.links.link(&stat, to, name)? {
            return Ok(());
        }
        let copy = copy_content(&original, &stat, to, name)?;
        let length = u64::try_from(stat.st_size).unwrap_or(0);
        self.finish(&copy, &stat, stat.st_mode)?;
        self.copied.files += 1;
        self.copied.bytes = self.copied.bytes.saturating_add(length);
        self.links.add(&stat, to, name)
    }

    fn copy_link(&self, from: &OwnedFd, to: &OwnedFd, name: &Path) -> io::Result<()> {
        let stat = make_link(from, to, name)?;
        let made = rustix::fs::statat(to, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let (user, group) = self.owner;
        if (made.st_uid, made.st_gid) != self.owner {
            let (user, group) = (UnixUid::from_raw(user), Gid::from_raw(group));
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::chownat(to, name, Some(user), Some(group), flags)?;
        }
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(rustix::fs::utimensat(to, name, &times(&stat), flags)?)
    }

    /// Gives a copy its owner, permissions and times.
    fn finish(&self, copy: impl AsFd, stat: &Stat, mode: u32) -> rustix::io::Result<()> {
        let copy = copy.as_fd();
        give(copy, self.owner)?;
        rustix::fs::fchmod(copy, Mode::from_raw_mode(mode & KEPT))?;
        rustix::fs::futimens(copy, &times(stat))
    }
}

/// Opens a regular file of an archive, with what the system said of it before.
fn open_file(dir: &OwnedFd, name: &Path) -> io::Result<(File, Stat)> {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let open = || beneath::open(dir, name, READ, Mode::empty());
    let file = match open() {
        Err(Errno::ACCESS) => {
            beneath::make_usable(dir, name, Mode::RUSR)?;
            let file = open()?;
            rustix::fs::fchmod(&file, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
            file
        }
        opened => opened?,
    };
    // It may have been swapped for something else since it was listed.
    match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok((File::from(file), stat)),
        _ => Err(Errno::INVAL.into()),
    }
}
