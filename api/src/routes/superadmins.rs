//! Superadmins: always local, at least one.

use schema::audit::About;
use schema::error::DbError;
use schema::ids::{Timestamp, UserName};
use schema::user::{self, Role, User};
use secrecy::SecretString;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::deps::{Dependencies, Deps};
use crate::dispatch::{Actor, Superadmin};
use crate::error::{ApiError, Result};
use crate::input::{Input, Meta, Nothing};
use crate::route::{Area, Failure, Route, Tokens};

use super::own_account::{PasswordChanged, PasswordForm, replace_own_password};
use super::page::{self, Page};
use super::params::{Credentials, NewPassword, PasswordReset, ResetForm, Who};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("superadmins_list", "/api/admin/superadmins", list)
.tokens(Tokens::Read)
            .title(Area::Superadmins, "List superadmins")
            .about("Names in `admins`, details in `items`.")
            .paged(),
        Route::post(
            "superadmins_create",
            "/api/admin/superadmins/create",
            create,
        )
.tokens(Tokens::Admin)
        .title(Area::Superadmins, "Create a superadmin")
        .about("The random password is returned only in this answer.")
        .fails(&[Failure::TAKEN, Failure::NAME_REMOVED, Failure::BUSY]),
        Route::post(
            "superadmins_delete",
            "/api/admin/superadmins/delete",
            delete,
        )
.tokens(Tokens::Admin)
        .title(Area::Superadmins, "Delete a superadmin")
        .about("Ends the account and its sessions. Superadmins cannot delete their own account.")
        .fails(&[
            Failure(404, "not_found", "no such superadmin"),
            Failure(
                409,
                "last_superadmin",
                "at least one superadmin must remain",
            ),
        ]),
        Route::post("superadmins_reset", "/api/admin/superadmins/reset", reset)
.tokens(Tokens::Admin)
            .title(Area::Superadmins, "Reset a superadmin's password")
            .about(
                "Ends all sessions of the account except this one. A random password is returned \
                 only in this answer; one that was given is not returned.",
            )
            .fails(&[
                Failure(404, "not_found", "no such superadmin"),
                Failure::BUSY,
            ]),
        Route::post(
            "superadmins_password",
            "/api/admin/superadmins/password",
            change_password,
        )
.tokens(Tokens::None)
        .title(Area::Superadmins, "Change my password as a superadmin")
        .about(
            "Ends all other sessions of the account, in every mode. A wrong old password counts as a failed sign-in. \
             The admin socket has no password: it uses `superadmins/reset`.",
        )
        .fails(&[
            Failure(401, "wrong_password", "the old password is wrong"),
            Failure::ATTEMPTS,
            Failure::BUSY,
        ]),
    ]
}

/// A superadmin as listings show it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SuperadminItem)]
pub struct Item {
    /// The account's name.
    username: UserName,
    /// When it was created.
    created_at: Timestamp,
    /// When it last signed in.
    last_login_at: Option<Timestamp>,
}

/// All superadmins.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Superadmins)]
pub struct Listing {
    /// Their names.
    admins: Vec<UserName>,
    items: Vec<Item>,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/superadmins`: names under `admins`, more under `items`.
///
/// # Errors
/// None of its own.
async fn list(_: Superadmin, input: Input<Nothing>, deps: Deps) -> Result<Answer<Listing>> {
    let all = user::list_superadmins(&mut *deps.db.read().await?).await?;
    let items = all.into_iter().map(|account| Item {
        username: account.name,
        created_at: account.created_at,
        last_login_at: account.last_login_at,
    });
    let paging = input.paging.as_ref();
    let (items, page) = page::cut(items.collect(), paging, |item, search| {
        item.username.key().contains(search)
    });
    let listing = Listing {
        admins: items.iter().map(|item| item.username.clone()).collect(),
        items,
        page,
    };
    Ok(Answer::ok("superadmins", listing))
}

/// `POST /api/admin/superadmins/create`: the random password is returned once.
///
/// # Errors
/// 409 when the name is taken, by an ordinary user or one being removed too.
async fn create(_: Superadmin, input: Input<Who>, deps: Deps) -> Result<Answer<Credentials>> {
    let username = input.params.username;
    let password = NewPassword::random()?.password;
    let hash = deps.passwords.hash(&password).await?;
    let mut tx = input.meta.begin(&deps).await?;
    user::create_superadmin(&mut tx, &username, &hash, deps.clock.now()).await?;
    tx.commit(About::object(Role::Superadmin, &username))
        .await?;
    let message = format!("superadmin {username} created");
    let credentials = Credentials::new(username, &password);
    Ok(Answer::ok(message, credentials))
}

/// `POST /api/admin/superadmins/delete`: ends the account and its sessions.
///
/// # Errors
/// 404; 409 `last_superadmin`, decided before anything else; 400 for one's own account.
async fn delete(Superadmin(actor): Superadmin, input: Input<Who>, deps: Deps) -> Result<Answer> {
    let username = input.params.username;
    let mut tx = input.meta.begin(&deps).await?;
    let account = user::find(&mut tx, &username).await?;
    user::delete_superadmin(&mut tx, &username)
        .await
        .map_err(|error| named(error, &username))?;
    if is_own(&actor, &username) {
        // The transaction is dropped, so nothing has happened.
        return Err(ApiError::invalid(
            "username",
            "you cannot delete your own account; another superadmin can",
        ));
    }
    tx.commit(About::object(Role::Superadmin, &username))
        .await?;
    if let Some(account) = account {
        deps.session_ends.report(&account.uid);
    }
    Ok(Answer::plain(format!("superadmin {username} deleted")))
}

/// `POST /api/admin/superadmins/reset`: sets a new password and ends all sessions of the account
/// (but the one that asks). A random password is returned once; one that was given is not returned.
///
/// # Errors
/// 404; 400 for a given password that breaks the rules.
async fn reset(
    Superadmin(actor): Superadmin,
    input: Input<ResetForm>,
    deps: Deps,
) -> Result<Answer<PasswordReset>> {
    let ResetForm { username, password } = input.params;
    let new = NewPassword::read(password)?;
    let hash = deps.passwords.hash(&new.password).await?;
    set_password(&deps, &input.meta, &actor, &username, &hash).await?;
    let message = format!("superadmin {username} has a new password");
    Ok(Answer::ok(message, new.reset(username)))
}

/// `POST /api/admin/superadmins/password`: replaces the password of the caller's own account.
///
/// # Errors
/// 400 for a new password that breaks the rules and for the admin socket, 401 `wrong_password`, 429 and 503 as for signing in.
async fn change_password(
    Superadmin(actor): Superadmin,
    input: Input<PasswordForm>,
    deps: Deps,
) -> Result<Answer<PasswordChanged>> {
    let session = actor.session().ok_or_else(|| {
        let rule = "the admin socket has no account; name one with superadmins/reset";
        ApiError::invalid("old_password", rule)
    })?;
    replace_own_password(session, input, &deps).await
}

async fn set_password(
    deps: &Dependencies,
    meta: &Meta,
    actor: &Actor,
    username: &UserName,
    hash: &SecretString,
) -> Result<()> {
    let keep = match actor {
        Actor::Session(session) if is_own(actor, username) => {
            Some(session.claims.issued_at.as_secs())
        }
        Actor::Session(_) | Actor::ApiToken(_) | Actor::Socket { .. } => None,
    };
    let mut tx = meta.begin(deps).await?;
    let account = user::find(&mut tx, username)
        .await?
        .filter(|account: &User| account.role == Role::Superadmin)
        .ok_or_else(|| ApiError::not_found(format!("superadmin {username}")))?;
    user::set_password(&mut tx, &account.uid, hash, keep).await?;
    tx.commit(About::object(account.role, &account.name))
        .await?;
    deps.session_ends.report(&account.uid);
    Ok(())
}

/// Names are compared as they are unique: without case.
fn is_own(actor: &Actor, username: &UserName) -> bool {
    match actor {
        Actor::Session(session) => session.account.name.key() == username.key(),
        Actor::ApiToken(_) | Actor::Socket { .. } => false,
    }
}

fn named(error: DbError, username: &UserName) -> ApiError {
    match error {
        DbError::NotFound(_) => ApiError::not_found(format!("superadmin {username}")),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests;
