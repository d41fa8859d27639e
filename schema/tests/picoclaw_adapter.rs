//! What the built-in PicoClaw adapter must say, beyond being a valid package.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use schema::adapter::Adapter;
use serde_json::Value;

fn picoclaw() -> Adapter {
    Adapter::builtin("picoclaw").unwrap().unwrap()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().unwrap().iter()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// The sections of a page of the form of a configuration version.
fn sections(adapter: &Adapter, config_version: u32, page: &str) -> Vec<Value> {
    let form = &adapter.documents[&adapter.index.ui_schemas[&config_version]];
    let page = items(&form["pages"]).find(|candidate| candidate["key"] == page);
    items(&page.unwrap()["sections"]).cloned().collect()
}

const CONFIG_VERSIONS: [u32; 3] = [1, 2, 3];

#[test]
fn every_config_version_has_a_schema_and_a_form_and_leads_to_the_next() {
    let index = picoclaw().index;
    for documents in [&index.config_schemas, &index.ui_schemas] {
        assert_eq!(
            documents.keys().copied().collect::<Vec<_>>(),
            CONFIG_VERSIONS
        );
    }
    let edges: Vec<_> = index
        .migrations
        .iter()
        .map(|migration| (migration.from_config, migration.to_config))
        .collect();
    assert_eq!(edges, [(1, 2), (2, 3)]);
}

#[test]
fn a_migration_ends_by_writing_the_new_version_into_the_file() {
    let adapter = picoclaw();
    for migration in &adapter.index.migrations {
        let actions = &adapter.documents[&migration.path]["actions"];
        let last = items(actions).last().unwrap();
        // A file without it counts as older than version 1 for the agent.
        assert_eq!(
            (text(&last["op"]), text(&last["path"])),
            ("set", "version"),
            "{}",
            migration.path
        );
        assert_eq!(last["value"], migration.to_config);
    }
}

#[test]
fn the_channels_of_a_config_version_are_those_of_its_agent_versions_and_each_has_a_form() {
    let adapter = picoclaw();
    for config_version in CONFIG_VERSIONS {
        let of_agents: BTreeSet<&str> = adapter
            .index
            .agent_versions
            .iter()
            .filter(|version| version.config_version == config_version)
            .flat_map(|version| version.channel_types.iter().map(String::as_str))
            .collect();
        let schema = &adapter.documents[&adapter.index.config_schemas[&config_version]];
        let of_schema: BTreeSet<&str> = items(&schema["channel_types"]).map(text).collect();
        let sections = sections(&adapter, config_version, "channels");
        let of_form: BTreeSet<&str> = sections.iter().map(|s| text(&s["key"])).collect();
        assert_eq!(of_agents, of_schema);
        assert_eq!(of_agents, of_form);
        assert_eq!(sections.len(), of_form.len(), "no section twice");
    }
}

#[test]
fn l43_a_channels_fields_lie_in_its_own_entry_and_none_shares_its_place_with_another() {
    let adapter = picoclaw();
    for config_version in CONFIG_VERSIONS {
        let schema = &adapter.documents[&adapter.index.config_schemas[&config_version]];
        let channels = text(&schema["channels_path"]);
        assert_eq!(schema["security"]["channels_path"], channels);
        let mut places = BTreeSet::new();
        for section in sections(&adapter, config_version, "channels") {
            let entry = format!("{channels}.{}.", text(&section["key"]));
            let mut keys = BTreeSet::new();
            for field in items(&section["fields"]) {
                let (storage, path) = (text(&field["storage"]), text(&field["path"]));
                assert!(path.starts_with(&entry), "{path} is in {entry}");
                assert!(places.insert((storage.to_owned(), path.to_owned())));
                assert!(keys.insert(text(&field["key"]).to_owned()), "{path}");
            }
            assert!(keys.contains("enabled"), "{entry}");
        }
    }
}

#[test]
fn exactly_the_secret_fields_are_in_the_security_file() {
    let adapter = picoclaw();
    for config_version in CONFIG_VERSIONS {
        for page in ["models", "channels"] {
            for section in sections(&adapter, config_version, page) {
                for field in items(&section["fields"]) {
                    let secret = field["secret"] == true;
                    assert_eq!(field["storage"] == "security", secret, "{field}");
                    assert!(secret || field["type"] != "password", "{field}");
                    assert!(!secret || field["default"].is_null(), "{field}");
                }
            }
        }
    }
}

#[test]
fn the_chat_app_channel_takes_a_client_id_and_a_client_secret_in_every_version() {
    let adapter = picoclaw();
    for config_version in CONFIG_VERSIONS {
        let sections = sections(&adapter, config_version, "channels");
        let section = sections
            .iter()
            .find(|section| section["key"] == adapter.index.agent.chatapp_section.as_str())
            .unwrap();
        for (key, storage) in [("client_id", "config"), ("client_secret", "security")] {
            let field = items(&section["fields"]).find(|field| field["key"] == key);
            let field = field.unwrap();
            assert_eq!(field["storage"], storage);
            assert_eq!(field["required"], true);
        }
    }
}

#[test]
fn the_agent_is_told_to_use_its_mcp_servers_at_all() {
    // It does not by default, whatever servers its file names.
    let environment = &picoclaw().index.agent.environment;
    assert_eq!(environment["PICOCLAW_TOOLS_MCP_ENABLED"], "true");
}
