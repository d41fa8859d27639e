//! Parts of the keys that hold whole documents, such as `agent.model_list`: read, merged and saved together.

use std::collections::BTreeMap;

use reqwest::Method;
use reqwest::header::HeaderMap;
use schema::config::{ValueType, check_integers, find};
use serde_json::{Map, Value, json};

use super::PATH;
use crate::cli::server::Server;
use crate::cli::{Failure, Result};

/// The header with the generation that a save is compared with.
const GENERATION: &str = "x-config-generation";

/// The key that holds a document, and the names on the way to a place in it.
///
/// `agent.tools.mcp` is `tools`, `mcp` in `agent`; `None` for what is no place in a document.
pub fn find_place(dotted: &str) -> Option<(&'static str, Vec<String>)> {
    let ends = dotted.match_indices('.').map(|(end, _)| end);
    ends.filter_map(|end| Some((dotted.get(..end)?, dotted.get(end + 1..)?)))
        .find_map(|(key, rest)| {
            let def = find(key).filter(|def| matches!(def.value_type, ValueType::Object(_)))?;
            let names: Vec<String> = rest.split('.').map(str::to_owned).collect();
            let is_whole = names.iter().all(|name| !name.is_empty());
            is_whole.then_some((def.key, names))
        })
}

/// The value of a part: JSON, else the text as it stands.
///
/// # Errors
/// [`Failure::Usage`] for a number that would lose digits.
pub fn read_value(place: &str, text: &str) -> Result<Value> {
    match serde_json::from_str(text) {
        Err(_) => Ok(Value::from(text)),
        Ok(value) => match check_integers(text) {
            Ok(()) => Ok(value),
            Err(problem) => Err(Failure::Usage(format!("{place}: {}", problem.message))),
        },
    }
}

/// Changes of parts, as one JSON Merge Patch (RFC 7396) for each key.
#[derive(Debug, Default)]
pub struct Parts(BTreeMap<&'static str, Value>);

impl Parts {
    /// Adds a change of a part; `null` removes it.
    ///
    /// # Errors
    /// [`Failure::Usage`] if another change is of the same place, or of one in it.
    pub fn add(&mut self, key: &'static str, names: &[String], value: Value) -> Result {
        let twice = || {
            let place = format!("{key}.{}", names.join("."));
            Failure::Usage(format!(
                "{place} is set twice, once as a part of another value"
            ))
        };
        let (last, way) = names.split_last().ok_or_else(twice)?;
        let mut place = self.0.entry(key).or_insert_with(|| json!({}));
        for name in way {
            let members = place.as_object_mut().ok_or_else(twice)?;
            place = members.entry(name).or_insert_with(|| json!({}));
        }
        let members = place.as_object_mut().ok_or_else(twice)?;
        match members.insert(last.clone(), value) {
            None => Ok(()),
            Some(_) => Err(twice()),
        }
    }

    /// Keys of which parts change.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The whole new value of each key. Masked leaves of the present ones stay masked, which leaves them as they are.
    ///
    /// # Errors
    /// [`Failure::Usage`] for a place in what is no object.
    pub fn merge_into(self, document: &Value) -> Result<Map<String, Value>> {
        let mut merged = Map::new();
        for (key, patch) in self.0 {
            let pointer = format!("/{}", key.replace('.', "/"));
            let mut value = document.pointer(&pointer).cloned().unwrap_or_default();
            merge(key, &mut value, patch)?;
            merged.insert(key.to_owned(), value);
        }
        Ok(merged)
    }
}

/// Applies a merge patch; what is a list or a text is never made an object by the way.
fn merge(place: &str, target: &mut Value, patch: Value) -> Result {
    let Value::Object(patch) = patch else {
        *target = patch;
        return Ok(());
    };
    if target.is_null() {
        *target = json!({});
    }
    let Value::Object(members) = target else {
        let what = if target.is_array() {
            "a list"
        } else {
            "no object"
        };
        return Err(Failure::Usage(format!(
            "{place} is {what}, which is replaced as a whole: set {place} itself, such as {place}=@file.json"
        )));
    };
    for (name, value) in patch {
        if value.is_null() {
            members.remove(&name);
            continue;
        }
        let member = members.entry(&name).or_insert(Value::Null);
        merge(&format!("{place}.{name}"), member, value)?;
    }
    Ok(())
}

/// The configuration, with the generation that a save of it is compared with.
///
/// # Errors
/// No server answers, or it refuses.
pub async fn read_document(server: &Server) -> Result<(Value, i64)> {
    let answer = server.open(server.request(Method::GET, PATH)).await?;
    let generation = generation(answer.headers());
    let document = server.read(answer).await?;
    let generation = generation.ok_or_else(|| {
        let why = "the server does not say which generation its configuration has; it may be of another version";
        Failure::Failed(why.to_owned())
    })?;
    Ok((document, generation))
}

fn generation(headers: &HeaderMap) -> Option<i64> {
    headers.get(GENERATION)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_in_documents_only() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        for (dotted, expected) in [
            ("agent.model_list", Some(("agent", names(&["model_list"])))),
            ("security.a.b", Some(("security", names(&["a", "b"])))),
            ("mcp.policy.mode", Some(("mcp.policy", names(&["mode"])))),
            ("agent", None),
            ("agent.", None),
            ("agent.a..b", None),
            ("image.tag.x", None),
            ("no.such", None),
        ] {
            assert_eq!(find_place(dotted), expected, "{dotted}");
        }
    }

    fn merged(document: &Value, changes: &[(&str, Value)]) -> Result<Value, String> {
        let mut parts = Parts::default();
        for (place, value) in changes {
            let (key, names) = find_place(place).unwrap();
            let added = parts.add(key, &names, value.clone());
            added.map_err(|failure| failure.to_string())?;
        }
        let merged = parts.merge_into(document);
        let merged = merged.map_err(|failure| failure.to_string())?;
        Ok(Value::Object(merged))
    }

    #[test]
    fn parts_are_merged_and_the_rest_stays() {
        let document = json!({"agent": {"a": {"b": 1, "c": 2}, "key": "********", "list": [1]}});
        let changes = [
            ("agent.a.b", json!(3)),
            ("agent.a.c", Value::Null),
            ("agent.list", json!([{"x": null}])),
            ("agent.new.deep", json!({"y": true, "z": null})),
        ];
        let expected = json!({"agent": {"a": {"b": 3}, "key": "********", "list": [{"x": null}],
            "new": {"deep": {"y": true}}}});
        assert_eq!(merged(&document, &changes).unwrap(), expected);
        let none = merged(&json!({}), &[("security.a", json!("x"))]).unwrap();
        assert_eq!(none, json!({"security": {"a": "x"}}));
    }

    #[test]
    fn lists_texts_and_overlaps_are_refused() {
        let document = json!({"agent": {"list": [1], "text": "x"}});
        for (changes, part) in [
            (vec![("agent.list.0", json!(1))], "agent.list is a list"),
            (vec![("agent.text.a", json!(1))], "agent.text is no object"),
            (vec![("agent.a", json!(1)), ("agent.a", json!(2))], "twice"),
            (
                vec![("agent.a", json!(1)), ("agent.a.b", json!(2))],
                "twice",
            ),
            (
                vec![("agent.a.b", json!(1)), ("agent.a", json!({}))],
                "twice",
            ),
        ] {
            let why = merged(&document, &changes).unwrap_err();
            assert!(why.contains(part), "{part}: {why}");
        }
    }

    #[test]
    fn values_are_json_or_text() {
        for (text, expected) in [
            ("1", json!(1)),
            ("true", json!(true)),
            ("[\"a\"]", json!(["a"])),
            ("\"1\"", json!("1")),
            ("gpt-5", json!("gpt-5")),
            ("", json!("")),
        ] {
            assert_eq!(read_value("agent.a", text).unwrap(), expected, "{text}");
        }
        let why = read_value("agent.a", "123456789012345678901234567890").unwrap_err();
        assert!(why.to_string().starts_with("agent.a: "), "{why}");
    }
}
