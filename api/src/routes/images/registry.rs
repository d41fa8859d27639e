//! `GET /api/admin/images/registry`: which tags there are to pull.

use schema::config::{Config, keys};
use schema::image::ImageReference;
use serde::Deserialize;
use utoipa::ToSchema;

use super::list::{Tags, tags_answer};
use super::names::{reference, settings};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::Input;
use crate::ports::RegistryError;
use crate::route::{Area, Failure, Route, Tokens};
use crate::routes::params::flag;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("images_registry", "/api/admin/images/registry", tags)
            .tokens(Tokens::Read)
            .title(Area::Images, "List tags in the registry")
            .about(
                "All tags, newest version first. The registry's answer is cached for five \
                 minutes.",
            )
            .paged()
            .fails(&[Failure(
                502,
                "remote_failed",
                "the registry cannot be reached, refuses, or sends an unexpected answer",
            )]),
    ]
}

/// Which repository.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Which {
    /// Ask the registry now instead of using the cached answer.
    #[serde(default, deserialize_with = "flag")]
    refresh: bool,
    /// A reference; default: `image.name`.
    #[schema(example = "docker.io/sipeed/picoclaw")]
    image: Option<String>,
}

/// `GET /api/admin/images/registry`: all tags of the repository, newest version first.
///
/// # Errors
/// 502 when the registry fails; the sentence says what to do.
async fn tags(_: Superadmin, input: Input<Which>, deps: Deps) -> Result<Answer<Tags>> {
    let mut connection = deps.db.read().await?;
    let (config, generation, managed) = settings(&mut connection, &deps).await?;
    drop(connection);
    let asked = input.params.image.as_deref();
    let image = match asked.filter(|text| !text.trim().is_empty()) {
        Some(text) => reference("image", text, &managed)?,
        None => managed,
    };
    // Another configuration may mean other credentials.
    let key = format!("{} {generation}", image.name());
    let ask = ask(&deps, &config, &image);
    let known = deps.tags.get(&key, input.params.refresh, ask).await;
    let tags = known.map_err(refused)?;
    let message = "tags in the registry";
    Ok(tags_answer(message, image.name(), &tags, &input))
}

async fn ask(
    deps: &Deps,
    config: &Config,
    image: &ImageReference,
) -> Result<Vec<String>, RegistryError> {
    let plain = config.get(&keys::image::REGISTRY_PLAIN_HTTP);
    let plain = plain.iter().any(|host| host == image.registry());
    let credentials = config.registry_credentials_for(image);
    deps.registry.tags(image, credentials, plain).await
}

fn refused(error: RegistryError) -> ApiError {
    ApiError::Remote {
        message: error.to_string(),
    }
}
