//! The WebSocket of a page, and the schema of its frames.

use schema::home::conversations::ConversationId;
use serde::Deserialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::{CHAT_OFF, HELD, NO_CONVERSATION};
use crate::answer::Resource;
use crate::chat::{held_elsewhere, is_held_elsewhere, open_elsewhere, schema_document, serve_page};
use crate::deps::Deps;
use crate::dispatch::{Anyone, OrdinaryUser};
use crate::error::{ApiError, Result};
use crate::input::{Input, Nothing};
use crate::limits::CHAT_SOCKETS;
use crate::replica::pipe_websocket;
use crate::route::{Area, Failure, Route};
use crate::routes::websocket::{Switching, accept_websocket};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("chat_ws", "/api/agent/chat/ws", connect).holds(&CHAT_SOCKETS)
            .title(Area::Chat, "Talk to my agent")
            .about(
                "A WebSocket (RFC 6455) of one conversation; its frames are those of `/api/chat.schema.json`. The first is `hello`. A page \
                 that comes back with `epoch` and `after` gets what has changed since. A request that opens no WebSocket gets the \
                 same refusals, and 400 when there is none.",
            )
            .fails(&[
                NO_CONVERSATION,
                HELD,
                CHAT_OFF,
                Failure(429, "too_many_streams", "the user already has 8 such WebSockets"),
                Failure(400, "invalid_request", "the request opens no WebSocket"),
                Failure::BUSY,
            ]),
        Route::get("chat_schema", "/api/chat.schema.json", show_schema)
            .title(Area::Chat, "Get the schema of the chat's frames")
            .about("A JSON Schema (2020-12)."),
    ]
}

/// A conversation to open.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ChatConnectParams)]
pub struct Which {
    /// Its id.
    #[schema(value_type = String)]
    id: ConversationId,
    /// `epoch` of the last `hello`, to resume.
    epoch: Option<String>,
    /// Number of the last frame, to resume.
    after: Option<u64>,
}

/// `GET /api/agent/chat/ws`.
///
/// # Errors
/// 404 without the conversation; 409 while another replica has it, or chat is switched off; 429 for one too many.
async fn connect(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Which>,
    deps: Deps,
) -> Result<Switching> {
    if !deps.settings().chat_enabled {
        let text = "an administrator has switched chat off (`chat.enabled`)";
        return Err(ApiError::conflict("chat_off", text));
    }
    let Which { id, epoch, after } = input.params;
    let resumes = epoch.zip(after);
    let opened = deps.chats.open(&deps, &session.account, id.clone()).await;
    if let Err(held) = &opened
        && is_held_elsewhere(held)
    {
        return match open_elsewhere(&deps, &session, &id, resumes).await {
            Some(Ok(other)) => {
                let (upgrade, switching) = accept_websocket(&input.meta.headers, input.upgrade)?;
                pipe_websocket(&deps, upgrade, other);
                Ok(switching)
            }
            Some(Err(refused)) => Ok(Switching::refused(refused)),
            None => Err(held_elsewhere()),
        };
    }
    let opened = opened?;
    let (upgrade, switching) = accept_websocket(&input.meta.headers, input.upgrade)?;
    serve_page(&deps, session, opened, resumes, upgrade);
    Ok(switching)
}

/// `GET /api/chat.schema.json`.
///
/// # Errors
/// None.
async fn show_schema(_: Anyone, _: Input<Nothing>, _: Deps) -> Result<Resource<FrameSchema>> {
    let document = schema_document().to_string();
    Ok(Resource::ready_made(document.into()))
}

/// A JSON Schema.
pub struct FrameSchema;

impl ToSchema for FrameSchema {}

impl PartialSchema for FrameSchema {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .additional_properties(Some(AdditionalProperties::FreeForm(true)))
            .into()
    }
}
