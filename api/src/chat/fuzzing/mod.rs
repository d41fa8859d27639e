//! Properties of conversations whose agents, pages and files are hostile.

mod entries;
mod page;
mod scene;
mod script;

pub use entries::check_conversation_entries;
pub use script::{check_agent_frames, check_page_frames};
