//! Pulls: requesting and viewing one, what runs, and cancelling one.
//!
//! A pull belongs to the service. A request records that an image is to be pulled, and then only views
//! the pull: closing the stream stops nothing.

mod follow;

use futures::StreamExt;
use schema::audit::About;
use schema::condition::{self, ConditionType};
use schema::ids::{Generation, Kind, Timestamp};
use schema::image::{self, DesiredImage, ImageReference, ImageRow, RunningPull};
use schema::{object, operation};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::control::{self, Noted};
use super::delete::being_removed;
use super::names::{Named, managed, reference};
use crate::answer::{Answer, Events};
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::{Input, Meta, Nothing};
use crate::limits::FOLLOWS;
use crate::route::{Area, Failure, Route, Tokens};
use crate::routes::live;
use crate::routes::page::{Page, cut};
use crate::routes::params::given;
use follow::{LastEvent, Request};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("images_pull", "/api/admin/images/pull", pull).holds(&FOLLOWS)
.tokens(Tokens::Admin)
            .title(Area::Images, "Pull an image (progress as an event stream)")
            .about(
                "An image that exists is pulled again. Each event is one JSON object: `status`, \
                 `id`, `progressDetail` and `progress` as the engine reports them, and `percent` \
                 of the whole pull, which never decreases; the last one is \
                 `{\"status\":\"done\",\"digest\"}` or `{\"status\":\"error\",\"error\"}`. Closing the stream \
                 does not stop the pull. With `Last-Event-ID` no new pull is requested, and the \
                 stream continues after that event as far as its log is kept. The stream ends \
                 with the session. The pull is also a task of type `pull`. One that fails has \
                 ended: it is tried again when it is requested again.",
            )
            .guarded()
            .fails(&[Failure::IMAGE_REMOVED, Failure::STREAMS]),
        Route::get("images_pulls", "/api/admin/images/pulls", running)
.tokens(Tokens::Read)
            .title(Area::Images, "List pulls in progress")
            .about(
                "Pulls that this replica runs, and images that an administrator requested and the \
                 engine does not have yet.",
            )
            .paged(),
        Route::post(
            "images_pulls_cancel",
            "/api/admin/images/pulls/cancel",
            cancel,
        )
.tokens(Tokens::Admin)
        .title(Area::Images, "Cancel a pull")
        .about(
                "An image that the engine already has is kept. The request of a pull that failed is \
                 withdrawn. `converged` means that the reconciler has observed it.",
            )
        .waits()
        .guarded()
        .fails(&[
            Failure(404, "not_found", "no such pull in progress"),
            Failure::IMAGE_REMOVED,
        ]),
    ]
}

/// What a client has seen, in the words of event streams.
const LAST_EVENT_ID: &str = "last-event-id";

/// Which image.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Which {
    /// A tag of `image.name`, or a reference. A text without `/`, `:` and `@` is a tag.
    #[schema(example = "v1.2")]
    image: String,
}

/// Which image to pull.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ImageToPull)]
pub struct ToPull {
    /// A tag of `image.name`, or a reference. A text without `/`, `:` and `@` is a tag.
    #[schema(example = "v1.2")]
    image: Option<String>,
    /// A tag: of `image`, or in place of it.
    #[schema(example = "v1.2")]
    tag: Option<String>,
}

impl ToPull {
    /// Reads which image is meant.
    fn name(&self) -> Result<String> {
        match (given(&self.image), given(&self.tag)) {
            (Some(one), None) | (None, Some(one)) => Ok(one.to_owned()),
            (Some(image), Some(tag)) if image == tag || image.ends_with(&format!(":{tag}")) => {
                Ok(image.to_owned())
            }
            (Some(image), Some(tag)) => {
                let last = image.rsplit('/').next().unwrap_or(image);
                if last.contains([':', '@']) {
                    let rule = format!(
                        "image {image} names a tag or digest already; leave out tag, or the part of image after its name"
                    );
                    return Err(ApiError::invalid("tag", rule));
                }
                Ok(format!("{image}:{tag}"))
            }
            (None, None) => {
                let rule = "image is required: a tag of image.name, or a reference";
                Err(ApiError::invalid("image", rule))
            }
        }
    }
}

/// `POST /api/admin/images/pull`: requests a pull of the image, also if it is there; an event stream shows
/// how it goes, and ends with exactly one `done` or `error`. A client that comes back with
/// `Last-Event-ID` requests nothing new, and gets what it has missed.
///
/// # Errors
/// 400 for what is neither tag nor reference, 409 while the image is being removed, 412 for a stale
/// `if_generation`, 429 when too many pulls are viewed; all before the stream begins.
async fn pull(Superadmin(actor): Superadmin, input: Input<ToPull>, deps: Deps) -> Result<Events> {
    let image = read_name(&deps, &input.params.name()?).await?;
    let last = last_event(&input.meta)?;
    let viewing = deps.viewers.begin(actor.account())?;
    let events = match last {
        Some(last) => follow::resumed(&deps, &image.to_string(), last)
            .await?
            .boxed(),
        None => {
            let expected = input.if_generation;
            let request = request(&deps, &input.meta, &image, expected, &actor.to_string()).await?;
            follow::events(&deps, request).boxed()
        }
    };
    let dead = live::death(deps.clone(), actor);
    // The viewer's place is held by the stream, and given back with it.
    let events = events.take_until(dead).inspect(move |_| {
        let _held = &viewing;
    });
    Ok(Events::new(events))
}

/// What a client that comes back has had.
fn last_event(meta: &Meta) -> Result<Option<LastEvent>> {
    let header = meta.headers.get(LAST_EVENT_ID);
    let parsed = header.map(|value| value.to_str().unwrap_or_default().parse());
    parsed.transpose()
}

async fn read_name(deps: &Deps, text: &str) -> Result<ImageReference> {
    let managed = managed(&mut *deps.db.read().await?, deps).await?;
    reference("image", text, &managed)
}

/// By what an image is desired, present or absent: a full reference or a whole id.
async fn read_target(deps: &Deps, text: &str) -> Result<String> {
    let managed = managed(&mut *deps.db.read().await?, deps).await?;
    if let Some(id) = Named::read("image", text, &managed)?.whole_id() {
        return Ok(id.to_owned());
    }
    Ok(reference("image", text, &managed)?.to_string())
}

/// Records that an image is to be pulled, as an operation.
async fn request(
    deps: &Deps,
    meta: &Meta,
    image: &ImageReference,
    expected: Option<Generation>,
    actor: &str,
) -> Result<Request> {
    let reference = image.to_string();
    let now = deps.clock.now();
    let mut tx = meta.begin(deps).await?;
    let before = image::find(&mut tx, &reference).await?;
    let token = token_after(before.map(|row| row.pull_token).as_deref());
    let pulled = image::request_pull(&mut tx, &reference, &token, expected, now).await;
    let (uid, generation) = pulled.map_err(being_removed)?;
    let object = (Kind::Image, uid.clone(), reference.clone(), generation);
    let task = operation::create(&mut tx, "pull", actor, &[object], now).await?;
    let about = About::object(Kind::Image, &reference);
    tx.commit(about.detail(format!("task {task}"))).await?;
    Ok(Request {
        uid,
        reference,
        token,
        generation,
    })
}

/// A token for a request. Later ones are greater, which distinguishes a newer request from one that was taken
/// back: also when the clock was set back since the one before (L73).
fn token_after(before: Option<&str>) -> String {
    /// One millisecond in a UUID of version 7.
    const LATER: u128 = 1 << 80;
    let token = Uuid::now_v7();
    let before = before.and_then(|before| before.parse::<Uuid>().ok());
    match before.filter(|before| *before >= token) {
        None => token.to_string(),
        Some(before) => Uuid::from_u128(before.as_u128().saturating_add(LATER)).to_string(),
    }
}

/// A pull in progress, here or elsewhere.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImagePull)]
pub struct Item {
    /// The full reference.
    #[schema(example = "docker.io/sipeed/picoclaw:v1.2")]
    reference: String,
    /// Requested by an administrator; otherwise a container or a rollout needs it.
    wanted: bool,
    /// This process runs it; the following fields are known only then.
    running: bool,
    /// Progress in percent.
    #[schema(minimum = 0, maximum = 100)]
    percent: Option<u8>,
    /// Bytes pulled.
    bytes: Option<u64>,
    /// Total bytes, as far as known.
    bytes_total: Option<u64>,
    /// When it began.
    started_at: Option<Timestamp>,
    /// Number of viewers.
    viewers: Option<usize>,
    /// Why it is not done: a condition's reason.
    state: Option<String>,
    /// Why it is not done, as a sentence.
    message: Option<String>,
}

/// Pulls under way.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImagePulls)]
pub struct Pulls {
    pulls: Vec<Item>,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/images/pulls`: what is being pulled here, and what is wanted and not there yet.
///
/// # Errors
/// Only when the database fails.
async fn running(_: Superadmin, input: Input<Nothing>, deps: Deps) -> Result<Answer<Pulls>> {
    let mut items: Vec<Item> = deps.pulls.running().into_iter().map(Item::from).collect();
    let mut connection = deps.db.snapshot().await?;
    let wanted = image::all(&mut connection).await?;
    for row in wanted.into_iter().filter(is_open) {
        let object = object::get(&mut connection, Kind::Image, &row.uid).await?;
        let conditions = object.map(|object| object.status.conditions);
        let ready = conditions
            .as_deref()
            .and_then(|all| condition::find(all, ConditionType::Ready));
        let at = match items.iter().position(|one| one.reference == row.reference) {
            Some(at) => at,
            None => {
                items.push(Item::open(row.reference));
                items.len() - 1
            }
        };
        if let Some(item) = items.get_mut(at) {
            item.wanted = true;
            item.state = ready.map(|ready| ready.reason.to_string());
            item.message = ready.map(|ready| ready.message.clone());
        }
    }
    drop(connection);
    let paging = input.paging.as_ref();
    let (pulls, page) = cut(items, paging, |item: &Item, text| {
        item.reference.to_lowercase().contains(text)
    });
    Ok(Answer::ok("pulls in progress", Pulls { pulls, page }))
}

/// Whether somebody waits for a pull of this image.
pub(in crate::routes) fn is_open(row: &ImageRow) -> bool {
    is_requested(row) && !row.has_failed()
}

/// Whether a pull of this image was requested that has not succeeded.
fn is_requested(row: &ImageRow) -> bool {
    row.desired == DesiredImage::Present && row.deleted_at.is_none() && !row.is_answered()
}

impl Item {
    fn open(reference: String) -> Self {
        Self {
            reference,
            wanted: true,
            running: false,
            percent: None,
            bytes: None,
            bytes_total: None,
            started_at: None,
            viewers: None,
            state: None,
            message: None,
        }
    }
}

impl From<RunningPull> for Item {
    fn from(pull: RunningPull) -> Self {
        Self {
            wanted: false,
            running: true,
            percent: Some(pull.sum.percent),
            bytes: Some(pull.sum.bytes),
            bytes_total: Some(pull.sum.bytes_total),
            started_at: Some(pull.started_at),
            viewers: Some(pull.viewers),
            ..Self::open(pull.reference)
        }
    }
}

/// Whether it is to be deleted from the engine and is not yet.
fn is_leaving(row: &ImageRow) -> bool {
    row.desired == DesiredImage::Absent && row.deleted_at.is_some()
}

/// `POST /api/admin/images/pulls/cancel`: cancels a pull, or a removal that is not done yet. What the
/// engine has, it keeps.
///
/// # Errors
/// 404 when nothing of that name is being pulled, requested or removed; 412 for a stale `if_generation`.
async fn cancel(_: Superadmin, input: Input<Which>, deps: Deps) -> Result<Answer<Noted>> {
    let reference = read_target(&deps, &input.params.image).await?;
    let mut pulls = deps.pulls.running().into_iter();
    let runs = pulls.any(|pull| pull.reference == reference);
    let mut tx = input.meta.begin(&deps).await?;
    let row = image::find(&mut tx, &reference).await?;
    let leaves = row.as_ref().is_some_and(is_leaving);
    if !runs && !leaves && !row.as_ref().is_some_and(is_requested) {
        return Err(ApiError::not_found(format!("pull of {reference}")));
    }
    let (expected, now) = (input.if_generation, deps.clock.now());
    let change = control::cancel_pull(&mut tx, &reference, expected, now).await?;
    tx.commit(change.about()).await?;
    let what = if leaves { "removal" } else { "pull" };
    let done = format!("the {what} of {reference} is cancelled");
    control::noted(&deps, &change, input.wait, done).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_to_pull_may_be_given_by_its_tag() {
        let name = |image: &str, tag: &str| {
            let [image, tag] = [image, tag].map(|text| Some(text.to_owned()));
            ToPull { image, tag }.name().ok()
        };
        for (image, tag, expected) in [
            ("v1", "", "v1"),
            ("", "v1", "v1"),
            ("v1", "v1", "v1"),
            ("r/a", "v1", "r/a:v1"),
            ("r:5000/a", "v1", "r:5000/a:v1"),
            ("r/a:v1", "v1", "r/a:v1"),
        ] {
            assert_eq!(name(image, tag).as_deref(), Some(expected));
        }
        for (image, tag) in [("", ""), ("r/a:v1", "v2"), ("r:5000/a@sha256:0", "v2")] {
            assert_eq!(name(image, tag), None, "{image} {tag}");
        }
    }

    #[test]
    fn l73_a_later_request_has_a_greater_token_whatever_the_clock_says() {
        let first = token_after(None);
        let second = token_after(Some(&first));
        assert!(second > first);
        let ahead = Uuid::now_v7().as_u128() + ((3 * 24 * 60 * 60 * 1000) << 80);
        let ahead = Uuid::from_u128(ahead).to_string();
        let next = token_after(Some(&ahead));
        assert!(next > ahead);
        assert!(token_after(Some(&next)) > next);
    }
}
