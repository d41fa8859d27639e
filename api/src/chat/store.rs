//! Conversations on the disk, off the async threads.

use std::sync::Arc;

use schema::home::conversations::{ConversationId, Held, HeldFolder, Meta};
use schema::home::workspace::{FileError, OpenFile, WorkspacePath};

use super::protocol::{Attachment, Entry};
use super::stored::{Line, Log, Wanted};
use super::talk::{KEPT, KEPT_BYTES};
use crate::auth::Account;
use crate::error::{ApiError, Result};
use crate::files::{Files, refused};

/// Most bytes of a conversation that are read when it is opened.
const TAIL: u64 = 2 * 1024 * 1024;
/// Longest picture, in bytes: what agents take.
const LONGEST_PICTURE: u64 = 20 * 1024 * 1024;
/// Most bytes of all pictures of a message.
const ALL_PICTURES: u64 = 40 * 1024 * 1024;
/// Bytes by which a picture is known.
const MAGIC: usize = 64;

/// A conversation that this process holds.
pub(super) struct Loaded {
    /// Its folder.
    pub(super) folder: HeldFolder,
    /// Title and times.
    pub(super) meta: Meta,
    /// Its newest entries, oldest first.
    pub(super) entries: Vec<Entry>,
    /// There are entries before them.
    pub(super) earlier: bool,
}

/// Code of the refusal of a conversation that another process has.
pub(super) const HELD: &str = "held_elsewhere";

/// Opens a conversation to change it.
///
/// # Errors
/// 404 without it; 409 `held_elsewhere` when another process has it.
pub(super) async fn hold_conversation(
    files: &Files,
    account: &Account,
    id: &ConversationId,
) -> Result<Loaded> {
    let workspace = files.open(account).await?;
    let wanted = id.clone();
    let held = files.run(account, move || {
        let folder = match workspace.hold_conversation(&wanted)? {
            Held::Missing => return Ok(Err(ApiError::not_found("conversation"))),
            Held::Elsewhere => return Ok(Err(held_elsewhere())),
            Held::Here(folder) => folder,
        };
        let mut log = Log::new(Wanted {
            before: u64::MAX,
            entries: KEPT,
            bytes: KEPT_BYTES,
        });
        let mut earlier = false;
        if let Some(entries) = folder.entries()? {
            let scan = entries.read_newest(TAIL, |_, line| log.take_line(line))?;
            earlier = scan.ended_early;
        }
        let meta = folder.meta();
        let (entries, left_out) = log.into_entries();
        Ok(Ok(Loaded {
            folder,
            meta,
            entries,
            earlier: earlier || left_out,
        }))
    });
    held.await?.map_err(|error: FileError| refused(error))?
}

/// The refusal of a conversation that another process has.
pub(crate) fn held_elsewhere() -> ApiError {
    ApiError::conflict(
        HELD,
        "another replica of the service has this conversation open; close it there, or try again in a minute",
    )
}

/// Lines to write, and the title and times when they have changed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) lines: Vec<Line>,
    pub(super) meta: Option<Meta>,
    /// The title is to be written, too.
    pub(super) titled: bool,
}

/// Writes to a conversation; gives the folder back.
///
/// # Errors
/// Those of the file system; the folder is lost only when the work could not be begun.
pub(super) async fn write_changes(
    files: &Files,
    account: &Account,
    mut folder: HeldFolder,
    changes: Changes,
) -> Result<(HeldFolder, Result<(), FileError>)> {
    let work = move || {
        let mut written = Ok(());
        if !changes.lines.is_empty() {
            if let Err(error) = folder.compact_entries() {
                tracing::warn!(%error, "a conversation's file cannot be compacted");
            }
            let lines: Vec<String> = changes.lines.iter().filter_map(Line::to_json).collect();
            written = folder.append_lines(&lines);
        }
        if let Some(meta) = changes.meta {
            // A title that another process gives meanwhile stays.
            let saved = match changes.titled {
                true => folder.write_meta(&meta),
                false => folder.write_last_use(meta.last_used_at).map(|_| ()),
            };
            written = written.and(saved);
        }
        (folder, written)
    };
    files.run_always(account, work).await
}

/// The attachments of a message, as they are now.
///
/// # Errors
/// A sentence that names the file and says what is wrong with it.
pub(super) async fn look_up_attachments(
    files: &Files,
    account: &Account,
    asked: Vec<(String, bool)>,
    pictures: bool,
) -> Result<Vec<Attachment>, String> {
    let workspace = match files.find(account).await {
        Ok(Some(workspace)) => workspace,
        _ if asked.is_empty() => return Ok(Vec::new()),
        Ok(None) => {
            return Err("the workspace does not exist yet; try again in a moment".to_owned());
        }
        Err(error) => return Err(error.to_string()),
    };
    let work = move || {
        let mut attachments = Vec::new();
        let mut bytes = 0;
        for (path, picture) in asked {
            let place: WorkspacePath = path.parse().map_err(|rule| format!("{path:?}: {rule}"))?;
            let file = workspace
                .open_file(&place)
                .map_err(|error| error.to_string())?;
            let picture = picture && pictures;
            if picture {
                bytes += file.size();
                check_picture(&path, &file, bytes)?;
            }
            attachments.push(Attachment {
                name: place.name().to_owned(),
                size: Some(file.size()),
                path: place.as_str().to_owned(),
                picture,
            });
        }
        Ok(attachments)
    };
    let looked = files.run(account, work).await;
    looked.map_err(|error| error.to_string())?
}

/// Returns the media type of a picture of a message; `bytes`: the length of it and of those before it.
///
/// # Errors
/// A sentence that names the file.
fn check_picture(path: &str, file: &OpenFile, bytes: u64) -> Result<&'static str, String> {
    if file.size() > LONGEST_PICTURE || bytes > ALL_PICTURES {
        return Err(format!(
            "{path:?}: pictures may have 20 MiB each and 40 MiB together; send it as a file instead"
        ));
    }
    picture_type(&read_head(file)).ok_or_else(|| {
        format!("{path:?} is not a JPEG, PNG, GIF, WebP or BMP picture; send it as a file instead")
    })
}

/// A picture that is to be sent.
pub(super) struct Picture {
    /// The open file.
    pub(super) file: Arc<OpenFile>,
    /// Its media type.
    pub(super) kind: &'static str,
}

/// Opens the pictures of a message.
///
/// # Errors
/// A sentence that names the file.
pub(super) async fn open_pictures(
    files: &Files,
    account: &Account,
    paths: Vec<String>,
) -> Result<Vec<Picture>, String> {
    let workspace = files
        .find(account)
        .await
        .map_err(|error| error.to_string())?;
    let workspace = workspace.ok_or("the workspace is gone")?;
    let work = move || {
        let mut bytes = 0;
        let mut open = |path: String| {
            let place: WorkspacePath = path.parse().map_err(|rule| format!("{path:?}: {rule}"))?;
            let file = workspace
                .open_file(&place)
                .map_err(|error| error.to_string())?;
            bytes += file.size();
            let kind = check_picture(&path, &file, bytes)?;
            let file = Arc::new(file);
            Ok(Picture { file, kind })
        };
        paths.into_iter().map(&mut open).collect()
    };
    let opened = files.run(account, work).await;
    opened.map_err(|error| error.to_string())?
}

/// Reads a part of a picture; `None` when the file has become shorter.
pub(super) async fn read_part(
    files: &Files,
    account: &Account,
    file: &Arc<OpenFile>,
    begin: u64,
    length: usize,
) -> Option<Vec<u8>> {
    let file = Arc::clone(file);
    let work = move || {
        let mut bytes = vec![0; length];
        let read = file.read_at(begin, &mut bytes).ok()?;
        (read == length).then_some(bytes)
    };
    files.run_always(account, work).await.ok()?
}

/// The beginning of a file.
pub(crate) fn read_head(file: &OpenFile) -> Vec<u8> {
    let mut bytes = vec![0; MAGIC];
    let length = file.read_at(0, &mut bytes).unwrap_or_default();
    bytes.truncate(length);
    bytes
}

/// The media type of a picture that browsers and agents show; `None` for anything else.
pub(crate) fn picture_type(bytes: &[u8]) -> Option<&'static str> {
    use image::ImageFormat;
    match image::guess_format(bytes).ok()? {
        ImageFormat::Png => Some("image/png"),
        ImageFormat::Jpeg => Some("image/jpeg"),
        ImageFormat::Gif => Some("image/gif"),
        ImageFormat::WebP => Some("image/webp"),
        ImageFormat::Bmp => Some("image/bmp"),
        _ => None,
    }
}
