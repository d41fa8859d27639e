//! Users that a request selects for a rollout.

use std::collections::{HashMap, HashSet};

use schema::group;
use schema::ids::{Uid, UserName};
use schema::reader::Connection;
use schema::user::UserListing;

use crate::error::{ApiError, Result};
use crate::routes::groups;

/// Most names in a refusal.
const NAMED: usize = 20;

/// Users that a request selects.
#[derive(Default)]
pub(super) struct Selection {
    /// Users of the rollout, in its order.
    pub(super) users: Vec<UserListing>,
    /// Names of users who are not in it, since they are being removed.
    pub(super) leaving: Vec<String>,
}

impl Selection {
    /// Chooses the users of these names, in this order, each once; without names all that fit, by name. Users who are being
    /// removed count as unknown when they are named.
    ///
    /// # Errors
    /// 400 that names all users who are unknown or do not fit.
    pub(super) fn choose(
        all_users: Vec<UserListing>,
        names: &[&str],
        fits: impl Fn(&UserListing) -> bool,
    ) -> Result<Self> {
        let is_present = |user: &UserListing| user.deleted_at.is_none() && user.desired.is_some();
        if names.is_empty() {
            let fitting = all_users.into_iter().filter(fits);
            let (users, leaving): (Vec<_>, Vec<_>) = fitting.partition(is_present);
            return Ok(Self {
                users,
                leaving: leaving.into_iter().map(|user| user.name).collect(),
            });
        }
        let present = all_users.into_iter().filter(is_present);
        let mut by_key: HashMap<String, UserListing> = present
            .map(|user| (user.name.to_ascii_lowercase(), user))
            .collect();
        let (mut seen, mut users) = (HashSet::new(), Vec::new());
        let (mut unknown, mut unfit) = (Vec::new(), Vec::new());
        for name in names {
            let key = name.to_ascii_lowercase();
            if seen.contains(&key) {
                continue;
            }
            match by_key.remove(&key) {
                Some(user) if !fits(&user) => unfit.push(user.name),
                Some(user) => users.push(user),
                None => unknown.push(shown(name)),
            }
            seen.insert(key);
        }
        let refusal = match (unknown.as_slice(), unfit.as_slice()) {
            ([], []) => {
                return Ok(Self {
                    users,
                    leaving: Vec::new(),
                });
            }
            ([], unfit) => format!("users: the image is not that of {}", listed(unfit)),
            (unknown, _) => format!("users: there is no user {}", listed(unknown)),
        };
        Err(ApiError::invalid("users", refusal))
    }

    /// Appends those of another selection that are not in this one.
    pub(super) fn append(&mut self, other: Self) {
        let known: HashSet<Uid> = self.users.iter().map(|user| user.uid.clone()).collect();
        let new = other.users.into_iter();
        self.users
            .extend(new.filter(|user| !known.contains(&user.uid)));
        self.leaving.extend(other.leaving);
    }
}

/// Finds the users who are in one of these groups, or in one below.
///
/// # Errors
/// 400 for what is no name, 404 without such a group.
pub(super) async fn members(connection: &mut Connection, names: &[&str]) -> Result<HashSet<Uid>> {
    let mut members = HashSet::new();
    for name in names {
        let name = name
            .parse()
            .map_err(|rule| ApiError::invalid("groups", format!("groups: {rule}")))?;
        let group = groups::find(connection, &name).await?;
        members.extend(group::with_descendants(connection, &group.uid).await?);
    }
    Ok(members)
}

/// A name as it may be shown: what is none, the client made up.
fn shown(name: &str) -> String {
    let valid: Result<UserName, _> = name.parse();
    valid.map_or_else(|_| "(no user name)".to_owned(), |name| name.to_string())
}

fn listed(names: &[String]) -> String {
    let first: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let more = names.len().saturating_sub(NAMED);
    let rest = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("{}{rest}", first.join(", "))
}
