//! The files of a user's own workspace.
//!
//! No other part of the API works on files: these have no desired state, and there is nobody to reconcile them. Everything
//! goes through the caller's own `Workspace`, which cannot be left.

mod change;
mod download;
mod edit;
mod file_bytes;
mod list;
mod recorded;
#[cfg(test)]
pub(in crate::routes) mod tests;
mod trash;
mod upload;

pub(in crate::routes) use change::{Made, make_directory};
pub(in crate::routes) use download::send_entry;
pub(in crate::routes) use file_bytes::file_bytes;
pub(in crate::routes) use upload::{ALL_FILES, Files, Form, place_files};

use schema::home::workspace::WorkspacePath;

use crate::error::{ApiError, Result};
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
    "the user's directory takes as much as `files.quota_mb` or `files.quota_files` allows, or would take more",
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
        trash::routes(),
        edit::routes(),
    ];
    files.into_iter().flatten().collect()
}

/// Reads a path; `field` is what the request calls it.
pub(in crate::routes) fn path(field: &str, text: &str) -> Result<WorkspacePath> {
    text.parse::<WorkspacePath>()
        .map_err(|rule| ApiError::invalid(field, rule.to_string()))
}
