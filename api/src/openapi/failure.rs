//! How a route can fail: statuses with the codes that come with them.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::{Value, json};

use crate::route::{Access, BodyKind, Failure, Modes, Route, Waits};
use crate::wait;

const ENCODING: Failure = Failure(400, "invalid_encoding", "the address is not UTF-8");
const PARAMETER: Failure = Failure(
    400,
    "invalid_parameter",
    "`field` is missing, malformed, out of range, or contains NUL",
);
const BODY: Failure = Failure(400, "invalid_body", "the fields cannot be parsed");
const TOKEN: Failure = Failure(401, "token_invalid", "no valid MCP token");
const NOT_SIGNED_IN: Failure = Failure(401, "not_signed_in", "no valid session");
const ROLE: Failure = Failure(403, "wrong_role", "the session's role may not do this");
const CSRF: Failure = Failure(
    403,
    "csrf_invalid",
    "the token is missing or wrong, or the request comes from another site",
);
const MODE: Failure = Failure(
    403,
    "mode_forbidden",
    "not possible in the current authentication mode",
);
const TIMEOUT: Failure = Failure(408, "request_timeout", "the body did not arrive in time");
const STALE: Failure = Failure(
    412,
    "stale_generation",
    "the object's `generation` is not `if_generation`",
);
const LARGE: Failure = Failure(413, "too_large", "the body is larger than `limit` bytes");
const MEDIA: Failure = Failure(415, "unsupported_media_type", "unsupported content type");
const INTERNAL: Failure = Failure(
    500,
    "internal",
    "a defect; the log shows the cause by request id",
);
const DATABASE: Failure = Failure(
    503,
    "database_unavailable",
    "the database cannot be reached",
);
const STORAGE: Failure = Failure(
    503,
    "storage_failed",
    "the database cannot read or write its storage",
);
const FULL: Failure = Failure(507, "storage_full", "the database has no space left");

/// Codes with when they come, by status.
pub(super) type Failures = BTreeMap<u16, BTreeMap<String, String>>;

/// How a route can fail, by its row.
pub(super) fn of(route: &Route) -> Failures {
    let mut all = vec![INTERNAL, DATABASE, STORAGE, FULL];
    if route.changes() && route.access != Access::McpToken {
        all.push(CSRF);
    } else {
        all.extend([ENCODING, PARAMETER, BODY]);
    }
    all.extend_from_slice(match route.access {
        Access::Public | Access::Visitor => &[],
        Access::Login => &[NOT_SIGNED_IN],
        Access::OrdinaryUser | Access::Superadmin => &[NOT_SIGNED_IN, ROLE],
        Access::McpToken => &[TOKEN, ROLE],
    });
    all.extend_from_slice(match route.modes {
        Modes::Any => &[],
        Modes::LocalOnly | Modes::LdapOnly => &[MODE],
    });
    all.extend_from_slice(match route.body {
        BodyKind::None => &[],
        BodyKind::Fields
        | BodyKind::Upload
        | BodyKind::SpooledUpload
        | BodyKind::Files
        | BodyKind::Message => &[PARAMETER, BODY, TIMEOUT, LARGE, MEDIA, Failure::BUSY],
    });
    if route.guarded {
        all.push(STALE);
    }
    all.extend_from_slice(route.failures);
    let mut failures = Failures::new();
    for Failure(status, code, when) in all {
        let codes = failures.entry(status).or_default();
        codes.insert(code.to_owned(), when.to_owned());
    }
    if route.waits == Waits::ForObject {
        for (status, code, remedy) in wait::object_failures() {
            let codes = failures.entry(status.as_u16()).or_default();
            codes.entry(code).or_insert_with(|| remedy.to_owned());
        }
    }
    failures
}

/// The response object of one status.
pub(super) fn response(status: u16, codes: &BTreeMap<String, String>) -> Value {
    let reason = StatusCode::from_u16(status).ok();
    let reason = reason.and_then(|status| status.canonical_reason());
    let mut description = reason.unwrap_or("Failure").to_owned();
    for (code, when) in codes {
        let when = when.trim_end_matches('.');
        description.push_str(&format!("\n- `{code}`: {when}"));
    }
    let (code, when) = codes.first_key_value().unzip();
    let mut headers = json!({"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}});
    if [429, 503].contains(&status) {
        headers["Retry-After"] = json!({"$ref": "#/components/headers/Retry-After"});
    }
    let names: Vec<_> = codes.keys().collect();
    json!({
        "description": description,
        "headers": headers,
        "content": {"application/json": {
            "schema": {"allOf": [
                {"$ref": "#/components/schemas/Failure"},
                {"type": "object", "properties": {"code": {"enum": names}}},
            ]},
            "example": {"success": false, "error": when, "code": code},
        }},
    })
}
