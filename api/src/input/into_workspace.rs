//! Receives files into the workspace of whom they belong to.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use futures::Stream;
use futures::future::BoxFuture;
use http::HeaderMap;
use schema::home::workspace::{FileError, Incoming, Received, Workspace};

use super::body::FILE;
use super::fields::Fields;
use super::spool::{Sink, read_files};
use crate::auth::Account;
use crate::deps::Dependencies;
use crate::error::{ApiError, Result};
use crate::files::{Arrival, Files, refused};
use crate::quota::Room;

/// The longest file, in bytes.
const LONGEST_FILE: u64 = 32 * 1024 * 1024;
/// Most files of one request.
pub(crate) const MOST_FILES: usize = 100;
/// Bytes that are written at once, while more arrive.
const AT_ONCE: usize = 256 * 1024;
/// Most pieces that are: a client that sends byte by byte is not to fill memory with what is around each of them.
const PIECES: usize = 64;

/// A file that has arrived on the disk of the workspace, and has no name there yet.
#[derive(Debug)]
pub struct ReceivedFile {
    /// How its sender calls it.
    pub name: Option<String>,
    /// What has arrived.
    pub received: Received,
    _arriving: Arrival,
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
    S: Stream<Item = Result<B, E>> + Send,
    B: Buf,
{
    let mut sink = IntoWorkspace {
        deps,
        account,
        workspace: None,
        arriving: None,
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
    arriving: Option<Arriving>,
    received: ReceivedFiles,
}

/// The file that arrives.
struct Arriving {
    name: Option<String>,
    /// The file, as soon as everything before is written.
    file: BoxFuture<'static, Result<Incoming>>,
    /// Bytes so far.
    length: u64,
    /// What is not written yet, and its length in bytes.
    waiting: (Vec<Bytes>, usize),
    right: Arrival,
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
}

impl Arriving {
    /// Begins to write what is not written yet.
    async fn write(mut self, files: &Files, account: &Account) -> Result<Self> {
        let mut file = self.file.await?;
        let (pieces, _) = std::mem::take(&mut self.waiting);
        let writing = files.begin(account, move || write(&mut file, &pieces).map(|()| file));
        let writing = writing.await?;
        let written = async move { writing.await.map_err(ApiError::internal)?.map_err(refused) };
        self.file = Box::pin(written);
        Ok(self)
    }
}

fn write(file: &mut Incoming, pieces: &[Bytes]) -> Result<(), FileError> {
    pieces.iter().try_for_each(|piece| file.write(piece))
}

impl Sink for IntoWorkspace<'_> {
    async fn begin(&mut self, name: Option<String>) -> Result<()> {
        if self.received.files.len() == MOST_FILES {
            let rule = format!("{FILE} is given more than {MOST_FILES} times");
            return Err(ApiError::invalid(FILE, rule));
        }
        let right = self.deps.files.arriving(self.account)?;
        let workspace = self.workspace().await?;
        let file = self
            .deps
            .files
            .run(self.account, move || workspace.incoming())
            .await?;
        let file = file.map_err(refused)?;
        self.arriving = Some(Arriving {
            name,
            file: Box::pin(std::future::ready(Ok(file))),
            length: 0,
            waiting: (Vec::new(), 0),
            right,
        });
        Ok(())
    }

    async fn piece(&mut self, piece: Bytes) -> Result<()> {
        let Some(mut arriving) = self.arriving.take() else {
            return Ok(());
        };
        arriving.length += piece.len() as u64;
        if arriving.length > LONGEST_FILE {
            return Err(ApiError::TooLarge {
                limit: LONGEST_FILE,
            });
        }
        if let Some(room) = &mut self.received.room {
            room.take(piece.len() as u64)?;
        }
        let (pieces, length) = &mut arriving.waiting;
        *length += piece.len();
        pieces.push(piece);
        if *length >= AT_ONCE || pieces.len() >= PIECES {
            arriving = arriving.write(&self.deps.files, self.account).await?;
        }
        self.arriving = Some(arriving);
        Ok(())
    }

    async fn end(&mut self) -> Result<()> {
        let Some(arriving) = self.arriving.take() else {
            return Ok(());
        };
        let mut file = arriving.file.await?;
        let (pieces, _) = arriving.waiting;
        let finish = move || write(&mut file, &pieces).and_then(|()| file.finish());
        let received = self.deps.files.run(self.account, finish).await?;
        self.received.files.push(ReceivedFile {
            name: arriving.name,
            received: received.map_err(refused)?,
            _arriving: arriving.right,
        });
        Ok(())
    }
}
