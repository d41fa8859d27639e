//! Deleting entries of the caller's workspace, and bringing them back.

use schema::home::workspace::{Restoration, TRASH_KEPT, Trashed, Workspace, WorkspacePath};
use schema::ids::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::recorded::Change;
use super::{DISK, EXISTS, OTHER_FILE_SYSTEM, failures, path};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::OrdinaryUser;
use crate::error::{ApiError, Result};
use crate::files::{Client, refused};
use crate::input::{Input, Nothing};
use crate::route::{Area, Route};
use crate::routes::images::size_text;
use crate::routes::page::{self, Page};
use crate::routes::params::given;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("files_delete", "/api/files/delete", delete)
            .title(Area::Files, "Delete a file or directory of my workspace")
            .about(
                "With everything in it. It goes to the trash (`.trash` in the workspace), from where it can be brought back \
                 for 7 days; it counts to the quota until then. With `permanent`, which the trash itself and its entries require, it is removed at once.",
            )
            .fails(failures![DISK, OTHER_FILE_SYSTEM]),
        Route::get("files_trash", "/api/files/trash", list)
            .title(Area::Files, "List the trash of my workspace")
            .about("Newest first, at most 1,000 entries. `search` matches paths.")
            .paged()
            .fails(failures![]),
        Route::post("files_restore", "/api/files/restore", restore)
            .title(Area::Files, "Bring back what was deleted")
            .about(
                "To where it was, or to another path; directories on the way are made, and nothing is replaced.",
            )
            .fails(failures![EXISTS, DISK, OTHER_FILE_SYSTEM]),
    ]
}

/// Path to delete.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = FilesDelete)]
pub struct Deletion {
    /// Its path, relative to the workspace; `.trash/<id>` for an entry of the trash.
    #[schema(example = "notes/todo.txt")]
    path: String,
    /// Remove it at once, with no way back; required for the trash (`.trash`) and its entries.
    #[serde(default)]
    permanent: bool,
}

/// Deleted entry.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FilesDeleted)]
pub struct Deleted {
    /// Names it in the trash; null when it was removed at once.
    #[schema(required = true, example = "20260511T114640Z")]
    trash_id: Option<String>,
}

/// `POST /api/files/delete`.
///
/// # Errors
/// 400 for the top of the workspace, and for the trash without `permanent`; 404 without such an entry.
async fn delete(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Deletion>,
    deps: Deps,
) -> Result<Answer<Deleted>> {
    let path = path("path", &input.params.path)?;
    let shown = format!("{:?}", path.as_str());
    let trash_id = match input.params.permanent {
        true => {
            let change = Change {
                subject: path,
                check: Workspace::can_remove,
                make: |workspace, path| workspace.remove_for_good(path).map(|()| None),
                removes: true,
                detail: "permanent".to_owned(),
                room: None,
            };
            change.make(&deps, session.account, input.meta).await?
        }
        false => {
            let change = Change {
                subject: (path, deps.clock.now()),
                check: Workspace::can_discard,
                make: |workspace: &Workspace, subject: &(WorkspacePath, Timestamp)| {
                    workspace.discard(subject).map(Some)
                },
                // The trash may hold many entries.
                removes: true,
                detail: String::new(),
                room: None,
            };
            change.make(&deps, session.account, input.meta).await?
        }
    };
    let message = match &trash_id {
        Some(_) => format!("deleted {shown}; it can be brought back for 7 days"),
        None => format!("deleted {shown} for good"),
    };
    Ok(Answer::ok(message, Deleted { trash_id }))
}

/// Something in the trash.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TrashEntry)]
struct Item {
    /// Names it.
    #[schema(example = "20260511T114640Z")]
    id: String,
    /// Its name.
    #[schema(example = "todo.txt")]
    name: String,
    /// Where it was, relative to the workspace; null if the agent has changed that.
    #[schema(required = true, example = "notes/todo.txt")]
    path: Option<String>,
    /// True for a directory.
    is_dir: bool,
    /// Length in bytes; 0 for everything but files.
    #[schema(example = 120)]
    size: u64,
    /// The same for people.
    #[schema(example = "120 B")]
    size_str: String,
    /// Time of deletion.
    deleted_at: Timestamp,
    /// From when on it is removed for good.
    removed_after: Timestamp,
}

impl From<Trashed> for Item {
    fn from(trashed: Trashed) -> Self {
        let entry = trashed.entry;
        Self {
            id: trashed.id,
            path: trashed.path.map(|path| path.to_string()),
            is_dir: entry.kind == schema::home::workspace::EntryType::Directory,
            size: entry.size,
            size_str: size_text(entry.size),
            name: entry.name,
            deleted_at: trashed.deleted_at,
            removed_after: trashed.deleted_at.plus(TRASH_KEPT),
        }
    }
}

/// The trash.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Trash)]
pub struct Listing {
    entries: Vec<Item>,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/files/trash`.
///
/// # Errors
/// None of its own.
async fn list(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Nothing>,
    deps: Deps,
) -> Result<Answer<Listing>> {
    let found = match deps.files.find(&session.account).await? {
        None => Vec::new(),
        Some(workspace) => {
            let work = move |_: &Client| workspace.list_trash();
            let found = deps.files.run_long(&session.account, work).await?;
            found.map_err(refused)?
        }
    };
    let items = found.into_iter().map(Item::from).collect();
    let (entries, page) = page::cut(items, input.paging.as_ref(), |item: &Item, search| {
        let path = item.path.as_ref().unwrap_or(&item.name);
        path.to_lowercase().contains(search)
    });
    Ok(Answer::ok(
        "the trash, newest first",
        Listing { entries, page },
    ))
}

/// Entry to restore.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = FilesRestore)]
pub struct Restore {
    /// The entry of the trash.
    #[schema(example = "20260511T114640Z")]
    id: String,
    /// The path that it is to have; default: where it was, or its name at the top if that is not known.
    #[schema(example = "notes/todo.txt")]
    to: Option<String>,
}

/// Restored entry.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FilesRestored)]
pub struct Restored {
    /// Where it is, relative to the workspace.
    #[schema(example = "notes/todo.txt")]
    path: String,
}

/// `POST /api/files/restore`.
///
/// # Errors
/// 404 without such an entry, 409 when something is where it is to be.
async fn restore(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Restore>,
    deps: Deps,
) -> Result<Answer<Restored>> {
    let Restore { id, to } = input.params;
    let to = given(&to).map(|to| path("to", to)).transpose()?;
    if to.as_ref().is_some_and(WorkspacePath::is_top) {
        return Err(ApiError::invalid(
            "to",
            "to is not the top of the workspace",
        ));
    }
    let change = Change {
        subject: Restoration { id, to },
        check: Workspace::can_restore,
        make: Workspace::restore,
        removes: false,
        detail: String::new(),
        room: None,
    };
    let path = change.make(&deps, session.account, input.meta).await?;
    let message = format!("brought back {:?}", path.as_str());
    let path = path.to_string();
    Ok(Answer::ok(message, Restored { path }))
}
