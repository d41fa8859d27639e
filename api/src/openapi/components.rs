//! What all operations share.

use serde_json::{Map, Value, json};
use strum::VariantArray;

use crate::deps::VERSION;
use crate::input::{DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, MAX_WAIT};
use crate::route::Area;

const DESCRIPTION: &str = "\
Agentyard runs an agent container for each user. It records desired state and reconciles: a POST writes desired state, and reconcilers converge on it.

**Addresses.** Everything under `/api/` is also served under `/api/v1/`, and a trailing slash does not matter. \
Unknown addresses are 404 `not_found`, other methods 405 `method_not_allowed` with `Allow`; HEAD is answered like \
GET, and OPTIONS with 204 and `Allow`. A target without a path, and HTTP/1.1 without \
`Host` or with several, are 400 `invalid_request`.

**Envelopes.** Success is `{\"success\": true, \"message\": …}` with further fields, failure is `{\"success\": false, \
\"error\": …, \"code\": …}`: `error` is a sentence for people, `code` is stable for programs. Some routes answer with \
a bare resource, text, or an event stream. Every answer has `X-Request-Id`.

**Failures.** An operation fails with the codes of its `x-failures`, by status, and with those of its \
`x-failure-groups`, which are listed once in the components.

**Descriptions.** `GET /api/openapi.json?descriptions=true` adds descriptions and examples of all fields, and \
`x-failure-codes`, which says when each code comes.

**Fields.** A POST takes a JSON object, of at most 1 MiB unless its operation says otherwise. Unknown fields are \
ignored. The same fields may come as `application/x-www-form-urlencoded` or `multipart/form-data` with text parts: \
numbers and switches as text, lists separated by commas, and `csrf_token` in place of the header. Its parameters \
never come from the query. No text of a field, a query or a path may \
contain NUL: 400 `invalid_parameter`.

**Accepted, then converged.** A POST that changes desired state commits it at once and then holds its answer back \
for at most `wait` seconds: 200 with `state` `converged`, 202 with `pending`, or the failure of the object with \
`failed`. What is desired stays recorded in all three cases. `if_generation` makes it a compare-and-set; a request that does not take it is refused.

**The admin socket.** What is for superadmins (`x-admin-socket`) also works over the Unix socket in the data \
directory, without session and token.

**API tokens.** Programs use what is for superadmins with an API token in `Authorization: Bearer`, without a cookie and a CSRF token: \
operations with `read` in `x-api-token-roles` with any, those with `admin` with a token of that role. An unknown, revoked or expired \
token is 401 `api_token_invalid`, a role that does not suffice 403 `wrong_role`.";

/// The document without its paths.
pub(super) fn frame(schemas: Map<String, Value>, shared: Map<String, Value>) -> Value {
    let mut responses = failures();
    responses.extend(shared);
    let tags = Area::VARIANTS.iter();
    let tags =
        tags.map(|area| json!({"name": area.to_string(), "description": area.description()}));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Agentyard",
            "version": VERSION,
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This service; `/api/v1/…` is the same as `/api/…`"}],
        "tags": tags.collect::<Vec<_>>(),
        "components": {
            "schemas": schemas,
            "responses": responses,
            "parameters": parameters(),
            "headers": headers(),
            "securitySchemes": {
                "session": {
                    "type": "apiKey", "in": "cookie", "name": "session",
                    "description": "Set by signing in; valid for 24 hours, or until it is ended",
                },
                "csrf": {
                    "type": "apiKey", "in": "header", "name": "X-CSRF-Token",
                    "description": "From `GET /api/csrf`; the field `csrf_token` is accepted, too",
                },
                "api_token": {
                    "type": "http", "scheme": "bearer",
                    "description": "From `POST /api/admin/api-tokens/create`; counts without a session cookie only. `x-api-token-roles` of an operation names the roles that may use it",
                },
                "mcp_token": {
                    "type": "http", "scheme": "bearer",
                    "description": "From `GET /api/mcp/token`; the parameter `token` of the query is accepted, too",
                },
            },
        },
    })
}

/// The envelopes, and the fields that many routes take.
pub(super) fn own_schemas() -> [(&'static str, Value); 5] {
    [
        (
            "Success",
            json!({
                "type": "object",
                "required": ["success", "message"],
                "properties": {
                    "success": {"type": "boolean", "enum": [true]},
                    "message": {"type": "string", "description": "A sentence for people", "example": "done"},
                },
            }),
        ),
        (
            "Failure",
            json!({
                "type": "object",
                "required": ["success", "error", "code"],
                "properties": {
                    "success": {"type": "boolean", "enum": [false]},
                    "error": {"type": "string", "description": "A sentence for people"},
                    "code": {"type": "string", "description": "Stable, for programs"},
                    "field": {"type": "string", "description": "With `invalid_parameter`: the field, if it is one"},
                    "limit": {"type": "integer", "description": "With `too_large`: the limit in bytes"},
                    "generation": {"type": "integer", "description": "With `stale_generation`: the current one; with a failed object: the one that failed"},
                    "object": {"type": "string", "description": "The object that failed", "example": "container/alice"},
                    "reason": {"type": "string", "description": "Why the object failed: the reason of its condition", "example": "ImageMissing"},
                    "remedy": {"type": "string", "description": "How to fix it"},
                    "users": {"type": "array", "items": {"type": "string"}, "description": "With `image_in_use`: its users, at most 200"},
                    "alternatives": {"type": "array", "items": {"type": "string"}, "description": "With `image_in_use`: other references of the repository on the engine, newest first"},
                    "state": {"type": "string", "enum": ["failed"], "description": "The object failed; what is desired stays recorded"},
                    "username": {"type": "string", "description": "The account that was created although its container failed"},
                    "password": {"type": "string", "format": "password", "description": "Its password, returned only once"},
                    "problems": {
                        "type": "array",
                        "items": {"anyOf": [
                            {"$ref": "#/components/schemas/ConfigProblem"},
                            {
                                "type": "object",
                                "required": ["key", "message"],
                                "properties": {
                                    "key": {"type": "string", "description": "The field"},
                                    "message": {"type": "string", "description": "The rest of the sentence; never the value"},
                                },
                            },
                            {
                                "type": "object",
                                "required": ["file", "pointer", "message"],
                                "properties": {
                                    "file": {"type": "string", "description": "The file of the package; empty for the whole"},
                                    "pointer": {"type": "string", "description": "The place in it, as a JSON pointer"},
                                    "message": {"type": "string", "description": "A sentence for people"},
                                },
                            },
                        ]},
                        "description": "With `invalid_config` and `not_available_yet`: the refused keys; with `invalid_values`: the refused fields; with `invalid_adapter`: problems of the package",
                    },
                    "purge": {"$ref": "#/components/schemas/Purge"},
                    "problem_count": {"type": "integer", "description": "With `problems`, of which at most 50 are listed: how many there are"},
                },
            }),
        ),
        (
            "StreamEvent",
            json!({
                "type": "object",
                "description": "One server-sent event of a stream",
                "properties": {
                    "event": {"type": "string", "description": "Its type; `message` when it has none"},
                    "id": {"type": "string", "description": "Send it as `Last-Event-ID` to resume after this event"},
                    "data": {"type": "string", "description": "The payload"},
                },
            }),
        ),
        (
            "WaitField",
            json!({
                "type": "integer", "minimum": 0, "maximum": MAX_WAIT.as_secs(),
                "description": "Maximum wait in seconds before the answer; default: 10 for one object, 0 for a task",
            }),
        ),
        (
            "IfGenerationField",
            json!({
                "type": "integer", "format": "int64", "minimum": 1, "maximum": i64::MAX,
                "description": "Change the object only if it has this generation",
            }),
        ),
    ]
}

/// The responses of failures.
fn failures() -> Map<String, Value> {
    let headers = json!({
        "X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"},
        "Retry-After": {"$ref": "#/components/headers/Retry-After"},
    });
    let failure = json!({
        "description": "Refused or failed; `x-failures` and `x-failure-groups` of the operation name the codes",
        "headers": headers,
        "content": failure_content(),
    });
    let mut page = failure.clone();
    page["content"]["text/html"] = json!({"schema": {"type": "string"}});
    Map::from_iter([
        ("Failure".to_owned(), failure),
        ("FailureOrPage".to_owned(), page),
    ])
}

/// The content of failures.
pub(super) fn failure_content() -> Value {
    json!({"application/json": {"schema": {"$ref": "#/components/schemas/Failure"}}})
}

fn parameters() -> Value {
    let parameter = |name: &str, description: &str, schema: Value| json!({"name": name, "in": "query", "description": description, "schema": schema});
    json!({
        "page": parameter(
            "page",
            "Page number, from 1; a page past the end is the last page. Without `page`, `page_size` and `search` everything is returned",
            json!({"type": "integer", "minimum": 1, "maximum": i32::MAX, "default": 1}),
        ),
        "page_size": parameter(
            "page_size",
            "Entries per page",
            json!({"type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE, "default": DEFAULT_PAGE_SIZE}),
        ),
        "search": parameter(
            "search",
            "Filter: contains this text, ignoring case",
            json!({"type": "string"}),
        ),
    })
}

fn headers() -> Value {
    let header =
        |description: &str, schema: Value| json!({"description": description, "schema": schema});
    json!({
        "X-Request-Id": header(
            "Identifies this request in the log; the client's own value, if it sent a valid one",
            json!({"type": "string"}),
        ),
        "Retry-After": header("With 429 and 503: seconds to wait before retrying", json!({"type": "integer", "minimum": 1})),
        "Allow": header("With 405 and OPTIONS: the supported methods", json!({"type": "string"})),
        "Set-Cookie": header("The session cookie", json!({"type": "string"})),
        "Location": header("Where to go", json!({"type": "string", "format": "uri-reference"})),
        "ETag": header("The configuration's generation, quoted", json!({"type": "string"})),
        "X-Config-Generation": header("The configuration's generation", json!({"type": "integer"})),
    })
}
