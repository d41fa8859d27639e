//! Rendering: from the desired state to the agent's files. Pure: no file, clock or database.
//!
//! The five steps are those of the adapter's contract: read the user's files, migrate them, lay
//! the global settings over them as `kubectl apply` would, set the user's channels, set the MCP
//! servers and the chat. Besides, the setting that must point at the workspace is set, a new file gets the mark
//! of its version, and the user's cookies go to the security file.

mod desired;
mod file;
mod global;
mod managed;
mod model;
mod secrets;
#[cfg(test)]
mod tests;
mod version;
mod yaml;

use std::collections::BTreeMap;

use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};

pub(super) use self::desired::Desired;
use self::desired::member;
use self::file::{Format, canonical};
pub use self::managed::{ManagedFile, ManagedPaths};
pub use self::model::{Applied, Found, Inputs, McpAccess, RenderError, Rendered, RenderedFile};
use super::depth::{MAX_NODES, nests_deeper_than, nodes};
use super::migrate::Documents;
use super::model::AgentVersion;
use super::path::SettingPath;
use super::ui_schema::{FieldType, Storage};
use super::{Adapter, ConfigSchema, Section};

/// The MCP servers that every agent gets.
const MCP_SERVERS: [&str; 2] = ["browser", "computer"];
/// The value of a channel that is there even without a field of that name.
const ENABLED: &str = "enabled";

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
        let is_new = found.config == Documents::empty().config;
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
        let chat = inputs.chat.zip(self.chat_of(agent_version));
        let occupied = chat.and_then(|(_, chat)| chat.channel.as_deref());
        let mut channels = inputs.channels.clone();
        channels.retain(|name, _| Some(name.as_str()) != occupied);
        let skipped = self.set_channels(&channels, agent_version, &mut config, &mut security);
        if let Some((token, chat)) = chat {
            chat.turn_on(token, &mut config, &mut security);
        }
        if let Some(mcp) = &inputs.mcp {
            self.set_mcp_servers(mcp, &mut config);
        }
        let cookies = SettingPath::dotted(&self.index.agent.cookies_path);
        let restart_digest = managed::restart_digest(
            target,
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
            found_version: from,
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

    /// Removes from a user's files what the service has set there, secrets of the installation among it: what stays is the
    /// user's and the agent's own. The files that this changes, first the configuration.
    ///
    /// # Errors
    /// [`RenderError::InvalidUserConfig`].
    pub fn withdraw(
        &self,
        applied: &Applied,
        found: Found<'_>,
    ) -> Result<[Option<Vec<u8>>; 2], RenderError> {
        let before = self.read(found)?;
        let mut documents = before.clone();
        let version = self.version_of(&before, Some(applied), applied.config_version);
        // Where they were set, and where the agent's own migration has moved them to.
        for managed in [
            &applied.managed,
            &self.managed_before(Some(applied), version),
        ] {
            let nothing = Desired::nothing();
            nothing.apply(&mut documents.config, &managed.config);
            nothing.apply(&mut documents.security, &managed.security);
        }
        let agent = &self.index.agent;
        let config = finish(
            &agent.config_file,
            self.config_format(),
            &documents.config,
            found.config.map(|_| &before.config),
        )?;
        let security = finish(
            &agent.security_file,
            self.security_format(),
            &documents.security,
            found.security.map(|_| &before.security),
        )?;
        let changed = |file: RenderedFile| file.changed.then_some(file.bytes);
        Ok([config, security].map(changed))
    }

    /// The configuration versions of the files as they are, and as an image with this tag reads them.
    ///
    /// # Errors
    /// [`RenderError::InvalidUserConfig`].
    pub fn config_versions(
        &self,
        image_tag: &str,
        applied: Option<&Applied>,
        found: Found<'_>,
    ) -> Result<(u32, u32), RenderError> {
        let target = self.resolve_agent_version(image_tag).config_version;
        let found = self.read(found)?;
        Ok((self.version_of(&found, applied, target), target))
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
                FieldType::Json => value.clone(),
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
    if nodes(document) > MAX_NODES {
        return Err(too_large(format!(
            "would have more than {MAX_NODES} values"
        )));
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
