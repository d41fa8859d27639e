//! The configuration in effect: stored values where there are any, defaults elsewhere.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use cidr::{IpCidr, Ipv4Cidr};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::registry::{KeyDef, find, parse_duration};
use super::{Changes, Problem, ProblemCode, document};
use crate::adapter::SecretPaths;
use crate::image::ImageReference;

/// The capabilities that an agent gets by default when it runs as its image's own user.
pub const IMAGE_CAPABILITIES: &[&str] = &["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"];

const MIB: u64 = 1024 * 1024;

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
    strum::Display,
    strum::EnumString,
    utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AuthMode {
    /// Accounts of this service.
    #[default]
    Local,
    /// A directory server.
    Ldap,
    /// An identity provider.
    Oidc,
}

/// When an image is pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::Display, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum PullPolicy {
    /// When the engine does not have it.
    Missing,
    /// Before every new container.
    Always,
    /// Never; somebody else loads images.
    Never,
}

/// The configuration in effect. `Debug` masks secrets.
#[derive(Clone, Default, PartialEq)]
pub struct Config {
    stored: BTreeMap<&'static str, Value>,
    problems: Vec<Problem>,
    run_as_image: bool,
    secret_paths: Arc<SecretPaths>,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (key, value) in &self.stored {
            if let Some(def) = find(key) {
                map.entry(
                    key,
                    &document::mask(def, value.clone(), &self.secret_paths).to_string(),
                );
            }
        }
        map.finish()
    }
}

impl Config {
    /// Makes the view from stored values (secrets opened). A stored value that is unknown or no longer
    /// valid does not count; [`Config::problems`] names it.
    pub fn from_stored(stored: BTreeMap<String, Value>) -> Self {
        let mut config = Self::default();
        for (key, value) in stored {
            match find(&key) {
                None => config.problems.push(Problem::new(
                    &key,
                    ProblemCode::UnknownKey,
                    format!("the stored key {key} is not known to this release"),
                )),
                Some(def) => match def.check(&value) {
                    Ok(value) => {
                        config.stored.insert(def.key, value);
                    }
                    Err(problem) => config.problems.push(problem),
                },
            }
        }
        config
    }

    /// Tells whether the active adapter runs agents as their image's own user, which decides the
    /// default of `container.capabilities`.
    #[must_use]
    pub fn with_run_as_image(mut self, run_as_image: bool) -> Self {
        self.run_as_image = run_as_image;
        self
    }

    /// Tells which places of `agent` the active adapter stores as secrets: they are not shown, besides
    /// what names tell.
    #[must_use]
    pub fn with_secret_paths(mut self, secret_paths: Arc<SecretPaths>) -> Self {
        self.secret_paths = secret_paths;
        self
    }

    pub(super) fn secret_paths(&self) -> &SecretPaths {
        &self.secret_paths
    }

    /// Stored values that do not count.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The view after `changes` were stored.
    #[must_use]
    pub fn apply(mut self, changes: &Changes) -> Self {
        for (key, value) in &changes.0 {
            match value {
                Some(value) => self.stored.insert(key, value.clone()),
                None => self.stored.remove(key),
            };
        }
        self
    }

    /// Whether somebody set this key.
    pub fn is_set(&self, key: &str) -> bool {
        self.stored.contains_key(key)
    }

    /// The value in effect, secrets included; `None` when there is no such key.
    pub fn get(&self, key: &str) -> Option<Value> {
        find(key).map(|def| self.value(def))
    }

    /// The value in effect as it may be shown and kept in the history; `None` when there is no such key.
    pub fn get_masked(&self, key: &str) -> Option<Value> {
        find(key).map(|def| document::mask(def, self.value(def), &self.secret_paths))
    }

    pub(super) fn value(&self, def: &KeyDef) -> Value {
        match self.stored.get(def.key) {
            Some(value) => value.clone(),
            None if self.run_as_image && def.key == "container.capabilities" => {
                json!(IMAGE_CAPABILITIES)
            }
            None => def.default_value(),
        }
    }

    /// The text of a key; empty when the key holds no text. Not for secrets.
    pub fn text(&self, key: &str) -> String {
        match self.get(key) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        }
    }

    /// The boolean of a key; `false` when the key holds none.
    pub fn boolean(&self, key: &str) -> bool {
        self.get(key).and_then(|value| value.as_bool()) == Some(true)
    }

    /// The whole number of a key; 0 when the key holds none or a negative one.
    pub fn integer(&self, key: &str) -> u64 {
        self.get(key).and_then(|value| value.as_u64()).unwrap_or(0)
    }

    /// The texts of a key; none when the key holds no list.
    pub fn list(&self, key: &str) -> Vec<String> {
        match self.get(key) {
            Some(Value::Array(items)) => items
                .into_iter()
                .filter_map(|item| match item {
                    Value::String(text) => Some(text),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The duration of a key; `None` for 0, which means off or for ever.
    pub fn duration(&self, key: &str) -> Option<Duration> {
        parse_duration(&self.text(key)).filter(|duration| !duration.is_zero())
    }

    /// The secret of a key; `None` when it is not set.
    pub fn secret(&self, key: &str) -> Option<SecretString> {
        match self.get(key) {
            Some(Value::String(text)) if !text.is_empty() => Some(SecretString::from(text)),
            _ => None,
        }
    }

    fn non_empty(&self, key: &str) -> Option<String> {
        Some(self.text(key)).filter(|text| !text.is_empty())
    }

    /// `web.auth_mode`
    pub fn auth_mode(&self) -> AuthMode {
        AuthMode::from_str(&self.text("web.auth_mode")).unwrap_or(AuthMode::Local)
    }

    /// `web.public_url`, without a slash at the end.
    pub fn public_url(&self) -> Option<String> {
        self.non_empty("web.public_url")
    }

    /// `web.trusted_proxies`
    pub fn trusted_proxies(&self) -> Vec<IpCidr> {
        self.list("web.trusted_proxies")
            .iter()
            .filter_map(|network| network.parse().ok())
            .collect()
    }

    /// `web.allowed_origins`
    pub fn allowed_origins(&self) -> Vec<String> {
        self.list("web.allowed_origins")
    }

    /// `web.desktop_user_agents`
    pub fn desktop_user_agents(&self) -> Vec<String> {
        self.list("web.desktop_user_agents")
    }

    /// `image.name` and `image.tag` as one reference: the image of new users.
    pub fn image_reference(&self) -> String {
        format!("{}:{}", self.text("image.name"), self.text("image.tag"))
    }

    /// `image.pull_policy`
    pub fn pull_policy(&self) -> PullPolicy {
        PullPolicy::from_str(&self.text("image.pull_policy")).unwrap_or(PullPolicy::Missing)
    }

    /// `image.registry_username` and `image.registry_password` for what fetches `image`; `None` =
    /// anonymous. They belong to the registry of `image.name` and are told to no other.
    pub fn registry_credentials_for(
        &self,
        image: &ImageReference,
    ) -> Option<(String, SecretString)> {
        let own: ImageReference = self.text("image.name").parse().ok()?;
        own.registry()
            .eq_ignore_ascii_case(image.registry())
            .then(|| self.registry_credentials())
            .flatten()
    }

    fn registry_credentials(&self) -> Option<(String, SecretString)> {
        let username = self.non_empty("image.registry_username")?;
        let password = self
            .secret("image.registry_password")
            .unwrap_or_else(|| SecretString::from(String::new()));
        Some((username, password))
    }

    /// `container.cpu_limit` in billionths of a core, as engines count; `None` = no limit.
    pub fn cpu_limit_nanos(&self) -> Option<u64> {
        let cores = self.get("container.cpu_limit")?.as_f64()?;
        // At most 1024 cores by the key's range, far from overflow.
        let nanos = (cores * 1e9).round() as u64;
        (nanos > 0).then_some(nanos)
    }

    /// `container.memory_limit_mb` in bytes.
    pub fn memory_limit_bytes(&self) -> u64 {
        self.integer("container.memory_limit_mb")
            .saturating_mul(MIB)
    }

    /// `container.pids_limit`
    pub fn pids_limit(&self) -> u64 {
        self.integer("container.pids_limit")
    }

    /// `container.timezone`; `None` = the image's own.
    pub fn timezone(&self) -> Option<String> {
        self.non_empty("container.timezone")
    }

    /// `container.network_subnet`; always present, since stored values are checked.
    pub fn network_subnet(&self) -> Option<Ipv4Cidr> {
        self.text("container.network_subnet").parse().ok()
    }

    /// `container.service_url`, without a slash at the end; `None` = the gateway of the agent network.
    pub fn service_url(&self) -> Option<String> {
        self.non_empty("container.service_url")
    }

    /// `container.capabilities`, without `CAP_`.
    pub fn capabilities(&self) -> Vec<String> {
        self.list("container.capabilities")
    }

    /// `container.capabilities` where agents run as their image's own user, or not.
    pub fn capabilities_for(&self, run_as_image: bool) -> Vec<String> {
        const KEY: &str = "container.capabilities";
        if run_as_image && !self.is_set(KEY) {
            return IMAGE_CAPABILITIES.iter().map(|&name| name.into()).collect();
        }
        self.capabilities()
    }

    /// `container.autostart`
    pub fn autostart(&self) -> bool {
        self.boolean("container.autostart")
    }

    /// `files.quota_mb` in bytes; `None` = no limit.
    pub fn quota_bytes(&self) -> Option<u64> {
        Some(self.integer("files.quota_mb").saturating_mul(MIB)).filter(|bytes| *bytes > 0)
    }

    /// `log.level`
    pub fn log_level(&self) -> String {
        self.text("log.level")
    }

    /// `events.retention`; `None` = for ever.
    pub fn events_retention(&self) -> Option<Duration> {
        self.duration("events.retention")
    }

    /// `audit.retention`; `None` = for ever.
    pub fn audit_retention(&self) -> Option<Duration> {
        self.duration("audit.retention")
    }

    /// `archive.retention`; `None` = for ever.
    pub fn archive_retention(&self) -> Option<Duration> {
        self.duration("archive.retention")
    }
}
