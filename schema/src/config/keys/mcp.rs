//! Keys of `mcp`.

use super::settings;
use crate::config::policy::Policy;
use crate::config::setting::Setting;

settings! {
    /// Whether the GET of Streamable HTTP opens an event stream (`stream`), or is refused (`refuse`, status 405) so that no connection
    /// stays open without a call. HTTP+SSE needs its stream and keeps it.
    GET_STREAM: Setting<String> = "mcp.get_stream", "GET on the MCP endpoint", Setting::word(&["stream", "refuse"], "stream");

    /// What agents may do with browsers and desktops: for everybody, and for groups and users by name. A group's rules replace the
    /// general ones that they name, a user's rules those of groups. Replaced as a whole; takes effect at once.
    POLICY: Setting<Policy> = "mcp.policy", "MCP policy", Setting::policy();

    /// Refuse MCP session ids that this service has not issued (404, "session not found"). Requests without one are served.
    SESSION_STRICT: Setting<bool> = "mcp.session_strict", "Strict MCP sessions", Setting::flag(false);
}
