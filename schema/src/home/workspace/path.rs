//! Paths inside a workspace, as requests name them.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::home::temporary::is_temporary;

/// Longest path, in bytes: what Linux takes.
const LONGEST_PATH: usize = 4095;
/// Longest name of an entry, in bytes.
const LONGEST_NAME: usize = 255;

/// A path relative to the top of a workspace: plain names separated by `/`. Empty: the top itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkspacePath(String);

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
        let mut path = String::new();
        for name in text.split('/') {
            match name {
                "" | "." => continue,
                ".." => return Err(PathError::Parent),
                name if name.len() > LONGEST_NAME => return Err(PathError::TooLong),
                name if is_temporary(name.as_bytes()) => return Err(PathError::Reserved),
                name => {
                    if !path.is_empty() {
                        path.push('/');
                    }
                    path.push_str(name);
                }
            }
        }
        if path.len() > LONGEST_PATH {
            return Err(PathError::TooLong);
        }
        Ok(Self(path))
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
        self.0.is_empty()
    }

    /// The path, without a slash at either end.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last name; empty at the top.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Every directory on the way from below the top to the path itself, as (name, path).
    pub fn steps(&self) -> impl Iterator<Item = (&str, &str)> {
        let ends = self.0.match_indices('/').map(|(at, _)| at);
        let ends = ends.chain((!self.is_top()).then_some(self.0.len()));
        ends.filter_map(|end| {
            let path = self.0.get(..end)?;
            Some((path.rsplit('/').next().unwrap_or(path), path))
        })
    }

    /// Whether `other` is this path, or lies below it.
    pub(super) fn contains(&self, other: &Self) -> bool {
        let rest = other.0.strip_prefix(&self.0);
        rest.is_some_and(|rest| self.is_top() || rest.is_empty() || rest.starts_with('/'))
    }

    /// The directory that it lies in, and its name there; `None` at the top.
    pub(super) fn split(&self) -> Option<(&Path, &OsStr)> {
        let path = Path::new(&self.0);
        Some((path.parent()?, path.file_name()?))
    }
}

impl AsRef<Path> for WorkspacePath {
    fn as_ref(&self) -> &Path {
        Path::new(&self.0)
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
