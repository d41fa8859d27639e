//! Where a user's agent is, and its state as the chat sees it.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use schema::adapter::AgentChat;
use schema::adapter::ChatFeature;
use schema::agent_config;
use schema::condition::{self, ConditionStatus, ConditionType};
use schema::config::{self, Config, keys};
use schema::container::{self, StatusWord, status_word};
use schema::ids::{Kind, Timestamp, Uid};
use schema::image::ImageReference;
use schema::object;
use schema::reader::Connection;
use secrecy::SecretString;

use super::protocol::AgentState;
use crate::deps::Dependencies;
use crate::error::Result;

/// A user's agent.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// Its state; [`AgentState::Connecting`] when it can be connected to.
    pub(super) state: AgentState,
    /// A sentence about it.
    pub(super) message: Option<String>,
    /// Its chat; present when it can be connected to.
    pub(super) place: Option<ChatPlace>,
}

/// The place of an agent's chat.
#[derive(Debug, Clone)]
pub(super) struct ChatPlace {
    /// Its address in the agents' network.
    pub(super) address: SocketAddr,
    /// Path of its WebSocket.
    pub(super) path: String,
    /// Abilities of its version.
    pub(super) features: BTreeSet<ChatFeature>,
    /// The key to it.
    pub(super) token: SecretString,
    /// Start of the container: another one is another start of the agent.
    pub(super) started: Option<Timestamp>,
}

impl Target {
    fn without(state: AgentState, message: Option<String>) -> Self {
        Self {
            state,
            message,
            place: None,
        }
    }
}

/// Finds the agent of a user.
///
/// # Errors
/// Those of the database.
pub(super) async fn find_target(deps: &Dependencies, uid: &Uid) -> Result<Target> {
    if !deps.settings().chat_enabled {
        return Ok(Target::without(AgentState::Off, None));
    }
    let mut connection = deps.db.snapshot().await?;
    let row = container::get(&mut connection, uid).await?;
    let object = object::get(&mut connection, Kind::Container, uid).await?;
    let token = agent_config::chat_token(&mut connection, &deps.master_key, uid).await?;
    let (Some(row), Some(object), Some(token)) = (row, object, token) else {
        return Ok(Target::without(AgentState::Stopped, None));
    };
    let chat = chat_of_image(deps, &mut connection, &row.image_ref).await?;
    drop(connection);
    let Some(chat) = chat else {
        return Ok(Target::without(AgentState::Unsupported, None));
    };
    let status = &object.status;
    let deleted = row.deleted_at.is_some();
    let word = status_word(row.desired_running(), deleted, row.generation, status);
    let ready = condition::find(&status.conditions, ConditionType::Ready);
    let message = ready
        .filter(|ready| ready.status != ConditionStatus::True)
        .map(|ready| ready.message.clone())
        .filter(|message| !message.is_empty());
    let address = row
        .facts
        .ip
        .as_deref()
        .and_then(|ip| ip.parse::<IpAddr>().ok());
    let state = match word {
        StatusWord::Stopped | StatusWord::Stopping | StatusWord::Deleting => AgentState::Stopped,
        StatusWord::Failed => AgentState::Failed,
        StatusWord::Running if address.is_some() => AgentState::Connecting,
        _ => AgentState::Starting,
    };
    let Some(address) = address.filter(|_| state == AgentState::Connecting) else {
        return Ok(Target::without(state, message));
    };
    Ok(Target {
        state,
        message: None,
        place: Some(ChatPlace {
            address: SocketAddr::new(address, chat.port),
            path: chat.path,
            features: chat.features,
            token,
            started: row.facts.started_at,
        }),
    })
}

/// Returns true when the user's own container has this address now: the engine gives addresses of containers that are gone to others.
pub(super) async fn has_address(deps: &Dependencies, uid: &Uid, address: IpAddr) -> bool {
    let address = address.to_string();
    match deps.inspect.inspect(uid).await {
        Ok(Some(details)) => details
            .container
            .networks
            .values()
            .any(|own| own.as_deref() == Some(&*address)),
        Ok(None) => false,
        Err(error) => {
            tracing::debug!(%error, "the container of a chat cannot be inspected");
            false
        }
    }
}

/// The chat of the agent's version in an image; `None` when it has none.
async fn chat_of_image(
    deps: &Dependencies,
    connection: &mut Connection,
    image: &str,
) -> Result<Option<AgentChat>> {
    let adapter = deps.adapter.current_in(connection).await?;
    let image = image.parse::<ImageReference>().ok();
    let tag = image.as_ref().and_then(ImageReference::tag);
    Ok(adapter.chat(tag.unwrap_or_default()))
}

/// The chat of a user's agent, and true when a model is configured for it; `None` when its version has none.
///
/// # Errors
/// Those of the database.
pub(crate) async fn chat_of_user(
    deps: &Dependencies,
    uid: &Uid,
) -> Result<(Option<AgentChat>, bool)> {
    let mut connection = deps.db.snapshot().await?;
    let Some(row) = container::get(&mut connection, uid).await? else {
        return Ok((None, false));
    };
    let chat = chat_of_image(deps, &mut connection, &row.image_ref).await?;
    let (values, _) = config::query::load(&mut connection, &deps.master_key).await?;
    let agent = Config::from_stored(values).get(&keys::AGENT);
    let adapter = deps.adapter.current_in(&mut connection).await?;
    let image = row.image_ref.parse::<ImageReference>().ok();
    let tag = image.as_ref().and_then(ImageReference::tag);
    Ok((chat, adapter.has_model(tag.unwrap_or_default(), &agent)))
}
