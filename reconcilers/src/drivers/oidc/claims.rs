//! From claims to a person.

use std::collections::{BTreeSet, HashMap};

use openidconnect::AdditionalClaims;
use schema::ids::PlainName;
use schema::live::ProvidedIdentity;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ProviderSettings;
use super::error::ProviderError;

const EMAIL: &str = "email";
const VERIFIED: &str = "email_verified";
/// Most groups of one user: what names more names all there are.
const MOST_GROUPS: usize = 500;

/// Claims that the standard does not name.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct OtherClaims(HashMap<String, Value>);

impl AdditionalClaims for OtherClaims {}

/// The claims of one answer, whether the standard names them or not. One that is null is not there.
pub(super) fn all(claims: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(claims) {
        Ok(Value::Object(mut claims)) => {
            claims.retain(|_, value| !value.is_null());
            claims
        }
        _ => Map::new(),
    }
}

/// Adds what another answer says besides. Whether an address is verified, only whoever names it says.
pub(super) fn add(claims: &mut Map<String, Value>, mut more: Map<String, Value>) {
    if claims.contains_key(EMAIL) {
        more.remove(VERIFIED);
    } else {
        claims.remove(VERIFIED);
    }
    for (name, value) in more {
        claims.entry(name).or_insert(value);
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
    let (name_claim, groups_claim) = (&settings.username_claim, &settings.groups_claim);
    let name = claims.get(name_claim).and_then(Value::as_str);
    let name = name.filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| ProviderError::NoName(name_claim.clone()))?;
    // An address that anybody may claim to have names nobody.
    if name_claim == EMAIL && claims.get(VERIFIED) != Some(&Value::Bool(true)) {
        return Err(ProviderError::NoName(format!(
            "{VERIFIED}, which {EMAIL} needs to be a user name"
        )));
    }
    Ok(ProvidedIdentity {
        subject: identity,
        name: name.to_owned(),
        groups: groups(claims.get(groups_claim)),
    })
}

/// The groups that a claim names: a list, or one. Anything else says nothing about groups, as a claim that is not there, and
/// so does one of which nothing can be used.
fn groups(claim: Option<&Value>) -> Option<BTreeSet<String>> {
    let named: Vec<&str> = match claim? {
        Value::String(group) => vec![group],
        Value::Array(groups) => groups.iter().map(Value::as_str).collect::<Option<_>>()?,
        _ => return None,
    };
    // Some providers write groups as paths.
    let names = named
        .iter()
        .map(|name| name.strip_prefix('/').unwrap_or(name));
    let names = names.filter(|name| PlainName::from_existing(name).is_ok());
    let usable: BTreeSet<String> = names.map(str::to_owned).collect();
    if usable.len() > MOST_GROUPS || (usable.is_empty() && !named.is_empty()) {
        tracing::warn!(
            groups = named.len(),
            "the identity provider names groups of which none can be used, or too many; they stay as they are"
        );
        return None;
    }
    Some(usable)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[rstest::rstest]
    #[case::absent(json!({}), None)]
    #[case::null(json!({"groups": null}), None)]
    #[case::none(json!({"groups": []}), Some(vec![]))]
    #[case::some(json!({"groups": ["dev", "ops", "dev"]}), Some(vec!["dev", "ops"]))]
    #[case::one(json!({"groups": "dev"}), Some(vec!["dev"]))]
    #[case::paths(json!({"groups": ["/dev", "/a/b"]}), Some(vec!["dev"]))]
    #[case::unusable(json!({"groups": ["/a/b", "."]}), None)]
    #[case::many(json!({"groups": (0..501).map(|n| n.to_string()).collect::<Vec<_>>()}), None)]
    #[case::numbers(json!({"groups": [1, 2]}), None)]
    #[case::mixed(json!({"groups": ["dev", {}]}), None)]
    #[case::object(json!({"groups": {"dev": true}}), None)]
    fn l16_a_groups_claim_that_is_absent_is_not_an_empty_one(
        #[case] claims: Value,
        #[case] expected: Option<Vec<&str>>,
    ) {
        let read = groups(claims.get("groups"));
        let expected = expected.map(|groups| groups.into_iter().map(str::to_owned).collect());
        assert_eq!(read, expected);
    }
}
