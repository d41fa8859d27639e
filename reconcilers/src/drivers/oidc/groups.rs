//! The groups that a claim names.

use std::collections::{BTreeMap, BTreeSet};

use schema::ids::PlainName;
use serde_json::{Map, Value};

use super::claims::{find, text_of};
use crate::drivers::shown;

/// Most groups of one user: what names more names all there are.
const MOST_GROUPS: usize = 500;
/// Most names in a text for people.
const NAMED: usize = 5;
/// The claim while none is set.
const USUAL: &str = "groups";
/// Stands for the slashes of a path, which names of groups do not have.
const BETWEEN: &str = ":";

/// A user's groups, as a provider reports them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Groups {
    /// Their names; `None`: they are not known, and stay as they are.
    pub(super) names: Option<BTreeSet<String>>,
    /// Values that were not taken, each with the reason and the remedy.
    pub(super) left_out: Vec<String>,
    /// Names that are other ones here.
    pub(super) renamed: Vec<String>,
}

impl Groups {
    fn unknown(why: String) -> Self {
        Self {
            left_out: vec![why],
            ..Self::default()
        }
    }
}

/// Reads the groups in a claim: a list of names, or one. A claim that is not there, or that is something else, says nothing about
/// groups, and so does one of which nothing can be used.
pub(super) fn read(claims: &Map<String, Value>, claim: &str) -> Groups {
    let value = find(claims, claim);
    let empty = value.and_then(Value::as_array).is_some_and(Vec::is_empty);
    if is_left_out(claims, claim) && (value.is_none() || empty) {
        return Groups::unknown(format!(
            "the claim {claim} is left out because the user has too many groups (_claim_names, hasgroups), so the groups stay as they are; have the provider send only groups that are assigned to the client, or application roles (Entra ID: oidc.groups_claim=roles)"
        ));
    }
    let Some(value) = value else {
        // Many providers know no groups; one whose claim was chosen should.
        return match claim {
            USUAL => Groups::default(),
            _ => Groups::unknown(format!(
                "the provider does not send the claim {claim}, so the groups stay as they are; check oidc.groups_claim, oidc.scopes and the client's mappings at the provider"
            )),
        };
    };
    let listed = listed(value);
    let Some(items) = listed
        .as_deref()
        .or_else(|| value.as_array().map(Vec::as_slice))
    else {
        return match text_of(value) {
            // A DN has commas, and is one name.
            Some(text) if text.contains([',', ';']) && !text.contains('=') => {
                Groups::unknown(format!(
                    "the claim {claim} is the text {:?}, which may be one name or several, so the groups stay as they are; have the provider send a list",
                    shown(&text)
                ))
            }
            Some(_) => sort(std::slice::from_ref(value), claim),
            None => Groups::unknown(format!(
                "the claim {claim} is {}, not a list of names, so the groups stay as they are; check oidc.groups_claim",
                kind_of(value)
            )),
        };
    };
    sort(items, claim)
}

/// Returns true if the claim is sent elsewhere, or not at all (OpenID Connect Core §5.6.2; Entra ID: "overage").
fn is_left_out(claims: &Map<String, Value>, claim: &str) -> bool {
    let elsewhere = claims.get("_claim_names").and_then(Value::as_object);
    let first = claim.split('.').next().unwrap_or(claim);
    let named = elsewhere.is_some_and(|it| it.contains_key(claim) || it.contains_key(first));
    let has = match claims.get("hasgroups") {
        Some(Value::Bool(has)) => *has,
        Some(Value::String(has)) => has == "true",
        _ => false,
    };
    named || (has && claim == USUAL)
}

/// The list in a text: some directories send lists as JSON in a text.
fn listed(value: &Value) -> Option<Vec<Value>> {
    let text = value.as_str().filter(|text| text.trim().starts_with('['))?;
    serde_json::from_str(text).ok()
}

/// Names the kind of a value, for people.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a switch",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn sort(items: &[Value], claim: &str) -> Groups {
    let (mut names, mut bad) = (BTreeSet::new(), Vec::new());
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    for item in items {
        let Some(text) = text_of(item).filter(|_| !item.is_array()) else {
            bad.push(format!("{} in place of a name", kind_of(item)));
            continue;
        };
        let parts = text.split(['/', '\\']).map(str::trim);
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        let name = parts.join(BETWEEN);
        match PlainName::from_existing(&name) {
            Err(rule) => bad.push(format!("{:?}: {rule}", shown(&text))),
            Ok(_) if parts.len() > 1 && parts.iter().any(|part| part.contains(BETWEEN)) => {
                bad.push(format!(
                    "{:?}: a part of a path must not contain {BETWEEN:?}",
                    shown(&text)
                ));
            }
            Ok(_) if parts.len() == 1 => {
                names.insert(name);
            }
            Ok(_) => match paths.get(&name) {
                Some(other) if other.trim_matches('/') != text.trim_matches('/') => {
                    bad.push(format!(
                        "{:?}: {:?} has the same name here",
                        shown(&text),
                        shown(other)
                    ));
                }
                _ => {
                    paths.insert(name, text);
                }
            },
        }
    }
    let mut renamed = Vec::new();
    for (name, path) in paths {
        if names.contains(&name) {
            bad.push(format!(
                "{:?}: another group is called {name}",
                shown(&path)
            ));
            continue;
        }
        renamed.push(format!("{:?} is {name} here", shown(&path)));
        names.insert(name);
    }
    let mut left_out = Vec::new();
    if !bad.is_empty() {
        let count = bad.len();
        let noun = if count == 1 { "value" } else { "values" };
        left_out.push(format!(
            "{count} {noun} of the claim {claim} left out ({}); change them at the provider",
            some(&bad)
        ));
    }
    let unusable = names.is_empty() && !items.is_empty();
    if unusable || names.len() > MOST_GROUPS {
        let why = match unusable {
            true => format!("none of the {} values of {claim} can be used", items.len()),
            false => format!(
                "{claim} names {} groups, more than {MOST_GROUPS}",
                names.len()
            ),
        };
        left_out.push(format!(
            "{why}, so the groups stay as they are; have the provider send fewer, or check oidc.groups_claim"
        ));
        return Groups {
            left_out,
            ..Groups::default()
        };
    }
    Groups {
        names: Some(names),
        left_out,
        renamed,
    }
}

/// The first of some texts.
fn some(texts: &[String]) -> String {
    let mut some: Vec<&str> = texts.iter().take(NAMED).map(String::as_str).collect();
    if texts.len() > NAMED {
        some.push("…");
    }
    some.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[rstest::rstest]
    #[case::absent(json!({}), None, 0)]
    #[case::none(json!({"groups": []}), Some(vec![]), 0)]
    #[case::some(json!({"groups": ["dev", "ops", "dev"]}), Some(vec!["dev", "ops"]), 0)]
    #[case::one(json!({"groups": "dev"}), Some(vec!["dev"]), 0)]
    #[case::spaces(json!({"groups": [" dev ", "Domain Users"]}), Some(vec!["dev", "Domain Users"]), 0)]
    #[case::paths(json!({"groups": ["/dev", "/a/b", "/a/b/", "c/d"]}), Some(vec!["dev", "a:b", "c:d"]), 0)]
    #[case::domains(json!({"groups": ["CORP\\dev"]}), Some(vec!["CORP:dev"]), 0)]
    #[case::path_of_another(json!({"groups": ["/a/b", "a:b"]}), Some(vec!["a:b"]), 1)]
    #[case::path_with_a_colon(json!({"groups": ["/a:b/c", "/a/b", "x:y"]}), Some(vec!["a:b", "x:y"]), 1)]
    #[case::paths_of_one_name(json!({"groups": ["/a/b", "a\\b"]}), Some(vec!["a:b"]), 1)]
    #[case::text_of_a_list(json!({"groups": "[\"dev\", \"ops\"]"}), Some(vec!["dev", "ops"]), 0)]
    #[case::text_that_may_be_a_list(json!({"groups": "dev,ops"}), None, 1)]
    #[case::text_of_names(json!({"groups": "[dev, ops]"}), None, 1)]
    #[case::dn(json!({"groups": "CN=dev,OU=x"}), Some(vec!["CN=dev,OU=x"]), 0)]
    #[case::bracket(json!({"groups": "[dev"}), Some(vec!["[dev"]), 0)]
    #[case::numbers(json!({"groups": [1, 2]}), Some(vec!["1", "2"]), 0)]
    #[case::mixed(json!({"groups": ["dev", {}, null, ["x"], ".."]}), Some(vec!["dev"]), 1)]
    #[case::unusable(json!({"groups": ["/", "."]}), None, 2)]
    #[case::many(json!({"groups": (0..501).map(|n| n.to_string()).collect::<Vec<_>>()}), None, 1)]
    #[case::object(json!({"groups": {"dev": true}}), None, 1)]
    #[case::switch(json!({"groups": true}), None, 1)]
    #[case::overage(json!({"_claim_names": {"groups": "src1"}}), None, 1)]
    #[case::overage_and_none(json!({"hasgroups": true, "groups": []}), None, 1)]
    #[case::overage_elsewhere(json!({"_claim_names": {"address": "src1"}}), None, 0)]
    #[case::overage_and_some(json!({"hasgroups": "true", "groups": ["dev"]}), Some(vec!["dev"]), 0)]
    fn l16_a_groups_claim_that_is_absent_is_not_an_empty_one(
        #[case] claims: Value,
        #[case] expected: Option<Vec<&str>>,
        #[case] left_out: usize,
    ) {
        let found = read(claims.as_object().unwrap(), "groups");
        let expected = expected.map(|groups| groups.into_iter().map(str::to_owned).collect());
        assert_eq!(found.names, expected, "{found:?}");
        assert_eq!(found.left_out.len(), left_out, "{found:?}");
    }

    #[test]
    fn what_is_left_out_or_renamed_is_named() {
        let said = &read(&Map::new(), "realm_access.rolez").left_out[0];
        assert!(
            said.contains("does not send the claim realm_access.rolez"),
            "{said}"
        );
        let claims = json!({"groups": ["/a/b", "x".repeat(200), {}, "/a:b/c"]});
        let found = read(claims.as_object().unwrap(), "groups");
        assert_eq!(found.renamed, ["\"/a/b\" is a:b here"]);
        let said = &found.left_out[0];
        for part in [
            "3 values",
            "128 characters",
            "an object in place of a name",
            "\"/a:b/c\": a part of a path must not contain \":\"",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}
