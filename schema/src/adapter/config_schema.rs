//! Where settings are in the files of one configuration version.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use super::Problem;
use super::chat::{Chat, ChatDocument};
use super::path::SettingPath;
use super::provider::{Provider, check_providers};
use super::shape::{self, Shape};

/// A config schema: where the files of one configuration version have their channels and models.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigSchema {
    /// The configuration version.
    pub config_version: u32,
    /// Channels in the configuration file.
    pub channels: ChannelPlace,
    /// Channels in the security file.
    pub security_channels: ChannelPlace,
    /// The list of models in the configuration file.
    pub models_path: Option<SettingPath>,
    /// The map from a model's name to its secrets in the security file.
    pub security_models_path: Option<SettingPath>,
    /// The name of the model that is used when none is asked for.
    pub default_model_path: Option<SettingPath>,
    /// Channel types of which there can be one channel only.
    pub singleton_channels: BTreeSet<String>,
    /// Every channel type that this version knows.
    pub channel_types: BTreeSet<String>,
    /// The chat that agents of this version have; `None`: none.
    pub chat: Option<Chat>,
    /// The providers of models that an administrator may choose from.
    pub providers: Vec<Provider>,
}

/// Where one file has its channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelPlace {
    /// The object whose members are the channels.
    pub channels: SettingPath,
    /// Where a channel has its own settings, from the channel on: nothing when it has them beside
    /// `enabled` and `type`.
    pub settings: Vec<String>,
}

impl ChannelPlace {
    /// The object of one channel.
    pub fn channel(&self, name: &str) -> SettingPath {
        self.channels.join(name)
    }

    /// Whether a channel's own settings are in an object apart. Then the channel says its type.
    pub fn is_nested(&self) -> bool {
        !self.settings.is_empty()
    }
}

#[derive(Deserialize)]
struct Document {
    config_version: u32,
    channels_path: String,
    channel_settings_path: Option<String>,
    models_path: Option<String>,
    default_model_path: Option<String>,
    #[serde(default)]
    security: SecurityDocument,
    #[serde(default)]
    singleton_channels: Vec<String>,
    channel_types: Vec<String>,
    chat: Option<ChatDocument>,
    #[serde(default)]
    providers: Vec<Provider>,
}

/// What is absent is where the configuration file has it.
#[derive(Deserialize, Default)]
struct SecurityDocument {
    channels_path: Option<String>,
    channel_settings_path: Option<String>,
    models_path: Option<String>,
}

/// Reads a config schema. `None` only together with problems.
pub(super) fn read(
    file: &str,
    document: &Value,
    problems: &mut Vec<Problem>,
) -> Option<ConfigSchema> {
    let document: Document = shape::read(Shape::ConfigSchema, file, document, problems)?;
    let security = document.security;
    let channels = place(
        file,
        "",
        &document.channels_path,
        document.channel_settings_path.as_deref(),
        problems,
    );
    let security_channels = match (&security.channels_path, &security.channel_settings_path) {
        (None, None) => channels.clone(),
        (path, settings) => place(
            file,
            "/security",
            path.as_deref().unwrap_or(&document.channels_path),
            settings.as_deref(),
            problems,
        ),
    };
    let channel_types: BTreeSet<String> = document.channel_types.into_iter().collect();
    for (at, name) in document.singleton_channels.iter().enumerate() {
        if !channel_types.contains(name) {
            problems.push(Problem::new(
                file,
                &format!("/singleton_channels/{at}"),
                "is not one of channel_types",
            ));
        }
    }
    let dotted = |text: &String| SettingPath::dotted(text);
    let models_path = document.models_path.as_ref().map(dotted);
    let schema = ConfigSchema {
        config_version: document.config_version,
        security_models_path: security
            .models_path
            .as_ref()
            .map(dotted)
            .or_else(|| models_path.clone()),
        default_model_path: document.default_model_path.as_ref().map(dotted),
        singleton_channels: document.singleton_channels.into_iter().collect(),
        models_path,
        channels,
        security_channels,
        channel_types,
        chat: document.chat.map(Chat::from),
        providers: document.providers,
    };
    check_apart(file, &schema, problems);
    check_providers(file, &schema, problems);
    Some(schema)
}

fn place(
    file: &str,
    pointer: &str,
    channels: &str,
    settings: Option<&str>,
    problems: &mut Vec<Problem>,
) -> ChannelPlace {
    let channels = SettingPath::dotted(channels);
    let Some(text) = settings else {
        return ChannelPlace {
            channels,
            settings: Vec::new(),
        };
    };
    let pattern = SettingPath::dotted(text);
    let settings = match pattern.split_at_star() {
        Some((before, after)) if before == channels.names() => after.to_vec(),
        _ => {
            problems.push(Problem::new(
                file,
                &format!("{pointer}/channel_settings_path"),
                format!("must begin with {}.*", channels.to_dotted()),
            ));
            Vec::new()
        }
    };
    ChannelPlace { channels, settings }
}

/// Channels, models and the default model must not lie in each other.
fn check_apart(file: &str, schema: &ConfigSchema, problems: &mut Vec<Problem>) {
    let mut apart = |name: &str, path: Option<&SettingPath>, other: Option<&SettingPath>| {
        if let (Some(path), Some(other)) = (path, other)
            && path.overlaps(other)
        {
            problems.push(Problem::new(
                file,
                name,
                format!("overlaps with {}", other.to_dotted()),
            ));
        }
    };
    let channels = Some(&schema.channels.channels);
    let models = schema.models_path.as_ref();
    apart("/models_path", models, channels);
    let default = schema.default_model_path.as_ref();
    apart("/default_model_path", default, channels);
    apart("/default_model_path", default, models);
    apart(
        "/security/models_path",
        schema.security_models_path.as_ref(),
        Some(&schema.security_channels.channels),
    );
}
