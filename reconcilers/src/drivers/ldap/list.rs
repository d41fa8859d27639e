//! Everybody, and all groups.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::connect::Connection;
use super::error::DirectoryError;
use super::groups;
use super::search::{Entry, MemberOf, ReadEntry, some_of};
use super::{DirectorySettings, GroupSearch, LeftOut, Listing, Note, Person, dn, search};
use crate::drivers::shown;

/// A listing, and who is directly in which group, by its name.
pub(super) struct Listed {
    pub(super) listing: Listing,
    pub(super) members: BTreeMap<String, Vec<String>>,
    /// The groups that are directly in each.
    pub(super) inside: BTreeMap<String, Vec<String>>,
}

/// Everybody whom the filter of users finds, and all groups.
pub(super) async fn list(
    ldap: &Connection,
    settings: &DirectorySettings,
) -> Result<Listed, DirectoryError> {
    let people = People::of(search::people(ldap, settings).await?)?;
    match &settings.groups {
        GroupSearch::MemberOf { base_dn } => {
            let mut listed = by_member_of(ldap, people, base_dn.as_deref()).await?;
            listed.listing.with_identities = !settings.id_attributes.is_empty();
            Ok(listed)
        }
        GroupSearch::Groups {
            base_dn,
            filter,
            member_attribute,
        } => {
            let search = (base_dn.as_str(), filter.as_str(), member_attribute.as_str());
            let found = groups::found(ldap, settings, search, None).await?;
            // Groups without a single member: more likely they cannot be seen.
            let known = found.groups.is_empty()
                || found.members.values().any(|members| !members.is_empty());
            let groups_of = |dn: &str, names: &[String]| {
                let keys = names.iter().map(|name| dn::text_key(name));
                let keys: Vec<String> = keys.chain([dn::key(dn)]).collect();
                let direct = keys.iter().filter_map(|key| found.of_member.get(key));
                found
                    .groups
                    .names_from(direct.flatten().map(String::as_str))
            };
            let entries = people.entries.into_iter().map(|entry| {
                let groups = groups_of(&entry.dn, std::slice::from_ref(&entry.name));
                person(entry, known.then_some(groups))
            });
            let entries = entries.collect();
            let left_out = people.left_out.into_iter().map(|(left, _)| LeftOut {
                groups: groups_of(&left.dn, &left.names),
                ..left
            });
            Ok(Listed {
                listing: Listing {
                    people: entries,
                    with_identities: !settings.id_attributes.is_empty(),
                    groups: known.then(|| found.groups.all_names()),
                    left_out: left_out.collect(),
                    notes: found.notes(member_attribute),
                },
                inside: found.groups.inside(),
                members: found.members,
            })
        }
    }
}

/// The entries of users, apart by whether it is known which user each is.
pub(super) struct People {
    pub(super) entries: Vec<Entry>,
    pub(super) left_out: Vec<(LeftOut, MemberOf)>,
}

impl People {
    /// Entries whose name another entry has among its own are left out, too: a sign-in finds both.
    ///
    /// # Errors
    /// [`DirectoryError::Unreadable`] when no entry says which user it is: then it is the settings that are wrong.
    pub(super) fn of(read: Vec<ReadEntry>) -> Result<Self, DirectoryError> {
        let (mut entries, mut left_out) = (Vec::with_capacity(read.len()), Vec::new());
        for entry in read {
            match entry {
                Ok(entry) => entries.push(entry),
                Err(left) => left_out.push(*left),
            }
        }
        if entries.is_empty()
            && let Some((left, _)) = left_out.first()
        {
            let why = format!(
                "{}; no entry that ldap.filter finds can be used, so check ldap.username_attribute, ldap.id_attribute and what ldap.bind_dn may read",
                left.reason
            );
            return Err(DirectoryError::Unreadable {
                dn: shown(&left.dn),
                why,
            });
        }
        let mut besides: HashMap<String, String> = HashMap::new();
        let further = entries.iter().map(|it| (&it.others, &it.dn));
        for (names, dn) in further.chain(left_out.iter().map(|(it, _)| (&it.names, &it.dn))) {
            for name in names {
                besides.insert(dn::text_key(name), dn.clone());
            }
        }
        let mut people = Self {
            entries: Vec::with_capacity(entries.len()),
            left_out,
        };
        for entry in entries {
            match besides.get(&dn::text_key(&entry.name)) {
                Some(other) => {
                    let reason = format!(
                        "the entry {:?} has its name {:?}, too; take it away from one of them",
                        shown(other),
                        shown(&entry.name)
                    );
                    let left = LeftOut {
                        dn: entry.dn,
                        names: vec![entry.name],
                        identities: entry.identity.into_iter().map(|it| it.text).collect(),
                        reason,
                        ..LeftOut::default()
                    };
                    people.left_out.push((left, entry.member_of));
                }
                None => people.entries.push(entry),
            }
        }
        Ok(people)
    }
}

async fn by_member_of(
    ldap: &Connection,
    people: People,
    base: Option<&str>,
) -> Result<Listed, DirectoryError> {
    let People { entries, left_out } = people;
    let of_entries = entries.iter().map(|it| &it.member_of);
    let all: Vec<&MemberOf> = of_entries
        .chain(left_out.iter().map(|(_, it)| it))
        .collect();
    let known = all.iter().any(|it| !it.dns.is_empty());
    let direct: BTreeSet<&String> = all.iter().flat_map(|it| &it.dns).collect();
    let found = groups::upwards(ldap, direct.into_iter().cloned(), base).await?;
    let groups = found.groups;
    let mut members: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut notes: Vec<Note> = outside(&found.outside).into_iter().collect();
    notes.extend(groups.shared_names());
    let mut people = Vec::with_capacity(entries.len());
    for entry in entries {
        let keys: Vec<String> = entry.member_of.dns.iter().map(|dn| dn::key(dn)).collect();
        for name in keys.iter().filter_map(|key| groups.name(key)) {
            let names = members.entry(name.clone()).or_default();
            names.push(entry.name.clone());
        }
        if entry.member_of.incomplete {
            notes.push(Note {
                name: shown(&entry.dn),
                reason: "its memberOf can't be read as a whole, so its groups stay as they are; set ldap.group_search_mode to group_search".to_owned(),
            });
        }
        let names = (known && !entry.member_of.incomplete)
            .then(|| groups.names_from(keys.iter().map(String::as_str)));
        people.push(person(entry, names));
    }
    let left_out = left_out.into_iter().map(|(left, member_of)| {
        let keys: Vec<String> = member_of.dns.iter().map(|dn| dn::key(dn)).collect();
        LeftOut {
            groups: groups.names_from(keys.iter().map(String::as_str)),
            incomplete: member_of.incomplete,
            ..left
        }
    });
    Ok(Listed {
        listing: Listing {
            people,
            with_identities: false,
            groups: known.then(|| groups.all_names()),
            left_out: left_out.collect(),
            notes,
        },
        members,
        inside: groups.inside(),
    })
}

/// Says what users name as their groups that lies beside the groups.
fn outside(dns: &BTreeMap<String, String>) -> Option<Note> {
    let dns: Vec<String> = dns.values().cloned().collect();
    let reason = match dns.len() {
        0 => return None,
        1 => "1 value that users have is not below ldap.group_base_dn".to_owned(),
        count => format!("{count} values that users have are not below ldap.group_base_dn"),
    };
    Some(Note {
        name: search::MEMBER_OF.to_owned(),
        reason: format!("{reason} and no group here ({})", some_of(&dns)),
    })
}

fn person(entry: Entry, groups: Option<BTreeSet<String>>) -> Person {
    Person {
        dn: entry.dn,
        name: entry.name,
        identity: entry.identity.map(|identity| identity.text),
        groups,
    }
}
