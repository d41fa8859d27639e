//! One route as an operation of the document.

use serde_json::{Map, Value, json};

use super::{Shape, failure};
use crate::answer::Body;
use crate::input::{FILE, MOST_FILES};
use crate::route::{Access, BodyKind, DEFAULT_BODY_LIMIT, Route, Tokens, Waits};

/// The operation object.
pub(super) fn of(route: &Route, shape: &Shape) -> Map<String, Value> {
    let mut operation = Map::from_iter([
        ("operationId".to_owned(), json!(route.id)),
        ("tags".to_owned(), json!([route.area.to_string()])),
        ("summary".to_owned(), json!(route.title)),
        ("description".to_owned(), json!(route.description)),
        ("security".to_owned(), security(route)),
        ("responses".to_owned(), responses(route, shape)),
        (
            "x-failure-groups".to_owned(),
            json!(failure::groups_of(route)),
        ),
    ]);
    let own_codes = failure::own_codes(route);
    if own_codes != json!({}) {
        operation.insert("x-failures".to_owned(), own_codes);
    }
    if route.access == Access::Superadmin {
        operation.insert("x-admin-socket".to_owned(), json!(true));
        operation.insert("x-api-token-roles".to_owned(), json!(token_roles(route)));
    }
    let parameters = parameters(route, shape);
    if !parameters.is_empty() {
        operation.insert("parameters".to_owned(), json!(parameters));
    }
    match route.body {
        BodyKind::None => None,
        BodyKind::Message => operation.insert("requestBody".to_owned(), message(route)),
        BodyKind::Fields | BodyKind::Upload | BodyKind::SpooledUpload | BodyKind::Files => {
            operation.insert("requestBody".to_owned(), body(route, shape))
        }
    };
    operation
}

/// The roles of API tokens that may use a route.
fn token_roles(route: &Route) -> &'static [&'static str] {
    match route.tokens {
        None | Some(Tokens::None) => &[],
        Some(Tokens::Read) => &["read", "admin"],
        Some(Tokens::Admin) => &["admin"],
    }
}

/// A session; with the token where one is needed; or an API token. On the admin socket none is.
fn security(route: &Route) -> Value {
    let mut security = session_security(route);
    let by_token = !token_roles(route).is_empty();
    if let Some(ways) = security.as_array_mut().filter(|_| by_token) {
        ways.push(json!({"api_token": []}));
    }
    security
}

fn session_security(route: &Route) -> Value {
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
        });
        if in_path || is_required(shape, name) {
            parameter["required"] = json!(true);
        }
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
            "schema": {"type": ["object", "array"], "items": {}},
            "example": example,
        }},
    })
}

/// The fields of a POST: those of a form, with a file, or of a JSON object, which a form may stand for.
fn body(route: &Route, shape: &Shape) -> Value {
    let fields = shape.fields["properties"].as_object();
    let fields = fields.into_iter().flatten();
    let properties: Map<_, _> = fields
        .map(|(name, schema)| (name.clone(), without_null(schema)))
        .collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if let Some(required) = shape.fields.get("required") {
        schema["required"] = required.clone();
    }
    let content_type = match route.body {
        BodyKind::Upload | BodyKind::SpooledUpload | BodyKind::Files => {
            let file = json!({
                "type": "string",
                "format": "binary",
                "contentMediaType": "application/octet-stream",
                "example": "the bytes of the file",
            });
            schema["properties"][FILE] = match route.body {
                BodyKind::Files => json!({"type": "array", "items": file, "maxItems": MOST_FILES}),
                _ => file,
            };
            schema["required"] = json!([FILE]);
            "multipart/form-data"
        }
        BodyKind::None | BodyKind::Fields | BodyKind::Message => "application/json",
    };
    let shared = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    if route.waits != Waits::No {
        schema["properties"]["wait"] = shared("WaitField");
    }
    if route.guarded {
        schema["properties"]["if_generation"] = shared("IfGenerationField");
    }
    let required = schema["required"].as_array();
    let mut body = json!({
        "required": required.is_some_and(|names| !names.is_empty()),
        "content": {content_type: {"schema": schema}},
    });
    if route.body_limit != DEFAULT_BODY_LIMIT {
        body["description"] = json!(format!("At most {} bytes.", route.body_limit));
    }
    body
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

fn responses(route: &Route, shape: &Shape) -> Value {
    let failure = match route.for_browsers {
        true => "#/components/responses/FailureOrPage",
        false => "#/components/responses/Failure",
    };
    let mut responses = Map::from_iter([("default".to_owned(), json!({"$ref": failure}))]);
    for body in &shape.bodies {
        add_body(&mut responses, body.status.as_u16(), route, body);
        if route.waits != Waits::No {
            add_body(&mut responses, 202, route, body);
        }
    }
    Value::Object(responses)
}

/// Adds what a handler answers with; several bodies of one status are several content types.
fn add_body(responses: &mut Map<String, Value>, status: u16, route: &Route, body: &Body) {
    let response = responses.entry(status.to_string()).or_insert_with(|| {
        let mut response = json!({"description": meaning(status)});
        for name in route.headers {
            response["headers"][*name] = json!({"$ref": format!("#/components/headers/{name}")});
        }
        if status >= 400 {
            response["content"] = super::components::failure_content();
        }
        response
    });
    if !body.content_type.is_empty() {
        response["content"][body.content_type] = json!({"schema": body.schema});
    }
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
