//! Ordinary users, as administrators manage them.

use schema::audit::About;
use schema::config::history::SavedBy;
use schema::config::{Config, keys, query as config_query};
use schema::db::Tx;
use schema::directory;
use schema::error::DbError;
use schema::ids::{Generation, Kind, Timestamp, UserName};
use schema::object;
use schema::user::{self, Source, Template, User};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::params::{
    Credentials, NewPassword, PasswordReset, ResetForm, Who, by_rule_of, ordinary_user,
    present_user,
};
use crate::answer::{Answer, Answers, Body};
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::Input;
use crate::openapi::Schemas;
use crate::reply::Reply;
use crate::route::{Area, Failure, Route, Tokens};
use crate::settings::AuthMode;
use crate::wait::{self, Change, Changed, Converging, State, Until};
use removal::Removal;

mod batch;
mod bulk;
mod list;
mod removal;
mod sessions;

pub(super) use bulk::Skipped;
pub(super) use list::Standing;

/// The routes of this file, and of those below it.
pub(super) fn routes() -> Vec<Route> {
    let mut routes =
        vec![
        Route::post("users_create", "/api/admin/users/create", create)
.tokens(Tokens::Admin)
            .title(Area::Users, "Create a local user")
.about(
                "Creates the account and its container. The password is returned only in this \
                 answer. If the container fails, the account exists all the same, and the failure \
                 carries `username` and `password`.",
            )
            .local_only()
            .waits()
            .fails(&[Failure::TAKEN, Failure::NAME_REMOVED, Failure::BUSY]),
        Route::post("users_delete", "/api/admin/users/delete", delete)
.tokens(Tokens::Admin)
            .title(Area::Users, "Delete a user")
.about(
                "Removes the container, archives the directory and frees the name. Repeating the \
                 request waits for the same removal. With `dry_run` nothing is removed, and `removal` \
                 says what would be.",
            )
            .waits()
            .guarded()
            .fails(&[Failure::NO_USER, Failure::REMOVED]),
        Route::post("users_reset_password", "/api/admin/users/reset-password", reset_password)
.tokens(Tokens::Admin)
            .title(Area::Users, "Reset a local user's password")
.about(
                "Ends all sessions of the user. A random password is returned only in this \
                 answer; one that was given is not returned.",
            )
            .local_only()
            .fails(&[Failure::NO_USER, Failure::REMOVED, Failure::BUSY]),
        Route::post("users_disable", "/api/admin/users/disable", disable)
.tokens(Tokens::Admin)
            .title(Area::Users, "Disable a user")
.about("Prevents signing in, ends all sessions and stops the container.")
            .waits()
            .guarded()
            .fails(&[Failure::NO_USER, Failure::REMOVED]),
        Route::post("users_enable", "/api/admin/users/enable", enable)
.tokens(Tokens::Admin)
            .title(Area::Users, "Enable a user")
.about("Allows signing in again, and brings the container to its desired state.")
            .waits()
            .guarded()
            .fails(&[Failure::NO_USER, Failure::REMOVED]),
    ];
    routes.extend(list::routes());
    routes.extend(sessions::routes());
    routes.extend(batch::routes());
    routes.extend(bulk::routes());
    routes
}

/// A user to create.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Creation {
    /// The name of the new user.
    username: UserName,
    /// Random when absent or empty.
    #[schema(value_type = Option<String>, format = Password)]
    password: Option<SecretString>,
    /// A tag of the configured image; default: the configured tag.
    #[schema(example = "1.2.3")]
    image_tag: Option<String>,
}

/// A new user.
#[derive(Serialize, ToSchema)]
pub struct Created {
    #[serde(flatten)]
    credentials: Credentials,
    #[serde(flatten)]
    converging: Converging,
}

/// A user was created; what became of the container decides whether the answer is a success. The
/// account exists all the same, and only this answer has its password.
pub enum Creating {
    /// The container is ready or under way.
    Done(Answer<Created>),
    /// The container failed.
    Failed(Answer<Credentials>),
}

impl Answers for Creating {
    fn into_reply(self) -> Reply {
        match self {
            Self::Done(answer) => answer.into_reply(),
            Self::Failed(answer) => answer.into_reply(),
        }
    }

    fn describe(schemas: &mut Schemas) -> Vec<Body> {
        Answer::<Created>::describe(schemas)
    }
}

/// `POST /api/admin/users/create`: answers name and password, once.
///
/// # Errors
/// 400 for a bad name, password or tag; 409 when the name is taken or still being removed.
async fn create(_: Superadmin, input: Input<Creation>, deps: Deps) -> Result<Creating> {
    let Creation {
        username,
        password,
        image_tag,
    } = input.params;
    let image_tag = checked_tag(image_tag)?;
    let new = NewPassword::read(password)?;
    let hash = deps.passwords.hash(&new.password).await?;
    let mut tx = input.meta.begin(&deps).await?;
    let template = template(&mut tx, &deps, image_tag.as_deref()).await?;
    let change = create_local(&mut tx, &template, &username, hash, deps.clock.now()).await?;
    tx.commit(About::object(Kind::User, &username)).await?;
    let settled = wait::settle(&deps, &change, Until::Converged, input.wait).await;
    let (done, under_way) = ("user created", "user created; container requested");
    let credentials = Credentials::new(username, &new.password);
    Ok(match wait::reply(&change, settled, done, under_way) {
        Ok(answer) => Creating::Done(answer.map(|converging| Created {
            credentials,
            converging,
        })),
        Err(failed) => Creating::Failed(Answer::failed(&failed, credentials)),
    })
}

fn checked_tag(tag: Option<String>) -> Result<Option<String>> {
    let tag = tag.filter(|tag| !tag.is_empty());
    if let Some(tag) = &tag {
        by_rule_of(&keys::image::TAG, "image_tag", &json!(tag))?;
    }
    Ok(tag)
}

async fn template(tx: &mut Tx, deps: &Deps, tag: Option<&str>) -> Result<Template, DbError> {
    let (values, _) = config_query::load(tx, &deps.master_key).await?;
    Ok(Template::of(&Config::from_stored(values), tag))
}

/// Records a local user with its container.
async fn create_local(
    tx: &mut Tx,
    template: &Template,
    name: &UserName,
    password_hash: SecretString,
    now: Timestamp,
) -> Result<Change, DbError> {
    let new = template.new_user(name, Source::Local, Some(password_hash));
    let generation = user::create(tx, &new, now).await?;
    Ok(Change::new(
        Kind::Container,
        new.uid,
        name.as_str(),
        generation,
    ))
}

/// A user to delete.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = UserDelete)]
pub struct Deletion {
    /// The user's name.
    username: UserName,
    /// Report what would be removed, without removing it.
    #[serde(default)]
    dry_run: bool,
}

/// A user that is deleted, or would be.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UserDeleted)]
pub struct Deleted {
    /// Progress; absent with `dry_run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
    #[serde(flatten)]
    changed: Option<Changed>,
    /// With `dry_run`: what would be removed, and what becomes of the directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    removal: Option<Removal>,
}

/// `POST /api/admin/users/delete`: the container goes, the directory is archived, the name becomes
/// free. Asking again for what is under way waits for the same removal.
///
/// # Errors
/// 404 without such a user, 412 when its container's generation is not `if_generation`; what the
/// removal fails with.
async fn delete(_: Superadmin, input: Input<Deletion>, deps: Deps) -> Result<Answer<Deleted>> {
    let name = &input.params.username;
    let back = coming_back(deps.settings().auth_mode);
    if input.params.dry_run {
        return preview_removal(&deps, name, back).await;
    }
    let mut tx = input.meta.begin(&deps).await?;
    let user = ordinary_user(&mut tx, name).await?;
    if user.deleted_at.is_none() && input.if_generation.is_some() {
        object::bump(&mut tx, Kind::Container, &user.uid, input.if_generation).await?;
    }
    let generation = removal_of(&mut tx, &user, deps.clock.now()).await?;
    let change = Change::of_user(Kind::User, &user, generation);
    tx.commit(change.about()).await?;
    deps.session_ends.report(&user.uid);
    let settled = wait::settle(&deps, &change, Until::Purged, input.wait).await;
    let done = format!("user {name} deleted and the directory archived; {back}");
    let under_way = format!("deletion of user {name} requested; once it is done, {back}");
    let answer = wait::reply(&change, settled, done, under_way)?;
    Ok(answer.map(|Converging { state, changed }| Deleted {
        state: Some(state),
        changed: Some(changed),
        removal: None,
    }))
}

async fn preview_removal(
    deps: &Deps,
    name: &UserName,
    back: &'static str,
) -> Result<Answer<Deleted>> {
    let mut snapshot = deps.db.snapshot().await?;
    let user = present_user(&mut snapshot, name).await?;
    let removal = Removal::read(&mut snapshot, deps, &user, back).await?;
    let message = removal.message();
    let deleted = Deleted {
        state: None,
        changed: None,
        removal: Some(removal),
    };
    Ok(Answer::ok(message, deleted))
}

/// Records the removal, or finds the one that is under way. Returns the user's generation.
async fn removal_of(tx: &mut Tx, user: &User, now: Timestamp) -> Result<Generation, DbError> {
    match user::delete(tx, &user.uid, now).await {
        Err(DbError::NotFound(_)) => {
            let row = object::get(tx, Kind::User, &user.uid).await?;
            Ok(row.ok_or(DbError::NotFound("user"))?.generation)
        }
        other => other,
    }
}

fn coming_back(mode: AuthMode) -> &'static str {
    match mode {
        AuthMode::Local => "the name is free for a new user",
        AuthMode::Ldap => "the user is created again by signing in or by the next sync",
        AuthMode::Oidc => "the user is created again by signing in",
    }
}

/// `POST /api/admin/users/reset-password`: sets a new password; all sessions end. A random one is
/// returned once; one that was given is not returned.
///
/// # Errors
/// 404 without such a user, 403 when its password is kept elsewhere, 409 while it is being removed,
/// 400 for a given password that breaks the rules.
async fn reset_password(
    _: Superadmin,
    input: Input<ResetForm>,
    deps: Deps,
) -> Result<Answer<PasswordReset>> {
    let ResetForm { username, password } = input.params;
    let name = &username;
    let new = NewPassword::read(password)?;
    let hash = deps.passwords.hash(&new.password).await?;
    let mut tx = input.meta.begin(&deps).await?;
    let user = present_user(&mut tx, name).await?;
    if user.source != Source::Local {
        return Err(ApiError::ModeForbidden(
            "the user's password is managed elsewhere",
        ));
    }
    user::set_password(&mut tx, &user.uid, &hash, None).await?;
    tx.commit(About::object(Kind::User, &user.name)).await?;
    deps.session_ends.report(&user.uid);
    let message = "password reset; all sessions ended";
    Ok(Answer::ok(message, new.reset(user.name)))
}

/// `POST /api/admin/users/disable`: no sign-in, no session, no running container.
///
/// # Errors
/// 404 without such a user, 409 while it is being removed, 412 for a stale `if_generation`; what
/// stopping the container fails with.
async fn disable(_: Superadmin, input: Input<Who>, deps: Deps) -> Result<Answer<Converging>> {
    set_disabled(input, &deps, true).await
}

/// `POST /api/admin/users/enable`: signing in is possible again, and the container is as desired.
///
/// # Errors
/// As [`disable`].
async fn enable(_: Superadmin, input: Input<Who>, deps: Deps) -> Result<Answer<Converging>> {
    set_disabled(input, &deps, false).await
}

async fn set_disabled(
    input: Input<Who>,
    deps: &Deps,
    disabled: bool,
) -> Result<Answer<Converging>> {
    let name = &input.params.username;
    let mut tx = input.meta.begin(deps).await?;
    let user = present_user(&mut tx, name).await?;
    let generation = user::set_disabled(&mut tx, &user.uid, disabled, input.if_generation).await?;
    let (actor, at) = tx.author();
    let by = SavedBy { actor: &actor, at };
    user::record_disabling(&mut tx, &user.uid, by).await?;
    let missing = match disabled {
        true => None,
        false => directory::missing_since(&mut tx, &user.uid).await?,
    };
    tx.commit(About::object(Kind::User, &user.name)).await?;
    deps.session_ends.report(&user.uid);
    let state = if disabled { "disabled" } else { "enabled" };
    let missing = missing.map(|since| {
        let since = since.to_rfc3339();
        format!(", and missing from the directory since {since}: nobody can sign in before it is back there")
    });
    let done = format!("user {name} is {state}{}", missing.unwrap_or_default());
    let change = Change::of_container(&user, generation);
    wait::answer(deps, &change, input.wait, done).await
}

#[cfg(test)]
mod tests;
