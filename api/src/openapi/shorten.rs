//! The short form of the document, without descriptions and examples of types, which are a third of its length.

use serde_json::{Map, Value};

use super::schemas::for_each_schema;

/// Removes descriptions and examples of types and of the fields of bodies, and the circumstances of codes. What is
/// said of operations, of parameters and of types that have no fields stays.
pub fn shorten(document: &mut Value) {
    if let Some(components) = document["components"].as_object_mut() {
        components.remove("x-failure-codes");
    }
    let schemas = document["components"]["schemas"].as_object_mut();
    for schema in schemas.into_iter().flat_map(Map::values_mut) {
        if has_parts(schema) {
            remove(schema, &["description", "example", "examples"]);
        }
    }
    let items = document["paths"].as_object_mut();
    let items = items.into_iter().flat_map(Map::values_mut);
    let operations = items.flat_map(|item| item.as_object_mut().into_iter());
    for operation in operations.flat_map(Map::values_mut) {
        let Some(body) = operation.get_mut("requestBody") else {
            continue;
        };
        let contents = body["content"].as_object_mut();
        for media in contents.into_iter().flat_map(Map::values_mut) {
            // Requests are made from the examples.
            remove(&mut media["schema"], &["description"]);
        }
    }
}

fn has_parts(schema: &Value) -> bool {
    ["properties", "allOf", "oneOf", "anyOf"]
        .iter()
        .any(|part| schema.get(part).is_some())
}

/// Removes keywords from a schema and from those in it.
pub(super) fn remove(schema: &mut Value, keywords: &[&str]) {
    for_each_schema(schema, &mut |schema| {
        schema.retain(|keyword, _| !keywords.contains(&keyword.as_str()));
    });
}
