//! The documents that `index.json` names, and what they must keep to together.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Problem;
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
    // As they are written: the typed ones are sorted.
    let written = documents
        .get(INDEX)
        .and_then(|index| index.get("agent_versions"))
        .and_then(Value::as_array);
    for (at, version) in written.into_iter().flatten().enumerate() {
        let schema = version
            .get("config_version")
            .and_then(Value::as_u64)
            .and_then(|number| config_schemas.get(&u32::try_from(number).ok()?));
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
