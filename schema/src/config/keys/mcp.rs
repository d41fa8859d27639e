//! Keys of `mcp`.

use super::settings;
use crate::config::setting::{NotYet, Secrets, Setting};

settings! {
    /// Whether a GET opens an event stream or is refused.
    GET_STREAM: NotYet = "mcp.get_stream", "GET on the MCP endpoint", Setting::word(&["stream", "refuse"], "stream").not_yet();

    /// Tools that agents may call. Replaced as a whole.
    POLICY: NotYet = "mcp.policy", "MCP policy", Setting::object(Secrets::ByName).not_yet();

    /// Refuse requests without a valid MCP session id.
    SESSION_STRICT: NotYet = "mcp.session_strict", "Strict MCP sessions", Setting::flag(false).not_yet();
}
