//! The agent's files: JSON or YAML, by their names.

use std::cell::Cell;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::super::depth::{MAX_NODES, directives, nests_deeper_than, nodes, scan_json, scan_yaml};
use super::super::strict::Strict;
use super::yaml;

/// The longest file that is read or written.
pub(super) const MAX_FILE: usize = 1 << 20;
/// How deep a document may be nested. Below what the parsers take, so that what is written can
/// be read again.
pub(super) const MAX_DEPTH: usize = 64;
/// How much a YAML document may become: an alias stands for a whole part of it.
const MAX_EXPANDED: usize = 4 * MAX_FILE;
/// How much more than it may be a YAML file may seem to be, because of what stands in texts. The parser goes through each
/// open bracket for each token.
const YAML_TEXTS: usize = 2;

/// Most lines of a YAML file that are directives, or look like one.
const MAX_DIRECTIVES: usize = 32;

/// The name under which a YAML map takes over another.
const MERGE: &str = "<<";

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    /// A plain text that reads as a number stays a number when it is written as one would be.
    Yaml,
    /// A plain text that reads as a number, but would be written differently, is a text: `1e5`
    /// or `007` among secrets is a password, and no number (L21).
    YamlOfSecrets,
}

impl Format {
    pub(super) fn of(path: &str, secrets: bool) -> Self {
        let yaml = path.ends_with(".yml") || path.ends_with(".yaml");
        match (yaml, secrets) {
            (false, _) => Self::Json,
            (true, false) => Self::Yaml,
            (true, true) => Self::YamlOfSecrets,
        }
    }

    /// Reads a file. The error is the rest of the sentence "`<file>` …"; it never quotes the file.
    pub(super) fn read(self, bytes: &[u8]) -> Result<Value, String> {
        if bytes.len() > MAX_FILE {
            return Err("is longer than 1 MiB".to_owned());
        }
        let document = match self {
            Self::Json => read_json(bytes)?,
            Self::Yaml => read_yaml(bytes, false)?,
            Self::YamlOfSecrets => read_yaml(bytes, true)?,
        };
        if !document.is_object() {
            return Err("is not a map of settings".to_owned());
        }
        if nests_deeper_than(&document, MAX_DEPTH) {
            return Err(too_deep());
        }
        if nodes(&document) > MAX_NODES {
            return Err(too_many_values());
        }
        Ok(document)
    }

    /// Writes a document: keys sorted, indented by two, a newline at the end.
    pub(super) fn write(self, document: &Value) -> Result<Vec<u8>, String> {
        let mut bytes = match self {
            Self::Json => serde_json::to_vec_pretty(document).map_err(|_| "cannot be written")?,
            Self::Yaml | Self::YamlOfSecrets => yaml::write(document).into_bytes(),
        };
        if bytes.last() != Some(&b'\n') {
            bytes.push(b'\n');
        }
        if bytes.len() > MAX_FILE {
            return Err("would be longer than 1 MiB".to_owned());
        }
        Ok(bytes)
    }
}

fn too_deep() -> String {
    format!("is nested deeper than {MAX_DEPTH} levels")
}

fn too_many_values() -> String {
    format!("has more than {MAX_NODES} values")
}

fn read_json(bytes: &[u8]) -> Result<Value, String> {
    let extent = scan_json(bytes);
    if extent.depth > MAX_DEPTH {
        return Err(too_deep());
    }
    if extent.nodes > MAX_NODES {
        return Err(too_many_values());
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        format!("is not JSON (line {line}, column {column})")
    })
}

fn read_yaml(bytes: &[u8], secrets: bool) -> Result<Value, String> {
    let not_yaml = |error: &serde_yaml::Error| match error.location() {
        Some(at) => format!("is not YAML (line {}, column {})", at.line(), at.column()),
        None => "is not YAML".to_owned(),
    };
    let extent = scan_yaml(bytes);
    if extent.depth > YAML_TEXTS * MAX_DEPTH {
        return Err(too_deep());
    }
    if extent.nodes > YAML_TEXTS * MAX_NODES {
        return Err(too_many_values());
    }
    if directives(bytes) > MAX_DIRECTIVES {
        return Err(format!("has more than {MAX_DIRECTIVES} directives"));
    }
    let budget = Cell::new(MAX_EXPANDED);
    let document = Strict(&budget)
        .deserialize(serde_yaml::Deserializer::from_slice(bytes))
        .map_err(|error| match budget.get() {
            0 => "has aliases that stand for more than 4 MiB".to_owned(),
            _ => not_yaml(&error),
        })?;
    let document = match document {
        // A file with nothing but comments is a map without members.
        Value::Null => return Ok(Value::Object(Map::new())),
        document if secrets => Texts(&document)
            .deserialize(serde_yaml::Deserializer::from_slice(bytes))
            .map_err(|error| not_yaml(&error))?,
        document => document,
    };
    Ok(merged(document))
}

/// Applies merge keys (`<<: *alias`): what is written back has no aliases, so there the key would
/// be a name like any other. Quoted or not: the parser does not say. What a map says itself wins, then what is merged first.
fn merged(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(merged).collect(),
        Value::Object(members) => {
            let mut map: Map<String, Value> = members
                .into_iter()
                .map(|(name, member)| (name, merged(member)))
                .collect();
            let others = match map.get(MERGE) {
                Some(Value::Object(_)) => map.remove(MERGE).into_iter().collect(),
                Some(Value::Array(items)) if items.iter().all(Value::is_object) => {
                    match map.remove(MERGE) {
                        Some(Value::Array(items)) => items,
                        _ => Vec::new(),
                    }
                }
                _ => Vec::new(),
            };
            for other in others {
                if let Value::Object(members) = other {
                    for (name, member) in members {
                        map.entry(name).or_insert(member);
                    }
                }
            }
            Value::Object(map)
        }
        other => other,
    }
}

/// Reads a document a second time, along what it was the first time, and takes numbers that would
/// be written differently as the texts they are.
struct Texts<'a>(&'a Value);

impl<'de> DeserializeSeed<'de> for Texts<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.0 {
            Value::Number(_) | Value::Null => deserializer.deserialize_str(self),
            Value::Object(_) => deserializer.deserialize_map(self),
            Value::Array(_) => deserializer.deserialize_seq(self),
            Value::Bool(_) | Value::String(_) => {
                IgnoredAny::deserialize(deserializer)?;
                Ok(self.0.clone())
            }
        }
    }
}

impl<'de> Visitor<'de> for Texts<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what it was the first time")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        let same = match self.0 {
            Value::Null => text.is_empty() || text == "~" || text.eq_ignore_ascii_case("null"),
            number => yaml::scalar(number) == text,
        };
        Ok(if same {
            self.0.clone()
        } else {
            Value::from(text)
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        for item in self.0.as_array().into_iter().flatten() {
            let item = items
                .next_element_seed(Texts(item))?
                .ok_or_else(|| A::Error::custom("an element less"))?;
            list.push(item);
        }
        match items.next_element::<IgnoredAny>()? {
            None => Ok(Value::Array(list)),
            Some(_) => Err(A::Error::custom("an element more")),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let first = self
                .0
                .get(&name)
                .ok_or_else(|| A::Error::custom("another name"))?;
            let value = members.next_value_seed(Texts(first))?;
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

/// A value in the one form that equal values have: agents write `1.0` as `1`.
pub(super) fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| (name.clone(), canonical(member)))
            .collect(),
        Value::Array(items) => items.iter().map(canonical).collect(),
        Value::Number(number) if number.is_f64() => match number.as_f64() {
            // Beyond 2^53 not every whole number has a float.
            Some(float) if float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0 => {
                Value::from(float as i64)
            }
            _ => value.clone(),
        },
        _ => value.clone(),
    }
}
