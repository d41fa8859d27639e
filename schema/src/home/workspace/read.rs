//! Reading a file: piece by piece, or as text to be edited.

use std::fs::File;
use std::io::{self, IoSliceMut, Read};
use std::os::unix::fs::FileExt;

use rustix::fs::Stat;
use rustix::io::{Errno, ReadWriteFlags};

use super::error::FileError;
use super::list::modified;
use super::path::WorkspacePath;
use super::{Workspace, open_regular};
use crate::home::files::{READ, Stamp};
use crate::ids::Timestamp;

/// The longest text that can be edited, in bytes.
pub const EDITABLE: u64 = 1024 * 1024;

/// An open regular file.
#[derive(Debug)]
pub struct OpenFile {
    pub(super) file: File,
    stamp: Stamp,
    modified: Timestamp,
}

impl OpenFile {
    /// A file that was opened, with what the system says of it.
    pub(in crate::home) fn new(file: File, stat: &Stat) -> Self {
        Self {
            file,
            stamp: Stamp::of(stat),
            modified: modified(stat),
        }
    }

    /// Its length when it was opened, in bytes.
    pub fn size(&self) -> u64 {
        self.stamp.size
    }

    /// When it was last changed.
    pub fn modified(&self) -> Timestamp {
        self.modified
    }

    /// Names this state of the file: another write leaves another one.
    pub fn etag(&self) -> String {
        etag(&self.stamp)
    }

    /// Fills `piece` with the bytes from `offset` on, as far as the file goes. Returns how many there are.
    ///
    /// # Errors
    /// Those of the system.
    pub fn read_at(&self, offset: u64, piece: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = piece.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, offset + filled as u64) {
                Ok(0) => break,
                Ok(length) => filled += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    /// As [`OpenFile::read_at`], with what the system has in memory: this never waits for a disk. What it has not is not an error.
    pub fn read_cached_at(&self, offset: u64, piece: &mut [u8]) -> usize {
        let mut filled = 0;
        while let Some(rest) = piece.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let (at, nowait) = (offset + filled as u64, ReadWriteFlags::NOWAIT);
            match rustix::io::preadv2(&self.file, &mut [IoSliceMut::new(rest)], at, nowait) {
                Ok(length) if length > 0 => filled += length,
                Err(Errno::INTR) => {}
                // The end, what is not in memory, and file systems that cannot say: whoever may wait finds out.
                Ok(_) | Err(_) => break,
            }
        }
        filled
    }
}

/// A text that can be edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditableText {
    /// What is in it.
    pub content: String,
    /// Which state of the file it is.
    pub etag: String,
}

/// Names a state of a file: another write leaves another one.
fn etag(stamp: &Stamp) -> String {
    format!("{:x}-{:x}-{:x}", stamp.inode, stamp.size, stamp.modified_ns)
}

pub(super) fn etag_of(stat: &Stat) -> String {
    etag(&Stamp::of(stat))
}

impl Workspace {
    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn open_file(&self, path: &WorkspacePath) -> Result<OpenFile, FileError> {
        if path.is_top() {
            return Err(FileError::NotAFile {
                path: path.to_string(),
            });
        }
        let (file, stat) = open_regular(&self.top, path.as_ref(), READ, path)?;
        Ok(OpenFile::new(file, &stat))
    }

    /// Reads a whole file of at most `most` bytes.
    ///
    /// # Errors
    /// [`FileError::TooLarge`] for a longer one, of which no more is read; otherwise [`FileError`].
    pub fn read_bytes(&self, path: &WorkspacePath, most: u64) -> Result<Vec<u8>, FileError> {
        let file = self.open_file(path)?;
        let mut content = Vec::new();
        (&file.file)
            .take(most.saturating_add(1))
            .read_to_end(&mut content)
            .map_err(FileError::of("reading", path))?;
        match content.len() as u64 > most {
            true => Err(FileError::TooLarge {
                path: path.to_string(),
                limit: most,
            }),
            false => Ok(content),
        }
    }

    /// Reads a text that can be edited: whether it can is decided by what is in it.
    ///
    /// # Errors
    /// [`FileError::NotText`] for what is longer than [`EDITABLE`], not UTF-8, or has a NUL in it; otherwise [`FileError`].
    pub fn read_text(&self, path: &WorkspacePath) -> Result<EditableText, FileError> {
        const NOT_TEXT: FileError = FileError::NotText { limit: EDITABLE };
        let file = self.open_file(path)?;
        let mut content = Vec::new();
        (&file.file)
            .take(EDITABLE + 1)
            .read_to_end(&mut content)
            .map_err(FileError::of("reading", path))?;
        if content.len() as u64 > EDITABLE || content.contains(&0) {
            return Err(NOT_TEXT);
        }
        Ok(EditableText {
            content: String::from_utf8(content).map_err(|_| NOT_TEXT)?,
            etag: file.etag(),
        })
    }
}
