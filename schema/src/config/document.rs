//! The configuration as one JSON document, with secrets masked, and back.

use serde_json::{Map, Value, json};

use super::Config;
use super::keys::KEYS;
use super::setting::{Availability, KeyDef, Secrets, ValueType};
use crate::adapter::{SecretPaths, escape};

/// What is shown instead of a secret that is set, and what leaves it unchanged when sent back.
pub const MASK: &str = "********";

/// In the agent's configuration, texts under names with one of these in them are not shown, whatever the adapter
/// says: it may come later than they do.
const SECRET_NAMES: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "token",
    "api_key",
    "apikey",
    "access_key",
    "private_key",
    "encrypt_key",
    "encryption_key",
    "webhooks",
    "webhook_url",
    "credential",
    "authorization",
    "cookie",
];

impl Config {
    /// All keys as nested JSON. With `masked`, no secret is in it: a secret that is set shows as
    /// [`MASK`], one that is not as an empty text. What of `agent` is secret says the adapter that
    /// the configuration was [settled](crate::adapter::store::ActiveAdapter::settle) with.
    pub fn to_document(&self, masked: bool) -> Value {
        let mut document = json!({});
        for def in KEYS.values() {
            let value = self.value(def);
            let shown = if masked {
                mask(def, value, self.secret_paths())
            } else {
                value
            };
            let mut place = &mut document;
            for name in def.key.split('.') {
                place = &mut place[name];
            }
            *place = shown;
        }
        document
    }
}

/// The value as it may be shown to an administrator and kept in the history.
pub(super) fn mask(def: &KeyDef, value: Value, paths: &SecretPaths) -> Value {
    match def.value_type {
        ValueType::Secret => mask_leaf(value),
        ValueType::Object(secrets) => {
            let unknown = SecretPaths::default();
            let paths = match secrets {
                Secrets::ByAdapter => paths,
                Secrets::All | Secrets::ByName => &unknown,
            };
            let all = secrets == Secrets::All;
            Masking { paths }.tree(value, all, &mut Vec::new())
        }
        _ => value,
    }
}

fn mask_leaf(value: Value) -> Value {
    match &value {
        Value::Null => value,
        Value::String(text) if text.is_empty() => value,
        _ => Value::String(MASK.to_owned()),
    }
}

struct Masking<'a> {
    paths: &'a SecretPaths,
}

impl Masking<'_> {
    /// Masks a value; with `all`, each leaf of it.
    fn tree(&self, value: Value, all: bool, place: &mut Vec<String>) -> Value {
        match value {
            Value::Object(entries) => {
                let mut masked = Map::new();
                for (name, value) in entries {
                    place.push(name);
                    let value = self.member(value, all, place);
                    if let Some(name) = place.pop() {
                        masked.insert(name, value);
                    }
                }
                Value::Object(masked)
            }
            Value::Array(items) => Value::Array(
                items
                    .into_iter()
                    .map(|item| self.tree(item, all, place))
                    .collect(),
            ),
            leaf if all => mask_leaf(leaf),
            leaf => leaf,
        }
    }

    fn member(&self, value: Value, around: bool, place: &mut Vec<String>) -> Value {
        let all = self.paths.is_secret(place).unwrap_or(around);
        let by_name = place.last().is_some_and(|name| is_secret_name(name));
        // Settings such as "max_tokens" are no secrets; texts and what is in a group of that name are, all of it.
        if !all && by_name && !value.is_number() && !value.is_boolean() {
            let paths = &SecretPaths::default();
            return Masking { paths }.tree(value, true, &mut Vec::new());
        }
        self.tree(value, all, place)
    }
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    SECRET_NAMES.iter().any(|secret| name.contains(secret))
}

/// Fills every leaf of `new` that equals the mask from `stored`.
///
/// Entries of objects correspond by name. Elements of lists correspond to the one stored element
/// with the same visible leaves, or else by position when the list kept its length.
///
/// # Errors
/// The JSON pointer of a mask that stands for nothing.
pub(super) fn unmask(new: &Value, stored: &Value) -> Result<Value, String> {
    unmask_at(new, Some(stored), &mut String::new())
}

fn unmask_at(new: &Value, stored: Option<&Value>, pointer: &mut String) -> Result<Value, String> {
    let length = pointer.len();
    match new {
        Value::String(text) if text == MASK => match stored {
            Some(stored) if !stored.is_object() && !stored.is_array() => Ok(stored.clone()),
            _ => Err(pointer.clone()),
        },
        Value::Object(entries) => {
            let mut filled = Map::new();
            for (name, value) in entries {
                pointer.push('/');
                pointer.push_str(&escape(name));
                let counterpart = stored.and_then(|stored| stored.get(name));
                filled.insert(name.clone(), unmask_at(value, counterpart, pointer)?);
                pointer.truncate(length);
            }
            Ok(Value::Object(filled))
        }
        Value::Array(items) => {
            let old = stored.and_then(Value::as_array);
            let mut filled = Vec::with_capacity(items.len());
            for (at, item) in items.iter().enumerate() {
                pointer.push_str(&format!("/{at}"));
                let counterpart = old.and_then(|old| counterpart(item, at, items.len(), old));
                filled.push(unmask_at(item, counterpart, pointer)?);
                pointer.truncate(length);
            }
            Ok(Value::Array(filled))
        }
        leaf => Ok(leaf.clone()),
    }
}

/// The stored element that the masks in `item` speak of.
fn counterpart<'a>(
    item: &Value,
    at: usize,
    new_length: usize,
    old: &'a [Value],
) -> Option<&'a Value> {
    let same_place = (new_length == old.len()).then(|| old.get(at)).flatten();
    let mut alike = old.iter().filter(|stored| is_shown_as(stored, item));
    match (alike.next(), alike.next()) {
        (Some(only), None) => Some(only),
        // Several alike, or a visible leaf was edited: only the position decides, and only when
        // nothing was added or removed.
        _ => same_place,
    }
}

/// Whether `stored` would be shown as `item`, as far as `item` shows anything.
fn is_shown_as(stored: &Value, item: &Value) -> bool {
    match (item, stored) {
        (Value::String(text), stored) if text == MASK => !stored.is_object() && !stored.is_array(),
        (Value::Object(new), Value::Object(old)) => {
            new.len() == old.len()
                && new.iter().all(|(name, value)| {
                    old.get(name)
                        .is_some_and(|stored| is_shown_as(stored, value))
                })
        }
        (Value::Array(new), Value::Array(old)) => {
            new.len() == old.len() && new.iter().zip(old).all(|(new, old)| is_shown_as(old, new))
        }
        (item, stored) => item == stored,
    }
}

/// The JSON Schema (2020-12) of the document: what forms are rendered from.
pub fn json_schema() -> Value {
    let group = || json!({"type": "object", "additionalProperties": false, "properties": {}});
    let mut schema = group();
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    for def in KEYS.values() {
        let mut place = &mut schema;
        for name in def.key.split('.') {
            if place.is_null() {
                *place = group();
            }
            place = &mut place["properties"][name];
        }
        *place = key_schema(def);
    }
    schema
}

fn key_schema(def: &KeyDef) -> Value {
    let mut schema = match def.value_type {
        ValueType::Boolean => json!({"type": "boolean"}),
        ValueType::Integer(min, max) => {
            json!({"type": "integer", "minimum": min, "maximum": max})
        }
        ValueType::Number(min, max) => json!({"type": "number", "minimum": min, "maximum": max}),
        ValueType::Text(_) | ValueType::Secret => json!({"type": "string"}),
        ValueType::Duration { .. } => json!({"type": "string", "format": "duration-text"}),
        ValueType::Choice(words) => json!({"type": "string", "enum": words}),
        ValueType::List(_) => {
            json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true})
        }
        ValueType::Object(_) => json!({"type": "object"}),
    };
    schema["title"] = json!(def.title);
    schema["description"] = json!(def.description);
    schema["default"] = def.default_value();
    schema["secret"] = json!(def.is_secret());
    schema["x-available"] = json!(def.available != Availability::NotYet);
    schema
}
