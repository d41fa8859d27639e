//! The one channel that clients of old know by name.

use schema::adapter::Section;
use schema::ids::Generation;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::fields::value_of;
use super::forms::Own;
use super::save::{Draft, save_channel};
use super::{READ_FAILURES, SAVE_FAILURES};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::OrdinaryUser;
use crate::error::Result;
use crate::input::{Input, Nothing};
use crate::route::{Area, Route};
use crate::wait::Noted;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("chat_app_read", "/api/chatapp", read)
            .title(Area::Agent, "Get my chat-app channel")
            .about(
                "The channel that the adapter designates for the chat app. The secret is never \
                 returned.",
            )
            .fails(READ_FAILURES),
        Route::post("chat_app_save", "/api/chatapp", save)
            .title(Area::Agent, "Set up my chat-app channel")
            .about(
                "Enables the channel. An empty secret leaves the stored one unchanged. The agent \
                 restarts once, even if nothing changed, in debug mode if it was in it; what is saved for one \
                 that an administrator stopped takes effect at the next start. `if_generation` is compared with the `generation` that the GET \
                 returned.",
            )
            .waits()
            .guarded()
            .fails(SAVE_FAILURES),
    ]
}

const CLIENT_ID: &str = "client_id";
const CLIENT_SECRET: &str = "client_secret";
const ENABLED: &str = "enabled";

/// What is set for the chat-app channel.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChatApp {
    /// Empty when it is not set.
    #[schema(example = "dingabc123")]
    client_id: String,
    /// Always empty: the secret is never returned. Clients expect the field.
    #[schema(example = "")]
    client_secret: &'static str,
    /// Whether there is a secret.
    client_secret_set: bool,
    /// The generation that `if_generation` of a save is compared with.
    generation: Generation,
}

/// `GET /api/chatapp`: what is set for the channel that the adapter names for it.
///
/// # Errors
/// 403 when no administrator has allowed the channel, 404 when the agent has none, 422 when the global settings
/// cannot be used.
async fn read(
    OrdinaryUser(session): OrdinaryUser,
    _: Input<Nothing>,
    deps: Deps,
) -> Result<Answer<ChatApp>> {
    let own = Own::read(&deps, &session.account, None).await?;
    let section = own.forms.channel(own.forms.chatapp())?;
    let id = stored(&own, section, CLIENT_ID);
    // What the form calls secret is not returned, whatever its name.
    let id = id.filter(|_| {
        section
            .field(CLIENT_ID)
            .is_some_and(|field| !field.is_secret())
    });
    let chatapp = ChatApp {
        client_id: id
            .as_ref()
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        client_secret: "",
        client_secret_set: stored(&own, section, CLIENT_SECRET).is_some(),
        generation: own.generation,
    };
    Ok(Answer::ok("the chat-app channel", chatapp))
}

fn stored(own: &Own, section: &Section, key: &str) -> Option<Value> {
    let values = own.values.channels.get(&section.key)?;
    value_of(section.field(key)?, values.get(key))
}

/// The form of `POST /api/chatapp`.
#[derive(Debug, Deserialize, ToSchema)]
pub struct ChatAppForm {
    #[schema(example = "dingabc123")]
    client_id: String,
    /// Unchanged when empty or absent.
    #[schema(value_type = Option<String>, format = Password, example = "hunter2")]
    client_secret: Option<SecretString>,
}

/// `POST /api/chatapp`: sets up the chat-app channel and switches it on; restarts the agent once, also when
/// nothing is different.
///
/// # Errors
/// As `POST /api/agent/config-fields`.
async fn save(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<ChatAppForm>,
    deps: Deps,
) -> Result<Answer<Noted>> {
    let Input {
        params,
        wait,
        if_generation,
        meta,
        ..
    } = input;
    let secret = params.client_secret.as_ref();
    let secret = secret.map_or("", |secret| secret.expose_secret());
    let values = Map::from_iter([
        (CLIENT_ID.to_owned(), Value::from(params.client_id)),
        (CLIENT_SECRET.to_owned(), Value::from(secret)),
        (ENABLED.to_owned(), Value::Bool(true)),
    ]);
    let draft = Draft {
        channel: None,
        values,
        config_version: None,
    };
    save_channel(&deps, &session.account, &meta, draft, (if_generation, wait)).await
}
