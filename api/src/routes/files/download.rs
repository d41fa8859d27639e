//! `GET /api/files/download`: a file, a part of it, or a directory as a zip file.

use std::io;
use std::sync::Arc;

use headers::{ETag, HeaderMapExt, IfNoneMatch, IfRange, LastModified};
use http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, ETAG, LAST_MODIFIED, RANGE};
use http::{HeaderMap, HeaderValue, StatusCode};
use schema::home::workspace::{FileError, OpenFile, Workspace, WorkspacePath};
use serde::Deserialize;
use utoipa::ToSchema;

use super::file_bytes::file_bytes;
use super::{failures, path};
use crate::answer::FileDownload;
use crate::auth::Account;
use crate::deps::{Dependencies, Deps};
use crate::dispatch::OrdinaryUser;
use crate::error::{ApiError, Result};
use crate::files::{Client, refused};
use crate::input::Input;
use crate::limits::USER_ANSWERS;
use crate::pieces::Pieces;
use crate::reply::Reply;
use crate::route::{Area, Failure, Route};

const NO_RANGE: Failure = Failure(
    416,
    "range_not_satisfiable",
    "the file has no byte in the range",
);
const TOO_MANY: Failure = Failure(
    409,
    "too_many_entries",
    "the directory has more than 50,000 entries",
);

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("files_download", "/api/files/download", download).holds(&USER_ANSWERS)
            .title(Area::Files, "Download my files")
            .about(
                "A file takes `Range`, `If-Range` and `If-None-Match`; of several ranges the whole file comes. A directory \
                 comes as a zip file; what is left out of it is named in its `left-out.txt`.",
            )
            .fails(failures![NO_RANGE, TOO_MANY]),
    ]
}

/// What to download.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = FilesDownload)]
pub struct Which {
    /// Its path, relative to the workspace.
    #[schema(example = "notes/todo.txt")]
    path: String,
}

/// `GET /api/files/download`.
///
/// # Errors
/// 404 without such an entry, 416 for a range that is not in the file.
async fn download(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Which>,
    deps: Deps,
) -> Result<FileDownload> {
    let headers = &input.meta.headers;
    send_entry(&session.account, &input.params.path, headers, &deps).await
}

/// Sends a file or directory of the workspace of `account`.
///
/// # Errors
/// As the route.
pub(in crate::routes) async fn send_entry(
    account: &Account,
    asked: &str,
    headers: &HeaderMap,
    deps: &Deps,
) -> Result<FileDownload> {
    let path = path("path", asked)?;
    let workspace = deps.files.find(account).await?;
    let workspace = workspace.ok_or_else(|| ApiError::not_found(format!("{:?}", path.as_str())))?;
    let (opened_in, file) = (Arc::clone(&workspace), path.clone());
    let opened = deps
        .files
        .run(account, move || opened_in.open_file(&file))
        .await?;
    let reply = match opened {
        Ok(file) => of_file(deps, account, path.name(), file, headers)?,
        Err(FileError::NotAFile { .. }) => of_directory(deps, account, workspace, path).await?,
        Err(error) => return Err(refused(error)),
    };
    Ok(FileDownload::new(reply))
}

/// The bytes of a file that a request is answered with.
#[derive(Debug, PartialEq, Eq)]
enum Selection {
    All,
    Part {
        begin: u64,
        end: u64,
    },
    /// The client has them.
    Nothing,
}

fn select(
    headers: &HeaderMap,
    length: u64,
    etag: &ETag,
    modified: &LastModified,
) -> Result<Selection> {
    let known = headers.typed_get::<IfNoneMatch>();
    if known.is_some_and(|known| !known.precondition_passes(etag)) {
        return Ok(Selection::Nothing);
    }
    let range = headers.get(RANGE).and_then(|range| range.to_str().ok());
    let Some(range) = range.and_then(|range| part(range, length)) else {
        return Ok(Selection::All);
    };
    let other = headers.typed_get::<IfRange>();
    if other.is_some_and(|of| of.is_modified(Some(etag), Some(modified))) {
        return Ok(Selection::All);
    }
    let (begin, end) = range;
    match begin < end {
        true => Ok(Selection::Part { begin, end }),
        false => Err(ApiError::RangeNotSatisfiable { length }),
    }
}

/// The bytes that a range means of a file (RFC 9110, 14.1.2), as begin and end; empty when none of them is in the file. `None`
/// for what is to be ignored: another unit, several ranges at once, and what cannot be read.
fn part(range: &str, length: u64) -> Option<(u64, u64)> {
    let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
        // What is too long for a number is past the end of any file.
        true if !text.is_empty() => Some(text.parse().unwrap_or(u64::MAX)),
        _ => None,
    };
    let (first, last) = range.strip_prefix("bytes=")?.trim().split_once('-')?;
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => {
            Some((first, last.saturating_add(1).min(length)))
        }
        (Some(first), None) if last.is_empty() => Some((first, length)),
        (None, Some(suffix)) if first.is_empty() => Some((length.saturating_sub(suffix), length)),
        _ => None,
    }
}

fn of_file(
    deps: &Dependencies,
    account: &Account,
    name: &str,
    file: OpenFile,
    headers: &HeaderMap,
) -> Result<Reply> {
    let length = file.size();
    let text = format!("\"{}\"", file.etag());
    let etag: ETag = text.parse().map_err(ApiError::internal)?;
    // What is older has no such header.
    let modified = LastModified::from(std::time::SystemTime::from(
        time::OffsetDateTime::from_unix_timestamp(file.modified().as_secs().max(0))
            .unwrap_or(time::OffsetDateTime::UNIX_EPOCH),
    ));
    let selected = select(headers, length, &etag, &modified)?;
    let about = |reply: Reply| {
        let mut sent = HeaderMap::new();
        sent.typed_insert(etag.clone());
        sent.typed_insert(modified);
        let mut reply = reply.header(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        for name in [ETAG, LAST_MODIFIED] {
            if let Some(value) = sent.remove(&name) {
                reply = reply.header(name, value);
            }
        }
        reply
    };
    let (begin, end) = match selected {
        Selection::Nothing => return Ok(about(Reply::empty().status(StatusCode::NOT_MODIFIED))),
        Selection::All => (0, length),
        Selection::Part { begin, end } => (begin, end),
    };
    let kind = HeaderValue::from_static("application/octet-stream");
    let bytes = file_bytes(deps.files.clone(), account.clone(), file, begin, end);
    let reply = Reply::download(kind, name, bytes);
    let reply = about(reply).header(CONTENT_LENGTH, HeaderValue::from(end - begin));
    if selected == Selection::All {
        return Ok(reply);
    }
    let range = format!("bytes {begin}-{}/{length}", end.saturating_sub(1));
    let range = HeaderValue::try_from(range).map_err(ApiError::internal)?;
    Ok(reply
        .status(StatusCode::PARTIAL_CONTENT)
        .header(CONTENT_RANGE, range))
}

async fn of_directory(
    deps: &Dependencies,
    account: &Account,
    workspace: Arc<Workspace>,
    path: WorkspacePath,
) -> Result<Reply> {
    // Counting what is in it takes long, other than opening a file, of which a browser fetches several at once.
    let (counted_in, directory) = (Arc::clone(&workspace), path.clone());
    let count = move |_: &Client| counted_in.can_zip(&directory);
    let counted = deps.files.run_long(account, count).await?;
    counted.map_err(refused)?;
    let turn = deps.files.zip(account)?;
    let name = match path.is_top() {
        true => "workspace.zip".to_owned(),
        false => format!("{}.zip", path.name()),
    };
    // Whoever reads slowly holds up a thread, and no more than a few pieces of memory.
    let pieces = Pieces::written(deps, move |out| {
        let _turn = turn;
        workspace.write_zip(&path, out).map_err(io::Error::other)
    });
    let kind = HeaderValue::from_static("application/zip");
    Ok(Reply::download(kind, &name, pieces))
}
