//! Who is in which group, groups in groups included.
//!
//! A group that cannot be read has its name and no group above it. Circles, which are easy to make in a directory, end where
//! they began (L14).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use futures::{StreamExt, TryStreamExt};
use ldap3::{Scope, SearchEntry, ldap_escape};

use super::connect::Connection;
use super::error::DirectoryError;
use super::search::{MEMBER_OF, all, few, values};
use super::{DirectorySettings, Note, dn, search};
use crate::drivers::shown;

/// Most levels of groups in groups.
pub(super) const LEVELS: usize = 32;
/// Most groups that are read one by one.
pub(super) const MOST: usize = 20_000;
/// Requests for single groups that are under way at once, over one connection.
const AT_ONCE: usize = 16;
/// Most parts in which a server sends the members of one group.
const PARTS: usize = 10_000;

/// Groups, and which lie directly above each. Keys are those of [`dn::key`].
#[derive(Debug, Default)]
pub(super) struct Groups {
    names: HashMap<String, String>,
    above: HashMap<String, Vec<String>>,
}

impl Groups {
    /// The names of groups and of all above them.
    pub(super) fn names_from<'a>(&self, direct: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
        let mut seen: HashSet<&str> = HashSet::new();
        let mut next: Vec<&str> = direct.collect();
        let mut names = BTreeSet::new();
        while let Some(group) = next.pop() {
            if !seen.insert(group) {
                continue;
            }
            names.extend(self.names.get(group).cloned());
            next.extend(
                self.above
                    .get(group)
                    .into_iter()
                    .flatten()
                    .map(String::as_str),
            );
        }
        names
    }

    /// By name, the names of the groups that are directly in each.
    pub(super) fn inside(&self) -> BTreeMap<String, Vec<String>> {
        let mut inside: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (group, above) in &self.above {
            let Some(name) = self.names.get(group) else {
                continue;
            };
            for above in above.iter().filter_map(|above| self.names.get(above)) {
                inside.entry(above.clone()).or_default().push(name.clone());
            }
        }
        inside.values_mut().for_each(|names| names.sort());
        inside
    }

    /// The names that several groups have, and which these are: they are one group here.
    pub(super) fn shared_names(&self) -> Vec<Note> {
        let mut of_name: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (key, name) in &self.names {
            let dn = key.replace('\0', ",").replace('\u{1}', "+");
            of_name.entry(dn::text_key(name)).or_default().push(dn);
        }
        of_name.retain(|_, dns| dns.len() > 1);
        let notes = of_name.into_iter().map(|(name, mut dns)| {
            dns.sort();
            let reason = format!(
                "{} groups have this name and are one here ({}); give them different names, or narrow ldap.group_base_dn",
                dns.len(),
                search::some_of(&dns)
            );
            Note { name, reason }
        });
        notes.collect()
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.above.is_empty()
    }

    /// The names of all of them.
    pub(super) fn all_names(&self) -> BTreeSet<String> {
        self.names.values().cloned().collect()
    }

    /// What one group is called.
    pub(super) fn name(&self, key: &str) -> Option<&String> {
        self.names.get(key)
    }

    fn add(&mut self, key: String, dn: &str, above: Vec<String>) {
        if let Some(name) = dn::group_name(dn) {
            self.names.insert(key.clone(), name);
        }
        self.above.insert(key, above);
    }
}

/// The groups of these DNs and all above them, as each names those that it is in.
///
/// Only what lies below `base`, if that is set: directories such as FreeIPA also name roles and rules there.
pub(super) async fn upwards(
    ldap: &Connection,
    direct: impl IntoIterator<Item = String>,
    base: Option<&str>,
) -> Result<Upwards, DirectoryError> {
    let mut found = Upwards::default();
    let mut next: BTreeMap<String, String> = BTreeMap::new();
    found.sort_out(&mut next, direct, base);
    for _ in 0..LEVELS {
        if next.is_empty() {
            break;
        }
        if found.groups.above.len() + next.len() > MOST {
            return Err(DirectoryError::TooMany(MOST));
        }
        let level = std::mem::take(&mut next).into_iter();
        let read = level.map(async |(key, dn)| {
            let read = read_group(ldap, &dn).await?;
            // Some servers name a group in lower case, wherever it is not the group's own entry.
            let (own, above) = read.unwrap_or_else(|| (dn, Vec::new()));
            Ok::<_, DirectoryError>((key, own, above))
        });
        let read: Vec<_> = futures::stream::iter(read)
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        for (key, own, above) in read {
            let keys = above.iter().map(|dn| dn::key(dn)).collect();
            found.groups.add(key, &own, keys);
            found.sort_out(&mut next, above, base);
        }
        next.retain(|key, _| !found.groups.above.contains_key(key));
    }
    Ok(found)
}

/// Groups that users name, and what they name besides.
#[derive(Debug, Default)]
pub(super) struct Upwards {
    pub(super) groups: Groups,
    /// By their keys, the DNs that do not lie below the base of groups.
    pub(super) outside: BTreeMap<String, String>,
}

impl Upwards {
    /// Puts what is a group into `next`.
    fn sort_out(
        &mut self,
        next: &mut BTreeMap<String, String>,
        dns: impl IntoIterator<Item = String>,
        base: Option<&str>,
    ) {
        for dn in dns {
            let list = match base.is_none_or(|base| dn::is_below(&dn, base)) {
                true => &mut *next,
                false => &mut self.outside,
            };
            list.entry(dn::key(&dn)).or_insert(dn);
        }
    }
}

/// The DN of a group, and the groups that it names as those that it is in; `None` when it cannot be read.
async fn read_group(
    ldap: &Connection,
    dn: &str,
) -> Result<Option<(String, Vec<String>)>, DirectoryError> {
    let search = (dn, Scope::Base, "(objectClass=*)");
    let (mut entries, result) = few(ldap, search, vec![MEMBER_OF.to_owned()], 1).await?;
    match result.rc {
        0 => {}
        // Not there, no name of an entry, not for us.
        32 | 34 | 50 => return Ok(None),
        _ => return Err(DirectoryError::of_result(&result, dn)),
    }
    Ok(entries.pop().map(|entry| {
        let above = values(&entry, MEMBER_OF).texts;
        (entry.dn, above)
    }))
}

/// Groups as a search finds them, and who is directly in which.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) groups: Groups,
    /// By [`dn::member_key`].
    pub(super) of_member: HashMap<String, Vec<String>>,
    /// The direct members of each, by its name.
    pub(super) members: BTreeMap<String, Vec<String>>,
    /// The groups with members that are no text, and how many of these each has.
    pub(super) unreadable: Vec<(String, usize)>,
}

impl Found {
    /// Notes on values of these groups that are not taken.
    pub(super) fn notes(&self, attribute: &str) -> Vec<Note> {
        let unreadable = self.unreadable.iter().map(|(dn, count)| Note {
            name: shown(dn),
            reason: format!(
                "values of {attribute} that are not text in UTF-8 are left out: {count}; correct them in the directory"
            ),
        });
        unreadable.chain(self.groups.shared_names()).collect()
    }
}

/// All groups that the filter finds, or only that of one name.
pub(super) async fn found(
    ldap: &Connection,
    settings: &DirectorySettings,
    (base, filter, attribute): (&str, &str, &str),
    name: Option<&str>,
) -> Result<Found, DirectoryError> {
    let name = name.map_or_else(|| "*".into(), ldap_escape);
    let filter = filter.replace("{{groupname}}", &name);
    let entries = all(
        ldap,
        settings,
        base,
        &filter,
        vec![attribute.to_owned()],
        |entry| entry,
    )
    .await?;
    let mut found = Found::default();
    let mut members_of = Vec::with_capacity(entries.len());
    for entry in entries {
        let (members, unreadable) = members(ldap, &entry, attribute).await?;
        if unreadable > 0 {
            found.unreadable.push((entry.dn.clone(), unreadable));
        }
        found.groups.add(dn::key(&entry.dn), &entry.dn, Vec::new());
        members_of.push((entry.dn, members));
    }
    for (dn, members) in members_of {
        let group = dn::key(&dn);
        for member in &members {
            let key = dn::member_key(member);
            if let Some(above) = found.groups.above.get_mut(&key) {
                above.push(group.clone());
            } else {
                found.of_member.entry(key).or_default().push(group.clone());
            }
        }
        if let Some(name) = dn::group_name(&dn) {
            found.members.insert(name, members);
        }
    }
    Ok(found)
}

/// Names of a few groups, of however many.
pub(super) async fn some(
    ldap: &Connection,
    base: &str,
    filter: &str,
) -> Result<Vec<String>, DirectoryError> {
    let filter = filter.replace("{{groupname}}", "*");
    let found = search::some(ldap, (base, &filter), vec!["1.1".to_owned()]).await?;
    let names = found.iter().filter_map(|entry| dn::group_name(&entry.dn));
    Ok(names.collect())
}

/// The members of a group, also when the server sends them in parts (`member;range=0-1499`, MS-ADTS 3.1.1.3.1.3.3), and how many
/// are no text: these name no user.
async fn members(
    ldap: &Connection,
    entry: &SearchEntry,
    attribute: &str,
) -> Result<(Vec<String>, usize), DirectoryError> {
    let unreadable = || DirectoryError::Unreadable {
        dn: shown(&entry.dn),
        why: format!(
            "the directory sends its {attribute} in parts that do not fit together; check ldap.group_member_attribute and the directory"
        ),
    };
    let whole = values(entry, attribute);
    if !whole.in_parts {
        return Ok((whole.texts, whole.unreadable));
    }
    let mut part = part_of(entry, attribute).ok_or_else(unreadable)?;
    let (mut all, mut no_texts) = (Vec::new(), 0);
    for _ in 0..PARTS {
        all.append(&mut part.values);
        no_texts += part.unreadable;
        let Some(next) = part.next else {
            return Ok((all, no_texts));
        };
        let wanted = format!("{attribute};range={next}-*");
        let search = (entry.dn.as_str(), Scope::Base, "(objectClass=*)");
        let (mut entries, result) = few(ldap, search, vec![wanted], 1).await?;
        if result.rc != 0 {
            return Err(DirectoryError::of_result(&result, &entry.dn));
        }
        let answer = entries.pop().ok_or_else(unreadable)?;
        part = part_of(&answer, attribute).ok_or_else(unreadable)?;
    }
    Err(unreadable())
}

/// A part of the values of an attribute.
struct Part {
    values: Vec<String>,
    /// Number of values that are no text.
    unreadable: usize,
    /// Where the next one begins; `None`: this is the last.
    next: Option<usize>,
}

fn part_of(entry: &SearchEntry, attribute: &str) -> Option<Part> {
    let texts = entry.attrs.iter().map(|(key, it)| (key, it.clone(), 0));
    let bytes = entry.bin_attrs.iter().map(|(key, it)| {
        let texts = it.iter().filter_map(|it| std::str::from_utf8(it).ok());
        let texts: Vec<String> = texts.map(str::to_owned).collect();
        let unreadable = it.len() - texts.len();
        (key, texts, unreadable)
    });
    let mut parts = texts.chain(bytes).filter_map(|(key, values, unreadable)| {
        let (name, range) = key.split_once(";range=")?;
        let (_, end) = range.split_once('-')?;
        let next = match end {
            "*" => None,
            end => Some(end.parse::<usize>().ok()?.checked_add(1)?),
        };
        name.eq_ignore_ascii_case(attribute).then_some(Part {
            values,
            unreadable,
            next,
        })
    });
    // Beside a part that has values there may be an empty attribute without a range.
    parts.find(|it| !it.values.is_empty() || it.unreadable > 0 || it.next.is_none())
}
