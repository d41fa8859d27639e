//! Entries of a package or repository that are no part of a skill, counted for its warnings.

use std::fmt;

use super::error::{ShownPath, listed};
use super::names;

/// Most paths of a kind that a warning names.
const NAMED: usize = 5;

/// An entry of a repository that is not written to disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// From the top of the repository.
    pub path: Box<[u8]>,
    /// Reason for not writing it.
    pub why: SkipReason,
}

/// Reason for not writing an entry of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// It is a symbolic link.
    Link,
    /// It is another repository.
    Submodule,
    /// Its path cannot be stored: what [`find_objection`](super::find_objection) says of it.
    Path(&'static str),
}

/// Entries that were left out of a package.
#[derive(Default)]
pub(crate) struct LeftOut {
    macos: Paths<ShownPath>,
    version_control: Paths<ShownPath>,
    links: Paths<ShownPath>,
    submodules: Paths<ShownPath>,
    paths: Paths<String>,
}

/// The number of paths, and the first of them.
struct Paths<T> {
    first: Vec<T>,
    count: usize,
}

impl<T> Default for Paths<T> {
    fn default() -> Self {
        Self {
            first: Vec::new(),
            count: 0,
        }
    }
}

impl<T: fmt::Display> Paths<T> {
    fn add(&mut self, shown: impl FnOnce() -> T) {
        if self.first.len() < NAMED {
            self.first.push(shown());
        }
        self.count += 1;
    }

    fn describe(&self, begin: &str, end: &str) -> Option<String> {
        (self.count > 0).then(|| format!("{begin} {}{end}", listed(&self.first, self.count)))
    }
}

impl LeftOut {
    /// Returns true if a path is left out for a name in it; then it is counted.
    pub(super) fn take(&mut self, path: &[u8]) -> bool {
        let texts = path.split(|&byte| byte == b'/').map(std::str::from_utf8);
        let Some(name) = texts.flatten().find(|name| names::is_left_out(name)) else {
            return false;
        };
        let kind = match names::is_macos(name) {
            true => &mut self.macos,
            false => &mut self.version_control,
        };
        kind.add(|| ShownPath::of(path));
        true
    }

    /// Counts a symbolic link.
    pub(super) fn add_link(&mut self, path: &[u8]) {
        self.links.add(|| ShownPath::of(path));
    }

    /// Counts an entry that a repository has at `path` and its copy on disk does not have.
    pub(crate) fn add_skipped(&mut self, path: &[u8], why: SkipReason) {
        match why {
            SkipReason::Link => self.add_link(path),
            SkipReason::Submodule => self.submodules.add(|| ShownPath::of(path)),
            SkipReason::Path(reason) => {
                if !self.take(path) {
                    let shown = || format!("{} {reason}", ShownPath::of(path));
                    self.paths.add(shown);
                }
            }
        }
    }

    /// The number of symbolic links.
    pub(super) fn links(&self) -> u64 {
        self.links.count as u64
    }

    /// A sentence for each kind.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let Self {
            macos,
            version_control,
            links,
            submodules,
            paths,
        } = self;
        let warnings = [
            macos.describe("files that macOS adds were left out:", ""),
            version_control.describe("data of version control was left out:", ""),
            links.describe(
                "symbolic links were left out:",
                "; a skill has regular files only: put a copy of the target in place of the link",
            ),
            submodules.describe(
                "submodules were left out:",
                "; add the repository of each by itself (`agentyard skill repo add`)",
            ),
            paths.describe(
                "files whose paths cannot be stored were left out:",
                "; rename them in the repository",
            ),
        ];
        warnings.into_iter().flatten().collect()
    }
}
