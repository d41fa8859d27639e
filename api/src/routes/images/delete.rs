//! `POST /api/admin/images/delete`: an image leaves the engine.

use schema::error::DbError;
use schema::ids::Kind;
use schema::image::{self, ImageReference, ImageRow, ImageUse};
use schema::reader::Connection;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::holders::Meant;
use super::local::{is_managed, known_as, managed_tags, meant};
use super::names::{Named, full, managed};
use crate::answer::{self, Answer};
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::Input;
use crate::ports::{LocalImage, PortError};
use crate::route::{Area, Failure, Route, Tokens};
use crate::wait::{self, Change, Changed, Converging, State, Until};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("images_delete", "/api/admin/images/delete", delete)
.tokens(Tokens::Admin)
            .title(Area::Images, "Delete an image")
            .about(
                "Removes a reference, or for an id the image with all its references. While the \
                 engine cannot be reached, references of `image.name` are accepted unchecked. With `dry_run` nothing is \
                 deleted, and the same is refused.",
            )
            .waits()
            .fails(&[
                Failure(
                    404,
                    "not_found",
                    "image not found",
                ),
                Failure(
                    409,
                    "not_managed",
                    "the image belongs to another repository than `image.name`; set `force` to delete it",
                ),
                Failure(
                    409,
                    "image_in_use",
                    "used by `users`; `alternatives` are available",
                ),
                Failure(
                    409,
                    "not_supported",
                    "the engine does not delete images; the request of one that was pulled is withdrawn instead",
                ),
                Failure::ENGINE,
            ]),
    ]
}

/// Most users and alternatives that a refusal names.
const NAMED: usize = 200;

/// Which image.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Doomed {
    /// A tag of `image.name`, a reference, or an id: whole, or its first 12 digits or more.
    #[schema(example = "v1.1")]
    image: String,
    /// Allow an image of another repository than `image.name`.
    #[serde(default)]
    force: bool,
    /// Report what would be deleted, without deleting it.
    #[serde(default)]
    dry_run: bool,
}

/// An image that is deleted, or would be.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImageDeleted)]
pub struct Deleted {
    /// Progress; absent with `dry_run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
    #[serde(flatten)]
    changed: Option<Changed>,
    /// With `dry_run`: the image, by its full reference or its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "docker.io/sipeed/picoclaw:v1.1")]
    image: Option<String>,
    /// With `dry_run`: the references that would go.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = json!(["docker.io/sipeed/picoclaw:v1.1"]))]
    references: Option<Vec<String>>,
    /// Says how images are removed, where the engine does not remove them: then only the request of the image is withdrawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        required = false,
        example = "the nodes' kubelets remove images themselves"
    )]
    removal: Option<&'static str>,
}

/// What is to be removed, and what is known of it.
struct Target {
    /// A full reference, or an id.
    name: String,
    /// The image it means, if the engine knows it.
    id: Option<String>,
    /// References that go: all of the image when it goes by its id.
    references: Vec<ImageReference>,
    /// References that mean other images.
    others: Vec<ImageReference>,
    managed: bool,
    /// Other references of the managed repository, newest first.
    alternatives: Vec<String>,
}

/// `POST /api/admin/images/delete`: a reference goes, or an image with all its references.
///
/// # Errors
/// 404 when nobody knows the image; 409 `not_managed`, `image_in_use`; what the removal fails with. 503
/// only when the engine would have to say what is meant, or to whom it belongs.
async fn delete(_: Superadmin, input: Input<Doomed>, deps: Deps) -> Result<Answer<Deleted>> {
    let target = target(&deps, &input.params).await?;
    if let Some(why) = deps.images.limits().removal {
        return withdraw(input, &deps, target, why).await;
    }
    if input.params.dry_run {
        let mut snapshot = deps.db.snapshot().await?;
        refuse_used(&target, &mut snapshot).await?;
        return Ok(target.preview());
    }
    let mut tx = input.meta.begin(&deps).await?;
    refuse_used(&target, &mut tx).await?;
    let now = deps.clock.now();
    let (uid, generation) = image::request_absent(&mut tx, &target.name, now).await?;
    // Else its reconciler would pull it again.
    for row in image::all(&mut tx).await? {
        if row.deleted_at.is_none() && target.takes_along(&row) {
            image::request_absent(&mut tx, &row.reference, now).await?;
        }
    }
    let change = Change::new(Kind::Image, uid, target.name, generation);
    tx.commit(change.about()).await?;
    let settled = wait::settle(&deps, &change, Until::Purged, input.wait).await;
    let done = format!("image {} deleted", change.name);
    let under_way = "requested; the image is being deleted";
    let answer = wait::reply(&change, settled, done, under_way)?;
    Ok(answer.map(|Converging { state, changed }| Deleted {
        state: Some(state),
        changed: Some(changed),
        image: None,
        references: None,
        removal: None,
    }))
}

/// Withdraws the requests of an image, where the engine does not remove images: it is not pulled again.
///
/// # Errors
/// 409 `not_supported` when no request of it exists; `image_in_use`.
async fn withdraw(
    input: Input<Doomed>,
    deps: &Deps,
    target: Target,
    why: &'static str,
) -> Result<Answer<Deleted>> {
    let is_requested = |row: &ImageRow| {
        let is_named = row.reference == target.name || target.takes_along(row);
        row.deleted_at.is_none() && is_named
    };
    let refused = || ApiError::conflict("not_supported", why);
    if input.params.dry_run {
        let mut snapshot = deps.db.snapshot().await?;
        let rows = image::all(&mut snapshot).await?;
        if !rows.iter().any(is_requested) {
            return Err(refused());
        }
        refuse_used(&target, &mut snapshot).await?;
        return Ok(target.preview().map(|deleted| Deleted {
            removal: Some(why),
            ..deleted
        }));
    }
    let mut tx = input.meta.begin(deps).await?;
    let mut rows = image::all(&mut tx).await?;
    rows.retain(is_requested);
    let Some(first) = rows.first().map(|row| row.reference.clone()) else {
        return Err(refused());
    };
    refuse_used(&target, &mut tx).await?;
    let now = deps.clock.now();
    let (uid, generation) = image::request_withdrawal(&mut tx, &first, now).await?;
    for row in rows.iter().skip(1) {
        image::request_withdrawal(&mut tx, &row.reference, now).await?;
    }
    let change = Change::new(Kind::Image, uid, first, generation);
    tx.commit(change.about()).await?;
    let settled = wait::settle(deps, &change, Until::Purged, input.wait).await;
    let done = format!("the request of image {} is withdrawn; {why}", change.name);
    let under_way = "requested; the request of the image is being withdrawn";
    let answer = wait::reply(&change, settled, done, under_way)?;
    Ok(answer.map(|Converging { state, changed }| Deleted {
        state: Some(state),
        changed: Some(changed),
        image: None,
        references: None,
        removal: Some(why),
    }))
}

/// Finds out what is meant. No connection is held while the engine is asked.
async fn target(deps: &Deps, doomed: &Doomed) -> Result<Target> {
    let mut connection = deps.db.snapshot().await?;
    let managed = managed(&mut connection, deps).await?;
    let named = Named::read("image", &doomed.image, &managed)?;
    let full = named.reference().map(ToString::to_string);
    let wanted = match full.as_deref().or(named.whole_id()) {
        Some(name) => image::find(&mut connection, name).await?,
        None => None,
    };
    drop(connection);
    let known = match deps.images.list().await {
        Ok(images) => of_engine(&images, &named, &managed)?,
        Err(PortError::EngineUnavailable(_)) => blindly(&named, &managed, doomed.force),
        Err(error) => return Err(error.into()),
    };
    let target = known.or_wanted(wanted, &managed)?;
    if target.managed || doomed.force {
        return Ok(target);
    }
    let (name, repository) = (target.name, managed.name());
    let message = format!(
        "{name} is not of the repository {repository}, which is the one that is managed here; force removes it all the same"
    );
    Err(ApiError::conflict("not_managed", message))
}

impl Target {
    fn by_reference(reference: &ImageReference, managed: &ImageReference) -> Self {
        Self {
            name: reference.to_string(),
            id: None,
            references: vec![reference.clone()],
            others: Vec::new(),
            managed: reference.same_repository(managed),
            alternatives: Vec::new(),
        }
    }

    fn preview(self) -> Answer<Deleted> {
        let mut references: Vec<String> = self.references.iter().map(ToString::to_string).collect();
        references.sort();
        references.dedup();
        let message = format!("nothing was deleted; image {} would be", self.name);
        let deleted = Deleted {
            state: None,
            changed: None,
            image: Some(self.name),
            references: Some(references),
            removal: None,
        };
        Answer::ok(message, deleted)
    }

    fn is_whole_image(&self) -> bool {
        self.id.as_ref() == Some(&self.name)
    }

    fn goes_by(&self, reference: &str) -> bool {
        let parsed: Result<ImageReference, _> = reference.parse();
        reference == self.name || parsed.is_ok_and(|parsed| self.references.contains(&parsed))
    }

    /// Whether an image that somebody desires is this one, which goes by its id.
    fn takes_along(&self, row: &ImageRow) -> bool {
        let pulled_as = row.facts.image_id.as_ref() == Some(&self.name);
        let reference: Result<ImageReference, _> = row.reference.parse();
        let is_other = reference.is_ok_and(|reference| self.others.contains(&reference));
        self.is_whole_image() && (self.goes_by(&row.reference) || pulled_as && !is_other)
    }

    /// The image, as users have it.
    fn meant(&self) -> Meant {
        let by_reference = !self.is_whole_image();
        Meant {
            reference: by_reference.then(|| self.name.clone()),
            id: self.id.clone(),
            known_as: self.references.iter().map(ToString::to_string).collect(),
        }
    }
}

/// What is known of what a client named.
enum Known {
    Target(Target),
    /// The engine has no such image. Alternatives come with it.
    Nothing(Vec<String>),
    /// The engine would have to be asked, unless somebody wanted it.
    Unclear,
}

impl Known {
    /// What is to be removed; also what the engine does not have, but somebody wanted.
    fn or_wanted(self, wanted: Option<ImageRow>, managed: &ImageReference) -> Result<Target> {
        match (self, wanted) {
            (Self::Target(target), _) => Ok(target),
            (Self::Nothing(alternatives), Some(row)) => Ok(of_row(row, alternatives, managed)),
            (Self::Unclear, Some(row)) => Ok(of_row(row, Vec::new(), managed)),
            (Self::Nothing(_), None) => Err(ApiError::not_found("image")),
            (Self::Unclear, None) => Err(ApiError::EngineUnavailable),
        }
    }
}

fn of_row(row: ImageRow, alternatives: Vec<String>, managed: &ImageReference) -> Target {
    let reference = row.reference.parse::<ImageReference>().ok();
    let references: Vec<ImageReference> = reference.into_iter().collect();
    let ours = |reference: &ImageReference| reference.same_repository(managed);
    Target {
        managed: references.iter().any(ours),
        references,
        others: Vec::new(),
        name: row.reference,
        id: row.facts.image_id,
        alternatives,
    }
}

fn of_engine(images: &[LocalImage], named: &Named, managed: &ImageReference) -> Result<Known> {
    let tags = managed_tags(images, managed).into_iter();
    let references = tags.filter_map(|tag| Some(managed.with_tag(&tag).ok()?.to_string()));
    let mut alternatives: Vec<String> = references.take(NAMED).collect();
    let Some(image) = meant(images, named)? else {
        return Ok(Known::Nothing(alternatives));
    };
    let by_name = named.reference().filter(|_| !named.is_id(&image.id));
    let name = match by_name {
        Some(reference) => {
            alternatives.retain(|other| *other != reference.to_string());
            reference.to_string()
        }
        None => {
            let own: Vec<String> = image.repo_tags.iter().map(|tag| full(tag)).collect();
            alternatives.retain(|other| !own.contains(other));
            image.id.clone()
        }
    };
    Ok(Known::Target(Target {
        name,
        id: Some(image.id.clone()),
        references: match by_name {
            Some(reference) => vec![reference.clone()],
            None => known_as(image).collect(),
        },
        others: {
            let others = images.iter().filter(|other| other.id != image.id);
            others.flat_map(known_as).collect()
        },
        managed: match by_name {
            Some(reference) => reference.same_repository(managed),
            None => is_managed(image, managed),
        },
        alternatives,
    }))
}

/// Without the engine: a reference of the managed repository means itself, whether it is there or not;
/// by force so does every other, and a whole id.
fn blindly(named: &Named, managed: &ImageReference, force: bool) -> Known {
    match (named.reference(), named.whole_id()) {
        (Some(reference), _) if force || reference.same_repository(managed) => {
            Known::Target(Target::by_reference(reference, managed))
        }
        (None, Some(id)) if force => Known::Target(Target {
            name: id.to_owned(),
            id: Some(id.to_owned()),
            references: Vec::new(),
            others: Vec::new(),
            managed: false,
            alternatives: Vec::new(),
        }),
        (Some(_) | None, _) => Known::Unclear,
    }
}

/// Refuses while somebody has the image, by id or by reference, or may yet get it from a rollout.
async fn refuse_used(target: &Target, connection: &mut Connection) -> Result<()> {
    let meant = target.meant();
    let names = |all: Vec<ImageUse>| {
        let is_used = |one: &ImageUse| meant.is_of(&one.image_ref, one.image_id.as_deref());
        let used = all.into_iter().filter(is_used);
        let mut names: Vec<String> = used.map(|one| one.name).collect();
        // They come in the order of their names.
        names.dedup();
        names
    };
    let mut users = names(image::uses(connection).await?);
    let mut is_there = true;
    if users.is_empty() {
        users = names(image::needs(connection).await?);
        is_there = false;
    }
    if users.is_empty() {
        return Ok(());
    }
    let who = answer::users(users.len());
    users.truncate(NAMED);
    let name = &target.name;
    Err(ApiError::ImageInUse {
        message: if is_there {
            format!("image {name} is in use by {who}; move them to another image first")
        } else {
            format!(
                "a rollout may still move {who} to image {name}; wait for its end, or cancel it"
            )
        },
        users,
        alternatives: target.alternatives.clone(),
    })
}

/// A request about an image that is being removed.
pub(super) fn being_removed(error: DbError) -> ApiError {
    match error {
        DbError::NameBeingRemoved => ApiError::conflict(
            "image_being_removed",
            "the image is being removed from the engine; try again soon",
        ),
        other => other.into(),
    }
}
