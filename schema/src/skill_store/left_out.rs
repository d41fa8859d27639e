//! Entries of a package that are no part of a skill, counted for its warnings.

use super::error::{ShownPath, listed};
use super::names;

/// Most paths of a kind that a warning names.
const NAMED: usize = 5;

/// What was left out of a package.
#[derive(Default)]
pub(super) struct LeftOut {
    macos: Paths,
    version_control: Paths,
    links: Paths,
}

/// How many paths there are, and the first of them.
#[derive(Default)]
struct Paths {
    first: Vec<ShownPath>,
    count: usize,
}

impl Paths {
    fn add(&mut self, path: &[u8]) {
        if self.first.len() < NAMED {
            self.first.push(ShownPath::of(path));
        }
        self.count += 1;
    }

    fn describe(&self, begin: &str, end: &str) -> Option<String> {
        (self.count > 0).then(|| format!("{begin} {}{end}", listed(&self.first, self.count)))
    }
}

impl LeftOut {
    /// Whether a path is left out for a name in it; then it is counted.
    pub(super) fn take(&mut self, path: &[u8]) -> bool {
        let texts = path.split(|&byte| byte == b'/').map(std::str::from_utf8);
        let Some(name) = texts.flatten().find(|name| names::is_left_out(name)) else {
            return false;
        };
        match names::is_macos(name) {
            true => self.macos.add(path),
            false => self.version_control.add(path),
        }
        true
    }

    /// Counts a symbolic link.
    pub(super) fn add_link(&mut self, path: &[u8]) {
        self.links.add(path);
    }

    /// The number of symbolic links.
    pub(super) fn links(&self) -> u64 {
        self.links.count as u64
    }

    /// A sentence for each kind.
    pub(super) fn warnings(&self) -> Vec<String> {
        let Self {
            macos,
            version_control,
            links,
        } = self;
        let warnings = [
            macos.describe("files that macOS adds were left out:", ""),
            version_control.describe("data of version control was left out:", ""),
            links.describe(
                "symbolic links were left out:",
                "; a skill has regular files only: put a copy of the target in place of the link",
            ),
        ];
        warnings.into_iter().flatten().collect()
    }
}
