//! Checking `index.json`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Problem;
use super::model::{Agent, AgentVersion, AgentVersions, Index, MigrationFile, Readiness, RunAs};
use super::package::INDEX;
use super::reader::{Fields, Rule, escape};
use super::rules::{
    adapter_version, argument, home_path, is_variable, line, plain_path, run_as, setting_path,
    settings_file, url_path, version, word,
};
use super::version::{AdapterVersion, Version};
use crate::home::AGENT_DIR;

/// The form of `index.json` that this release reads.
const SCHEMA_VERSION: u32 = 1;
/// Variables that the service sets itself.
const RESERVED_VARIABLES: &[&str] = &["HOME", "AGENT_DEBUG"];

type Documents = BTreeMap<String, Value>;

/// Reads the index. `None` only together with problems.
pub(super) fn read(documents: &Documents, problems: &mut Vec<Problem>) -> Option<Index> {
    let Some(index) = documents.get(INDEX) else {
        // When it is there but no JSON, that was said already.
        if !problems.iter().any(|problem| problem.file == INDEX) {
            problems.push(Problem::new(INDEX, "", "is missing"));
        }
        return None;
    };
    let mut fields = Fields::of(index, INDEX, String::new(), problems)?;
    match fields.required_number("adapter_schema_version", problems) {
        Some(SCHEMA_VERSION) | None => {}
        Some(other) => {
            // Everything else may mean something different there.
            problems.push(Problem::new(
                INDEX,
                "/adapter_schema_version",
                format!("is {other}, but this release reads {SCHEMA_VERSION}"),
            ));
            return None;
        }
    }
    let adapter_version = fields
        .required_text("adapter_version", adapter_version, problems)
        .and_then(|text| text.parse::<AdapterVersion>().ok());
    let latest = fields.required_number("latest_supported_config_version", problems);
    let agent = match fields.get("agent") {
        Some(agent) => read_agent(agent, problems),
        None => {
            fields.problem("agent", "is missing", problems);
            None
        }
    };
    let agent_versions = read_versions(fields.get("agent_versions"), latest, problems);
    let untagged = fields
        .optional_text("untagged", version, problems)
        .and_then(|text| text.parse::<Version>().ok());
    if let (Some(untagged), Some(versions)) = (untagged, &agent_versions)
        && versions.find(untagged).is_none()
    {
        fields.problem("untagged", "must be one of agent_versions", problems);
    }
    let config_schemas = read_schemas(
        "config_schemas",
        fields.get("config_schemas"),
        documents,
        problems,
    );
    let ui_schemas = read_schemas("ui_schemas", fields.get("ui_schemas"), documents, problems);
    let migrations = read_migrations(fields.get("migrations"), documents, problems);
    fields.finish(problems);
    let agent_versions = agent_versions?;
    Some(Index {
        adapter_version: adapter_version?,
        latest_supported_config_version: latest?,
        agent: agent?,
        untagged: untagged.unwrap_or(agent_versions.newest().version),
        agent_versions,
        config_schemas,
        ui_schemas,
        migrations,
    })
}

fn read_agent(value: &Value, problems: &mut Vec<Problem>) -> Option<Agent> {
    let mut fields = Fields::of(value, INDEX, "/agent".to_owned(), problems)?;
    let mut or = |field: &'static str, rule: Rule, default: &str, problems: &mut Vec<Problem>| {
        fields
            .optional_text(field, rule, problems)
            .unwrap_or_else(|| default.to_owned())
    };
    let home = or("home", home_path, "/root", problems);
    let cookies_path = or("cookies_path", setting_path, "cookies", problems);
    let config_file = or("config_file", settings_file, "config.json", problems);
    let security_file = or("security_file", settings_file, ".security.yml", problems);
    let mcp_servers_path = or(
        "mcp_servers_path",
        setting_path,
        "tools.mcp.servers",
        problems,
    );
    let chatapp_section = or("chatapp_section", word, "dingtalk", problems);
    let name = fields.required_text("name", line, problems);
    if config_file == security_file {
        fields.problem("security_file", "must differ from config_file", problems);
    }
    let environment = read_environment(fields.get("environment"), &home, problems);
    let command = read_command("command", &mut fields, problems);
    let debug_command = read_command("debug_command", &mut fields, problems);
    let run_as = fields
        .optional_text("run_as", |text| run_as(text).map(|_| ()), problems)
        .and_then(|text| run_as(&text).ok())
        .unwrap_or(RunAs::Service);
    let readiness = read_readiness(fields.get("readiness"), problems);
    let workspace_setting = fields.optional_text("workspace_setting", setting_path, problems);
    let seed_home = match fields.get("seed_home") {
        None => false,
        Some(Value::Bool(seed)) => *seed,
        Some(_) => {
            fields.problem("seed_home", "must be true or false", problems);
            false
        }
    };
    fields.finish(problems);
    Some(Agent {
        name: name?,
        home,
        environment,
        command,
        debug_command,
        run_as,
        cookies_path,
        config_file,
        security_file,
        readiness,
        mcp_servers_path,
        workspace_setting,
        chatapp_section,
        seed_home,
    })
}

fn read_command(
    name: &'static str,
    fields: &mut Fields<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Vec<String>> {
    let command = fields.optional_list(name, argument, problems)?;
    if command.first().is_none_or(String::is_empty) {
        fields.problem(name, "must begin with a program", problems);
    }
    Some(command)
}

fn read_environment(
    value: Option<&Value>,
    home: &str,
    problems: &mut Vec<Problem>,
) -> BTreeMap<String, String> {
    let mut environment = BTreeMap::new();
    let Some(value) = value else {
        return environment;
    };
    let pointer = "/agent/environment";
    let Some(variables) = value.as_object() else {
        problems.push(Problem::new(INDEX, pointer, "must be an object"));
        return environment;
    };
    for (name, value) in variables {
        let checked = match value.as_str() {
            None => Err("must be a text"),
            Some(_) if RESERVED_VARIABLES.contains(&name.as_str()) => {
                Err("is set by the service itself")
            }
            Some(_) if !is_variable(name) => Err("is not the name of an environment variable"),
            Some(text) => expand(text, home),
        };
        match checked {
            Ok(text) => {
                environment.insert(name.clone(), text);
            }
            Err(message) => problems.push(Problem::new(
                INDEX,
                &format!("{pointer}/{}", escape(name)),
                message,
            )),
        }
    }
    environment
}

/// Replaces `${agent_dir}`; any other `${…}` is a mistake.
fn expand(text: &str, home: &str) -> Result<String, &'static str> {
    let expanded = text.replace("${agent_dir}", &format!("{home}/{AGENT_DIR}"));
    if expanded.contains("${") {
        Err("may only use the placeholder ${agent_dir}")
    } else if expanded.contains('\0') {
        Err("must not contain a NUL character")
    } else {
        Ok(expanded)
    }
}

fn read_readiness(value: Option<&Value>, problems: &mut Vec<Problem>) -> Readiness {
    let pointer = "/agent/readiness";
    let Some(value) = value else {
        return Readiness::Running;
    };
    let Some(mut fields) = Fields::of(value, INDEX, pointer.to_owned(), problems) else {
        return Readiness::Running;
    };
    let http = fields.get("http");
    let file = fields.optional_text("file", plain_path, problems);
    let has_file = fields.get("file").is_some();
    fields.finish(problems);
    match (http, has_file) {
        (Some(http), false) => read_http(http, problems),
        (None, true) => file.map_or(Readiness::Running, Readiness::File),
        _ => {
            problems.push(Problem::new(
                INDEX,
                pointer,
                "must have either http or file; leave it out when running is enough",
            ));
            Readiness::Running
        }
    }
}

fn read_http(value: &Value, problems: &mut Vec<Problem>) -> Readiness {
    let pointer = "/agent/readiness/http".to_owned();
    let Some(mut fields) = Fields::of(value, INDEX, pointer, problems) else {
        return Readiness::Running;
    };
    let port = fields.required_number("port", problems);
    let in_range = port
        .and_then(|port| u16::try_from(port).ok())
        .filter(|port| *port > 0);
    if port.is_some() && in_range.is_none() {
        fields.problem("port", "must be from 1 to 65535", problems);
    }
    let path = fields.required_text("path", url_path, problems);
    fields.finish(problems);
    match (in_range, path) {
        (Some(port), Some(path)) => Readiness::Http { port, path },
        _ => Readiness::Running,
    }
}

fn read_versions(
    value: Option<&Value>,
    latest: Option<u32>,
    problems: &mut Vec<Problem>,
) -> Option<AgentVersions> {
    let pointer = "/agent_versions";
    let Some(items) = value
        .and_then(Value::as_array)
        .filter(|items| !items.is_empty())
    else {
        problems.push(Problem::new(
            INDEX,
            pointer,
            "must be a list of at least one version",
        ));
        return None;
    };
    let mut versions = Vec::with_capacity(items.len());
    let mut seen = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let pointer = format!("{pointer}/{at}");
        let Some(mut fields) = Fields::of(item, INDEX, pointer, problems) else {
            continue;
        };
        let version = fields
            .required_text("version", version, problems)
            .and_then(|text| text.parse::<Version>().ok());
        if version.is_some_and(|version| !seen.insert(version)) {
            fields.problem("version", "is declared twice", problems);
        }
        let config_version = fields.required_number("config_version", problems);
        if let (Some(config_version), Some(latest)) = (config_version, latest)
            && config_version > latest
        {
            fields.problem(
                "config_version",
                "is newer than latest_supported_config_version",
                problems,
            );
        }
        let channel_types = fields
            .optional_list("channel_types", word, problems)
            .unwrap_or_default();
        fields.finish(problems);
        if let (Some(version), Some(config_version)) = (version, config_version) {
            versions.push(AgentVersion {
                version,
                config_version,
                channel_types,
            });
        }
    }
    AgentVersions::new(versions)
}

fn read_schemas(
    name: &str,
    value: Option<&Value>,
    documents: &Documents,
    problems: &mut Vec<Problem>,
) -> BTreeMap<u32, String> {
    let mut schemas = BTreeMap::new();
    let Some(value) = value else {
        return schemas;
    };
    let pointer = format!("/{name}");
    let Some(entries) = value.as_object() else {
        problems.push(Problem::new(INDEX, &pointer, "must be an object"));
        return schemas;
    };
    for (version, path) in entries {
        let pointer = format!("{pointer}/{}", escape(version));
        let Ok(config_version) = version.parse::<u32>() else {
            problems.push(Problem::new(
                INDEX,
                &pointer,
                "must be named by a configuration version",
            ));
            continue;
        };
        let Some(path) = named_file(path, &pointer, documents, problems) else {
            continue;
        };
        expect_number(&path, "config_version", config_version, documents, problems);
        schemas.insert(config_version, path);
    }
    schemas
}

fn read_migrations(
    value: Option<&Value>,
    documents: &Documents,
    problems: &mut Vec<Problem>,
) -> Vec<MigrationFile> {
    let mut migrations = Vec::new();
    let Some(value) = value else {
        return migrations;
    };
    let Some(items) = value.as_array() else {
        problems.push(Problem::new(INDEX, "/migrations", "must be a list"));
        return migrations;
    };
    let mut edges = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let pointer = format!("/migrations/{at}");
        let Some(mut fields) = Fields::of(item, INDEX, pointer.clone(), problems) else {
            continue;
        };
        let from = fields.required_number("from_config", problems);
        let to = fields.required_number("to_config", problems);
        let path = match fields.get("path") {
            Some(path) => named_file(path, &fields.at("path"), documents, problems),
            None => {
                fields.problem("path", "is missing", problems);
                None
            }
        };
        fields.finish(problems);
        let (Some(from_config), Some(to_config), Some(path)) = (from, to, path) else {
            continue;
        };
        if from_config == to_config {
            problems.push(Problem::new(
                INDEX,
                &format!("{pointer}/to_config"),
                "must differ from from_config",
            ));
        }
        if !edges.insert((from_config, to_config)) {
            problems.push(Problem::new(INDEX, &pointer, "is declared twice"));
        }
        expect_number(&path, "from_config", from_config, documents, problems);
        expect_number(&path, "to_config", to_config, documents, problems);
        migrations.push(MigrationFile {
            from_config,
            to_config,
            path,
        });
    }
    migrations
}

/// A path that names a file of the package.
fn named_file(
    value: &Value,
    pointer: &str,
    documents: &Documents,
    problems: &mut Vec<Problem>,
) -> Option<String> {
    match value.as_str() {
        None => {
            problems.push(Problem::new(INDEX, pointer, "must be a path"));
            None
        }
        Some(path) if !documents.contains_key(path) => {
            problems.push(Problem::new(
                INDEX,
                pointer,
                format!("names {path}, which is not a JSON file of the package"),
            ));
            None
        }
        Some(path) => Some(path.to_owned()),
    }
}

/// A file must say the same number about itself as the index does.
fn expect_number(
    path: &str,
    name: &str,
    expected: u32,
    documents: &Documents,
    problems: &mut Vec<Problem>,
) {
    let found = documents.get(path).and_then(|document| document.get(name));
    if found.and_then(Value::as_u64) != Some(u64::from(expected)) {
        problems.push(Problem::new(
            path,
            &format!("/{name}"),
            format!("must be {expected}, as index.json says"),
        ));
    }
}
