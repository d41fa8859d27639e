//! The configuration in effect: stored values where there are any, defaults elsewhere.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::keys::{self, container, find, image};
use super::setting::{KeyDef, Setting};
use super::{Changes, Problem, ProblemCode, masking};
use crate::adapter::SecretPaths;
use crate::image::ImageReference;
use crate::live::RegistryCredentials;

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
    strum::VariantNames,
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

/// What agents reach of the host that the engine runs on.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Default,
    strum::Display,
    strum::EnumString,
    strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum HostAccess {
    /// The agent listener, and nothing else.
    #[default]
    Service,
    /// Every service that is bound to all addresses.
    Open,
    /// The agent listener, and nothing else; where that cannot be ensured, no agent is started.
    Enforce,
}

/// The least severe level that is logged.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Default,
    strum::Display,
    strum::EnumString,
    strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum LogLevel {
    /// A person must look.
    Error,
    /// Something is tried again.
    Warn,
    /// Something has changed.
    #[default]
    Info,
    /// Nothing was to be done, too.
    Debug,
    /// Everything.
    Trace,
}

/// When an image is pulled.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Default,
    strum::Display,
    strum::EnumString,
    strum::VariantNames,
)]
#[strum(serialize_all = "snake_case")]
pub enum PullPolicy {
    /// When the engine does not have it.
    #[default]
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
                    &masking::mask(def, value.clone(), &self.secret_paths).to_string(),
                );
            }
        }
        map.finish()
    }
}

impl Config {
    /// The keys without which the authentication mode cannot work, and that have no value.
    pub fn missing_for_mode(&self) -> Vec<Problem> {
        let mode = self.get(&keys::web::AUTH_MODE);
        let needed: &[&Setting<Option<String>>] = match mode {
            AuthMode::Local => &[],
            AuthMode::Oidc => &[
                &keys::oidc::PROVIDER_URL,
                &keys::oidc::CLIENT_ID,
                &keys::oidc::REDIRECT_URL,
            ],
            AuthMode::Ldap => &[&keys::ldap::HOST, &keys::ldap::BASE_DN],
        };
        let missing = needed.iter().filter(|setting| self.get(setting).is_none());
        let problem = |setting: &&Setting<_>| {
            let key = setting.row.key;
            let message = format!("{key} must be set while web.auth_mode is {mode}");
            Problem::new(key, ProblemCode::InvalidValue, message)
        };
        missing.map(problem).collect()
    }

    /// The directory server; `None` when there is none.
    pub fn ldap_url(&self) -> Option<url::Url> {
        super::host::ldap_url(&self.get(&super::keys::ldap::HOST)?)
    }

    /// Makes the view from stored values (secrets opened). A stored value that is unknown or no longer
    /// valid does not count, and of a list only such entries; [`Config::problems`] names them.
    pub fn from_stored(stored: BTreeMap<String, Value>) -> Self {
        let mut config = Self::default();
        for (key, value) in stored {
            match find(&key) {
                None => config.problems.push(Problem::new(
                    &key,
                    ProblemCode::UnknownKey,
                    format!("the stored key {key} is not known to this release"),
                )),
                Some(def) => {
                    let (value, problems) = def.check_stored(&value);
                    config.problems.extend(problems);
                    if let Some(value) = value {
                        config.stored.insert(def.key, value);
                    }
                }
            }
        }
        config
    }

    /// Sets whether the active adapter runs agents as their image's own user, which decides the
    /// default of `container.capabilities`.
    #[must_use]
    pub fn with_run_as_image(mut self, run_as_image: bool) -> Self {
        self.run_as_image = run_as_image;
        self
    }

    /// Sets which places of `agent` the active adapter stores as secrets: they are masked in addition to those that
    /// names mark.
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

    /// Whether this key was set.
    pub fn is_set(&self, key: &str) -> bool {
        self.stored.contains_key(key)
    }

    /// The value in effect.
    pub fn get<T>(&self, setting: &Setting<T>) -> T {
        (setting.read)(self.value(&setting.row))
    }

    pub(super) fn value(&self, def: &KeyDef) -> Value {
        match self.stored.get(def.key) {
            Some(value) => value.clone(),
            None if self.run_as_image && def.key == container::CAPABILITIES.row.key => {
                json!(IMAGE_CAPABILITIES)
            }
            None => def.default_value(),
        }
    }

    /// `image.name` and `image.tag` as one reference: the image of new users.
    pub fn image_reference(&self) -> String {
        let (name, tag) = (self.get(&image::NAME), self.get(&image::TAG));
        format!("{name}:{tag}")
    }

    /// `image.registry_username` and `image.registry_password` for a request about `image`; `None` = anonymous. They
    /// belong to the registry of `image.name` and are sent to no other.
    pub fn registry_credentials_for(&self, image: &ImageReference) -> Option<RegistryCredentials> {
        let managed: ImageReference = self.get(&image::NAME).parse().ok()?;
        if !managed.registry().eq_ignore_ascii_case(image.registry()) {
            return None;
        }
        Some(RegistryCredentials {
            username: self.get(&image::REGISTRY_USERNAME)?,
            password: self.get(&image::REGISTRY_PASSWORD).unwrap_or_default(),
        })
    }

    /// `container.capabilities` where agents run as their image's user, or not.
    pub fn capabilities_for(&self, run_as_image: bool) -> Vec<String> {
        if run_as_image && !self.is_set(container::CAPABILITIES.row.key) {
            return IMAGE_CAPABILITIES.iter().map(|&name| name.into()).collect();
        }
        self.get(&container::CAPABILITIES)
    }

    /// `container.cpu_limit` in billionths of a core, as engines count; `None` = no limit.
    pub fn cpu_limit_nanos(&self) -> Option<u64> {
        // At most 1024 cores by the key's range, far from overflow.
        let nanos = (self.get(&container::CPU_LIMIT) * 1e9).round() as u64;
        (nanos > 0).then_some(nanos)
    }

    /// `container.memory_limit_mb` in bytes.
    pub fn memory_limit_bytes(&self) -> u64 {
        self.get(&container::MEMORY_LIMIT_MB).saturating_mul(MIB)
    }
}
