//! Making, moving and removing entries of the caller's workspace.

use schema::home::workspace::Workspace;
use serde::Deserialize;
use utoipa::ToSchema;

use super::recorded::Change;
use super::{DISK, EXISTS, OTHER_FILE_SYSTEM, failures, path};
use crate::answer::Answer;
use crate::auth::Account;
use crate::deps::Deps;
use crate::dispatch::OrdinaryUser;
use crate::error::{ApiError, Result};
use crate::input::{Input, Meta};
use crate::route::{Area, Route};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("files_mkdir", "/api/files/mkdir", mkdir)
            .title(Area::Files, "Make a directory in my workspace")
            .about("The one that it lies in must be there.")
            .fails(failures![EXISTS, DISK]),
        Route::post("files_move", "/api/files/move", rename)
            .title(
                Area::Files,
                "Move or rename a file or directory of my workspace",
            )
            .about("Nothing is replaced.")
            .fails(failures![EXISTS, DISK, OTHER_FILE_SYSTEM]),
    ]
}

/// Which directory to make.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = FilesMkdir)]
pub struct Made {
    /// The directory that it is to lie in, relative to the workspace; default: its top.
    #[serde(default)]
    #[schema(example = "notes")]
    pub(in crate::routes) path: String,
    /// Its name.
    #[schema(example = "2026")]
    pub(in crate::routes) name: String,
}

/// `POST /api/files/mkdir`.
///
/// # Errors
/// 404 without the directory that it is to lie in, 409 when something is there.
async fn mkdir(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Made>,
    deps: Deps,
) -> Result<Answer> {
    make_directory(session.account, input.params, input.meta, &deps).await
}

/// Makes a directory in the workspace of `account`.
///
/// # Errors
/// As the route.
pub(in crate::routes) async fn make_directory(
    account: Account,
    params: Made,
    meta: Meta,
    deps: &Deps,
) -> Result<Answer> {
    let made = path("path", &params.path)?
        .join(&params.name)
        .map_err(|rule| ApiError::invalid("name", rule.to_string()))?;
    let message = format!("made {:?}", made.as_str());
    let change = Change {
        subject: made,
        check: Workspace::can_make_directory,
        make: Workspace::make_directory,
        removes: false,
        detail: String::new(),
        room: None,
    };
    change.make(deps, account, meta).await?;
    Ok(Answer::plain(message))
}

/// What to move where.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = FilesMove)]
pub struct Moved {
    /// What is there, relative to the workspace.
    #[schema(example = "notes/todo.txt")]
    from: String,
    /// The path that it is to have.
    #[schema(example = "notes/done.txt")]
    to: String,
}

/// `POST /api/files/move`.
///
/// # Errors
/// 404 when there is nothing to move, 409 when something is where it is to be.
async fn rename(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Moved>,
    deps: Deps,
) -> Result<Answer> {
    let (from, to) = (
        path("from", &input.params.from)?,
        path("to", &input.params.to)?,
    );
    for (field, path) in [("from", &from), ("to", &to)] {
        if path.is_top() {
            let rule = format!("{field} is not the top of the workspace");
            return Err(ApiError::invalid(field, rule));
        }
    }
    let message = format!("moved {:?} to {:?}", from.as_str(), to.as_str());
    let change = Change {
        subject: (from, to),
        check: |workspace, (from, to)| workspace.can_rename(from, to),
        make: |workspace, (from, to)| workspace.rename(from, to),
        removes: false,
        detail: String::new(),
        room: None,
    };
    change.make(&deps, session.account, input.meta).await?;
    Ok(Answer::plain(message))
}
