//! `POST /api/admin/users/bulk`: one change of many users, as a task with a result for each.

use std::collections::BTreeMap;
use std::time::Duration;

use http::StatusCode;
use schema::audit::{About, Audited};
use schema::config::history::SavedBy;
use schema::group::{self, Group};
use schema::ids::{Generation, Kind, PlainName, Uid};
use schema::object;
use schema::operation::{self, Progress};
use schema::reader::Connection;
use schema::user::{self, BulkChange};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::list::NO_GROUP;
use super::removal::Archive;
use crate::answer::{self, Answer};
use crate::deps::Deps;
use crate::dispatch::{Actor, Superadmin};
use crate::error::{ApiError, Result};
use crate::input::Input;
use crate::route::{Area, Failure, Route, Tokens};
use crate::routes::groups;
use crate::routes::images;
use crate::routes::params::{given, names};
use crate::wait::{self, State};

mod selection;

use selection::{Selection, select};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("users_bulk", "/api/admin/users/bulk", bulk)
.tokens(Tokens::Admin)
            .title(Area::Users, "Change several users")
            .about(
                "Applies one action to the users named, or to all of a filter, at most 1,000. Users to whom it does not apply \
                 are left out, each with the reason. The rest is a task with a result for each; of `move-image`, a \
                 rollout. With `dry_run` nothing is changed.",
            )
            .waits_for_task()
            .fails(&[
                NO_GROUP,
                images::IN_ROLLOUT,
                Failure(
                    403,
                    "mode_forbidden",
                    "the group is managed by a directory or an identity provider",
                ),
                Failure(
                    409,
                    "changed_meanwhile",
                    "the action applies to another number of users than `expect_total`",
                ),
                Failure(422, "too_many_users", "more users than one request changes"),
            ]),
    ]
}

/// Most users of one request.
const MOST: i64 = 1000;
/// Most users that an answer names.
const NAMED: usize = 100;

/// Action on users.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::Display,
    strum::VariantArray,
    ToSchema,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
#[schema(as = UserAction)]
pub enum Action {
    /// Start the containers.
    Start,
    /// Stop the containers.
    Stop,
    /// Recreate the containers once; stopped ones are started.
    Restart,
    /// Prevent signing in, and stop the containers.
    Disable,
    /// Allow signing in again.
    Enable,
    /// Remove the users and archive their directories.
    Delete,
    /// Move the users to `image`, by a rollout.
    MoveImage,
    /// Make the users members of `group`.
    AddToGroup,
    /// End the membership of the users in `group`.
    RemoveFromGroup,
}

impl Action {
    fn change(self) -> Option<BulkChange> {
        match self {
            Self::Start => Some(BulkChange::Start),
            Self::Stop => Some(BulkChange::Stop),
            Self::Restart => Some(BulkChange::Restart),
            Self::Disable => Some(BulkChange::Disable),
            Self::Enable => Some(BulkChange::Enable),
            Self::Delete => Some(BulkChange::Delete),
            Self::MoveImage | Self::AddToGroup | Self::RemoveFromGroup => None,
        }
    }

    /// The type of its task.
    fn task(self) -> String {
        format!("users_{self}").replace('-', "_")
    }
}

/// A change of several users.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = UsersBulk)]
pub struct Form {
    action: Action,
    /// The users: a list, or a text separated by commas or line breaks.
    #[serde(default)]
    #[schema(example = json!(["alice", "bob"]))]
    users: Vec<String>,
    /// In place of `users`: a JSON object with the filters of the list of users (`name`, `ready`, `status`, `reason`, `group`, `image`,
    /// `source`, `disabled`); an empty one selects all.
    #[schema(value_type = Option<Object>, example = json!({"status": "failed"}))]
    filter: Option<String>,
    /// Of `add-to-group` and `remove-from-group`: the group.
    group: Option<PlainName>,
    /// Of `move-image`: a tag of `image.name`, or a reference.
    #[schema(example = "1.2.3")]
    image: Option<String>,
    /// Of `move-image`: maximum users moving at once, 1 to 1000; default: 1.
    #[schema(minimum = 1, maximum = 1000)]
    max_unavailable: Option<u32>,
    /// Number of users to whom the action has to apply, as a preview reported it; 409 `changed_meanwhile` for another one.
    expect_total: Option<usize>,
    /// Report what would change, without changing it.
    #[serde(default)]
    dry_run: bool,
}

/// A user to whom an action does not apply, or whom a rollout leaves as it is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SkippedUser)]
pub struct Skipped {
    /// The user.
    #[schema(example = "bob")]
    pub(in crate::routes) username: String,
    /// Reason, stable for programs.
    #[schema(example = "account_disabled")]
    pub(in crate::routes) code: &'static str,
    /// Reason, as a clause.
    #[schema(example = "the account is disabled; enable it first")]
    pub(in crate::routes) reason: &'static str,
}

/// Result of a change of several users, and its progress.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UsersChanged)]
pub struct Changed {
    action: Action,
    /// Nothing was changed.
    dry_run: bool,
    /// Number of users to whom it applies.
    total: usize,
    /// The first 100 of them, by name.
    users: Vec<String>,
    /// Number of users to whom it does not apply.
    skipped: usize,
    /// The first 100 of them.
    skipped_users: Vec<Skipped>,
    /// Number of users by reason.
    skipped_codes: BTreeMap<&'static str, usize>,
    /// Of `delete`: what becomes of the directories, with `<user>` for each user's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    archive: Option<Archive>,
    /// The task; absent when nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "01970a3e6f0c7d3b8a5b6b1d2c3e4f50")]
    task_id: Option<String>,
    /// Progress; absent with `dry_run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
    /// Number of users by state.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
}

impl Selection {
    /// Users reported by name.
    fn into_changed(mut self, form: &Form, archive: Option<Archive>) -> Changed {
        let mut codes = BTreeMap::new();
        for skipped in &self.skipped {
            *codes.entry(skipped.code).or_default() += 1;
        }
        let (total, skipped) = (self.users.len(), self.skipped.len());
        self.skipped.truncate(NAMED);
        let users = self.users.into_iter().take(NAMED);
        Changed {
            action: form.action,
            dry_run: form.dry_run,
            total,
            users: users.map(|(_, name)| name).collect(),
            skipped,
            skipped_users: self.skipped,
            skipped_codes: codes,
            archive,
            task_id: None,
            state: None,
            progress: None,
        }
    }
}

impl Form {
    /// Checks that it says whom, and what belongs to the action.
    fn check(&self) -> Result<()> {
        let named = names(&self.users).len();
        if (named > 0) == given(&self.filter).is_some() {
            let rule = "users names the users, or filter selects them; give one of them";
            return Err(ApiError::invalid("users", rule));
        }
        if i64::try_from(named).unwrap_or(i64::MAX) > MOST {
            let rule = format!("users names at most {MOST} users");
            return Err(ApiError::invalid("users", rule));
        }
        let of_group = matches!(self.action, Action::AddToGroup | Action::RemoveFromGroup);
        if of_group != self.group.is_some() {
            let rule = "group belongs to add-to-group and remove-from-group, which require it";
            return Err(ApiError::invalid("group", rule));
        }
        if (self.action == Action::MoveImage) != given(&self.image).is_some() {
            let rule = "image belongs to move-image, which requires it";
            return Err(ApiError::invalid("image", rule));
        }
        if self.action != Action::MoveImage && self.max_unavailable.is_some() {
            let rule = "max_unavailable belongs to move-image";
            return Err(ApiError::invalid("max_unavailable", rule));
        }
        Ok(())
    }

    /// Checks that the action applies to as many users as in the preview.
    fn check_total(&self, selection: &Selection) -> Result<()> {
        let total = selection.users.len();
        match self.expect_total {
            Some(expected) if expected != total => Err(ApiError::conflict(
                "changed_meanwhile",
                format!(
                    "{} applies to {} now, not to {expected}; preview it again",
                    self.action,
                    answer::users(total)
                ),
            )),
            _ => Ok(()),
        }
    }

    async fn group(&self, connection: &mut Connection) -> Result<Option<Group>> {
        match &self.group {
            None => Ok(None),
            Some(name) => Ok(Some(groups::own(groups::find(connection, name).await?)?)),
        }
    }
}

/// `POST /api/admin/users/bulk`: one action on many users.
///
/// # Errors
/// 400 without users or with what does not belong to the action, 404 without such a group, 403 for one that is synchronised, 409
/// `in_rollout` and `changed_meanwhile`, 422 for too many users.
async fn bulk(
    Superadmin(actor): Superadmin,
    input: Input<Form>,
    deps: Deps,
) -> Result<Answer<Changed>> {
    let form = &input.params;
    form.check()?;
    if form.dry_run {
        return preview(&deps, form).await;
    }
    let mut tx = input.meta.begin(&deps).await?;
    if form.action != Action::MoveImage {
        user::lock_for_bulk(&mut tx).await?;
    }
    let group = form.group(&mut tx).await?;
    let selection = select(&mut tx, &deps, form, group.as_ref()).await?;
    form.check_total(&selection)?;
    if selection.users.is_empty() {
        let mut changed = selection.into_changed(form, None);
        changed.state = Some(State::Converged);
        return Ok(Answer::ok(
            "nothing to change: the action applies to none of the users",
            changed,
        ));
    }
    let users = &selection.users;
    let task = match (form.action.change(), &group) {
        (Some(change), _) => record(tx, &deps, &actor, form.action, change, users).await?,
        (None, Some(group)) => record_members(tx, &deps, &actor, form.action, group, users).await?,
        (None, None) => {
            let image = form.image.as_deref().unwrap_or_default();
            images::roll_out(tx, &deps, &actor, image, form.max_unavailable, users).await?
        }
    };
    Ok(report(&deps, selection.into_changed(form, None), task, input.wait).await)
}

/// Preview of the change.
async fn preview(deps: &Deps, form: &Form) -> Result<Answer<Changed>> {
    let mut snapshot = deps.db.snapshot().await?;
    let group = form.group(&mut snapshot).await?;
    if let Some(image) = given(&form.image) {
        images::check_target(&mut snapshot, deps, image, form.max_unavailable).await?;
    }
    let selection = select(&mut snapshot, deps, form, group.as_ref()).await?;
    let archive = match form.action {
        Action::Delete => Some(Archive::read(&mut snapshot, deps, "<user>").await?),
        _ => None,
    };
    drop(snapshot);
    let changed = selection.into_changed(form, archive);
    let message = format!(
        "nothing was changed; {} applies to {}, and not to {}",
        form.action,
        answer::users(changed.total),
        changed.skipped
    );
    Ok(Answer::ok(message, changed))
}

/// An object of a task.
type Target = (Kind, Uid, String, Generation);

async fn record(
    mut tx: Audited,
    deps: &Deps,
    actor: &Actor,
    action: Action,
    change: BulkChange,
    users: &[(Uid, String)],
) -> Result<String> {
    let (by, at) = tx.author();
    let mut targets: Vec<Target> = Vec::with_capacity(users.len());
    for (uid, name) in users {
        let by = SavedBy { actor: &by, at };
        let (kind, generation) = user::change_in_bulk(&mut tx, uid, change, by).await?;
        targets.push((kind, uid.clone(), name.clone(), generation));
    }
    let task = finish(tx, deps, actor, action, None, &targets).await?;
    if matches!(action, Action::Disable | Action::Delete) {
        for (uid, _) in users {
            deps.session_ends.report(uid);
        }
    }
    Ok(task)
}

async fn record_members(
    mut tx: Audited,
    deps: &Deps,
    actor: &Actor,
    action: Action,
    group: &Group,
    users: &[(Uid, String)],
) -> Result<String> {
    let uids = users.iter().map(|(uid, _)| uid.clone()).collect();
    match action {
        Action::AddToGroup => group::add_members(&mut tx, &group.uid, uids).await?,
        _ => group::remove_members(&mut tx, &group.uid, uids).await?,
    };
    // Skills follow from memberships, of some users.
    let mut targets: Vec<Target> = Vec::with_capacity(users.len());
    for (uid, name) in users {
        if let Some(row) = object::get(&mut tx, Kind::SkillSet, uid).await? {
            targets.push((Kind::SkillSet, uid.clone(), name.clone(), row.generation));
        }
    }
    finish(tx, deps, actor, action, Some(group), &targets).await
}

/// Records the task and commits.
async fn finish(
    mut tx: Audited,
    deps: &Deps,
    actor: &Actor,
    action: Action,
    group: Option<&Group>,
    targets: &[Target],
) -> Result<String> {
    let (by, now) = (actor.to_string(), deps.clock.now());
    let task = operation::create(&mut tx, &action.task(), &by, targets, now).await?;
    let mut objects: Vec<(String, &str)> = Vec::with_capacity(targets.len() + 1);
    if let Some(group) = group {
        objects.push(("group".to_owned(), group.name.as_str()));
    }
    let users = targets.iter();
    objects.extend(users.map(|(_, _, name, _)| (Kind::User.to_string(), name.as_str())));
    let mut objects = objects.into_iter();
    let (kind, name) = objects.next().unwrap_or_default();
    let about = About::object(kind, name);
    let about = objects.fold(about, |about, (kind, name)| about.and(kind, name));
    let detail = format!("{action}: {}; task {task}", answer::users(targets.len()));
    tx.commit(about.detail(detail)).await?;
    Ok(task)
}

/// Waits for the task.
async fn report(
    deps: &Deps,
    mut changed: Changed,
    task: String,
    wait: Option<Duration>,
) -> Answer<Changed> {
    let progress = wait::settle_operation(deps, &task, wait).await;
    let (state, status): (State, StatusCode) = wait::state_of(progress);
    changed.task_id = Some(task);
    changed.state = Some(state);
    changed.progress = Some(progress);
    let message = format!(
        "{} requested for {}; not applied to {}",
        changed.action,
        answer::users(changed.total),
        changed.skipped
    );
    Answer::ok(message, changed).status(status)
}

#[cfg(test)]
mod tests;
