//! Sessions of an account, as administrators manage them.

use schema::audit::About;
use schema::ids::UserName;
use schema::reader::Connection;
use schema::session;
use schema::user::{self, User};
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::Input;
use crate::route::{Area, Failure, Route, Tokens};
use crate::routes::own_account::{LiveSessions, live_sessions};
use crate::routes::params::Who;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("users_sessions", "/api/admin/users/sessions", list)
            .tokens(Tokens::Read)
            .title(Area::Users, "List the sessions of an account")
            .about(
                "Live sessions, newest first, also of a superadmin. `search` matches addresses \
                 and clients.",
            )
            .paged()
            .fails(&[Failure::NO_USER]),
        Route::post(
            "users_revoke_sessions",
            "/api/admin/users/sessions/revoke",
            revoke_sessions,
        )
        .tokens(Tokens::Admin)
        .title(Area::Users, "End all sessions of an account")
        .about("Also of a superadmin.")
        .fails(&[Failure::NO_USER]),
    ]
}

/// `GET /api/admin/users/sessions`: the live sessions of an account, superadmins included.
///
/// # Errors
/// 404 without such an account.
async fn list(
    Superadmin(actor): Superadmin,
    input: Input<Who>,
    deps: Deps,
) -> Result<Answer<LiveSessions>> {
    let name = &input.params.username;
    let account = find(&mut *deps.db.read().await?, name).await?;
    let own = actor.session();
    let own = own.filter(|session| session.account.uid == account.uid);
    let current = own.map(|session| session.claims.issued_at);
    let sessions = live_sessions(&deps, &account.uid, current, input.paging.as_ref()).await?;
    Ok(Answer::ok(format!("live sessions of {name}"), sessions))
}

/// The account of this name, whatever its role.
async fn find(connection: &mut Connection, name: &UserName) -> Result<User> {
    let account = user::find(connection, name).await?;
    account.ok_or_else(|| ApiError::not_found(format!("account {name}")))
}

/// Sessions of an account that were ended.
#[derive(Debug, Serialize, ToSchema)]
pub struct Ended {
    /// The account's name.
    username: UserName,
    /// How many.
    ended: u64,
}

/// `POST /api/admin/users/sessions/revoke`: ends all sessions of an account, superadmins included.
///
/// # Errors
/// 404 without such an account.
async fn revoke_sessions(_: Superadmin, input: Input<Who>, deps: Deps) -> Result<Answer<Ended>> {
    let name = &input.params.username;
    let mut tx = input.meta.begin(&deps).await?;
    let account = find(&mut tx, name).await?;
    let ended = session::revoke_all(&mut tx, &account.uid, None).await?;
    let about = About::object(account.role, &account.name);
    tx.commit(about.detail(format!("sessions ended: {ended}")))
        .await?;
    deps.session_ends.report(&account.uid);
    let message = format!("sessions of {name} ended");
    let username = account.name;
    Ok(Answer::ok(message, Ended { username, ended }))
}
