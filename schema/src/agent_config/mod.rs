//! What goes into a user's agent files beside the global configuration: the values of channels, cookies, and
//! what the agent-config reconciler remembers.
//!
//! Each ordinary user has one object of kind `agent-config`, made and removed with the account. Whatever its files
//! follow from bumps its generation in the same transaction: the user's values, cookies and MCP token, the
//! container's image, global settings, the adapter.

use crate::kind::Descriptor;

pub(crate) mod kept;
mod model;
pub(crate) mod query;

pub use kept::{KeptFiles, keep_files, kept_files};
pub use model::{AgentConfigFacts, AgentConfigRow, Cookie, UserValues, Values};
pub use query::{
    all, applied, channel_values, chat_token, cookies, delete_cookies, get, list_cookies,
    save_facts, set_channel_values, set_channels, set_cookies, values,
};
pub(crate) use query::{delete, purge};

pub(crate) const KIND: Descriptor = Descriptor::new("agent-configs", &["ac"]);
