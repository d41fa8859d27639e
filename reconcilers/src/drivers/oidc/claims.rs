//! From claims to a person.

use std::collections::{BTreeSet, HashMap};

use openidconnect::AdditionalClaims;
use schema::live::ProvidedIdentity;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ProviderSettings;
use super::error::ProviderError;

/// Claims that the standard does not name.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct OtherClaims(HashMap<String, Value>);

impl AdditionalClaims for OtherClaims {}

/// The claims of one answer, whether the standard names them or not.
pub(super) fn all(claims: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(claims) {
        Ok(Value::Object(claims)) => claims,
        _ => Map::new(),
    }
}

/// Whether a claim that is wanted is not there.
pub(super) fn is_missing(claims: &Map<String, Value>, name: &str) -> bool {
    claims.get(name).is_none_or(Value::is_null)
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
    if name_claim == "email" && claims.get("email_verified") == Some(&Value::Bool(false)) {
        return Err(ProviderError::Token(
            "the provider has not verified the e-mail address that is the user name".to_owned(),
        ));
    }
    Ok(ProvidedIdentity {
        subject: identity,
        name: name.to_owned(),
        groups: groups(claims.get(groups_claim)),
    })
}

/// The groups that a claim names: a list, or one. Anything else says nothing about groups, as a claim that is not there.
fn groups(claim: Option<&Value>) -> Option<BTreeSet<String>> {
    // Some providers write groups as paths.
    let name = |text: &str| text.strip_prefix('/').unwrap_or(text).to_owned();
    match claim? {
        Value::String(group) => Some(BTreeSet::from([name(group)])),
        Value::Array(groups) => {
            let groups = groups.iter().map(|group| group.as_str().map(name));
            groups.collect()
        }
        _ => None,
    }
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
    #[case::paths(json!({"groups": ["/dev", "/a/b"]}), Some(vec!["a/b", "dev"]))]
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
