//! Pauses, resumes, rolls back and cancels rollouts; cancels pulls.

use std::time::Duration;

use schema::db::Tx;
use schema::error::DbError;
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::{image, rollout};
use serde::Deserialize;
use utoipa::ToSchema;

use super::delete::being_removed;
use super::{IN_ROLLOUT, NO_ROLLOUT};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::Input;
use crate::route::{Area, Failure, Route, Tokens};
use crate::wait::{self, Change, Converging, Until};

const STATE: Failure = Failure(
    409,
    "wrong_state",
    "the rollout has ended, or its state does not allow this",
);

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post(
            "images_rollouts_pause",
            "/api/admin/images/rollouts/pause",
            pause,
        )
.tokens(Tokens::Admin)
        .title(Area::Images, "Pause a rollout")
        .about(
            "No further users are moved until it is resumed; users under way are completed. \
                 `converged` means that the reconciler has observed it.",
        )
        .waits()
        .guarded()
        .fails(&[NO_ROLLOUT, STATE]),
        Route::post(
            "images_rollouts_resume",
            "/api/admin/images/rollouts/resume",
            resume,
        )
.tokens(Tokens::Admin)
        .title(Area::Images, "Resume a rollout")
        .about(
            "The image is pulled and resolved again, failed users are retried, and the \
                 rollout continues. In a rollout of a configuration or an adapter failed users are left out.",
        )
        .waits()
        .guarded()
        .fails(&[NO_ROLLOUT, STATE]),
        Route::post(
            "images_rollouts_cancel",
            "/api/admin/images/rollouts/cancel",
            cancel_route,
        )
.tokens(Tokens::Admin)
        .title(Area::Images, "Cancel a rollout")
        .about(
            "No further users are moved; users under way are completed, and the rollout ends. \
                 Moved users keep the new image. A rollout of a configuration or an adapter cannot be cancelled: the former \
                 one takes its place (409 `wrong_state`).",
        )
        .waits()
        .guarded()
        .fails(&[NO_ROLLOUT, STATE]),
        Route::post(
            "images_rollouts_rollback",
            "/api/admin/images/rollouts/rollback",
            roll_back,
        )
.tokens(Tokens::Admin)
        .title(Area::Images, "Roll back a rollout")
        .about(
            "Returns all users of the rollout to their previous images, even after the \
                 rollout has ended. Without `id`: the newest rollout of an image. One of a configuration or an adapter is \
                 taken back by the former one (409 `wrong_state`).",
        )
        .waits()
        .guarded()
        .fails(&[NO_ROLLOUT, STATE, IN_ROLLOUT]),
    ]
}

/// A change that its reconciler has observed: `converged` says no more than that.
pub type Noted = Converging;

/// Which rollout.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Which {
    /// Its id; default: the newest unfinished rollout of an image, if there is one; for a rollback the newest, finished or not.
    #[schema(example = "01970a3e6f0c7d3b8a5b6b1d2c3e4f50")]
    id: Option<String>,
}

/// A change of the desired state of a rollout.
#[derive(Clone, Copy)]
enum Verb {
    Pause,
    Resume,
    RollBack,
    Cancel,
}

impl Verb {
    async fn write(
        self,
        tx: &mut Tx,
        uid: &Uid,
        expected: Option<Generation>,
    ) -> Result<Generation, DbError> {
        match self {
            Self::Pause => rollout::pause(tx, uid, expected).await,
            Self::Resume => rollout::resume(tx, uid, expected).await,
            Self::RollBack => rollout::roll_back(tx, uid, expected).await,
            Self::Cancel => rollout::cancel(tx, uid, expected).await,
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Pause => "the rollout is paused; users under way are waited for",
            Self::Resume => "the rollout goes on",
            Self::RollBack => "the rollout is rolled back",
            Self::Cancel => "the rollout is cancelled; users under way are waited for",
        }
    }

    /// The rollout meant when none is named.
    async fn newest(self, tx: &mut Tx) -> Result<Uid> {
        let newest = match self {
            Self::RollBack => rollout::newest_of_image(tx).await?,
            // Ids of later ones sort after those of earlier ones.
            Self::Cancel => rollout::unfinished_of_image(tx).await?.pop(),
            Self::Pause | Self::Resume => match rollout::unfinished_of_image(tx).await?.pop() {
                Some(uid) => Some(uid),
                None => rollout::unfinished(tx).await?.pop(),
            },
        };
        newest.ok_or_else(|| match self {
            Self::RollBack => ApiError::not_found("rollout"),
            Self::Pause | Self::Resume | Self::Cancel => ApiError::not_found("active rollout"),
        })
    }
}

/// `POST /api/admin/images/rollouts/pause`: no further users are moved until it is resumed.
///
/// # Errors
/// 404 without such a rollout, 409 `wrong_state` when it has ended, 412 for a stale `if_generation`.
async fn pause(_: Superadmin, input: Input<Which>, deps: Deps) -> Result<Answer<Noted>> {
    change(&deps, input, Verb::Pause).await
}

/// `POST /api/admin/images/rollouts/resume`: the image is pulled and resolved once more, failed users
/// are retried, and it continues.
///
/// # Errors
/// As [`pause`]; also when it is not paused.
async fn resume(_: Superadmin, input: Input<Which>, deps: Deps) -> Result<Answer<Noted>> {
    change(&deps, input, Verb::Resume).await
}

/// `POST /api/admin/images/rollouts/rollback`: everybody returns to the previous image, even when the
/// rollout has ended.
///
/// # Errors
/// As [`pause`]; 409 `in_rollout` when one of its users is in another rollout by now.
async fn roll_back(_: Superadmin, input: Input<Which>, deps: Deps) -> Result<Answer<Noted>> {
    change(&deps, input, Verb::RollBack).await
}

/// `POST /api/admin/images/rollouts/cancel`: no further users are moved, and it ends.
///
/// # Errors
/// As [`pause`].
async fn cancel_route(_: Superadmin, input: Input<Which>, deps: Deps) -> Result<Answer<Noted>> {
    change(&deps, input, Verb::Cancel).await
}

async fn change(deps: &Deps, input: Input<Which>, verb: Verb) -> Result<Answer<Noted>> {
    let mut tx = input.meta.begin(deps).await?;
    let uid = match input.params.id.filter(|id| !id.is_empty()) {
        Some(id) => Uid::from(id),
        None => verb.newest(&mut tx).await?,
    };
    let generation = verb.write(&mut tx, &uid, input.if_generation).await?;
    let change = of_rollout(uid, generation);
    tx.commit(change.about()).await?;
    noted(deps, &change, input.wait, verb.done().to_owned()).await
}

fn of_rollout(uid: Uid, generation: Generation) -> Change {
    Change::new(Kind::Rollout, uid.clone(), uid.as_str(), generation)
}

/// Cancels a rollout; the caller commits.
pub(in crate::routes) async fn cancel(
    tx: &mut Tx,
    id: &str,
    expected: Option<Generation>,
) -> Result<Change> {
    let uid = Uid::from(id.to_owned());
    let generation = Verb::Cancel.write(tx, &uid, expected).await?;
    Ok(of_rollout(uid, generation))
}

/// Cancels the pull of a full reference; the caller commits.
pub(in crate::routes) async fn cancel_pull(
    tx: &mut Tx,
    reference: &str,
    expected: Option<Generation>,
    now: Timestamp,
) -> Result<Change> {
    let cancelled = image::request_cancel(tx, reference, expected, now).await;
    let (uid, generation) = cancelled.map_err(being_removed)?;
    Ok(Change::new(Kind::Image, uid, reference, generation))
}

/// Waits until the reconciler has observed a change.
pub(in crate::routes) async fn noted(
    deps: &Deps,
    change: &Change,
    wait: Option<Duration>,
    done: String,
) -> Result<Answer<Noted>> {
    let settled = wait::settle(deps, change, Until::Noted, wait).await;
    wait::reply(change, settled, done, "requested; the change is under way")
}
