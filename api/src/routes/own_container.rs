//! What users see and do with their own container.

use schema::container::{self, Desired, StatusWord, status_word};
use schema::ids::{Generation, Kind, Timestamp, UserName};
use schema::object;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::live::{self, Log, LogParams};
use super::params;
use crate::answer::{Answer, Live};
use crate::deps::Deps;
use crate::dispatch::{Actor, OrdinaryUser};
use crate::error::{ApiError, Result};
use crate::explain::{Explained, explained};
use crate::input::{Input, Nothing};
use crate::limits::FOLLOWS;
use crate::route::{Area, Failure, Route};
use crate::wait::{self, Change, Converging};

const STOPPED: Failure = Failure(
    409,
    "container_stopped",
    "an administrator stopped the container",
);

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("own_container", "/api/user/container", show)
            .title(Area::Account, "Get the status of my container")
            .about("Status and conditions.")
            .fails(&[Failure::NO_ACCOUNT]),
        Route::get("own_logs", "/api/user/logs", logs).holds(&FOLLOWS)
            .title(Area::Account, "Get the logs of my container")
            .about(live::LOG)
            .fails(live::LOG_FAILURES),
        Route::post(
            "own_container_restart",
            "/api/user/container/restart",
            restart,
        )
        .title(Area::Account, "Restart my container")
        .about(
            "Recreates the container once. One that an administrator stopped stays stopped, and one in debug mode stays in it.",
        )
        .waits()
        .guarded()
        .fails(&[Failure::NO_USER, Failure::REMOVED, STOPPED]),
    ]
}

/// My container.
#[derive(Debug, Serialize, ToSchema)]
pub struct OwnContainer {
    /// The account's name.
    username: UserName,
    /// Its state in one word.
    status: StatusWord,
    /// The desired state.
    desired: Desired,
    /// The full reference of its image.
    #[schema(example = "docker.io/sipeed/picoclaw:1.2.3")]
    image: String,
    /// It runs the adapter's debug command.
    debug: bool,
    /// Address in the agent network.
    #[schema(example = "10.88.0.2")]
    ip: Option<String>,
    /// When it was started.
    started_at: Option<Timestamp>,
    /// How often its desired state was changed.
    generation: Generation,
    /// The generation that was last observed.
    observed_generation: Generation,
    /// Its conditions, each with its remedy.
    conditions: Vec<Explained>,
}

/// `GET /api/user/container`: status and conditions.
///
/// # Errors
/// 404 while the account is being removed and its container is gone.
async fn show(
    OrdinaryUser(session): OrdinaryUser,
    _: Input<Nothing>,
    deps: Deps,
) -> Result<Answer<OwnContainer>> {
    let account = &session.account;
    let gone = || ApiError::not_found("your container");
    let mut connection = deps.db.snapshot().await?;
    let row = container::get(&mut connection, &account.uid)
        .await?
        .ok_or_else(gone)?;
    let object = object::get(&mut connection, Kind::Container, &account.uid).await?;
    let mut status = object.ok_or_else(gone)?.status;
    if object::is_kind_paused(&mut connection, Kind::Container).await? {
        status.pause();
    }
    let deleted = row.deleted_at.is_some();
    let word = status_word(row.desired_running(), deleted, row.generation, &status);
    let container = OwnContainer {
        username: account.name.clone(),
        status: word,
        desired: row.desired,
        image: row.image_ref,
        debug: row.debug,
        ip: row.facts.ip,
        started_at: row.facts.started_at,
        generation: row.generation,
        observed_generation: status.observed_generation,
        conditions: explained(
            &format!("{}/{}", Kind::Container, row.name),
            &status.conditions,
        ),
    };
    Ok(Answer::ok("your container", container))
}

/// `GET /api/user/logs`: the log, or an event stream with `follow=true`.
///
/// # Errors
/// 404 without a container, 429 when too many logs are followed, 503 while the engine cannot be reached.
async fn logs(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<LogParams>,
    deps: Deps,
) -> Result<Live<Log>> {
    let account = &session.account;
    let whose = (&account.uid, &account.name);
    let reader = Actor::Session(session.clone());
    live::logs(&deps, &reader, whose, &input.params).await
}

/// `POST /api/user/container/restart`: replaces the container by a fresh one, once. Whether it runs, and in which mode,
/// is an administrator's decision.
///
/// # Errors
/// 409 while the account is being removed, or when an administrator stopped the container; 412; what the container fails with.
async fn restart(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Nothing>,
    deps: Deps,
) -> Result<Answer<Converging>> {
    let mut tx = input.meta.begin(&deps).await?;
    let user = params::own_user(&mut tx, &session.account).await?;
    let token = Uuid::new_v4().to_string();
    let expected = input.if_generation;
    let (generation, desired) =
        container::request_fresh(&mut tx, &user.uid, &token, expected).await?;
    if desired == Desired::Stopped {
        return Err(ApiError::conflict(
            STOPPED.1,
            "an administrator stopped your container; ask an administrator to start it",
        ));
    }
    let change = Change::of_container(&user, generation);
    tx.commit(change.about()).await?;
    wait::answer(&deps, &change, input.wait, "your container was restarted").await
}
