//! The documents that `index.json` names, and what they must keep to together.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Problem;
use super::chat::check_chat;
use super::config_schema::{self, ConfigSchema};
use super::migration::{self, Migration, Surroundings};
use super::model::Index;
use super::package::INDEX;
use super::ui_schema::{self, UiSchema};

/// What the documents of a package say.
pub(super) struct Settings {
    pub(super) config_schemas: BTreeMap<u32, ConfigSchema>,
    pub(super) ui_schemas: BTreeMap<u32, UiSchema>,
    pub(super) migrations: Vec<Migration>,
}

/// Reads every document that the index names and compares them with it. What it returns is
/// complete only when it reported no problem.
pub(super) fn read(
    index: &Index,
    documents: &BTreeMap<String, Value>,
    problems: &mut Vec<Problem>,
) -> Settings {
    let mut config_schemas = BTreeMap::new();
    for (version, path) in &index.config_schemas {
        let schema = documents
            .get(path)
            .and_then(|document| config_schema::read(path, document, problems));
        if let Some(schema) = schema {
            check_chat(path, &schema, &index.agent, problems);
            config_schemas.insert(*version, schema);
        }
    }
    let mut ui_schemas = BTreeMap::new();
    for (version, path) in &index.ui_schemas {
        let Some(config_schema) = config_schemas.get(version) else {
            // When it is there but wrong, that was said already.
            if !index.config_schemas.contains_key(version) {
                problems.push(Problem::new(
                    INDEX,
                    &format!("/ui_schemas/{version}"),
                    "has no entry in config_schemas",
                ));
            }
            continue;
        };
        let schema = documents.get(path).and_then(|document| {
            ui_schema::read(path, document, &index.agent, config_schema, problems)
        });
        if let Some(schema) = schema {
            ui_schemas.insert(*version, schema);
        }
    }
    check_coverage(index, problems);
    check_channels(index, documents, &config_schemas, problems);
    check_chats(documents, &config_schemas, problems);
    check_edges(index, problems);
    let around = Surroundings {
        config_schemas: &config_schemas,
        ui_schemas: &ui_schemas,
    };
    let migrations = index
        .migrations
        .iter()
        .filter_map(|named| {
            let document = documents.get(&named.path)?;
            migration::read(&named.path, document, &around, problems)
        })
        .collect();
    Settings {
        config_schemas,
        ui_schemas,
        migrations,
    }
}

/// Schemas are there for every configuration version that an agent version has, or for none: then
/// the agent gets global settings, cookies and MCP servers, and has no forms.
fn check_coverage(index: &Index, problems: &mut Vec<Problem>) {
    let used: BTreeSet<u32> = index
        .agent_versions
        .iter()
        .map(|version| version.config_version)
        .collect();
    if index.config_schemas.is_empty() && index.ui_schemas.is_empty() {
        return;
    }
    for (name, named) in [
        ("config_schemas", &index.config_schemas),
        ("ui_schemas", &index.ui_schemas),
    ] {
        for version in used.iter().filter(|version| !named.contains_key(version)) {
            problems.push(Problem::new(
                INDEX,
                &format!("/{name}/{version}"),
                "is missing, but agent_versions name this configuration version",
            ));
        }
        for version in named.keys() {
            if *version > index.latest_supported_config_version {
                problems.push(Problem::new(
                    INDEX,
                    &format!("/{name}/{version}"),
                    "is newer than latest_supported_config_version",
                ));
            }
        }
    }
}

/// Channel types that the index names exist in the schemas.
fn check_channels(
    index: &Index,
    documents: &BTreeMap<String, Value>,
    config_schemas: &BTreeMap<u32, ConfigSchema>,
    problems: &mut Vec<Problem>,
) {
    if config_schemas.is_empty() {
        return;
    }
    for (at, version) in written_versions(documents).enumerate() {
        let schema = schema_of(version, config_schemas);
        let types = version.get("channel_types").and_then(Value::as_array);
        let (Some(schema), Some(types)) = (schema, types) else {
            continue;
        };
        for (number, name) in types.iter().enumerate() {
            if name
                .as_str()
                .is_some_and(|name| !schema.channel_types.contains(name))
            {
                problems.push(Problem::new(
                    INDEX,
                    &format!("/agent_versions/{at}/channel_types/{number}"),
                    format!(
                        "is not one of the channel_types of configuration version {}",
                        schema.config_version
                    ),
                ));
            }
        }
    }
    let explicit = documents
        .get(INDEX)
        .and_then(|index| index.pointer("/agent/chatapp_section"))
        .is_some_and(|section| !section.is_null());
    let section = &index.agent.chatapp_section;
    let known = config_schemas
        .values()
        .any(|schema| schema.channel_types.contains(section));
    // The default names a channel that an agent need not have.
    if explicit && !known {
        problems.push(Problem::new(
            INDEX,
            "/agent/chatapp_section",
            "is not a channel type of any configuration version",
        ));
    }
}

/// A version that has a chat has it in its config schema, and knows its channel.
fn check_chats(
    documents: &BTreeMap<String, Value>,
    config_schemas: &BTreeMap<u32, ConfigSchema>,
    problems: &mut Vec<Problem>,
) {
    if config_schemas.is_empty() {
        return;
    }
    for (at, version) in written_versions(documents).enumerate() {
        if version.get("chat").is_none_or(Value::is_null) {
            continue;
        }
        let types = version.get("channel_types").and_then(Value::as_array);
        let knows = |channel: &String| {
            types.is_some_and(|types| types.iter().any(|name| name.as_str() == Some(channel)))
        };
        // One that is missing or wrong was reported already.
        let Some(schema) = schema_of(version, config_schemas) else {
            continue;
        };
        let message = match schema.chat.as_ref().map(|chat| chat.channel.as_ref()) {
            None => "needs chat in the config schema of its configuration version",
            Some(Some(channel)) if !knows(channel) => {
                "needs the channel of the chat in channel_types"
            }
            Some(_) => continue,
        };
        let pointer = format!("/agent_versions/{at}/chat");
        problems.push(Problem::new(INDEX, &pointer, message));
    }
}

/// The agent versions as they are written: the typed ones are sorted.
fn written_versions(documents: &BTreeMap<String, Value>) -> impl Iterator<Item = &Value> {
    let index = documents.get(INDEX);
    let versions = index.and_then(|index| index.get("agent_versions")?.as_array());
    versions.into_iter().flatten()
}

/// The config schema of a written agent version.
fn schema_of<'a>(
    version: &Value,
    config_schemas: &'a BTreeMap<u32, ConfigSchema>,
) -> Option<&'a ConfigSchema> {
    let number = version.get("config_version")?.as_u64()?;
    config_schemas.get(&u32::try_from(number).ok()?)
}

/// Migrations connect versions that the package declares.
fn check_edges(index: &Index, problems: &mut Vec<Problem>) {
    let declared: BTreeSet<u32> = index
        .agent_versions
        .iter()
        .map(|version| version.config_version)
        .chain(index.config_schemas.keys().copied())
        .collect();
    for (at, edge) in index.migrations.iter().enumerate() {
        for (name, version) in [
            ("from_config", edge.from_config),
            ("to_config", edge.to_config),
        ] {
            if !declared.contains(&version) {
                problems.push(Problem::new(
                    INDEX,
                    &format!("/migrations/{at}/{name}"),
                    "is not a configuration version of this package",
                ));
            }
        }
    }
}
