//! `POST /api/admin/images/delete`: an image leaves the engine.

use schema::audit::About;
use schema::error::DbError;
use schema::ids::Kind;
use schema::image::{self, ImageReference, ImageRow, ImageUse};
use serde::Deserialize;
use utoipa::ToSchema;

use super::local::{is_managed, managed_tags, meant};
use super::names::{Named, full, settings};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::ApiError;
use crate::input::Input;
use crate::ports::{LocalImage, PortError};
use crate::wait::{self, Change, Converging};

/// Most users and alternatives that a refusal names.
const NAMED: usize = 200;

/// Which image.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Doomed {
    /// A tag of `image.name`, a reference, or an id: whole, or its first 12 digits or more.
    #[schema(example = "v1.1")]
    image: String,
    /// Also an image of another repository than that of `image.name`.
    #[serde(default)]
    force: bool,
}

/// What is to be removed, and what is known of it.
struct Target {
    /// A full reference, or an id.
    name: String,
    /// The image it means, if the engine told.
    id: Option<String>,
    managed: bool,
    /// Other references of the managed repository, newest first.
    alternatives: Vec<String>,
}

/// `POST /api/admin/images/delete`: a reference goes, or an image with all its references.
///
/// # Errors
/// 404 when nobody knows the image; 409 `not_managed`, `image_in_use`; what the removal fails with. 503
/// only when the engine would have to say what is meant.
pub async fn delete(
    Superadmin(actor): Superadmin,
    input: Input<Doomed>,
    deps: Deps,
) -> Result<Answer<Converging>, ApiError> {
    let target = target(&deps, &input.params).await?;
    let mut tx = input.meta.begin(&deps).await?;
    let uses = image::uses(&mut tx).await?;
    refuse_used(&target, &uses)?;
    let now = deps.clock.now();
    let (uid, generation) = image::request_absent(&mut tx, &target.name, now).await?;
    tx.commit(About::object(Kind::Image, &target.name)).await?;
    tracing::info!(%actor, image = target.name, "image removal");
    let change = Change::of_image(uid, target.name, generation);
    let settled = wait::settle_removal(&deps, &change, input.wait).await;
    let done = format!("the image {} is gone from the engine", change.name);
    wait::reply(
        &change,
        settled,
        done,
        "accepted; the image is being removed",
    )
}

/// Finds out what is meant. No connection is held while the engine is asked.
async fn target(deps: &Deps, doomed: &Doomed) -> Result<Target, ApiError> {
    let mut connection = deps.db.snapshot().await?;
    let (values, _) = schema::config::query::load(&mut connection, &deps.master_key).await?;
    let (_, managed) = settings(values)?;
    let named = Named::read("image", &doomed.image, &managed)?;
    let full = named.reference().map(ToString::to_string);
    let wanted = match full.as_deref().or(named.whole_id()) {
        Some(name) => image::find(&mut connection, name).await?,
        None => None,
    };
    drop(connection);
    let known = match deps.images.list().await {
        Ok(images) => of_engine(&images, &named, &managed)?,
        Err(PortError::EngineUnavailable(_)) => blindly(&named, &managed),
        Err(error) => return Err(error.into()),
    };
    let target = known.or_wanted(wanted, &managed)?;
    if target.managed || doomed.force {
        return Ok(target);
    }
    let (name, repository) = (target.name, managed.name());
    Err(ApiError::Conflict {
        code: "not_managed",
        message: format!(
            "{name} is not of the repository {repository}, which is the one that is managed here; force removes it all the same"
        ),
    })
}

/// What is known of what a client named.
enum Known {
    Target(Target),
    /// The engine has no such image. Alternatives come with it.
    Nothing(Vec<String>),
    /// The engine would have to be asked.
    Unclear,
}

impl Known {
    /// What is to be removed; also what the engine does not have, but somebody wanted.
    fn or_wanted(
        self,
        wanted: Option<ImageRow>,
        managed: &ImageReference,
    ) -> Result<Target, ApiError> {
        match (self, wanted) {
            (Self::Target(target), _) => Ok(target),
            (Self::Nothing(alternatives), Some(row)) => Ok(Target {
                managed: is_ours(&row.reference, managed),
                name: row.reference,
                id: row.facts.image_id,
                alternatives,
            }),
            (Self::Nothing(_), None) => {
                let what = "this image, neither on the engine nor among those that are wanted,";
                Err(ApiError::not_found(what))
            }
            (Self::Unclear, _) => Err(ApiError::EngineUnavailable),
        }
    }
}

fn of_engine(
    images: &[LocalImage],
    named: &Named,
    managed: &ImageReference,
) -> Result<Known, ApiError> {
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
        managed: match by_name {
            Some(reference) => reference.same_repository(managed),
            None => is_managed(image, managed),
        },
        alternatives,
    }))
}

/// Without the engine: a reference of the managed repository means itself, whether it is there or not.
fn blindly(named: &Named, managed: &ImageReference) -> Known {
    match named.reference() {
        Some(reference) if reference.same_repository(managed) => Known::Target(Target {
            name: reference.to_string(),
            id: None,
            managed: true,
            alternatives: Vec::new(),
        }),
        Some(_) | None => Known::Unclear,
    }
}

fn is_ours(name: &str, managed: &ImageReference) -> bool {
    let parsed: Result<ImageReference, _> = name.parse();
    parsed.is_ok_and(|reference| reference.same_repository(managed))
}

/// Refuses while somebody has the image, by id or by reference.
fn refuse_used(target: &Target, uses: &[ImageUse]) -> Result<(), ApiError> {
    let is_used = |one: &&ImageUse| {
        let by_id = one.image_id.is_some() && one.image_id == target.id;
        by_id || full(&one.image_ref) == target.name
    };
    let users = uses.iter().filter(is_used).map(|one| one.name.clone());
    let mut users: Vec<String> = users.collect();
    if users.is_empty() {
        return Ok(());
    }
    let count = users.len();
    users.truncate(NAMED);
    Err(ApiError::ImageInUse {
        message: format!(
            "{count} {} the image {}; move them to another one first",
            if count == 1 { "user has" } else { "users have" },
            target.name
        ),
        users,
        alternatives: target.alternatives.clone(),
    })
}

/// A request about an image that is being removed.
pub(super) fn being_removed(error: DbError) -> ApiError {
    match error {
        DbError::NameBeingRemoved => ApiError::Conflict {
            code: "image_being_removed",
            message: "the image is being removed from the engine; try again soon".to_owned(),
        },
        other => other.into(),
    }
}
