//! The groups of one person, as a sign-in asks for them.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use ldap3::ldap_escape;
use tokio::time::timeout;

use super::connect::Connection;
use super::error::DirectoryError;
use super::groups::{LEVELS, MOST, upwards};
use super::search::{Entry, all, values};
use super::{DirectorySettings, GroupSearch, dn};

/// Groups in one question for those above them.
const IN_ONE_FILTER: usize = 50;
/// Longest time of a search that a server may have no index for.
const UNINDEXED: Duration = Duration::from_millis(500);
/// Attributes that hold DNs, and are compared as such by every server (RFC 4519).
const OF_DNS: [&str; 6] = [
    "member",
    "2.5.4.31",
    "uniquemember",
    "2.5.4.50",
    "roleoccupant",
    "2.5.4.33",
];
/// Rules of comparison that take upper and lower case for the same: caseIgnoreIA5Match, and caseIgnoreMatch (RFC 4517 §4.2).
const IGNORING_CASE: [&str; 2] = ["1.3.6.1.4.1.1466.109.114.2", "2.5.13.2"];

/// The groups of one person: directly those that name the person, and all above them. `None`: which they are is not known.
pub(super) async fn of_person(
    ldap: &Connection,
    settings: &DirectorySettings,
    person: &Entry,
) -> Result<Option<BTreeSet<String>>, DirectoryError> {
    let (base_dn, filter, attribute) = match &settings.groups {
        GroupSearch::MemberOf { base_dn } => {
            let direct = &person.member_of;
            if direct.incomplete || direct.dns.is_empty() {
                return Ok(None);
            }
            let found = upwards(ldap, direct.dns.clone(), base_dn.as_deref()).await?;
            // More likely the base is wrong than that the person has left all groups.
            if found.groups.is_empty() {
                return Ok(None);
            }
            let keys: Vec<String> = direct.dns.iter().map(|dn| dn::key(dn)).collect();
            let names = found.groups.names_from(keys.iter().map(String::as_str));
            return Ok(Some(names));
        }
        GroupSearch::Groups {
            base_dn,
            filter,
            member_attribute,
        } => (base_dn, filter, member_attribute),
    };
    let mut next = Vec::new();
    let mut seen: HashMap<String, String> = HashMap::new();
    let mut level = direct(ldap, settings, (base_dn, filter, attribute), person).await?;
    for _ in 0..LEVELS {
        next.clear();
        for dn in level {
            let name = dn::group_name(&dn).unwrap_or_default();
            if seen.insert(dn::key(&dn), name).is_none() {
                next.push(dn);
            }
        }
        if next.is_empty() {
            break;
        }
        if seen.len() > MOST {
            return Err(DirectoryError::TooMany(MOST));
        }
        level = Vec::new();
        for members in next.chunks(IN_ONE_FILTER) {
            let any = members.iter().map(|member| equals(attribute, member));
            let any: String = any.collect();
            level.extend(with_members(ldap, settings, (base_dn, filter), &any).await?);
        }
    }
    let names = seen.into_values().filter(|name| !name.is_empty());
    let names: BTreeSet<String> = names.collect();
    // A server that hides groups can't be told from one that has none.
    Ok((!names.is_empty()).then_some(names))
}

/// The DNs of the groups that name a person, by DN or by user name.
///
/// The usual ways of writing a name, and the DN, are what servers have an index for. Where the attribute is a text, such as
/// `memberUid` (RFC 2307), names are also compared as [`dn::text_key`] does, by the rule of the comparison (RFC 4511 §4.5.1.7.7),
/// and DNs as [`dn::key`] does: as far as the server answers such searches in time.
async fn direct(
    ldap: &Connection,
    settings: &DirectorySettings,
    (base_dn, filter, attribute): (&str, &str, &str),
    person: &Entry,
) -> Result<Vec<String>, DirectoryError> {
    let name = &person.name;
    let first = name.chars().next().into_iter();
    let capitalised = first
        .flat_map(char::to_uppercase)
        .chain(name.chars().skip(1).flat_map(char::to_lowercase));
    let written: BTreeSet<String> = [
        name.clone(),
        name.to_lowercase(),
        name.to_uppercase(),
        capitalised.collect(),
        person.dn.clone(),
    ]
    .into();
    let plain: String = written.iter().map(|it| equals(attribute, it)).collect();
    let escaped = ldap_escape(name);
    let rules: String = IGNORING_CASE
        .iter()
        .map(|rule| format!("({attribute}:{rule}:={escaped})"))
        .collect();
    let search = (base_dn, filter);
    let mut found = with_members(ldap, settings, search, &plain).await?;
    if !OF_DNS.contains(&attribute.to_lowercase().as_str()) {
        let (by_rule, by_dn) = tokio::try_join!(
            if_answered(with_members(ldap, settings, search, &rules)),
            if_answered(with_dn(
                ldap,
                settings,
                (base_dn, filter, attribute),
                person
            )),
        )?;
        found.extend(by_rule.into_iter().chain(by_dn));
    }
    Ok(found)
}

/// Finds nothing where a server refuses a search, breaks it off, or takes too long.
async fn if_answered(
    search: impl Future<Output = Result<Vec<String>, DirectoryError>>,
) -> Result<Vec<String>, DirectoryError> {
    use DirectoryError::{Incomplete, Refused, Timeout};
    match timeout(UNINDEXED, search).await {
        Err(_) | Ok(Err(Refused { .. } | Incomplete(_) | Timeout(_))) => Ok(Vec::new()),
        Ok(found) => found,
    }
}

/// The DNs of the groups that name a person by DN, in any way of writing it, in an attribute that is a text.
async fn with_dn(
    ldap: &Connection,
    settings: &DirectorySettings,
    (base_dn, filter, attribute): (&str, &str, &str),
    person: &Entry,
) -> Result<Vec<String>, DirectoryError> {
    let filter = narrowed(filter, &format!("({attribute}=*\\3d*)"));
    let key = dn::key(&person.dn);
    let attributes = vec![attribute.to_owned()];
    let found = all(ldap, settings, base_dn, &filter, attributes, |entry| {
        let members = values(&entry, attribute).texts;
        let named = members.iter().any(|it| dn::member_key(it) == key);
        named.then_some(entry.dn)
    });
    Ok(found.await?.into_iter().flatten().collect())
}

fn equals(attribute: &str, value: &str) -> String {
    format!("({attribute}={})", ldap_escape(value))
}

/// The DNs of the groups that fit any of some filters.
async fn with_members(
    ldap: &Connection,
    settings: &DirectorySettings,
    (base_dn, filter): (&str, &str),
    any: &str,
) -> Result<Vec<String>, DirectoryError> {
    let filter = narrowed(filter, any);
    let attributes = vec!["1.1".to_owned()];
    all(ldap, settings, base_dn, &filter, attributes, |entry| {
        entry.dn
    })
    .await
}

/// The filter of all groups that fit any of some filters, too.
fn narrowed(filter: &str, any: &str) -> String {
    let filter = filter.replace("{{groupname}}", "*");
    match filter.starts_with('(') {
        true => format!("(&{filter}(|{any}))"),
        false => format!("(&({filter})(|{any}))"),
    }
}
