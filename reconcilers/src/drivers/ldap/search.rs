//! Searches.

use ldap3::adapters::EntriesOnly;
use ldap3::controls::{ControlType, PagedResults, RawControl};
use ldap3::{LdapResult, Scope, SearchEntry, SearchOptions, ldap_escape};

use super::connect::Connection;
use super::error::DirectoryError;
use super::identity::{Identity, identity};
use super::{DirectorySettings, GroupSearch, LeftOut, dn};
use crate::drivers::shown;

/// The attribute in which an entry names the groups that it is in.
pub(super) const MEMBER_OF: &str = "memberOf";
/// Entries that are enough for a test.
const SOME: usize = 10;
/// Most entries of one search: more would take gigabytes of memory.
const MOST: usize = 1_000_000;

/// Most pages without an entry in a row.
const MOST_EMPTY: usize = 1000;
/// Most values that a text for people names.
const NAMED: usize = 5;

/// An entry of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The distinguished name.
    pub dn: String,
    /// The user name, as the directory writes it, without spaces around it.
    pub name: String,
    /// Further values of the attribute with the name.
    pub others: Vec<String>,
    /// What identifies it whatever its name is, if that is known.
    pub identity: Option<Identity>,
    /// The DNs of groups, if it is users that name them.
    pub member_of: MemberOf,
}

/// The groups that an entry names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MemberOf {
    /// Their DNs.
    pub dns: Vec<String>,
    /// There are more that can't be read.
    pub incomplete: bool,
}

/// An entry as it was read: one whose user is not known is left out, with the groups that it names.
pub(super) type ReadEntry = Result<Entry, Box<(LeftOut, MemberOf)>>;

/// Searches what has few entries; more than `most` are refused, however many the server sends.
pub(super) async fn few(
    connection: &Connection,
    search: (&str, Scope, &str),
    attributes: Vec<String>,
    most: usize,
) -> Result<(Vec<SearchEntry>, LdapResult), DirectoryError> {
    match read_first(connection, search, attributes, most).await? {
        (entries, Some(result)) => Ok((entries, result)),
        (_, None) => Err(DirectoryError::TooMany(most)),
    }
}

/// Reads the first `most` entries of a search. The result is `None` when a server sends more than it was asked for, as Samba does.
async fn read_first(
    connection: &Connection,
    (base, scope, filter): (&str, Scope, &str),
    attributes: Vec<String>,
    most: usize,
) -> Result<(Vec<SearchEntry>, Option<LdapResult>), DirectoryError> {
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
            stream.finish().await;
            return Ok((entries, None));
        }
        if !entry.is_ref() && !entry.is_intermediate() {
            entries.push(SearchEntry::construct(entry));
        }
    }
    Ok((entries, Some(stream.finish().await)))
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
        (0, 0) => {
            elsewhere(&result)?;
            Ok(None)
        }
        (_, 0) => entries
            .pop()
            .map(|entry| as_entry(entry, settings))
            .transpose()
            .map_err(|left| left.0.into()),
        _ => Err(DirectoryError::of_result(&result, &settings.base_dn)),
    }
}

/// Returns true when no other entry has the name of this one, or what identifies it.
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
    let mut same = format!("({attribute}={name})");
    if let Some(filter) = entry.identity.as_ref().and_then(|it| it.filter.as_ref()) {
        same = format!("(|{same}{filter})");
    }
    let filter = format!("(&{everybody}{same})");
    let search = (settings.base_dn.as_str(), Scope::Subtree, filter.as_str());
    let (entries, result) = few(connection, search, vec!["1.1".to_owned()], 2).await?;
    match (entries.as_slice(), result.rc) {
        ([only], 0) => Ok(dn::key(&only.dn) == dn::key(&entry.dn)),
        (_, 0 | 4) => Ok(false),
        _ => Err(DirectoryError::of_result(&result, &settings.base_dn)),
    }
}

/// Everybody.
pub(super) async fn people(
    connection: &Connection,
    settings: &DirectorySettings,
) -> Result<Vec<ReadEntry>, DirectoryError> {
    let filter = settings.filter.replace("{{username}}", "*");
    let read = |entry| as_entry(entry, settings);
    all(
        connection,
        settings,
        &settings.base_dn,
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
) -> Result<Vec<ReadEntry>, DirectoryError> {
    let filter = settings.filter.replace("{{username}}", "*");
    let search = (settings.base_dn.as_str(), filter.as_str());
    let entries = some(connection, search, attributes(settings)).await?;
    let read = |entry| as_entry(entry, settings);
    Ok(entries.into_iter().map(read).collect())
}

/// A few of the entries that a filter finds, of however many.
pub(super) async fn some(
    connection: &Connection,
    (base, filter): (&str, &str),
    attributes: Vec<String>,
) -> Result<Vec<SearchEntry>, DirectoryError> {
    let search = (base, Scope::Subtree, filter);
    match read_first(connection, search, attributes, SOME).await? {
        // 4: there are more.
        (_, Some(result)) if !matches!(result.rc, 0 | 4) => {
            Err(DirectoryError::of_result(&result, base))
        }
        (entries, _) => Ok(entries),
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
    read: impl Fn(SearchEntry) -> T,
) -> Result<Vec<T>, DirectoryError> {
    let incomplete = |why: &str| Err(DirectoryError::Incomplete(why.to_owned()));
    let (mut all, mut cookie, mut empty) = (Vec::new(), Vec::new(), 0);
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
            all.push(read(SearchEntry::construct(entry)));
        }
        let result = stream.finish().await;
        if result.rc != 0 {
            return Err(DirectoryError::of_result(&result, base));
        }
        elsewhere(&result)?;
        let mut controls = result.ctrls.iter();
        let answered = controls.find(|it| matches!(it.0, Some(ControlType::PagedResults)));
        match answered.map(|control| control.1.parse::<PagedResults>().cookie) {
            Some(next) if next.is_empty() => return Ok(all),
            // Servers that look at many entries for few that fit send pages without any (RFC 2696 §3).
            Some(_) if all.len() == before && empty == MOST_EMPTY => {
                return incomplete("more than 1,000 pages in a row were empty");
            }
            Some(next) => {
                empty = if all.len() == before { empty + 1 } else { 0 };
                cookie = next;
            }
            // A server that knows no pages sends everything at once.
            None if cookie.is_empty() => return Ok(all),
            None => return incomplete("it has forgotten the list in between"),
        }
    }
}

/// Fails when a part of what was searched is on another server.
fn elsewhere(result: &LdapResult) -> Result<(), DirectoryError> {
    match result.refs.iter().find(|it| !is_partition(it)) {
        Some(elsewhere) => Err(DirectoryError::Reference(shown(elsewhere))),
        None => Ok(()),
    }
}

/// Whether a reference is to what Active Directory keeps beside people: every search from the top names these.
fn is_partition(reference: &str) -> bool {
    let reference = reference.to_lowercase();
    let beside = [
        "dc=domaindnszones,",
        "dc=forestdnszones,",
        "cn=configuration,",
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
    attributes.extend(settings.id_attributes.iter().cloned());
    if matches!(settings.groups, GroupSearch::MemberOf { .. }) {
        // Servers that compute it send it only to those who ask for it.
        attributes.push(MEMBER_OF.to_owned());
    }
    attributes
}

/// Reads an entry of a user: for a sign-in and for a list alike.
fn as_entry(entry: SearchEntry, settings: &DirectorySettings) -> ReadEntry {
    let attribute = &settings.username_attribute;
    let identity = identity(&entry, settings);
    let groups = values(&entry, MEMBER_OF);
    let member_of = MemberOf {
        incomplete: groups.in_parts || groups.unreadable > 0,
        dns: groups.texts,
    };
    let Values {
        texts,
        unreadable,
        in_parts,
    } = values(&entry, attribute);
    let mut names: Vec<String> = Vec::new();
    for text in texts {
        let name = text.trim();
        let is_new = names
            .iter()
            .all(|it| dn::text_key(it) != dn::text_key(name));
        if !name.is_empty() && is_new {
            names.push(name.to_owned());
        }
    }
    let all = names.len() + unreadable;
    // Values have no order; the one in the DN is the one that the entry is known by.
    let named = dn::rdn_value(&entry.dn, attribute).map(|value| dn::text_key(&value));
    let chosen = match (all, in_parts) {
        (1, false) if unreadable == 0 => Some(0),
        _ => names.iter().position(|it| Some(dn::text_key(it)) == named),
    };
    let (identity, odd) = match identity {
        Ok(identity) => (identity, None),
        Err(odd) => (None, Some(odd)),
    };
    if let (Some(chosen), None) = (chosen, &odd) {
        return Ok(Entry {
            name: names.remove(chosen),
            others: names,
            identity,
            dn: entry.dn,
            member_of,
        });
    }
    let identities = match &odd {
        Some(odd) => odd.identities.clone(),
        None => identity.into_iter().map(|it| it.text).collect(),
    };
    let reason = match (all, unreadable) {
        _ if chosen.is_some() => odd.map(|odd| odd.reason).unwrap_or_default(),
        _ if in_parts => format!(
            "the directory sends the values of {attribute} in parts; choose an attribute with one value in ldap.username_attribute"
        ),
        (0, _) => format!(
            "it has no {attribute} that ldap.bind_dn may read; give it one, or exclude it by ldap.filter"
        ),
        (1, _) => format!("its {attribute} is not text in UTF-8; correct it in the directory"),
        _ => format!(
            "it has {all} values of {attribute} ({}), and its DN does not say which of them is the name; leave one of them, or exclude it by ldap.filter",
            some_of(&names)
        ),
    };
    let left = LeftOut {
        dn: entry.dn,
        names,
        identities,
        reason,
        ..LeftOut::default()
    };
    Err(Box::new((left, member_of)))
}

/// The first of some texts of the directory, for people.
pub(super) fn some_of(texts: &[String]) -> String {
    let mut some: Vec<String> = texts.iter().take(NAMED).map(|text| shown(text)).collect();
    if texts.len() > NAMED {
        some.push("…".to_owned());
    }
    some.join(", ")
}

impl From<LeftOut> for DirectoryError {
    fn from(left: LeftOut) -> Self {
        Self::Unreadable {
            dn: shown(&left.dn),
            why: left.reason,
        }
    }
}

/// The values of an attribute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Values {
    /// Those that are text.
    pub texts: Vec<String>,
    /// Number of those that are not.
    pub unreadable: usize,
    /// The server sends them in parts, of which none is in `texts`.
    pub in_parts: bool,
}

/// The values of an attribute, whose name servers write in any case. Those with a language or another option
/// (RFC 4512 §2.5) are not what was asked for.
pub(super) fn values(entry: &SearchEntry, name: &str) -> Values {
    let is_part = |key: &String| {
        key.split_once(';').is_some_and(|(key, options)| {
            key.eq_ignore_ascii_case(name) && options.to_lowercase().starts_with("range=")
        })
    };
    let mut found = Values {
        in_parts: entry
            .attrs
            .keys()
            .chain(entry.bin_attrs.keys())
            .any(is_part),
        ..Values::default()
    };
    let texts = entry.attrs.iter();
    let texts = texts.filter(|(key, _)| key.eq_ignore_ascii_case(name));
    found.texts.extend(texts.flat_map(|(_, it)| it).cloned());
    // The library takes all values for bytes when one of them is no text.
    let bytes = entry.bin_attrs.iter();
    for value in bytes
        .filter(|(key, _)| key.eq_ignore_ascii_case(name))
        .flat_map(|(_, values)| values)
    {
        match std::str::from_utf8(value) {
            Ok(text) => found.texts.push(text.to_owned()),
            Err(_) => found.unreadable += 1,
        }
    }
    found
}
