//! Paths inside a workspace, as requests name them.

use std::ffi::OsStr;
use std::fmt;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::home::temporary::is_temporary;

/// Longest path, in bytes: what Linux takes.
const LONGEST_PATH: usize = 4095;
/// Longest name of an entry, in bytes.
const LONGEST_NAME: usize = 255;

/// A path relative to the top of a workspace: plain names separated by `/`. Empty: the top itself. In its text a byte that is not
/// UTF-8 is a private character, U+EF00 and the byte (see [`text_of`]).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkspacePath {
    text: String,
    on_disk: PathBuf,
}

/// First of the private characters that stand for bytes.
const BYTES: u32 = 0xEF00;
/// Bytes that can be no UTF-8, and so need such a character.
const HIGH: RangeInclusive<u32> = 0x80..=0xFF;

fn is_byte(c: char) -> bool {
    u32::from(c)
        .checked_sub(BYTES)
        .is_some_and(|byte| HIGH.contains(&byte))
}

fn push_bytes(text: &mut String, bytes: &[u8]) {
    let stand_ins = bytes
        .iter()
        .map(|byte| char::from_u32(BYTES + u32::from(*byte)));
    text.extend(stand_ins.flatten());
}

/// Text of a name in paths: UTF-8 as it is, each other byte as a private character of its own, and these characters as their
/// bytes, so that each name has one text and each text one name.
pub(super) fn text_of(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            match is_byte(c) {
                true => push_bytes(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes()),
                false => text.push(c),
            }
        }
        push_bytes(&mut text, chunk.invalid());
    }
    text
}

/// The name that a text stands for.
fn name_of(text: &str) -> Vec<u8> {
    let mut name = Vec::with_capacity(text.len());
    for c in text.chars() {
        match u8::try_from(u32::from(c).wrapping_sub(BYTES)) {
            Ok(byte) if is_byte(c) => name.push(byte),
            _ => name.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    name
}

/// Why a path is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It begins with `/`.
    #[error("the path is relative to the workspace and does not begin with /")]
    Absolute,
    /// It has a part `..`.
    #[error("the path must not contain ..")]
    Parent,
    /// It has a NUL.
    #[error("the path must not contain NUL characters")]
    Nul,
    /// A name in it is one of the service's own.
    #[error("names like .agentyard-….tmp are the service's own")]
    Reserved,
    /// It, or a name in it, is too long.
    #[error("a path has at most {LONGEST_PATH} bytes, and each name in it at most {LONGEST_NAME}")]
    TooLong,
    /// It is no name of one entry.
    #[error("a name is not empty, . or .., and does not contain /")]
    NotAName,
}

impl FromStr for WorkspacePath {
    type Err = PathError;

    /// `.` and repeated or trailing slashes mean nothing; `/` alone is the top.
    fn from_str(text: &str) -> Result<Self, PathError> {
        if text.starts_with('/') && !text.trim_start_matches('/').is_empty() {
            return Err(PathError::Absolute);
        }
        if text.contains('\0') {
            return Err(PathError::Nul);
        }
        let (mut path, mut on_disk) = (String::new(), PathBuf::new());
        for part in text.split('/') {
            if matches!(part, "" | ".") {
                continue;
            }
            if part == ".." {
                return Err(PathError::Parent);
            }
            let name = name_of(part);
            if name.len() > LONGEST_NAME {
                return Err(PathError::TooLong);
            }
            if is_temporary(&name) {
                return Err(PathError::Reserved);
            }
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(part);
            on_disk.push(OsStr::from_bytes(&name));
        }
        if on_disk.as_os_str().len() > LONGEST_PATH {
            return Err(PathError::TooLong);
        }
        Ok(Self {
            text: path,
            on_disk,
        })
    }
}

impl WorkspacePath {
    /// The entry `name` of this directory.
    ///
    /// # Errors
    /// [`PathError::NotAName`], or that of the rule which the path breaks with it.
    pub fn join(&self, name: &str) -> Result<Self, PathError> {
        if matches!(name, "" | "." | "..") || name.contains('/') {
            return Err(PathError::NotAName);
        }
        match self.is_top() {
            true => name.parse(),
            false => format!("{self}/{name}").parse(),
        }
    }

    /// Whether it is the top of the workspace.
    pub fn is_top(&self) -> bool {
        self.text.is_empty()
    }

    /// The path, without a slash at either end.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The last name; empty at the top.
    pub fn name(&self) -> &str {
        self.text.rsplit('/').next().unwrap_or_default()
    }

    /// Every directory on the way from below the top to the path itself, as (name, path).
    pub fn steps(&self) -> impl Iterator<Item = (&str, &str)> {
        let ends = self.text.match_indices('/').map(|(at, _)| at);
        let ends = ends.chain((!self.is_top()).then_some(self.text.len()));
        ends.filter_map(|end| {
            let path = self.text.get(..end)?;
            Some((path.rsplit('/').next().unwrap_or(path), path))
        })
    }

    /// Whether `other` is this path, or lies below it.
    pub(super) fn contains(&self, other: &Self) -> bool {
        let rest = other.text.strip_prefix(&self.text);
        rest.is_some_and(|rest| self.is_top() || rest.is_empty() || rest.starts_with('/'))
    }

    /// The directory that it lies in, and its name there; `None` at the top.
    pub(super) fn split(&self) -> Option<(&Path, &OsStr)> {
        let path = &self.on_disk;
        Some((path.parent()?, path.file_name()?))
    }
}

impl AsRef<Path> for WorkspacePath {
    fn as_ref(&self) -> &Path {
        &self.on_disk
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
