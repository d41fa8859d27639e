//! Users that a bulk request selects, and to whom of them its action applies.

use std::collections::HashSet;

use schema::container::Desired;
use schema::group::{self, Group};
use schema::ids::{Uid, UserName};
use schema::reader::Connection;
use schema::user::{self, UserListing, UserOrder};

use super::{Action, Form, MOST, Skipped};
use crate::deps::Deps;
use crate::error::{ApiError, Result};
use crate::input::Fields;
use crate::routes::params::{given, names};
use crate::routes::users::list::Filter;

/// Users of a request, sorted by whether the action applies to them.
#[derive(Default)]
pub(super) struct Selection {
    /// Those to whom it applies.
    pub(super) users: Vec<(Uid, String)>,
    /// The others.
    pub(super) skipped: Vec<Skipped>,
}

impl Selection {
    fn skip(&mut self, username: String, (code, reason): Obstacle) {
        self.skipped.push(Skipped {
            username,
            code,
            reason,
        });
    }
}

/// Code and reason for which an action does not apply.
type Obstacle = (&'static str, &'static str);

/// Returns why an action does not apply to a user. `members` are those of the group that is meant.
fn find_obstacle(action: Action, user: &UserListing, members: &HashSet<Uid>) -> Option<Obstacle> {
    if user.deleted_at.is_some() || user.desired.is_none() {
        return Some(("name_being_removed", "the user is being removed"));
    }
    let runs = user.desired == Some(Desired::Running);
    let is_member = members.contains(&user.uid);
    match action {
        Action::Start | Action::Restart if user.disabled => Some((
            "account_disabled",
            "the account is disabled; enable it first",
        )),
        Action::Start if runs && !user.debug => {
            Some(("already_started", "the container is to run already"))
        }
        Action::Stop if !runs => Some(("already_stopped", "the container is stopped already")),
        Action::Disable if user.disabled_here => {
            Some(("already_disabled", "the account is disabled already"))
        }
        Action::Enable if !user.disabled_here && user.disabled => Some((
            "missing_from_directory",
            "the directory does not have the user; the account is enabled once it has",
        )),
        Action::Enable if !user.disabled_here => {
            Some(("already_enabled", "the account is not disabled"))
        }
        Action::AddToGroup if is_member => {
            Some(("already_member", "the user is in the group already"))
        }
        Action::RemoveFromGroup if !is_member => {
            Some(("not_a_member", "the user is not in the group itself"))
        }
        _ => None,
    }
}

/// Finds the users of a request.
pub(super) async fn select(
    connection: &mut Connection,
    deps: &Deps,
    form: &Form,
    group: Option<&Group>,
) -> Result<Selection> {
    let members: HashSet<Uid> = match group {
        None => HashSet::new(),
        Some(group) => {
            let members = group::direct_members(connection, &group.uid).await?;
            members.into_iter().collect()
        }
    };
    let mut selection = Selection::default();
    let listed = match given(&form.filter) {
        Some(filter) => select_by_filter(connection, deps, filter).await?,
        None => select_by_name(connection, &form.users, &mut selection).await?,
    };
    for user in listed {
        match find_obstacle(form.action, &user, &members) {
            Some(obstacle) => selection.skip(user.name, obstacle),
            None => selection.users.push((user.uid, user.name)),
        }
    }
    Ok(selection)
}

async fn select_by_filter(
    connection: &mut Connection,
    deps: &Deps,
    filter: &str,
) -> Result<Vec<UserListing>> {
    let fields = Fields::from_json(filter.as_bytes()).map_err(|_| {
        let rule = "filter is a JSON object such as {\"status\":\"failed\"}";
        ApiError::invalid("filter", rule)
    })?;
    fields.check_known(&Filter::SELECTING)?;
    let filter = fields.parse::<Filter>()?.resolve(connection, deps).await?;
    let order = UserOrder::default();
    let (users, total) = user::list_filtered(connection, &filter, order, MOST, 0).await?;
    if total > MOST {
        let message = format!(
            "the filter selects {total} users, and one request changes at most {MOST}; select fewer, for example by name or group"
        );
        return Err(ApiError::unprocessable("too_many_users", message));
    }
    Ok(users)
}

async fn select_by_name(
    connection: &mut Connection,
    users: &[String],
    selection: &mut Selection,
) -> Result<Vec<UserListing>> {
    const UNKNOWN: Obstacle = ("not_found", "there is no such user");
    let (mut seen, mut listed) = (HashSet::new(), Vec::new());
    for text in names(users) {
        let Ok(name) = text.parse::<UserName>() else {
            // A text that is no name may be of any length.
            selection.skip(text.chars().take(64).collect(), UNKNOWN);
            continue;
        };
        let found = match user::find(connection, &name).await? {
            Some(user) => user::listing(connection, &user.uid).await?,
            None => None,
        };
        match found {
            Some(user) if seen.insert(user.uid.clone()) => listed.push(user),
            Some(_) => {}
            None => selection.skip(name.to_string(), UNKNOWN),
        }
    }
    listed.sort_by_key(|user| user.name.to_ascii_lowercase());
    Ok(listed)
}
