//! Rendering: from what shall be to the agent's files. Pure: no file, clock or database.
//!
//! The five steps are those of the adapter's contract: read the user's files, migrate them, lay
//! the global settings over them as `kubectl apply` would, set the user's channels, set the MCP
//! servers. Besides, the setting that must point at the workspace is set, a new file gets the mark
//! of its version, and the user's cookies go to the security file.

mod desired;
mod file;
mod managed;
#[cfg(test)]
mod tests;
mod yaml;

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::desired::{Desired, member};
use self::file::{Format, canonical};
pub use self::managed::{ManagedFile, ManagedPaths};
use super::depth::nests_deeper_than;
use super::migrate::{Documents, NoMigrationPath};
use super::model::AgentVersion;
use super::path::{SettingPath, get, put, take};
use super::ui_schema::Storage;
use super::version::Version;
use super::{Adapter, ConfigSchema, Section};

/// The MCP servers that every agent gets.
const MCP_SERVERS: [&str; 2] = ["browser", "computer"];
/// The value of a channel that is there even without a field of that name.
const ENABLED: &str = "enabled";
/// How deep the global settings may be nested.
const MAX_GLOBAL_DEPTH: usize = 64;

/// Everything that the files follow from.
///
/// It holds secrets, so it cannot be printed.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The tag of the user's image.
    pub image_tag: &'a str,
    /// The global settings for the configuration file; an object, or null for none.
    pub agent: &'a Value,
    /// The global settings for the security file; an object, or null for none.
    pub security: &'a Value,
    /// The user's values by channel and field.
    pub channels: &'a BTreeMap<String, BTreeMap<String, Value>>,
    /// The user's cookies by domain, as `a=1; b=2`.
    pub cookies: &'a BTreeMap<String, String>,
    /// How the agent reaches its MCP servers.
    pub mcp: McpAccess<'a>,
    /// What the last rendering that was written said.
    pub applied: Option<&'a Applied>,
    /// The files as they are.
    pub found: Found<'a>,
}

/// How the agent reaches its MCP servers.
#[derive(Clone, Copy)]
pub struct McpAccess<'a> {
    /// The service's address as the container sees it.
    pub base_url: &'a str,
    /// The user's token.
    pub token: &'a SecretString,
}

/// The agent's files as they are; `None` = there is none.
#[derive(Clone, Copy, Default)]
pub struct Found<'a> {
    /// The configuration file.
    pub config: Option<&'a [u8]>,
    /// The security file.
    pub security: Option<&'a [u8]>,
}

/// What is kept of a rendering that was written: enough to see drift and to take back later what
/// is not set any more. Holds places and a digest, no values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// The configuration version of the files.
    pub config_version: u32,
    /// What the service has set.
    pub managed: ManagedPaths,
    /// Digest over what the service has set, places and values.
    pub digest: String,
}

/// The files as they shall be.
///
/// It holds secrets, so it cannot be printed.
pub struct Rendered {
    /// The agent version that the image is treated as.
    pub agent_version: Version,
    /// The configuration version of the files.
    pub config_version: u32,
    /// The configuration file.
    pub config: RenderedFile,
    /// The security file.
    pub security: RenderedFile,
    /// To be kept once the files are written.
    pub applied: Applied,
    /// Digest over what a running agent must be restarted for: global settings, channels, MCP
    /// servers, the workspace; neither cookies nor anything of the user's or the agent's own.
    pub restart_digest: String,
    /// The user's values that this agent version has no place for, as `channel` or
    /// `channel.field`. They are kept where they are stored, and written when it has one.
    pub skipped: Vec<String>,
}

/// One file as it shall be.
pub struct RenderedFile {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether it says something else than the file that was found. Another order or other spaces
    /// are nothing else.
    pub changed: bool,
}

/// Why there are no files. Says nothing of what is in them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A file of the user's cannot be read, so it is left as it is.
    #[error("{file} {problem}")]
    InvalidUserConfig {
        /// The file, relative to the agent directory.
        file: String,
        /// The rest of the sentence.
        problem: String,
    },
    /// The user's files cannot be brought to the version that the image reads.
    #[error("the user's configuration cannot be migrated")]
    NoMigrationPath(#[source] NoMigrationPath),
    /// The global settings cannot be brought to the version that the image reads.
    #[error("the global settings cannot be migrated")]
    GlobalMigration(#[source] NoMigrationPath),
    /// A global setting is not as it must be.
    #[error("the setting {key} {problem}")]
    InvalidGlobal {
        /// `agent` or `security`.
        key: &'static str,
        /// The rest of the sentence.
        problem: String,
    },
    /// A file would come out too long or too deep.
    #[error("{file} {problem}")]
    TooLarge {
        /// The file, relative to the agent directory.
        file: String,
        /// The rest of the sentence.
        problem: String,
    },
}

impl Adapter {
    /// Renders a user's files.
    ///
    /// # Errors
    /// [`RenderError`]; then nothing of the user's may be touched.
    pub fn render(&self, inputs: &Inputs<'_>) -> Result<Rendered, RenderError> {
        let agent_version = self.resolve_agent_version(inputs.image_tag);
        let target = agent_version.config_version;
        let found = self.read(inputs.found)?;

        let mut documents = found.clone();
        let from = self.version_of(&found, inputs.applied, target);
        let chain = self
            .migration_chain(from, target)
            .map_err(RenderError::NoMigrationPath)?;
        for migration in &chain {
            migration.apply(&mut documents);
        }
        let is_new = found == Documents::empty();
        self.mark_version(&mut documents.config, target, is_new);

        let global = self.global(inputs.agent, inputs.security, target)?;
        let mut config = Desired::nothing();
        let mut security = Desired::nothing();
        config.merge(&global.config);
        security.merge(&global.security);
        if let Some(path) = &self.index.agent.workspace_setting {
            let workspace = Value::from(self.index.agent.workspace_dir());
            config.set(&SettingPath::dotted(path), workspace);
        }
        let skipped = self.set_channels(inputs.channels, agent_version, &mut config, &mut security);
        self.set_mcp_servers(&inputs.mcp, &mut config);
        let cookies = SettingPath::dotted(&self.index.agent.cookies_path);
        let restart_digest = managed::digest(
            entries(&config, &security)
                .iter()
                .filter(|(storage, path, _)| *storage == Storage::Config || !path.is_in(&cookies))
                .map(|(storage, path, value)| (*storage, path, *value)),
        );
        for (domain, value) in inputs.cookies {
            security.set(&cookies.join(domain), Value::from(value.as_str()));
        }

        let before = self.managed_before(inputs.applied, target);
        let managed = ManagedPaths {
            config: config.apply(&mut documents.config, &before.config),
            security: security.apply(&mut documents.security, &before.security),
        };
        let digest = managed::digest(
            entries(&config, &security)
                .iter()
                .map(|(storage, path, value)| (*storage, path, *value)),
        );
        let agent = &self.index.agent;
        Ok(Rendered {
            agent_version: agent_version.version,
            config_version: target,
            config: finish(
                &agent.config_file,
                self.config_format(),
                &documents.config,
                inputs.found.config.map(|_| &found.config),
            )?,
            security: finish(
                &agent.security_file,
                self.security_format(),
                &documents.security,
                inputs.found.security.map(|_| &found.security),
            )?,
            applied: Applied {
                config_version: target,
                managed,
                digest,
            },
            restart_digest,
            skipped,
        })
    }

    /// Whether something that the service had set is not so any more. What the user or the agent
    /// has written besides is no drift.
    ///
    /// # Errors
    /// [`RenderError::InvalidUserConfig`].
    pub fn has_drifted(&self, applied: &Applied, found: Found<'_>) -> Result<bool, RenderError> {
        let documents = self.read(found)?;
        let mut entries = Vec::new();
        for (storage, paths, document) in [
            (
                Storage::Config,
                &applied.managed.config.values,
                &documents.config,
            ),
            (
                Storage::Security,
                &applied.managed.security.values,
                &documents.security,
            ),
        ] {
            for path in paths {
                let Some(value) = member(document, path) else {
                    return Ok(true);
                };
                entries.push((storage, path, value));
            }
        }
        Ok(managed::digest(entries.into_iter()) != applied.digest)
    }

    /// Whether the global settings permit a channel to users of this image: they enable it there.
    /// A name that is no channel type of the image's agent version is never permitted.
    ///
    /// # Errors
    /// [`RenderError::InvalidGlobal`], [`RenderError::GlobalMigration`].
    pub fn permits_channel(
        &self,
        image_tag: &str,
        agent: &Value,
        channel: &str,
    ) -> Result<bool, RenderError> {
        let version = self.resolve_agent_version(image_tag);
        let Some(schema) = self.config_schemas.get(&version.config_version) else {
            return Ok(false);
        };
        if !version.channel_types.iter().any(|name| name == channel) {
            return Ok(false);
        }
        let global = self.migrate_global(agent, &Value::Null, version.config_version)?;
        let enabled = schema.channels.channel(channel).join(ENABLED);
        Ok(member(&global.config, &enabled) == Some(&Value::Bool(true)))
    }

    fn config_format(&self) -> Format {
        Format::of(&self.index.agent.config_file, false)
    }

    fn security_format(&self) -> Format {
        Format::of(&self.index.agent.security_file, true)
    }

    fn read(&self, found: Found<'_>) -> Result<Documents, RenderError> {
        let agent = &self.index.agent;
        let read = |file: &str, format: Format, bytes: Option<&[u8]>| match bytes {
            None => Ok(Value::Object(Map::new())),
            Some(bytes) => format
                .read(bytes)
                .map_err(|problem| RenderError::InvalidUserConfig {
                    file: file.to_owned(),
                    problem,
                }),
        };
        Ok(Documents {
            config: read(&agent.config_file, self.config_format(), found.config)?,
            security: read(&agent.security_file, self.security_format(), found.security)?,
        })
    }

    /// The configuration version of the files: what they say themselves; else what they were when
    /// they were last written; else, when there is something in them, the oldest, because only
    /// newer ones have a mark. A mark beyond what the package knows counts as the nearest.
    fn version_of(&self, found: &Documents, applied: Option<&Applied>, target: u32) -> u32 {
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
    fn mark_version(&self, config: &mut Value, target: u32, is_new: bool) {
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
    fn managed_before(&self, applied: Option<&Applied>, target: u32) -> ManagedPaths {
        let Some(applied) = applied else {
            return ManagedPaths::default();
        };
        match self.migration_chain(applied.config_version, target) {
            Ok(chain) => applied.managed.migrated(&chain),
            // The agent has migrated the files itself, by a way of its own.
            Err(NoMigrationPath { .. }) => applied.managed.clone(),
        }
    }

    /// The global settings as they go into files of this version: without permissions.
    fn global(
        &self,
        agent: &Value,
        security: &Value,
        target: u32,
    ) -> Result<Documents, RenderError> {
        let mut global = self.migrate_global(agent, security, target)?;
        if let Some(schema) = self.config_schemas.get(&target) {
            remove_permissions(&mut global.config, &schema.channels.channels);
            remove_permissions(&mut global.security, &schema.security_channels.channels);
        }
        Ok(global)
    }

    /// Global settings that say their version are migrated like files; others are taken as they
    /// are.
    fn migrate_global(
        &self,
        agent: &Value,
        security: &Value,
        target: u32,
    ) -> Result<Documents, RenderError> {
        let mut global = Documents {
            config: global_object("agent", agent)?,
            security: global_object("security", security)?,
        };
        let marked = self
            .version_mark()
            .and_then(|mark| get(&global.config, mark.names()))
            .and_then(Value::as_u64)
            .and_then(|number| u32::try_from(number).ok());
        if let Some(from) = marked {
            let chain = self
                .migration_chain(from, target)
                .map_err(RenderError::GlobalMigration)?;
            for migration in chain {
                migration.apply(&mut global);
            }
        }
        Ok(global)
    }

    /// Sets the user's channels; returns what there is no place for.
    fn set_channels(
        &self,
        channels: &BTreeMap<String, BTreeMap<String, Value>>,
        version: &AgentVersion,
        config: &mut Desired,
        security: &mut Desired,
    ) -> Vec<String> {
        let mut skipped = Vec::new();
        let schema = self.config_schemas.get(&version.config_version);
        let forms = self.ui_schemas.get(&version.config_version);
        for (name, values) in channels {
            let section = forms
                .filter(|_| version.channel_types.contains(name))
                .and_then(|forms| forms.channel(name));
            let (Some(schema), Some(section)) = (schema, section) else {
                skipped.push(name.clone());
                continue;
            };
            let before = skipped.len();
            for (key, value) in values {
                match placed(schema, section, key, value) {
                    Some((Storage::Config, path, value)) => config.set(&path, value),
                    Some((Storage::Security, path, value)) => security.set(&path, value),
                    None => skipped.push(format!("{name}.{key}")),
                }
            }
            // An agent that keeps settings apart learns from here what kind of channel it is.
            if schema.channels.is_nested() && values.len() > skipped.len() - before {
                let path = schema.channels.channel(name).join("type");
                config.set(&path, Value::from(name.as_str()));
            }
        }
        skipped
    }

    fn set_mcp_servers(&self, mcp: &McpAccess<'_>, config: &mut Desired) {
        let servers = SettingPath::dotted(&self.index.agent.mcp_servers_path);
        let base = mcp.base_url.trim_end_matches('/');
        let token: String =
            url::form_urlencoded::byte_serialize(mcp.token.expose_secret().as_bytes()).collect();
        for service in MCP_SERVERS {
            let url = format!("{base}/api/mcp/sse/{service}?token={token}");
            let server = json!({ "enabled": true, "type": "sse", "url": url });
            config.set(&servers.join(service), server);
        }
    }
}

/// Where a value of a channel goes, and in which form. `None` when there is no such field, or when
/// it takes no such value (any more).
fn placed(
    schema: &ConfigSchema,
    section: &Section,
    key: &str,
    value: &Value,
) -> Option<(Storage, SettingPath, Value)> {
    match section.field(key) {
        Some(field) => {
            // A JSON value is stored as it is; only people give it as a text.
            let value = match field.kind {
                super::FieldType::Json => value.clone(),
                _ => field.convert(value).ok()?,
            };
            Some((field.storage, field.path.clone(), value))
        }
        None if key == ENABLED && value.is_boolean() => {
            let path = schema.channels.channel(&section.key).join(ENABLED);
            Some((Storage::Config, path, value.clone()))
        }
        None => None,
    }
}

fn global_object(key: &'static str, value: &Value) -> Result<Value, RenderError> {
    let problem = match value {
        Value::Null => return Ok(Value::Object(Map::new())),
        Value::Object(_) if !nests_deeper_than(value, MAX_GLOBAL_DEPTH) => {
            return Ok(value.clone());
        }
        Value::Object(_) => format!("is nested deeper than {MAX_GLOBAL_DEPTH} levels"),
        _ => "must be an object".to_owned(),
    };
    Err(RenderError::InvalidGlobal { key, problem })
}

/// A global `enabled` of a channel permits it to users and enables nothing (L43). A channel that
/// says nothing else is not there.
fn remove_permissions(document: &mut Value, channels: &SettingPath) {
    let Some(members) =
        super::path::get_mut(document, channels.names()).and_then(Value::as_object_mut)
    else {
        return;
    };
    members.retain(|_, channel| match channel.as_object_mut() {
        Some(channel) => channel.remove(ENABLED).is_none() || !channel.is_empty(),
        None => true,
    });
    if members.is_empty() {
        take(document, channels.names());
    }
}

/// Everything that is set, in order.
fn entries<'a>(
    config: &'a Desired,
    security: &'a Desired,
) -> Vec<(Storage, SettingPath, &'a Value)> {
    let of = |storage: Storage, desired: &'a Desired| {
        desired
            .values()
            .into_iter()
            .map(move |(path, value)| (storage, path, value))
    };
    of(Storage::Config, config)
        .chain(of(Storage::Security, security))
        .collect()
}

/// Writes a document; compares it with what the file said, if there was one.
fn finish(
    file: &str,
    format: Format,
    document: &Value,
    found: Option<&Value>,
) -> Result<RenderedFile, RenderError> {
    let too_large = |problem: String| RenderError::TooLarge {
        file: file.to_owned(),
        problem,
    };
    if nests_deeper_than(document, file::MAX_DEPTH) {
        return Err(too_large("would be nested too deep".to_owned()));
    }
    let changed = match found {
        Some(found) => canonical(found) != canonical(document),
        // Nothing to say is no reason to make a file.
        None => document
            .as_object()
            .is_some_and(|members| !members.is_empty()),
    };
    Ok(RenderedFile {
        bytes: format.write(document).map_err(too_large)?,
        changed,
    })
}
