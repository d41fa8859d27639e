//! Agents' own chat: where it listens, what turns it on, what each version of it can do.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::config_schema::ConfigSchema;
use super::model::{Agent, AgentVersion, Readiness};
use super::path::SettingPath;
use super::render::Desired;
use super::{Adapter, Problem};

/// The protocol that a client speaks with an agent's chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatProtocol {
    /// PicoClaw's web channel: JSON objects over a WebSocket.
    Pico,
}

/// An ability that chats of some agent versions have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatFeature {
    /// The agent sends files, and says which messages belong together.
    Files,
    /// The agent queues messages to another conversation while a turn runs.
    Parallel,
    /// Messages may carry pictures.
    Pictures,
    /// `/stop` cancels a turn.
    Stop,
    /// A finished answer carries `context_usage`.
    Usage,
}

/// The chat of one configuration version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chat {
    /// The protocol.
    pub protocol: ChatProtocol,
    /// The port in the container.
    pub port: u16,
    /// The path, with a slash in front.
    pub path: String,
    /// The channel that the chat occupies, by name and type; `None` when it is no channel.
    pub channel: Option<String>,
    /// The place of the token in the security file.
    pub token: SettingPath,
    /// Values in the configuration file that turn the chat on.
    pub set: BTreeMap<SettingPath, Value>,
}

/// The chat of the agent in a user's image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentChat {
    /// The protocol.
    pub protocol: ChatProtocol,
    /// The port in the container.
    pub port: u16,
    /// The path, with a slash in front.
    pub path: String,
    /// Abilities of the agent's version.
    pub features: BTreeSet<ChatFeature>,
}

/// A chat as a config schema writes it.
#[derive(Deserialize)]
pub(super) struct ChatDocument {
    protocol: ChatProtocol,
    port: u16,
    path: String,
    channel: Option<String>,
    token: String,
    #[serde(default)]
    set: BTreeMap<String, Value>,
}

impl From<ChatDocument> for Chat {
    fn from(document: ChatDocument) -> Self {
        let set = document.set.into_iter();
        Self {
            protocol: document.protocol,
            port: document.port,
            path: document.path,
            channel: document.channel,
            token: SettingPath::dotted(&document.token),
            set: set
                .map(|(path, value)| (SettingPath::dotted(&path), value))
                .collect(),
        }
    }
}

impl Chat {
    /// Turns the chat on in both files.
    pub(super) fn turn_on(
        &self,
        token: &SecretString,
        config: &mut Desired,
        security: &mut Desired,
    ) {
        for (path, value) in &self.set {
            config.set(path, value.clone());
        }
        security.set(&self.token, Value::from(token.expose_secret()));
    }
}

impl Adapter {
    /// The chat of the agent in an image with this tag; `None` when that version has none.
    pub fn chat(&self, tag: &str) -> Option<AgentChat> {
        let version = self.resolve_agent_version(tag);
        let chat = self.chat_of(version)?;
        Some(AgentChat {
            protocol: chat.protocol,
            port: chat.port,
            path: chat.path.clone(),
            features: version.chat.clone()?,
        })
    }

    /// Returns true when the chat of the agent in an image with this tag occupies a channel.
    pub fn is_chat_channel(&self, tag: &str, channel: &str) -> bool {
        self.chat_of(self.resolve_agent_version(tag))
            .is_some_and(|chat| chat.channel.as_deref() == Some(channel))
    }

    /// Ports of agents to which the service connects, whatever their version.
    pub fn agent_ports(&self) -> BTreeSet<u16> {
        let chats = self.config_schemas.values();
        let chats = chats.filter_map(|schema| schema.chat.as_ref().map(|chat| chat.port));
        let readiness = match self.index.agent.readiness {
            Readiness::Http { port, .. } => Some(port),
            Readiness::Running | Readiness::File(_) => None,
        };
        chats.chain(readiness).collect()
    }

    /// The chat of an agent version.
    pub(super) fn chat_of(&self, version: &AgentVersion) -> Option<&Chat> {
        version.chat.as_ref()?;
        self.config_schemas
            .get(&version.config_version)?
            .chat
            .as_ref()
    }
}

/// Checks that a chat's places are its own.
pub(super) fn check_chat(
    file: &str,
    schema: &ConfigSchema,
    agent: &Agent,
    problems: &mut Vec<Problem>,
) {
    let Some(chat) = &schema.chat else { return };
    let mut problem = |pointer: &str, message: String| {
        problems.push(Problem::new(file, pointer, message));
    };
    if let Some(channel) = &chat.channel
        && !schema.channel_types.contains(channel)
    {
        let message = "is not one of channel_types".to_owned();
        problem("/chat/channel", message);
    }
    let token = Place {
        path: &chat.token,
        channels: &schema.security_channels.channels,
        service: std::iter::once(SettingPath::dotted(&agent.cookies_path))
            .chain(schema.security_models_path.clone())
            .collect(),
    };
    if let Some(message) = token.find_problem(chat.channel.as_deref()) {
        problem("/chat/token", message);
    }
    for (path, value) in &chat.set {
        let pointer = format!("/chat/set/{}", super::escape(&path.to_dotted()));
        if value.is_object() || value.is_null() {
            let message = "must be true, false, a number, a text or a list";
            problem(&pointer, message.to_owned());
        }
        if path.overlaps(&chat.token) {
            problem(&pointer, "overlaps with the token".to_owned());
        }
        let others = chat.set.keys().filter(|other| *other != path);
        for other in others.filter(|other| path.is_in(other)) {
            problem(&pointer, format!("lies in {}", other.to_dotted()));
        }
        let place = Place {
            path,
            channels: &schema.channels.channels,
            service: [
                Some(&agent.mcp_servers_path),
                agent.workspace_setting.as_ref(),
            ]
            .into_iter()
            .flatten()
            .map(|text| SettingPath::dotted(text))
            .chain(schema.models_path.clone())
            .chain(schema.default_model_path.clone())
            .collect(),
        };
        if let Some(message) = place.find_problem(chat.channel.as_deref()) {
            problem(&pointer, message);
        }
    }
}

/// A place that a chat takes in one of the files.
struct Place<'a> {
    path: &'a SettingPath,
    /// The object of that file whose members are the channels.
    channels: &'a SettingPath,
    /// Places that the service or an administrator writes.
    service: Vec<SettingPath>,
}

impl Place<'_> {
    fn find_problem(&self, channel: Option<&str>) -> Option<String> {
        let channel = channel.map(|name| self.channels.join(name));
        match &channel {
            Some(channel) if !self.path.is_in(channel) || self.path == channel => {
                return Some(format!("must be inside {}", channel.to_dotted()));
            }
            None if self.path.overlaps(self.channels) => {
                return Some(format!("overlaps with {}", self.channels.to_dotted()));
            }
            Some(_) | None => {}
        }
        self.service
            .iter()
            .find(|taken| self.path.overlaps(taken))
            .map(|taken| format!("overlaps with {}", taken.to_dotted()))
    }
}
