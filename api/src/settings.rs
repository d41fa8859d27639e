//! The settings that the HTTP layer itself obeys, as typed values.

use cidr::IpCidr;

use crate::auth::origin::Origin;

/// Where ordinary users come from.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Default,
    serde::Serialize,
    serde::Deserialize,
    strum::Display,
    strum::EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AuthMode {
    /// The local user store.
    #[default]
    Local,
    /// A directory server.
    Ldap,
    /// An identity provider.
    Oidc,
}

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
