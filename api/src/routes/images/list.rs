//! `GET /api/admin/images` and `…/local-tags`: what the engine has.

use schema::ids::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::local::{self, Uses};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::Result;
use crate::input::{Input, Nothing};
use crate::ports::LocalImage;
use crate::route::{Area, Failure, Route, Tokens};
use crate::routes::page::{Page, cut};
use crate::routes::params::flag;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("images_list", "/api/admin/images", list)
            .tokens(Tokens::Read)
            .title(Area::Images, "List images on the engine")
            .about(
                "Images of the repository `image.name`, and those that users have; with `all` \
                 every image. `search` matches tags and ids.",
            )
            .paged()
            .fails(&[Failure::ENGINE]),
        Route::get(
            "images_local_tags",
            "/api/admin/images/local-tags",
            local_tags,
        )
        .tokens(Tokens::Read)
        .title(Area::Images, "List tags on the engine")
        .about("Tags of `image.name`, newest version first.")
        .paged()
        .fails(&[Failure::ENGINE]),
    ]
}

/// In place of what the engine does not know.
const UNKNOWN: &str = "unknown";
/// Digits of an id that people are shown.
const SHORT_ID: usize = 12;

/// Which images.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Which {
    /// Every image on the engine, not only those of `image.name` and those that users have.
    #[serde(default, deserialize_with = "flag")]
    all: bool,
}

/// An image on the engine.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImageItem)]
pub struct Item {
    /// The first 12 digits of the id.
    #[schema(example = "4bcff63911fc")]
    id: String,
    /// The whole id.
    #[schema(example = "sha256:4bcff63911fcb4448bd4fdacec207030997caf25e9bea4045fa6c8c44de311d1")]
    full_id: String,
    /// Its references on the engine.
    #[schema(example = json!(["docker.io/sipeed/picoclaw:v1.2"]))]
    repo_tags: Vec<String>,
    /// Bytes; 0: not known.
    size: u64,
    /// The size for people.
    #[schema(example = "80.0 MB")]
    size_str: String,
    /// When it was built; 1970: not known.
    created: Timestamp,
    /// When it was built, for people.
    #[schema(example = "2026-05-11 11:46")]
    created_str: String,
    /// Number of its users.
    user_count: usize,
    /// Its users.
    users: Vec<String>,
}

impl Item {
    fn new(image: LocalImage, users: Vec<String>) -> Self {
        let digits = image.id.rsplit_once(':').map_or(&*image.id, |(_, hex)| hex);
        Self {
            id: digits.chars().take(SHORT_ID).collect(),
            repo_tags: image.repo_tags,
            size: image.size,
            size_str: match image.size {
                0 => UNKNOWN.to_owned(),
                size => size_text(size),
            },
            created: image.created_at,
            created_str: match image.created_at.as_secs() {
                0 => UNKNOWN.to_owned(),
                _ => minute(image.created_at),
            },
            user_count: users.len(),
            users,
            full_id: image.id,
        }
    }
}

/// Bytes as people say them, in thousands as the engine does.
pub(in crate::routes) fn size_text(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64 / 1000.0;
    let mut units = UNITS.iter();
    let mut unit = units.next();
    while size >= 999.95 {
        let Some(larger) = units.next() else { break };
        size /= 1000.0;
        unit = Some(larger);
    }
    format!("{size:.1} {}", unit.unwrap_or(&"kB"))
}

/// `YYYY-MM-DD HH:MM`, UTC.
pub(in crate::routes) fn minute(at: Timestamp) -> String {
    let text = at.to_rfc3339();
    let text: String = text.chars().take(16).collect();
    text.replace('T', " ")
}

/// Images on the engine.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Images)]
pub struct Listing {
    /// Newest first.
    images: Vec<Item>,
    /// Images that the list leaves out, where the engine does not know all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        required = false,
        example = "images of agents; other images of the nodes are not visible"
    )]
    note: Option<&'static str>,
    /// Says how images are removed, where they are not deleted by request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(
        required = false,
        example = "the nodes' kubelets remove images themselves"
    )]
    removal: Option<&'static str>,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/images`: the managed repository's images and those that users have, or all.
///
/// # Errors
/// 503 while the engine cannot be reached.
async fn list(_: Superadmin, input: Input<Which>, deps: Deps) -> Result<Answer<Listing>> {
    let (managed, uses, mut images) = local::everything(&deps).await?;
    images.sort_by(|a, b| (b.created_at, &a.id).cmp(&(a.created_at, &b.id)));
    let shown = |image: &LocalImage, users: &[String]| {
        input.params.all || !users.is_empty() || local::is_managed(image, &managed)
    };
    let items = with_users(images, &uses)
        .filter(|(image, users)| shown(image, users))
        .map(|(image, users)| Item::new(image, users))
        .collect();
    let paging = input.paging.as_ref();
    let (images, page) = cut(items, paging, |item: &Item, text| {
        let mut texts = item.repo_tags.iter().chain([&item.full_id]);
        texts.any(|known| known.to_lowercase().contains(text))
    });
    let limits = deps.images.limits();
    let listing = Listing {
        images,
        note: limits.inventory,
        removal: limits.removal,
        page,
    };
    Ok(Answer::ok("images on the engine", listing))
}

fn with_users(
    images: Vec<LocalImage>,
    uses: &Uses,
) -> impl Iterator<Item = (LocalImage, Vec<String>)> {
    images.into_iter().map(|image| {
        let users = uses.of(&image);
        (image, users)
    })
}

/// Tags of a repository.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImageTags)]
pub struct Tags {
    /// Registry and name.
    #[schema(example = "docker.io/sipeed/picoclaw")]
    repository: String,
    /// Versions, newest first, and then everything else by name.
    #[schema(example = json!(["v1.2", "v1.1", "latest"]))]
    tags: Vec<String>,
    #[serde(flatten)]
    page: Page,
}

/// One page of tags.
pub(super) fn tags_answer<T>(
    message: &str,
    repository: String,
    tags: &[String],
    input: &Input<T>,
) -> Answer<Tags> {
    let paging = input.paging.as_ref();
    let (tags, page) = cut(tags.iter().collect(), paging, |tag: &&String, text| {
        tag.to_lowercase().contains(text)
    });
    let tags = tags.into_iter().cloned().collect();
    let fields = Tags {
        repository,
        tags,
        page,
    };
    Answer::ok(message, fields)
}

/// `GET /api/admin/images/local-tags`: tags of the managed repository that are on the engine.
///
/// # Errors
/// As [`list`].
async fn local_tags(_: Superadmin, input: Input<Nothing>, deps: Deps) -> Result<Answer<Tags>> {
    let (managed, _, images) = local::everything(&deps).await?;
    let tags = local::managed_tags(&images, &managed);
    let message = "tags on the engine";
    Ok(tags_answer(message, managed.name(), &tags, &input))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_as_the_engine_tells_them() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_999, "1.0 MB"),
            (80_000_000, "80.0 MB"),
            (u64::MAX, "18446.7 PB"),
        ] {
            assert_eq!(size_text(bytes), text);
        }
        assert_eq!(
            minute(Timestamp::from_secs(1_778_500_000)),
            "2026-05-11 11:46"
        );
    }
}
