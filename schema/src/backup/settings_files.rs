//! Settings files of agents, which hold secrets and are sealed in backups.
//!
//! So are their copies beside them: a restore leaves `config.json.restored-<time>` or `.agent.restored-<time>/config.json`, a file that was
//! set aside is `config.json.set-aside-<time>`, and agents keep `config.json.<day>.bak`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::home::{AGENT_DIR, is_temporary};

/// Largest settings file that is sealed. The service reads none of more than 2 MiB.
pub(super) const LARGEST_SEALED: u64 = 16 << 20;
/// Names that settings files have unless an adapter says otherwise.
const USUAL: [&str; 2] = ["config.json", ".security.yml"];

/// Paths of settings files in the directory of an agent.
#[derive(Debug, Clone)]
pub struct SettingsFiles(BTreeSet<PathBuf>);

impl SettingsFiles {
    /// Those that these adapters name, and the usual ones.
    pub fn new(named: impl IntoIterator<Item = String>) -> Self {
        let usual = USUAL.into_iter().map(PathBuf::from);
        Self(named.into_iter().map(PathBuf::from).chain(usual).collect())
    }

    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self(BTreeSet::new())
    }

    /// Returns true if `path`, relative to the data directory, is a settings file of a user or in an archive, a copy beside it, or one on
    /// its way to that name.
    pub(super) fn contains(&self, path: &Path) -> bool {
        let mut parts = path.components();
        let deepest = match parts.next() {
            Some(Component::Normal(root)) if root == "users" => 1,
            // Archives of one change of mode lie in a directory of their own.
            Some(Component::Normal(root)) if root == "archive" => 2,
            _ => return false,
        };
        (0..deepest).any(|_| {
            parts.next();
            self.0.iter().any(|file| is_copy(parts.as_path(), file))
        })
    }
}

/// Returns true if each part of `path`, relative to a home, begins with that of `file`, relative to the agent's directory.
fn is_copy(path: &Path, file: &Path) -> bool {
    let file = Path::new(AGENT_DIR).join(file);
    let begins = |(part, name): (&OsStr, &OsStr)| {
        let part = part.as_bytes();
        part.starts_with(name.as_bytes()) || is_temporary(part)
    };
    path.iter().count() == file.iter().count() && path.iter().zip(&file).all(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_files_of_homes_and_archives_are_known() {
        let files = SettingsFiles::new(["conf/own.yml".to_owned()]);
        for (path, expected) in [
            ("users/alice/.agent/config.json", true),
            ("users/alice/.agent/.security.yml", true),
            ("users/alice/.agent/conf/own.yml", true),
            ("archive/alice-1/.agent/config.json", true),
            ("archive/switch-1/alice/.agent/.security.yml", true),
            (
                "users/alice/.agent/.agentyard-0123456789abcdef0123456789abcdef.tmp",
                true,
            ),
            ("users/alice/.agent/config.json.20261127.bak", true),
            ("users/alice/.agent/.security.yml.20261127.bak", true),
            (
                "users/alice/.agent/config.json.restored-20261127T195003Z",
                true,
            ),
            (
                "users/alice/.agent/config.json.set-aside-20261127T195003Z",
                true,
            ),
            (
                "users/alice/.agent.restored-20261127T195003Z/.security.yml",
                true,
            ),
            (
                "archive/switch-1/alice/.agent.restored-20261127T195003Z-2/config.json.20261127.bak",
                true,
            ),
            (
                "users/alice/.agent/conf.restored-20261127T195003Z/own.yml",
                true,
            ),
            ("users/alice/.agent/old-config.json", false),
            ("users/alice/.agent/config.json/notes.txt", false),
            ("users/alice/.agent", false),
            ("users/alice/.agent/workspace/config.json", false),
            ("users/alice/config.json", false),
            ("users/alice/x/.agent/config.json", false),
            ("skills/alice/.agent/config.json", false),
            (
                "users/alice/.agent/workspace/.agentyard-0123456789abcdef0123456789abcdef.tmp",
                false,
            ),
        ] {
            assert_eq!(files.contains(Path::new(path)), expected, "{path}");
        }
    }
}
