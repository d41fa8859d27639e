//! `POST /api/files/upload`: files for the caller's workspace.

use std::collections::BTreeSet;

use schema::home::workspace::WorkspacePath;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::recorded::Change;
use super::{DISK, EXISTS, OTHER_FILE_SYSTEM, QUOTA, failures};
use crate::answer::Answer;
use crate::auth::Account;
use crate::deps::Deps;
use crate::dispatch::OrdinaryUser;
use crate::error::{ApiError, Result};
use crate::input::{FILE, Input, Meta, ReceivedFiles};
use crate::route::{Area, Route};

/// Most bytes of all files of one request.
pub(in crate::routes) const ALL_FILES: u64 = 1024 * 1024 * 1024;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("files_upload", "/api/files/upload", upload)
            .title(Area::Files, "Upload files to my workspace")
            .about(
                "Each part `file` is one, with its name; at most 100 of them, 32 MiB each and 1 GiB together. A file \
                 appears when all of them have arrived: a broken upload leaves nothing. Without `overwrite` nothing is \
                 replaced, and with it only regular files are.",
            )
            .files(ALL_FILES)
            .fails(failures![EXISTS, DISK, QUOTA, OTHER_FILE_SYSTEM]),
    ]
}

/// Where to.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = FilesUpload)]
pub struct Form {
    /// The directory, relative to the workspace; default: its top.
    #[serde(default)]
    #[schema(example = "notes")]
    pub(in crate::routes) path: String,
    /// Replace files that are there.
    #[serde(default)]
    pub(in crate::routes) overwrite: bool,
}

/// A file that was uploaded.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UploadedFile)]
pub struct Uploaded {
    /// Its name.
    #[schema(example = "todo.txt")]
    name: String,
    /// Its path, relative to the workspace.
    #[schema(example = "notes/todo.txt")]
    path: String,
    /// Its length in bytes.
    #[schema(example = 120)]
    size: u64,
}

/// Files that were uploaded.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UploadedFiles)]
pub struct Files {
    /// In the order in which they were sent.
    files: Vec<Uploaded>,
}

/// `POST /api/files/upload`.
///
/// # Errors
/// 400 without a file, 409 when something is in the way, 413 for what is too long, 507 when there is no space.
async fn upload(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Form>,
    deps: Deps,
) -> Result<Answer<Files>> {
    let Input {
        params,
        received,
        meta,
        ..
    } = input;
    place_files(session.account, params, received, meta, &deps).await
}

/// Gives what was received its names in the workspace of `account`.
///
/// # Errors
/// As the route.
pub(in crate::routes) async fn place_files(
    account: Account,
    form: Form,
    mut received: ReceivedFiles,
    meta: Meta,
    deps: &Deps,
) -> Result<Answer<Files>> {
    let directory = super::path("path", &form.path)?;
    let overwrite = form.overwrite;
    let room = received.room.take();
    if received.files.is_empty() {
        let rule = format!("{FILE} is required: one or more files, as multipart/form-data");
        return Err(ApiError::invalid(FILE, rule));
    }
    let mut names = BTreeSet::new();
    let mut paths: Vec<WorkspacePath> = Vec::with_capacity(received.files.len());
    let mut files = Vec::with_capacity(received.files.len());
    let mut bytes = 0;
    for file in &received.files {
        let name = file.name.clone().unwrap_or_default();
        let path = directory
            .join(&name)
            .map_err(|rule| ApiError::invalid(FILE, rule.to_string()))?;
        if !names.insert(name.clone()) {
            let rule = format!("{FILE}: two files have the name {name:?}");
            return Err(ApiError::invalid(FILE, rule));
        }
        let size = file.received.length();
        bytes += size;
        files.push(Uploaded {
            name,
            path: path.to_string(),
            size,
        });
        paths.push(path);
    }
    let message = match files.as_slice() {
        [file] => format!("uploaded {:?}", file.path),
        files => format!("uploaded {} files", files.len()),
    };
    let detail = format!("files: {}, bytes: {bytes}", files.len());
    let change = Change {
        subject: (directory, paths, received, overwrite),
        check: |workspace, (directory, paths, _, overwrite)| {
            workspace.can_place_all(directory, paths, *overwrite)
        },
        make: |workspace, (directory, paths, received, overwrite)| {
            let files = received.files.iter().map(|file| &file.received);
            workspace.place_all(directory, paths.iter().zip(files), *overwrite)
        },
        removes: false,
        detail,
        room,
    };
    change.make(deps, account, meta).await?;
    Ok(Answer::ok(message, Files { files }))
}
