//! The configuration as one JSON document, with secrets masked.

use serde_json::{Value, json};

use super::Config;
use super::keys::KEYS;
use super::masking::mask;
use super::setting::{Effect, KeyDef, ValueType};

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
    if let Some(rule) = def.value_type.rule_text() {
        schema["x-rule"] = json!(rule);
    }
    if let Some(owner) = def.belongs_to {
        schema["x-belongs-to"] = json!(owner.key);
    }
    let effects = def.effects.iter().map(|effect| match effect {
        Effect::Containers => "containers",
        Effect::Files => "files",
        Effect::Object(kind) => kind.as_str(),
    });
    schema["x-effects"] = effects.collect();
    schema
}

impl ValueType {
    /// The rule of a text, as refusals say it; `None` where the type itself says what may be stored.
    fn rule_text(&self) -> Option<&'static str> {
        match self {
            // No rule lets a NUL pass.
            Self::Text(rule) | Self::List(rule) => rule("\0").err(),
            Self::Duration { zero: true } => Some("may be 0"),
            Self::Duration { zero: false } => Some("must be longer than 0"),
            Self::Boolean
            | Self::Integer(..)
            | Self::Number(..)
            | Self::Secret
            | Self::Choice(_)
            | Self::Object(_) => None,
        }
    }
}
