//! Conversations of users with their agents, through the web channel of the agent.
//!
//! One task for each user holds the agent's side: a connection for each conversation that is in use. Pages read the state of a
//! conversation from the last number that they have seen, so that a slow page holds up nothing and needs no queue. Conversations lie in
//! the user's own workspace; the one process that has locked a conversation's folder writes it.

mod audit;
mod bounded;
mod elsewhere;
mod fetch;
mod fragments;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod hub;
mod keeper;
mod link;
mod pico;
mod protocol;
mod room;
mod schema_document;
mod socket;
mod store;
mod stored;
mod talk;
mod target;

pub(crate) use elsewhere::{
    close_elsewhere, is_held_elsewhere, open_elsewhere, rename_elsewhere, serve_page,
};
pub use hub::Chats;
pub(crate) use protocol::{Body, Conversation, Entry};
pub(crate) use schema_document::schema_document;
pub(crate) use store::{held_elsewhere, picture_type, read_head};
pub(crate) use stored::{Index, Log, Wanted};
pub(crate) use target::chat_of_user;
