//! Operations: requests that touch many objects, and how far they are.

use schema::audit::About;
use schema::db::Tx;
use schema::error::DbError;
use schema::ids::{Generation, Timestamp};
use schema::image;
use schema::operation::{self, Count, Operation, Progress, Target, TargetState};
use schema::rollout::{Phase, RolloutKind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::config;
use super::images::{self, Noted};
use super::page::{Page, read_page};
use crate::answer::{Answer, Resource};
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::{Input, Nothing};
use crate::route::{Area, Failure, Route, Tokens};
use crate::wait::{Change, Changed, State};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("task_status", "/api/admin/task/status", status)
.tokens(Tokens::Read)
            .title(Area::Operators, "Get the progress of a task")
            .about(
                "Without envelope. An object is done or failed once its reconciler has observed that, whatever becomes of \
                 it later; a paused rollout says `paused`.",
            )
            .fails(&[Failure(404, "not_found", "no such task")]),
        Route::get("tasks", "/api/admin/tasks", list)
.tokens(Tokens::Read)
            .title(Area::Operators, "List tasks")
            .about("Newest first, always one page; each with the results of at most 200 of its objects.")
            .paged(),
        Route::post("task_cancel", "/api/admin/task/cancel", cancel)
.tokens(Tokens::Admin)
            .title(Area::Operators, "Cancel a task")
            .about(
                "A rollout moves no further users, and a pull is cancelled; `converged` means \
                 that the reconciler has observed it. A task of type `config_apply` ends at once: \
                 users it has not reached count as cancelled. The configuration \
                 stays as it is, and reconciliation still brings it to them.",
            )
            .waits()
            .guarded()
            .fails(&[
                Failure(404, "not_found", "no such task"),
                Failure(
                    409,
                    "not_cancellable",
                    "tasks of this type cannot be cancelled",
                ),
                Failure(409, "wrong_state", "the task has ended"),
                Failure::IMAGE_REMOVED,
            ]),
    ]
}

/// Objects shown of one operation in the list, those that need a person first.
const MAX_RESULTS: i64 = 200;

/// A task's progress.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskStatus)]
pub struct Status {
    /// Empty when there never was a task.
    id: String,
    /// Empty when there never was a task.
    #[serde(rename = "type")]
    #[schema(example = "batch_create")]
    kind: String,
    #[serde(flatten)]
    progress: Progress,
    /// How far it is, as a sentence.
    #[schema(example = "under way: 3 of 10 done, 0 failed")]
    message: String,
    /// When it was requested.
    started_at: Option<Timestamp>,
    /// When the last of its objects was done, or the rollout ended; absent before.
    finished_at: Option<Timestamp>,
}

impl Status {
    fn new(operation: Operation, count: Count) -> Self {
        let started_at = operation.created_at;
        let last = operation.cancelled_at.or(count.since);
        let finished_at = last.map_or(started_at, |last| last.max(started_at));
        Self {
            message: message(&operation, &count),
            id: operation.id,
            kind: operation.kind,
            progress: count.progress,
            started_at: Some(started_at),
            finished_at: count.ended.then_some(finished_at),
        }
    }

    /// When there never was an operation.
    fn idle() -> Self {
        Self {
            id: String::new(),
            kind: String::new(),
            progress: Progress::default(),
            message: "idle".to_owned(),
            started_at: None,
            finished_at: None,
        }
    }
}

fn message(operation: &Operation, count: &Count) -> String {
    let Progress {
        total,
        done,
        failed,
        cancelled,
        ..
    } = count.progress;
    let was_cancelled = operation.cancelled_at.is_some() || count.phase == Some(Phase::Cancelled);
    let state = match (count.ended, count.phase) {
        (true, _) if was_cancelled => "cancelled",
        (true, _) => "finished",
        (false, Some(Phase::Paused)) => "paused",
        (false, _) => "under way",
    };
    let mut message = format!("{state}: {done} of {total} done, {failed} failed");
    if cancelled > 0 {
        message = format!("{message}, {cancelled} cancelled");
    }
    message
}

/// Which operation.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Which {
    /// Its id; default: the newest task.
    task_id: Option<String>,
}

/// `GET /api/admin/task/status`: the newest operation, or the one named; a bare resource.
///
/// # Errors
/// 404 without such an operation.
async fn status(_: Superadmin, input: Input<Which>, deps: Deps) -> Result<Resource<Status>> {
    let mut connection = deps.db.snapshot().await?;
    let operation = match input.params.task_id.filter(|id| !id.is_empty()) {
        Some(id) => Some(
            operation::get(&mut connection, &id)
                .await?
                .ok_or_else(|| ApiError::not_found("task"))?,
        ),
        None => operation::list(&mut connection, 1, 0).await?.0.pop(),
    };
    let status = match operation {
        Some(operation) => {
            let count = operation::count(&mut connection, &operation).await?;
            Status::new(operation, count)
        }
        None => Status::idle(),
    };
    Ok(Resource::new(&status))
}

/// A task with the results of its objects.
#[derive(Debug, Serialize, ToSchema)]
pub struct Task {
    #[serde(flatten)]
    status: Status,
    /// Who requested it.
    #[schema(example = "admin")]
    actor: String,
    /// The results, those that need manual action first.
    results: Vec<Target>,
    /// More objects exist than are shown.
    results_truncated: bool,
}

impl Task {
    fn new(operation: Operation, count: Count, results: Vec<Target>) -> Self {
        Self {
            actor: operation.actor.clone(),
            results_truncated: count.progress.total > results.len(),
            status: Status::new(operation, count),
            results,
        }
    }
}

/// Operations, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct Tasks {
    tasks: Vec<Task>,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/tasks`: operations, newest first, with their results. Always one page, since
/// operations only grow in number.
///
/// # Errors
/// Only when the database fails.
async fn list(_: Superadmin, input: Input<Nothing>, deps: Deps) -> Result<Answer<Tasks>> {
    let paging = input.paging.unwrap_or_default();
    let paging = Some(&paging);
    let mut snapshot = deps.db.snapshot().await?;
    let (operations, page) = read_page!(paging, window => {
        operation::list(&mut snapshot, window.limit, window.offset)
    });
    let mut tasks = Vec::with_capacity(operations.len());
    for operation in operations {
        let count = operation::count(&mut snapshot, &operation).await?;
        let results = operation::targets(&mut snapshot, &operation, MAX_RESULTS).await?;
        tasks.push(Task::new(operation, count, results));
    }
    Ok(Answer::ok("tasks, newest first", Tasks { tasks, page }))
}

/// Which operation to cancel.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Ended {
    /// The id of the task.
    #[schema(example = "01970a3e6f0c7d3b8a5b6b1d2c3e4f50")]
    task_id: String,
}

/// The result of a cancellation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskCancelled)]
pub struct Cancelled {
    /// How far the cancellation is.
    state: State,
    /// The rollout or image whose reconciler observes it.
    #[serde(flatten)]
    changed: Option<Changed>,
    /// The progress of a task over many objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
}

impl From<Noted> for Cancelled {
    fn from(Noted { state, changed }: Noted) -> Self {
        Self {
            state,
            changed: Some(changed),
            progress: None,
        }
    }
}

/// `POST /api/admin/task/cancel`: a rollout moves no further users, a pull is cancelled. A `config_apply` ends as it
/// is; what it has not reached counts as cancelled, and ordinary passes still bring it there.
///
/// # Errors
/// 404 without such an operation; 409 `not_cancellable` for one of another kind, `wrong_state` when it
/// has ended; 412 for a stale `if_generation`.
async fn cancel(_: Superadmin, input: Input<Ended>, deps: Deps) -> Result<Answer<Cancelled>> {
    let id = input.params.task_id.as_str();
    let mut tx = input.meta.begin(&deps).await?;
    let operation = operation::get(&mut tx, id).await?;
    let operation = operation.ok_or_else(|| ApiError::not_found("task"))?;
    let change = match (operation.kind.parse::<RolloutKind>(), &*operation.kind) {
        (Ok(_), _) => images::cancel_rollout(&mut tx, id, input.if_generation).await?,
        (Err(_), "pull") => {
            let now = deps.clock.now();
            cancel_pull(&mut tx, &operation, input.if_generation, now).await?
        }
        (Err(_), config::apply::OPERATION) => {
            if input.if_generation.is_some() {
                let rule = "if_generation is of no use here: a config_apply is no object";
                return Err(ApiError::invalid("if_generation", rule));
            }
            let count = operation::cancel(&mut tx, &operation, deps.clock.now()).await?;
            let about = About::whole("config").detail(format!("task {id}"));
            tx.commit(about).await?;
            return Ok(ended(count.progress));
        }
        (Err(_), kind) => {
            let message = format!("tasks of type {kind} cannot be cancelled");
            return Err(ApiError::conflict("not_cancellable", message));
        }
    };
    tx.commit(change.about()).await?;
    let done = "task cancelled".to_owned();
    let answer = images::noted(&deps, &change, input.wait, done).await?;
    Ok(answer.map(Cancelled::from))
}

fn ended(progress: Progress) -> Answer<Cancelled> {
    let cancelled = Cancelled {
        state: State::Converged,
        changed: None,
        progress: Some(progress),
    };
    Answer::ok(
        "task cancelled; the configuration stays as it is, and reconciliation still brings it to the users that the task has not reached",
        cancelled,
    )
}

async fn cancel_pull(
    tx: &mut Tx,
    operation: &Operation,
    expected: Option<Generation>,
    now: Timestamp,
) -> Result<Change> {
    let mut targets = operation::targets(tx, operation, 1).await?.into_iter();
    let target = targets.next().ok_or(DbError::NotFound("task's image"))?;
    let ended = || ApiError::from(DbError::WrongState("the pull has ended"));
    let reference = target.object.strip_prefix("image/").ok_or_else(ended)?;
    // It may have been taken back, or deleted: only its row knows whether it still is desired.
    let row = image::find(tx, reference).await?;
    let has_ended = matches!(target.state, TargetState::Done | TargetState::Failed);
    if has_ended || !row.as_ref().is_some_and(images::is_open_pull) {
        return Err(ended());
    }
    images::cancel_pull(tx, reference, expected, now).await
}

#[cfg(test)]
mod tests;
