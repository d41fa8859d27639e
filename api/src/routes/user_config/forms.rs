//! The forms that a user may fill in.

use std::sync::Arc;

use schema::adapter::{Adapter, PageKey, RenderError, Section, UiSchema};
use schema::agent_config::{self, AgentConfigRow, UserValues};
use schema::config::{self, Config, keys};
use schema::ids::Generation;
use schema::image::ImageReference;
use serde_json::Value;

use crate::auth::Account;
use crate::deps::Deps;
use crate::error::{ApiError, Result};

/// The forms of an agent's version, and which of them an administrator permits.
pub(super) struct Forms {
    adapter: Arc<Adapter>,
    /// The tag of the user's own image, which permissions go by: to ask for other forms permits nothing more.
    tag: String,
    /// The configuration version whose forms these are.
    version: u32,
    /// The global settings, which hold the permissions.
    agent: Value,
    /// The chat is on.
    chat: bool,
}

impl Forms {
    /// The forms for a user of this image; of its agent's version, unless another configuration version is
    /// requested.
    ///
    /// # Errors
    /// 400 for a configuration version that has no forms.
    pub(super) fn of(
        adapter: Arc<Adapter>,
        image: Option<&str>,
        stored: config::query::Values,
        wanted: Option<u32>,
    ) -> Result<Self> {
        let image = image.and_then(|image| image.parse::<ImageReference>().ok());
        let tag = image.as_ref().and_then(ImageReference::tag);
        let tag = tag.unwrap_or_default().to_owned();
        let own = adapter.resolve_agent_version(&tag).config_version;
        if wanted.is_some_and(|version| !adapter.ui_schemas.contains_key(&version)) {
            let known: Vec<String> = adapter.ui_schemas.keys().map(u32::to_string).collect();
            let message = match &*known {
                [] => "this agent has no forms in any config_version".to_owned(),
                known => format!("config_version is one of {}", known.join(", ")),
            };
            return Err(ApiError::invalid("config_version", message));
        }
        let config = Config::from_stored(stored);
        Ok(Self {
            tag,
            version: wanted.unwrap_or(own),
            agent: config.get(&keys::AGENT),
            chat: config.get(&keys::chat::ENABLED),
            adapter,
        })
    }

    fn schema(&self) -> Option<&UiSchema> {
        self.adapter.ui_schemas.get(&self.version)
    }

    fn permits(&self, channel: &str) -> Result<bool> {
        self.adapter
            .permits_channel(&self.tag, &self.agent, channel)
            .map_err(|error| unusable(&error))
    }

    /// The chat occupies it.
    fn is_of_chat(&self, channel: &str) -> bool {
        self.chat && self.adapter.is_chat_channel(&self.tag, channel)
    }

    /// The channels that the user may set up.
    ///
    /// # Errors
    /// 422 when the global settings cannot be used.
    pub(super) fn channels(&self) -> Result<Vec<&Section>> {
        let page = self
            .schema()
            .and_then(|schema| schema.page(PageKey::Channels));
        let mut permitted = Vec::new();
        for section in page.iter().flat_map(|page| &page.sections) {
            if !self.is_of_chat(&section.key) && self.permits(&section.key)? {
                permitted.push(section);
            }
        }
        Ok(permitted)
    }

    /// The name of the channel behind the chat-app routes.
    pub(super) fn chatapp(&self) -> &str {
        &self.adapter.index.agent.chatapp_section
    }

    /// A channel that the user may set up.
    ///
    /// # Errors
    /// 404 when there is none of this name, 403 when the chat occupies it or no administrator has allowed it, 422 when the global
    /// settings cannot be used.
    pub(super) fn channel(&self, key: &str) -> Result<&Section> {
        let section = self.schema().and_then(|schema| schema.channel(key));
        let section = section.ok_or_else(|| {
            // What a client sends for a name may be anything.
            let shown: String = key.chars().take(64).collect();
            ApiError::not_found(format!("channel {shown}"))
        })?;
        if self.is_of_chat(key) {
            return Err(ApiError::ChannelOfChat {
                channel: section.key.clone(),
            });
        }
        if self.permits(key)? {
            Ok(section)
        } else {
            Err(ApiError::ChannelNotAllowed {
                channel: section.key.clone(),
            })
        }
    }
}

fn unusable(error: &RenderError) -> ApiError {
    let message = format!("the administrator's settings for agents can't be used: {error}");
    ApiError::unprocessable("invalid_global_config", message)
}

/// A user's own settings and the forms for them.
pub(super) struct Own {
    pub(super) forms: Forms,
    pub(super) values: UserValues,
    /// The generation that `if_generation` of a save is compared with.
    pub(super) generation: Generation,
}

impl Own {
    /// Reads them, and writes nothing.
    ///
    /// # Errors
    /// As [`Forms::of`]; 404 while the account is being removed.
    pub(super) async fn read(deps: &Deps, account: &Account, wanted: Option<u32>) -> Result<Self> {
        let adapter = deps.adapter.current().await?;
        let mut snapshot = deps.db.snapshot().await?;
        let row = present(agent_config::get(&mut snapshot, &account.uid).await?)?;
        let (stored, _) = config::query::load(&mut snapshot, &deps.master_key).await?;
        let values = agent_config::values(&mut snapshot, &deps.master_key, &account.uid).await?;
        Ok(Self {
            forms: Forms::of(adapter, row.image_ref.as_deref(), stored, wanted)?,
            values,
            generation: row.generation,
        })
    }
}

/// A user's settings, unless the account is being removed.
///
/// # Errors
/// 404.
pub(super) fn present(row: Option<AgentConfigRow>) -> Result<AgentConfigRow> {
    row.filter(|row| row.deleted_at.is_none())
        .ok_or_else(|| ApiError::not_found("your account"))
}

/// The number of a configuration version; an empty text is none.
///
/// # Errors
/// 400.
pub(super) fn config_version(text: Option<&str>) -> Result<Option<u32>> {
    let parsed = text.filter(|text| !text.is_empty()).map(str::parse);
    parsed.transpose().map_err(|_| {
        let message = "config_version is a whole number that is not negative";
        ApiError::invalid("config_version", message)
    })
}
