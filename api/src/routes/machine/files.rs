//! Copies files from and to users' workspaces, through the code that users' own requests take.

use schema::audit::About;
use schema::home::workspace::{FileError, Order};
use schema::ids::UserName;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::find_account;
use crate::answer::{Answer, FileDownload};
use crate::deps::Deps;
use crate::dispatch::OnMachine;
use crate::error::Result;
use crate::files::{Client, refused};
use crate::input::Input;
use crate::route::{Area, Route};
use crate::routes::files::{
    ALL_FILES, Files, Form, Made, make_directory, path, place_files, send_entry,
};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("copy_look", "/api/machine/users/{username}/files", look)
            .title(Area::Files, "Look what is at a path of a workspace")
            .about("On the admin socket only."),
        Route::post(
            "copy_out",
            "/api/machine/users/{username}/files/download",
            download,
        )
        .title(Area::Files, "Copy a file or directory out of a workspace")
        .about("On the admin socket only."),
        Route::post(
            "copy_in",
            "/api/machine/users/{username}/files/upload",
            upload,
        )
        .title(Area::Files, "Copy files into a workspace")
        .about("On the admin socket only.")
        .files(ALL_FILES),
        Route::post(
            "copy_mkdir",
            "/api/machine/users/{username}/files/mkdir",
            mkdir,
        )
        .title(Area::Files, "Make a directory in a workspace")
        .about("On the admin socket only."),
    ]
}

/// An entry of a workspace.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = CopiedEntry)]
pub struct Which {
    /// Owner of the workspace.
    username: UserName,
    /// Its path, relative to the workspace.
    #[serde(default)]
    path: String,
}

/// Kind of the entry at a path.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CopiedEntryKind)]
pub struct Kind {
    /// `directory`, `other`, or null for nothing.
    kind: Option<&'static str>,
}

/// `GET /api/machine/users/{username}/files`.
///
/// # Errors
/// 404 without such a user.
async fn look(_: OnMachine, input: Input<Which>, deps: Deps) -> Result<Answer<Kind>> {
    let account = find_account(&deps, &input.params.username).await?;
    let path = path("path", &input.params.path)?;
    let kind = match deps.files.find(&account).await? {
        None if path.is_top() => Some("directory"),
        None => None,
        Some(workspace) => {
            let work =
                move |_: &Client| workspace.list(&path, Order::default(), "", || true, |_| 0..0);
            match deps.files.run_long(&account, work).await? {
                Ok(_) => Some("directory"),
                Err(FileError::NotFound { .. }) => None,
                Err(FileError::NotADirectory { .. } | FileError::Link { .. }) => Some("other"),
                Err(error) => return Err(refused(error)),
            }
        }
    };
    Ok(Answer::ok("", Kind { kind }))
}

/// `POST /api/machine/users/{username}/files/download`. The audit trail says that it was read, before it is.
///
/// # Errors
/// As `GET /api/files/download`.
async fn download(_: OnMachine, input: Input<Which>, deps: Deps) -> Result<FileDownload> {
    let account = find_account(&deps, &input.params.username).await?;
    // Refused before anything is recorded.
    path("path", &input.params.path)?;
    let tx = input.meta.begin(&deps).await?;
    tx.commit(About::object("workspace", &account.name)).await?;
    send_entry(&account, &input.params.path, &input.meta.headers, &deps).await
}

/// Files to copy.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = CopiedFiles)]
pub struct Copied {
    /// Owner of the workspace.
    username: UserName,
    /// The directory, relative to the workspace.
    #[serde(default)]
    path: String,
    /// Replace files that are there.
    #[serde(default)]
    overwrite: bool,
}

/// `POST /api/machine/users/{username}/files/upload`.
///
/// # Errors
/// As `POST /api/files/upload`.
async fn upload(_: OnMachine, input: Input<Copied>, deps: Deps) -> Result<Answer<Files>> {
    let Copied {
        username,
        path,
        overwrite,
    } = input.params;
    let account = find_account(&deps, &username).await?;
    let form = Form { path, overwrite };
    place_files(account, form, input.received, input.meta, &deps).await
}

/// A directory to make.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = CopiedDirectory)]
pub struct Directory {
    /// Owner of the workspace.
    username: UserName,
    /// The directory that it is to lie in, relative to the workspace.
    #[serde(default)]
    path: String,
    /// Its name.
    name: String,
}

/// `POST /api/machine/users/{username}/files/mkdir`.
///
/// # Errors
/// As `POST /api/files/mkdir`.
async fn mkdir(_: OnMachine, input: Input<Directory>, deps: Deps) -> Result<Answer> {
    let Directory {
        username,
        path,
        name,
    } = input.params;
    let account = find_account(&deps, &username).await?;
    make_directory(account, Made { path, name }, input.meta, &deps).await
}
