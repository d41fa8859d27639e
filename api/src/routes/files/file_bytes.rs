//! The bytes of a file, on their way to a client.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::Stream;
use schema::home::workspace::OpenFile;

use crate::auth::Account;
use crate::error::{ApiError, Result};
use crate::files::Files;

/// Bytes that are read at once.
const PIECE: usize = 256 * 1024;
/// Pieces of memory that are kept to be filled again: one is sent while the next is read.
const KEPT: usize = 2;

/// The bytes of a file from `begin` to `end`. What is in memory already is read at once, anything else on a thread that may wait. A file
/// that became shorter meanwhile is an error, which cuts the connection.
pub(in crate::routes) fn file_bytes(
    files: Files,
    account: Account,
    file: OpenFile,
    begin: u64,
    end: u64,
) -> impl Stream<Item = Result<Bytes>> + Send + 'static {
    let reader = Reader {
        files,
        account,
        file: Arc::new(file),
        at: begin,
        end,
        sent: Vec::with_capacity(KEPT),
    };
    futures::stream::try_unfold(reader, |mut reader| async move {
        let piece = reader.next().await?;
        Ok(piece.map(|piece| (piece, reader)))
    })
}

struct Reader {
    files: Files,
    account: Account,
    file: Arc<OpenFile>,
    at: u64,
    end: u64,
    /// Pieces that may still be on their way.
    sent: Vec<Bytes>,
}

impl Reader {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        let left = self.end.saturating_sub(self.at);
        let length = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        if length == 0 {
            return Ok(None);
        }
        let mut piece = self.memory();
        piece.resize(length, 0);
        let cached = self.file.read_cached_at(self.at, &mut piece);
        if cached < length {
            let (file, at) = (Arc::clone(&self.file), self.at);
            let read = move || {
                let rest = piece.get_mut(cached..).unwrap_or_default();
                let read = file.read_at(at + cached as u64, rest);
                read.map(|read| (piece, cached + read))
            };
            let read = self
                .files
                .run(&self.account, read)
                .await?
                .map_err(ApiError::internal)?;
            if read.1 < length {
                return Err(ApiError::internal("the file became shorter"));
            }
            piece = read.0;
        }
        self.at += length as u64;
        let piece = piece.freeze();
        if self.sent.len() < KEPT {
            self.sent.push(piece.clone());
        }
        Ok(Some(piece))
    }

    /// A piece that has been sent, or a new one.
    fn memory(&mut self) -> BytesMut {
        let sent = self.sent.iter().position(Bytes::is_unique);
        let sent = sent.and_then(|index| self.sent.swap_remove(index).try_into_mut().ok());
        sent.unwrap_or_default()
    }
}
