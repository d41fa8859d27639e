//! `GET /api/admin/images/rollouts`: what is being moved where, and how far it is.

use schema::ids::{Generation, Timestamp, Uid};
use schema::operation::Progress;
use schema::rollout::{
    self, DesiredRollout, Phase, RolloutKind, RolloutRow, RolloutTarget, TargetState,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::NO_ROLLOUT;
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::{Input, Nothing};
use crate::route::{Area, Route, Tokens};
use crate::routes::page::{Page, cut, read_page, search};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("images_rollouts", "/api/admin/images/rollouts", list)
            .tokens(Tokens::Read)
            .title(Area::Images, "List rollouts")
            .about("Newest first, always one page. `search` matches ids, references and actors.")
            .paged(),
        Route::get("images_rollout", "/api/admin/images/rollouts/{id}", show)
            .tokens(Tokens::Read)
            .title(Area::Images, "Get a rollout and its users")
            .about(
                "The result of each user, in the order in which they are moved. `search` matches \
                 names of users.",
            )
            .paged()
            .fails(&[NO_ROLLOUT]),
    ]
}

/// A rollout.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Rollout)]
pub struct Item {
    /// Also the id of its task.
    #[schema(example = "01970a3e6f0c7d3b8a5b6b1d2c3e4f50")]
    id: String,
    /// How it was requested.
    #[serde(rename = "type")]
    kind: RolloutKind,
    /// How far it is.
    phase: Phase,
    /// The desired state.
    desired: DesiredRollout,
    /// The image that users get.
    #[schema(example = "docker.io/sipeed/picoclaw:v1.2")]
    reference: String,
    /// The image that they had, as given in the request.
    source: Option<String>,
    /// What the reference was resolved to, the same for all users.
    image_id: Option<String>,
    /// Its repository digest, when it has one.
    image_digest: Option<String>,
    /// Maximum users moving at once.
    max_unavailable: u32,
    /// A failure pauses it.
    pause_on_failure: bool,
    /// How long a new container may take to become ready.
    #[schema(example = "2m")]
    health_timeout: String,
    /// How long it must have been ready before its user counts as moved.
    #[schema(example = "10s")]
    min_ready: String,
    /// What it is doing, or why it stopped, as a sentence.
    message: String,
    /// Who requested it.
    #[schema(example = "admin")]
    actor: String,
    /// When it was created.
    created_at: Timestamp,
    /// When it ended; null before.
    finished_at: Option<Timestamp>,
    /// Its generation, for `if_generation`.
    generation: Generation,
    /// How many of its users are in which state.
    progress: Progress,
}

impl Item {
    fn new(row: RolloutRow, progress: Progress) -> Self {
        Self {
            id: row.uid.to_string(),
            kind: row.kind,
            phase: row.phase(),
            desired: row.desired,
            reference: row.reference,
            source: row.source,
            image_id: row.facts.image_id,
            image_digest: row.facts.image_digest,
            max_unavailable: row.max_unavailable,
            pause_on_failure: row.pause_on_failure,
            health_timeout: humantime::format_duration(row.health_timeout).to_string(),
            min_ready: humantime::format_duration(row.min_ready).to_string(),
            message: row.facts.message,
            actor: row.actor,
            created_at: row.created_at,
            finished_at: row.facts.finished_at,
            generation: row.generation,
            progress,
        }
    }
}

/// Rollouts.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Rollouts)]
pub struct Listing {
    /// Newest first.
    rollouts: Vec<Item>,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/images/rollouts`: newest first. Always one page, since they only grow in number.
///
/// # Errors
/// Only when the database fails.
async fn list(_: Superadmin, input: Input<Nothing>, deps: Deps) -> Result<Answer<Listing>> {
    let paging = input.paging.unwrap_or_default();
    let paging = Some(&paging);
    let mut snapshot = deps.db.snapshot().await?;
    let (rows, page) = read_page!(paging, window => {
        rollout::list(&mut snapshot, search(paging), window.limit, window.offset)
    });
    let rollouts = rows.into_iter();
    let rollouts = rollouts.map(|(row, progress)| Item::new(row, progress));
    let rollouts = rollouts.collect();
    Ok(Answer::ok(
        "rollouts, newest first",
        Listing { rollouts, page },
    ))
}

/// Which rollout.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Which {
    /// The id of the rollout.
    #[schema(example = "01970a3e6f0c7d3b8a5b6b1d2c3e4f50")]
    id: String,
}

/// The result of one user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RolloutUser)]
pub struct UserResult {
    /// The user's name.
    #[schema(example = "alice")]
    username: String,
    /// How far the user is.
    state: TargetState,
    /// Why, as a sentence.
    message: String,
    /// The last lines of the log of the user's container, when that failed: at most 20, without control characters and known secrets.
    log: Vec<String>,
    /// The image last assigned.
    image_id: Option<String>,
    /// The previous reference.
    previous_image: Option<String>,
    /// The id of the previous image.
    previous_image_id: Option<String>,
    /// When the user was moved.
    moved_at: Option<Timestamp>,
    /// When the result was known.
    finished_at: Option<Timestamp>,
}

impl From<RolloutTarget> for UserResult {
    fn from(target: RolloutTarget) -> Self {
        let (previous_image, previous_image_id) = match target.previous {
            Some(previous) => (Some(previous.reference), previous.image_id),
            None => (None, None),
        };
        Self {
            username: target.name,
            state: target.state,
            message: target.message,
            log: target.log.lines().map(str::to_owned).collect(),
            image_id: target.image_id,
            previous_image,
            previous_image_id,
            moved_at: target.moved_at,
            finished_at: target.finished_at,
        }
    }
}

/// One rollout with its users.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RolloutDetail)]
pub struct Detail {
    rollout: Item,
    /// In the order in which they are moved.
    users: Vec<UserResult>,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/images/rollouts/{id}`: one rollout, and what became of each of its users.
///
/// # Errors
/// 404 without such a rollout.
async fn show(_: Superadmin, input: Input<Which>, deps: Deps) -> Result<Answer<Detail>> {
    let uid = Uid::from(input.params.id.clone());
    let mut connection = deps.db.snapshot().await?;
    let missing = || ApiError::not_found("rollout");
    let (_, progress) = rollout::head(&mut connection, &uid)
        .await?
        .ok_or_else(missing)?;
    let found = rollout::get(&mut connection, &uid).await?;
    let (row, targets) = found.ok_or_else(missing)?;
    drop(connection);
    let results_of_users = targets.into_iter().map(UserResult::from).collect();
    let paging = input.paging.as_ref();
    let (users, page) = cut(results_of_users, paging, |user: &UserResult, text| {
        user.username.to_lowercase().contains(text)
    });
    let detail = Detail {
        rollout: Item::new(row, progress),
        users,
        page,
    };
    Ok(Answer::ok("the rollout and its users", detail))
}
