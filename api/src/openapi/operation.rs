//! One route as an operation of the document.

use serde_json::{Map, Value, json};

use super::{Shape, example, failure};
use crate::answer::Body;
use crate::input::{FILE, MOST_FILES};
use crate::route::{Access, BodyKind, Route, Waits};

/// How fields may be sent.
const FIELD_TYPES: [&str; 3] = [
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "application/json",
];

/// The operation object.
pub(super) fn of(route: &Route, shape: &Shape, schemas: &Map<String, Value>) -> Map<String, Value> {
    let mut operation = Map::from_iter([
        ("operationId".to_owned(), json!(route.id)),
        ("tags".to_owned(), json!([route.area.to_string()])),
        ("summary".to_owned(), json!(route.title)),
        ("description".to_owned(), json!(route.description)),
        ("security".to_owned(), security(route)),
        ("responses".to_owned(), responses(route, shape, schemas)),
    ]);
    if route.access == Access::Superadmin {
        operation.insert("x-admin-socket".to_owned(), json!(true));
    }
    let parameters = parameters(route, shape);
    if !parameters.is_empty() {
        operation.insert("parameters".to_owned(), json!(parameters));
    }
    match route.body {
        BodyKind::None => None,
        BodyKind::Message => operation.insert("requestBody".to_owned(), message(route)),
        BodyKind::Fields | BodyKind::Upload | BodyKind::SpooledUpload | BodyKind::Files => {
            operation.insert("requestBody".to_owned(), body(route, shape, schemas))
        }
    };
    operation
}

/// A session; with the token where one is needed. On the admin socket neither is.
fn security(route: &Route) -> Value {
    match (route.access, route.csrf()) {
        (Access::Public, _) => json!([]),
        (Access::Visitor, _) => json!([{}, {"session": []}]),
        (Access::McpToken, _) => json!([{"mcp_token": []}]),
        (Access::Login | Access::OrdinaryUser | Access::Superadmin, false) => {
            json!([{"session": []}])
        }
        (Access::Login | Access::OrdinaryUser | Access::Superadmin, true) => {
            json!([{"session": [], "csrf": []}])
        }
    }
}

/// The fields of a handler as parameters: those of the path's names, and the query's of a GET.
fn parameters(route: &Route, shape: &Shape) -> Vec<Value> {
    let mut parameters = Vec::new();
    for (name, schema) in shape.fields["properties"].as_object().into_iter().flatten() {
        let in_path = route.path.contains(&format!("{{{name}}}"));
        if !in_path && route.is_post() && route.body != BodyKind::Message {
            continue;
        }
        let mut schema = without_null(schema);
        let mut parameter = json!({
            "name": name,
            "in": if in_path { "path" } else { "query" },
            "required": in_path || is_required(shape, name),
        });
        // Said of the parameter, and not of its schema once more.
        for word in ["description", "example"] {
            let said = schema
                .as_object_mut()
                .and_then(|schema| schema.remove(word));
            if let Some(said) = said {
                parameter[word] = said;
            }
        }
        parameter["schema"] = schema;
        parameters.push(parameter);
    }
    if route.paged {
        for name in ["page", "page_size", "search"] {
            parameters.push(json!({"$ref": format!("#/components/parameters/{name}")}));
        }
    }
    parameters
}

fn is_required(shape: &Shape, name: &str) -> bool {
    let required = shape.fields["required"].as_array();
    required.is_some_and(|names| names.contains(&json!(name)))
}

/// A body that is taken as it is.
fn message(route: &Route) -> Value {
    let example = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    json!({
        "description": format!("JSON-RPC 2.0, at most {} bytes.", route.body_limit),
        "required": true,
        "content": {"application/json": {
            "schema": {"type": ["object", "array"]},
            "example": example,
        }},
    })
}

/// The fields of a POST, in the three ways in which they may be sent.
fn body(route: &Route, shape: &Shape, schemas: &Map<String, Value>) -> Value {
    let mut properties = Map::new();
    let mut encoding = Map::new();
    for (name, schema) in shape.fields["properties"].as_object().into_iter().flatten() {
        let schema = without_null(schema);
        if schema["type"] == "array" {
            // A list is one field, separated by commas: no field appears twice.
            encoding.insert(name.clone(), json!({"style": "form", "explode": false}));
        }
        properties.insert(name.clone(), schema);
    }
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "required": shape.fields.get("required").cloned().unwrap_or(json!([])),
    });
    if matches!(
        route.body,
        BodyKind::Upload | BodyKind::SpooledUpload | BodyKind::Files
    ) {
        let file = json!({
            "type": "string",
            "contentMediaType": "application/octet-stream",
            "example": "the bytes of the file",
        });
        schema["properties"][FILE] = match route.body {
            BodyKind::Files => json!({"type": "array", "items": file, "maxItems": MOST_FILES}),
            _ => file,
        };
        schema["required"] = json!([FILE]);
    }
    let example = example::of_request(&schema, schemas);
    let shared = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    if route.csrf() {
        schema["properties"]["csrf_token"] = shared("CsrfTokenField");
    }
    if route.waits != Waits::No {
        schema["properties"]["wait"] = shared("WaitField");
    }
    if route.guarded {
        schema["properties"]["if_generation"] = shared("IfGenerationField");
    }
    let types: &[&str] = match route.body {
        BodyKind::Upload | BodyKind::SpooledUpload | BodyKind::Files => &["multipart/form-data"],
        BodyKind::None | BodyKind::Fields | BodyKind::Message => &FIELD_TYPES,
    };
    let content = types.iter().map(|&content_type| {
        let mut media = json!({"schema": schema, "example": example});
        if content_type != "application/json" && !encoding.is_empty() {
            media["encoding"] = json!(encoding);
        }
        (content_type.to_owned(), media)
    });
    let required = schema["required"].as_array();
    json!({
        "description": format!("At most {} bytes. Unknown fields are ignored.", route.body_limit),
        "required": required.is_some_and(|names| !names.is_empty()),
        "content": Map::from_iter(content),
    })
}

/// The schema of an optional field: it is left out, not sent as null.
fn without_null(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(kinds) = schema["type"].as_array() {
        let kinds: Vec<_> = kinds.iter().filter(|kind| **kind != "null").collect();
        schema["type"] = match kinds.as_slice() {
            [one] => (*one).clone(),
            several => json!(several),
        };
    }
    let variants = schema["oneOf"].as_array().map(Vec::as_slice);
    match variants {
        Some([null, real] | [real, null]) if null["type"] == "null" => {
            let mut real = real.clone();
            if let Some(description) = schema.get("description") {
                real["description"] = description.clone();
            }
            real
        }
        _ => schema,
    }
}

fn responses(route: &Route, shape: &Shape, schemas: &Map<String, Value>) -> Value {
    let mut responses = Map::new();
    for (status, codes) in failure::of(route) {
        let mut response = failure::response(status, &codes);
        if route.for_browsers {
            response["content"]["text/html"] = json!({"schema": {"type": "string"}});
        }
        responses.insert(status.to_string(), response);
    }
    for body in &shape.bodies {
        add_body(&mut responses, body.status.as_u16(), route, body, schemas);
        if route.waits != Waits::No {
            add_body(&mut responses, 202, route, body, schemas);
        }
    }
    Value::Object(responses)
}

/// Adds what a handler answers with; several bodies of one status are several content types.
fn add_body(
    responses: &mut Map<String, Value>,
    status: u16,
    route: &Route,
    body: &Body,
    schemas: &Map<String, Value>,
) {
    let response = responses.entry(status.to_string()).or_insert_with(|| {
        let mut headers = json!({"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}});
        for name in route.headers {
            headers[*name] = json!({"$ref": format!("#/components/headers/{name}")});
        }
        json!({"description": meaning(status), "headers": headers, "content": {}})
    });
    if body.content_type.is_empty() {
        return;
    }
    let mut media = json!({"schema": body.schema});
    if body.content_type == "application/json" {
        media["example"] = example::of_answer(&body.schema, schemas);
    }
    response["content"][body.content_type] = media;
}

fn meaning(status: u16) -> &'static str {
    match status {
        202 => "Recorded, not converged yet: `state` is `pending`",
        206 => "The part in `Content-Range`",
        304 => "The client has it: `If-None-Match` names its `ETag`",
        302 => "Go to the address in `Location`",
        503 => "Not ready",
        _ => "Success",
    }
}
