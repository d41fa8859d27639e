//! Failures of routes: statuses with their codes. Those that many routes have are documented once, as groups.

use std::collections::{BTreeMap, BTreeSet};

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
const API_TOKEN: Failure = Failure(
    401,
    "api_token_invalid",
    "the API token is unknown, was revoked or has expired",
);
const API_TOKENS: Failure = Failure(
    429,
    "too_many_attempts",
    "more than 10 unknown API tokens of one address in 5 minutes",
);
const NOT_SIGNED_IN: Failure = Failure(401, "not_signed_in", "no valid session");
const ROLE: Failure = Failure(
    403,
    "wrong_role",
    "the role of the session or the API token may not do this",
);
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

/// Failures that many routes have, by group.
const GROUPS: [(&str, &[Failure]); 10] = [
    ("always", &[INTERNAL, DATABASE, STORAGE, FULL]),
    ("query", &[ENCODING, PARAMETER, BODY]),
    (
        "body",
        &[PARAMETER, BODY, TIMEOUT, LARGE, MEDIA, Failure::BUSY],
    ),
    ("csrf", &[CSRF]),
    ("session", &[NOT_SIGNED_IN]),
    ("role", &[NOT_SIGNED_IN, ROLE]),
    ("token", &[TOKEN, ROLE]),
    ("api_token", &[API_TOKEN, API_TOKENS]),
    ("mode", &[MODE]),
    ("generation", &[STALE]),
];

/// The group of the failures of an object that an answer waits for.
const OBJECT: &str = "object";

/// Codes by status.
type Codes = BTreeMap<u16, BTreeSet<String>>;

/// Returns the groups of a route's failures.
pub(super) fn groups_of(route: &Route) -> Vec<&'static str> {
    let input = match route.changes() && route.access != Access::McpToken {
        true => "csrf",
        false => "query",
    };
    let access = match route.access {
        Access::Public | Access::Visitor => None,
        Access::Login => Some("session"),
        Access::OrdinaryUser | Access::Superadmin => Some("role"),
        Access::McpToken => Some("token"),
    };
    let rules = [
        (route.access == Access::Superadmin, "api_token"),
        (route.modes != Modes::Any, "mode"),
        (route.body != BodyKind::None, "body"),
        (route.guarded, "generation"),
        (route.waits == Waits::ForObject, OBJECT),
    ];
    let by_rule = rules
        .into_iter()
        .filter_map(|(has, name)| has.then_some(name));
    let named = ["always", input].into_iter().chain(access);
    named.chain(by_rule).collect()
}

/// Returns the codes of a route that no group of it has.
pub(super) fn own_codes(route: &Route) -> Value {
    let groups = groups_of(route);
    let mut codes = codes_of(route.failures.iter().copied());
    for (name, group) in all_groups() {
        if groups.contains(&name) {
            for (status, grouped) in group {
                let own = codes.entry(status).or_default();
                own.retain(|code| !grouped.contains(code));
            }
        }
    }
    codes.retain(|_, codes| !codes.is_empty());
    json!(codes)
}

/// Returns the groups: codes by name and status.
pub(super) fn groups() -> Value {
    json!(BTreeMap::from_iter(all_groups()))
}

/// Returns the circumstances of every code of these routes, by status and code.
pub(super) fn codes(routes: &[Route]) -> Value {
    let mut codes: BTreeMap<u16, BTreeMap<String, BTreeSet<&str>>> = BTreeMap::new();
    let mut add = |status, code: &str, when| {
        let codes = codes.entry(status).or_default();
        codes.entry(code.to_owned()).or_default().insert(when);
    };
    let rows = routes.iter().flat_map(|route| route.failures);
    for Failure(status, code, when) in rows.chain(GROUPS.iter().flat_map(|group| group.1)) {
        add(*status, code, *when);
    }
    for (status, code, remedy) in wait::object_failures() {
        add(status.as_u16(), &code, remedy);
    }
    let join = |when: BTreeSet<&str>| Vec::from_iter(when).join("; ");
    let codes = codes.into_iter().map(|(status, codes)| {
        let codes = codes.into_iter().map(|(code, when)| (code, join(when)));
        (status, BTreeMap::from_iter(codes))
    });
    json!(BTreeMap::from_iter(codes))
}

fn all_groups() -> impl Iterator<Item = (&'static str, Codes)> {
    let groups = GROUPS.iter();
    let groups = groups.map(|(name, failures)| (*name, codes_of(failures.iter().copied())));
    let mut object = Codes::new();
    for (status, code, _) in wait::object_failures() {
        object.entry(status.as_u16()).or_default().insert(code);
    }
    groups.chain([(OBJECT, object)])
}

fn codes_of(failures: impl Iterator<Item = Failure>) -> Codes {
    let mut codes = Codes::new();
    for Failure(status, code, _) in failures {
        codes.entry(status).or_default().insert(code.to_owned());
    }
    codes
}
