//! A user's conversations with their agent.

mod connect;
mod export;
mod history;
mod list;
#[cfg(test)]
mod tests;

use schema::home::conversations::ConversationId;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::route::{Failure, Route};

const NO_CONVERSATION: Failure = Failure(404, "not_found", "there is no such conversation");
const HELD: Failure = Failure(
    409,
    "held_elsewhere",
    "another replica of the service has the conversation open",
);
const CHAT_OFF: Failure = Failure(409, "chat_off", "`chat.enabled` is false");

/// The routes of this area.
pub(super) fn routes() -> Vec<Route> {
    let files = [
        list::routes(),
        history::routes(),
        export::routes(),
        connect::routes(),
    ];
    files.into_iter().flatten().collect()
}

/// A conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ChatWhich)]
pub struct Which {
    /// Its id.
    #[schema(value_type = String)]
    id: ConversationId,
}

fn no_conversation() -> ApiError {
    ApiError::not_found("conversation")
}
