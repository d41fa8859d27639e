//! Places in settings documents.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One step of a JSON pointer.
pub(crate) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A place in a document: the names on the way from its root. Packages write it with dots
/// (`channels.chat.token`); it is stored and reported as a JSON pointer, because names that come
/// from elsewhere (a cookie's domain) may have dots themselves.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct SettingPath(Vec<String>);

impl SettingPath {
    /// The place that a package writes as `text`.
    pub(super) fn dotted(text: &str) -> Self {
        Self(text.split('.').map(str::to_owned).collect())
    }

    /// The names, from the root on.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The place `name` in this place.
    pub fn join(&self, name: &str) -> Self {
        let mut names = self.0.clone();
        names.push(name.to_owned());
        Self(names)
    }

    /// Whether this is `other` or lies in it.
    pub fn is_in(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Whether one of the two lies in the other, or they are the same.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.is_in(other) || other.is_in(self)
    }

    /// Whether a name is the pattern `*`.
    pub(super) fn has_star(&self) -> bool {
        self.0.iter().any(|name| name == "*")
    }

    /// The names before and after the first `*`.
    pub(super) fn split_at_star(&self) -> Option<(&[String], &[String])> {
        let at = self.0.iter().position(|name| name == "*")?;
        Some((&self.0[..at], &self.0[at + 1..]))
    }

    /// With dots, as packages write it.
    pub fn to_dotted(&self) -> String {
        self.0.join(".")
    }
}

impl fmt::Display for SettingPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in &self.0 {
            write!(f, "/{}", escape(name))?;
        }
        Ok(())
    }
}

impl From<SettingPath> for String {
    fn from(path: SettingPath) -> Self {
        path.to_string()
    }
}

impl TryFrom<String> for SettingPath {
    type Error = &'static str;

    fn try_from(pointer: String) -> Result<Self, Self::Error> {
        if pointer.is_empty() {
            return Ok(Self::default());
        }
        let names = pointer
            .strip_prefix('/')
            .ok_or("must be a JSON pointer")?
            .split('/')
            .map(|name| name.replace("~1", "/").replace("~0", "~"));
        Ok(Self(names.collect()))
    }
}

/// The value in one step: a member of an object or an element of a list.
fn step<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(members) => members.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    }
}

fn step_mut<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    match value {
        Value::Object(members) => members.get_mut(name),
        Value::Array(items) => items.get_mut(name.parse::<usize>().ok()?),
        _ => None,
    }
}

/// The value at a place.
pub(super) fn get<'a>(document: &'a Value, names: &[String]) -> Option<&'a Value> {
    names
        .iter()
        .try_fold(document, |value, name| step(value, name))
}

/// The value at a place, to be changed.
pub(super) fn get_mut<'a>(document: &'a mut Value, names: &[String]) -> Option<&'a mut Value> {
    names
        .iter()
        .try_fold(document, |value, name| step_mut(value, name))
}

/// Removes the member at a place; elements of lists are never removed.
pub(super) fn take(document: &mut Value, names: &[String]) -> Option<Value> {
    let (last, way) = names.split_last()?;
    get_mut(document, way)?.as_object_mut()?.remove(last)
}

/// Puts a value at a place, making the objects on the way to it. Gives the value back when
/// something that is no object is in the way; null is nothing, and in nobody's way.
pub(super) fn put(document: &mut Value, names: &[String], value: Value) -> Result<(), Value> {
    let Some((name, rest)) = names.split_first() else {
        *document = value;
        return Ok(());
    };
    if document.is_null() {
        *document = Value::Object(Map::new());
    }
    match document {
        Value::Object(members) if rest.is_empty() => {
            members.insert(name.clone(), value);
            Ok(())
        }
        // Checked before anything is made, so that a refused value leaves no trace.
        Value::Object(members) => match members.get_mut(name) {
            Some(member) => put(member, rest, value),
            None => {
                let made = rest.iter().rev().fold(value, |inner, name| {
                    Value::Object(Map::from_iter([(name.clone(), inner)]))
                });
                members.insert(name.clone(), made);
                Ok(())
            }
        },
        Value::Array(items) => match name.parse::<usize>().ok().and_then(|at| items.get_mut(at)) {
            Some(item) => put(item, rest, value),
            None => Err(value),
        },
        _ => Err(value),
    }
}
