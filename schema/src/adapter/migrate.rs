//! Applying migrations to documents. Pure.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::Adapter;
use super::migration::{Action, Migration, Nested};
use super::path::{SettingPath, get, get_mut, put, take};
use super::ui_schema::Storage;

/// No chain of declared migrations leads from one configuration version to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no migration leads from configuration version {from} to {to}")]
pub struct NoMigrationPath {
    /// Where it would start.
    pub from: u32,
    /// Where it would end.
    pub to: u32,
}

/// The agent's two files as documents; each an object.
#[derive(Clone, PartialEq)]
pub(super) struct Documents {
    pub(super) config: Value,
    pub(super) security: Value,
}

impl Documents {
    pub(super) fn empty() -> Self {
        Self {
            config: Value::Object(Map::new()),
            security: Value::Object(Map::new()),
        }
    }

    pub(super) fn file_mut(&mut self, storage: Storage) -> &mut Value {
        match storage {
            Storage::Config => &mut self.config,
            Storage::Security => &mut self.security,
        }
    }
}

impl Adapter {
    /// The shortest chain of migrations between two configuration versions; empty when they are
    /// the same. Of chains equally long, the one through older versions.
    ///
    /// # Errors
    /// [`NoMigrationPath`], such as for a downgrade that no package author thought of.
    pub fn migration_chain(&self, from: u32, to: u32) -> Result<Vec<&Migration>, NoMigrationPath> {
        let mut edges: BTreeMap<u32, Vec<&Migration>> = BTreeMap::new();
        for migration in &self.migrations {
            edges
                .entry(migration.from_config)
                .or_default()
                .push(migration);
        }
        let mut reached_by: BTreeMap<u32, &Migration> = BTreeMap::new();
        let mut seen = BTreeSet::from([from]);
        let mut queue = VecDeque::from([from]);
        while let Some(version) = queue.pop_front() {
            let mut next = edges.remove(&version).unwrap_or_default();
            next.sort_by_key(|migration| migration.to_config);
            for migration in next {
                if seen.insert(migration.to_config) {
                    reached_by.insert(migration.to_config, migration);
                    queue.push_back(migration.to_config);
                }
            }
        }
        let mut chain = Vec::new();
        let mut at = to;
        while at != from {
            let migration = reached_by.get(&at).ok_or(NoMigrationPath { from, to })?;
            chain.push(*migration);
            at = migration.from_config;
        }
        chain.reverse();
        Ok(chain)
    }

    /// Where a configuration file says its own version: the one place that migrations set to the
    /// number of the version they lead to. `None` when there is no such place, or several.
    pub fn version_mark(&self) -> Option<&SettingPath> {
        let mut marks = self.migrations.iter().flat_map(|migration| {
            let number = Value::from(migration.to_config);
            migration
                .actions
                .iter()
                .filter_map(move |action| match action {
                    Action::Set {
                        storage: Storage::Config,
                        path,
                        value,
                    } if *value == number => Some(path),
                    _ => None,
                })
        });
        let first = marks.next()?;
        marks.all(|other| other == first).then_some(first)
    }
}

impl Migration {
    /// Applies every action to both files.
    pub(super) fn apply(&self, documents: &mut Documents) {
        for action in &self.actions {
            action.apply(documents);
        }
    }

    /// Whether a file of the new version has this mark.
    pub(super) fn sets(&self, mark: &SettingPath) -> bool {
        self.actions.iter().any(|action| {
            matches!(action, Action::Set { storage: Storage::Config, path, .. } if path == mark)
        })
    }
}

impl Action {
    fn apply(&self, documents: &mut Documents) {
        match self {
            Self::Set {
                storage,
                path,
                value,
            } => {
                // Where something else is in the way, the file is not of the kind we know.
                let _ = put(documents.file_mut(*storage), path.names(), value.clone());
            }
            Self::Delete { storage, path } => {
                take(documents.file_mut(*storage), path.names());
            }
            Self::Rename {
                storage,
                from,
                to,
                nested,
            } => {
                let document = documents.file_mut(*storage);
                if let Some(nested) = nested
                    && let Some(channels) = get_mut(document, from.names())
                {
                    nested.divide(channels);
                }
                relocate(document, from.names(), to.names());
            }
            Self::Move { storage, from, to } => {
                relocate_all(documents.file_mut(*storage), from, to);
            }
            Self::Map {
                storage,
                path,
                field,
                to,
                value,
            } => {
                for member in members_mut(documents.file_mut(*storage), path) {
                    if let Some(old) = member.remove(field) {
                        let new = value.clone().unwrap_or(old);
                        member.entry(to.clone()).or_insert(new);
                    }
                }
            }
            Self::InferModelEnabled {
                path,
                secrets,
                keyless,
            } => {
                let secrets = secrets
                    .as_ref()
                    .and_then(|path| get(&documents.security, path.names()));
                infer_enabled(&mut documents.config, path, secrets, keyless);
            }
        }
    }
}

/// Gives a value another place. What is there already wins, member by member, unless it is null;
/// what cannot be put there stays where it is.
fn relocate(document: &mut Value, from: &[String], to: &[String]) {
    let Some(value) = take(document, from) else {
        return;
    };
    let value = match (value, get_mut(document, to)) {
        (value, None | Some(Value::Null)) => value,
        (Value::Object(members), Some(Value::Object(there))) => {
            for (name, member) in members {
                there.entry(name).or_insert(member);
            }
            return;
        }
        (_, Some(_)) => return,
    };
    if let Err(value) = put(document, to, value) {
        // Back to where it was: the way there still exists.
        let _ = put(document, from, value);
    }
}

fn relocate_all(document: &mut Value, from: &SettingPath, to: &SettingPath) {
    let (Some((before, after)), Some((new_before, new_after))) =
        (from.split_at_star(), to.split_at_star())
    else {
        return relocate(document, from.names(), to.names());
    };
    let names: Vec<String> = match get(document, before) {
        Some(Value::Object(members)) => members.keys().cloned().collect(),
        Some(Value::Array(items)) => (0..items.len()).map(|at| at.to_string()).collect(),
        _ => return,
    };
    for name in names {
        let place = |before: &[String], after: &[String]| {
            [before, std::slice::from_ref(&name), after].concat()
        };
        relocate(
            document,
            &place(before, after),
            &place(new_before, new_after),
        );
    }
}

/// The members of an object, or the elements of a list, that are objects themselves.
fn members_mut<'a>(
    document: &'a mut Value,
    path: &SettingPath,
) -> Box<dyn Iterator<Item = &'a mut Map<String, Value>> + 'a> {
    match get_mut(document, path.names()) {
        Some(Value::Object(members)) => {
            Box::new(members.values_mut().filter_map(Value::as_object_mut))
        }
        Some(Value::Array(items)) => Box::new(items.iter_mut().filter_map(Value::as_object_mut)),
        _ => Box::new(std::iter::empty()),
    }
}

impl Nested {
    fn divide(&self, channels: &mut Value) {
        let Some(channels) = channels.as_object_mut() else {
            return;
        };
        for (name, channel) in channels {
            let Some(members) = channel.as_object_mut() else {
                continue;
            };
            let nested_already = self
                .settings
                .first()
                .is_some_and(|settings| members.get(settings).is_some_and(Value::is_object));
            if !nested_already {
                let all = std::mem::take(members);
                let (kept, own): (Map<_, _>, Map<_, _>) = all
                    .into_iter()
                    .partition(|(name, _)| self.keep.contains(name));
                *members = kept;
                if !own.is_empty() {
                    let _ = put(channel, &self.settings, Value::Object(own));
                }
            }
            if self.adds_type
                && let Some(members) = channel.as_object_mut()
            {
                members
                    .entry("type")
                    .or_insert_with(|| Value::from(name.as_str()));
            }
        }
    }
}

/// Models are a list of objects with a `model_name`, or a map from name to object. Where several
/// models share a name, their secrets are under the name, a colon and a number.
fn infer_enabled(
    config: &mut Value,
    path: &SettingPath,
    secrets: Option<&Value>,
    keyless: &BTreeSet<String>,
) {
    let infer = |key: Option<&str>, model: &mut Map<String, Value>| {
        if model.contains_key("enabled") {
            return;
        }
        let name = model.get("model_name").and_then(Value::as_str).or(key);
        let has_key = has_api_key(model)
            || name.is_some_and(|name| {
                keyless.contains(name)
                    || secrets
                        .and_then(Value::as_object)
                        .into_iter()
                        .flatten()
                        .any(|(key, model)| {
                            is_secret_of(key, name) && model.as_object().is_some_and(has_api_key)
                        })
            });
        if has_key {
            model.insert("enabled".to_owned(), Value::Bool(true));
        }
    };
    match get_mut(config, path.names()) {
        Some(Value::Object(models)) => {
            for (key, model) in models {
                if let Some(model) = model.as_object_mut() {
                    infer(Some(key), model);
                }
            }
        }
        Some(Value::Array(models)) => {
            for model in models.iter_mut().filter_map(Value::as_object_mut) {
                infer(None, model);
            }
        }
        _ => {}
    }
}

fn is_secret_of(key: &str, model: &str) -> bool {
    key.strip_prefix(model).is_some_and(|rest| {
        rest.is_empty()
            || rest
                .strip_prefix(':')
                .is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
    })
}

fn has_api_key(model: &Map<String, Value>) -> bool {
    let is_key = |value: &Value| value.as_str().is_some_and(|key| !key.trim().is_empty());
    let single = model.get("api_key").is_some_and(is_key);
    let several = model
        .get("api_keys")
        .is_some_and(|keys| keys.as_array().is_some_and(|keys| keys.iter().any(is_key)));
    single || several
}
