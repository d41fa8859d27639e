//! What `mcp.policy` holds: what agents may do with browsers and desktops, for everybody, for groups and for users.
//!
//! Here is its shape and what is refused at a save. Which rules are in effect for whom, and what they mean for a call, is decided in
//! `api/src/mcp/policy`.

mod pattern;
mod shape;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use pattern::{ToolPattern, UrlPattern, canonical_host};
pub(super) use shape::{check, json_schema};

/// The policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// For everybody.
    #[serde(flatten)]
    pub general: Layer,
    /// For members of groups, and of those below them, by the groups' names.
    pub groups: BTreeMap<String, Layer>,
    /// For users, by their names.
    pub users: BTreeMap<String, Layer>,
}

/// Rules of one layer: those for everybody, for a group, or for a user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Layer {
    /// For browsers.
    pub browser: Rules,
    /// For desktops.
    pub computer: Rules,
}

/// Rules for a service. What is `None` here is left to the layer before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// What agents may do at all.
    pub mode: Option<Mode>,
    /// Which tools.
    pub tools: Lists<ToolPattern>,
    /// On which pages.
    pub urls: Urls,
    /// Whether pages of private networks may be visited.
    pub private_addresses: Option<bool>,
    /// Executors that may be asked, by their instances.
    pub devices: Option<Vec<String>>,
}

/// What is allowed and what is not; who is in both is not. An empty list restricts nothing.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Lists<T> {
    /// Nothing else is allowed, unless the list is empty.
    pub allow: Option<Vec<T>>,
    /// This is not.
    pub deny: Option<Vec<T>>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self {
            allow: None,
            deny: None,
        }
    }
}

/// Which pages may be visited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Urls {
    /// The administrator's own lists.
    #[serde(flatten)]
    pub lists: Lists<UrlPattern>,
    /// Whether the list that comes with the service applies.
    pub builtin: Option<bool>,
}

/// What agents may do at all. The lesser one is the stricter.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize, strum::Display,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Mode {
    /// Nothing: calls and executors are refused.
    Off,
    /// Look.
    ReadOnly,
    /// Everything that no other rule denies.
    #[default]
    Auto,
}

#[cfg(test)]
mod tests;
