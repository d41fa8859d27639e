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
use crate::auth::Account;
use crate::deps::Deps;
use crate::dispatch::{OrdinaryUser, Superadmin};
use crate::error::Result;
use crate::input::Input;
use crate::route::{Area, Failure, Route, Tokens};
use crate::routes::params::{Who, present_user};

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
        Route::get("users_channels", "/api/admin/users/channels", of_user)
.tokens(Tokens::Read)
            .title(Area::Users, "List the channels that a user has set")
            .about(
                "Names only, never values. `known` is false for a channel that the user's agent does not know, or no \
                 administrator allows any more.",
            )
            .fails(&[Failure::NO_USER, Failure::REMOVED, GLOBAL]),
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

/// A channel that a user has set.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UserChannel)]
pub struct SetChannel {
    /// Its name in files.
    #[schema(example = "dingtalk")]
    key: String,
    /// Its display name.
    #[schema(example = "DingTalk")]
    label: String,
    /// The user's agent knows it, and an administrator allows it.
    known: bool,
    /// The user has switched it on.
    enabled: bool,
    /// Nothing that is required is missing.
    configured: bool,
}

/// The channels that a user has set.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UserChannels)]
pub struct SetChannels {
    channels: Vec<SetChannel>,
}

/// `GET /api/admin/users/channels`: which channels a user has set, without values.
///
/// # Errors
/// 404 without such a user, 409 while it is being removed, 422 when the global settings cannot be used.
async fn of_user(_: Superadmin, input: Input<Who>, deps: Deps) -> Result<Answer<SetChannels>> {
    let user = present_user(&mut *deps.db.read().await?, &input.params.username).await?;
    let account = Account {
        uid: user.uid,
        name: user.name,
        role: user.role,
    };
    let own = Own::read(&deps, &account, None).await?;
    let sections = own.forms.channels()?;
    let set = own
        .values
        .channels
        .iter()
        .filter(|(_, values)| !values.is_empty());
    let channels = set.map(|(key, values)| {
        let section = sections.iter().find(|section| section.key == *key);
        let channel = section.map(|section| Channel::of(section, Some(values)));
        SetChannel {
            key: key.clone(),
            label: channel
                .as_ref()
                .map_or(key, |channel| &channel.label)
                .clone(),
            known: channel.is_some(),
            enabled: channel.as_ref().is_some_and(|channel| channel.enabled),
            configured: channel.is_some_and(|channel| channel.configured),
        }
    });
    let channels = SetChannels {
        channels: channels.collect(),
    };
    Ok(Answer::ok("channels that the user has set", channels))
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
