//! What a thread writes, as the pieces of an answer.

use std::io::{self, Write};

use bytes::Bytes;
use futures::Stream;
use schema::under_way::track_call;
use tokio::sync::mpsc;

use crate::deps::Dependencies;
use crate::limits::PIECES;

/// Bytes that are sent at once.
const PIECE: usize = 64 * 1024;

/// Collects what is written into pieces.
pub(crate) struct Pieces {
    piece: Vec<u8>,
    sender: mpsc::Sender<io::Result<Bytes>>,
}

impl Pieces {
    /// What `work` writes, on a thread of its own. Whoever reads slowly holds up that thread, and no more than a few pieces
    /// of memory; whoever reads no more ends it. When it fails, so does the stream.
    pub(crate) fn written(
        deps: &Dependencies,
        work: impl FnOnce(&mut Self) -> io::Result<()> + Send + 'static,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        let (sender, receiver) = PIECES.queue();
        deps.tasks
            .spawn_blocking(track_call("an answer that is written", move || {
                let mut out = Self {
                    piece: Vec::with_capacity(PIECE),
                    sender: sender.clone(),
                };
                if let Err(error) = work(&mut out).and_then(|()| out.flush()) {
                    let _ = sender.blocking_send(Err(error));
                }
            }));
        futures::stream::unfold(receiver, |mut receiver| async move {
            let piece = receiver.recv().await?;
            Some((piece, receiver))
        })
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.sender.blocking_send(Ok(piece.into())).map_err(gone)
    }
}
