//! The JSON Schema of the frames.

use serde_json::{Value, json};

use super::protocol::{PageFrame, ServerFrame};
use crate::openapi::Schemas;

const REFERENCE: &str = "#/components/schemas/";

/// The schema of the frames between the service and a page.
pub(crate) fn schema_document() -> Value {
    let mut schemas = Schemas::default();
    let server = schemas.reference::<ServerFrame<'static>>();
    let page = schemas.reference::<PageFrame>();
    let definitions = schemas.finish().unwrap_or_default();
    let mut document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Agentyard chat",
        "description": "Frames of GET /api/agent/chat/ws: each is one JSON text.",
        "anyOf": [server, page],
        "$defs": definitions,
    });
    point_to_definitions(&mut document);
    document
}

fn point_to_definitions(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::String(text) if key == "$ref" => {
                        if let Some(name) = text.strip_prefix(REFERENCE) {
                            *text = format!("#/$defs/{name}");
                        }
                    }
                    value => point_to_definitions(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(point_to_definitions),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chat::talk::frames_of_all_kinds;

    #[test]
    fn schema_is_that_of_the_console() {
        let text = format!("{:#}\n", schema_document());
        insta::assert_binary_snapshot!("chat_schema.json", text.into_bytes());
    }

    #[test]
    fn frames_fit_the_schema() {
        let schema = jsonschema::validator_for(&schema_document()).unwrap();
        for frame in frames_of_all_kinds() {
            let errors: Vec<String> = schema
                .iter_errors(&frame)
                .map(|it| it.to_string())
                .collect();
            assert!(errors.is_empty(), "{frame}: {errors:?}");
        }
        assert!(!schema.is_valid(&json!({"type": "entry"})));
    }
}
