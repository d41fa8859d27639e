//! The settings that an administrator makes for everybody.

use serde_json::{Map, Value};

use super::super::Adapter;
use super::super::ConfigSchema;
use super::super::depth::nests_deeper_than;
use super::super::migrate::Documents;
use super::super::path::{SettingPath, get, get_mut, take};
use super::ENABLED;
use super::desired::member;
use super::model::RenderError;

/// How deep the global settings may be nested.
const MAX_GLOBAL_DEPTH: usize = 64;

impl Adapter {
    /// Whether the global settings permit a channel to users of this image: they enable it there. The chat app's
    /// is permitted unless they say otherwise, if only where another version has its channels.
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
        Ok(match member(&global.config, &enabled) {
            Some(enabled) => *enabled == Value::Bool(true),
            None => channel == self.index.agent.chatapp_section && !self.is_refused(agent, channel),
        })
    }

    /// Whether the global settings say of a channel that it is not enabled, in the place of any version.
    fn is_refused(&self, agent: &Value, channel: &str) -> bool {
        self.config_schemas.values().any(|schema| {
            let channel = schema.channels.channel(channel);
            let enabled = member(agent, &channel.join(ENABLED));
            // What is there and is no settings of channels allows nothing.
            let odd = |path| member(agent, path).is_some_and(|place| !place.is_object());
            odd(&schema.channels.channels)
                || odd(&channel)
                || enabled.is_some_and(|enabled| *enabled != Value::Bool(true))
        })
    }

    /// Checks global settings before they are saved: whether the files of some agent version can hold them.
    ///
    /// # Errors
    /// [`RenderError::InvalidGlobal`], [`RenderError::GlobalMigration`]: why none can.
    pub fn check_global(&self, agent: &Value, security: &Value) -> Result<(), RenderError> {
        let mut checked = Ok(());
        for version in self.config_schemas.keys().rev() {
            checked = self.migrate_global(agent, security, *version).map(drop);
            if checked.is_ok() {
                break;
            }
        }
        checked
    }

    /// Checks global settings against the chat of the agent: no other channel of the type that it occupies may be enabled.
    ///
    /// # Errors
    /// [`RenderError::InvalidGlobal`].
    pub fn check_chat(&self, agent: &Value) -> Result<(), RenderError> {
        for (version, schema) in &self.config_schemas {
            // Settings that cannot be brought to a version reach none of its agents.
            let Ok(global) = self.migrate_global(agent, &Value::Null, *version) else {
                continue;
            };
            if let Some(problem) = find_rival(schema, &global.config) {
                return Err(RenderError::InvalidGlobal {
                    key: "agent",
                    problem,
                });
            }
        }
        Ok(())
    }

    /// The global settings as they go into files of this version: without permissions.
    pub(super) fn global(
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
    pub(in super::super) fn migrate_global(
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
        if let Some(mark) = self.version_mark() {
            // A file says its version itself; an agent may know a later one.
            take(&mut global.config, mark.names());
        }
        Ok(global)
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

/// Describes an enabled channel of the type that the chat occupies, under another name.
fn find_rival(schema: &ConfigSchema, config: &Value) -> Option<String> {
    const LONGEST: usize = 64;
    let occupied = schema.chat.as_ref()?.channel.as_ref()?;
    let channels = get(config, schema.channels.channels.names())?.as_object()?;
    let is_rival = |(name, channel): &(&String, &Value)| {
        *name != occupied
            && channel.get("type").and_then(Value::as_str) == Some(occupied)
            && channel.get(ENABLED) == Some(&Value::Bool(true))
    };
    let (name, _) = channels.iter().find(is_rival)?;
    let name: String = name.chars().take(LONGEST).collect();
    let place = schema.channels.channel(&name).to_dotted();
    Some(format!(
        "enables {place}, a channel of the type {occupied}: agents take one of that type, and the chat needs it; \
         disable that channel, or set chat.enabled to false"
    ))
}

/// A global `enabled` of a channel permits it to users and enables nothing (L43). A channel that
/// says nothing else is not there.
fn remove_permissions(document: &mut Value, channels: &SettingPath) {
    let Some(members) = get_mut(document, channels.names()).and_then(Value::as_object_mut) else {
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
