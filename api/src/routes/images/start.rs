//! `POST /api/admin/images/migrate` and `…/upgrade`: users move to another image, as a rollout.

use std::ops::RangeInclusive;
use std::time::Duration;

use http::header::ACCEPT;
use schema::audit::{About, Audited};
use schema::config::{Config, keys};
use schema::ids::{Kind, Uid};
use schema::image::ImageReference;
use schema::operation::Progress;
use schema::reader::Connection;
use schema::rollout::{self, NewRollout, RolloutKind};
use schema::user::{self, UserListing};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::holders::Meant;
use super::names::{Named, managed, reference, settings};
use super::preview::preview;
use super::select::{Selection, members};
use super::{IN_ROLLOUT, progress};
use crate::answer::{self, Answer, Live};
use crate::deps::Deps;
use crate::dispatch::{Actor, Superadmin};
use crate::error::{ApiError, Result};
use crate::follows::Following;
use crate::input::{Input, Meta};
use crate::limits::FOLLOWS;
use crate::route::{Area, Failure, Route, Tokens};
use crate::routes::params::names;
use crate::routes::users::Skipped;
use crate::wait::{self, State};

const NO_USERS: Failure = Failure(422, "no_users", "no users to move");

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("images_migrate", "/api/admin/images/migrate", migrate)
.tokens(Tokens::Admin)
            .title(Area::Images, "Move users of one image to another")
            .about(
                "Starts a rollout of all users of `image`, ordered by name, or of the users \
                 named. The new image is pulled if it is missing. With `dry_run` nothing is started.",
            )
            .waits_for_task()
            .fails(&[IN_ROLLOUT, NO_USERS]),
        Route::post("images_upgrade", "/api/admin/images/upgrade", upgrade).holds(&FOLLOWS)
.tokens(Tokens::Admin)
            .title(Area::Images, "Pull an image and move users to it")
            .about(
                "Starts a rollout of the users named, in this order, or of all users, ordered by \
                 name: `users`, `groups` or both, or `all`. The image is pulled first. With `Accept: \
                 text/event-stream` there is one JSON object per change: `status` (the phase), \
                 `task_id`, `total`, `done`, `failed`, `running`, `pending`, `message`; the last \
                 one is `{\"status\":\"done\",\"task_id\",\"total\"}` or, if the rollout failed or \
                 paused, `{\"status\":\"error\",\"error\",\"task_id\"}`. Closing the stream does not stop \
                 the rollout. With `dry_run` nothing is started, and there is no stream.",
            )
            .waits_for_task()
            .fails(&[
                IN_ROLLOUT,
                NO_USERS,
                Failure(404, "not_found", "no such group"),
                Failure::STREAMS,
            ]),
    ]
}

/// How long a new container may take to become ready, when the client says nothing.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(120);
/// Bounds of what the client may say.
const HEALTH_TIMEOUTS: RangeInclusive<Duration> =
    Duration::from_secs(5)..=Duration::from_secs(3600);
const MIN_READY: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(3600);
const MAX_UNAVAILABLE: RangeInclusive<u32> = 1..=1000;
/// Users of one image move to another.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Migration {
    /// The image they have: a tag of `image.name`, a reference, or an id.
    #[schema(example = "v1.1")]
    image: String,
    /// The image they get: a tag of `image.name`, or a reference.
    #[schema(example = "v1.2")]
    target: String,
    /// Only these users, in this order; default: all users of the image.
    users: Option<Vec<String>>,
    /// Maximum users moving at once, 1 to 1000; default: 1.
    #[schema(minimum = 1, maximum = 1000)]
    max_unavailable: Option<u32>,
    /// Whether a failure pauses the rollout; default: true.
    pause_on_failure: Option<bool>,
    /// How long a new container may take to become ready: 5s to 1h; default: 120s.
    health_timeout: Option<String>,
    /// Time for which it must have been ready before its user counts as moved: 0s to 1h; default: `container.min_ready`.
    min_ready: Option<String>,
    /// Report whom the rollout would move, without starting it.
    #[serde(default)]
    dry_run: bool,
}

/// Users move to an image.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Upgrade {
    /// The image they get: a tag of `image.name`, or a reference.
    #[schema(example = "v1.2")]
    tag: String,
    /// These users, in this order.
    #[serde(default)]
    #[schema(example = json!(["alice", "bob"]))]
    users: Vec<String>,
    /// Members of these groups, and of the groups in them, ordered by name.
    #[serde(default)]
    groups: Vec<String>,
    /// All users, ordered by name.
    #[serde(default)]
    all: bool,
    /// Maximum users moving at once, 1 to 1000; default: 1.
    #[schema(minimum = 1, maximum = 1000)]
    max_unavailable: Option<u32>,
    /// Whether a failure pauses the rollout; default: true.
    pause_on_failure: Option<bool>,
    /// How long a new container may take to become ready: 5s to 1h; default: 120s.
    health_timeout: Option<String>,
    /// Time for which it must have been ready before its user counts as moved: 0s to 1h; default: `container.min_ready`.
    min_ready: Option<String>,
    /// Report whom the rollout would move, without starting it.
    #[serde(default)]
    dry_run: bool,
}

/// A rollout, and what is known of its users.
pub(super) struct Plan {
    pub(super) new: NewRollout,
    pub(super) selection: Selection,
    pub(super) warnings: Vec<String>,
}

impl Plan {
    pub(super) fn uids(&self) -> Vec<Uid> {
        let users = self.selection.users.iter();
        users.map(|user| user.uid.clone()).collect()
    }
}

/// How careful a rollout is.
struct Care {
    max_unavailable: u32,
    pause_on_failure: bool,
    health_timeout: Duration,
    /// `None`: as configured.
    min_ready: Option<Duration>,
}

impl Care {
    fn read(
        max_unavailable: Option<u32>,
        pause_on_failure: Option<bool>,
        health_timeout: Option<&str>,
        min_ready: Option<&str>,
    ) -> Result<Self> {
        let max_unavailable = max_unavailable.unwrap_or(1);
        if !MAX_UNAVAILABLE.contains(&max_unavailable) {
            let rule = "max_unavailable is a whole number from 1 to 1000";
            return Err(ApiError::invalid("max_unavailable", rule));
        }
        let rule = "health_timeout is a duration such as 90s or 5m, from 5s to 1h";
        let health_timeout =
            parse_duration("health_timeout", health_timeout, &HEALTH_TIMEOUTS, rule)?;
        let rule = "min_ready is a duration such as 10s or 1m, from 0s to 1h";
        Ok(Self {
            max_unavailable,
            pause_on_failure: pause_on_failure.unwrap_or(true),
            health_timeout: health_timeout.unwrap_or(HEALTH_TIMEOUT),
            min_ready: parse_duration("min_ready", min_ready, &MIN_READY, rule)?,
        })
    }
}

/// Reads a duration within bounds; `None` when there is none.
fn parse_duration(
    field: &'static str,
    text: Option<&str>,
    bounds: &RangeInclusive<Duration>,
    rule: &str,
) -> Result<Option<Duration>> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let time = humantime::parse_duration(text).ok();
    match time.filter(|time| bounds.contains(time)) {
        Some(time) => Ok(Some(time)),
        None => Err(ApiError::invalid(field, rule)),
    }
}

/// A rollout that has begun, or would with `dry_run`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RolloutStarted)]
pub struct Started {
    /// The rollout, and its task; absent with `dry_run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, example = "01970a3e6f0c7d3b8a5b6b1d2c3e4f50")]
    pub(super) task_id: Option<String>,
    /// Number of users in it.
    pub(super) total: usize,
    /// Progress in one word; absent with `dry_run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub(super) state: Option<State>,
    /// Number of users in each state; absent with `dry_run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub(super) progress: Option<Progress>,
    /// With `dry_run`: number of users who would get the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub(super) moves: Option<usize>,
    /// With `dry_run`: the first 100 of them, in the order of the rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, example = json!(["alice", "bob"]))]
    pub(super) users: Option<Vec<String>>,
    /// With `dry_run`: number of running agents that would be replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub(super) restarts: Option<usize>,
    /// With `dry_run`: the first 100 selected users who would keep what they have, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub(super) skipped: Option<Vec<Skipped>>,
    /// With `dry_run`: number of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub(super) skipped_total: Option<usize>,
    /// Warnings about settings that the rollout leaves unchanged, each with its remedy.
    pub(super) warnings: Vec<String>,
}

/// `POST /api/admin/images/migrate`: users of one image move to another; it is pulled if it is missing.
///
/// # Errors
/// 400 for parameters and for users who are unknown or have another image, 409 `in_rollout`, 422
/// `no_users`.
async fn migrate(
    Superadmin(actor): Superadmin,
    input: Input<Migration>,
    deps: Deps,
) -> Result<Answer<Started>> {
    let asked = &input.params;
    asked.check()?;
    let source = asked.find_source(&deps).await?;
    if asked.dry_run {
        let mut snapshot = deps.db.snapshot().await?;
        let plan = asked.plan(&mut snapshot, &deps, &source).await?;
        return preview(&mut snapshot, plan).await;
    }
    let mut tx = input.meta.begin(&deps).await?;
    let plan = asked.plan(&mut tx, &deps, &source).await?;
    let uids = plan.uids();
    let id = create(tx, &deps, &actor, &plan.new, &uids, |about| about).await?;
    started(&deps, id, uids.len(), plan.warnings, input.wait).await
}

/// `POST /api/admin/images/upgrade`: users move to an image that is pulled first. With
/// `Accept: text/event-stream` the answer reports its progress until it ends or pauses.
///
/// # Errors
/// As [`migrate`]; 404 without such a group.
async fn upgrade(
    Superadmin(actor): Superadmin,
    input: Input<Upgrade>,
    deps: Deps,
) -> Result<Live<Started>> {
    let asked = &input.params;
    if asked.dry_run {
        let mut snapshot = deps.db.snapshot().await?;
        let plan = asked.plan(&mut snapshot, &deps).await?;
        return preview(&mut snapshot, plan).await.map(Live::Now);
    }
    asked.check()?;
    let viewing = viewing(&deps, &input.meta, &actor)?;
    let mut tx = input.meta.begin(&deps).await?;
    let plan = asked.plan(&mut tx, &deps).await?;
    let uids = plan.uids();
    let id = create(tx, &deps, &actor, &plan.new, &uids, |about| about).await?;
    match viewing {
        Some(viewing) => Ok(Live::Stream(progress::stream(&deps, &actor, id, viewing))),
        None => started(&deps, id, uids.len(), plan.warnings, input.wait)
            .await
            .map(Live::Now),
    }
}

impl Migration {
    /// Checks what needs no database.
    fn check(&self) -> Result<()> {
        self.care()?;
        self.whom().map(drop)
    }

    /// Finds the image that users have.
    async fn find_source(&self, deps: &Deps) -> Result<Meant> {
        let mut connection = deps.db.snapshot().await?;
        let managed = managed(&mut connection, deps).await?;
        drop(connection);
        Meant::find(deps, &Named::read("image", &self.image, &managed)?).await
    }

    /// The rollout that is asked for.
    async fn plan(&self, connection: &mut Connection, deps: &Deps, source: &Meant) -> Result<Plan> {
        let (care, whom) = (self.care()?, self.whom()?);
        let (config, _, managed) = settings(connection, deps).await?;
        let target = reference("target", &self.target, &managed)?.to_string();
        let all_users = user::list(connection, "", i64::MAX, 0).await?.0;
        let has_it = |user: &UserListing| source.is_of(&user.image_ref, user.image_id.as_deref());
        let selection = Selection::choose(all_users, &whom, has_it)?;
        let source = Some(self.image.trim().to_owned());
        Ok(Plan {
            new: new_rollout(RolloutKind::Migrate, target, source, &care, &config),
            selection,
            warnings: Vec::new(),
        })
    }

    fn care(&self) -> Result<Care> {
        let (timeout, min_ready) = (self.health_timeout.as_deref(), self.min_ready.as_deref());
        Care::read(
            self.max_unavailable,
            self.pause_on_failure,
            timeout,
            min_ready,
        )
    }

    /// The users named; empty for all users. An empty list is no request for all users.
    fn whom(&self) -> Result<Vec<&str>> {
        let users = self.users.as_deref().map(names);
        match users {
            Some(users) if users.is_empty() => {
                let rule = "users is empty; leave it out for all users who have the image";
                Err(ApiError::invalid("users", rule))
            }
            users => Ok(users.unwrap_or_default()),
        }
    }
}

impl Upgrade {
    /// Checks what needs no database.
    fn check(&self) -> Result<()> {
        self.care()?;
        self.whom().map(drop)
    }

    /// The rollout that is asked for.
    async fn plan(&self, connection: &mut Connection, deps: &Deps) -> Result<Plan> {
        let (care, whom) = (self.care()?, self.whom()?);
        let (config, _, managed) = settings(connection, deps).await?;
        let target = reference("tag", &self.tag, &managed)?.to_string();
        let all_users = user::list(connection, "", i64::MAX, 0).await?.0;
        let members = members(connection, &names(&self.groups)).await?;
        let mut selection = match whom.is_empty() && !self.all {
            true => Selection::default(),
            false => Selection::choose(all_users.clone(), &whom, |_| true)?,
        };
        if !members.is_empty() {
            let is_member = |user: &UserListing| members.contains(&user.uid);
            selection.append(Selection::choose(all_users, &[], is_member)?);
        }
        let warnings = match self.all {
            true => list_default_warnings(&config, &managed, &target),
            false => Vec::new(),
        };
        Ok(Plan {
            new: new_rollout(RolloutKind::Upgrade, target, None, &care, &config),
            selection,
            warnings,
        })
    }

    fn care(&self) -> Result<Care> {
        let (timeout, min_ready) = (self.health_timeout.as_deref(), self.min_ready.as_deref());
        Care::read(
            self.max_unavailable,
            self.pause_on_failure,
            timeout,
            min_ready,
        )
    }

    /// The users named.
    fn whom(&self) -> Result<Vec<&str>> {
        let users = names(&self.users);
        let is_empty = users.is_empty() && names(&self.groups).is_empty();
        if is_empty != self.all {
            let rule = "users and groups name who gets the image, or all=true means all users; give one of them";
            return Err(ApiError::invalid("users", rule));
        }
        Ok(users)
    }
}

/// The right to view, if the client wants to.
fn viewing(deps: &Deps, meta: &Meta, actor: &Actor) -> Result<Option<Following>> {
    let accepts = meta.headers.get_all(ACCEPT).iter();
    let mut accepts = accepts.filter_map(|value| value.to_str().ok());
    if !accepts.any(|value| value.to_ascii_lowercase().contains("text/event-stream")) {
        return Ok(None);
    }
    deps.viewers.begin(actor.account()).map(Some)
}

/// Warns that users who are created from now on get another image.
fn list_default_warnings(config: &Config, managed: &ImageReference, target: &str) -> Vec<String> {
    let default = managed.with_tag(&config.get(&keys::image::TAG));
    let default = default.map(|default| default.to_string());
    match default {
        Ok(default) if default != target => vec![format!(
            "new users still get {default}; set image.name and image.tag, or use `agentyard rollout start … --all --set-default`"
        )],
        _ => Vec::new(),
    }
}

fn new_rollout(
    kind: RolloutKind,
    reference: String,
    source: Option<String>,
    care: &Care,
    config: &Config,
) -> NewRollout {
    let configured = || config.get(&keys::container::MIN_READY).unwrap_or_default();
    NewRollout {
        kind,
        reference,
        source,
        max_unavailable: care.max_unavailable,
        pause_on_failure: care.pause_on_failure,
        health_timeout: care.health_timeout,
        min_ready: care.min_ready.unwrap_or_else(configured),
    }
}

/// Checks the image that users are to be moved to, and how many at once.
///
/// # Errors
/// 400 that names what cannot be used.
pub(in crate::routes) async fn check_target(
    connection: &mut Connection,
    deps: &Deps,
    image: &str,
    max_unavailable: Option<u32>,
) -> Result<()> {
    let (_, _, managed) = settings(connection, deps).await?;
    reference("image", image, &managed)?;
    Care::read(max_unavailable, None, None, None).map(drop)
}

/// Records a rollout of these users and gives its id.
///
/// # Errors
/// As [`check_target`]; 409 `in_rollout`.
pub(in crate::routes) async fn roll_out(
    mut tx: Audited,
    deps: &Deps,
    actor: &Actor,
    image: &str,
    max_unavailable: Option<u32>,
    users: &[(Uid, String)],
) -> Result<String> {
    let (config, _, managed) = settings(&mut tx, deps).await?;
    let target = reference("image", image, &managed)?.to_string();
    let care = Care::read(max_unavailable, None, None, None)?;
    let new = new_rollout(RolloutKind::Upgrade, target, None, &care, &config);
    let uids: Vec<Uid> = users.iter().map(|(uid, _)| uid.clone()).collect();
    let named = |about: About| {
        let users = users.iter().map(|(_, name)| name.as_str());
        users.fold(about, |about, name| about.and(Kind::User, name))
    };
    create(tx, deps, actor, &new, &uids, named).await
}

pub(super) fn no_users() -> ApiError {
    let message = "no users match: no user has this image, or there are no users";
    ApiError::unprocessable("no_users", message)
}

/// Records the rollout and gives its id. `complete` adds to the audit entry.
async fn create(
    mut tx: Audited,
    deps: &Deps,
    actor: &Actor,
    new: &NewRollout,
    users: &[Uid],
    complete: impl FnOnce(About) -> About,
) -> Result<String> {
    if users.is_empty() {
        return Err(no_users());
    }
    let now = deps.clock.now();
    let uid = rollout::create(&mut tx, new, users, &actor.to_string(), now).await?;
    let detail = format!("{} to {}", answer::users(users.len()), new.reference);
    let about = About::object(Kind::Rollout, uid.as_str());
    tx.commit(complete(about).detail(detail)).await?;
    Ok(uid.to_string())
}

async fn started(
    deps: &Deps,
    id: String,
    total: usize,
    warnings: Vec<String>,
    wait: Option<Duration>,
) -> Result<Answer<Started>> {
    let progress = wait::settle_operation(deps, &id, wait).await;
    let (state, status) = wait::state_of(progress);
    let message = format!("rollout of {} requested", answer::users(total));
    let warned = warnings.iter().map(String::as_str);
    let sentences: Vec<&str> = std::iter::once(&*message).chain(warned).collect();
    let message = sentences.join("; ");
    let started = Started {
        task_id: Some(id),
        total,
        state: Some(state),
        progress: Some(progress),
        moves: None,
        users: None,
        restarts: None,
        skipped: None,
        skipped_total: None,
        warnings,
    };
    Ok(Answer::ok(message, started).status(status))
}
