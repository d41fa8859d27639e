//! The folder of one conversation.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;

use super::compact;
use super::lines::{LINE, Place, Scan, Verdict, for_each_line_backwards, is_line};
use super::meta::{META, Meta};
use crate::fault;
use crate::home::beneath;
use crate::home::files::READ;
use crate::home::user_home::UserHome;
use crate::home::workspace::{
    FileError, OpenFile, PathError, Received, WorkspacePath, open_regular,
};
use crate::home::{LONG_READING, Note, WORKSPACE_DIR};
use crate::ids::Timestamp;

/// Longest file of entries, in bytes.
pub const LONGEST: u64 = 64 * 1024 * 1024;
/// Name of the file of entries.
pub(super) const ENTRIES: &str = "entries.jsonl";
/// Name of the directory of received files.
const FILES: &str = "files";

/// An open conversation. Its folder is the agent's, too: nothing in it is followed, and all that is read is bounded.
#[derive(Debug)]
pub struct Folder {
    pub(super) home: UserHome,
    pub(super) dir: OwnedFd,
    path: WorkspacePath,
}

/// A conversation that no other process or task appends to while this lives.
#[derive(Debug)]
pub struct HeldFolder {
    folder: Folder,
    /// Length of the file of entries from which on it is compacted, in bytes.
    pub(super) compact_from: u64,
    /// Least that a compaction has to save, in bytes.
    pub(super) least_saving: u64,
}

/// The open file of a conversation's entries, as long as it was when it was opened.
#[derive(Debug)]
pub struct EntriesFile {
    home: UserHome,
    file: File,
    length: u64,
    path: WorkspacePath,
}

impl EntriesFile {
    /// Calls `see` with the lines in at most so many bytes (at most [`LONGEST`]) at the end of the file, the newest one first. A last
    /// line that is not finished is left out. Ends after [`super::MOST_LINES`], or more than [`super::MOST_UNREADABLE`] that were left
    /// out.
    ///
    /// # Errors
    /// [`FileError`] when it cannot be read.
    pub fn read_newest(
        &self,
        most_bytes: u64,
        see: impl FnMut(Place, &str) -> Verdict,
    ) -> Result<Scan, FileError> {
        let begin = self.length.saturating_sub(most_bytes.min(LONGEST));
        let note = note_reading(&self.home, &self.path, self.length);
        let scan = for_each_line_backwards(&self.file, begin, self.length, see);
        let mut scan = scan.map_err(FileError::of("reading", &self.path))?;
        scan.ended_early |= begin > 0;
        if !scan.ended_early {
            note.finish();
        }
        Ok(scan)
    }

    /// Reads the line at a place; `None` when there is no such text any more.
    pub fn read_line(&self, place: Place) -> Option<String> {
        let length = usize::try_from(place.length).ok()?.min(LINE);
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, place.offset).ok()?;
        String::from_utf8(bytes).ok()
    }

    /// Returns the length of the file in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }
}

impl Folder {
    pub(super) fn new(
        home: &UserHome,
        dir: OwnedFd,
        path: WorkspacePath,
    ) -> Result<Self, FileError> {
        let home = home.try_clone().map_err(FileError::of("opening", &path))?;
        Ok(Self { home, dir, path })
    }

    /// Title and times; those of the folder, and no title, when there are none that can be read.
    pub fn meta(&self) -> Meta {
        Meta::from_file(&self.dir).unwrap_or_else(|| match rustix::fs::fstat(&self.dir) {
            Ok(stat) => Meta::from_folder(&stat),
            Err(_) => Meta {
                title: String::new(),
                created_at: Timestamp::default(),
                last_used_at: Timestamp::default(),
            },
        })
    }

    /// Replaces title and times. A process that is killed meanwhile leaves the old or the new ones.
    ///
    /// # Errors
    /// [`FileError::NotAFile`] when a directory is in the way, [`FileError::Full`]; otherwise [`FileError`].
    pub fn write_meta(&self, meta: &Meta) -> Result<(), FileError> {
        let path = self.path_of(META);
        let content = serde_json::to_vec(&meta.cleaned());
        let content = content.map_err(FileError::of("writing", &path))?;
        let temporary = self
            .home
            .prepare(self.dir.as_fd(), content.as_slice(), 0o644)
            .map_err(FileError::of("writing", &path))?;
        fault::point("conversation.meta.before_rename");
        let replaced = temporary.replace(&self.dir, OsStr::new(META));
        replaced
            .and_then(|()| rustix::fs::fsync(&self.dir))
            .map_err(FileError::of("writing", &path))
    }

    /// Records a use: the title and the other time stay. Returns what is written.
    ///
    /// # Errors
    /// As [`Folder::write_meta`].
    pub fn write_last_use(&self, at: Timestamp) -> Result<Meta, FileError> {
        let meta = Meta {
            last_used_at: at,
            ..self.meta()
        };
        self.write_meta(&meta)?;
        Ok(meta)
    }

    /// Opens the entries for reading; `None` when there are none yet.
    ///
    /// # Errors
    /// [`FileError::Link`], [`FileError::NotAFile`] (also for a file with several names); otherwise [`FileError`].
    pub fn entries(&self) -> Result<Option<EntriesFile>, FileError> {
        let path = self.path_of(ENTRIES);
        let Some((file, stat)) = self.open_entries(READ, &path)? else {
            return Ok(None);
        };
        let home = self.home.try_clone();
        Ok(Some(EntriesFile {
            home: home.map_err(FileError::of("opening", &path))?,
            file,
            length: length(&stat),
            path,
        }))
    }

    /// Opens a received file for reading.
    ///
    /// # Errors
    /// [`FileError::NotFound`], also for a name that none can have; otherwise as [`Folder::entries`].
    pub fn open_file(&self, name: &str) -> Result<OpenFile, FileError> {
        let files = self.path_of(FILES);
        let path = files.join(name).map_err(|_| FileError::NotFound {
            path: format!("{files}/{name}"),
        })?;
        let opened = beneath::open_dir(&self.dir, Path::new(FILES));
        let directory = opened.map_err(FileError::of("opening", &path))?;
        let (file, stat) = open_single(&directory, name, READ, &path)?;
        Ok(OpenFile::new(file, &stat))
    }

    /// Keeps a file that was received under a name that is free.
    ///
    /// # Errors
    /// [`FileError::Exists`], [`FileError::TooLong`], [`FileError::NotAFile`] for a name that no file can have,
    /// [`FileError::Full`]; otherwise [`FileError`].
    pub fn place_file(&self, name: &str, received: &Received) -> Result<(), FileError> {
        let files = self.path_of(FILES);
        let path = files.join(name).map_err(|error| {
            let path = format!("{files}/{name}");
            match error {
                PathError::TooLong => FileError::TooLong { path },
                _ => FileError::NotAFile { path },
            }
        })?;
        let directory = make_dir(&self.home, &self.dir, FILES, &files)?;
        received.place_new(&directory, &path)
    }

    pub(super) fn path_of(&self, name: &str) -> WorkspacePath {
        self.path.join(name).unwrap_or_default()
    }

    /// Opens the file of entries; `None` when there is none.
    pub(super) fn open_entries(
        &self,
        flags: OFlags,
        path: &WorkspacePath,
    ) -> Result<Option<(File, Stat)>, FileError> {
        match open_single(&self.dir, ENTRIES, flags, path) {
            Ok(opened) => Ok(Some(opened)),
            Err(FileError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes the file of entries.
    fn make_entries(&self, flags: OFlags, path: &WorkspacePath) -> Result<File, FileError> {
        let flags = flags | OFlags::CREATE | OFlags::EXCL;
        let made = beneath::open(
            &self.dir,
            Path::new(ENTRIES),
            flags,
            Mode::from_raw_mode(0o644),
        );
        let made = File::from(made.map_err(FileError::of("making", path))?);
        self.home
            .give_to_owner(&made)
            .and_then(|()| rustix::fs::fsync(&self.dir))
            .map_err(FileError::of("making", path))?;
        Ok(made)
    }
}

impl HeldFolder {
    pub(super) fn new(folder: Folder) -> Self {
        Self {
            folder,
            compact_from: compact::SHORTEST,
            least_saving: compact::SAVING,
        }
    }

    /// Adds entries: lines without a line break, each at most [`LINE`] bytes long and without NUL characters. They are on the
    /// disk then. What an interrupted writer has left of a line becomes a line of its own.
    ///
    /// # Errors
    /// [`FileError::TooLarge`] when the file would be longer than [`LONGEST`] or a line is too long, [`FileError::Full`];
    /// otherwise as [`Folder::entries`]. Nothing is added then, as far as that can be undone.
    pub fn append_lines(&mut self, lines: &[String]) -> Result<(), FileError> {
        let path = self.path_of(ENTRIES);
        let failed = || FileError::of("writing", &path);
        if lines.is_empty() {
            return Ok(());
        }
        if lines.iter().any(|line| line.len() > LINE) {
            return Err(too_large(&path, LINE as u64));
        }
        if !lines.iter().all(|line| is_line(line)) {
            return Err(failed()(io::Error::from(io::ErrorKind::InvalidInput)));
        }
        let added = lines.iter().map(|line| line.len() as u64 + 1).sum::<u64>();
        if added > LONGEST {
            return Err(too_large(&path, LONGEST));
        }
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NONBLOCK;
        let (file, length) = match self.open_entries(flags, &path)? {
            Some((file, stat)) => (file, length(&stat)),
            None => (self.make_entries(flags, &path)?, 0),
        };
        let mut content = String::new();
        if !ends_line(&file, length).map_err(failed())? {
            content.push('\n');
        }
        if length + content.len() as u64 + added > LONGEST {
            return Err(too_large(&path, LONGEST));
        }
        for line in lines {
            content.push_str(line);
            content.push('\n');
        }
        fault::point("conversation.append.before_write");
        let written = (&file).write_all(content.as_bytes());
        written.and_then(|()| file.sync_data()).map_err(|error| {
            // Entries that are added again would otherwise be there twice.
            let _ = file.set_len(length);
            failed()(error)
        })
    }
}

impl Deref for HeldFolder {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.folder
    }
}

/// Notes that a file of entries is being read, if that may take long: one at which the process dies twice is set aside.
pub(super) fn note_reading(home: &UserHome, path: &WorkspacePath, length: u64) -> Note {
    match length >= LONG_READING {
        true => home.note_reading(&format!("{WORKSPACE_DIR}/{path}")),
        false => Note::default(),
    }
}

/// Opens a regular file that has no other name, in which the agent would see or change what is kept elsewhere.
pub(super) fn open_single(
    directory: &OwnedFd,
    name: &str,
    flags: OFlags,
    path: &WorkspacePath,
) -> Result<(File, Stat), FileError> {
    let (file, stat) = open_regular(directory, Path::new(name), flags, path)?;
    let shown = || path.to_string();
    match stat.st_nlink {
        1 => Ok((file, stat)),
        0 => Err(FileError::Meanwhile { path: shown() }),
        _ => Err(FileError::NotAFile { path: shown() }),
    }
}

/// Opens a directory of an open one, made if it is missing; `path` is its path in the workspace.
pub(super) fn make_dir(
    home: &UserHome,
    parent: &OwnedFd,
    name: &str,
    path: &WorkspacePath,
) -> Result<OwnedFd, FileError> {
    let is_made = match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o755)) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(errno) => return Err(FileError::of("making", path)(errno)),
    };
    let opened = beneath::open_dir(parent, Path::new(name));
    let directory = opened.map_err(FileError::of("opening", path))?;
    if is_made {
        home.give_to_owner(&directory)
            .and_then(|()| rustix::fs::fsync(parent))
            .map_err(FileError::of("making", path))?;
    }
    Ok(directory)
}

/// Reads a file of this length from its beginning.
pub(super) fn reader_of(mut file: &File, length: u64) -> io::Result<impl io::BufRead + use<'_>> {
    file.seek(SeekFrom::Start(0))?;
    Ok(BufReader::new(file.take(length)))
}

/// Returns true if a file of this length ends with a line break, or is empty.
fn ends_line(file: &File, length: u64) -> io::Result<bool> {
    let Some(last) = length.checked_sub(1) else {
        return Ok(true);
    };
    let mut byte = [0];
    // The agent may have made it shorter meanwhile.
    let read = file.read_at(&mut byte, last)?;
    Ok(read == 1 && byte == [b'\n'])
}

pub(super) fn length(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

fn too_large(path: &WorkspacePath, limit: u64) -> FileError {
    FileError::TooLarge {
        path: path.to_string(),
        limit,
    }
}
