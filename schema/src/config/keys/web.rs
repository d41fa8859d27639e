//! Keys of `web`.

use cidr::IpCidr;

use super::settings;
use crate::config::AuthMode;
use crate::config::rules;
use crate::config::setting::{Effect, Setting};
use crate::kind::Kind;

settings! {
    /// Exact origins of other pages that may call the API.
    ALLOWED_ORIGINS: Setting<Vec<String>> = "web.allowed_origins", "Allowed origins", Setting::list(rules::origin);

    /// Where ordinary users come from. A change removes all ordinary users and archives their directories.
    AUTH_MODE: Setting<AuthMode> = "web.auth_mode", "Authentication mode", Setting::choice("local").effects(&[Effect::Object(Kind::Directory)]);

    /// Substrings of the User-Agent that mark a desktop client, in which superadmins cannot sign in.
    DESKTOP_USER_AGENTS: Setting<Vec<String>> = "web.desktop_user_agents", "Desktop clients", Setting::list(rules::name);

    /// Base URL under which browsers reach this service; empty = from the request.
    PUBLIC_URL: Setting<Option<String>> = "web.public_url", "Public URL", Setting::optional(rules::base_url);

    /// Addresses and networks whose X-Forwarded headers are trusted.
    TRUSTED_PROXIES: Setting<Vec<IpCidr>> = "web.trusted_proxies", "Trusted proxies", Setting::list(rules::network);
}
