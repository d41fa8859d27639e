//! Properties of conversations whose agents, pages and files are hostile.

#![allow(clippy::panic, reason = "a finding ends the target")]

mod entries;
mod page;
mod scene;
mod script;

pub use entries::check_conversation_entries;
pub use script::{check_agent_frames, check_page_frames};
