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
