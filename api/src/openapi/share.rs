//! Responses that several operations have in common.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Moves responses that more than one operation has out of the operations, and returns them by name.
pub(super) fn take_shared_responses(paths: &mut Value) -> Map<String, Value> {
    let mut counts: BTreeMap<String, (Value, usize)> = BTreeMap::new();
    for_each_response(paths, |name, response| {
        let (first, count) = counts.entry(name).or_insert((response.clone(), 0));
        *count += usize::from(first == response);
    });
    counts.retain(|_, (_, count)| *count > 1);
    for_each_response(paths, |name, response| {
        if counts
            .get(&name)
            .is_some_and(|(first, _)| first == response)
        {
            *response = json!({"$ref": format!("#/components/responses/{name}")});
        }
    });
    let named = counts.into_iter();
    named
        .map(|(name, (response, _))| (name, response))
        .collect()
}

/// Calls a function with each response that a name can be made for.
fn for_each_response(paths: &mut Value, mut call: impl FnMut(String, &mut Value)) {
    let items = paths.as_object_mut().into_iter().flat_map(Map::values_mut);
    let operations = items.flat_map(|item| item.as_object_mut().into_iter());
    for operation in operations.flat_map(Map::values_mut) {
        let responses = operation["responses"].as_object_mut();
        for (status, response) in responses.into_iter().flatten() {
            if let Some(name) = name(status, response) {
                call(name, response);
            }
        }
    }
}

/// Names a response after the schema of its JSON.
fn name(status: &str, response: &Value) -> Option<String> {
    let schema = &response["content"]["application/json"]["schema"];
    let parts = schema["allOf"].as_array();
    let named = parts.and_then(|parts| parts.last()).unwrap_or(schema);
    let name = named["$ref"].as_str()?.rsplit('/').next()?;
    let status = if status == "200" { "" } else { status };
    Some(format!("{name}{status}"))
}
