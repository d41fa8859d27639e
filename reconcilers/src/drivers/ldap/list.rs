//! Everybody, and all groups.

use std::collections::{BTreeMap, BTreeSet};

use super::connect::Connection;
use super::error::DirectoryError;
use super::groups::{self, Groups};
use super::search::Entry;
use super::{DirectorySettings, GroupSearch, Listing, Person, dn, search};

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
    let entries = search::people(ldap, settings).await?;
    match &settings.groups {
        GroupSearch::MemberOf => by_member_of(ldap, entries).await,
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
            let people = entries.into_iter().map(|entry| {
                let keys = [dn::key(&entry.dn), entry.name.to_lowercase()];
                let direct = keys
                    .iter()
                    .filter_map(|key| found.of_member.get(key))
                    .flatten();
                let groups = found.groups.names_from(direct.map(String::as_str));
                person(entry, known.then_some(groups))
            });
            Ok(Listed {
                listing: Listing {
                    people: people.collect(),
                    groups: known.then(|| found.groups.all_names()),
                },
                inside: found.groups.inside(),
                members: found.members,
            })
        }
    }
}

async fn by_member_of(ldap: &Connection, entries: Vec<Entry>) -> Result<Listed, DirectoryError> {
    let direct: BTreeSet<String> = entries
        .iter()
        .flat_map(|entry| entry.member_of.iter().cloned())
        .collect();
    let known = !direct.is_empty();
    let groups: Groups = groups::upwards(ldap, direct).await?;
    let mut members: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let people = entries.into_iter().map(|entry| {
        let keys: Vec<String> = entry.member_of.iter().map(|dn| dn::key(dn)).collect();
        for name in keys.iter().filter_map(|key| groups.name(key)) {
            members
                .entry(name.clone())
                .or_default()
                .push(entry.name.clone());
        }
        let names = known.then(|| groups.names_from(keys.iter().map(String::as_str)));
        person(entry, names)
    });
    let people = people.collect();
    Ok(Listed {
        listing: Listing {
            people,
            groups: known.then(|| groups.all_names()),
        },
        members,
        inside: groups.inside(),
    })
}

fn person(entry: Entry, groups: Option<BTreeSet<String>>) -> Person {
    Person {
        dn: entry.dn,
        name: entry.name,
        groups,
    }
}
