//! The configuration as one JSON document, with secrets masked.

use serde_json::{Value, json};

use super::Config;
use super::keys::KEYS;
use super::masking::mask;
use super::setting::{KeyDef, ValueType};

impl Config {
    /// All keys as nested JSON. With `masked`, no secret is in it: a secret that is set shows as
    /// [`MASK`](super::MASK), one that is not as an empty text. What of `agent` is secret says the adapter that
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
        ValueType::Object(_) => match def.shape {
            Some(shape) => (shape.schema)(),
            None => json!({"type": "object"}),
        },
    };
    schema["title"] = json!(def.title);
    schema["description"] = json!(def.description);
    schema["default"] = def.default_value();
    schema["secret"] = json!(def.is_secret());
    schema
}
