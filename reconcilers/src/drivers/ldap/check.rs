//! Test of settings, step by step, for the administrator who sets them.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::connect::{Connection, Tasks, bound};
use super::error::DirectoryError;
use super::list::{self, People};
use super::{DirectorySettings, GroupSearch, Note, Wanted, groups, search};
use crate::drivers::shown;

/// Longest time of a check: who waits for it sees how far it came.
const LONGEST: Duration = Duration::from_secs(20);
/// Most users that are named.
const USERS: usize = 100;
/// Most groups that are named.
const GROUPS: usize = 100;
/// Most members of a group that are named.
const MEMBERS: usize = 5;
/// Most things that are left out and named.
const NAMED: usize = 5;

/// What came of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Check {
    /// The steps that were tried, in order; the first that fails is the last.
    pub steps: Vec<Step>,
    /// How many users there are.
    pub user_count: usize,
    /// The first of them.
    pub users: Vec<String>,
    /// The first groups.
    pub groups: Vec<CheckedGroup>,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// `bind`, `user_search` or `group_query`.
    pub name: &'static str,
    /// It worked.
    pub ok: bool,
    /// What was found, or what is wrong.
    pub detail: String,
    /// How long it took.
    pub took: Duration,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedGroup {
    /// Its name.
    pub name: String,
    /// The first of its direct members, as it names them.
    pub members: Vec<String>,
    /// How many it has.
    pub member_count: usize,
    /// The groups that are directly in it.
    pub sub_groups: Vec<String>,
}

impl Check {
    fn step(
        &mut self,
        name: &'static str,
        begun: Instant,
        outcome: Result<String, DirectoryError>,
    ) -> bool {
        let ok = outcome.is_ok();
        let detail = outcome.unwrap_or_else(|error| error.to_string());
        let took = begun.elapsed();
        self.steps.push(Step {
            name,
            ok,
            detail,
            took,
        });
        ok
    }
}

/// Tries bind, search of users and search of groups.
pub(super) async fn check(tasks: &Tasks, settings: &DirectorySettings, wanted: &Wanted) -> Check {
    let mut check = Check::default();
    let begun = Instant::now();
    let bind = within(begun, bound(tasks, settings)).await;
    let (ldap, said) = match bind {
        Ok(ldap) if settings.bind_dn.is_empty() => (Some(ldap), Ok("bound anonymously".to_owned())),
        Ok(ldap) => (Some(ldap), Ok(format!("bound as {}", settings.bind_dn))),
        Err(error) => (None, Err(error)),
    };
    check.step("bind", begun, said);
    if let Some(ldap) = ldap
        && users(&mut check, &ldap, settings, wanted, begun).await
    {
        groups_of(&mut check, &ldap, settings, wanted, begun).await;
    }
    check
}

async fn within<T>(
    begun: Instant,
    step: impl Future<Output = Result<T, DirectoryError>>,
) -> Result<T, DirectoryError> {
    let left = LONGEST.saturating_sub(begun.elapsed());
    timeout(left, step)
        .await
        .unwrap_or(Err(DirectoryError::Timeout(LONGEST)))
}

async fn users(
    check: &mut Check,
    ldap: &Connection,
    settings: &DirectorySettings,
    wanted: &Wanted,
    begun: Instant,
) -> bool {
    let at = Instant::now();
    let entries = match &wanted.user {
        Some(name) => {
            let found = within(begun, search::person(ldap, settings, name)).await;
            found.map(|entry| entry.into_iter().map(Ok).collect())
        }
        None if wanted.few => within(begun, search::some_people(ldap, settings)).await,
        None => within(begun, search::people(ldap, settings)).await,
    };
    let People { entries, left_out } = match entries.and_then(People::of) {
        Ok(people) => people,
        Err(error) => return check.step("user_search", at, Err(error)),
    };
    let left_out = left_out.iter().map(|(left, _)| (&*left.dn, &*left.reason));
    check.user_count = entries.len();
    check.users = entries
        .iter()
        .take(USERS)
        .map(|entry| entry.name.clone())
        .collect();
    let detail = match (&wanted.user, entries.first()) {
        (Some(_), Some(entry)) => format!("found {}", entry.dn),
        (Some(name), None) => {
            let detail = format!("no entry for user {name:?}; check ldap.base_dn and ldap.filter");
            let took = at.elapsed();
            check.steps.push(Step {
                name: "user_search",
                ok: false,
                detail,
                took,
            });
            return true;
        }
        (None, _) => format!("found {} users", entries.len()),
    };
    let detail = with_left_out(detail, left_out);
    check.step("user_search", at, Ok(detail))
}

/// Adds what is left out, the first of it by name.
fn with_left_out<'a>(
    detail: String,
    left_out: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
) -> String {
    let count = left_out.len();
    if count == 0 {
        return detail;
    }
    let named = left_out
        .take(NAMED)
        .map(|(name, reason)| format!("{}: {reason}", shown(name)));
    let named: Vec<String> = named.collect();
    let more = if count > NAMED { "; …" } else { "" };
    format!("{detail}; left out: {count} ({}{more})", named.join("; "))
}

async fn groups_of(
    check: &mut Check,
    ldap: &Connection,
    settings: &DirectorySettings,
    wanted: &Wanted,
    begun: Instant,
) {
    let at = Instant::now();
    let mut notes = Vec::new();
    let members = match &settings.groups {
        // The users that were found name them.
        GroupSearch::MemberOf { .. } if wanted.few => return,
        GroupSearch::Groups {
            base_dn, filter, ..
        } if wanted.few => {
            let found = within(begun, groups::some(ldap, base_dn, filter)).await;
            found.map(|names| {
                let members = names.into_iter().map(|name| (name, Vec::new()));
                (members.collect(), BTreeMap::new())
            })
        }
        GroupSearch::MemberOf { .. } => {
            let listed = within(begun, list::list(ldap, settings)).await;
            listed.map(|listed| {
                notes = listed.listing.notes;
                (listed.members, listed.inside)
            })
        }
        GroupSearch::Groups {
            base_dn,
            filter,
            member_attribute,
        } => {
            let search = (base_dn.as_str(), filter.as_str(), member_attribute.as_str());
            let found = groups::found(ldap, settings, search, wanted.group.as_deref());
            let found = within(begun, found).await;
            found.map(|found| {
                notes = found.notes(member_attribute);
                (found.members, found.groups.inside())
            })
        }
    };
    let (mut members, mut inside) = match members {
        Ok(found) => found,
        Err(error) => {
            check.step("group_query", at, Err(error));
            return;
        }
    };
    if let Some(wanted) = &wanted.group {
        members.retain(|name, _| name.eq_ignore_ascii_case(wanted));
    }
    let count = members.len();
    let groups = members
        .into_iter()
        .take(GROUPS)
        .map(|(name, members)| CheckedGroup {
            sub_groups: inside.remove(&name).unwrap_or_default(),
            name,
            member_count: members.len(),
            members: members.into_iter().take(MEMBERS).collect(),
        });
    check.groups = groups.collect();
    let ok = count > 0 || wanted.group.is_none();
    let detail = match (&wanted.group, count) {
        (Some(name), 0) => format!("no group {name:?}; check the group settings"),
        (Some(name), _) => format!("found group {name:?}"),
        (None, count) => format!("found {count} groups"),
    };
    let left_out = notes
        .iter()
        .map(|Note { name, reason }| (&**name, &**reason));
    let detail = with_left_out(detail, left_out);
    let took = at.elapsed();
    check.steps.push(Step {
        name: "group_query",
        ok,
        detail,
        took,
    });
}
