//! From claims to a person.

use schema::live::ProvidedIdentity;
use serde_json::{Map, Value};

use super::ProviderSettings;
use super::error::ProviderError;
use super::groups;
use crate::drivers::shown;

const EMAIL: &str = "email";
const VERIFIED: &str = "email_verified";

/// The claim of a name, or of a path of names with dots between them, such as `realm_access.roles`. A name may have dots itself.
pub(super) fn find<'a>(claims: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(path) {
        return Some(value);
    }
    // Names of clients have dots now and then, so the longest name is tried first.
    let mut dots = path.rmatch_indices('.');
    let found =
        dots.find_map(|(at, _)| find(claims.get(&path[..at])?.as_object()?, &path[at + 1..]));
    // Keycloak writes a dot of a name as `\.`.
    found.or_else(|| match path.contains("\\.") {
        true => find(claims, &path.replace("\\.", ".")),
        false => None,
    })
}

/// Adds what another answer says besides. The verification of an address counts only beside that address.
pub(super) fn add(claims: &mut Map<String, Value>, mut more: Map<String, Value>) {
    if claims.contains_key(EMAIL) {
        more.remove(VERIFIED);
    } else {
        claims.remove(VERIFIED);
    }
    merge(claims, more);
}

/// Adds members that are absent, in objects that both have, too.
fn merge(known: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, value) in more {
        match (known.get_mut(&name), value) {
            (Some(Value::Object(known)), Value::Object(more)) => merge(known, more),
            (Some(_), _) => {}
            (None, value) => {
                known.insert(name, value);
            }
        }
    }
}

/// Removes members that are null, at any depth: null is absent.
pub(super) fn remove_nulls(claims: &mut Map<String, Value>) {
    claims.retain(|_, value| !value.is_null());
    for value in claims.values_mut() {
        if let Value::Object(inner) = value {
            remove_nulls(inner);
        }
    }
}

/// Who these claims speak of.
pub(super) fn identity(
    settings: &ProviderSettings,
    subject: &str,
    claims: &Map<String, Value>,
) -> Result<ProvidedIdentity, ProviderError> {
    // Issuers have no blank in them.
    let identity = format!("{} {subject}", settings.issuer);
    let name_claim = &settings.username_claim;
    let name = match find(claims, name_claim) {
        Some(value) => text_of(value).ok_or_else(|| {
            let kind = groups::kind_of(value);
            ProviderError::NoName(format!("{name_claim} as a text, but as {kind}"))
        })?,
        None => return Err(ProviderError::NoName(name_claim.clone())),
    };
    // An address that anybody may claim to have names nobody.
    if name_claim == EMAIL {
        check_verified(claims.get(VERIFIED))?;
    }
    let groups = groups::read(claims, &settings.groups_claim);
    Ok(ProvidedIdentity {
        subject: identity,
        name,
        groups: groups.names,
        left_out: groups.left_out,
        renamed: groups.renamed,
    })
}

/// Checks that an address is verified, as `true`, a text of it in any case, or 1.
fn check_verified(verified: Option<&Value>) -> Result<(), ProviderError> {
    let claim = match verified {
        Some(Value::Bool(true)) => return Ok(()),
        Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => return Ok(()),
        Some(Value::Number(number)) if number.as_u64() == Some(1) => return Ok(()),
        Some(value) => format!(
            "{VERIFIED} as true, which {EMAIL} needs to be a user name, but as {}",
            shown(&value.to_string())
        ),
        None => format!("{VERIFIED}, which {EMAIL} needs to be a user name"),
    };
    Err(ProviderError::NoName(claim))
}

/// A subject: a text as it is, or a whole number.
pub(super) fn subject_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        _ => None,
    }
}

/// A name: a text, a whole number, or a list of one of these.
pub(super) fn text_of(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) if !number.is_f64() => number.to_string(),
        Value::Array(values) => match values.as_slice() {
            [only @ (Value::String(_) | Value::Number(_))] => return text_of(only),
            _ => return None,
        },
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn claims_are_found_by_name_and_by_path() {
        let claims = json!({
            "groups": ["a"],
            "https://example.org/roles": ["b"],
            "realm_access": {"roles": ["c"], "a": {"b": ["d"]}},
            "resource_access": {"agent.yard": {"roles": ["e"]}},
            "a.b": ["f"],
            "a": {"b": ["g"], "c": ["h"]},
        });
        let claims = claims.as_object().unwrap();
        for (path, expected) in [
            ("groups", Some("a")),
            ("https://example.org/roles", Some("b")),
            ("realm_access.roles", Some("c")),
            ("realm_access.a.b", Some("d")),
            ("resource_access.agent.yard.roles", Some("e")),
            ("resource_access.agent\\.yard.roles", Some("e")),
            ("a.b", Some("f")),
            ("a.c", Some("h")),
            ("realm_access.groups", None),
            ("groups.roles", None),
            ("realm_access.", None),
            (".", None),
            ("", None),
        ] {
            let found = find(claims, path).map(|value| value[0].as_str().unwrap());
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn names_are_texts_numbers_and_lists_of_one() {
        for (value, expected) in [
            (json!("ann"), Some("ann")),
            (json!(" ann "), Some("ann")),
            (json!(4711), Some("4711")),
            (json!(["ann"]), Some("ann")),
            (json!([4711]), Some("4711")),
            (json!(""), None),
            (json!(1.5), None),
            (json!(["ann", "annie"]), None),
            (json!([["ann"]]), None),
            (json!([]), None),
            (json!({"name": "ann"}), None),
            (json!(true), None),
        ] {
            assert_eq!(text_of(&value).as_deref(), expected, "{value}");
        }
    }
}
