//! Channels of the active adapter, as an administrator permits them.

use std::collections::{BTreeMap, BTreeSet};

use schema::adapter::{Adapter, AgentVersion};
use schema::config::{Config, keys, query as config};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::Result;
use crate::input::Input;
use crate::route::{Area, Route, Tokens};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("adapter_channels", "/api/admin/agent/channels", channels)
            .tokens(Tokens::Read)
            .title(Area::Adapter, "List channels of the active adapter")
            .about(
                "For each channel: the configuration versions that know it, and those in which \
                 the global settings allow it.",
            ),
    ]
}

/// Which channels.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Which {
    /// Only channels that this configuration version knows.
    #[schema(example = 3)]
    config_version: Option<u32>,
}

/// The channels, by name.
#[derive(Debug, Serialize, ToSchema)]
pub struct Channels {
    channels: Vec<Channel>,
}

/// A channel of the active adapter.
#[derive(Debug, Serialize, ToSchema)]
pub struct Channel {
    /// Its name in files.
    #[schema(example = "telegram")]
    key: String,
    /// Its display name.
    #[schema(example = "Telegram")]
    label: String,
    /// Configuration versions that know it.
    config_versions: BTreeSet<u32>,
    /// Versions of the agent that know it, oldest first.
    agent_versions: Vec<String>,
    /// The global settings allow it for at least one version of the agent shown here.
    allowed: bool,
    /// Configuration versions in which they do.
    allowed_config_versions: BTreeSet<u32>,
    /// The chat of at least one version of the agent shown here occupies it while `chat.enabled` is true: users cannot set it up.
    of_chat: bool,
}

/// Global settings that cannot be brought to a version permit nothing there.
fn permits(adapter: &Adapter, version: &AgentVersion, agent: &Value, channel: &str) -> bool {
    let tag = version.version.to_string();
    adapter.permits_channel(&tag, agent, channel) == Ok(true)
}

fn gather(adapter: &Adapter, config: &Config, wanted: Option<u32>) -> Vec<Channel> {
    let mut channels: BTreeMap<&str, Channel> = BTreeMap::new();
    let agent = &config.get(&keys::AGENT);
    let chat = config.get(&keys::chat::ENABLED);
    let versions = adapter.index.agent_versions.iter();
    for version in versions.filter(|v| wanted.is_none_or(|wanted| wanted == v.config_version)) {
        let form = adapter.ui_schemas.get(&version.config_version);
        for key in &version.channel_types {
            let channel = channels.entry(key).or_insert_with(|| Channel {
                key: key.clone(),
                label: key.clone(),
                config_versions: BTreeSet::new(),
                agent_versions: Vec::new(),
                allowed: false,
                allowed_config_versions: BTreeSet::new(),
                of_chat: false,
            });
            // The newest version's word counts.
            if let Some(section) = form.and_then(|form| form.channel(key)) {
                channel.label.clone_from(&section.label);
            }
            channel.config_versions.insert(version.config_version);
            channel.agent_versions.push(version.version.to_string());
            if chat && adapter.is_chat_channel(&version.version.to_string(), key) {
                channel.of_chat = true;
                continue;
            }
            if permits(adapter, version, agent, key) {
                channel.allowed = true;
                let allowed = &mut channel.allowed_config_versions;
                allowed.insert(version.config_version);
            }
        }
    }
    channels.into_values().collect()
}

/// `GET /api/admin/agent/channels`: the channels that the active adapter knows, and which of them the global settings
/// permit.
///
/// # Errors
/// None of its own.
async fn channels(_: Superadmin, input: Input<Which>, deps: Deps) -> Result<Answer<Channels>> {
    let mut connection = deps.db.read().await?;
    let (values, _) = config::load(&mut connection, &deps.master_key).await?;
    let adapter = deps.adapter.current_in(&mut connection).await?;
    drop(connection);
    let config = Config::from_stored(values);
    let channels = gather(&adapter, &config, input.params.config_version);
    Ok(Answer::ok("", Channels { channels }))
}
