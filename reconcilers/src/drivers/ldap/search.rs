//! Searches.

use ldap3::adapters::{Adapter, EntriesOnly, PagedResults};
use ldap3::{Ldap, Scope, SearchEntry, SearchOptions, ldap_escape};

use super::error::DirectoryError;
use super::{DirectorySettings, GroupSearch, Person};

const MEMBER_OF: &str = "memberOf";
/// Most entries of one search: more would take gigabytes of memory.
const MOST: usize = 1_000_000;

/// Whoever has a name.
pub(super) async fn person(
    mut ldap: Ldap,
    settings: &DirectorySettings,
    name: &str,
) -> Result<Option<Person>, DirectoryError> {
    let timeout = settings.timeout;
    let filter = settings.filter.replace("{{username}}", &ldap_escape(name));
    // A second one tells that the name is ambiguous.
    let options = SearchOptions::new().sizelimit(2);
    let found = ldap
        .with_timeout(timeout)
        .with_search_options(options)
        .search(
            &settings.base_dn,
            Scope::Subtree,
            &filter,
            attributes(settings),
        )
        .await
        .map_err(|error| of_filter(error, settings, &filter))?;
    let entries = found.0.into_iter();
    let entries = entries.filter(|entry| !entry.is_ref() && !entry.is_intermediate());
    let mut entries: Vec<_> = entries.map(SearchEntry::construct).collect();
    match (entries.len(), found.1.rc) {
        (2.., _) | (_, 4) => Err(DirectoryError::Ambiguous),
        (_, 0) => Ok(entries
            .pop()
            .and_then(|entry| as_person(entry, &settings.username_attribute))),
        _ => Err(DirectoryError::of_result(&found.1, &settings.base_dn)),
    }
}

/// Everybody.
pub(super) async fn people(
    ldap: Ldap,
    settings: &DirectorySettings,
) -> Result<Vec<Person>, DirectoryError> {
    let filter = settings.filter.replace("{{username}}", "*");
    let mut people = Vec::new();
    let see = |entry| {
        people.extend(as_person(entry, &settings.username_attribute));
        people.len()
    };
    all(
        ldap,
        settings,
        &settings.base_dn,
        &filter,
        attributes(settings),
        see,
    )
    .await?;
    Ok(people)
}

/// Hands over every entry, page by page. An answer that is not complete is an error. `see` says how many are kept.
async fn all(
    mut ldap: Ldap,
    settings: &DirectorySettings,
    base: &str,
    filter: &str,
    attributes: Vec<String>,
    mut see: impl FnMut(SearchEntry) -> usize,
) -> Result<(), DirectoryError> {
    let timeout = settings.timeout;
    let failed = |error| of_filter(error, settings, filter);
    let adapters: Vec<Box<dyn Adapter<'_, _, _>>> = vec![
        Box::new(EntriesOnly::new()),
        Box::new(PagedResults::new(settings.page_size)),
    ];
    let mut stream = ldap
        .with_timeout(timeout)
        .streaming_search_with(adapters, base, Scope::Subtree, filter, attributes)
        .await
        .map_err(failed)?;
    while let Some(entry) = stream.next().await.map_err(failed)? {
        if see(SearchEntry::construct(entry)) > MOST {
            return Err(DirectoryError::TooMany(MOST));
        }
    }
    let result = stream.finish().await;
    match result.rc {
        0 => Ok(()),
        _ => Err(DirectoryError::of_result(&result, base)),
    }
}

fn of_filter(
    error: ldap3::LdapError,
    settings: &DirectorySettings,
    filter: &str,
) -> DirectoryError {
    match error {
        ldap3::LdapError::FilterParsing => DirectoryError::Filter(filter.to_owned()),
        error => DirectoryError::of(error, settings.timeout),
    }
}

fn attributes(settings: &DirectorySettings) -> Vec<String> {
    let mut attributes = vec![settings.username_attribute.clone()];
    if settings.groups == GroupSearch::MemberOf {
        // Servers that compute it send it only to those who ask for it.
        attributes.push(MEMBER_OF.to_owned());
    }
    attributes
}

/// `None` for an entry without a name.
fn as_person(entry: SearchEntry, username_attribute: &str) -> Option<Person> {
    let SearchEntry { dn, mut attrs, .. } = entry;
    Some(Person {
        name: values(&mut attrs, username_attribute).into_iter().next()?,
        member_of: values(&mut attrs, MEMBER_OF),
        dn,
    })
}

/// The values of an attribute, whose name servers write in any case.
fn values(
    attributes: &mut std::collections::HashMap<String, Vec<String>>,
    name: &str,
) -> Vec<String> {
    let key = attributes.keys().find(|key| key.eq_ignore_ascii_case(name));
    let key = key.cloned();
    key.and_then(|key| attributes.remove(&key))
        .unwrap_or_default()
}
