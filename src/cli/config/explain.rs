//! `agentyard config get --modified` and `agentyard config explain`: the configuration beside the schema that the server gives.

use serde_json::{Value, json};

use super::{PATH, print_json};
use crate::cli::admin::escaped;
use crate::cli::output::cell::{at, cleaned, counted, text};
use crate::cli::output::clean::{clean, clean_lines};
use crate::cli::output::screen;
use crate::cli::server::Server;
use crate::cli::{Failure, Result, suggest};

const SCHEMA: &str = "/api/admin/config/schema";
/// Longer values are shown by `config get`.
const LONGEST: usize = 2000;

/// A key as the schema describes it.
struct Key<'a> {
    name: String,
    schema: &'a Value,
}

impl Key<'_> {
    /// Its value in a configuration.
    fn value<'v>(&self, document: &'v Value) -> &'v Value {
        let pointer = format!("/{}", self.name.replace('.', "/"));
        document.pointer(&pointer).unwrap_or(&Value::Null)
    }

    fn is_modified(&self, document: &Value) -> bool {
        let (value, default) = (self.value(document), &self.schema["default"]);
        match (value.as_f64(), default.as_f64()) {
            (Some(value), Some(default)) => value != default,
            _ => value != default,
        }
    }
}

/// The keys that a schema describes: they have a default, and groups have none.
fn list_keys<'a>(schema: &'a Value, group: &str, keys: &mut Vec<Key<'a>>) {
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let name = match group {
            "" => name.clone(),
            group => format!("{group}.{name}"),
        };
        match schema.get("default") {
            Some(_) => keys.push(Key { name, schema }),
            None => list_keys(schema, &name, keys),
        }
    }
}

/// Returns whether a key is this one, or one of this group.
fn is_within(key: &str, wanted: &str) -> bool {
    let rest = key.strip_prefix(wanted);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Prints the keys whose values are not their defaults.
///
/// # Errors
/// No server answers, it refuses, or there is no such key.
pub async fn print_modified(server: &Server, wanted: Option<&str>) -> Result {
    let document = server.get(PATH).await?;
    let answer = server.get(SCHEMA).await?;
    let mut keys = Vec::new();
    list_keys(&answer["schema"], "", &mut keys);
    if let Some(wanted) = wanted {
        keys.retain(|key| is_within(&key.name, wanted));
        if keys.is_empty() {
            return Err(unknown(&answer["schema"], wanted));
        }
    }
    keys.retain(|key| key.is_modified(&document));
    if keys.is_empty() {
        screen::note("every key has its default");
    }
    let mut shown = json!({});
    for key in &keys {
        let mut place = &mut shown;
        for name in key.name.split('.') {
            place = &mut place[name];
        }
        *place = key.value(&document).clone();
    }
    print_json(&shown)
}

fn unknown(schema: &Value, wanted: &str) -> Failure {
    let mut keys = Vec::new();
    list_keys(schema, "", &mut keys);
    let mut guesses = suggest::closest(wanted, keys.iter().map(|key| &key.name));
    if guesses.is_empty() {
        guesses = suggest::closest_keys(wanted);
    }
    let guess = suggest::did_you_mean(&guesses);
    Failure::NotFound(format!(
        "the server has no key {wanted:?}{guess}; `agentyard config get` lists the keys"
    ))
}

/// Explains a key, or names those of a group.
///
/// # Errors
/// No server answers, it refuses, or there is no such key.
pub async fn explain(server: &Server, wanted: &str) -> Result {
    let answer = server.get(SCHEMA).await?;
    let mut keys = Vec::new();
    list_keys(&answer["schema"], "", &mut keys);
    // A part of a document is explained by its key.
    let whole = super::part::find_place(wanted).map_or(wanted, |(key, _)| key);
    if let Some(key) = keys.iter().find(|key| key.name == whole) {
        let document = server.get(PATH).await?;
        let path = format!(
            "/api/admin/config/history?page=1&page_size=50&search={}",
            escaped(whole)
        );
        // Where the value is from is a help, not the matter.
        let history = server.get(&path).await.unwrap_or_default();
        return screen::print(&describe(key, &document, &history));
    }
    keys.retain(|key| is_within(&key.name, wanted));
    if keys.is_empty() {
        return Err(unknown(&answer["schema"], wanted));
    }
    let width = keys
        .iter()
        .map(|key| key.name.len())
        .max()
        .unwrap_or_default();
    let lines = keys.iter().map(|key| {
        let title = cleaned(key.schema, "title");
        format!("{:width$}  {title}\n", clean(&key.name))
    });
    screen::print(&lines.collect::<String>())
}

/// Everything about a key.
fn describe(key: &Key<'_>, document: &Value, history: &Value) -> String {
    let schema = key.schema;
    let mut lines = vec![clean(&key.name)];
    let mut add = |name: &str, text: String| {
        if !text.is_empty() {
            lines.push(format!("{:14}{text}", format!("{name}:")));
        }
    };
    add("title", cleaned(schema, "title"));
    add("description", cleaned(schema, "description"));
    add("type", type_of(schema));
    add("rule", limits(schema));
    add("default", shown(&schema["default"]));
    if schema["secret"] == true {
        add(
            "secret",
            "yes: the value is stored encrypted and never shown".to_owned(),
        );
    }
    add("belongs to", belongs_to(schema));
    add("effect", effects(schema));
    add("value", shown(key.value(document)));
    add("set", origin(key, document, history));
    lines.join("\n") + "\n"
}

fn type_of(schema: &Value) -> String {
    let text = match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("boolean"), _) => "true or false",
        (Some("integer"), _) => "whole number",
        (Some("number"), _) => "number",
        (Some("array"), _) => "list of texts, as JSON",
        (Some("object"), _) => "JSON object; parts are set as KEY.PART=VALUE",
        (Some("string"), Some("duration-text")) => "duration, such as 90s, 30m, 24h or 7d",
        (Some("string"), _) => "text",
        (other, _) => other.unwrap_or_default(),
    };
    clean(text)
}

fn limits(schema: &Value) -> String {
    let words = schema["enum"].as_array().into_iter().flatten();
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    if !words.is_empty() {
        return clean(&format!("one of {}", words.join(", ")));
    }
    match (&schema["minimum"], &schema["maximum"]) {
        (Value::Number(min), Value::Number(max)) => format!("from {min} to {max}"),
        _ => cleaned(schema, "x-rule"),
    }
}

fn belongs_to(schema: &Value) -> String {
    match cleaned(schema, "x-belongs-to").as_str() {
        "" => String::new(),
        key => format!("the host of {key}: when that changes, send it again"),
    }
}

/// Describes effects of a change on running agents and objects.
fn effects(schema: &Value) -> String {
    let Some(effects) = schema["x-effects"].as_array() else {
        return String::new();
    };
    let effects = effects
        .iter()
        .filter_map(Value::as_str)
        .map(|effect| match effect {
            "containers" => "running containers are recreated, in steps".to_owned(),
            "files" => {
                "agents' files are rewritten and running agents restarted, in steps".to_owned()
            }
            kind => format!("the {} is reconciled again", clean(kind)),
        });
    let effects: Vec<String> = effects.collect();
    match effects.is_empty() {
        true => "in effect at once; nothing is restarted".to_owned(),
        false => effects.join("; "),
    }
}

/// A value for people; a long one in brief.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::Array(items) if items.is_empty() => "[]".to_owned(),
        value => value.to_string(),
    };
    match text.len() > LONGEST {
        true => format!(
            "{}; `agentyard config get` shows it",
            counted(text.len() as u64, "byte")
        ),
        false => clean_lines(&text),
    }
}

/// Where a value is from: the newest revision that has changed the key.
fn origin(key: &Key<'_>, document: &Value, history: &Value) -> String {
    if !key.is_modified(document) {
        return "no; the default is in effect".to_owned();
    }
    let names = |revision: &&Value| {
        let changes = revision["changes"].as_array().into_iter().flatten();
        changes
            .map(|change| text(change, "key"))
            .any(|name| name == key.name)
    };
    let revisions = at(history, "history").as_array().into_iter().flatten();
    match revisions.filter(|revision| !revision.is_null()).find(names) {
        Some(revision) => {
            let of = |name: &str| cleaned(revision, name);
            format!(
                "by {} at {} (revision {})",
                of("actor"),
                of("at"),
                of("revision")
            )
        }
        None => "yes".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(name: &str, document: &Value, history: &Value) -> String {
        let schema = schema::config::json_schema();
        let mut keys = Vec::new();
        list_keys(&schema, "", &mut keys);
        let key = keys.iter().find(|key| key.name == name).unwrap();
        describe(key, document, history)
    }

    #[test]
    fn every_key_is_found_in_the_schema_and_is_explained() {
        let schema = schema::config::json_schema();
        let mut keys = Vec::new();
        list_keys(&schema, "", &mut keys);
        let names: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
        let mut expected: Vec<&str> = schema::config::KEYS.keys().copied().collect();
        expected.sort_by_key(|name| name.split('.').collect::<Vec<_>>());
        let mut found = names.clone();
        found.sort_by_key(|name| name.split('.').collect::<Vec<_>>());
        assert_eq!(found, expected);
        let document = schema::config::Config::default().to_document(true);
        for key in &keys {
            assert!(!key.is_modified(&document), "{}", key.name);
            let text = describe(key, &document, &Value::Null);
            for part in [
                "title: ",
                "type: ",
                "default: ",
                "effect: ",
                "the default is in effect",
            ] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }

    #[test]
    fn value_limits_and_origin_of_a_key_are_shown() {
        let document = json!({"container": {"pids_limit": 77}});
        let history = json!({"history": [
            {"revision": 9, "actor": "eve", "at": "x", "changes": [{"key": "container.pids_limit_other"}]},
            {"revision": 7, "actor": "admin", "at": "2026-05-11T11:46:40Z", "changes": [{"key": "container.pids_limit"}]}]});
        let text = explained("container.pids_limit", &document, &history);
        for part in [
            "from ",
            "77",
            "by admin at 2026-05-11T11:46:40Z (revision 7)",
            "recreated",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = explained(
            "image.registry_password",
            &json!({"image": {"registry_password": "********"}}),
            &Value::Null,
        );
        assert!(
            text.contains("never shown") && text.contains("belongs to"),
            "{text}"
        );
    }
}
