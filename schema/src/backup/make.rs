//! Making a backup.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::content::{self, CopyError, Digest, Exactly};
use super::directory::Directory;
use super::manifest::{
    DatabaseHead, EntryKind, FORMAT, HEAD, Head, KeyHead, LINES, LeftOut, Line, LineWriter,
    NOT_LISTED_TO_ITS_END, NOT_READ_TO_ITS_END, NOT_READABLE, Section, escape,
};
use super::read::Backup;
use super::{BackupError, ROOTS, Watch};
use crate::home::beneath;
use crate::ids::Timestamp;

/// Deepest directory, so many of which are open at once, twice each.
const DEEPEST: usize = 400;
/// Longest path: no program opens a longer one by its name.
const LONGEST: usize = 4000;
/// Of so many files of a section with several names the first is remembered: some 20 MB.
const MOST_NAMES: usize = 100_000;
/// Most names of a file that are copied one by one once [`MOST_NAMES`] files with several names are known.
const MOST_COPIES: u64 = 16;
/// Most entries of a home, or of another entry of a root, that are gone through.
const MOST_ENTRIES: u64 = 20_000_000;
/// Of so many files of a section the state in the backup before is remembered: some 100 MB.
const MOST_BEFORE: usize = 1_000_000;
/// Largest file with holes that is written to a stream.
const LARGEST_STREAMED: u64 = 1 << 30;
/// A file that changed within this time before the backup before is copied again: times of files are coarse.
const COARSE_SECONDS: i64 = 2;

/// How far a backup, a restore or a verification is.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// What is being copied: a directory such as `users/alice`.
    pub section: String,
    /// Entries so far.
    pub entries: u64,
    /// Bytes that were read so far.
    pub bytes: u64,
}

/// The installation that is backed up.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The data directory.
    pub data_dir: PathBuf,
    /// Identity of the installation.
    pub instance: String,
    /// The database and its copy.
    pub database: DatabaseHead,
    /// The master key.
    pub key: KeyHead,
    /// Release that makes the backup.
    pub release: String,
}

/// A backup that was made.
#[derive(Debug, Clone)]
pub struct Made {
    /// Its folder; `None` when it was streamed.
    pub path: Option<PathBuf>,
    /// Its head.
    pub head: Head,
}

/// Where a backup is written.
enum Target {
    Folder {
        directory: Directory,
        top: OwnedFd,
        partial: String,
        name: String,
        before: Option<Box<Backup>>,
    },
    Stream {
        tar: tar::Builder<Box<dyn Write + Send>>,
        /// Holds the copy of the database and the lines.
        scratch: PathBuf,
    },
}

/// A backup that is being made. Dropped before [`Making::finish`], it leaves nothing that looks like one.
pub struct Making {
    target: Target,
    started_at: Timestamp,
    done: bool,
}

impl Making {
    /// Begins a backup in a folder of `directory`, which shares unchanged files with the newest one of `instance` there.
    ///
    /// # Errors
    /// [`BackupError::Busy`], [`BackupError::Io`].
    pub fn in_folder(
        directory: Directory,
        instance: &str,
        now: Timestamp,
    ) -> Result<Self, BackupError> {
        directory.lock()?;
        directory.clear()?;
        let mut kept = directory.list()?;
        kept.retain(|kept| kept.head.instance == instance && kept.head.started_at <= now);
        let before = kept.pop();
        let before = before.and_then(|kept| Backup::open(&directory.path().join(kept.name)).ok());
        let before = before.filter(|before| before.check_lines().is_ok());
        let before = before.map(Box::new);
        let (top, partial, name) = directory.make_partial(now)?;
        Ok(Self {
            target: Target::Folder {
                directory,
                top,
                partial,
                name,
                before,
            },
            started_at: now,
            done: false,
        })
    }

    /// Begins a backup that is written as a tar stream. `scratch` is an empty directory of the caller's, for the copy of the
    /// database.
    pub fn in_stream(out: Box<dyn Write + Send>, scratch: &Path, now: Timestamp) -> Self {
        Self {
            target: Target::Stream {
                tar: tar::Builder::new(out),
                scratch: scratch.to_owned(),
            },
            started_at: now,
            done: false,
        }
    }

    /// The directory that the copy of the database is to be made in, before [`Making::copy_files`].
    pub fn database_dir(&self) -> PathBuf {
        match &self.target {
            Target::Folder {
                directory, partial, ..
            } => directory.path().join(partial),
            Target::Stream { scratch, .. } => scratch.clone(),
        }
    }

    /// Copies everything and completes the backup.
    ///
    /// # Errors
    /// [`BackupError::Stopped`] when `watch` says so, [`BackupError::Io`].
    pub fn finish(
        mut self,
        origin: &Origin,
        now: impl FnOnce() -> Timestamp,
        watch: Watch<'_>,
    ) -> Result<Made, BackupError> {
        let place = self.database_dir();
        let lines = match &self.target {
            Target::Folder { top, .. } => create(top, Path::new(LINES)),
            Target::Stream { scratch, .. } => File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .open(scratch.join(LINES)),
        };
        let lines = lines.map_err(BackupError::io("writing", place.join(LINES)))?;
        let data = rustix::fs::openat(
            CWD,
            &origin.data_dir,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        );
        let data = data.map_err(BackupError::io("opening", &origin.data_dir))?;
        let mut copying = Copying {
            target: &mut self.target,
            lines: LineWriter::new(lines),
            sections: Vec::new(),
            left_out: LeftOut::default(),
            bytes: 0,
            shared: 0,
            before: HashMap::new(),
            before_is_older_than: 0,
            names: HashMap::new(),
            progress: Progress::default(),
            watch,
        };
        copying.database(&origin.database.file, &place)?;
        for root in ROOTS {
            copying.root(&data, root)?;
        }
        let Copying {
            lines,
            sections,
            left_out,
            bytes,
            shared,
            ..
        } = copying;
        let entries = lines.lines;
        let (lines, lines_sha256) = lines
            .end()
            .map_err(BackupError::io("writing", place.join(LINES)))?;
        let head = Head {
            format: FORMAT,
            agentyard: origin.release.clone(),
            instance: origin.instance.clone(),
            database: origin.database.clone(),
            key: origin.key.clone(),
            service_user: (
                rustix::process::geteuid().as_raw(),
                rustix::process::getegid().as_raw(),
            ),
            started_at: self.started_at,
            finished_at: now(),
            entries,
            bytes,
            shared,
            left_out,
            lines_sha256,
            sections,
        };
        let path = self
            .publish(&head, lines)
            .map_err(BackupError::io("completing", place))?;
        Ok(Made { path, head })
    }

    /// Writes the head, and gives the backup its name.
    fn publish(&mut self, head: &Head, mut lines: File) -> io::Result<Option<PathBuf>> {
        let text = serde_json::to_vec_pretty(head)?;
        let path = match &mut self.target {
            Target::Folder {
                directory,
                top,
                partial,
                name,
                ..
            } => {
                // One syncfs is as safe as an fsync per file and does not take minutes.
                rustix::fs::syncfs(&*top)?;
                crate::fault::point("backup.before_head");
                let mut file = create(top, Path::new(HEAD))?;
                file.write_all(&text)?;
                file.sync_all()?;
                rustix::fs::fsync(&*top)?;
                crate::fault::point("backup.before_rename");
                rustix::fs::renameat(
                    &directory.fd,
                    partial.as_str(),
                    &directory.fd,
                    name.as_str(),
                )?;
                rustix::fs::fsync(&directory.fd)?;
                Some(directory.path().join(name.as_str()))
            }
            Target::Stream { tar, .. } => {
                lines.rewind()?;
                let length = lines.metadata()?.len();
                let mut header = tar_header(tar::EntryType::Regular, length, self.started_at);
                tar.append_data(&mut header, LINES, &mut lines)?;
                let mut header =
                    tar_header(tar::EntryType::Regular, text.len() as u64, self.started_at);
                tar.append_data(&mut header, HEAD, &*text)?;
                tar.finish()?;
                tar.get_mut().flush()?;
                None
            }
        };
        self.done = true;
        Ok(path)
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        if let (
            false,
            Target::Folder {
                directory, partial, ..
            },
        ) = (self.done, &self.target)
        {
            // What cannot be removed now is removed by the next one.
            let _ = directory.remove_own(partial);
        }
    }
}

fn tar_header(kind: tar::EntryType, size: u64, at: Timestamp) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(if kind == tar::EntryType::Directory {
        0o700
    } else {
        0o600
    });
    header.set_mtime(u64::try_from(at.as_secs()).unwrap_or(0));
    header
}

/// Makes a private file in a directory.
fn create(dir: &OwnedFd, name: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
    let fd = beneath::open(dir, name, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(File::from(fd))
}

/// A file in the backup before.
struct Before {
    stamp: [u8; 16],
    digest: Digest,
    sparse: bool,
}

/// A file that has other names.
struct First {
    path: PathBuf,
    line: Line,
}

struct Copying<'a> {
    target: &'a mut Target,
    lines: LineWriter,
    sections: Vec<Section>,
    left_out: LeftOut,
    bytes: u64,
    shared: u64,
    /// Files of the section in the backup before, by the digest of their paths.
    before: HashMap<[u8; 16], Before>,
    /// A file whose state changed later, in seconds since 1970, is copied.
    before_is_older_than: i64,
    /// Files of the section with several names.
    names: HashMap<(u64, u64), First>,
    progress: Progress,
    watch: Watch<'a>,
}

/// A directory on the way.
struct Level {
    dir: Dir,
    to: Option<OwnedFd>,
    stat: Stat,
}

/// Reason for which an entry is left out, or what ends the backup.
enum Skip {
    Entry(&'static str),
    Fatal(BackupError),
}

impl From<BackupError> for Skip {
    fn from(error: BackupError) -> Self {
        Self::Fatal(error)
    }
}

/// Why an original could not be read.
fn unread(errno: Errno) -> Skip {
    Skip::Entry(match errno {
        Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::STALE => "gone or replaced meanwhile",
        Errno::ACCESS | Errno::PERM => "not readable by the service",
        Errno::NXIO => "not a file",
        _ => NOT_READABLE,
    })
}

impl Copying<'_> {
    fn database(&mut self, name: &str, place: &Path) -> Result<(), BackupError> {
        let path = place.join(name);
        let failed = || BackupError::io("reading", &path);
        let file = File::open(&path).map_err(failed())?;
        let stat = rustix::fs::fstat(&file)
            .map_err(io::Error::from)
            .map_err(failed())?;
        self.begin_section(Path::new(name));
        let size = content::size_of(&stat);
        let digest = match &mut *self.target {
            Target::Folder { .. } => {
                let copied = content::copy(&file, size, false, |_, _| Ok(()), &mut |_| true);
                copied
                    .map(|(_, digest)| digest)
                    .map_err(|error| match error {
                        CopyError::Read(error) | CopyError::Write(error) => failed()(error),
                        CopyError::Stopped => BackupError::Stopped,
                    })?
            }
            Target::Stream { tar, .. } => {
                let mut exactly = Exactly::new(&file, size);
                let mut header = tar_header(
                    tar::EntryType::Regular,
                    size,
                    Timestamp::from_secs(stat.st_mtime),
                );
                tar.append_data(&mut header, name, &mut exactly)
                    .map_err(BackupError::io("writing", name))?;
                exactly.digest()
            }
        };
        let line = Line {
            size,
            sha256: Some(hex::encode(digest)),
            ..line_of(Path::new(name), EntryKind::File, &stat)
        };
        self.bytes += size;
        self.write(&line)?;
        self.end_section();
        Ok(())
    }

    /// Copies a directory of the data directory: what is in each home or archive is a section, and the rest is one.
    fn root(&mut self, data: &OwnedFd, root: &str) -> Result<(), BackupError> {
        let path = Path::new(root);
        let dir = match beneath::open_dir(data, path) {
            Ok(dir) => dir,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(BackupError::io("opening", path)(errno)),
        };
        let stat = rustix::fs::fstat(&dir).map_err(BackupError::io("inspecting", path))?;
        let to = self.make_top(path)?;
        let mut own = Vec::new();
        for entry in Dir::read_from(&dir).map_err(BackupError::io("listing", path))? {
            let entry = entry.map_err(BackupError::io("listing", path))?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            match name.as_bytes() {
                b"." | b".." | b".restoring" | b".git" => {}
                hidden
                    if hidden.starts_with(b".")
                        || matches!(root, "skills" | "skill-repositories") =>
                {
                    own.push(name.to_owned());
                }
                _ => {
                    let section = path.join(name);
                    self.begin_section(&section);
                    self.section_entry(dir.as_fd(), to.as_ref(), Path::new(name), &section)?;
                    self.end_section();
                }
            }
        }
        self.begin_section(path);
        for name in own {
            let entry = path.join(&name);
            self.section_entry(dir.as_fd(), to.as_ref(), Path::new(&name), &entry)?;
        }
        self.write(&line_of(path, EntryKind::Dir, &stat))?;
        self.end_section();
        Ok(())
    }

    fn make_top(&mut self, path: &Path) -> Result<Option<OwnedFd>, BackupError> {
        match &mut *self.target {
            Target::Folder { top, .. } => {
                let made = rustix::fs::mkdirat(&*top, path, Mode::RWXU)
                    .and_then(|()| beneath::open_dir(&*top, path));
                made.map(Some).map_err(BackupError::io("making", path))
            }
            Target::Stream { tar, .. } => {
                let mut header = tar_header(tar::EntryType::Directory, 0, Timestamp::from_secs(0));
                tar.append_data(&mut header, path, io::empty())
                    .map_err(BackupError::io("writing", path))?;
                Ok(None)
            }
        }
    }

    fn begin_section(&mut self, path: &Path) {
        self.progress.section = escape(path);
        self.sections.push(Section {
            path: escape(path),
            offset: self.lines.offset(),
            lines: self.lines.lines,
        });
        self.names.clear();
        self.before.clear();
        let Target::Folder {
            before: Some(before),
            ..
        } = &*self.target
        else {
            return;
        };
        self.before_is_older_than = before.head.started_at.as_secs() - COARSE_SECONDS;
        // What cannot be read of the backup before is copied again.
        for line in before
            .lines_of(path)
            .into_iter()
            .flatten()
            .take(MOST_BEFORE)
        {
            let Ok(line) = line else { break };
            let parse = || {
                let mut before = Before {
                    stamp: [0; 16],
                    digest: [0; 32],
                    sparse: line.sparse,
                };
                hex::decode_to_slice(line.stamp.as_ref()?, &mut before.stamp).ok()?;
                hex::decode_to_slice(line.sha256.as_ref()?, &mut before.digest).ok()?;
                Some(before)
            };
            if let Some(parsed) = parse() {
                self.before.insert(key_of(&line.to_path()), parsed);
            }
        }
    }

    /// Notes the end of a section; one without lines is none.
    fn end_section(&mut self) {
        if let Some(section) = self.sections.last_mut() {
            section.lines = self.lines.lines - section.lines;
            if section.lines == 0 {
                self.sections.pop();
            }
        }
    }

    fn write(&mut self, line: &Line) -> Result<(), BackupError> {
        self.lines
            .write(line)
            .map_err(BackupError::io("writing", LINES))?;
        self.progress.entries += 1;
        match (self.watch)(&self.progress) {
            true => Ok(()),
            false => Err(BackupError::Stopped),
        }
    }

    /// Copies an entry of a root, and all that is in it.
    fn section_entry(
        &mut self,
        at: BorrowedFd<'_>,
        to: Option<&OwnedFd>,
        name: &Path,
        path: &Path,
    ) -> Result<(), BackupError> {
        let mut path = path.to_owned();
        let mut levels: Vec<Level> = Vec::new();
        match self.entry(at, to, name, &path, 0) {
            Ok(Some(level)) => levels.push(level),
            Ok(None) => {}
            Err(Skip::Entry(reason)) => self.left_out.push(reason, &path),
            Err(Skip::Fatal(error)) => return Err(error),
        }
        let mut seen = 0_u64;
        while let Some(level) = levels.last_mut() {
            seen += 1;
            let next = match level.dir.read() {
                // An agent may fill a directory as fast as it is listed.
                Some(Ok(entry)) if seen <= MOST_ENTRIES => entry,
                ended => {
                    match ended {
                        None => {}
                        Some(Ok(_)) => self.left_out.push("behind too many entries", &path),
                        Some(Err(_)) => self.left_out.push(NOT_LISTED_TO_ITS_END, &path),
                    }
                    let stat = level.stat;
                    levels.pop();
                    self.write(&line_of(&path, EntryKind::Dir, &stat))?;
                    path.pop();
                    continue;
                }
            };
            let name = Path::new(OsStr::from_bytes(next.file_name().to_bytes()));
            if matches!(next.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            path.push(name);
            let depth = levels.len();
            let Some(level) = levels.last() else { break };
            let outcome = match level.dir.fd() {
                Ok(at) => self.entry(at, level.to.as_ref(), name, &path, depth),
                Err(errno) => Err(unread(errno)),
            };
            match outcome {
                Ok(Some(level)) => {
                    levels.push(level);
                    continue;
                }
                Ok(None) => {}
                Err(Skip::Entry(reason)) => self.left_out.push(reason, &path),
                Err(Skip::Fatal(error)) => return Err(error),
            }
            path.pop();
        }
        Ok(())
    }

    /// Copies an entry; gives the directory that is to be gone through.
    fn entry(
        &mut self,
        at: BorrowedFd<'_>,
        to: Option<&OwnedFd>,
        name: &Path,
        path: &Path,
        depth: usize,
    ) -> Result<Option<Level>, Skip> {
        if path.as_os_str().len() > LONGEST || depth > DEEPEST {
            return Err(Skip::Entry("path too long or too deep"));
        }
        let stat = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW).map_err(unread)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => self.directory(at, to, name, path).map(Some),
            FileType::RegularFile => self.file(at, to, name, path).map(|()| None),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(at, name, Vec::new()).map_err(unread)?;
                let target = Path::new(OsStr::from_bytes(target.to_bytes()));
                let line = Line {
                    target: Some(escape(target)),
                    ..line_of(path, EntryKind::Link, &stat)
                };
                self.write(&line)?;
                Ok(None)
            }
            FileType::Fifo => Err(Skip::Entry("a fifo")),
            FileType::Socket => Err(Skip::Entry("a socket")),
            _ => Err(Skip::Entry("a device")),
        }
    }

    fn directory(
        &mut self,
        at: BorrowedFd<'_>,
        to: Option<&OwnedFd>,
        name: &Path,
        path: &Path,
    ) -> Result<Level, Skip> {
        let opened = beneath::open_dir(at, name).map_err(unread)?;
        let stat = rustix::fs::fstat(&opened).map_err(unread)?;
        let dir = Dir::new(opened).map_err(unread)?;
        let failed = || BackupError::io("making", path);
        let to = match (&mut *self.target, to) {
            (Target::Stream { tar, .. }, _) => {
                let mut header = tar_header(
                    tar::EntryType::Directory,
                    0,
                    Timestamp::from_secs(stat.st_mtime),
                );
                tar.append_data(&mut header, path, io::empty())
                    .map_err(failed())?;
                None
            }
            (Target::Folder { .. }, Some(to)) => {
                match rustix::fs::mkdirat(to, name, Mode::RWXU) {
                    // Listed twice, since it was renamed meanwhile.
                    Err(Errno::EXIST) => return Err(Skip::Entry("listed twice")),
                    made => made.map_err(io::Error::from).map_err(failed())?,
                }
                let made = beneath::open_dir(to, name).map_err(io::Error::from);
                Some(made.map_err(failed())?)
            }
            (Target::Folder { .. }, None) => None,
        };
        Ok(Level { dir, to, stat })
    }

    fn file(
        &mut self,
        at: BorrowedFd<'_>,
        to: Option<&OwnedFd>,
        name: &Path,
        path: &Path,
    ) -> Result<(), Skip> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let original = beneath::open(at, name, flags, Mode::empty()).map_err(unread)?;
        let stat = rustix::fs::fstat(&original).map_err(unread)?;
        // It may have been swapped for something else since it was listed.
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(unread(Errno::NOENT));
        }
        let original = File::from(original);
        let several = stat.st_nlink > 1;
        let id = (stat.st_dev, stat.st_ino);
        if several && let Some(line) = self.other_name(id, to, name, path)? {
            return Ok(self.write(&line)?);
        }
        if stat.st_nlink > MOST_COPIES && self.names.len() >= MOST_NAMES {
            return Err(Skip::Entry("one of too many files with several names"));
        }
        let stamp = stamp_of(&stat);
        let shared = self.share(&stat, stamp, to, name, path)?;
        let (size, digest, sparse) = match shared {
            Some(shared) => shared,
            None => self.copy(&original, &stat, to, name, path)?,
        };
        let line = Line {
            size,
            sha256: Some(hex::encode(digest)),
            sparse,
            stamp: Some(hex::encode(stamp)),
            ..line_of(path, EntryKind::File, &stat)
        };
        self.bytes = self.bytes.saturating_add(size);
        if several && self.names.len() < MOST_NAMES {
            let (path, line) = (path.to_owned(), line.clone());
            self.names.insert(id, First { path, line });
        }
        Ok(self.write(&line)?)
    }

    /// Gives the copy of a file with several names another one.
    fn other_name(
        &mut self,
        id: (u64, u64),
        to: Option<&OwnedFd>,
        name: &Path,
        path: &Path,
    ) -> Result<Option<Line>, Skip> {
        let Some(first) = self.names.get(&id) else {
            return Ok(None);
        };
        match (&mut *self.target, to) {
            (Target::Folder { top, .. }, Some(to)) => {
                let linked = rustix::fs::linkat(&*top, &first.path, to, name, AtFlags::empty());
                match linked {
                    Err(Errno::EXIST) => return Err(Skip::Entry("listed twice")),
                    // As many names as a file may have: this one is the next.
                    Err(_) => return Ok(None),
                    Ok(()) => {}
                }
            }
            (Target::Stream { tar, .. }, _) => {
                let mut header = tar_header(tar::EntryType::Link, 0, Timestamp::from_secs(0));
                tar.append_link(&mut header, path, &first.path)
                    .map_err(BackupError::io("writing", path))?;
            }
            (Target::Folder { .. }, None) => return Ok(None),
        }
        Ok(Some(Line {
            path: escape(path),
            same_as: Some(escape(&first.path)),
            stamp: None,
            ..first.line.clone()
        }))
    }

    /// Shares a file that is as it was with the backup before.
    fn share(
        &mut self,
        stat: &Stat,
        stamp: [u8; 16],
        to: Option<&OwnedFd>,
        name: &Path,
        path: &Path,
    ) -> Result<Option<(u64, Digest, bool)>, Skip> {
        let Target::Folder { before, .. } = &*self.target else {
            return Ok(None);
        };
        let (Some(before), Some(to)) = (before, to) else {
            return Ok(None);
        };
        let Some(known) = self.before.get(&key_of(path)) else {
            return Ok(None);
        };
        if known.stamp != stamp || stat.st_ctime >= self.before_is_older_than {
            return Ok(None);
        }
        match rustix::fs::linkat(before.dir(), path, to, name, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(Skip::Entry("listed twice")),
            Err(_) => return Ok(None),
        }
        let linked = rustix::fs::statat(to, name, AtFlags::SYMLINK_NOFOLLOW);
        let is_whole = linked.is_ok_and(|linked| {
            FileType::from_raw_mode(linked.st_mode) == FileType::RegularFile
                && linked.st_size == stat.st_size
        });
        if !is_whole {
            let removed = rustix::fs::unlinkat(to, name, AtFlags::empty());
            removed.map_err(BackupError::io("replacing", path))?;
            return Ok(None);
        }
        self.shared += 1;
        Ok(Some((content::size_of(stat), known.digest, known.sparse)))
    }

    fn copy(
        &mut self,
        original: &File,
        stat: &Stat,
        to: Option<&OwnedFd>,
        name: &Path,
        path: &Path,
    ) -> Result<(u64, Digest, bool), Skip> {
        let size = content::size_of(stat);
        let failed = || BackupError::io("writing", path);
        match (&mut *self.target, to) {
            (Target::Stream { tar, .. }, _) => {
                if content::has_holes(stat) && size > LARGEST_STREAMED {
                    return Err(Skip::Entry(
                        "a large file with holes, which a stream cannot hold",
                    ));
                }
                let mut exactly = Exactly::new(original, size);
                let mut header = tar_header(
                    tar::EntryType::Regular,
                    size,
                    Timestamp::from_secs(stat.st_mtime),
                );
                tar.append_data(&mut header, path, &mut exactly)
                    .map_err(failed())?;
                self.progress.bytes += size;
                Ok((size, exactly.digest(), false))
            }
            (Target::Folder { .. }, Some(to)) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                let copy = match beneath::open(to, name, flags, Mode::RUSR | Mode::WUSR) {
                    Err(Errno::EXIST) => return Err(Skip::Entry("listed twice")),
                    opened => File::from(opened.map_err(io::Error::from).map_err(failed())?),
                };
                let sparse = content::has_holes(stat);
                if sparse {
                    copy.set_len(size).map_err(failed())?;
                }
                let (progress, watch) = (&mut self.progress, &mut self.watch);
                let copied = content::copy(
                    original,
                    size,
                    sparse,
                    |offset, block| copy.write_all_at(block, offset),
                    &mut |read| {
                        progress.bytes += read;
                        watch(progress)
                    },
                );
                match copied {
                    Ok((size, digest)) => Ok((size, digest, sparse)),
                    Err(CopyError::Write(error)) => Err(failed()(error).into()),
                    Err(CopyError::Stopped) => Err(BackupError::Stopped.into()),
                    Err(CopyError::Read(_)) => {
                        let removed = rustix::fs::unlinkat(to, name, AtFlags::empty());
                        removed.map_err(io::Error::from).map_err(failed())?;
                        Err(Skip::Entry(NOT_READ_TO_ITS_END))
                    }
                }
            }
            (Target::Folder { .. }, None) => Err(unread(Errno::NOENT)),
        }
    }
}

fn line_of(path: &Path, kind: EntryKind, stat: &Stat) -> Line {
    Line {
        path: escape(path),
        kind,
        mode: format!("{:04o}", stat.st_mode & 0o7777),
        uid: stat.st_uid,
        gid: stat.st_gid,
        mtime: (
            stat.st_mtime,
            i64::try_from(stat.st_mtime_nsec).unwrap_or(0),
        ),
        size: 0,
        sha256: None,
        sparse: false,
        same_as: None,
        target: None,
        stamp: None,
    }
}

fn key_of(path: &Path) -> [u8; 16] {
    shortened(Sha256::digest(path.as_os_str().as_bytes()).into())
}

/// Changes with every write to a file and every change of its state. Its owner can set all times but the last.
fn stamp_of(stat: &Stat) -> [u8; 16] {
    let mut hash = Sha256::new();
    hash.update(stat.st_ino.to_be_bytes());
    hash.update(stat.st_size.to_be_bytes());
    for (seconds, nanoseconds) in [
        (stat.st_mtime, stat.st_mtime_nsec),
        (stat.st_ctime, stat.st_ctime_nsec),
    ] {
        hash.update(seconds.to_be_bytes());
        hash.update(i64::try_from(nanoseconds).unwrap_or(0).to_be_bytes());
    }
    shortened(hash.finalize().into())
}

fn shortened(digest: Digest) -> [u8; 16] {
    let mut short = [0; 16];
    for (to, from) in short.iter_mut().zip(digest) {
        *to = from;
    }
    short
}
