//! What users see and do with their own container.

use schema::container::{self, status_word};
use schema::ids::Kind;
use schema::object;
use schema::user;

use super::containers::restart_container;
use super::live::{self, LogParams};
use super::params;
use crate::deps::Deps;
use crate::dispatch::OrdinaryUser;
use crate::error::ApiError;
use crate::explain::explained;
use crate::input::{Input, Nothing};
use crate::reply::Reply;

/// `GET /api/user/container`: status and conditions.
///
/// # Errors
/// 404 while the account is being removed and its container is gone.
pub async fn show(
    OrdinaryUser(session): OrdinaryUser,
    _: Input<Nothing>,
    deps: Deps,
) -> Result<Reply, ApiError> {
    let account = &session.account;
    let gone = || ApiError::not_found("your container");
    let mut connection = deps.db.snapshot().await?;
    let row = container::get(&mut connection, &account.uid)
        .await?
        .ok_or_else(gone)?;
    let object = object::get(&mut connection, Kind::Container, &account.uid).await?;
    let status = object.ok_or_else(gone)?.status;
    let deleted = row.deleted_at.is_some();
    let word = status_word(row.shall_run(), deleted, row.generation, &status);
    Ok(Reply::ok("your container")
        .with("username", &account.name)
        .with("status", word)
        .with("desired", row.desired)
        .with("image", &row.image_ref)
        .with("debug", row.debug)
        .with("ip", &row.facts.ip)
        .with("started_at", row.facts.started_at)
        .with("generation", row.generation)
        .with("observed_generation", status.observed_generation)
        .with("conditions", explained(&status.conditions)))
}

/// `GET /api/user/logs`: the log, or an event stream with `follow=true`.
///
/// # Errors
/// 404 without a container, 429 when too many logs are followed, 503 while the engine cannot be reached.
pub async fn logs(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<LogParams>,
    deps: Deps,
) -> Result<Reply, ApiError> {
    let account = &session.account;
    let whose = (&account.uid, &account.name);
    live::logs(&deps, Some(&session), whose, &input.params).await
}

/// `POST /api/user/container/restart`: replaces the container by a fresh one, once.
///
/// # Errors
/// 409 while the account is being removed or disabled; what the container fails with.
pub async fn restart(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Nothing>,
    deps: Deps,
) -> Result<Reply, ApiError> {
    let name = &session.account.name;
    let mut tx = input.meta.begin(&deps).await?;
    let user = params::present_user(user::find(&mut tx, name).await?, name)?;
    let how = (input.if_generation, input.wait);
    restart_container(&deps, tx, user, name.as_str(), false, how).await
}
