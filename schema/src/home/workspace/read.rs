//! Reading a file: piece by piece, or as text to be edited.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use rustix::fs::Stat;

use super::Workspace;
use super::error::FileError;
use super::list::modified;
use super::path::WorkspacePath;
use crate::home::files::Stamp;
use crate::ids::Timestamp;

/// The longest text that can be edited, in bytes.
pub const EDITABLE: u64 = 1024 * 1024;

/// An open regular file.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    stamp: Stamp,
    modified: Timestamp,
}

impl OpenFile {
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

    /// The next bytes from `offset` on, at most `most` of them; none at the end.
    ///
    /// # Errors
    /// Those of the system.
    pub fn read_at(&self, offset: u64, most: usize) -> io::Result<Vec<u8>> {
        let mut piece = vec![0; most];
        let mut filled = 0;
        while let Some(rest) = piece.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, offset + filled as u64) {
                Ok(0) => break,
                Ok(length) => filled += length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        piece.truncate(filled);
        Ok(piece)
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
        let (file, stat) = Self::regular_file(&self.top, path.as_ref(), path)?;
        Ok(OpenFile {
            file,
            stamp: Stamp::of(&stat),
            modified: modified(&stat),
        })
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
