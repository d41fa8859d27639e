//! Bringing the configuration to the agents' files once more.

use http::StatusCode;
use schema::audit::{About, Audited};
use schema::group;
use schema::ids::{Generation, Kind, PlainName, Uid, UserName};
use schema::meta;
use schema::object;
use schema::operation::{self, Progress};
use schema::rollout::held;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{self, Answer};
use crate::deps::Deps;
use crate::dispatch::{Actor, Superadmin};
use crate::error::{ApiError, Result};
use crate::input::Input;
use crate::route::{Area, Failure, Route, Tokens};
use crate::routes::groups;
use crate::routes::params::{given, present_user};
use crate::wait::{self, Change, Changed, Converging, State};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("config_apply", "/api/admin/config/apply", apply)
.tokens(Tokens::Admin)
            .title(
                Area::Configuration,
                "Apply the configuration to agents' files",
            )
            .about(
                "Updates the files of one user, of the members of a group and of the groups in it, or of \
                 all users, to the current configuration; an agent whose files change is restarted. \
                 For one user the answer waits 10 s unless `wait` says otherwise. For several it is \
                 a task of type `config_apply`, which is not waited for by default; each call creates another task. Changes of single \
                 users are processed first. `if_generation` requires `username`.",
            )
            .waits()
            .guarded()
            .fails(&[
                Failure::NO_USER,
                Failure::REMOVED,
                Failure(404, "not_found", "no such group"),
            ]),
    ]
}

/// The type of the operation.
pub const OPERATION: &str = "config_apply";

/// Whose files.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ConfigApplyForm)]
pub struct ApplyForm {
    /// One user; without user and group, all users.
    #[schema(example = "alice")]
    username: Option<String>,
    /// A group, with the groups in it.
    #[schema(value_type = Option<PlainName>)]
    group: Option<String>,
}

/// How far the files of one user, or of all users, are.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConfigApplied)]
pub struct Applied {
    /// How far it is.
    state: State,
    /// The object of one user's files.
    #[serde(flatten)]
    changed: Option<Changed>,
    /// The task of all users' files; absent when there are no users.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "01970a3e6f0c7d3b8a5b6b1d2c3e4f50")]
    task_id: Option<String>,
    /// Number of users.
    #[schema(example = 1)]
    total: u64,
    /// How many users are in which state.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
}

impl From<Converging> for Applied {
    fn from(Converging { state, changed }: Converging) -> Self {
        Self {
            state,
            changed: Some(changed),
            task_id: None,
            total: 1,
            progress: None,
        }
    }
}

/// `POST /api/admin/config/apply`: the files of one user, or of everybody, are compared with and brought to what
/// is configured. Everybody's are one task, recorded in a handful of statements; a second one while the first
/// is under way is another task.
///
/// # Errors
/// 404 without such a user, 409 while it is being removed, 412 for a stale `if_generation` (of one user's config
/// object), what the files fail with; 404 without such a group.
async fn apply(
    Superadmin(actor): Superadmin,
    input: Input<ApplyForm>,
    deps: Deps,
) -> Result<Answer<Applied>> {
    let invalid = |field, rule: String| ApiError::invalid(field, rule);
    match (given(&input.params.username), given(&input.params.group)) {
        (Some(_), Some(_)) => {
            let rule = "give username or group, or neither for all users";
            Err(invalid("group", rule.to_owned()))
        }
        (Some(name), None) => {
            let name = name.parse();
            let name: UserName = name.map_err(|rule| invalid("username", format!("{rule}")))?;
            one(&deps, &input, &name).await
        }
        (None, Some(name)) => {
            let name = name.parse();
            let name: PlainName = name.map_err(|rule| invalid("group", format!("{rule}")))?;
            several(&deps, &actor, &input, Some(&name)).await
        }
        (None, None) => several(&deps, &actor, &input, None).await,
    }
}

async fn one(deps: &Deps, input: &Input<ApplyForm>, name: &UserName) -> Result<Answer<Applied>> {
    let mut tx = input.meta.begin(deps).await?;
    let user = present_user(&mut tx, name).await?;
    let generation =
        object::bump(&mut tx, Kind::AgentConfig, &user.uid, input.if_generation).await?;
    let change = Change::of_config(&user, generation);
    tx.commit(change.about()).await?;
    let done = format!("the files of {} are up to date", user.name);
    let answer = wait::answer(deps, &change, input.wait, done).await?;
    Ok(answer.map(Applied::from))
}

async fn several(
    deps: &Deps,
    actor: &Actor,
    input: &Input<ApplyForm>,
    group: Option<&PlainName>,
) -> Result<Answer<Applied>> {
    if input.if_generation.is_some() {
        let rule =
            "if_generation requires username: the files of several users have no common generation";
        return Err(ApiError::invalid("if_generation", rule));
    }
    let now = deps.clock.now();
    let mut tx = input.meta.begin(deps).await?;
    let by = actor.to_string();
    let (task, total, whose) = match group {
        None => {
            if object::bump_all(&mut tx, Kind::AgentConfig).await? == 0 {
                return Ok(nobody());
            }
            // They get a change at their turn, and not by this.
            held::keep_held(&mut tx).await?;
            let kind = Kind::AgentConfig;
            let created = operation::create_for_all(&mut tx, OPERATION, &by, kind, now).await;
            let (task, total) = created?;
            (task, total, String::new())
        }
        Some(name) => {
            let objects = members(&mut tx, name).await?;
            if objects.is_empty() {
                return Ok(nobody());
            }
            let task = operation::create(&mut tx, OPERATION, &by, &objects, now).await?;
            (task, objects.len() as u64, format!(" of group {name}"))
        }
    };
    let detail = format!("task {task}: {}{whose}", answer::users(total));
    let about = About::whole("config").detail(detail);
    tx.commit(about).await?;
    let progress = wait::settle_operation(deps, &task, input.wait).await;
    let (state, status) = wait::state_of(progress);
    let applied = Applied {
        state,
        changed: None,
        task_id: Some(task),
        total,
        progress: Some(progress),
    };
    let message = format!("configuration apply requested for {}", answer::users(total));
    Ok(Answer::ok(message, applied).status(status))
}

/// Raises the files of the members of a group, and of those below it.
async fn members(
    tx: &mut Audited,
    name: &PlainName,
) -> Result<Vec<(Kind, Uid, String, Generation)>> {
    let group = groups::find(tx, name).await?;
    // As for all of a kind: two of these would wait for each other.
    meta::take_guard(tx, "bulk").await?;
    let mut objects = Vec::new();
    for uid in group::with_descendants(tx, &group.uid).await? {
        let kind = Kind::AgentConfig;
        let Some(row) = object::get(tx, kind, &uid).await? else {
            continue;
        };
        if row.deleted_at.is_none() {
            let generation = object::bump_in_bulk(tx, kind, &uid).await?;
            objects.push((kind, uid, row.name, generation));
        }
    }
    Ok(objects)
}

fn nobody() -> Answer<Applied> {
    let applied = Applied {
        state: State::Converged,
        changed: None,
        task_id: None,
        total: 0,
        progress: None,
    };
    Answer::ok("no users", applied).status(StatusCode::OK)
}
