//! Templates of what is written for a model.

use serde_json::{Map, Value};

pub(super) const NAME: &str = "${name}";
pub(super) const MODEL: &str = "${model}";
pub(super) const ADDRESS: &str = "${address}";
pub(super) const KEY: &str = "${key}";
const PLACEHOLDERS: [&str; 4] = [NAME, MODEL, ADDRESS, KEY];

/// Collects all texts in a value.
pub(super) fn collect_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(members) => {
            members
                .values()
                .for_each(|value| collect_texts(value, texts));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns true when a text has no other placeholders.
pub(super) fn is_template(text: &str) -> bool {
    let rest = PLACEHOLDERS
        .iter()
        .fold(text.to_owned(), |text, name| text.replace(name, ""));
    !rest.contains("${")
}

/// Fills a template in one pass: a value that looks like a placeholder stays as it is.
fn fill(template: &Value, values: &[(&str, &str)]) -> Value {
    match template {
        Value::String(text) => Value::from(fill_text(text, values)),
        Value::Array(items) => items.iter().map(|item| fill(item, values)).collect(),
        Value::Object(members) => Value::Object(fill_map(members, values)),
        other => other.clone(),
    }
}

/// Fills the texts in an object.
pub(super) fn fill_map(
    members: &Map<String, Value>,
    values: &[(&str, &str)],
) -> Map<String, Value> {
    let filled = members.iter();
    filled
        .map(|(name, value)| (name.clone(), fill(value, values)))
        .collect()
}

fn fill_text(mut text: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::new();
    while let Some(at) = text.find("${") {
        let (before, rest) = text.split_at(at);
        filled.push_str(before);
        let named = values
            .iter()
            .find_map(|(name, value)| Some((*value, rest.strip_prefix(name)?)));
        match named {
            Some((value, after)) => {
                filled.push_str(value);
                text = after;
            }
            None => {
                filled.push_str("${");
                text = rest.get(2..).unwrap_or_default();
            }
        }
    }
    filled + text
}
