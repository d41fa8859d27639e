//! Searches.

use ldap3::adapters::EntriesOnly;
use ldap3::controls::{ControlType, PagedResults, RawControl};
use ldap3::{LdapResult, Scope, SearchEntry, SearchOptions, ldap_escape};

use super::connect::Connection;
use super::error::DirectoryError;
use super::{DirectorySettings, GroupSearch};
use crate::drivers::shown;

/// The attribute in which an entry names the groups that it is in.
pub(super) const MEMBER_OF: &str = "memberOf";
/// Entries that are enough for a test.
const SOME: usize = 10;
/// Most entries of one search: more would take gigabytes of memory.
const MOST: usize = 1_000_000;

/// An entry of somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The distinguished name.
    pub dn: String,
    /// The user name, as the directory writes it.
    pub name: String,
    /// The DNs of groups, if it is users that name them.
    pub member_of: Vec<String>,
}

/// Searches what has few entries; more than `most` are refused, however many the server sends.
pub(super) async fn few(
    connection: &Connection,
    (base, scope, filter): (&str, Scope, &str),
    attributes: Vec<String>,
    most: usize,
) -> Result<(Vec<SearchEntry>, LdapResult), DirectoryError> {
    let failed = |error| of_filter(connection, error, filter);
    let limit = i32::try_from(most).unwrap_or(i32::MAX);
    let mut stream = connection
        .request()
        .with_search_options(SearchOptions::new().sizelimit(limit))
        .streaming_search_with(EntriesOnly::new(), base, scope, filter, attributes)
        .await
        .map_err(failed)?;
    let mut entries = Vec::new();
    while let Some(entry) = stream.next().await.map_err(failed)? {
        if entries.len() == most {
            return Err(DirectoryError::TooMany(most));
        }
        if !entry.is_ref() && !entry.is_intermediate() {
            entries.push(SearchEntry::construct(entry));
        }
    }
    Ok((entries, stream.finish().await))
}

/// The entry of the user with a name.
pub(super) async fn person(
    connection: &Connection,
    settings: &DirectorySettings,
    name: &str,
) -> Result<Option<Entry>, DirectoryError> {
    let filter = settings.filter.replace("{{username}}", &ldap_escape(name));
    let search = (settings.base_dn.as_str(), Scope::Subtree, filter.as_str());
    // A second one tells that the name is ambiguous.
    let (mut entries, result) = few(connection, search, attributes(settings), 2).await?;
    match (entries.len(), result.rc) {
        (2.., _) | (_, 4) => Err(DirectoryError::Ambiguous),
        (_, 0) => entries
            .pop()
            .map(|entry| as_entry(entry, &settings.username_attribute))
            .transpose(),
        _ => Err(DirectoryError::of_result(&result, &settings.base_dn)),
    }
}

/// Returns true when no other entry has the name of this one.
pub(super) async fn is_only_one(
    connection: &Connection,
    settings: &DirectorySettings,
    entry: &Entry,
) -> Result<bool, DirectoryError> {
    let everybody = settings.filter.replace("{{username}}", "*");
    let everybody = match everybody.starts_with('(') {
        true => everybody,
        false => format!("({everybody})"),
    };
    let (attribute, name) = (&settings.username_attribute, ldap_escape(&entry.name));
    let filter = format!("(&{everybody}({attribute}={name}))");
    let search = (settings.base_dn.as_str(), Scope::Subtree, filter.as_str());
    let (entries, result) = few(connection, search, vec!["1.1".to_owned()], 2).await?;
    match (entries.as_slice(), result.rc) {
        ([only], 0) => Ok(super::dn::key(&only.dn) == super::dn::key(&entry.dn)),
        (_, 0 | 4) => Ok(false),
        _ => Err(DirectoryError::of_result(&result, &settings.base_dn)),
    }
}

/// Everybody.
pub(super) async fn people(
    connection: &Connection,
    settings: &DirectorySettings,
) -> Result<Vec<Entry>, DirectoryError> {
    let filter = settings.filter.replace("{{username}}", "*");
    let (base, attribute) = (&settings.base_dn, &settings.username_attribute);
    let read = |entry| as_entry(entry, attribute);
    all(
        connection,
        settings,
        base,
        &filter,
        attributes(settings),
        read,
    )
    .await
}

/// A few users, of however many.
pub(super) async fn some_people(
    connection: &Connection,
    settings: &DirectorySettings,
) -> Result<Vec<Entry>, DirectoryError> {
    let filter = settings.filter.replace("{{username}}", "*");
    let search = (settings.base_dn.as_str(), filter.as_str());
    let entries = some(connection, search, attributes(settings)).await?;
    let read = |entry| as_entry(entry, &settings.username_attribute);
    entries.into_iter().map(read).collect()
}

/// A few of the entries that a filter finds, of however many.
pub(super) async fn some(
    connection: &Connection,
    (base, filter): (&str, &str),
    attributes: Vec<String>,
) -> Result<Vec<SearchEntry>, DirectoryError> {
    let search = (base, Scope::Subtree, filter);
    let (entries, result) = few(connection, search, attributes, SOME).await?;
    match result.rc {
        // 4: there are more.
        0 | 4 => Ok(entries),
        _ => Err(DirectoryError::of_result(&result, base)),
    }
}

/// What `read` makes of all entries, page by page. An answer that is not complete is an error.
///
/// Not by the library's own paging, which looks at the result of the last page only. Entries as they come are several times as
/// large as what is wanted of them, so they are not collected first.
pub(super) async fn all<T>(
    connection: &Connection,
    settings: &DirectorySettings,
    base: &str,
    filter: &str,
    attributes: Vec<String>,
    read: impl Fn(SearchEntry) -> Result<T, DirectoryError>,
) -> Result<Vec<T>, DirectoryError> {
    let incomplete = |why: &str| Err(DirectoryError::Incomplete(why.to_owned()));
    let (mut all, mut cookie) = (Vec::new(), Vec::new());
    loop {
        let page = PagedResults {
            size: i32::try_from(settings.page_size.get()).unwrap_or(i32::MAX),
            cookie: cookie.clone(),
        };
        let failed = |error| of_filter(connection, error, filter);
        let mut stream = connection
            .request()
            .with_controls(RawControl::from(page))
            .streaming_search_with(
                EntriesOnly::new(),
                base,
                Scope::Subtree,
                filter,
                attributes.clone(),
            )
            .await
            .map_err(failed)?;
        let before = all.len();
        // Counted one by one: a server may send more than it was asked for.
        while let Some(entry) = stream.next().await.map_err(failed)? {
            if all.len() == MOST {
                return Err(DirectoryError::TooMany(MOST));
            }
            // One that cannot be read says less than an answer that was cut short, so that is looked at first.
            all.push(read(SearchEntry::construct(entry)));
        }
        let result = stream.finish().await;
        if result.rc != 0 {
            return Err(DirectoryError::of_result(&result, base));
        }
        if let Some(elsewhere) = result.refs.iter().find(|it| !is_partition(it)) {
            let why = format!("a part of it is at {}", shown(elsewhere));
            return Err(DirectoryError::Incomplete(why));
        }
        let mut controls = result.ctrls.iter();
        let answered = controls.find(|it| matches!(it.0, Some(ControlType::PagedResults)));
        match answered.map(|control| control.1.parse::<PagedResults>().cookie) {
            Some(next) if next.is_empty() => return all.into_iter().collect(),
            Some(_) if all.len() == before => {
                return incomplete("a page was empty, and not the last one");
            }
            Some(next) => cookie = next,
            // A server that knows no pages sends everything at once.
            None if cookie.is_empty() => return all.into_iter().collect(),
            None => return incomplete("it has forgotten the list in between"),
        }
    }
}

/// Whether a reference is to what Active Directory keeps beside people: every search from the top names these.
fn is_partition(reference: &str) -> bool {
    let beside = [
        "DC=DomainDnsZones,",
        "DC=ForestDnsZones,",
        "CN=Configuration,",
    ];
    beside.iter().any(|it| reference.contains(it))
}

fn of_filter(connection: &Connection, error: ldap3::LdapError, filter: &str) -> DirectoryError {
    match error {
        ldap3::LdapError::FilterParsing => DirectoryError::Filter(filter.to_owned()),
        error => connection.failure(error),
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

fn as_entry(entry: SearchEntry, username_attribute: &str) -> Result<Entry, DirectoryError> {
    let unreadable = |attribute: &str| DirectoryError::Unreadable {
        dn: shown(&entry.dn),
        attribute: attribute.to_owned(),
    };
    let names = values(&entry, username_attribute).ok_or_else(|| unreadable(username_attribute))?;
    // Of several, nobody could say whose account it is: values have no order.
    let [name] = names else {
        return Err(unreadable(username_attribute));
    };
    let member_of = values(&entry, MEMBER_OF).ok_or_else(|| unreadable(MEMBER_OF))?;
    Ok(Entry {
        name: name.clone(),
        member_of: member_of.to_vec(),
        dn: entry.dn.clone(),
    })
}

/// The values of an attribute, whose name servers write in any case. `None` when not all of them are there as texts: some are
/// no UTF-8, or the server sends them in parts.
pub(super) fn values<'a>(entry: &'a SearchEntry, name: &str) -> Option<&'a [String]> {
    let is_it = |key: &str| key.eq_ignore_ascii_case(name);
    let in_parts = |key: &String| key.split_once(';').is_some_and(|(key, _)| is_it(key));
    if entry.bin_attrs.keys().any(|key| is_it(key)) || entry.attrs.keys().any(in_parts) {
        return None;
    }
    let found = entry.attrs.iter().find(|(key, _)| is_it(key));
    Some(found.map_or(&[], |(_, values)| values))
}
