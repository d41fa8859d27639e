//! Operations: requests that touch many objects, and how far they are.

use schema::error::DbError;
use schema::ids::Timestamp;
use schema::operation::{self, Operation, Progress, Target, TargetState};
use serde::{Deserialize, Serialize};

use super::page::{Window, with_page};
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::ApiError;
use crate::input::{DEFAULT_PAGE_SIZE, Input, Nothing, Paging};
use crate::reply::Reply;

/// Objects shown of one operation in the list, those that need a person first.
const MAX_RESULTS: usize = 200;

/// An operation as clients poll it.
#[derive(Debug, Serialize)]
struct Status {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(flatten)]
    progress: Progress,
    message: String,
    started_at: Option<Timestamp>,
    /// When the last of its objects got there; absent while one is under way.
    finished_at: Option<Timestamp>,
}

impl Status {
    fn new(operation: Operation, targets: &[Target]) -> Self {
        let progress = operation::progress(targets);
        let under_way = progress.pending + progress.running > 0;
        let started_at = operation.created_at;
        let last = targets.iter().filter_map(|target| target.since).max();
        let finished_at = last.map_or(started_at, |last| last.max(started_at));
        Self {
            id: operation.id,
            kind: operation.kind,
            message: message(progress, under_way),
            progress,
            started_at: Some(started_at),
            finished_at: (!under_way).then_some(finished_at),
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

fn message(progress: Progress, under_way: bool) -> String {
    let Progress {
        total,
        done,
        failed,
        ..
    } = progress;
    let state = if under_way { "under way" } else { "finished" };
    format!("{state}: {done} of {total} done, {failed} failed")
}

/// Which operation.
#[derive(Debug, Deserialize)]
pub struct Which {
    task_id: Option<String>,
}

/// `GET /api/admin/task/status`: the newest operation, or the one named; a bare resource.
///
/// # Errors
/// 404 without such an operation.
pub async fn status(_: Superadmin, input: Input<Which>, deps: Deps) -> Result<Reply, ApiError> {
    let mut connection = deps.db.snapshot().await?;
    let operation = match input.params.task_id.filter(|id| !id.is_empty()) {
        Some(id) => Some(
            operation::get(&mut connection, &id)
                .await?
                .ok_or_else(|| ApiError::not_found("this task"))?,
        ),
        None => operation::list(&mut connection, 1, 0).await?.0.pop(),
    };
    let status = match operation {
        Some(operation) => {
            let targets = operation::targets(&mut connection, &operation.id).await?;
            Status::new(operation, &targets)
        }
        None => Status::idle(),
    };
    Ok(Reply::resource(&status))
}

/// An operation with what became of its objects.
#[derive(Debug, Serialize)]
struct Task {
    #[serde(flatten)]
    status: Status,
    actor: String,
    results: Vec<Target>,
    /// There are more objects than are shown.
    results_truncated: bool,
}

impl Task {
    fn new(operation: Operation, mut targets: Vec<Target>) -> Self {
        let actor = operation.actor.clone();
        let status = Status::new(operation, &targets);
        let results_truncated = targets.len() > MAX_RESULTS;
        targets.sort_by_key(|target| urgency(target.state));
        targets.truncate(MAX_RESULTS);
        Self {
            status,
            actor,
            results: targets,
            results_truncated,
        }
    }
}

fn urgency(state: TargetState) -> u8 {
    match state {
        TargetState::Failed => 0,
        TargetState::Running => 1,
        TargetState::Pending => 2,
        TargetState::Done => 3,
    }
}

/// `GET /api/admin/tasks`: operations, newest first, with their results. Always one page, since
/// operations only grow in number.
///
/// # Errors
/// Only when the database fails.
pub async fn list(_: Superadmin, input: Input<Nothing>, deps: Deps) -> Result<Reply, ApiError> {
    let first = Paging {
        page: 1,
        page_size: DEFAULT_PAGE_SIZE,
        search: String::new(),
    };
    let paging = Some(input.paging.as_ref().unwrap_or(&first));
    let (tasks, total) = read(&deps, paging).await?;
    let reply = Reply::ok("operations, newest first").with("tasks", tasks);
    Ok(with_page(reply, paging, total))
}

async fn read(deps: &Deps, paging: Option<&Paging>) -> Result<(Vec<Task>, i64), DbError> {
    let mut connection = deps.db.snapshot().await?;
    let window = Window::of(paging);
    let (mut operations, total) =
        operation::list(&mut connection, window.limit, window.offset).await?;
    if let Some(last) = window.corrected(paging, total) {
        (operations, _) = operation::list(&mut connection, last.limit, last.offset).await?;
    }
    let mut tasks = Vec::with_capacity(operations.len());
    for operation in operations {
        let targets = operation::targets(&mut connection, &operation.id).await?;
        tasks.push(Task::new(operation, targets));
    }
    Ok((tasks, total))
}

#[cfg(test)]
mod tests;
