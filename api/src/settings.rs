//! The settings that the HTTP layer itself obeys, as typed values.

use cidr::IpCidr;

use crate::auth::origin::Origin;

pub use schema::config::AuthMode;

/// A snapshot of the `web.*` configuration keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WebSettings {
    /// `web.auth_mode`.
    pub auth_mode: AuthMode,
    /// The origin of `web.public_url`, when set.
    pub public_origin: Option<Origin>,
    /// `web.allowed_origins`.
    pub allowed_origins: Vec<Origin>,
    /// `web.trusted_proxies`.
    pub trusted_proxies: Vec<IpCidr>,
    /// `web.desktop_user_agents`: substrings that mark a desktop client.
    pub desktop_user_agents: Vec<String>,
}
