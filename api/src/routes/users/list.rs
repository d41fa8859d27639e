//! `GET /api/admin/users`: users and their containers, filtered and ordered by the database.

use std::time::Duration;

use schema::change::{self, Position};
use schema::condition::Reason;
use schema::container::{Desired, StatusWord, status_word};
use schema::group;
use schema::ids::{Generation, Kind, PlainName, Timestamp};
use schema::image::ImageReference;
use schema::object;
use schema::reader::Connection;
use schema::user::{
    self, Health, Role, Source, Standstill, UserFilter, UserListing, UserOrder, UserSort,
};
use serde::{Deserialize, Serialize};
use strum::VariantArray;
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::explain::{Explained, explained_owned};
use crate::input::Input;
use crate::route::{Area, Failure, Route, Tokens};
use crate::routes::groups;
use crate::routes::images::{Meant, Named, managed, size_text};
use crate::routes::page::{Page, read_page, search};
use crate::routes::params::{flag, given};
use crate::settings::AuthMode;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("users_list", "/api/admin/users", list)
.tokens(Tokens::Read)
            .title(Area::Users, "List users and their containers")
            .about(
                "All users, or one page. The engine is not asked. `health` is that of the worst of \
                 container, configuration, skills and directory. Filters and order act on all users; \
                 of several filters each must hold.",
            )
            .paged()
            .fails(&[NO_GROUP]),
    ]
}

pub(super) const NO_GROUP: Failure = Failure(404, "not_found", "no such group");

/// A user with its container, in a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UserItem)]
pub struct Item {
    /// The account's name.
    #[schema(example = "alice")]
    username: String,
    /// Where the account comes from.
    #[schema(value_type = Source)]
    source: String,
    /// Role of the account.
    role: Role,
    /// The account is disabled.
    disabled: bool,
    /// The state of the container in one word.
    status: StatusWord,
    /// The full reference of the image.
    #[schema(example = "docker.io/sipeed/picoclaw:1.2.3")]
    image: String,
    /// The image's tag; empty when it has none.
    #[schema(example = "1.2.3")]
    image_tag: String,
    /// The user's image is fixed: the engine has had it.
    image_ready: bool,
    /// The full reference of the image that the present container has, as last observed; null without a container.
    #[schema(required = true, example = "docker.io/sipeed/picoclaw:1.2.3")]
    observed_image: Option<String>,
    /// The id of that image.
    #[schema(required = true)]
    observed_image_id: Option<String>,
    /// Address in the agent network.
    #[schema(example = "10.88.0.2")]
    ip: Option<String>,
    /// Groups of the user.
    groups: Vec<PlainName>,
    /// The desired state of the container; stopped while the account is disabled.
    desired: Desired,
    /// The health of the user: that of the worst of container, configuration, skills and directory.
    health: Health,
    /// Reason, time and author of the decision that the container does not run; null if it is to run.
    standstill: Option<Standstill>,
    /// Generation of the container's desired state.
    generation: Generation,
    /// The generation that was last observed.
    observed_generation: Generation,
    /// Its conditions, each with its remedy.
    conditions: Vec<Explained>,
    /// Time of creation.
    created_at: Timestamp,
    /// Time of the last sign-in.
    last_login_at: Option<Timestamp>,
    /// Bytes that the workspace takes on the disk, as last measured; null before that.
    used_bytes: Option<u64>,
    /// The same as people say it; `at least` when not everything could be counted.
    #[schema(example = "1.2 GB")]
    used: Option<String>,
}

impl Item {
    fn new(mut user: UserListing, groups: Vec<PlainName>, standing: &Standing) -> Self {
        let (health, standstill) = standing.of(&user);
        if standing.is_paused(Kind::Container) {
            user.status.pause();
        }
        let desired = user.desired.filter(|_| !user.disabled);
        let desired = desired.unwrap_or(Desired::Stopped);
        let desired_running = desired == Desired::Running;
        let deleted = user.deleted_at.is_some();
        let used_bytes = user.used_bytes.and_then(|bytes| u64::try_from(bytes).ok());
        let object = format!("{}/{}", Kind::Container, user.name);
        Self {
            used: used_bytes.map(|bytes| used_text(bytes, user.used_complete)),
            used_bytes,
            status: status_word(desired_running, deleted, user.generation, &user.status),
            username: user.name,
            source: user.source,
            role: Role::User,
            disabled: user.disabled,
            image_tag: tag_of(&user.image_ref),
            image: user.image_ref,
            image_ready: user.image_id.is_some(),
            observed_image: user.observed_image,
            observed_image_id: user.observed_image_id,
            ip: user.ip,
            groups,
            desired,
            health,
            standstill,
            generation: user.generation,
            observed_generation: user.status.observed_generation,
            conditions: explained_owned(&object, user.status.conditions),
            created_at: user.created_at,
            last_login_at: user.last_login_at,
        }
    }
}

/// Settings that decide the health of all users.
pub(in crate::routes) struct Standing {
    /// Names of paused reconcilers.
    pub(in crate::routes) paused: Vec<String>,
    /// Grace period of users missing from the directory.
    pub(in crate::routes) grace: Option<Duration>,
}

impl Standing {
    /// Returns the health of a user, and why the container is not to run.
    pub(in crate::routes) fn of(&self, user: &UserListing) -> (Health, Option<Standstill>) {
        let standstill = Standstill::of(user, self.grace);
        let health = Health::of(user, standstill.as_ref(), &self.paused);
        (health, standstill)
    }

    fn is_paused(&self, kind: Kind) -> bool {
        let mut names = self.paused.iter();
        names.any(|name| name == "*" || name == kind.as_str())
    }
}

/// Filter of users, of which each given member must hold, and their order.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = UserFilter)]
pub struct Filter {
    /// Case-insensitive substring of the name.
    #[schema(example = "ali")]
    name: Option<String>,
    /// Everything of the user is ready and observed since its last change (true), or something is not (false).
    ready: Option<bool>,
    /// The same as `ready=false`.
    #[serde(default, deserialize_with = "flag")]
    not_ready: bool,
    /// State of the container in one word.
    status: Option<StatusWord>,
    /// Reason of a condition of the user's container, configuration, skills or directory.
    reason: Option<Reason>,
    /// A group that the user is in, or one in which that is.
    group: Option<PlainName>,
    /// The user's image: a tag of `image.name`, a reference, or an id (whole, or its first 12 digits or more).
    #[schema(example = "1.2.3")]
    image: Option<String>,
    /// Where the account comes from.
    source: Option<Source>,
    /// The account is disabled.
    disabled: Option<bool>,
    /// `name` (default), `status`, `image`, `created_at`, `last_login_at` or `used` (bytes on the disk); with `-` before it, the last
    /// one first.
    #[schema(example = "-last_login_at")]
    sort: Option<String>,
}

impl Filter {
    /// Members that select users.
    pub(super) const SELECTING: [&str; 8] = [
        "name", "ready", "status", "reason", "group", "image", "source", "disabled",
    ];

    fn order(&self) -> Result<UserOrder> {
        let text = self.sort.as_deref().unwrap_or_default();
        let (descending, key) = match text.strip_prefix('-') {
            Some(key) => (true, key),
            None => (false, text),
        };
        let by = match key {
            "" => UserSort::default(),
            key => key.parse().map_err(|_| {
                let keys: Vec<&str> = UserSort::VARIANTS.iter().map(Into::into).collect();
                let rule = format!("sort is one of {}, or one of them after -", keys.join(", "));
                ApiError::invalid("sort", rule)
            })?,
        };
        Ok(UserOrder { by, descending })
    }

    /// Finds what it names.
    ///
    /// # Errors
    /// 404 without such a group, 400 for what is no image.
    pub(super) async fn resolve(
        self,
        connection: &mut Connection,
        deps: &Deps,
    ) -> Result<UserFilter> {
        let group = match &self.group {
            None => None,
            Some(name) => Some(groups::find(connection, name).await?.uid),
        };
        let image = match given(&self.image) {
            None => None,
            Some(image) => {
                let managed = managed(connection, deps).await?;
                let named = Named::read("image", image, &managed)?;
                Some(Meant::recall(connection, &named).await?.into_filter())
            }
        };
        let ready = match (self.ready, self.not_ready) {
            (Some(true), true) => {
                let rule = "not_ready is the same as ready=false; give one of them";
                return Err(ApiError::invalid("not_ready", rule));
            }
            (_, true) => Some(false),
            (ready, false) => ready,
        };
        Ok(UserFilter {
            search: String::new(),
            name: self.name.unwrap_or_default(),
            ready,
            status: self.status,
            reason: self.reason,
            group,
            image,
            source: self.source,
            disabled: self.disabled,
        })
    }
}

/// Disk use of a workspace as text.
fn used_text(bytes: u64, complete: bool) -> String {
    let size = size_text(bytes);
    match complete {
        true => size,
        false => format!("at least {size}"),
    }
}

/// The tag of an image reference; empty when it is known by its digest only.
fn tag_of(reference: &str) -> String {
    let parsed: Result<ImageReference, _> = reference.parse();
    let tag = parsed.ok().and_then(|image| image.tag().map(str::to_owned));
    tag.unwrap_or_default()
}

/// Users and their containers.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Users)]
pub struct Listing {
    users: Vec<Item>,
    /// Number of users that are not ready, without the filter.
    #[schema(example = 0)]
    not_ready: i64,
    /// The id to start watching from, for changes after this list.
    #[schema(value_type = String, example = "5f0c2a-41")]
    watch_id: Position,
    /// Where ordinary users come from.
    auth_mode: AuthMode,
    /// Accounts and passwords are managed by a directory or an identity provider.
    unified_auth: bool,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/users`: all users, or one page; no engine call.
///
/// # Errors
/// 400 for a filter or an order that there is not, 404 without such a group.
async fn list(_: Superadmin, input: Input<Filter>, deps: Deps) -> Result<Answer<Listing>> {
    let paging = input.paging.as_ref();
    let order = input.params.order()?;
    let mut connection = deps.db.snapshot().await?;
    let filter = UserFilter {
        search: search(paging).to_owned(),
        ..input.params.resolve(&mut connection, &deps).await?
    };
    let watch_id = change::position(&mut connection).await?;
    let (users, page) = read_page!(paging, window => {
        user::list_filtered(&mut connection, &filter, order, window.limit, window.offset)
    });
    let not_ready = user::count_unready(&mut connection).await?;
    let standing = Standing {
        paused: object::paused_reconcilers(&mut connection).await?,
        grace: deps.settings().removal_grace,
    };
    let mut groups = group::names_of_users(&mut connection).await?;
    drop(connection);
    let mode = deps.settings().auth_mode;
    let listing = Listing {
        users: users
            .into_iter()
            .map(|user| {
                let groups = groups.remove(&user.uid).unwrap_or_default();
                Item::new(user, groups, &standing)
            })
            .collect(),
        not_ready,
        watch_id,
        auth_mode: mode,
        unified_auth: mode != AuthMode::Local,
        page,
    };
    Ok(Answer::ok("users and their containers", listing))
}

#[cfg(test)]
mod tests;
