//! Providers of models: what an administrator may choose, and what is written for a choice.

mod template;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

use self::template::{ADDRESS, KEY, MODEL, NAME, collect_texts, fill_map, is_template};
use super::config_schema::ConfigSchema;
use super::path::{SettingPath, get, get_mut, put, take};
use super::{Adapter, Problem};

/// The protocol that a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ModelProtocol {
    /// That of OpenAI: `/models` and `/chat/completions` below the address.
    Openai,
    /// That of Anthropic: `/v1/messages`.
    Anthropic,
}

/// Need of a provider for a key.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum KeyNeed {
    /// It answers nothing without one.
    #[default]
    Required,
    /// It may take one.
    Optional,
    /// It takes none.
    None,
}

/// A provider of models, as one configuration version writes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Provider {
    /// Its name, which is also that of the entry in the list of models.
    pub id: String,
    /// Its display name.
    pub title: String,
    /// The protocol.
    pub protocol: ModelProtocol,
    /// Its usual address; `None`: there is none.
    pub address: Option<String>,
    /// Its need for a key.
    #[serde(default)]
    pub key: KeyNeed,
    /// Template of its entry in the list of models.
    entry: Map<String, Value>,
    /// Template of its secrets, by name of the entry.
    #[serde(default)]
    secret: Map<String, Value>,
}

/// The model that agents use by default. It may hold a key, so it cannot be printed.
pub struct ChosenModel {
    /// The provider; `None` when the entry was written by hand.
    pub provider: Option<String>,
    /// Where it is reached; `None` when the entry does not say so as the provider's template does.
    pub address: Option<String>,
    /// The provider's name of the model; of an entry written by hand, that of the entry.
    pub model: String,
    /// The key.
    pub key: Option<SecretString>,
}

/// A model to be used by default.
#[derive(Clone, Copy)]
pub struct ModelChoice<'a> {
    /// Its provider.
    pub provider: &'a Provider,
    /// Where it is reached.
    pub address: &'a str,
    /// The provider's name of the model.
    pub model: &'a str,
    /// The key.
    pub key: Option<&'a SecretString>,
}

/// Reads the address of a provider. The error is the rest of the sentence "address …".
///
/// # Errors
/// For anything but `http://` or `https://` with a host, and perhaps port and path.
pub fn parse_model_address(text: &str) -> Result<Url, &'static str> {
    const RULE: &str = "must be http:// or https:// with a host, and perhaps port and path";
    const LONGEST: usize = 500;
    if text.len() > LONGEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("must be at most 500 visible ASCII characters");
    }
    let url = Url::parse(text).map_err(|_| RULE)?;
    let bare = url.username().is_empty() && url.password().is_none();
    let plain = bare && url.query().is_none() && url.fragment().is_none();
    match matches!(url.scheme(), "http" | "https") && url.has_host() && plain {
        true => Ok(url),
        false => Err(RULE),
    }
}

/// Checks the name of a model. The error is the rest of the sentence "model …".
///
/// # Errors
/// For a name that agents refuse.
pub fn check_model_name(text: &str) -> Result<(), &'static str> {
    let fits = (1..=256).contains(&text.len())
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
        && !text.starts_with('/')
        && !text.contains("//");
    match fits {
        true => Ok(()),
        false => {
            Err("must be 1 to 256 bytes without spaces, without / in front and without // in it")
        }
    }
}

impl Provider {
    /// The member of an entry that names it.
    fn name_member(&self) -> Option<&str> {
        let mut members = self.entry.iter();
        members
            .find(|(_, value)| value.as_str() == Some(NAME))
            .map(|(name, _)| name.as_str())
    }

    /// The value in place of a placeholder.
    fn find_in(&self, entry: &Value, placeholder: &str) -> Option<String> {
        self.entry.iter().find_map(|(name, template)| {
            let (before, after) = template.as_str()?.split_once(placeholder)?;
            let text = entry.get(name)?.as_str()?;
            let inside = text.strip_prefix(before)?.strip_suffix(after)?;
            Some(inside.to_owned())
        })
    }

    /// Problems of the templates, each with its place in the provider.
    fn problems(&self) -> Vec<(&'static str, &'static str)> {
        let mut problems = Vec::new();
        let texts = |map: &Map<String, Value>| {
            let mut texts = Vec::new();
            map.values()
                .for_each(|value| collect_texts(value, &mut texts));
            texts
        };
        let (entry, secret) = (texts(&self.entry), texts(&self.secret));
        if entry.iter().chain(&secret).any(|text| !is_template(text)) {
            let message = "may only use ${name}, ${model}, ${address} and ${key}";
            problems.push(("/entry", message));
        }
        if self.name_member().is_none() {
            problems.push(("/entry", "needs a member that is ${name}"));
        }
        let uses = |texts: &[String], name: &str| texts.iter().any(|text| text.contains(name));
        if !uses(&entry, MODEL) || !uses(&entry, ADDRESS) {
            problems.push(("/entry", "needs ${model} and ${address}"));
        }
        if uses(&entry, KEY) {
            problems.push(("/entry", "must not hold the key, which belongs in secret"));
        }
        if uses(&secret, KEY) != (self.key != KeyNeed::None) {
            let message = "must use ${key}, unless the provider takes no key";
            problems.push(("/secret", message));
        }
        if self.id.contains('$') || self.id.contains(':') {
            problems.push(("/id", "must not contain $ or :"));
        }
        problems
    }
}

/// Checks the providers of a config schema.
pub(super) fn check_providers(file: &str, schema: &ConfigSchema, problems: &mut Vec<Problem>) {
    let mut problem = |pointer: &str, message: &str| {
        problems.push(Problem::new(file, &format!("/providers{pointer}"), message));
    };
    if !schema.providers.is_empty()
        && (schema.models_path.is_none() || schema.default_model_path.is_none())
    {
        problem("", "needs models_path and default_model_path");
    }
    for (at, provider) in schema.providers.iter().enumerate() {
        for (place, message) in provider.problems() {
            problem(&format!("/{at}{place}"), message);
        }
        let address = provider.address.as_deref().map(parse_model_address);
        if let Some(Err(message)) = address {
            problem(&format!("/{at}/address"), message);
        }
        let before = schema.providers.iter().take(at);
        if before.into_iter().any(|other| other.id == provider.id) {
            problem(&format!("/{at}/id"), "is declared twice");
        }
    }
}

impl Adapter {
    /// The providers that an administrator may choose from for the agent in an image with this tag.
    pub fn providers(&self, tag: &str) -> &[Provider] {
        let version = self.resolve_agent_version(tag).config_version;
        let schema = self.config_schemas.get(&version);
        schema.map_or(&[], |schema| &schema.providers)
    }

    /// Returns true when the global settings name a model for the agent in an image with this tag. An adapter that does not say where a
    /// model is named counts as having one.
    pub fn has_model(&self, tag: &str, agent: &Value) -> bool {
        let version = self.resolve_agent_version(tag).config_version;
        let schema = self.config_schemas.get(&version);
        let Some(schema) = schema.filter(|schema| schema.default_model_path.is_some()) else {
            return true;
        };
        let Ok(global) = self.migrate_global(agent, &Value::Null, version) else {
            return false;
        };
        let Some(name) = default_model(schema, &global.config) else {
            return false;
        };
        let Some(models) = &schema.models_path else {
            return true;
        };
        match get(&global.config, models.names()) {
            Some(Value::Array(entries)) => entries.iter().any(|entry| {
                let mut members = entry.as_object().into_iter().flatten();
                let named = members.any(|(_, value)| value.as_str() == Some(name));
                named && entry.get("enabled") != Some(&Value::Bool(false))
            }),
            Some(Value::Object(entries)) => entries.contains_key(name),
            _ => false,
        }
    }

    /// The model that agents in images with this tag use by default, by the global settings.
    pub fn chosen_model(&self, tag: &str, agent: &Value, security: &Value) -> Option<ChosenModel> {
        let version = self.resolve_agent_version(tag).config_version;
        let schema = self.config_schemas.get(&version)?;
        let global = self.migrate_global(agent, security, version).ok()?;
        let name = default_model(schema, &global.config)?;
        let secrets = schema.security_models_path.as_ref();
        let secret = secrets.and_then(|path| get(&global.security, path.join(name).names()));
        let mut by_hand = ChosenModel {
            provider: None,
            address: None,
            model: name.to_owned(),
            key: None,
        };
        let provider = schema.providers.iter().find(|provider| provider.id == name);
        let entry = provider.and_then(|provider| find_entry(schema, &global.config, provider));
        if let (Some(provider), Some(entry)) = (provider, entry)
            && let Some(model) = provider.find_in(entry, MODEL)
        {
            by_hand.provider = Some(provider.id.clone());
            by_hand.address = provider.find_in(entry, ADDRESS);
            by_hand.model = model;
        }
        let mut texts = Vec::new();
        if let Some(secret) = secret {
            collect_texts(secret, &mut texts);
        }
        by_hand.key = texts
            .into_iter()
            .find(|text| !text.is_empty())
            .map(SecretString::from);
        Some(by_hand)
    }

    /// Writes a choice into the global settings, in place of what another choice wrote; entries written by hand stay.
    ///
    /// # Errors
    /// A sentence that names the setting in the way.
    pub fn set_model(
        &self,
        tag: &str,
        agent: &mut Value,
        security: &mut Value,
        choice: &ModelChoice<'_>,
    ) -> Result<(), String> {
        let version = self.global_version(tag, agent);
        let schema = self.config_schemas.get(&version);
        let missing = || "the adapter does not say where models are written".to_owned();
        let schema = schema.ok_or_else(missing)?;
        let models = schema.models_path.as_ref().ok_or_else(missing)?;
        let default = schema.default_model_path.as_ref().ok_or_else(missing)?;
        let secrets = schema.security_models_path.as_ref().unwrap_or(models);
        let id = choice.provider.id.as_str();
        let key = choice.key.map(ExposeSecret::expose_secret);
        let values = [
            (NAME, id),
            (MODEL, choice.model),
            (ADDRESS, choice.address),
            (KEY, key.unwrap_or_default()),
        ];
        let in_the_way = |file: &str, path: &SettingPath| {
            format!(
                "{file} has something else at {}; remove it first",
                path.to_dotted()
            )
        };
        for (file, document) in [("agent", &mut *agent), ("security", &mut *security)] {
            if document.is_null() {
                *document = Value::Object(Map::new());
            }
            if !document.is_object() {
                return Err(format!("{file} is not an object; remove it first"));
            }
        }
        let mut entries = match get(agent, models.names()) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(entries)) => entries.clone(),
            Some(_) => return Err(in_the_way("agent", models)),
        };
        entries.retain(|entry| {
            let mut providers = schema.providers.iter();
            !providers.any(|provider| is_entry_of(entry, provider))
        });
        entries.push(Value::Object(fill_map(&choice.provider.entry, &values)));
        let written = put(agent, models.names(), Value::Array(entries));
        written.map_err(|_| in_the_way("agent", models))?;
        let written = put(agent, default.names(), Value::from(id));
        written.map_err(|_| in_the_way("agent", default))?;
        match get_mut(security, secrets.names()) {
            None | Some(Value::Null) => {}
            Some(Value::Object(members)) => {
                // Agents also write a name with its number.
                members.retain(|name, _| {
                    let plain = name.split(':').next().unwrap_or_default();
                    !schema.providers.iter().any(|provider| provider.id == plain)
                });
                if members.is_empty() {
                    take(security, secrets.names());
                }
            }
            Some(_) => return Err(in_the_way("security", secrets)),
        }
        if key.is_some() {
            let secret = Value::Object(fill_map(&choice.provider.secret, &values));
            let written = put(security, secrets.join(id).names(), secret);
            written.map_err(|_| in_the_way("security", secrets))?;
        }
        Ok(())
    }

    /// The configuration version in whose places the global settings are written.
    fn global_version(&self, tag: &str, agent: &Value) -> u32 {
        let mark = self.version_mark();
        let marked = mark.and_then(|mark| get(agent, mark.names())?.as_u64());
        marked
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| self.config_schemas.contains_key(number))
            .unwrap_or(self.resolve_agent_version(tag).config_version)
    }
}

/// The name of the model that is used by default.
fn default_model<'a>(schema: &ConfigSchema, config: &'a Value) -> Option<&'a str> {
    let path = schema.default_model_path.as_ref()?;
    let name = get(config, path.names())?.as_str()?;
    (!name.is_empty()).then_some(name)
}

fn is_entry_of(entry: &Value, provider: &Provider) -> bool {
    let name = provider.name_member().and_then(|member| entry.get(member));
    name.and_then(Value::as_str) == Some(&provider.id)
}

fn find_entry<'a>(
    schema: &ConfigSchema,
    config: &'a Value,
    provider: &Provider,
) -> Option<&'a Value> {
    let models = get(config, schema.models_path.as_ref()?.names())?;
    let mut entries = models.as_array()?.iter();
    entries.find(|entry| is_entry_of(entry, provider))
}

#[cfg(test)]
mod tests;
