//! Migration documents: what changes from one configuration version to another.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::Problem;
use super::config_schema::ConfigSchema;
use super::path::SettingPath;
use super::shape::{self, Shape};
use super::ui_schema::{Storage, UiSchema};

/// A migration: an edge between two configuration versions.
#[derive(Debug, Clone, PartialEq)]
pub struct Migration {
    /// The configuration version it starts from.
    pub from_config: u32,
    /// The configuration version it leads to.
    pub to_config: u32,
    /// What it does, in this order.
    pub actions: Vec<Action>,
}

/// One step of a migration. What is not there is left alone: a missing place is no error.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Sets a value.
    Set {
        /// The file.
        storage: Storage,
        /// The place.
        path: SettingPath,
        /// The value.
        value: Value,
    },
    /// Removes a value.
    Delete {
        /// The file.
        storage: Storage,
        /// The place.
        path: SettingPath,
    },
    /// Gives a value another place. What is there already wins; two objects become one.
    Rename {
        /// The file.
        storage: Storage,
        /// The old place.
        from: SettingPath,
        /// The new place.
        to: SettingPath,
        /// Also moves each channel's own settings into an object apart.
        nested: Option<Nested>,
    },
    /// Gives a value another place, which may be that of each member of an object or each element
    /// of a list: both places have `*` there. What is there already wins.
    Move {
        /// The file.
        storage: Storage,
        /// The old place.
        from: SettingPath,
        /// The new place.
        to: SettingPath,
    },
    /// Gives a field of each member of an object (or element of a list) another name, and another
    /// value if there is one here. A field that has the new name already wins.
    Map {
        /// The file.
        storage: Storage,
        /// The object or list.
        path: SettingPath,
        /// The old name.
        field: String,
        /// The new name.
        to: String,
        /// The new value.
        value: Option<Value>,
    },
    /// Sets `enabled` to true for each model that does not say whether it is enabled and that has
    /// an API key in either file or one of these names.
    InferModelEnabled {
        /// The models in the configuration file.
        path: SettingPath,
        /// The map from a model's name to its secrets in the security file.
        secrets: Option<SettingPath>,
        /// Models that need no key.
        keyless: BTreeSet<String>,
    },
}

/// How the mode `channels_to_nested` divides a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nested {
    /// The object for the channel's own settings, from the channel on.
    pub settings: Vec<String>,
    /// The fields that stay beside it.
    pub keep: BTreeSet<String>,
    /// Whether a channel gets its name as its type. Files of secrets say no types.
    pub adds_type: bool,
}

/// What a package declares besides a migration.
pub(super) struct Surroundings<'a> {
    pub(super) config_schemas: &'a BTreeMap<u32, ConfigSchema>,
    pub(super) ui_schemas: &'a BTreeMap<u32, UiSchema>,
}

#[derive(Deserialize)]
struct Document {
    from_config: u32,
    to_config: u32,
    actions: Vec<ActionDocument>,
}

#[derive(Deserialize)]
struct ActionDocument {
    op: Op,
    storage: Option<Storage>,
    path: Option<String>,
    from: Option<String>,
    to: Option<String>,
    mode: Option<String>,
    field: Option<String>,
    // A null is a value too.
    #[serde(default, deserialize_with = "some")]
    value: Option<Value>,
}

fn some<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Op {
    Set,
    Delete,
    Rename,
    Move,
    Map,
    InferModelEnabled,
}

/// Reads a migration. `None` only together with problems.
pub(super) fn read(
    file: &str,
    document: &Value,
    around: &Surroundings<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Migration> {
    let document: Document = shape::read(Shape::Migration, file, document, problems)?;
    let (from_config, to_config) = (document.from_config, document.to_config);
    let mut actions = Vec::with_capacity(document.actions.len());
    for (at, action) in document.actions.into_iter().enumerate() {
        match read_action(action, from_config, to_config, around) {
            Ok(action) => actions.push(action),
            Err((field, message)) => problems.push(Problem::new(
                file,
                &format!("/actions/{at}/{field}"),
                message,
            )),
        }
    }
    Some(Migration {
        from_config,
        to_config,
        actions,
    })
}

/// A field with the rest of the sentence about it.
type Wrong = (&'static str, String);

fn read_action(
    document: ActionDocument,
    from_config: u32,
    to_config: u32,
    around: &Surroundings<'_>,
) -> Result<Action, Wrong> {
    let storage = document.storage.unwrap_or(Storage::Config);
    // The shape demands them where they are needed.
    let place = |text: Option<&String>, field: &'static str| {
        text.map(|text| SettingPath::dotted(text))
            .ok_or((field, "is missing".to_owned()))
    };
    let path = || place(document.path.as_ref(), "path");
    let to = || place(document.to.as_ref(), "to");
    Ok(match document.op {
        Op::Set => Action::Set {
            storage,
            path: path()?,
            value: document.value.ok_or(("value", "is missing".to_owned()))?,
        },
        Op::Delete => Action::Delete {
            storage,
            path: path()?,
        },
        Op::Rename => {
            let (from, to) = (place(document.from.as_ref(), "from")?, to()?);
            apart(&from, &to)?;
            let nested = document.mode.map(|_| {
                let named = texts(document.value.as_ref());
                nested(storage, to_config, named, around)
            });
            Action::Rename {
                storage,
                from,
                to,
                nested,
            }
        }
        Op::Move => {
            let (from, to) = (path()?, to()?);
            for (name, place) in [("path", &from), ("to", &to)] {
                if place.names().last().is_some_and(|last| last == "*") {
                    return Err((name, "must not end in *".to_owned()));
                }
            }
            if from.has_star() != to.has_star() {
                return Err(("to", "must contain * exactly when path does".to_owned()));
            }
            if from.has_star() {
                if from == to {
                    return Err(("to", "must differ from path".to_owned()));
                }
            } else {
                // Into itself is fine: a value may move one level down.
                if from == to || from.is_in(&to) {
                    return Err(("to", "must differ from path".to_owned()));
                }
            }
            Action::Move { storage, from, to }
        }
        Op::Map => {
            let field = document.field.ok_or(("field", "is missing".to_owned()))?;
            let to = document.to.ok_or(("to", "is missing".to_owned()))?;
            if field == to {
                return Err(("to", "must differ from field".to_owned()));
            }
            Action::Map {
                storage,
                path: SettingPath::dotted(&document.path.ok_or(("path", "is missing".to_owned()))?),
                field,
                to,
                value: document.value,
            }
        }
        Op::InferModelEnabled => {
            let schema = around.config_schemas.get(&from_config);
            let declared = schema.and_then(|schema| schema.models_path.clone());
            let path = match &document.path {
                Some(text) => SettingPath::dotted(text),
                None => declared.ok_or_else(|| {
                    let message = format!(
                        "is missing: configuration version {from_config} has no models_path"
                    );
                    ("path", message)
                })?,
            };
            Action::InferModelEnabled {
                path,
                secrets: schema.and_then(|schema| schema.security_models_path.clone()),
                keyless: texts(document.value.as_ref()),
            }
        }
    })
}

fn apart(from: &SettingPath, to: &SettingPath) -> Result<(), Wrong> {
    if from.overlaps(to) {
        Err(("to", "must not overlap with from".to_owned()))
    } else {
        Ok(())
    }
}

fn texts(value: Option<&Value>) -> BTreeSet<String> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}

/// Beside a channel's settings stay `enabled`, `type`, what the migration names, and what the new
/// version's forms have there.
fn nested(
    storage: Storage,
    to_config: u32,
    named: BTreeSet<String>,
    around: &Surroundings<'_>,
) -> Nested {
    let place = around
        .config_schemas
        .get(&to_config)
        .map(|schema| match storage {
            Storage::Config => &schema.channels,
            Storage::Security => &schema.security_channels,
        });
    let mut keep = named;
    keep.extend(["enabled", "type"].map(str::to_owned));
    if let (Some(place), Some(forms)) = (place, around.ui_schemas.get(&to_config)) {
        let sections = forms
            .page(super::ui_schema::PageKey::Channels)
            .into_iter()
            .flat_map(|page| &page.sections);
        for section in sections {
            let channel = place.channel(&section.key);
            for field in section
                .fields
                .iter()
                .filter(|field| field.storage == storage)
            {
                let inside = field.path.names().get(channel.names().len());
                if let Some(name) = inside.filter(|name| Some(*name) != place.settings.first()) {
                    keep.insert(name.clone());
                }
            }
        }
    }
    let settings = place
        .map(|place| place.settings.clone())
        .filter(|settings| !settings.is_empty())
        .unwrap_or_else(|| vec!["settings".to_owned()]);
    Nested {
        settings,
        keep,
        adds_type: storage == Storage::Config,
    }
}
