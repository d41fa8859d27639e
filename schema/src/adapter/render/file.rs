//! The agent's files: JSON or YAML, by their names.

use std::cell::Cell;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::super::depth::nests_deeper_than;

/// The longest file that is read or written.
pub(super) const MAX_FILE: usize = 4 << 20;
/// How deep a document may be nested. Below what the parsers take, so that what is written can
/// be read again.
pub(super) const MAX_DEPTH: usize = 100;
/// How much a YAML document may become: an alias stands for a whole part of it.
const MAX_EXPANDED: usize = 4 * MAX_FILE;
/// What a value costs of that besides its text, so that small ones are not for nothing.
const COST: usize = 8;
/// The most brackets that may be open in a YAML file: the scanner looks at each of them for each
/// token. Brackets in texts count too, so this is more than documents may be nested.
const MAX_OPEN_BRACKETS: usize = 1000;

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
            return Err("is longer than 4 MiB".to_owned());
        }
        let document = match self {
            Self::Json => serde_json::from_slice(bytes).map_err(|error| {
                let (line, column) = (error.line(), error.column());
                format!("is not JSON (line {line}, column {column})")
            })?,
            Self::Yaml => read_yaml(bytes, false)?,
            Self::YamlOfSecrets => read_yaml(bytes, true)?,
        };
        if !document.is_object() {
            return Err("is not a map of settings".to_owned());
        }
        if nests_deeper_than(&document, MAX_DEPTH) {
            return Err(format!("is nested deeper than {MAX_DEPTH} levels"));
        }
        Ok(document)
    }

    /// Writes a document: keys sorted, indented by two, a newline at the end.
    pub(super) fn write(self, document: &Value) -> Result<Vec<u8>, String> {
        let mut bytes = match self {
            Self::Json => serde_json::to_vec_pretty(document).map_err(|_| "cannot be written")?,
            Self::Yaml | Self::YamlOfSecrets => serde_yaml::to_string(document)
                .map_err(|_| "cannot be written")?
                .into_bytes(),
        };
        if bytes.last() != Some(&b'\n') {
            bytes.push(b'\n');
        }
        if bytes.len() > MAX_FILE {
            return Err("would be longer than 4 MiB".to_owned());
        }
        Ok(bytes)
    }
}

fn read_yaml(bytes: &[u8], secrets: bool) -> Result<Value, String> {
    let not_yaml = |error: &serde_yaml::Error| match error.location() {
        Some(at) => format!("is not YAML (line {}, column {})", at.line(), at.column()),
        None => "is not YAML".to_owned(),
    };
    if opens_too_many_brackets(bytes) {
        return Err(format!("is nested deeper than {MAX_DEPTH} levels"));
    }
    let budget = Cell::new(MAX_EXPANDED);
    let document = Any(&budget)
        .deserialize(serde_yaml::Deserializer::from_slice(bytes))
        .map_err(|error| match budget.get() {
            0 => "has aliases that stand for more than 16 MiB".to_owned(),
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
    Ok(document)
}

fn opens_too_many_brackets(bytes: &[u8]) -> bool {
    let mut open = 0_usize;
    bytes.iter().any(|byte| {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        open > MAX_OPEN_BRACKETS
    })
}

/// Reads any value, as long as there is budget for it. Names are texts, whatever they look like;
/// a name twice, a tag, or a name that is no scalar is refused: it could not be written back.
struct Any<'a>(&'a Cell<usize>);

impl Any<'_> {
    fn spend<E: Error>(&self, cost: usize) -> Result<(), E> {
        match self.0.get().checked_sub(cost + COST) {
            Some(rest) if rest > 0 => {
                self.0.set(rest);
                Ok(())
            }
            _ => {
                self.0.set(0);
                Err(E::custom("too long"))
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Any<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON has too")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.spend(0).map(|()| Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.spend(0).map(|()| Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.spend(0).map(|()| Value::from(value))
    }

    // As JSON parsers take numbers that long.
    #[allow(clippy::cast_precision_loss)]
    fn visit_i128<E: Error>(self, value: i128) -> Result<Value, E> {
        self.visit_f64(value as f64)
    }

    #[allow(clippy::cast_precision_loss)]
    fn visit_u128<E: Error>(self, value: u128) -> Result<Value, E> {
        self.visit_f64(value as f64)
    }

    // Infinity and what is not a number become null, and among secrets the text they were.
    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.spend(0).map(|()| Value::from(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.spend(value.len()).map(|()| Value::from(value))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.spend(0).map(|()| Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        self.visit_unit()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.spend(0)?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Any(self.0))? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.spend(0)?;
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            self.spend(name.len())?;
            let value = members.next_value_seed(Any(self.0))?;
            if map.insert(name, value).is_some() {
                return Err(A::Error::custom("a name twice"));
            }
        }
        Ok(Value::Object(map))
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
            number => serde_yaml::to_string(number).is_ok_and(|written| written.trim() == text),
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
            #[allow(clippy::cast_possible_truncation)]
            Some(float) if float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0 => {
                Value::from(float as i64)
            }
            _ => value.clone(),
        },
        _ => value.clone(),
    }
}
