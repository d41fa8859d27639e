//! Compares a listing of the directory with who is known. Pure.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use schema::directory::{
    KnownUser, Listed, Skipped, SyncCounts, SyncResult, SyncScope, UserChange,
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
        for person in &listing.people {
            let name = match person.name.parse::<UserName>() {
                Ok(name) => name,
                Err(rule) => {
                    people.skip(&person.name, rule.to_string());
                    continue;
                }
            };
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
        for left in &listing.left_out {
            people.skip(&left.dn, left.reason.clone());
            people.unnamed.insert(dn_key(&left.dn));
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
            || (!self.unnamed.is_empty() && self.unnamed.contains(&dn_key(&user.subject)))
    }

    fn skip(&mut self, name: &str, reason: String) {
        let name = name.chars().take(128).collect();
        self.skipped.push(Skipped { name, reason });
    }
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
    for user in &known.users {
        let key = user.name.key();
        let listed = people.listed.remove(&key);
        if user.leaving {
            if listed.is_some() {
                let reason = "the previous account of this name is still being archived";
                people.skip(user.name.as_str(), reason.to_owned());
            }
            continue;
        }
        let goes_anyway = listed.is_none() && confirmed.contains(&user_entry(&user.name));
        present += usize::from(user.missing_since.is_none() && !goes_anyway);
        unlisted += usize::from(user.missing_since.is_none() && listed.is_none());
        let (uid, name) = (user.uid.clone(), user.name.clone());
        match (listed, user.missing_since) {
            (Some(listed), missing) => {
                let back = missing.is_some();
                // Who has signed in since is newer than the list.
                let stale =
                    listed.groups.is_some() && user.seen_at < *at && listed.digest() != user.digest;
                if (back && everybody) || (stale && !back) {
                    diff.users.push(UserChange::Update { uid, listed, back });
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
    let superadmins: HashSet<&str> = known.superadmins.iter().map(String::as_str).collect();
    for (key, listed) in std::mem::take(&mut people.listed) {
        if superadmins.contains(key.as_str()) {
            let reason = "a superadmin has this name";
            people.skip(listed.name.as_str(), reason.to_owned());
        } else if everybody {
            diff.users.push(UserChange::Add(listed));
        }
    }
    // Without everybody in the list nobody can say which groups have lost their last member: those who are not in it stay in theirs.
    let whole = everybody || unlisted == 0;
    // Without a change no user leaves a group: its members may be users whose groups can't be read.
    let leaves = |it: &UserChange| matches!(it, UserChange::Update { listed, .. } if listed.groups.is_some());
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
        if let UserChange::Add(listed) | UserChange::Update { listed, .. } = change {
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
        UserChange::Add(_) | UserChange::Update { .. } => None,
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
        UserChange::Add(_) | UserChange::Update { .. } => None,
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
