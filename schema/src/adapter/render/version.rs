//! Which configuration version files have.

use serde_json::Value;

use super::super::Adapter;
use super::super::migrate::{Documents, NoMigrationPath};
use super::super::path::{get, put};
use super::managed::ManagedPaths;
use super::model::Applied;

impl Adapter {
    /// The configuration version of the files: what they say themselves; else what they were when
    /// they were last written; else, when there is something in them, the oldest, because only
    /// newer ones have a mark. A mark beyond what the package knows counts as the nearest.
    pub(super) fn version_of(
        &self,
        found: &Documents,
        applied: Option<&Applied>,
        target: u32,
    ) -> u32 {
        let versions = || {
            self.index
                .agent_versions
                .iter()
                .map(|version| version.config_version)
        };
        let oldest = versions().min().unwrap_or(target);
        let newest = versions()
            .chain([self.index.latest_supported_config_version])
            .max()
            .unwrap_or(target);
        let mark = self.version_mark();
        let marked = mark
            .and_then(|mark| get(&found.config, mark.names()))
            .and_then(Value::as_u64)
            .map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        if let Some(version) = marked {
            return version.clamp(oldest, newest);
        }
        if *found == Documents::empty() {
            return target;
        }
        match applied {
            Some(applied) => applied.config_version,
            None if mark.is_some() => oldest,
            None => target,
        }
    }

    /// A new file says its version, and so does one of a version that migrations mark. Another
    /// without a mark is older than anything the package knows; that is for the agent to mend.
    pub(super) fn mark_version(&self, config: &mut Value, target: u32, is_new: bool) {
        let Some(mark) = self.version_mark() else {
            return;
        };
        let marked = self
            .migrations
            .iter()
            .any(|migration| migration.to_config == target && migration.sets(mark));
        if (is_new || marked) && get(config, mark.names()).is_none() {
            // When something is in the way, the file is not of the kind we know.
            let _ = put(config, mark.names(), Value::from(target));
        }
    }

    /// What was set when the files were last written, at the places where it is now.
    pub(super) fn managed_before(&self, applied: Option<&Applied>, target: u32) -> ManagedPaths {
        let Some(applied) = applied else {
            return ManagedPaths::default();
        };
        match self.migration_chain(applied.config_version, target) {
            Ok(chain) => applied.managed.migrated(&chain),
            // The agent has migrated the files itself, by a way of its own.
            Err(NoMigrationPath { .. }) => applied.managed.clone(),
        }
    }
}
