//! The desired content of a file, apart from what the user and the agent keep in it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::super::path::SettingPath;
use super::managed::ManagedFile;

/// Settings of one file. A value is set whole; in an object others keep what is theirs.
#[derive(Clone)]
pub(in super::super) enum Desired {
    Object(BTreeMap<String, Desired>),
    Value(Value),
}

impl Desired {
    pub(super) fn nothing() -> Self {
        Self::Object(BTreeMap::new())
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::Object(members) => Self::Object(
                members
                    .iter()
                    .map(|(name, member)| (name.clone(), Self::of(member)))
                    .collect(),
            ),
            other => Self::Value(other.clone()),
        }
    }

    /// Lays a document over these settings.
    pub(super) fn merge(&mut self, document: &Value) {
        match (self, document) {
            (Self::Object(members), Value::Object(more)) => {
                for (name, value) in more {
                    match members.get_mut(name) {
                        Some(member) => member.merge(value),
                        None => {
                            members.insert(name.clone(), Self::of(value));
                        }
                    }
                }
            }
            (this, other) => *this = Self::of(other),
        }
    }

    /// Sets a value at a place, whatever was on the way there.
    pub(in super::super) fn set(&mut self, path: &SettingPath, value: Value) {
        let mut at = self;
        for name in path.names() {
            if let Self::Value(_) = at {
                *at = Self::nothing();
            }
            let Self::Object(members) = at else { return };
            at = members.entry(name.clone()).or_insert_with(Self::nothing);
        }
        *at = Self::Value(value);
    }

    /// Every value with its place, in order.
    pub(super) fn values(&self) -> BTreeMap<SettingPath, &Value> {
        let mut values = BTreeMap::new();
        self.collect(SettingPath::default(), &mut values, &mut BTreeSet::new());
        values
    }

    fn objects(&self) -> BTreeSet<SettingPath> {
        let mut objects = BTreeSet::new();
        self.collect(SettingPath::default(), &mut BTreeMap::new(), &mut objects);
        objects
    }

    fn collect<'a>(
        &'a self,
        path: SettingPath,
        values: &mut BTreeMap<SettingPath, &'a Value>,
        objects: &mut BTreeSet<SettingPath>,
    ) {
        match self {
            Self::Value(value) => {
                values.insert(path, value);
            }
            Self::Object(members) => {
                for (name, member) in members {
                    member.collect(path.join(name), values, objects);
                }
                objects.insert(path);
            }
        }
    }

    /// Makes a file hold these settings: what was set `before` and is not any more goes, what is
    /// set comes, everything else stays. Returns what is set now.
    pub(super) fn apply(&self, document: &mut Value, before: &ManagedFile) -> ManagedFile {
        let values: BTreeSet<SettingPath> = self.values().into_keys().collect();
        let objects = self.objects();
        for path in before.values.difference(&values) {
            // An object in its place takes what it needs there; the rest is somebody's own.
            if !objects.contains(path) {
                remove(document, path);
            }
        }
        let mut made = BTreeSet::new();
        self.lay_over(document, &SettingPath::default(), &mut made);
        // The innermost first: one that only held another is empty then.
        for path in before.objects.iter().rev() {
            if !objects.contains(path) && member(document, path).is_some_and(is_empty_object) {
                remove(document, path);
            }
        }
        let kept = before.objects.intersection(&objects).cloned();
        ManagedFile {
            objects: made.into_iter().chain(kept).collect(),
            values,
        }
    }

    fn lay_over(&self, place: &mut Value, path: &SettingPath, made: &mut BTreeSet<SettingPath>) {
        let members = match self {
            Self::Value(value) => {
                *place = value.clone();
                return;
            }
            Self::Object(members) => members,
        };
        if !place.is_object() {
            *place = Value::Object(Map::new());
            made.insert(path.clone());
        }
        let Some(there) = place.as_object_mut() else {
            return;
        };
        for (name, desired) in members {
            // Null is no object, so an object that is made here is noted as such.
            let member = there.entry(name.clone()).or_insert(Value::Null);
            desired.lay_over(member, &path.join(name), made);
        }
    }
}

fn is_empty_object(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

/// The value at a place, through objects only: settings never reach into a list.
pub(super) fn member<'a>(document: &'a Value, path: &SettingPath) -> Option<&'a Value> {
    path.names()
        .iter()
        .try_fold(document, |value, name| value.as_object()?.get(name))
}

fn remove(document: &mut Value, path: &SettingPath) {
    let Some((last, way)) = path.names().split_last() else {
        return;
    };
    let parent = way
        .iter()
        .try_fold(document, |value, name| value.as_object_mut()?.get_mut(name))
        .and_then(Value::as_object_mut);
    if let Some(parent) = parent {
        parent.remove(last);
    }
}
