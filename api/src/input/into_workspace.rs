//! Receives files into the workspace of whom they belong to.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use futures::Stream;
use http::HeaderMap;
use schema::home::workspace::{Incoming, Received, Workspace};
use tokio::sync::OwnedSemaphorePermit;

use super::body::FILE;
use super::fields::Fields;
use super::spool::{Sink, read_files};
use crate::auth::Account;
use crate::deps::Dependencies;
use crate::error::{ApiError, Result};
use crate::files::refused;
use crate::quota::Room;

/// The longest file, in bytes.
const LONGEST_FILE: u64 = 32 * 1024 * 1024;
/// Most files of one request.
pub(crate) const MOST_FILES: usize = 100;
/// Bytes that are written at once.
const PIECE: usize = 256 * 1024;

/// A file that has arrived on the disk of the workspace, and has no name there yet.
#[derive(Debug)]
pub struct ReceivedFile {
    /// How its sender calls it.
    pub name: Option<String>,
    /// What has arrived.
    pub received: Received,
    _arriving: OwnedSemaphorePermit,
}

/// Files that have arrived, and the space that they take of what their owner may have.
#[derive(Debug, Default)]
pub struct ReceivedFiles {
    /// In the order in which they came.
    pub files: Vec<ReceivedFile>,
    /// The space; none without a quota.
    pub room: Option<Room>,
}

/// Receives multipart/form-data with files, which go to the disk of the caller's workspace, and fields beside them. What
/// has arrived disappears unless it is given a name.
///
/// # Errors
/// As [`read_files`]; 400 for more than [`MOST_FILES`], 413 for a file longer than [`LONGEST_FILE`], 507 when the disk or
/// the user's quota is full.
pub(crate) async fn read_into_workspace<S, B, E>(
    headers: &HeaderMap,
    body: S,
    limit: u64,
    deps: &Dependencies,
    account: &Account,
) -> Result<Fields>
where
    S: Stream<Item = Result<B, E>>,
    B: Buf,
{
    let mut sink = IntoWorkspace {
        deps,
        account,
        workspace: None,
        arriving: None,
        right: None,
        piece: Vec::new(),
        received: ReceivedFiles::default(),
    };
    let mut fields = read_files(headers, body, limit, &mut sink).await?;
    fields.set_received(sink.received);
    Ok(fields)
}

struct IntoWorkspace<'a> {
    deps: &'a Dependencies,
    account: &'a Account,
    workspace: Option<Arc<Workspace>>,
    /// The file that arrives, and its name.
    arriving: Option<(Incoming, Option<String>)>,
    /// The right to receive it.
    right: Option<OwnedSemaphorePermit>,
    /// What is not written yet.
    piece: Vec<u8>,
    received: ReceivedFiles,
}

/// Closing a file without a name frees what it takes on the disk, which may take long.
impl Drop for ReceivedFiles {
    fn drop(&mut self) {
        let files = std::mem::take(&mut self.files);
        if !files.is_empty()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn_blocking(move || drop(files));
        }
    }
}

impl IntoWorkspace<'_> {
    async fn workspace(&mut self) -> Result<Arc<Workspace>> {
        if let Some(workspace) = &self.workspace {
            return Ok(Arc::clone(workspace));
        }
        let opened = self.deps.files.open(self.account).await?;
        self.received.room = Room::of(self.deps, &self.account.uid).await?;
        self.workspace = Some(Arc::clone(&opened));
        Ok(opened)
    }

    /// Writes what is not written yet.
    async fn write(&mut self, mut incoming: Incoming) -> Result<Incoming> {
        let piece = std::mem::take(&mut self.piece);
        let work = move || incoming.write(&piece).map(|()| (incoming, piece));
        let (incoming, mut piece) = self.deps.files.run(work).await?.map_err(refused)?;
        piece.clear();
        self.piece = piece;
        Ok(incoming)
    }
}

impl Sink for IntoWorkspace<'_> {
    async fn begin(&mut self, name: Option<String>) -> Result<()> {
        if self.received.files.len() == MOST_FILES {
            let rule = format!("{FILE} is given more than {MOST_FILES} times");
            return Err(ApiError::invalid(FILE, rule));
        }
        self.right = Some(self.deps.files.arriving()?);
        let workspace = self.workspace().await?;
        let incoming = self.deps.files.run(move || workspace.incoming()).await?;
        self.arriving = Some((incoming.map_err(refused)?, name));
        Ok(())
    }

    async fn piece(&mut self, piece: Bytes) -> Result<()> {
        let Some((incoming, name)) = self.arriving.take() else {
            return Ok(());
        };
        let length = incoming.length() + (self.piece.len() + piece.len()) as u64;
        if length > LONGEST_FILE {
            return Err(ApiError::TooLarge {
                limit: LONGEST_FILE,
            });
        }
        if let Some(room) = &mut self.received.room {
            room.take(piece.len() as u64)?;
        }
        self.piece.extend_from_slice(&piece);
        let incoming = match self.piece.len() >= PIECE {
            true => self.write(incoming).await?,
            false => incoming,
        };
        self.arriving = Some((incoming, name));
        Ok(())
    }

    async fn end(&mut self) -> Result<()> {
        let (Some((incoming, name)), Some(right)) = (self.arriving.take(), self.right.take())
        else {
            return Ok(());
        };
        let incoming = self.write(incoming).await?;
        let received = self.deps.files.run(move || incoming.finish()).await?;
        let received = received.map_err(refused)?;
        self.received.files.push(ReceivedFile {
            name,
            received,
            _arriving: right,
        });
        Ok(())
    }
}
