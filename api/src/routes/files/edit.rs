//! Text files, read and saved as a whole.

use schema::home::workspace::WorkspacePath;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::recorded::Change;
use super::{DISK, QUOTA, failures, path};
use crate::answer::Answer;
use crate::auth::Account;
use crate::deps::Deps;
use crate::dispatch::OrdinaryUser;
use crate::error::{ApiError, Result};
use crate::files::refused;
use crate::input::{Input, has_crlf_only};
use crate::quota::Room;
use crate::route::{Area, Failure, Route};

/// The largest body that is taken, in bytes: the text, and how a form writes it.
const BODY: u64 = 4 * 1024 * 1024;

const NOT_TEXT: Failure = Failure(
    415,
    "unsupported_media_type",
    "the file is not UTF-8 text of at most 1 MiB",
);
const STALE: Failure = Failure(
    412,
    "stale_file",
    "the file is not the one with this `etag`",
);

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("files_edit", "/api/files/edit", read)
            .title(Area::Files, "Read my text file")
            .about("Whether a file is text is decided by what is in it: UTF-8 of at most 1 MiB.")
            .fails(failures![NOT_TEXT]),
        Route::post("files_edit_save", "/api/files/edit", save)
            .title(Area::Files, "Save my text file")
            .about(
                "Whoever reads it sees the old or the new text. With `etag`, it is saved only while it is still the \
                 file that was read. A file that is not there is made. In multipart/form-data, where browsers write line feeds as CRLF, a \
                 text with CRLF alone is saved with line feeds, unless the file has CRLF already.",
            )
            .body_limit(BODY)
            .fails(failures![NOT_TEXT, STALE, DISK, QUOTA]),
    ]
}

/// Which file.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = FilesEdit)]
pub struct Which {
    /// Its path, relative to the workspace.
    #[schema(example = "notes/todo.txt")]
    path: String,
}

/// A text file.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TextFile)]
pub struct TextFile {
    /// Its name.
    #[schema(example = "todo.txt")]
    filename: String,
    /// Its path, relative to the workspace.
    #[schema(example = "notes/todo.txt")]
    path: String,
    /// What is in it.
    #[schema(example = "buy bread")]
    content: String,
    /// Names this state of the file.
    #[schema(example = "1a2b-9-18ae1f2f5c3d0000")]
    etag: String,
}

/// `GET /api/files/edit`.
///
/// # Errors
/// 404 without such a file, 415 when it is not text.
async fn read(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Which>,
    deps: Deps,
) -> Result<Answer<TextFile>> {
    let path = path("path", &input.params.path)?;
    let workspace = deps.files.find(&session.account).await?;
    let workspace = workspace.ok_or_else(|| ApiError::not_found(format!("{:?}", path.as_str())))?;
    let (work_path, work_space) = (path.clone(), workspace);
    let read = deps
        .files
        .run(&session.account, move || work_space.read_text(&work_path));
    let text = read.await?.map_err(refused)?;
    let file = TextFile {
        filename: path.name().to_owned(),
        path: path.to_string(),
        content: String::new(),
        etag: text.etag,
    };
    Ok(Answer::ok("", file).with_long_text("content", text.content))
}

/// A text to be saved.
#[derive(Deserialize, ToSchema)]
#[schema(as = FilesEditSave)]
pub struct Edited {
    /// The file, relative to the workspace.
    #[schema(example = "notes/todo.txt")]
    path: String,
    /// What is to be in it.
    #[schema(example = "buy bread")]
    content: String,
    /// The state of the file that was read; default: whatever it is.
    #[schema(example = "1a2b-9-18ae1f2f5c3d0000")]
    etag: Option<String>,
}

/// The new state of a file.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SavedTextFile)]
pub struct Saved {
    /// Names it.
    #[schema(example = "1a2b-9-18ae1f2f5c3d0000")]
    etag: String,
}

/// `POST /api/files/edit`.
///
/// # Errors
/// 412 when the file has changed, 415 for a text that is too long.
async fn save(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Edited>,
    deps: Deps,
) -> Result<Answer<Saved>> {
    let Edited {
        path: text,
        content,
        etag,
    } = input.params;
    let path = path("path", &text)?;
    let content = match input.had_crlf {
        true => keep_line_ends(&deps, &session.account, &path, content).await?,
        false => content,
    };
    let note = match input.had_crlf && !content.contains('\r') {
        true => "; its CRLF line ends were saved as line feeds",
        false => "",
    };
    let etag_given = etag.filter(|etag| !etag.is_empty());
    let message = format!("saved {:?}{note}", path.as_str());
    let detail = format!("bytes: {}", content.len());
    let mut room = Room::of(&deps, &session.account.uid).await?;
    if let Some(room) = &mut room {
        // What it replaces becomes free.
        let (found, replaced) = (deps.files.find(&session.account).await?, path.clone());
        let old = move || Some(found?.open_file(&replaced).ok()?.size());
        let old = deps.files.run(&session.account, old).await?.unwrap_or(0);
        room.take((content.len() as u64).saturating_sub(old))?;
    }
    let change = Change {
        subject: (path, content, etag_given),
        check: |workspace, (path, content, etag)| {
            workspace.can_write_text(path, content, etag.as_deref())
        },
        make: |workspace, (path, content, etag)| {
            workspace.write_text(path, content, etag.as_deref())
        },
        removes: false,
        detail,
        room,
    };
    let etag = change.make(&deps, session.account, input.meta).await?;
    Ok(Answer::ok(message, Saved { etag }))
}

/// Gives a text the line ends of the file that it replaces if those are all CRLF: in multipart, line ends are the browser's.
async fn keep_line_ends(
    deps: &Deps,
    account: &Account,
    path: &WorkspacePath,
    content: String,
) -> Result<String> {
    let (found, replaced) = (deps.files.find(account).await?, path.clone());
    let has_crlf = move || {
        let old = found.and_then(|found| found.read_text(&replaced).ok());
        old.is_some_and(|old| has_crlf_only(&old.content))
    };
    Ok(match deps.files.run(account, has_crlf).await? {
        true if !content.contains('\r') => content.replace('\n', "\r\n"),
        _ => content,
    })
}
