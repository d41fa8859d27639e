//! The files of a user's own workspace.
//!
//! No other part of the API works on files: these have no desired state, and there is nobody to reconcile them. Everything
//! goes through the caller's own [`Workspace`], which cannot be left.

mod change;
mod download;
mod edit;
mod list;
#[cfg(test)]
pub(in crate::routes) mod tests;
mod upload;

use schema::audit::About;
use schema::home::workspace::{FileError, Workspace, WorkspacePath};

use schema::usage;

use crate::deps::Deps;
use crate::dispatch::Session;
use crate::error::{ApiError, Result};
use crate::files::refused;
use crate::input::Meta;
use crate::quota::Room;
use crate::route::{Failure, Route};

const NO_ENTRY: Failure = Failure(404, "not_found", "there is nothing at the path");
const EXISTS: Failure = Failure(409, "already_exists", "something is there already");
const NOT_A_DIRECTORY: Failure = Failure(
    409,
    "not_a_directory",
    "something that should be a directory is not one",
);
const NOT_A_FILE: Failure = Failure(409, "not_a_file", "it is not a regular file");
const LINK: Failure = Failure(
    409,
    "symbolic_link",
    "a symbolic link stands in the path; links are not followed",
);
const PERMISSION: Failure = Failure(
    409,
    "no_permission",
    "the agent has changed permissions so that the service may not do it",
);
const MEANWHILE: Failure = Failure(
    409,
    "changed_meanwhile",
    "the agent has changed it during the request",
);
const OTHER_FILE_SYSTEM: Failure = Failure(
    409,
    "other_file_system",
    "it lies on another file system than the workspace",
);
const DISK: Failure = Failure(507, "disk_full", "the disk has no space left");
const QUOTA: Failure = Failure(
    507,
    "quota_exceeded",
    "the user's workspace would take more than `files.quota_mb`",
);

/// What every route here may fail with.
macro_rules! failures {
    ($($more:expr),* $(,)?) => {
        &[
            crate::routes::files::NO_ENTRY,
            crate::routes::files::NOT_A_DIRECTORY,
            crate::routes::files::NOT_A_FILE,
            crate::routes::files::LINK,
            crate::routes::files::PERMISSION,
            crate::routes::files::MEANWHILE,
            crate::route::Failure::BUSY,
            $($more),*
        ]
    };
}
use failures;

/// The routes of this area.
pub(super) fn routes() -> Vec<Route> {
    let files = [
        list::routes(),
        upload::routes(),
        download::routes(),
        change::routes(),
        edit::routes(),
    ];
    files.into_iter().flatten().collect()
}

/// Reads a path; `field` is what the request calls it.
fn path(field: &str, text: &str) -> Result<WorkspacePath> {
    text.parse::<WorkspacePath>()
        .map_err(|rule| ApiError::invalid(field, rule.to_string()))
}

/// Changes something in the caller's workspace, and records that in the audit trail: what was done and how much, but not
/// with which of the user's files. What it takes of `room` is kept. Once begun it goes on to its end, also when the client is gone.
async fn change<T: Send + 'static>(
    deps: &Deps,
    session: Session,
    meta: Meta,
    room: Option<Room>,
    detail: String,
    work: impl FnOnce(&Workspace) -> Result<T, FileError> + Send + 'static,
) -> Result<T> {
    let place = deps.files.enter(&session.account)?;
    let workspace = deps.files.open(&session.account).await?;
    // Nothing is changed that cannot be recorded.
    drop(deps.db.read().await?);
    let task_deps = Deps::clone(deps);
    let changing = deps.tasks.spawn(async move {
        let deps = &task_deps;
        let done = deps.files.run_long(place, move || work(&workspace)).await?;
        let detail = match &done {
            Ok(_) => detail,
            Err(FileError::Partly(_)) if detail.is_empty() => "not completed".to_owned(),
            Err(FileError::Partly(_)) => format!("{detail}; not completed"),
            Err(_) => return done.map_err(refused),
        };
        if let Some(room) = room {
            room.keep();
        }
        record(deps, &session, &meta, detail).await?;
        done.map_err(refused)
    });
    changing.await.map_err(ApiError::internal)?
}

async fn record(deps: &Deps, session: &Session, meta: &Meta, detail: String) -> Result<()> {
    let mut tx = meta.begin(deps).await?;
    usage::changed(&mut tx, &session.account.uid).await?;
    let about = About::object("workspace", &session.account.name).detail(detail);
    tx.commit(about).await?;
    Ok(())
}
