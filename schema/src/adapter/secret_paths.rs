//! Which of the global settings the agent keeps in its file of secrets.

use std::collections::{BTreeMap, BTreeSet};

use super::config_schema::ConfigSchema;
use super::model::Agent;
use super::path::SettingPath;
use super::ui_schema::{Storage, UiSchema};

/// Places that an adapter stores as secrets, of all its configuration versions together: global settings may be of
/// any. Names are compared without case, as agents read them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretPaths {
    secret: BTreeSet<Vec<String>>,
    /// Places in secret ones, or the same, that are no secrets.
    plain: BTreeSet<Vec<String>>,
    /// Objects whose members are channels. A channel may have any name, so what is secret in one of them is secret
    /// in all.
    channels: BTreeSet<Vec<String>>,
}

const ANY: &str = "*";

impl SecretPaths {
    pub(super) fn of(
        agent: &Agent,
        config_schemas: &BTreeMap<u32, ConfigSchema>,
        ui_schemas: &BTreeMap<u32, UiSchema>,
    ) -> Self {
        let mut paths = Self::default();
        for schema in config_schemas.values() {
            for place in [&schema.channels, &schema.security_channels] {
                paths.channels.insert(folded(&place.channels));
            }
            if let Some(models) = &schema.security_models_path {
                paths.secret.insert(folded(models));
            }
        }
        for chat in config_schemas
            .values()
            .filter_map(|schema| schema.chat.as_ref())
        {
            let token = folded(&chat.token);
            paths.secret.extend(paths.in_any_channel(&token));
            paths.secret.insert(token);
        }
        let cookies = SettingPath::dotted(&agent.cookies_path);
        paths.secret.insert(folded(&cookies));
        let pages = ui_schemas.values().flat_map(|schema| &schema.pages);
        let sections = pages.flat_map(|page| &page.sections);
        let fields: Vec<_> = sections.flat_map(|section| &section.fields).collect();
        for field in fields.iter().filter(|field| field.is_secret()) {
            let path = folded(&field.path);
            paths.secret.extend(paths.in_any_channel(&path));
            paths.secret.insert(path);
        }
        for field in fields.iter().filter(|field| !field.is_secret()) {
            let path = folded(&field.path);
            // Both files may have an object of the same name. Then it is taken for the secret one.
            if field.storage == Storage::Config && !paths.secret.contains(&path) {
                paths.plain.insert(path);
            }
        }
        // Except the models: the configuration has their list, the other file only their keys.
        for schema in config_schemas.values() {
            paths.plain.extend(schema.models_path.as_ref().map(folded));
        }
        paths
    }

    /// Whether what is at a place is secret; `None` when that is as around it.
    pub(crate) fn is_secret(&self, path: &[String]) -> Option<bool> {
        let path: Vec<String> = path.iter().map(|name| name.to_lowercase()).collect();
        if self.plain.contains(&path) {
            return Some(false);
        }
        let in_any = self.in_any_channel(&path);
        (self.secret.contains(&path) || in_any.iter().any(|path| self.secret.contains(path)))
            .then_some(true)
    }

    /// The same place in a channel of any name.
    fn in_any_channel(&self, path: &[String]) -> Vec<Vec<String>> {
        let inside = |channels: &&Vec<String>| {
            path.len() > channels.len() + 1 && path.starts_with(channels.as_slice())
        };
        let renamed = |channels: &Vec<String>| {
            let mut path = path.to_vec();
            if let Some(name) = path.get_mut(channels.len()) {
                ANY.clone_into(name);
            }
            path
        };
        self.channels.iter().filter(inside).map(renamed).collect()
    }
}

fn folded(path: &SettingPath) -> Vec<String> {
    path.names()
        .iter()
        .map(|name| name.to_lowercase())
        .collect()
}
