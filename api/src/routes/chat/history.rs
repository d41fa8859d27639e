//! Earlier entries and files of a conversation.

use http::header::CONTENT_LENGTH;
use http::{HeaderValue, StatusCode};
use schema::home::conversations::{ConversationId, Folder, LONGEST, Verdict};
use schema::home::workspace::{FileError, OpenFile};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{NO_CONVERSATION, no_conversation};
use crate::answer::{Answer, Answers, Body};
use crate::auth::Account;
use crate::chat::{Entry, Log, Wanted, picture_type, read_head};
use crate::deps::Deps;
use crate::dispatch::OrdinaryUser;
use crate::error::{ApiError, Result};
use crate::files::{Client, refused};
use crate::input::Input;
use crate::limits::USER_ANSWERS;
use crate::openapi::Schemas;
use crate::reply::Reply;
use crate::route::{Area, Failure, Route};
use crate::routes::files::file_bytes;

/// Entries of an answer, unless the client names a number.
const LIMIT: usize = 100;
/// Most entries of an answer.
const MOST: usize = 200;
/// Most memory of the entries of an answer, in bytes.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// Memory of an answer while it is made, in bytes: the entries, and as much as JSON.
const MEMORY: usize = 3 * MOST_BYTES;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("chat_entries", "/api/agent/chat/entries", list)
            .title(Area::Chat, "List earlier entries of a conversation")
            .about("Those before the entry `before`, or the newest, oldest first; at most 4 MiB of them.")
            .takes_memory(MEMORY)
            .fails(&[NO_CONVERSATION, Failure::BUSY]),
        Route::get("chat_file", "/api/agent/chat/file", download).holds(&USER_ANSWERS)
            .title(Area::Chat, "Get a file that the agent sent")
            .about("A picture (PNG, JPEG, GIF, WebP) is shown; anything else is a download.")
            .fails(&[NO_CONVERSATION, Failure::BUSY]),
    ]
}

/// Entries to list.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ChatEntriesParams)]
pub struct Earlier {
    /// Id of the conversation.
    #[schema(value_type = String)]
    id: ConversationId,
    /// Only entries before this one.
    before: Option<u64>,
    /// Most entries, 1 to 200; default 100.
    limit: Option<usize>,
}

/// Entries of a conversation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatEntries)]
pub struct Entries {
    /// Oldest first; entries of `/api/chat.schema.json`.
    #[schema(value_type = Vec<Object>)]
    entries: Vec<Entry>,
    /// Others exist before them.
    older: bool,
}

/// `GET /api/agent/chat/entries`.
///
/// # Errors
/// 404 without the conversation.
async fn list(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Earlier>,
    deps: Deps,
) -> Result<Answer<Entries>> {
    let Earlier { id, before, limit } = input.params;
    let limit = limit.unwrap_or(LIMIT);
    if !(1..=MOST).contains(&limit) {
        return Err(ApiError::invalid("limit", format!("limit is 1 to {MOST}")));
    }
    let before = before.unwrap_or(u64::MAX);
    let mut log = Log::new(Wanted {
        before,
        entries: limit,
        bytes: MOST_BYTES,
    });
    let read = move |folder: &Folder, client: &Client| {
        let Some(entries) = folder.entries()? else {
            return Ok(log.into_entries());
        };
        let scan = entries.read_newest(LONGEST, |_, line| match client.is_gone() {
            true => Verdict::Enough,
            false => log.take_line(line),
        })?;
        let (entries, left_out) = log.into_entries();
        Ok((entries, left_out || scan.ended_early && !scan.is_damaged()))
    };
    let (entries, older) = read_folder(&deps, &session.account, id, read).await?;
    Ok(Answer::ok(
        "entries of the conversation",
        Entries { entries, older },
    ))
}

/// Reads a conversation's folder off the async threads.
///
/// # Errors
/// 404 without the conversation; those of the file system.
pub(super) async fn read_folder<T: Send + 'static>(
    deps: &Deps,
    account: &Account,
    id: ConversationId,
    read: impl FnOnce(&Folder, &Client) -> Result<T, FileError> + Send + 'static,
) -> Result<T> {
    let workspace = deps
        .files
        .find(account)
        .await?
        .ok_or_else(no_conversation)?;
    let work = move |client: &Client| match workspace.open_conversation(&id)? {
        Some(folder) => read(&folder, client).map(Some),
        None => Ok(None),
    };
    let read = deps.files.run_long(account, work).await?;
    read.map_err(refused)?.ok_or_else(no_conversation)
}

/// Opens a file of a conversation; returns its media type if it is a picture. A page asks for many at once, so this is a short call.
async fn open_file(
    deps: &Deps,
    account: &Account,
    id: ConversationId,
    name: String,
) -> Result<(OpenFile, Option<&'static str>)> {
    let workspace = deps.files.find(account).await?;
    let workspace = workspace.ok_or_else(no_conversation)?;
    let work = move || {
        let Some(folder) = workspace.open_conversation(&id)? else {
            return Ok(None);
        };
        let file = folder.open_file(&name)?;
        let kind = picture_type(&read_head(&file)).filter(|kind| *kind != "image/bmp");
        Ok(Some((file, kind)))
    };
    let opened = deps.files.run(account, work).await?;
    opened.map_err(refused)?.ok_or_else(no_conversation)
}

/// A file of a conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ChatFileParams)]
pub struct File {
    /// Id of the conversation.
    #[schema(value_type = String)]
    id: ConversationId,
    /// Its name, as its entry gives it.
    file: String,
}

/// The bytes of a file: a picture, or a download.
pub struct Shown(Reply);

impl Answers for Shown {
    fn into_reply(self) -> Reply {
        self.0
    }

    fn describe(_: &mut Schemas) -> Vec<Body> {
        let types = [
            "application/octet-stream",
            "image/png",
            "image/jpeg",
            "image/gif",
            "image/webp",
        ];
        let bytes = |content_type| Body {
            content_type,
            ..Body::text(StatusCode::OK)
        };
        types.map(bytes).to_vec()
    }
}

/// `GET /api/agent/chat/file`.
///
/// # Errors
/// 404 without it.
async fn download(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<File>,
    deps: Deps,
) -> Result<Shown> {
    let File { id, file: name } = input.params;
    let (file, kind) = open_file(&deps, &session.account, id, name.clone()).await?;
    let length = file.size();
    // Stored names begin with the entry's number and the file's place.
    let shown = name.splitn(3, '-').last().unwrap_or(&name).to_owned();
    let content_type = HeaderValue::from_static(kind.unwrap_or("application/octet-stream"));
    let bytes = file_bytes(deps.files.clone(), session.account, file, 0, length);
    let mut reply = Reply::download(content_type, &shown, bytes)
        .header(CONTENT_LENGTH, HeaderValue::from(length));
    if kind.is_some() {
        reply = reply.inline();
    }
    Ok(Shown(reply))
}
