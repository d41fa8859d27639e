//! Where a user's agent is, and its state as the chat sees it.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use schema::adapter::ChatFeature;
use schema::container::{self, StatusWord, status_word};
use schema::ids::{Kind, Timestamp, Uid};
use schema::image::ImageReference;
use schema::object;
use schema::user;
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
    let account = user::by_uid(&mut connection, uid).await?;
    let (Some(row), Some(object), Some(account)) = (row, object, account) else {
        return Ok(Target::without(AgentState::Stopped, None));
    };
    drop(connection);
    let Some(chat) = deps.adapter.current().chat(tag_of(&row.image_ref)) else {
        return Ok(Target::without(AgentState::Unsupported, None));
    };
    let status = &object.status;
    let deleted = row.deleted_at.is_some();
    let word = status_word(row.desired_running(), deleted, row.generation, status);
    let ready = schema::condition::find(&status.conditions, schema::condition::ConditionType::Ready);
    let message = ready
        .filter(|ready| ready.status != schema::condition::ConditionStatus::True)
        .map(|ready| ready.message.clone())
        .filter(|message| !message.is_empty());
    let address = row.facts.ip.as_deref().and_then(|ip| ip.parse::<IpAddr>().ok());
    let state = match word {
        StatusWord::Stopped | StatusWord::Stopping | StatusWord::Deleting => AgentState::Stopped,
        StatusWord::Failed => AgentState::Failed,
        // An engine that cannot be asked does not keep an agent from answering.
        StatusWord::Running | StatusWord::Unknown if address.is_some() => AgentState::Connecting,
        _ => AgentState::Starting,
    };
    let Some(address) = address.filter(|_| state == AgentState::Connecting) else {
        return Ok(Target::without(state, message));
    };
    let token = deps.master_key.chat_token(uid, account.mcp_token_version);
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

/// The tag of an image's reference, as adapters know versions; empty without one.
pub(super) fn tag_of(reference: &str) -> &str {
    ImageReference::tag_of(reference).unwrap_or_default()
}
