//! What the service has set in the agent's files.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::super::migrate::Documents;
use super::super::migration::Migration;
use super::super::path::{SettingPath, put};
use super::super::ui_schema::Storage;
use super::file::canonical;

/// Stands for a value whose place alone is known.
const PLACEHOLDER: &str = "\0set by the service";

/// The places in both files that the service has set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ManagedPaths {
    /// In the configuration file.
    pub config: ManagedFile,
    /// In the security file.
    pub security: ManagedFile,
}

/// The places in one file that the service has set, as JSON pointers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ManagedFile {
    /// Values.
    pub values: BTreeSet<SettingPath>,
    /// Objects that were not there before: they go when nothing is left in them.
    pub objects: BTreeSet<SettingPath>,
}

impl ManagedPaths {
    /// Where the values are after migrations of the files.
    pub(super) fn migrated(&self, chain: &[&Migration]) -> Self {
        if chain.is_empty() {
            return self.clone();
        }
        let mut documents = Documents::empty();
        self.config.place(&mut documents.config);
        self.security.place(&mut documents.security);
        let before = documents.clone();
        for migration in chain {
            migration.apply(&mut documents);
        }
        Self {
            config: self.config.find(&before.config, &documents.config),
            security: self.security.find(&before.security, &documents.security),
        }
    }
}

impl ManagedFile {
    fn place(&self, document: &mut Value) {
        for path in &self.objects {
            let _ = put(document, path.names(), Value::Object(Map::new()));
        }
        for path in &self.values {
            let _ = put(document, path.names(), Value::from(PLACEHOLDER));
        }
    }

    /// What a migration itself sets is no placeholder, so it stays the file's own.
    fn find(&self, before: &Value, after: &Value) -> Self {
        let mut found = Self::default();
        let mut objects_before = BTreeSet::new();
        walk(before, &SettingPath::default(), &mut |path, value| {
            if value.is_object() {
                objects_before.insert(path.clone());
            }
        });
        walk(after, &SettingPath::default(), &mut |path, value| {
            if value.as_str() == Some(PLACEHOLDER) {
                found.values.insert(path.clone());
            } else if value.is_object()
                && (self.objects.contains(path) || !objects_before.contains(path))
            {
                found.objects.insert(path.clone());
            }
        });
        found
    }
}

/// Visits every member of every object.
fn walk(value: &Value, path: &SettingPath, visit: &mut impl FnMut(&SettingPath, &Value)) {
    for (name, member) in value.as_object().into_iter().flatten() {
        let path = path.join(name);
        visit(&path, member);
        walk(member, &path, visit);
    }
}

/// A digest over places and values, in the order in which they come. Values that are equal as
/// settings count as equal, however they are written.
pub(super) fn digest<'a>(
    entries: impl Iterator<Item = (Storage, &'a SettingPath, &'a Value)>,
) -> String {
    digest_after(Sha256::new(), entries)
}

/// Digest over what a running agent must be restarted for. Of another configuration version it is always another
/// one: what a container has read of one version is nothing for an agent of another.
pub(super) fn restart_digest<'a>(
    config_version: u32,
    entries: impl Iterator<Item = (Storage, &'a SettingPath, &'a Value)>,
) -> String {
    digest_after(
        Sha256::new().chain_update(format!("{config_version}\n")),
        entries,
    )
}

fn digest_after<'a>(
    mut hash: Sha256,
    entries: impl Iterator<Item = (Storage, &'a SettingPath, &'a Value)>,
) -> String {
    for (storage, path, value) in entries {
        // As one JSON value, so that no two lists of entries give the same text.
        let entry = serde_json::json!([storage, path, canonical(value)]);
        hash.update(entry.to_string());
        hash.update("\n");
    }
    hex::encode(hash.finalize())
}
