//! Reading `index.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::Problem;
use super::model::{Agent, AgentVersion, AgentVersions, Index, MigrationFile, Readiness, parsed};
use super::package::INDEX;
use super::path::escape;
use super::shape::{self, Shape};
use super::version::{AdapterVersion, Version};

/// The form of `index.json` that this release reads.
const SCHEMA_VERSION: u64 = 1;

type Documents = BTreeMap<String, Value>;

#[derive(Deserialize)]
struct Document {
    #[serde(deserialize_with = "parsed")]
    adapter_version: AdapterVersion,
    latest_supported_config_version: u32,
    agent: Agent,
    agent_versions: Vec<AgentVersion>,
    untagged: Option<String>,
    #[serde(default)]
    config_schemas: BTreeMap<String, String>,
    #[serde(default)]
    ui_schemas: BTreeMap<String, String>,
    #[serde(default)]
    migrations: Vec<MigrationFile>,
}

/// The files that an index names, whatever else is wrong with it.
pub(super) fn named(index: &Value) -> BTreeSet<String> {
    let by_version = ["config_schemas", "ui_schemas"].into_iter();
    let by_version = by_version.filter_map(|name| index.get(name)?.as_object());
    let migrations = index.get("migrations").and_then(Value::as_array);
    let migrations = migrations.into_iter().flatten();
    by_version
        .flat_map(|files| files.values())
        .chain(migrations.filter_map(|migration| migration.get("path")))
        .filter_map(|path| path.as_str().map(str::to_owned))
        .collect()
}

/// Reads the index. `None` only together with problems.
pub(super) fn read(documents: &Documents, problems: &mut Vec<Problem>) -> Option<Index> {
    let Some(index) = documents.get(INDEX) else {
        // When it is there but no JSON, that was reported already.
        if !problems.iter().any(|problem| problem.file == INDEX) {
            problems.push(Problem::new(INDEX, "", "is missing"));
        }
        return None;
    };
    if let Some(Value::Number(number)) = index.get("adapter_schema_version")
        && number.as_u64() != Some(SCHEMA_VERSION)
    {
        // Everything else may mean something different there.
        problems.push(Problem::new(
            INDEX,
            "/adapter_schema_version",
            format!("is {number}, but this release reads {SCHEMA_VERSION}"),
        ));
        return None;
    }
    check_files(index, documents, problems);
    if !shape::check(Shape::Index, INDEX, index, problems) {
        return None;
    }
    let index = without_nulls(index);
    let document: Document = shape::typed(INDEX, &index, problems)?;
    check_versions(&document, problems);
    check_migrations(&document.migrations, problems);
    let agent = complete(document.agent, &index, problems);
    let agent_versions = AgentVersions::new(document.agent_versions)?;
    let untagged: Option<Version> = document.untagged.and_then(|text| text.parse().ok());
    if untagged.is_some_and(|untagged| agent_versions.find(untagged).is_none()) {
        let message = "must be one of agent_versions";
        problems.push(Problem::new(INDEX, "/untagged", message));
    }
    Some(Index {
        adapter_version: document.adapter_version,
        latest_supported_config_version: document.latest_supported_config_version,
        agent: Arc::new(agent),
        untagged: untagged.unwrap_or(agent_versions.newest().version),
        agent_versions,
        config_schemas: by_number(document.config_schemas),
        ui_schemas: by_number(document.ui_schemas),
        migrations: document.migrations,
    })
}

/// A field that is null is absent.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, member)| !member.is_null())
            .map(|(name, member)| (name.clone(), without_nulls(member)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

fn by_number(files: BTreeMap<String, String>) -> BTreeMap<u32, String> {
    files
        .into_iter()
        .filter_map(|(version, path)| Some((version.parse().ok()?, path)))
        .collect()
}

/// Makes paths of the agent directory absolute.
fn complete(mut agent: Agent, index: &Value, problems: &mut Vec<Problem>) -> Agent {
    let agent_dir = agent.agent_dir();
    if agent.config_file == agent.security_file {
        let message = "must differ from config_file";
        problems.push(Problem::new(INDEX, "/agent/security_file", message));
    }
    for (name, value) in &mut agent.environment {
        *value = value.replace("${agent_dir}", &agent_dir);
        if value.contains("${") {
            problems.push(Problem::new(
                INDEX,
                &format!("/agent/environment/{}", escape(name)),
                "may only use the placeholder ${agent_dir}",
            ));
        }
    }
    match &agent.readiness {
        Readiness::Running if index.pointer("/agent/readiness").is_some() => {
            problems.push(Problem::new(
                INDEX,
                "/agent/readiness",
                "must have either http or file; leave it out when running is enough",
            ));
        }
        Readiness::Running | Readiness::Http { .. } | Readiness::File(_) => {}
    }
    agent
}

fn check_versions(document: &Document, problems: &mut Vec<Problem>) {
    let mut seen = BTreeSet::new();
    for (at, version) in document.agent_versions.iter().enumerate() {
        let mut problem = |field: &str, message: &str| {
            let pointer = format!("/agent_versions/{at}/{field}");
            problems.push(Problem::new(INDEX, &pointer, message));
        };
        if !seen.insert(version.version) {
            problem("version", "is declared twice");
        }
        if version.config_version > document.latest_supported_config_version {
            problem(
                "config_version",
                "is newer than latest_supported_config_version",
            );
        }
    }
}

fn check_migrations(migrations: &[MigrationFile], problems: &mut Vec<Problem>) {
    let mut edges = BTreeSet::new();
    for (at, migration) in migrations.iter().enumerate() {
        let mut problem = |field: &str, message: &str| {
            let pointer = format!("/migrations/{at}{field}");
            problems.push(Problem::new(INDEX, &pointer, message));
        };
        if migration.from_config == migration.to_config {
            problem("/to_config", "must differ from from_config");
        }
        if !edges.insert((migration.from_config, migration.to_config)) {
            problem("", "is declared twice");
        }
    }
}

/// The files that the index names are there, and give the same numbers as it does.
fn check_files(index: &Value, documents: &Documents, problems: &mut Vec<Problem>) {
    let mut check = |pointer: &str, path: Option<&Value>, numbers: &[(&str, Option<u64>)]| {
        // What is no path is refused by the shape.
        let Some(path) = path.and_then(Value::as_str) else {
            return;
        };
        let Some(document) = documents.get(path) else {
            let message = format!("names {path}, which is not a JSON file of the package");
            return problems.push(Problem::new(INDEX, pointer, message));
        };
        for (name, expected) in numbers {
            if let Some(expected) = expected
                && document.get(name).and_then(Value::as_u64) != Some(*expected)
            {
                let message = format!("must be {expected}, as index.json says");
                problems.push(Problem::new(path, &format!("/{name}"), message));
            }
        }
    };
    for name in ["config_schemas", "ui_schemas"] {
        let files = index.get(name).and_then(Value::as_object);
        for (version, path) in files.into_iter().flatten() {
            let pointer = format!("/{name}/{}", escape(version));
            check(
                &pointer,
                Some(path),
                &[("config_version", version.parse().ok())],
            );
        }
    }
    let migrations = index.get("migrations").and_then(Value::as_array);
    for (at, migration) in migrations.into_iter().flatten().enumerate() {
        let numbers = ["from_config", "to_config"]
            .map(|name| (name, migration.get(name).and_then(Value::as_u64)));
        let pointer = format!("/migrations/{at}/path");
        check(&pointer, migration.get("path"), &numbers);
    }
}
