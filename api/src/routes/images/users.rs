//! Users by their images: who has one, and who could be moved to one.

use std::collections::BTreeMap;

use schema::container::{Desired, StatusWord, status_word};
use schema::group;
use schema::ids::{PlainName, Uid};
use schema::user::{self, UserListing};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::holders::Meant;
use super::names::{Named, full, managed, reference};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::Result;
use crate::input::{Input, Paging};
use crate::route::{Area, Route, Tokens};
use crate::routes::page::{Page, cut};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "images_upgrade_candidates",
            "/api/admin/images/upgrade-candidates",
            candidates,
        )
.tokens(Tokens::Read)
        .title(Area::Images, "List upgrade candidates")
        .about(
            "Users who have another reference, or the same one from before its tag moved: as the engine \
                 knows it, or as it was last pulled while the engine cannot be reached.",
        )
        .paged(),
        Route::get("images_users", "/api/admin/images/users", of_image)
.tokens(Tokens::Read)
            .title(Area::Images, "List users of an image")
            .about(
                "By an id, users with that image; by a reference, users with this reference and those with the \
                 image that it means now. Deletion and migration count the same users.",
            )
            .paged(),
    ]
}

/// A user with its image.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImageUser)]
pub struct Item {
    /// The account's name.
    #[schema(example = "alice")]
    username: String,
    /// The full reference of the image.
    #[schema(example = "docker.io/sipeed/picoclaw:v1.1")]
    image: String,
    /// The id of that image, once it is known.
    image_id: Option<String>,
    /// The state of the container in one word.
    status: StatusWord,
    /// Names, separated by a comma and a space.
    groups: String,
}

impl Item {
    fn new(user: UserListing, groups: &[PlainName]) -> Self {
        let desired_running = user.desired == Some(Desired::Running) && !user.disabled;
        let deleted = user.deleted_at.is_some();
        Self {
            status: status_word(desired_running, deleted, user.generation, &user.status),
            username: user.name,
            image: user.image_ref,
            image_id: user.image_id,
            groups: groups
                .iter()
                .map(PlainName::as_str)
                .collect::<Vec<_>>()
                .join(", "),
        }
    }
}

/// A group with users who could be moved.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImageGroup)]
pub struct Group {
    /// Its name.
    name: String,
    /// How many of its members.
    count: usize,
}

/// Which image users could be moved to.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Target {
    /// A tag of `image.name`, or a reference.
    #[schema(example = "v1.2")]
    tag: String,
}

/// Users who could be moved to an image.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UpgradeCandidates)]
pub struct Candidates {
    /// The image's full reference.
    #[schema(example = "docker.io/sipeed/picoclaw:v1.2")]
    target: String,
    users: Vec<Item>,
    groups: Vec<Group>,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/images/upgrade-candidates`: users who have another image: another reference, or the
/// same one from before its tag moved.
///
/// # Errors
/// 400 for what is neither tag nor reference.
async fn candidates(_: Superadmin, input: Input<Target>, deps: Deps) -> Result<Answer<Candidates>> {
    let mut connection = deps.db.snapshot().await?;
    let managed = managed(&mut connection, &deps).await?;
    drop(connection);
    let named = Named::from(reference("tag", &input.params.tag, &managed)?);
    let meant = Meant::find(&deps, &named).await?;
    let target = meant.reference.unwrap_or_default();
    let mut connection = deps.db.snapshot().await?;
    let (mut users, _) = user::list(&mut connection, "", i64::MAX, 0).await?;
    let names = group::names_of_users(&mut connection).await?;
    drop(connection);
    users.retain(|user| user.deleted_at.is_none() && differs(user, &target, meant.id.as_deref()));
    let groups = counted(&users, &names);
    let paging = input.paging.as_ref();
    let (users, page) = page(users, &names, paging);
    let candidates = Candidates {
        target,
        users,
        groups,
        page,
    };
    Ok(Answer::ok("upgrade candidates", candidates))
}

/// How many of these users are in which group themselves, by name.
fn counted(users: &[UserListing], names: &Names) -> Vec<Group> {
    let mut counts: BTreeMap<&PlainName, usize> = BTreeMap::new();
    for name in users.iter().flat_map(|user| names.get(&user.uid)).flatten() {
        *counts.entry(name).or_default() += 1;
    }
    let groups = counts.into_iter().map(|(name, count)| Group {
        name: name.to_string(),
        count,
    });
    groups.collect()
}

/// The groups that users are in themselves.
type Names = BTreeMap<Uid, Vec<PlainName>>;

/// Returns true if a user has something else than the target, as far as is known.
pub(super) fn differs(user: &UserListing, target: &str, pulled: Option<&str>) -> bool {
    let older = matches!((user.image_id.as_deref(), pulled), (Some(has), Some(new)) if has != new);
    older || full(&user.image_ref) != target
}

/// Whose users are asked for.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Whose {
    /// A tag of `image.name`, a reference, or an id: whole, or its first 12 digits or more.
    #[schema(example = "v1.1")]
    image: String,
}

/// Users of an image.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ImageUsers)]
pub struct Users {
    users: Vec<Item>,
    /// Their names alone.
    #[schema(example = json!(["alice"]))]
    usernames: Vec<String>,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/images/users`: who has an image.
///
/// # Errors
/// As [`candidates`].
async fn of_image(_: Superadmin, input: Input<Whose>, deps: Deps) -> Result<Answer<Users>> {
    let mut connection = deps.db.snapshot().await?;
    let managed = managed(&mut connection, &deps).await?;
    drop(connection);
    let named = Named::read("image", &input.params.image, &managed)?;
    let meant = Meant::find(&deps, &named).await?;
    let mut connection = deps.db.snapshot().await?;
    let (mut users, _) = user::list(&mut connection, "", i64::MAX, 0).await?;
    let names = group::names_of_users(&mut connection).await?;
    drop(connection);
    users.retain(|user| meant.is_of(&user.image_ref, user.image_id.as_deref()));
    let paging = input.paging.as_ref();
    let (users, page) = page(users, &names, paging);
    let usernames = users.iter().map(|user| user.username.clone()).collect();
    let users = Users {
        users,
        usernames,
        page,
    };
    Ok(Answer::ok("users of the image", users))
}

fn page(users: Vec<UserListing>, names: &Names, paging: Option<&Paging>) -> (Vec<Item>, Page) {
    let item = |user: UserListing| {
        let groups = names.get(&user.uid).map(Vec::as_slice);
        Item::new(user, groups.unwrap_or_default())
    };
    let items = users.into_iter().map(item).collect();
    cut(items, paging, |item: &Item, text| {
        item.username.to_lowercase().contains(text)
    })
}
