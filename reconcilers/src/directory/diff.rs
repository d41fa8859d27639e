//! Compares a listing of the directory with who is known. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use schema::directory::{
    KnownUser, Listed, Skipped, SyncCounts, SyncResult, SyncScope, UserChange, are_different,
};

use schema::ids::{PlainName, Timestamp, Uid, UserName};
use sha2::{Digest, Sha256};

use super::plan::Asked;
use super::store::Known;
use crate::drivers::ldap::{Listing, Note, dn_key};

/// So many users or groups may go without confirmation, however few there are.
const FEW: usize = 5;
/// Beginning of the entries of users among the names of a removal.
pub(super) const USER_ENTRY: &str = "user ";

/// What a synchronisation may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Largest share of users, and of groups, that may go without confirmation.
    pub max_removal_percent: u64,
    /// How long somebody is missing before the account goes; `None`: it goes at once.
    pub grace: Option<Duration>,
}

/// What is to change.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Diff {
    /// Of users: those who come first, those who go last.
    pub users: Vec<UserChange>,
    /// Groups that the service does not know yet.
    pub new_groups: Vec<PlainName>,
    /// Those of them that no change of a user makes.
    pub add_groups: Vec<PlainName>,
    /// Groups that go.
    pub remove_groups: Vec<(Uid, PlainName)>,
    /// How much of what, and what is not imported.
    pub result: SyncResult,
    /// Users who are not in the list and whose accounts stay for now, such as `user alice`.
    pub missing: BTreeSet<String>,
    /// Set when so much would go that an administrator has to confirm it.
    pub guard: Option<Guard>,
}

/// A removal that an administrator has to confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// Names the removal; the same as long as it is the same.
    pub digest: String,
    /// Names of those who lose something, such as `user alice` or `group dev`: a confirmation is for them.
    pub names: BTreeSet<String>,
    /// What would go.
    pub what: String,
}

impl Diff {
    /// Whether everything is as the directory says.
    pub fn is_nothing(&self) -> bool {
        self.users.is_empty() && self.add_groups.is_empty() && self.remove_groups.is_empty()
    }
}

/// Who is listed under a name that is one here.
struct People {
    listed: BTreeMap<String, Listed>,
    /// Names that several entries have: nobody knows which of them is the user, so nobody is.
    ambiguous: HashSet<String>,
    /// Entries that do not say which user they are, by [`dn_key`].
    unnamed: HashSet<String>,
    /// What identifies entries that are there and no user here: whoever has one of these is not missing.
    unnamed_identities: HashSet<String>,
    skipped: Vec<Skipped>,
    groups: BTreeMap<String, PlainName>,
    /// Groups that somebody is in.
    inhabited: HashSet<String>,
    /// The groups of every entry of a user are known.
    all_groups_known: bool,
}

impl People {
    fn of(listing: &Listing) -> Self {
        let mut people = Self {
            listed: BTreeMap::new(),
            ambiguous: HashSet::new(),
            unnamed: HashSet::new(),
            unnamed_identities: HashSet::new(),
            skipped: Vec::new(),
            groups: BTreeMap::new(),
            inhabited: HashSet::new(),
            all_groups_known: listing.people.iter().all(|it| it.groups.is_some())
                && listing.left_out.iter().all(|it| !it.incomplete),
        };
        for name in listing.groups.iter().flatten() {
            match PlainName::from_existing(name) {
                Ok(name) => {
                    people.groups.insert(name.key(), name);
                }
                Err(rule) => people.skip(name, format!("the group is not imported: {rule}")),
            }
        }
        let mut many: HashMap<String, usize> = HashMap::new();
        let shared = shared_identities(listing);
        for person in &listing.people {
            let name = match person.name.parse::<UserName>() {
                Ok(name) => name,
                Err(rule) => {
                    people.unnamed_identities.extend(person.identity.clone());
                    people.skip(&person.name, rule.to_string());
                    continue;
                }
            };
            if let Some(identity) = &person.identity
                && shared.contains(identity)
            {
                let reason = format!(
                    "another entry has the same {}; correct it in the directory, or choose another attribute in ldap.id_attribute",
                    show_identity(identity)
                );
                people.skip(&person.dn, reason);
                people.ambiguous.insert(name.key());
                people.unnamed_identities.insert(identity.clone());
                let names = person.groups.iter().flatten();
                let groups = names.filter_map(|name| PlainName::from_existing(name).ok());
                people.inhabited.extend(groups.map(|name| name.key()));
                continue;
            }
            let groups = person.groups.as_ref().filter(|_| listing.groups.is_some());
            let groups = groups.map(|names| {
                let known = names
                    .iter()
                    .filter_map(|name| PlainName::from_existing(name).ok());
                // As the group itself is written: names that differ in case are one.
                known
                    .map(|name| people.groups.get(&name.key()).cloned().unwrap_or(name))
                    .collect()
            });
            *many.entry(name.key()).or_default() += 1;
            let subject = person.dn.clone();
            let key = name.key();
            let keys = groups.iter().flatten().map(PlainName::key);
            people.inhabited.extend(keys);
            people.listed.insert(
                key,
                Listed {
                    name,
                    subject,
                    identity: person.identity.clone(),
                    groups,
                },
            );
        }
        for (key, _) in many.into_iter().filter(|(_, count)| *count > 1) {
            if let Some(listed) = people.listed.remove(&key) {
                let reason = "several entries have this name, or names that differ in case only";
                people.skip(listed.name.as_str(), reason.to_owned());
            }
            people.ambiguous.insert(key);
        }
        if !people.ambiguous.is_empty() {
            for person in &listing.people {
                let name = person.name.parse::<UserName>();
                if name.is_ok_and(|name| people.ambiguous.contains(&name.key())) {
                    people.unnamed_identities.extend(person.identity.clone());
                }
            }
        }
        for left in &listing.left_out {
            people.skip(&left.dn, left.reason.clone());
            people.unnamed.insert(dn_key(&left.dn));
            let identities = left.identities.iter().cloned();
            people.unnamed_identities.extend(identities);
            let names = left.names.iter().map(|name| name.trim().to_lowercase());
            people.ambiguous.extend(names);
            let groups = left.groups.iter();
            let groups = groups.filter_map(|name| PlainName::from_existing(name).ok());
            people.inhabited.extend(groups.map(|name| name.key()));
        }
        for Note { name, reason } in &listing.notes {
            people.skip(name, reason.clone());
        }
        people
    }

    /// A user who is not listed may be there all the same.
    fn may_be(&self, user: &KnownUser) -> bool {
        self.ambiguous.contains(&user.name.key())
            || self.unnamed_identities.contains(&user.identity)
            || (!self.unnamed.is_empty() && self.unnamed.contains(&dn_key(&user.subject)))
    }

    fn skip(&mut self, name: &str, reason: String) {
        let name = name.chars().take(128).collect();
        self.skipped.push(Skipped { name, reason });
    }
}

/// What several entries of a listing have in common although it identifies an entry.
fn shared_identities(listing: &Listing) -> HashSet<String> {
    let of_people = listing.people.iter().filter_map(|it| it.identity.as_ref());
    let left_out = listing.left_out.iter().flat_map(|it| &it.identities);
    let (mut seen, mut shared) = (HashSet::new(), HashSet::new());
    for identity in of_people.chain(left_out) {
        if !seen.insert(identity) {
            shared.insert(identity.clone());
        }
    }
    shared
}

/// Names that nobody can get now.
struct Taken<'a> {
    superadmins: HashSet<&'a str>,
    /// Of all accounts.
    users: HashSet<String>,
    /// Those before renames that are still under way.
    previous: HashSet<String>,
}

impl<'a> Taken<'a> {
    fn of(known: &'a Known) -> Self {
        let previous = known
            .users
            .iter()
            .filter_map(|it| it.previous_name.as_ref());
        Self {
            superadmins: known.superadmins.iter().map(String::as_str).collect(),
            users: known.users.iter().map(|it| it.name.key()).collect(),
            previous: previous.map(UserName::key).collect(),
        }
    }

    /// Reason for which a user cannot get a name now.
    fn objection(&self, key: &str) -> Option<&'static str> {
        if self.superadmins.contains(key) {
            Some("a superadmin has this name; give the entry another one")
        } else if self.users.contains(key) {
            Some(
                "another account has this name; delete that account if its person has left, or give one of the entries a third name",
            )
        } else if self.previous.contains(key) {
            Some("the directory of the user who had this name is still being renamed")
        } else {
            None
        }
    }
}

/// Takes from the list the entries that are users' by their identities, whatever their names are; by places in `users`.
fn take_identified(people: &mut People, users: &[KnownUser]) -> HashMap<usize, Listed> {
    let known = users.iter().enumerate();
    let known = known.filter(|(_, user)| !user.leaving && !user.identity.is_empty());
    let known: HashMap<&str, usize> = known.map(|(at, user)| (&*user.identity, at)).collect();
    let mut identified = HashMap::new();
    for (key, listed) in std::mem::take(&mut people.listed) {
        let identity = listed.identity.as_deref();
        match identity.and_then(|identity| known.get(identity)) {
            Some(at) => drop(identified.insert(*at, listed)),
            None => drop(people.listed.insert(key, listed)),
        }
    }
    identified
}

/// The change that records by what a user's entry is recognised, if that is news.
fn identify(user: &KnownUser, listed: &Listed, with_identities: bool) -> Option<UserChange> {
    let identity = match (&listed.identity, with_identities) {
        (Some(identity), _) if *identity != user.identity => Some(identity.clone()),
        (None, false) if !user.identity.is_empty() => None,
        _ => return None,
    };
    Some(UserChange::Identify {
        uid: user.uid.clone(),
        name: user.name.clone(),
        subject: listed.subject.clone(),
        identity,
    })
}

/// Compares a listing with who is known, and gives the changes that the directory asks for. Names in `confirmed` may go whatever the limits are.
pub fn diff(
    asked: &Asked,
    known: &Known,
    confirmed: &BTreeSet<String>,
    limits: Limits,
    now: Timestamp,
) -> Diff {
    let Asked { listing, scope, at } = asked;
    let mut people = People::of(listing);
    let mut diff = Diff::default();
    diff.result.counts.users = people.listed.len() as u64;
    diff.result.counts.groups = people.groups.len() as u64;
    let everybody = *scope == SyncScope::Users;
    let (mut going, mut gone) = (Vec::new(), Vec::new());
    let (mut present, mut unlisted) = (0, 0);
    let mut waiting = Vec::new();
    let taken = Taken::of(known);
    let mut identified = take_identified(&mut people, &known.users);
    for (place, user) in known.users.iter().enumerate() {
        let key = user.name.key();
        let mut listed = match identified.remove(&place) {
            // Another entry with the name is none of the user's: that is said below.
            Some(listed) => Some(listed),
            None => people.listed.remove(&key),
        };
        if user.leaving {
            if listed.is_some() {
                let reason = "the previous account of this name is still being archived";
                people.skip(user.name.as_str(), reason.to_owned());
            }
            continue;
        }
        if let Some(other) = listed.take_if(|it| is_of_another(it, user)) {
            let reason = format!(
                "the account of this name belongs to another entry of the directory ({}); this one gets an account once that one is removed",
                show_identity(&user.identity)
            );
            people.skip(other.name.as_str(), reason);
        }
        let goes_anyway = listed.is_none() && confirmed.contains(&user_entry(&user.name));
        present += usize::from(user.missing_since.is_none() && !goes_anyway);
        unlisted += usize::from(user.missing_since.is_none() && listed.is_none());
        let (uid, name) = (user.uid.clone(), user.name.clone());
        match (listed, user.missing_since) {
            (Some(mut listed), missing) => {
                let back = missing.is_some();
                if listed.name.key() != key {
                    let objection = match user.previous_name {
                        Some(_) => Some("the last rename of this user is still under way"),
                        None => taken.objection(&listed.name.key()),
                    };
                    if everybody && user.seen_at < *at {
                        let Some(objection) = objection else {
                            diff.users.push(UserChange::Rename {
                                uid,
                                from: name,
                                listed,
                                back,
                            });
                            continue;
                        };
                        let reason = format!("user {name} is not renamed to it: {objection}");
                        people.skip(listed.name.as_str(), reason);
                    }
                    listed.name = name;
                }
                let news = identify(user, &listed, listing.with_identities);
                // Who has signed in since is newer than the list.
                let stale =
                    listed.groups.is_some() && user.seen_at < *at && listed.digest() != user.digest;
                let is_update = (back && everybody) || (stale && !back);
                if is_update {
                    diff.users.push(UserChange::Update { uid, listed, back });
                }
                // An update records an identity and forgets none.
                let is_forgotten = !listing.with_identities;
                if everybody && (!is_update || is_forgotten) {
                    diff.users.extend(news);
                }
            }
            // Who was here since the directory was asked is there, whatever the list says.
            (None, _) if !everybody || people.may_be(user) || user.seen_at >= *at => {}
            (None, None) if limits.grace.is_some() => going.push(UserChange::Disable { uid, name }),
            (None, None) => gone.push(UserChange::Remove {
                uid,
                name,
                since: None,
            }),
            (None, Some(since)) => {
                let over = limits
                    .grace
                    .is_none_or(|grace| now.left_of(since, grace).is_none());
                if over && since <= now {
                    gone.push(UserChange::Remove {
                        uid,
                        name,
                        since: Some(since),
                    });
                } else {
                    waiting.push(name);
                }
            }
        }
    }
    for (key, listed) in std::mem::take(&mut people.listed) {
        if let Some(objection) = taken.objection(&key) {
            people.skip(listed.name.as_str(), objection.to_owned());
        } else if everybody {
            diff.users.push(UserChange::Add(listed));
        }
    }
    // Without everybody in the list nobody can say which groups have lost their last member: those who are not in it stay in theirs.
    let whole = everybody || unlisted == 0;
    // Without a change no user leaves a group: its members may be users whose groups can't be read.
    let leaves = |it: &UserChange| matches!(it, UserChange::Update { listed, .. } | UserChange::Rename { listed, .. } if listed.groups.is_some());
    let may_empty = people.all_groups_known
        || !(going.is_empty() && gone.is_empty())
        || diff.users.iter().any(leaves);
    let emptied = groups(&mut diff, &mut people, known, listing.groups.is_some());
    let emptied = if whole && may_empty {
        emptied
    } else {
        Vec::new()
    };
    diff.guard = guard(
        (&going, &gone, present),
        (&emptied, known),
        &diff,
        confirmed,
        limits,
    );
    let stay = going.iter().filter_map(removed_name).chain(&waiting);
    diff.missing = stay.map(user_entry).collect();
    diff.users.append(&mut going);
    diff.users.append(&mut gone);
    count(
        &mut diff.result,
        &diff.users,
        (&diff.new_groups, &diff.remove_groups),
        people.skipped,
    );
    diff
}

/// What becomes of groups; those that had members and have none any more.
fn groups(diff: &mut Diff, people: &mut People, known: &Known, are_known: bool) -> Vec<PlainName> {
    if !are_known {
        return Vec::new();
    }
    let mut made: BTreeSet<String> = known.groups.iter().map(|group| group.name.key()).collect();
    let new = people.groups.iter().filter(|(key, _)| !made.contains(*key));
    diff.new_groups = new.map(|(_, name)| name.clone()).collect();
    for change in &diff.users {
        if let UserChange::Add(listed)
        | UserChange::Update { listed, .. }
        | UserChange::Rename { listed, .. } = change
        {
            made.extend(listed.groups.iter().flatten().map(PlainName::key));
        }
    }
    let missing = people.groups.iter().filter(|(key, _)| !made.contains(*key));
    diff.add_groups = missing.map(|(_, name)| name.clone()).collect();
    let mut emptied = Vec::new();
    for group in &known.groups {
        let key = group.name.key();
        if group.has_members && !people.inhabited.contains(&key) {
            emptied.push(group.name.clone());
        }
        // Bindings that an administrator made to it wait for its return.
        if !people.groups.contains_key(&key) && !group.in_use {
            diff.remove_groups
                .push((group.uid.clone(), group.name.clone()));
        }
    }
    if !people.all_groups_known && !diff.remove_groups.is_empty() {
        let count = std::mem::take(&mut diff.remove_groups).len();
        let reason = format!(
            "groups that are no longer found stay as long as a user whose groups can't be read as a whole may be in them: {count}"
        );
        people.skip("groups", reason);
    }
    emptied
}

/// The user who loses the account, now or after the time of grace.
fn removed_name(change: &UserChange) -> Option<&UserName> {
    match change {
        UserChange::Disable { name, .. } | UserChange::Remove { name, .. } => Some(name),
        UserChange::Add(_)
        | UserChange::Update { .. }
        | UserChange::Rename { .. }
        | UserChange::Identify { .. } => None,
    }
}

/// Reports that an entry has a user's name and is known to be another one than the user's.
fn is_of_another(listed: &Listed, user: &KnownUser) -> bool {
    let identity = listed.identity.as_ref();
    identity.is_some_and(|identity| are_different(identity, &user.identity))
}

/// Shows an identity to people: without the directory that it counts in.
fn show_identity(identity: &str) -> String {
    match identity.split_once(':') {
        Some((kind, value)) => {
            let attribute = kind.split('@').next().unwrap_or(kind);
            format!("{attribute}:{value}")
        }
        None => identity.to_owned(),
    }
}

fn user_entry(name: &UserName) -> String {
    format!("{USER_ENTRY}{}", name.key())
}

fn group_entry(name: &PlainName) -> String {
    format!("group {}", name.key())
}

fn guard(
    (going, gone, present): (&[UserChange], &[UserChange], usize),
    (emptied, known): (&[PlainName], &Known),
    diff: &Diff,
    confirmed: &BTreeSet<String>,
    limits: Limits,
) -> Option<Guard> {
    let is_mass = |count: usize, of: usize| {
        let percent = usize::try_from(limits.max_removal_percent).unwrap_or(100);
        count > 0 && (count >= of || count > FEW.max(of.saturating_mul(percent) / 100))
    };
    // Only what is not confirmed yet needs to be: the rest goes with whatever else goes.
    let unconfirmed = |changes: &[UserChange]| {
        let names = changes.iter().filter_map(removed_name);
        names
            .filter(|name| !confirmed.contains(&user_entry(name)))
            .count()
    };
    let gone_users = unconfirmed(gone);
    let users = unconfirmed(going) + gone_users;
    let of = present.max(gone_users);
    let groups = emptied
        .iter()
        .filter(|name| !confirmed.contains(&group_entry(name)))
        .count();
    let with_members = known.groups.iter().filter(|group| group.has_members);
    let with_members = with_members.count() - (emptied.len() - groups);
    if !is_mass(users, of) && !is_mass(groups, with_members) {
        return None;
    }
    let parts = going.iter().chain(gone).filter_map(|change| match change {
        UserChange::Disable { name, .. } => Some(format!("disable {}", name.key())),
        UserChange::Remove { name, .. } => Some(format!("delete {}", name.key())),
        UserChange::Add(_)
        | UserChange::Update { .. }
        | UserChange::Rename { .. }
        | UserChange::Identify { .. } => None,
    });
    let removed = diff.remove_groups.iter().map(|(_, name)| name);
    let names = removed.chain(emptied);
    let parts = parts.chain(names.map(|name| format!("empty {}", name.key())));
    let parts: BTreeSet<String> = parts.collect();
    let mut hash = Sha256::new();
    for part in &parts {
        hash.update(part);
        hash.update("\n");
    }
    let mut what = Vec::new();
    if users > 0 {
        what.push(format!("{users} of {of} users"));
    }
    if groups > 0 {
        what.push(format!("members of {groups} of {with_members} groups"));
    }
    Some(Guard {
        digest: hex::encode(hash.finalize()).chars().take(16).collect(),
        names: going
            .iter()
            .chain(gone)
            .filter_map(removed_name)
            .map(user_entry)
            .chain(emptied.iter().map(group_entry))
            .collect(),
        what: what.join(" and "),
    })
}

fn count(
    result: &mut SyncResult,
    users: &[UserChange],
    (added, removed): (&[PlainName], &[(Uid, PlainName)]),
    skipped: Vec<Skipped>,
) {
    let counts: &mut SyncCounts = &mut result.counts;
    for change in users {
        match change {
            UserChange::Add(_) => counts.added += 1,
            UserChange::Update { .. } => counts.changed += 1,
            UserChange::Rename { .. } => counts.renamed += 1,
            UserChange::Identify { .. } => counts.identified += 1,
            UserChange::Disable { .. } => counts.disabled += 1,
            UserChange::Remove { .. } => counts.removed += 1,
        }
    }
    counts.groups_added = added.len() as u64;
    counts.groups_removed = removed.len() as u64;
    counts.skipped = skipped.len() as u64;
    let mut named = skipped;
    named.sort_by(|one, other| one.name.cmp(&other.name));
    named.truncate(SyncResult::NAMED);
    result.skipped_entries = named;
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
