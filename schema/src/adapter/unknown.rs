//! Names in the global settings that an adapter says nothing of.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Adapter;
use super::path::{SettingPath, get};
use super::ui_schema::Storage;

/// Names that one warning lists.
const NAMED: usize = 10;

impl Adapter {
    /// Warns of what a change of `agent` and `security` adds that no file of the package names: of groups of settings, and of
    /// channels. They go to the agents as they are, which is right for what only the agent knows, and wrong for a slip.
    /// Each sentence names keys, never values.
    pub fn warn_of_unknown(
        &self,
        (agent_before, security_before): &(Value, Value),
        (agent, security): &(Value, Value),
    ) -> Vec<String> {
        let schemas = || self.config_schemas.values();
        let channels = schemas().map(|schema| schema.channels.channels.clone());
        let security_channels = schemas().map(|schema| schema.security_channels.channels.clone());
        let agent = Document {
            key: "agent",
            before: agent_before,
            after: agent,
            known: self.known_paths(Storage::Config),
            channels: channels.collect(),
        };
        let security = Document {
            key: "security",
            before: security_before,
            after: security,
            known: self.known_paths(Storage::Security),
            channels: security_channels.collect(),
        };
        // A package without schemas knows no settings at all.
        if self.config_schemas.is_empty() {
            return Vec::new();
        }
        let types = schemas().flat_map(|schema| schema.channel_types.iter().map(String::as_str));
        let types: BTreeSet<&str> = types.collect();
        let unknown = [agent, security].map(|document| document.list_unknown(&types));
        let unknown: Vec<String> = unknown.into_iter().flatten().collect();
        match unknown.as_slice() {
            [] => Vec::new(),
            names => {
                let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>();
                let more = match names.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                vec![format!(
                    "the active adapter does not know {}{more}: written to the agents' files as given; check the spelling",
                    shown.join(", ")
                )]
            }
        }
    }

    /// The places in one of the agent's files that the package names.
    fn known_paths(&self, storage: Storage) -> Vec<SettingPath> {
        let agent = &self.index.agent;
        let mut paths = Vec::new();
        for schema in self.config_schemas.values() {
            paths.extend(match storage {
                Storage::Config => vec![
                    Some(schema.channels.channels.clone()),
                    schema.models_path.clone(),
                    schema.default_model_path.clone(),
                ],
                Storage::Security => vec![
                    Some(schema.security_channels.channels.clone()),
                    schema.security_models_path.clone(),
                ],
            });
        }
        let mut paths: Vec<SettingPath> = paths.into_iter().flatten().collect();
        match storage {
            Storage::Config => {
                paths.push(SettingPath::dotted(&agent.mcp_servers_path));
                paths.extend(agent.workspace_setting.as_deref().map(SettingPath::dotted));
            }
            Storage::Security => paths.push(SettingPath::dotted(&agent.cookies_path)),
        }
        let pages = self.ui_schemas.values().flat_map(|schema| &schema.pages);
        let sections = pages.flat_map(|page| &page.sections);
        let fields = sections.flat_map(|section| &section.fields);
        paths.extend(
            fields
                .filter(|field| field.storage == storage)
                .map(|field| field.path.clone()),
        );
        paths
    }
}

/// The settings for one of the agent's files.
struct Document<'a> {
    key: &'static str,
    before: &'a Value,
    after: &'a Value,
    known: Vec<SettingPath>,
    channels: Vec<SettingPath>,
}

impl Document<'_> {
    /// Lists names that are new in it and not known, as dotted keys.
    fn list_unknown(&self, types: &BTreeSet<&str>) -> Vec<String> {
        let mut unknown = Vec::new();
        // The version says how the rest is read.
        let firsts = self.known.iter().filter_map(|path| path.names().first());
        let firsts: BTreeSet<&str> = firsts.map(String::as_str).chain(["version"]).collect();
        for name in added(self.before, self.after) {
            if !firsts.contains(name) {
                unknown.push(format!("{}.{name}", self.key));
            }
        }
        let places: BTreeSet<&SettingPath> = self.channels.iter().collect();
        for place in places {
            let (Some(after), before) = (
                get(self.after, place.names()),
                get(self.before, place.names()),
            ) else {
                continue;
            };
            for name in added(before.unwrap_or(&Value::Null), after) {
                // A channel may have a name of its own beside its type.
                let its_type = after[name]["type"].as_str().unwrap_or(name);
                if !types.contains(its_type) {
                    unknown.push(format!("{}.{}.{name}", self.key, place.to_dotted()));
                }
            }
        }
        unknown
    }
}

/// Names of an object that another one does not have.
fn added<'a>(before: &'a Value, after: &'a Value) -> impl Iterator<Item = &'a str> {
    let names = after
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str());
    names.filter(|name| before.get(name).is_none())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_that_no_file_of_the_package_has_are_warned_of_once() {
        let adapter = Adapter::builtin("picoclaw").unwrap().unwrap();
        let none = (json!({}), json!({}));
        let warn = |before: &(Value, Value), after: &(Value, Value)| {
            adapter.warn_of_unknown(before, after).join("\n")
        };
        let known = (
            json!({"version": 3, "model_list": [], "tools": {"mcp": {}}}),
            json!({}),
        );
        assert_eq!(warn(&none, &known), "");
        let wrong = (
            json!({"model_lst": [], "tools": {"mcp": {}}}),
            json!({"jar": {}}),
        );
        let text = warn(&none, &wrong);
        assert!(
            text.contains("agent.model_lst")
                && text.contains("security.jar")
                && !text.contains("tools"),
            "{text}"
        );
        // Names from before the change were warned of then.
        assert_eq!(warn(&wrong, &wrong), "");
    }
}
