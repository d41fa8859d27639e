//! What can go wrong with the store of skills, and what is refused of a package.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::Utf8Chunk;

use super::front_matter::InvalidFrontMatter;
use super::names::{LONGEST_COMPONENT, LONGEST_PATH, MAX_DEPTH};
use super::tree::TreeLimits;
use super::zip_file::{MAX_PACKED, MAX_RATIO};
use crate::home::HomeError;
use crate::ids::SKILL_NAME_RULE;

const MIB: u64 = 1 << 20;

/// The service's own trouble with the store: nothing that another package would change.
#[derive(Debug, thiserror::Error)]
pub enum SkillStoreError {
    /// The root of the store is no directory, or others might write there.
    #[error("{} cannot be used: {reason}", path.display())]
    RefusedRoot {
        /// The directory.
        path: PathBuf,
        /// Why, and what to do instead.
        reason: String,
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
    /// A tree could not be removed.
    #[error(transparent)]
    Removal(#[from] HomeError),
}

impl SkillStoreError {
    /// For `map_err`: an [`SkillStoreError::Io`] around whatever the system said.
    pub(super) fn io<E: Into<io::Error>>(
        action: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(E) -> Self {
        move |error| Self::Io {
            action,
            path: path.as_ref().to_owned(),
            source: error.into(),
        }
    }

    /// Whether there is no room left for it: freeing some, or another quota, helps.
    pub fn is_storage_full(&self) -> bool {
        let full = [
            io::ErrorKind::StorageFull,
            io::ErrorKind::QuotaExceeded,
            io::ErrorKind::FileTooLarge,
        ];
        matches!(self, Self::Io { source, .. } if full.contains(&source.kind()))
    }
}

/// Why a package was not taken into the store. Nothing of it is left there.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The package breaks a rule: another package helps.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The service could not do its part.
    #[error(transparent)]
    Store(#[from] SkillStoreError),
}

/// A path of a package, for people: escaped, and no longer than 200 characters.
#[derive(Clone, PartialEq, Eq)]
pub struct ShownPath(String);

impl ShownPath {
    const LONGEST: usize = 200;

    /// The text without quotes.
    pub(crate) fn into_text(self) -> String {
        self.0
    }

    pub(crate) fn of(path: impl AsRef<[u8]>) -> Self {
        let path = path.as_ref();
        // No character of a shown text is made of more bytes than these.
        let begin = path.get(..4 * Self::LONGEST).unwrap_or(path);
        let escape = |chunk: &Utf8Chunk<'_>| {
            let text: String = chunk.valid().chars().flat_map(char::escape_debug).collect();
            chunk
                .invalid()
                .iter()
                .fold(text, |text, byte| format!("{text}\\x{byte:02x}"))
        };
        let escaped: String = begin.utf8_chunks().map(|chunk| escape(&chunk)).collect();
        let escaped: Vec<char> = escaped.chars().take(Self::LONGEST + 1).collect();
        if begin.len() == path.len() && escaped.len() <= Self::LONGEST {
            return Self(escaped.into_iter().collect());
        }
        let shown = escaped.into_iter().take(Self::LONGEST - 1);
        Self(shown.chain(['…']).collect())
    }
}

impl fmt::Display for ShownPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

impl fmt::Debug for ShownPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A rule that a package breaks, and which of its paths does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Too long as it came.
    #[error("the package is longer than {} MiB packed", MAX_PACKED / MIB)]
    Packed,
    /// Too long when unpacked.
    #[error("the package is longer than {} MiB unpacked", TreeLimits::LARGEST.bytes / MIB)]
    Unpacked,
    /// Too many files or directories.
    #[error("the package has more than {} entries", TreeLimits::LARGEST.files)]
    TooManyEntries,
    /// A zip that unpacks to much more than it weighs.
    #[error("the zip file unpacks to more than {MAX_RATIO} times its own length")]
    Ratio,
    /// No zip file, or a broken one.
    #[error("the package is not a usable zip file: {0}")]
    NotAZip(&'static str),
    /// One entry of a zip is broken.
    #[error("the entry {path} of the zip file is broken: {reason}")]
    BrokenEntry {
        /// The entry.
        path: ShownPath,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Two entries of a zip share bytes.
    #[error("the entry {0} of the zip file overlaps with another one or with the list of entries")]
    Overlap(ShownPath),
    /// An entry of a zip is encrypted.
    #[error("the entry {0} of the zip file is encrypted; use a zip file without a password")]
    Encrypted(ShownPath),
    /// An entry of a zip is compressed in a way that is not read.
    #[error(
        "the entry {0} of the zip file is compressed by a method other than deflate; pack it with Deflate"
    )]
    UnsupportedMethod(ShownPath),
    /// No path that can be created safely everywhere.
    #[error(
        "the path {path} {reason}; paths are relative, with / between plain names: rename it, or pack the folder itself with `agentyard skill upload FOLDER` or 7-Zip"
    )]
    UnsafePath {
        /// The path.
        path: ShownPath,
        /// Problem with it.
        reason: &'static str,
    },
    /// Paths that are no text.
    #[error(
        "names that are not UTF-8: {} (some programs write names in the computer's own code page, such as CP437 or GBK); rename them, or pack the folder with `agentyard skill upload FOLDER`, with 7-Zip and its parameter cu=on, or with Compress-Archive of PowerShell 7",
        listed(paths, *count)
    )]
    NotUtf8 {
        /// The first paths.
        paths: Vec<ShownPath>,
        /// Number of them.
        count: usize,
    },
    /// A path, or a name in it, is too long.
    #[error(
        "the path {0} is too long: a name has at most {LONGEST_COMPONENT} bytes, a path {LONGEST_PATH}; shorten it"
    )]
    PathTooLong(ShownPath),
    /// A path of too many names.
    #[error("the path {0} is deeper than {MAX_DEPTH} levels; move it up")]
    TooDeep(ShownPath),
    /// Two paths that are one on some file systems.
    #[error(
        "{0} is in the package twice (neither letter case nor the way accents are encoded counts); rename one of them"
    )]
    Duplicate(ShownPath),
    /// A path that is a file and a directory.
    #[error("{0} is both a file and a directory; rename one of them")]
    FileAndDirectory(ShownPath),
    /// A device, fifo or socket.
    #[error("{0} is neither a regular file nor a directory; remove it")]
    NotRegular(ShownPath),
    /// It has no `SKILL.md` at its top, but some below.
    #[error(
        "the package has no SKILL.md at its top, and {} below it: {}; upload the directory of each by itself, or add the repository (`agentyard skill repo add`) and install them from there",
        counted_skills(*count),
        listed(skills, *count)
    )]
    Collection {
        /// The first directories of skills.
        skills: Vec<ShownPath>,
        /// Number of them.
        count: usize,
    },
    /// There is nothing in it.
    #[error("the package has no files; put SKILL.md at its top")]
    Empty,
    /// The front matter of its `SKILL.md` cannot be read.
    #[error("{path}: {problem}")]
    FrontMatter {
        /// The file as it is called.
        path: ShownPath,
        /// What is wrong with it.
        problem: InvalidFrontMatter,
    },
    /// Nothing gives it a name.
    #[error(
        "the package has no name: give one, name it in the front matter of SKILL.md, or put everything in one directory"
    )]
    NoName,
    /// What gives it a name gives none that a skill can have.
    #[error(
        "{name} cannot be the name of a skill: {SKILL_NAME_RULE}; give it another name (`--name` of the command, `name` of the API), or change `name` in SKILL.md"
    )]
    InvalidName {
        /// The name that was found.
        name: ShownPath,
    },
    /// It was changed while it was read.
    #[error("{0} was changed while the package was read; try again")]
    Changed(ShownPath),
}

fn counted_skills(count: usize) -> String {
    match count {
        1 => "a skill".to_owned(),
        count => format!("{count} skills"),
    }
}

/// The first of several paths, and how many others there are.
pub(crate) fn listed<T: fmt::Display>(paths: &[T], count: usize) -> String {
    let mut shown: Vec<String> = paths.iter().map(ToString::to_string).collect();
    let others = count.saturating_sub(shown.len());
    if others > 0 {
        shown.push(format!("and {others} more"));
    }
    shown.join(", ")
}
