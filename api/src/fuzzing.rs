//! Entry points of the fuzz targets in `tests/fuzz`: each function panics when a property does not hold.

pub use crate::chat::fuzzing::{check_agent_frames, check_conversation_entries, check_page_frames};
pub use crate::mcp::fuzzing::check_messages as check_mcp_messages;
