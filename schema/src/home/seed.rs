//! Copying an image's own home into a user's directory in which nobody has written yet.
//!
//! The user's marker says, out of the agent's reach, for which directory a copy was begun and whether it is complete. Each
//! file takes its place whole, and what is there already stays: a copy that was cut short is made again, and ends the
//! same. What the image brings is not trusted: it is bounded, lies beneath the directory, and has no devices, set-uid bits
//! or links that lead out.

use std::cell::Cell;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use tar::EntryType;

use super::archive::Skipped;
use super::error::HomeError;
use super::look::HomeId;
use super::marker::{self, Marker};
use super::skill_moves::is_moving;
use super::skills::SKILLS;
use super::temporary::is_temporary;
use super::user_home::UserHome;
use super::{AGENT_DIR, Homes, WORKSPACE_DIR, beneath, walk};
use crate::fault;
use crate::ids::{Uid, UserName};

/// Room in the stream for what is not content: headers, long names and padding of each entry.
const OVERHEAD: u64 = 8 << 10;

/// What archives consist of; two of zeros are their end, of which one is read.
const BLOCK: u64 = 512;

/// How much of an image's home is copied; one that is larger is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeedLimits {
    /// Files, directories and links.
    pub entries: u64,
    /// Bytes in files.
    pub bytes: u64,
}

impl Default for SeedLimits {
    fn default() -> Self {
        Self {
            entries: 20_000,
            bytes: 512 << 20,
        }
    }
}

/// What a marker says of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seed {
    /// The directory that it is for: one that replaces it is empty again.
    home: HomeId,
    /// It is complete.
    done: bool,
}

/// What was copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seeded {
    /// Entries of the image's home.
    pub entries: u64,
    /// Bytes in its files.
    pub bytes: u64,
    /// What was left out: devices, links that lead out, and names that cannot be.
    pub skipped: Skipped,
}

impl Homes {
    /// Whether the image's own home is to be copied into a user's directory: a copy was begun, or nothing is in it but
    /// what the service has made, `own` (the agent's files, relative to the agent's directory) included.
    ///
    /// # Errors
    /// As [`Homes::open_existing`].
    pub fn needs_seed(
        &self,
        name: &UserName,
        uid: &Uid,
        own: &[String],
    ) -> Result<bool, HomeError> {
        let Some(home) = self.open_existing(name, uid)? else {
            return Ok(false);
        };
        let id = home.id()?;
        let seed = self.owner_of(name)?.and_then(|marker| marker.seed);
        match seed.filter(|seed| seed.home == id) {
            Some(seed) => Ok(!seed.done),
            None => is_untouched(&home, own).map_err(HomeError::io("listing", home.path())),
        }
    }

    /// Copies an image's home, a tar stream with the home itself as its first component, into a user's directory. What
    /// lies in the directory stays. Interrupted at any step and called again, it ends the same.
    ///
    /// # Errors
    /// [`HomeError::SeedTooLarge`]; [`HomeError::Changed`] when the directory is gone; [`HomeError::Io`], also for a stream
    /// that breaks off.
    pub fn seed(
        &self,
        name: &UserName,
        uid: &Uid,
        image_home: impl Read,
        limits: SeedLimits,
    ) -> Result<Seeded, HomeError> {
        let gone = || HomeError::Changed {
            path: String::new(),
        };
        let home = self.open_existing(name, uid)?.ok_or_else(gone)?;
        let mark = |done| {
            let marker = Marker {
                seed: Some(Seed {
                    home: home.id()?,
                    done,
                }),
                ..Marker::of(uid)
            };
            marker::write(&self.users.owners, name.as_str(), &marker)
                .map_err(HomeError::io("marking", home.path()))
        };
        let begun = self
            .owner_of(name)?
            .is_some_and(|marker| marker.seed.is_some());
        mark(false)?;
        if begun {
            sweep(&home).map_err(HomeError::io("tidying", home.path()))?;
        }
        fault::point("home.seed.after_begin");
        let mut copy = Copy {
            home: &home,
            limits,
            seeded: Seeded::default(),
        };
        copy.all(image_home)?;
        // The files are on the disk each; now their names are.
        rustix::fs::syncfs(home.dir()).map_err(HomeError::io("saving", home.path()))?;
        fault::point("home.seed.before_done");
        mark(true)?;
        Ok(copy.seeded)
    }
}

/// Whether nothing is in a directory but what the service has made.
fn is_untouched(home: &UserHome, own: &[String]) -> rustix::io::Result<bool> {
    let only = |path: &str, allowed: &dyn Fn(&OsStr) -> bool| {
        let directory = match path {
            "" => rustix::io::fcntl_dupfd_cloexec(home.dir(), 0)?,
            path => beneath::open_dir(home.dir(), Path::new(path))?,
        };
        let mut entries = walk::entries(&directory)?.into_iter();
        Ok::<_, Errno>(entries.all(|(name, _)| allowed(name.as_os_str())))
    };
    let workspace = Path::new(WORKSPACE_DIR).file_name();
    let first = |path: &str| Path::new(path).iter().next().map(OsStr::to_owned);
    let is_own = |name: &OsStr| own.iter().any(|own| first(own).as_deref() == Some(name));
    Ok(only("", &|name| name == AGENT_DIR)?
        && only(AGENT_DIR, &|name| {
            Some(name) == workspace || is_own(name) || is_moving(Path::new(name))
        })?
        && only(WORKSPACE_DIR, &|name| name == SKILLS)?)
}

/// Removes the file that a copy was writing when it was cut short.
fn sweep(home: &UserHome) -> rustix::io::Result<()> {
    let mut directories = vec![PathBuf::new()];
    while let Some(path) = directories.pop() {
        let directory = match path.as_os_str().is_empty() {
            true => rustix::io::fcntl_dupfd_cloexec(home.dir(), 0)?,
            false => beneath::open_dir(home.dir(), &path)?,
        };
        for (name, kind) in walk::entries(&directory)? {
            match kind {
                FileType::Directory => directories.push(path.join(name)),
                FileType::RegularFile if is_temporary(name.as_os_str().as_bytes()) => {
                    rustix::fs::unlinkat(&directory, &name, AtFlags::empty())?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Whether an entry has content that is written.
fn is_file(kind: EntryType) -> bool {
    matches!(
        kind,
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse
    )
}

/// A stream of which it is known how much was read.
struct Counted<'a, S> {
    stream: S,
    read: &'a Cell<u64>,
}

impl<S: Read> Read for Counted<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(buffer)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}

/// A file's content, which fails when it ends too early.
struct Whole<R> {
    entry: R,
    left: u64,
}

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.entry.read(buffer)?;
        if read == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

struct Copy<'a> {
    home: &'a UserHome,
    limits: SeedLimits,
    seeded: Seeded,
}

impl Copy<'_> {
    fn too_large(&self) -> HomeError {
        HomeError::SeedTooLarge {
            entries: self.limits.entries,
            bytes: self.limits.bytes,
        }
    }

    fn all(&mut self, stream: impl Read) -> Result<(), HomeError> {
        let SeedLimits { entries, bytes } = self.limits;
        // Whatever its headers promise: no more than this is read, and a stream that is cut here is damaged.
        let most = bytes.saturating_add(entries.saturating_mul(OVERHEAD));
        let failed = |path: &Path| HomeError::io("copying the image's home to", path.to_owned());
        let read = Cell::new(0);
        let mut archive = tar::Archive::new(Counted {
            stream: stream.take(most),
            read: &read,
        });
        let place = self.home.path().to_owned();
        let mut end = 0;
        for entry in archive.entries().map_err(failed(&place))? {
            let mut entry = entry.map_err(failed(&place))?;
            end = entry.raw_file_position() + entry.header().entry_size().unwrap_or(0);
            self.seeded.entries += 1;
            if self.seeded.entries > entries {
                return Err(self.too_large());
            }
            let path = entry.path().map_err(failed(&place))?.into_owned();
            let Some(relative) = inside(&path) else {
                self.seeded.skipped.push(&path);
                continue;
            };
            if relative.as_os_str().is_empty() {
                continue;
            }
            if is_file(entry.header().entry_type()) {
                self.seeded.bytes = self.seeded.bytes.saturating_add(entry.size());
                if self.seeded.bytes > bytes {
                    return Err(self.too_large());
                }
            }
            let there = self.place(&relative, &mut entry);
            if !there.map_err(failed(&place.join(&relative)))? {
                self.seeded.skipped.push(&relative);
            }
            fault::point("home.seed.after_entry");
        }
        // The engine ends an answer that it could not complete as any other.
        if read.get() < end.next_multiple_of(BLOCK) + BLOCK {
            return Err(failed(&place)(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(())
    }

    /// Puts one entry in its place, if nothing is there; false when it is left out.
    fn place(&self, relative: &Path, entry: &mut tar::Entry<'_, impl Read>) -> io::Result<bool> {
        let kind = entry.header().entry_type();
        let mode = entry.header().mode()? & 0o777;
        let (Some(parent), Some(name)) = (relative.parent(), relative.file_name()) else {
            return Ok(false);
        };
        let Some(parent) = self.directory(parent, 0o755)? else {
            return Ok(false);
        };
        let parent = parent.as_fd();
        match kind {
            // Its owner has to be able to work in it.
            EntryType::Directory => Ok(self.directory(relative, mode | 0o700)?.is_some()),
            kind if is_file(kind) => {
                let size = entry.size();
                unless_there(
                    self.home
                        .write_new(parent, name, Whole { entry, left: size }, mode),
                )
            }
            EntryType::Symlink => {
                let Some(target) = entry.link_name()? else {
                    return Ok(false);
                };
                if !stays_inside(relative, &target) {
                    return Ok(false);
                }
                unless_there(self.link(parent, name, &target).map_err(Into::into))
            }
            EntryType::Link => {
                let target = entry.link_name()?.and_then(|target| inside(&target));
                match target {
                    Some(target) => self.same_file(&target, parent, name),
                    None => Ok(false),
                }
            }
            _ => Ok(false),
        }
    }

    /// Opens a directory, made where it is missing; `None` when something else is in the way.
    fn directory(&self, relative: &Path, mode: u32) -> io::Result<Option<OwnedFd>> {
        let mut current = rustix::io::fcntl_dupfd_cloexec(self.home.dir(), 0)?;
        let last = relative.components().count();
        for (number, component) in relative.components().enumerate() {
            let name = Path::new(component.as_os_str());
            let made = match rustix::fs::mkdirat(&current, name, Mode::RWXU) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(errno) => return Err(errno.into()),
            };
            let next = match beneath::open_dir(&current, name) {
                Ok(next) => next,
                Err(Errno::LOOP | Errno::NOTDIR) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            };
            if made {
                self.home.give_to_owner(&next)?;
                let mode = if number + 1 == last { mode } else { 0o755 };
                rustix::fs::fchmod(&next, Mode::from_raw_mode(mode))?;
            }
            current = next;
        }
        Ok(Some(current))
    }

    fn link(&self, parent: BorrowedFd<'_>, name: &OsStr, target: &Path) -> rustix::io::Result<()> {
        rustix::fs::symlinkat(target, parent, name)?;
        let home = rustix::fs::fstat(self.home.dir())?;
        let (user, group) = (
            rustix::fs::Uid::from_raw(home.st_uid),
            rustix::fs::Gid::from_raw(home.st_gid),
        );
        let nofollow = AtFlags::SYMLINK_NOFOLLOW;
        match rustix::fs::chownat(parent, name, Some(user), Some(group), nofollow) {
            // Only root gives away; for others it is their own already.
            Err(Errno::PERM) => Ok(()),
            outcome => outcome,
        }
    }

    /// A second name of a file that was copied before.
    fn same_file(&self, of: &Path, parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<bool> {
        let (Some(place), Some(file)) = (of.parent(), of.file_name()) else {
            return Ok(false);
        };
        let place = match place.as_os_str().is_empty() {
            true => rustix::io::fcntl_dupfd_cloexec(self.home.dir(), 0),
            false => beneath::open_dir(self.home.dir(), place),
        };
        let place = match place {
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => return Ok(false),
            place => place?,
        };
        match rustix::fs::statat(&place, file, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {}
            Ok(_) | Err(Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(errno.into()),
        }
        let linked = rustix::fs::linkat(&place, file, parent, name, AtFlags::empty());
        unless_there(linked.map_err(Into::into))
    }
}

/// What was there before stays, and counts as in its place.
fn unless_there(made: io::Result<()>) -> io::Result<bool> {
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(true),
        made => made.map(|()| true),
    }
}

/// A path of the stream without the home itself, its first component; `None` when it leads out.
fn inside(path: &Path) -> Option<PathBuf> {
    let mut components = path
        .components()
        .filter(|component| *component != Component::CurDir);
    let plain = |component: &Component<'_>| matches!(component, Component::Normal(_));
    components.next().filter(plain)?;
    let rest: Vec<Component<'_>> = components.collect();
    let relative: PathBuf = rest.iter().collect();
    let safe = rest.iter().all(plain) && (rest.is_empty() || beneath::is_plain(&relative));
    safe.then_some(relative)
}

/// Whether a link at `link` stays inside: it goes up no further than it lies deep, and only at its beginning, since what
/// it passes later may be a link itself.
fn stays_inside(link: &Path, target: &Path) -> bool {
    let deep = link.components().count().saturating_sub(1);
    let mut up = 0;
    let mut down = false;
    for component in target.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if !down => up += 1,
            Component::Normal(_) => down = true,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    up <= deep
}
