//! Settings files of agents, which hold secrets and are sealed in backups.

use std::collections::BTreeSet;
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

    /// Returns true if `path`, relative to the data directory, is a settings file of a user or in an archive, or one on its way to
    /// that name.
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
            let within = parts.as_path().strip_prefix(AGENT_DIR);
            within.is_ok_and(|within| self.is_settings(within))
        })
    }

    fn is_settings(&self, within: &Path) -> bool {
        let is_on_its_way = within
            .file_name()
            .is_some_and(|name| is_temporary(name.as_bytes()));
        self.0.contains(within)
            || is_on_its_way && self.0.iter().any(|file| file.parent() == within.parent())
    }
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
