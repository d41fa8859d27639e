//! What can go wrong with the files of a workspace.

use std::io;

use rustix::io::Errno;

use super::path::WorkspacePath;
use crate::home::error::HomeError;

/// What can go wrong with the files of a workspace. `path` is relative to it.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// There is nothing at the path.
    #[error("{path:?} not found")]
    NotFound {
        /// The path.
        path: String,
    },
    /// Something is there already.
    #[error("{path:?} already exists")]
    Exists {
        /// The path.
        path: String,
    },
    /// It is no directory, or a part of the way to it is none.
    #[error("{path:?} is not a directory, or lies in something that is not one")]
    NotADirectory {
        /// The path.
        path: String,
    },
    /// It is no regular file.
    #[error("{path:?} is not a regular file")]
    NotAFile {
        /// The path.
        path: String,
    },
    /// It is a symbolic link, or lies behind one.
    #[error("{path:?} is a symbolic link or lies behind one; links are not followed")]
    Link {
        /// The path.
        path: String,
    },
    /// The agent lets nobody read or change it.
    #[error("the permissions of {path:?} forbid it")]
    Forbidden {
        /// The path.
        path: String,
    },
    /// The top of the workspace cannot be moved, removed or written.
    #[error("the top of the workspace cannot be moved, removed or replaced")]
    Top,
    /// The trash and its entries are not moved to the trash.
    #[error("{path:?} is in the trash; set permanent to remove it for good")]
    InTrash {
        /// The path.
        path: String,
    },
    /// A directory cannot be moved into itself.
    #[error("a directory cannot be moved into itself")]
    IntoItself,
    /// The file is not the one that its writer has read.
    #[error("{path:?} has changed; read it again")]
    Changed {
        /// The path.
        path: String,
    },
    /// It was changed while it was read or removed.
    #[error("{path:?} was changed meanwhile; try again")]
    Meanwhile {
        /// The path.
        path: String,
    },
    /// Nothing is moved from one file system to another.
    #[error("{path:?} lies on another file system")]
    OtherFileSystem {
        /// The path.
        path: String,
    },
    /// It failed when a part of it may have been done.
    #[error("{0}; a part of it may have been done before that")]
    Partly(#[source] Box<Self>),
    /// It is not UTF-8 text, or too long to be edited.
    #[error("only UTF-8 text of at most {limit} bytes can be edited")]
    NotText {
        /// The longest text, in bytes.
        limit: u64,
    },
    /// The file system does not take names or paths of this length.
    #[error("{path:?} is longer than the file system takes")]
    TooLong {
        /// The path.
        path: String,
    },
    /// A file, or a line of one, is longer than the caller's limit.
    #[error("{path:?} is longer than {limit} bytes")]
    TooLarge {
        /// The path.
        path: String,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The user has as many conversations as there may be.
    #[error("there are {limit} conversations already; delete some of them")]
    TooManyConversations {
        /// The most.
        limit: usize,
    },
    /// More entries than are packed into one archive.
    #[error("{path:?} has more than {limit} entries; download its directories one by one")]
    TooMany {
        /// The path.
        path: String,
        /// The most.
        limit: usize,
    },
    /// The disk, or what the user may have of it, is full.
    #[error("the disk of the workspace is full")]
    Full(#[source] io::Error),
    /// The user's directory is not as it should be.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The operating system refused.
    #[error("{action} {path:?} failed")]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: String,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

impl FileError {
    /// Something is at the path already.
    pub(in crate::home) fn exists(path: &WorkspacePath) -> Self {
        Self::Exists {
            path: path.to_string(),
        }
    }

    /// The same when something may have been `begun`.
    pub(super) fn after(self, begun: bool) -> Self {
        match begun {
            true => Self::Partly(Box::new(self)),
            false => self,
        }
    }

    /// For `map_err`: what the system's answer means for `path`.
    pub(in crate::home) fn of<E: Into<io::Error>>(
        action: &'static str,
        path: &WorkspacePath,
    ) -> impl FnOnce(E) -> Self {
        move |error| {
            let source = error.into();
            let path = path.to_string();
            match source.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NOENT) => Self::NotFound { path },
                Some(Errno::EXIST | Errno::NOTEMPTY) => Self::Exists { path },
                Some(Errno::NOTDIR) => Self::NotADirectory { path },
                // Sockets, and devices without a driver, cannot be opened.
                Some(Errno::ISDIR | Errno::NXIO | Errno::NODEV) => Self::NotAFile { path },
                Some(Errno::LOOP) => Self::Link { path },
                Some(Errno::XDEV) => Self::OtherFileSystem { path },
                Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Self::Forbidden { path },
                Some(Errno::NOSPC | Errno::DQUOT) => Self::Full(source),
                Some(Errno::NAMETOOLONG) => Self::TooLong { path },
                // The agent has a lease on it, has it mounted, or runs it.
                Some(Errno::AGAIN | Errno::BUSY | Errno::STALE | Errno::TXTBSY | Errno::MLINK) => {
                    Self::Meanwhile { path }
                }
                // Found by a walk: no call has failed.
                None if source.kind() == io::ErrorKind::Other => Self::Meanwhile { path },
                _ => Self::Io {
                    action,
                    path,
                    source,
                },
            }
        }
    }
}
