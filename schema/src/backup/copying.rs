//! Copying the files of an installation into a backup: what is gone through, and in which order.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, Stat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::content::{self, CopyError, Digest, Exactly};
use super::keys::Keys;
use super::lines::LineWriter;
use super::link::FileId;
use super::make::{Progress, Target, tar_header};
use super::manifest::{
    EntryKind, LINES, LeftOut, Line, NOT_LISTED_TO_ITS_END, NOT_READABLE, Section, escape,
};
use super::settings_files::SettingsFiles;
use super::{BackupError, Watch};
use crate::home::beneath;
use crate::ids::Timestamp;

/// Deepest directory, so many of which are open at once, twice each.
const DEEPEST: usize = 400;
/// Longest path: no program opens a longer one by its name.
const LONGEST: usize = 4000;
/// Most entries of a home, or of another entry of a root, that are gone through.
const MOST_ENTRIES: u64 = 20_000_000;
/// Of so many files of a section the state in the backup before is remembered: some 100 MB.
const MOST_BEFORE: usize = 1_000_000;
/// A file that changed within this time before the backup before is copied again: times of files are coarse.
const COARSE_SECONDS: i64 = 2;

/// A file in the backup before.
pub(super) struct Before {
    pub(super) stamp: [u8; 16],
    pub(super) digest: Digest,
    pub(super) size: u64,
    pub(super) sparse: bool,
    pub(super) sealed: bool,
}

/// A file that has other names.
pub(super) struct First {
    pub(super) path: PathBuf,
    pub(super) line: Line,
    /// Its copy; `None` in a stream.
    pub(super) copy: Option<FileId>,
}

pub(super) struct Copying<'a> {
    pub(super) target: &'a mut Target,
    pub(super) keys: &'a Keys,
    pub(super) settings: &'a SettingsFiles,
    pub(super) lines: LineWriter,
    pub(super) sections: Vec<Section>,
    pub(super) left_out: LeftOut,
    pub(super) bytes: u64,
    pub(super) shared: u64,
    /// Files of the section in the backup before, by the digest of their paths.
    pub(super) before: HashMap<[u8; 16], Before>,
    /// A file whose state changed later, in seconds since 1970, is copied.
    pub(super) before_is_older_than: i64,
    /// Files of the section with several names.
    pub(super) names: HashMap<(u64, u64), First>,
    pub(super) progress: Progress,
    pub(super) watch: Watch<'a>,
}

/// A directory on the way.
pub(super) struct Level {
    dir: Dir,
    to: Option<OwnedFd>,
    stat: Stat,
}

/// Reason for which an entry is left out, or what ends the backup.
pub(super) enum Skip {
    Entry(&'static str),
    Fatal(BackupError),
}

impl From<BackupError> for Skip {
    fn from(error: BackupError) -> Self {
        Self::Fatal(error)
    }
}

/// Reason for which an original could not be read.
pub(super) fn unread(errno: Errno) -> Skip {
    Skip::Entry(match errno {
        Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::STALE => "gone or replaced meanwhile",
        Errno::ACCESS | Errno::PERM => "not readable by the service",
        Errno::NXIO => "not a file",
        _ => NOT_READABLE,
    })
}

impl Copying<'_> {
    pub(super) fn database(&mut self, name: &str, place: &Path) -> Result<(), BackupError> {
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
    pub(super) fn root(&mut self, data: &OwnedFd, root: &str) -> Result<(), BackupError> {
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
        self.before_is_older_than = before
            .head
            .started_at
            .as_secs()
            .saturating_sub(COARSE_SECONDS);
        // Files that cannot be read in the backup before are copied again.
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
                    size: line.size,
                    sparse: line.sparse,
                    sealed: line.sealed,
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

    pub(super) fn write(&mut self, line: &Line) -> Result<(), BackupError> {
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
}

pub(super) fn line_of(path: &Path, kind: EntryKind, stat: &Stat) -> Line {
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
        sealed: false,
        same_as: None,
        target: None,
        stamp: None,
    }
}

pub(super) fn key_of(path: &Path) -> [u8; 16] {
    shortened(Sha256::digest(path.as_os_str().as_bytes()).into())
}

/// Changes with every write to a file and every change of its state. Its owner can set all times but the last.
pub(super) fn stamp_of(stat: &Stat) -> [u8; 16] {
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

pub(super) fn shortened(digest: Digest) -> [u8; 16] {
    let mut short = [0; 16];
    for (to, from) in short.iter_mut().zip(digest) {
        *to = from;
    }
    short
}
