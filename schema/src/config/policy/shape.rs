//! What a policy looks like, for forms and for the check of a save.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use super::{ToolPattern, UrlPattern};
use crate::config::ProblemCode;
use crate::ids::{PlainName, UserName};

/// Most entries of a list.
const MAX_LIST: usize = 1000;
/// Longest name that is repeated in an answer, in bytes.
const MAX_REPEATED: usize = 128;
/// The tools that there are: a test in `api/src/mcp/policy` compares them with the catalogue.
const TOOLS: &str = include_str!("tools.txt");

static VALIDATOR: LazyLock<Option<Validator>> =
    LazyLock::new(|| jsonschema::validator_for(&json_schema()).ok());

fn object(description: &str, properties: Value) -> Value {
    let mut object =
        json!({"type": "object", "additionalProperties": false, "properties": properties});
    if !description.is_empty() {
        object["description"] = json!(description);
    }
    object
}

fn texts(description: &str) -> Value {
    let text = json!({"type": "string", "minLength": 1, "maxLength": 1024});
    json!({"type": "array", "maxItems": MAX_LIST, "items": text, "description": description})
}

fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

fn services() -> Map<String, Value> {
    let mode = json!({
        "type": "string",
        "enum": ["off", "read-only", "auto"],
        "description": "off: calls and executors are refused. read-only: tools that change something are refused. auto (the default): all tools that no other rule denies.",
    });
    let tools = object(
        "Tools by name, or by the beginning of names with * at its end. Some tools do what others do (computer_click_text clicks, browser_execute does anything in a page) and are denied by themselves; the mode read-only refuses all that change something. The status tools cannot be denied.",
        json!({
            "allow": texts("If not empty, only these may be called."),
            "deny": texts("These may not be called."),
        }),
    );
    let urls = object(
        "Pages that may be visited: host, *.host (all hosts below it) or host/path; a port may follow the host. The console and the API of this service are always denied. The page in the tab counts, not its frames; paths are no boundary while browser_execute is allowed.",
        json!({
            "allow": texts("If not empty, only these may be visited."),
            "deny": texts("These may not be visited."),
            "builtin": flag("Whether well-known sign-in pages, password managers and payment pages are denied, too (default: true)."),
        }),
    );
    let devices = texts(
        "If not empty, only executors that have introduced themselves with one of these instances are asked.",
    );
    let private = flag(
        "Whether hosts of private networks and of the user's own machine may be visited (default: true).",
    );
    let computer = json!({"mode": mode, "tools": tools, "devices": devices});
    let mut browser = computer.clone();
    browser["urls"] = urls;
    browser["private_addresses"] = private;
    let services = [
        ("browser", object("Rules for browsers.", browser)),
        ("computer", object("Rules for desktops.", computer)),
    ];
    let named = services.map(|(name, rules)| (name.to_owned(), rules));
    named.into_iter().collect()
}

/// The shape, as a JSON Schema.
pub(in crate::config) fn json_schema() -> Value {
    let layers = |of: &str| {
        let layer = object("", Value::Object(services()));
        json!({"type": "object", "additionalProperties": layer, "description": of})
    };
    let mut properties = services();
    let groups = layers(
        "Rules for members of groups, and of those below them, by the group's name. They replace the general rules they name; of several groups the strictest counts.",
    );
    properties.insert("groups".to_owned(), groups);
    let users = layers("Rules for users by name. They replace the rules of groups they name.");
    properties.insert("users".to_owned(), users);
    object("", Value::Object(properties))
}

/// What is wrong with a policy: the field and the rule.
pub(in crate::config) fn check(policy: &Value) -> Result<(), (ProblemCode, String)> {
    if let Some(error) = VALIDATOR
        .as_ref()
        .and_then(|it| it.iter_errors(policy).next())
    {
        let place = error.instance_path().to_string();
        let field = place.trim_start_matches('/').replace('/', ".");
        if place.ends_with("/mode") && policy.pointer(&place) == Some(&json!("ask")) {
            let said = format!("{field}: ask is not available yet; use off, read-only or auto");
            return Err((ProblemCode::NotAvailableYet, said));
        }
        let code = match error.kind() {
            jsonschema::error::ValidationErrorKind::Type { .. } => ProblemCode::InvalidType,
            _ => ProblemCode::InvalidValue,
        };
        let rule = error.masked().to_string();
        return Err((code, [field, rule].join(": ")));
    }
    let invalid = |said: String| (ProblemCode::InvalidValue, said);
    check_layer(policy, "").map_err(invalid)?;
    check_layers(policy, "groups", |name| {
        let name = name.parse::<PlainName>().map_err(|it| it.to_string())?;
        Ok(name.key())
    })
    .map_err(invalid)?;
    check_layers(policy, "users", |name| {
        let name = name.parse::<UserName>().map_err(|it| it.to_string())?;
        Ok(name.key())
    })
    .map_err(invalid)
}

/// Layers by name; a name in two spellings would be two layers for one.
fn check_layers(
    policy: &Value,
    of: &str,
    key: impl Fn(&str) -> Result<String, String>,
) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for (name, layer) in policy[of].as_object().into_iter().flatten() {
        let field = format!("{of}.{name}");
        let key = key(name).map_err(|rule| match name.len() <= MAX_REPEATED {
            true => format!("{of}: {name:?} is not valid: {rule}"),
            false => format!("{of}: a name of {} bytes is not valid: {rule}", name.len()),
        })?;
        if !seen.insert(key) {
            return Err(format!("{field} was given twice: case does not matter"));
        }
        check_layer(layer, &format!("{field}."))?;
    }
    Ok(())
}

fn check_layer(layer: &Value, before: &str) -> Result<(), String> {
    for service in ["browser", "computer"] {
        let rules = &layer[service];
        for list in ["allow", "deny"] {
            let place = |kind: &str| format!("{before}{service}.{kind}.{list}");
            let tools = &rules["tools"][list];
            check_list(tools, &place("tools"), |text| {
                is_effective(text, service, list)
            })?;
            check_list(&rules["urls"][list], &place("urls"), |text| {
                text.parse::<UrlPattern>()?;
                Ok(())
            })?;
        }
    }
    Ok(())
}

fn check_list(
    list: &Value,
    field: &str,
    check: impl Fn(&str) -> Result<(), Cow<'static, str>>,
) -> Result<(), String> {
    let texts = list.as_array().into_iter().flatten();
    for (index, text) in texts.enumerate() {
        check(text.as_str().unwrap_or_default())
            .map_err(|rule| format!("{field}.{index} {rule}"))?;
    }
    Ok(())
}

/// Whether a pattern changes which tools of a service may be called: one that has no such tool would be saved, and do nothing.
fn is_effective(text: &str, service: &str, list: &str) -> Result<(), Cow<'static, str>> {
    let pattern: ToolPattern = text.parse()?;
    let mut matched = TOOLS
        .lines()
        .filter(|tool| tool.starts_with(service) && pattern.matches(tool))
        .peekable();
    if matched.peek().is_none() {
        let of = if service == "browser" {
            "browser"
        } else {
            "desktop"
        };
        return Err(format!("matches no tool of the {of}: {text}").into());
    }
    // It is how agents get to know the policy.
    if list == "deny" && matched.all(|tool| tool.ends_with("_status")) {
        return Err(format!("names a tool that cannot be denied: {text}").into());
    }
    Ok(())
}
