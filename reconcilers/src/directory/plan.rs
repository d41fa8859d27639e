//! Decides what a listing of the directory changes. Pure.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use schema::condition::{Condition, ConditionStatus, ConditionType, Reason};
use schema::config::AuthMode;
use schema::directory::{DirectoryFacts, Held, SyncCounts, SyncResult, SyncScope, UserChange};
use schema::ids::{PlainName, Timestamp, Uid, UidPart};
use schema::user::Template;

use super::diff::{self, Diff, Guard, Limits};
use super::settings::Missing;
use super::store::{DirectoryRow, Known, UserPage};
use crate::drivers::ldap::Listing;
use crate::runtime::Plan;

/// Most changes in one transaction.
const PAGE: usize = 500;

/// What is wanted of the directory and known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The directory object.
    pub row: DirectoryRow,
    /// Where users come from.
    pub mode: AuthMode,
    /// A setting without which nothing can be asked.
    pub missing: Option<Missing>,
    /// When the next scheduled synchronisation is due; `None`: only on request.
    pub next: Option<Duration>,
    /// What the directory says, if it was asked.
    pub observed: Option<Observed>,
}

/// What the directory says, and who is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// What it says.
    pub asked: Asked,
    /// Who is known.
    pub known: Known,
    /// What may be done.
    pub limits: Limits,
    /// What new users get.
    pub template: Template,
}

/// A list of the directory.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// What it says.
    pub listing: Arc<Listing>,
    /// When it was asked for.
    pub at: Timestamp,
    /// What it is for.
    pub scope: SyncScope,
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Makes changes of users.
    Users(UserPage),
    /// Makes and removes groups.
    Groups {
        /// Those without members that are new.
        add: Vec<PlainName>,
        /// Those that the directory no longer has.
        remove: Vec<Uid>,
    },
    /// Remembers what came of it.
    SaveFacts(Box<DirectoryFacts>),
}

impl Snapshot {
    /// What would change.
    pub fn diff(&self, now: Timestamp) -> Option<Diff> {
        let observed = self.observed.as_ref()?;
        let Observed {
            asked,
            known,
            limits,
            ..
        } = observed;
        let confirmed = &self.row.facts.confirmed_names;
        Some(diff::diff(asked, known, confirmed, *limits, now))
    }
}

/// The plan for the directory.
pub fn plan(snapshot: &Snapshot, now: Timestamp) -> Plan<Action> {
    if snapshot.mode != AuthMode::Ldap {
        let said = format!("web.auth_mode is {}: no directory is used", snapshot.mode);
        return Plan::say(Condition::ready(Reason::Converged, said));
    }
    if let Some(missing) = &snapshot.missing {
        return Plan::say(Condition::not_ready(
            Reason::InvalidSettings,
            missing.to_string(),
        ));
    }
    let facts = &snapshot.row.facts;
    let Some((observed, diff)) = snapshot.observed.as_ref().zip(snapshot.diff(now)) else {
        return say(snapshot, facts);
    };
    let unanswered = snapshot.row.is_unanswered();
    let all_listed = observed.asked.scope == SyncScope::Users;
    let confirmed = confirmed_names(snapshot, diff.guard.as_ref());
    let held_back = diff.guard.as_ref();
    let held_back = held_back.filter(|guard| !guard.names.is_subset(&confirmed));
    let mut after = DirectoryFacts {
        answered: snapshot.row.request.token.clone(),
        synced_at: facts.synced_at,
        // A removal of users stays held by whatever is done of groups.
        held: facts.held.clone().filter(|_| !all_listed),
        confirmed_names: remaining_names(confirmed.as_ref(), &diff, held_back, all_listed),
        result: diff.result.clone(),
    };
    if let Some(guard) = held_back {
        after.held = Some(Held {
            digest: guard.digest.clone(),
            what: guard.what.clone(),
        });
        // Nothing of it is done, so nothing of it is counted.
        after.result.counts = SyncCounts {
            users: diff.result.counts.users,
            groups: diff.result.counts.groups,
            skipped: diff.result.counts.skipped,
            ..SyncCounts::default()
        };
        if after == *facts {
            return say(snapshot, facts);
        }
        let mut plan = Plan::act(
            vec![Action::SaveFacts(Box::new(after.clone()))],
            Condition::not_ready(Reason::Progressing, ""),
        );
        plan.conditions = held(&after).unwrap_or_default();
        return plan;
    }
    let same = |facts: &DirectoryFacts| {
        let (old, new) = (&facts.result, &diff.result);
        let counts = |counts: &SyncCounts| (counts.users, counts.groups, counts.skipped);
        (facts.held.is_none() || !all_listed)
            && facts.confirmed_names == after.confirmed_names
            && counts(&old.counts) == counts(&new.counts)
            && old.skipped_entries == new.skipped_entries
    };
    if diff.is_nothing() && !unanswered && same(facts) {
        return say(snapshot, facts);
    }
    if all_listed {
        after.synced_at = Some(now);
    }
    let said = described(&after.result.counts);
    let mut actions = Vec::new();
    if facts.confirmed_names != *confirmed {
        // Interrupted after its first page, it goes on with what is left.
        actions.push(Action::SaveFacts(Box::new(DirectoryFacts {
            confirmed_names: confirmed.into_owned(),
            ..facts.clone()
        })));
    }
    actions.extend(changes(diff, observed));
    actions.push(Action::SaveFacts(Box::new(after)));
    Plan::act(
        actions,
        Condition::not_ready(Reason::Progressing, format!("synchronising: {said}")),
    )
}

/// The names whose removal is confirmed: by an earlier request, or by one that carries the digest of this removal.
fn confirmed_names<'a>(snapshot: &'a Snapshot, guard: Option<&Guard>) -> Cow<'a, BTreeSet<String>> {
    let row = &snapshot.row;
    let before = &row.facts.confirmed_names;
    let requested =
        guard.filter(|guard| row.is_unanswered() && row.request.confirm == guard.digest);
    match requested {
        Some(guard) => Cow::Owned(before.union(&guard.names).cloned().collect()),
        None => Cow::Borrowed(before),
    }
}

/// The confirmed names that a later synchronisation may still remove: not those that are listed again, or are gone.
fn remaining_names(
    confirmed: &BTreeSet<String>,
    diff: &Diff,
    held_back: Option<&Guard>,
    all_listed: bool,
) -> BTreeSet<String> {
    let remains = |name: &&String| match held_back {
        _ if !all_listed && name.starts_with(diff::USER_ENTRY) => true,
        Some(guard) => guard.names.contains(*name) || diff.missing.contains(*name),
        None => diff.missing.contains(*name),
    };
    confirmed.iter().filter(remains).cloned().collect()
}

fn changes(diff: Diff, observed: &Observed) -> Vec<Action> {
    let mut actions: Vec<Action> = Vec::new();
    let (renames, others): (Vec<_>, Vec<_>) = diff
        .users
        .into_iter()
        .partition(|change| matches!(change, UserChange::Rename { .. }));
    // Each has an entry of its own in the audit trail.
    let mut pages: Vec<Vec<UserChange>> = renames.into_iter().map(|it| vec![it]).collect();
    let mut others = others.into_iter().peekable();
    while others.peek().is_some() {
        pages.push(others.by_ref().take(PAGE).collect());
    }
    let parts = UidPart::all(pages.len());
    for (changes, uids) in pages.into_iter().zip(parts) {
        actions.push(Action::Users(UserPage {
            changes,
            template: observed.template.clone(),
            asked_at: observed.asked.at,
            uids,
        }));
    }
    if !diff.add_groups.is_empty() || !diff.remove_groups.is_empty() {
        actions.push(Action::Groups {
            add: diff.add_groups,
            remove: diff.remove_groups.into_iter().map(|(uid, _)| uid).collect(),
        });
    }
    actions
}

/// What is said of the directory while there is nothing to do.
fn say(snapshot: &Snapshot, facts: &DirectoryFacts) -> Plan<Action> {
    let conditions = held(facts).unwrap_or_else(|| {
        let said = match facts.synced_at {
            None => "users are not synchronised yet".to_owned(),
            Some(_) => synchronised(&facts.result),
        };
        vec![Condition::ready(Reason::Converged, said)]
    });
    let mut plan = Plan::say(Condition::ready(Reason::Converged, ""));
    plan.conditions = conditions;
    match snapshot.next {
        Some(next) => plan.after(next),
        None => plan,
    }
}

/// Most entries that a condition names.
const NAMED: usize = 3;

/// Describes the last synchronisation: the first entries that are not imported stand in it with their reasons.
fn synchronised(result: &SyncResult) -> String {
    let counts = &result.counts;
    let users = counted(counts.users, "user", "users");
    let groups = counted(counts.groups, "group", "groups");
    let said = format!("{users} and {groups} are synchronised");
    if counts.skipped == 0 {
        return said;
    }
    let entries = match counts.skipped {
        1 => "1 entry is not imported".to_owned(),
        count => format!("{count} entries are not imported"),
    };
    let named = result.skipped_entries.iter().take(NAMED);
    let mut named: Vec<String> = named
        .map(|entry| format!("{}: {}", entry.name, entry.reason))
        .collect();
    if counts.skipped > named.len() as u64 {
        named.push("`agentyard describe directory/users` lists more".to_owned());
    }
    format!("{said}; {entries} ({})", named.join("; "))
}

fn counted(count: u64, one: &str, many: &str) -> String {
    let noun = if count == 1 { one } else { many };
    format!("{count} {noun}")
}

/// What is said while a removal waits for somebody.
fn held(facts: &DirectoryFacts) -> Option<Vec<Condition>> {
    let Held { digest, what } = facts.held.as_ref()?;
    let said = format!(
        "the directory no longer has {what}; nothing was changed. If that is right, confirm the removal with digest {digest}"
    );
    let (stalled, holds) = (ConditionType::Stalled, ConditionStatus::True);
    Some(vec![
        Condition::not_ready(Reason::MassRemoval, said.clone()),
        Condition::new(stalled, holds, Reason::MassRemoval, said),
    ])
}

/// What changes, in words.
pub fn described(counts: &SyncCounts) -> String {
    let parts = [
        (counts.added, "users added"),
        (counts.changed, "users changed"),
        (counts.renamed, "users renamed"),
        (counts.identified, "users identified"),
        (counts.disabled, "users disabled"),
        (counts.removed, "users deleted"),
        (counts.groups_added, "groups added"),
        (counts.groups_removed, "groups deleted"),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if parts.is_empty() {
        "no changes".to_owned()
    } else {
        parts.join(", ")
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
