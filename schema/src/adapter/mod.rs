//! Adapters: packages that say how a family of agent images is configured.
//!
//! A package is a set of files: `index.json`, `hash`, and the JSON files that the index names. It
//! comes embedded in the binary, as a folder, or as a zip; all three go through the same checks,
//! and every problem is reported with its file and place.

mod builtin;
mod changes;
mod chat;
mod config_schema;
pub(crate) mod depth;
#[cfg(test)]
mod document_tests;
mod field;
#[cfg(test)]
mod field_tests;
mod index;
mod migrate;
mod migration;
mod model;
mod package;
mod path;
mod provider;
mod render;
mod rules;
mod secret_paths;
mod settings;
mod shape;
pub mod store;
pub(crate) mod strict;
#[cfg(test)]
mod test_package;
#[cfg(test)]
mod tests;
mod ui_schema;
mod unknown;
mod version;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

pub use builtin::BUILTIN;
pub use chat::{AgentChat, Chat, ChatFeature, ChatProtocol};
pub use config_schema::{ChannelPlace, ConfigSchema};
pub(crate) use field::text_of_number;
pub use field::{CheckedValues, FieldChanges, FieldProblem};
pub use migrate::NoMigrationPath;
pub use migration::{Action, Migration, Nested};
pub use model::{Agent, AgentVersion, AgentVersions, Index, MigrationFile, Readiness, RunAs};
pub use path::SettingPath;
pub(crate) use path::escape;
pub use provider::{
    ChosenModel, KeyNeed, ModelChoice, ModelProtocol, Provider, check_model_name,
    parse_model_address,
};
pub use render::{
    Applied, Found, Inputs, ManagedFile, ManagedPaths, McpAccess, RenderError, Rendered,
    RenderedFile,
};
pub use secret_paths::SecretPaths;
pub use ui_schema::{Field, FieldType, Page, PageKey, Section, Storage, UiSchema};
pub use version::{AdapterVersion, Version};

use crate::kind::Descriptor;

pub(crate) const KIND: Descriptor = Descriptor {
    single: Some(store::OBJECT_NAME),
    ..Descriptor::new("adapters", &["ad"])
};

/// Something wrong with a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file, as a path inside the package; empty when it is about the package as a whole.
    pub file: String,
    /// The place in the file as a JSON pointer (RFC 6901); empty for the whole file.
    pub pointer: String,
    /// A sentence for the author of the package.
    pub message: String,
}

impl Problem {
    fn new(file: &str, pointer: &str, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            pointer: pointer.to_owned(),
            message: message.into(),
        }
    }
}

/// A package that cannot be used, with everything that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidPackage(pub Vec<Problem>);

impl fmt::Display for InvalidPackage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the adapter package is not valid")?;
        for (at, problem) in self.0.iter().enumerate() {
            let before = if at == 0 { ": " } else { "; " };
            write!(f, "{before}{}", problem.file)?;
            if !problem.pointer.is_empty() {
                write!(f, "#{}", problem.pointer)?;
            }
            let blank = if problem.file.is_empty() { "" } else { " " };
            write!(f, "{blank}{}", problem.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for InvalidPackage {}

impl InvalidPackage {
    /// The first problems only, so that a message about a package stays short however bad the package is.
    pub fn brief(&self) -> String {
        const SHOWN: usize = 3;
        const LONGEST: usize = 1000;
        let shown = Self(self.0.iter().take(SHOWN).cloned().collect());
        let mut text = shown.to_string();
        if text.len() > LONGEST {
            text.truncate(text.floor_char_boundary(LONGEST));
            text.push('…');
        }
        if self.0.len() > SHOWN {
            text.push_str(&format!("; and {} more", self.0.len() - SHOWN));
        }
        text
    }
}

/// A valid package.
#[derive(Debug, Clone, PartialEq)]
pub struct Adapter {
    /// What `index.json` says, with defaults filled in.
    pub index: Index,
    /// The parsed JSON files that the index names, by path.
    pub documents: BTreeMap<String, Value>,
    /// Where settings are, by configuration version.
    pub config_schemas: BTreeMap<u32, ConfigSchema>,
    /// The forms, by configuration version.
    pub ui_schemas: BTreeMap<u32, UiSchema>,
    /// The migrations between configuration versions.
    pub migrations: Vec<Migration>,
    /// Which global settings are secrets.
    pub secret_paths: Arc<SecretPaths>,
    /// SHA-256 over paths and contents, as 64 hex digits: equal packages have equal digests,
    /// however they were packed.
    pub digest: String,
    /// The texts of the files that are used, by path: what is stored.
    files: BTreeMap<String, String>,
}

impl Adapter {
    /// Reads an adapter that is embedded in the binary; `None` when there is none of this name
    /// (see [`BUILTIN`]).
    ///
    /// # Errors
    /// [`InvalidPackage`]: built-in packages go through the same checks as uploaded ones.
    pub fn builtin(name: &str) -> Option<Result<Self, InvalidPackage>> {
        builtin::files(name).map(|files| Self::from_files(package::from_memory(files)?, false))
    }

    /// Reads an adapter from a folder. Blocks.
    ///
    /// # Errors
    /// [`InvalidPackage`], also when the folder cannot be read.
    pub fn from_folder(folder: &Path) -> Result<Self, InvalidPackage> {
        Self::from_files(package::from_folder(folder)?, false)
    }

    /// Reads an adapter from the bytes of a zip. Takes as long as unpacking up to 16 MiB does.
    ///
    /// # Errors
    /// [`InvalidPackage`].
    pub fn from_zip(bytes: &[u8]) -> Result<Self, InvalidPackage> {
        Self::from_files(package::from_zip(bytes)?, false)
    }

    /// Reads an adapter from the form it is stored in (see [`store`]).
    ///
    /// # Errors
    /// [`InvalidPackage`]: a stored package goes through the same checks as any.
    pub fn from_stored(text: &str) -> Result<Self, InvalidPackage> {
        let files: BTreeMap<String, String> = serde_json::from_str(text).map_err(|error| {
            let message = format!("the stored package cannot be read: {error}");
            InvalidPackage(vec![Problem::new("", "", message)])
        })?;
        let files: Vec<(&str, &[u8])> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_bytes()))
            .collect();
        Self::from_files(package::from_store(&files)?, true)
    }

    /// The texts of the index, the files that it names, and `hash`, by path.
    pub fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    fn from_files(mut files: package::Files, stored: bool) -> Result<Self, InvalidPackage> {
        let mut problems = Vec::new();
        package::verify_hashes(&files, stored, &mut problems);
        let documents = package::parse(&mut files, &mut problems);
        let digest = package::digest(&files);
        let read = index::read(&documents, &mut problems).map(|index| {
            let settings = settings::read(&index, &documents, &mut problems);
            (index, settings)
        });
        match read {
            Some((index, settings)) if problems.is_empty() => Ok(Self {
                secret_paths: Arc::new(SecretPaths::of(
                    &index.agent,
                    &settings.config_schemas,
                    &settings.ui_schemas,
                )),
                index,
                config_schemas: settings.config_schemas,
                ui_schemas: settings.ui_schemas,
                migrations: settings.migrations,
                digest,
                files: package::texts(files)?,
                documents,
            }),
            _ => Err(InvalidPackage(problems)),
        }
    }

    /// The declared agent version that an image with this tag is treated as. Never fails, so that
    /// no tag makes a container unstartable:
    /// - a declared version, with or without `v` and with any suffix (`v0.2.9-alpine`): that one;
    /// - an older one that is not declared: the next older declared one, or the oldest;
    /// - a newer one, `latest`, no tag (empty text) and everything else: `untagged`.
    pub fn resolve_agent_version(&self, tag: &str) -> &AgentVersion {
        let versions = &self.index.agent_versions;
        let Some(tagged) =
            Version::of_tag(tag).filter(|tagged| *tagged <= versions.newest().version)
        else {
            return versions
                .find(self.index.untagged)
                .unwrap_or_else(|| versions.newest());
        };
        versions
            .iter()
            .rev()
            .find(|declared| declared.version <= tagged)
            .unwrap_or_else(|| versions.oldest())
    }
}
