//! Which channels a user may set up.

use std::collections::BTreeMap;

use schema::adapter::Section;
use schema::ids::Generation;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::GLOBAL;
use super::fields::value_of;
use super::forms::{Own, config_version};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::OrdinaryUser;
use crate::error::Result;
use crate::input::Input;
use crate::route::{Area, Failure, Route};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("own_channels", "/api/agent/channels", list)
            .title(Area::Agent, "List channels that my agent may use")
            .about(
                "Those that an administrator allows (enables in the global settings) and my agent \
                 knows, whether or not its container ever ran. `config_version` selects other \
                 forms, and allows nothing more.",
            )
            .fails(&[Failure::NO_ACCOUNT, GLOBAL]),
    ]
}

/// Which forms.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Which {
    /// The configuration version whose forms are used; default: that of my agent.
    #[schema(value_type = Option<u32>, example = 3)]
    config_version: Option<String>,
}

/// A channel.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentChannel)]
pub struct Channel {
    /// Its name in files.
    #[schema(example = "dingtalk")]
    key: String,
    /// Its display name.
    #[schema(example = "DingTalk")]
    label: String,
    /// Allowed by an administrator; others are not listed.
    allowed: bool,
    /// The user has switched it on.
    enabled: bool,
    /// The user has set something, and nothing that is required is missing.
    configured: bool,
}

impl Channel {
    fn of(section: &Section, values: Option<&BTreeMap<String, Value>>) -> Self {
        let is_set = |key: &str| {
            let stored = values.and_then(|values| values.get(key));
            match section.field(key) {
                Some(field) => field.default.is_some() || value_of(field, stored).is_some(),
                None => false,
            }
        };
        let required = section.fields.iter().filter(|field| field.required);
        Self {
            key: section.key.clone(),
            label: section.label.clone(),
            allowed: true,
            enabled: is_enabled(section, values),
            configured: values.is_some_and(|values| !values.is_empty())
                && required.into_iter().all(|field| is_set(&field.key)),
        }
    }
}

fn is_enabled(section: &Section, values: Option<&BTreeMap<String, Value>>) -> bool {
    const ENABLED: &str = "enabled";
    let stored = values.and_then(|values| values.get(ENABLED));
    let effective = match section.field(ENABLED) {
        Some(field) => value_of(field, stored).or_else(|| field.default.clone()),
        None => stored.cloned(),
    };
    effective == Some(Value::Bool(true))
}

/// The channels that a user may set up.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentChannels)]
pub struct Channels {
    channels: Vec<Channel>,
    /// The generation that `if_generation` of a save is compared with.
    generation: Generation,
}

/// `GET /api/agent/channels`: those that an administrator allows and the user's agent knows.
///
/// # Errors
/// 400 for a configuration version without forms, 422 when the global settings cannot be used.
async fn list(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Which>,
    deps: Deps,
) -> Result<Answer<Channels>> {
    let version = config_version(input.params.config_version.as_deref())?;
    let own = Own::read(&deps, &session.account, version).await?;
    let sections = own.forms.channels()?.into_iter();
    let of = |section: &Section| Channel::of(section, own.values.channels.get(&section.key));
    let channels = Channels {
        channels: sections.map(of).collect(),
        generation: own.generation,
    };
    Ok(Answer::ok("channels that your agent may use", channels))
}
