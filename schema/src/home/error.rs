//! What can go wrong with users' directories.

use std::io;
use std::path::{Path, PathBuf};

/// What can go wrong with users' directories. Texts name paths, never content.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// A root that this installation did not create, or that is too precious to be one.
    #[error("{} cannot be used: {reason}", path.display())]
    RefusedRoot {
        /// The directory.
        path: PathBuf,
        /// Why, and what to do instead.
        reason: String,
    },
    /// A user's directory belongs to somebody else or is not a directory. Nothing was changed;
    /// this needs manual action.
    #[error("{0}")]
    Conflict(String),
    /// A path that is empty, absolute or contains `..`.
    #[error("{path:?} is not a path inside the user's directory")]
    UnsafePath {
        /// The path as it was given.
        path: String,
    },
    /// Something that is not a regular file, or lies behind a link.
    #[error("{path:?} is not a regular file in the user's directory")]
    NotRegular {
        /// The path inside the user's directory.
        path: String,
    },
    /// A file that its owner, the agent, lets nobody read, so not a service that is not root.
    #[error("{path:?} may not be read")]
    Forbidden {
        /// The path inside the user's directory.
        path: String,
    },
    /// A file is not what its writer has read: it was written concurrently. Reading it again
    /// helps.
    #[error("{path:?} was changed concurrently")]
    Changed {
        /// The path inside the user's directory.
        path: String,
    },
    /// A file longer than the caller's limit.
    #[error("{path:?} is longer than {limit} bytes")]
    TooLarge {
        /// The path inside the user's directory.
        path: String,
        /// The limit, in bytes.
        limit: u64,
    },
    /// An image's own home is more than is copied.
    #[error(
        "the image's own home has more than {entries} entries or {bytes} bytes; use a smaller one, or an adapter without seed_home"
    )]
    SeedTooLarge {
        /// The limit of files, directories and links.
        entries: u64,
        /// The limit of bytes in files.
        bytes: u64,
    },
    /// The store does not have the files of a skill.
    #[error("the store does not have version {digest} of skill {skill}")]
    NoSkill {
        /// Name of the skill.
        skill: String,
        /// Digest of its files.
        digest: String,
    },
    /// The copy on the other file system is not what the original is; the original was kept.
    #[error("the copy of {} differs from the original: {detail}", path.display())]
    CopyDiffers {
        /// The original directory.
        path: PathBuf,
        /// What differs.
        detail: String,
    },
    /// The operating system refused.
    #[error("{action} {} failed", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
}

impl HomeError {
    /// Whether a start must end for it (exit code 78): what stands in the data directory is not ours, and another start
    /// would find the same.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::RefusedRoot { .. } | Self::Conflict(_) => true,
            Self::Io { source, .. } => {
                let linked = source.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
                let kinds = [
                    io::ErrorKind::NotADirectory,
                    io::ErrorKind::PermissionDenied,
                ];
                linked || kinds.contains(&source.kind())
            }
            _ => false,
        }
    }

    /// For `map_err`: an [`HomeError::Io`] around whatever the system said.
    pub(crate) fn io<E: Into<io::Error>>(
        action: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(E) -> Self {
        move |error| Self::Io {
            action,
            path: path.as_ref().to_owned(),
            source: error.into(),
        }
    }
}
