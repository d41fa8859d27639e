//! A package for tests: the built-in one of the test agent, to be changed.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Adapter, InvalidPackage, builtin, package};

/// The documents of a package, by path.
#[derive(Clone)]
pub(super) struct TestPackage(BTreeMap<String, Value>);

impl TestPackage {
    pub(super) fn of(name: &str) -> Self {
        let files = builtin::files(name).unwrap().iter();
        let documents = files
            .filter(|(path, _)| *path != package::HASH)
            .map(|(path, bytes)| (path.to_string(), serde_json::from_slice(bytes).unwrap()));
        Self(documents.collect())
    }

    pub(super) fn echo() -> Self {
        Self::of("echo")
    }

    /// Sets a member, an element, or with `-` one element more; the parent must be there.
    pub(super) fn set(mut self, file: &str, pointer: &str, value: Value) -> Self {
        if pointer.is_empty() {
            self.0.insert(file.to_owned(), value);
            return self;
        }
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let document = self.0.get_mut(file).unwrap();
        match document.pointer_mut(parent).unwrap() {
            Value::Object(members) => {
                members.insert(name.replace("~1", "/"), value);
            }
            Value::Array(items) if name == "-" => items.push(value),
            Value::Array(items) => items[name.parse::<usize>().unwrap()] = value,
            other => panic!("{other} has no members"),
        }
        self
    }

    pub(super) fn remove(mut self, file: &str, pointer: &str) -> Self {
        if pointer.is_empty() {
            self.0.remove(file).unwrap();
            return self;
        }
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        match self.0.get_mut(file).unwrap().pointer_mut(parent).unwrap() {
            Value::Object(members) => {
                members.remove(name).unwrap();
            }
            Value::Array(items) => {
                items.remove(name.parse().unwrap());
            }
            other => panic!("{other} has no members"),
        }
        self
    }

    /// Goes through the same loader as any package, with a right hash list.
    pub(super) fn load(&self) -> Result<Adapter, InvalidPackage> {
        let mut files: Vec<(String, Vec<u8>)> = self
            .0
            .iter()
            .map(|(path, document)| (path.clone(), document.to_string().into_bytes()))
            .collect();
        let list: String = files
            .iter()
            .map(|(path, bytes)| format!("{}  {path}\n", hex::encode(Sha256::digest(bytes))))
            .collect();
        files.push((package::HASH.to_owned(), list.into_bytes()));
        let files: Vec<(&str, &[u8])> = files
            .iter()
            .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
            .collect();
        Adapter::from_files(package::from_memory(&files)?, false)
    }
}
