//! Sessions of an account, as administrators manage them.

use schema::audit::About;
use schema::ids::UserName;
use schema::{session, user};
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::Input;
use crate::route::{Area, Failure, Route};
use crate::routes::params::Who;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post(
            "users_revoke_sessions",
            "/api/admin/users/sessions/revoke",
            revoke_sessions,
        )
        .title(Area::Users, "End all sessions of an account")
        .about("Also of a superadmin.")
        .fails(&[Failure::NO_USER]),
    ]
}

/// Sessions of an account that were ended.
#[derive(Debug, Serialize, ToSchema)]
pub struct Ended {
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
    let account = user::find(&mut tx, name).await?;
    let account = account.ok_or_else(|| ApiError::not_found(format!("account {name}")))?;
    let ended = session::revoke_all(&mut tx, &account.uid, None).await?;
    let about = About::object(account.role, &account.name);
    tx.commit(about.detail(format!("sessions ended: {ended}")))
        .await?;
    let message = format!("sessions of {name} ended");
    let username = account.name;
    Ok(Answer::ok(message, Ended { username, ended }))
}
