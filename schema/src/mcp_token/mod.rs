//! Who holds an MCP token. The token itself is derived (see [`MasterKey::mcp_token`](crate::secrets::MasterKey::mcp_token)); what is
//! stored is its version.

pub(crate) mod query;

pub use query::{Holder, find, of_names};
