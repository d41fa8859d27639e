//! What a tree is, by its content and by its looks, while an agent may do anything to it.
//!
//! Every directory is listed through its own handle and every name opened in the handle of its directory, links not
//! followed: nothing outside the tree is opened, whatever is swapped meanwhile. One handle is open for each level, and no
//! tree is deeper than [`MAX_DEPTH`].

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::digest::{ContentHash, Records, TreeDigest, TreeStamp};
use super::names::{LONGEST_PATH, MAX_DEPTH};

const BLOCK: usize = 64 << 10;

/// How much a tree may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLimits {
    /// Most files; there are at most 32 times as many directories.
    pub files: u64,
    /// Most bytes of all files.
    pub bytes: u64,
}

impl TreeLimits {
    /// The most that the store takes.
    pub const LARGEST: Self = Self {
        files: 10_000,
        bytes: 512 << 20,
    };
}

/// What a tree is by its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The digest of paths, modes and contents.
    pub digest: TreeDigest,
    /// How many files it has.
    pub files: u64,
    /// How long they are together.
    pub bytes: u64,
}

/// The digest of the tree in `dir`, which may be changed while it is read.
///
/// Regular files count with their path, content, and whether any execute bit is set. Owners, times, other bits and
/// directories without files do not count.
///
/// `None` when it is no such tree: a link, device, fifo or socket is in it, it is more than `limits`, deeper than 32
/// levels, a path is longer than 1024 bytes, something may not be read, or it was changed just then. No more is read than
/// `limits` allow, and nothing that blocks.
///
/// # Errors
/// The storage could not be read.
pub fn digest_tree(dir: impl AsFd, limits: TreeLimits) -> io::Result<Option<Tree>> {
    let mut records = Records::default();
    let mut count = Count::new(limits);
    let mut buffer = vec![0; BLOCK];
    let scanned = scan(dir, |found| {
        if count.add(found)? {
            return Ok(true);
        }
        let left = limits.bytes.saturating_sub(records.bytes());
        let (file, stat) = found.open_file()?.ok_or(Stop::NoSuchTree)?;
        let length = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        if length > left {
            return Err(Stop::NoSuchTree);
        }
        let mut content = ContentHash::default();
        // Whoever appends while it is read changes it; one byte more tells.
        each_block(file.take(length + 1), &mut buffer, |block| {
            content.update(block);
            Ok(())
        })
        .map_err(Stop::Io)?;
        if content.length() != length {
            return Err(Stop::NoSuchTree);
        }
        records.add(found.path, is_executable(&stat), content);
        Ok(false)
    });
    end(scanned).map(|whole| whole.then(|| records.finish()))
}

/// What the same tree looks like, with no content read: it covers, of every file and directory below the top, path, type,
/// inode, size, time of change and mode, and the inode of the top itself. Copies have other stamps. The time of change is
/// the one that whoever owns a file cannot set back.
///
/// `None` as for [`digest_tree`], as far as that shows from outside.
///
/// # Errors
/// As [`digest_tree`].
pub fn stamp_tree(dir: impl AsFd, limits: TreeLimits) -> io::Result<Option<TreeStamp>> {
    let top = rustix::fs::fstat(dir.as_fd())?;
    let mut count = Count::new(limits);
    // Of fixed length: hundreds of thousands of directories may have very long paths. The inode comes first: to sort by
    // it takes a fraction of the time.
    let mut looks: Vec<(u64, [u8; 32])> = Vec::new();
    let scanned = scan(dir, |found| {
        let enter = count.add(found)?;
        let stat = &found.stat;
        let facts = [
            stat.st_ino.to_be_bytes(),
            stat.st_size.to_be_bytes(),
            stat.st_ctime.to_be_bytes(),
            stat.st_ctime_nsec.to_be_bytes(),
            u64::from(stat.st_mode).to_be_bytes(),
        ];
        let look = Sha256::new()
            .chain_update(facts.as_flattened())
            .chain_update(found.path);
        looks.push((stat.st_ino, look.finalize().into()));
        Ok(enter)
    });
    if !end(scanned)? {
        return Ok(None);
    }
    looks.sort_unstable();
    let mut hash = Sha256::new();
    hash.update(top.st_ino.to_be_bytes());
    for (_, look) in looks {
        hash.update(look);
    }
    Ok(Some(TreeStamp::of(hash)))
}

/// Whether a scan came to its end, or else that this is no tree of a skill.
fn end(scanned: Result<(), Stop>) -> io::Result<bool> {
    match scanned {
        Ok(()) => Ok(true),
        Err(Stop::NoSuchTree) => Ok(false),
        Err(Stop::Io(error)) => Err(error),
    }
}

/// Why a scan ends early.
enum Stop {
    NoSuchTree,
    Io(io::Error),
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Self {
        match trouble.was_changed() || trouble.errno == Errno::ACCESS {
            true => Self::NoSuchTree,
            false => Self::Io(trouble.errno.into()),
        }
    }
}

/// Keeps to limits without opening anything.
struct Count {
    limits: TreeLimits,
    files: u64,
    directories: u64,
    bytes: u64,
}

impl Count {
    fn new(limits: TreeLimits) -> Self {
        Self {
            limits,
            files: 0,
            directories: 0,
            bytes: 0,
        }
    }

    /// Counts an entry; whether it is a directory.
    fn add(&mut self, found: &Found<'_>) -> Result<bool, Stop> {
        let kind = found.kind();
        match kind {
            FileType::Directory => self.directories += 1,
            FileType::RegularFile => {
                self.files += 1;
                let length = u64::try_from(found.stat.st_size).unwrap_or(u64::MAX);
                self.bytes = self.bytes.saturating_add(length);
            }
            _ => return Err(Stop::NoSuchTree),
        }
        let most = self.limits.files.saturating_mul(MAX_DEPTH as u64);
        let fits = self.files <= self.limits.files
            && self.directories <= most
            && self.bytes <= self.limits.bytes
            && found.depth <= MAX_DEPTH
            && found.path.len() <= LONGEST_PATH;
        match fits {
            true => Ok(kind == FileType::Directory),
            false => Err(Stop::NoSuchTree),
        }
    }
}

/// An entry of a tree.
pub(super) struct Found<'a> {
    at: BorrowedFd<'a>,
    name: &'a Path,
    /// From the top.
    pub(super) path: &'a [u8],
    /// How many names that has.
    pub(super) depth: usize,
    /// As it was when it was listed.
    pub(super) stat: Stat,
}

impl Found<'_> {
    pub(super) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// The file, open, and what the system says of it then; `None` when it is no regular file any more.
    pub(super) fn open_file(&self) -> Result<Option<(File, Stat)>, Trouble> {
        let trouble = |errno| Trouble {
            path: self.path.to_vec(),
            errno,
        };
        // Whatever was put there meanwhile, opening it must not wait.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(self.at, self.name, flags, Mode::empty()).map_err(trouble)?;
        let stat = rustix::fs::fstat(&file).map_err(trouble)?;
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        Ok(regular.then(|| (File::from(file), stat)))
    }
}

/// An entry that could not be read.
#[derive(Debug)]
pub(super) struct Trouble {
    /// From the top.
    pub(super) path: Vec<u8>,
    pub(super) errno: Errno,
}

impl Trouble {
    /// Whether it is another than was listed.
    pub(super) fn was_changed(&self) -> bool {
        let changed = [
            Errno::NOENT,
            Errno::LOOP,
            Errno::NOTDIR,
            Errno::ISDIR,
            Errno::NXIO,
            Errno::NODEV,
            Errno::STALE,
            // Whoever owns a file may hold a lease on it: opening it would wait for that.
            Errno::AGAIN,
        ];
        changed.contains(&self.errno)
    }
}

/// Goes through everything below `top`, each directory before what is in it. `visit` says whether a directory is entered;
/// whoever visits bounds the depth.
pub(super) fn scan<E: From<Trouble>>(
    top: impl AsFd,
    mut visit: impl FnMut(&Found<'_>) -> Result<bool, E>,
) -> Result<(), E> {
    let mut path = Vec::new();
    let top = Dir::read_from(top).map_err(|errno| Trouble {
        path: Vec::new(),
        errno,
    })?;
    // Open directories from the top to where the scan is, and how long the path of each is.
    let mut levels = vec![(top, 0)];
    loop {
        let depth = levels.len();
        let Some((dir, length)) = levels.last_mut() else {
            return Ok(());
        };
        path.truncate(*length);
        let Some(entry) = dir.read() else {
            levels.pop();
            continue;
        };
        let listed = entry.map_err(|errno| Trouble {
            path: path.clone(),
            errno,
        })?;
        let name = listed.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        let trouble = |errno| Trouble {
            path: path.clone(),
            errno,
        };
        let at = dir.fd().map_err(trouble)?;
        let name = Path::new(OsStr::from_bytes(name));
        let stat = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW).map_err(trouble)?;
        let found = Found {
            at,
            name,
            path: &path,
            depth,
            stat,
        };
        if visit(&found)? {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let child = rustix::fs::openat(at, name, flags, Mode::empty()).map_err(trouble)?;
            let child = Dir::new(child).map_err(trouble)?;
            let length = path.len();
            levels.push((child, length));
        }
    }
}

/// Whether anybody may execute a file: the one thing that is kept of its mode.
pub(super) fn is_executable(stat: &Stat) -> bool {
    stat.st_mode & 0o111 != 0
}

/// Hands over what is read, block by block.
pub(super) fn each_block(
    mut reader: impl Read,
    buffer: &mut [u8],
    mut handle: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    loop {
        match reader.read(buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => handle(buffer.get(..length).unwrap_or_default())?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
