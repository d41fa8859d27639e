//! Reading one file out of the tar stream in which the engine hands files over.

use std::io::Read;

use bytes::{Bytes, BytesMut};
use engine::EngineError;
use futures::{Stream, StreamExt};

/// Room for the headers before a file's content: its own, and one for a long name.
const HEADER_ROOM: usize = 16 * 1024;

/// Reads at most `limit` bytes of the regular file that the stream starts with; `None` when it is
/// something else (a directory, a link). Takes no more from the stream than needed.
pub(super) async fn first_file(
    mut stream: impl Stream<Item = Result<Bytes, EngineError>> + Unpin,
    limit: usize,
) -> Result<Option<Vec<u8>>, EngineError> {
    let room = limit.saturating_add(HEADER_ROOM);
    let mut head = BytesMut::new();
    while head.len() < room {
        match stream.next().await {
            Some(part) => {
                let part = part?;
                head.extend_from_slice(part.get(..room - head.len()).unwrap_or(&part));
            }
            None => break,
        }
    }
    parse_archive(&head, limit)
        .map_err(|error| EngineError::Internal(format!("the file arrived damaged: {error}")))
}

fn parse_archive(head: &[u8], limit: usize) -> std::io::Result<Option<Vec<u8>>> {
    let mut archive = tar::Archive::new(head);
    let Some(entry) = archive.entries()?.next() else {
        return Ok(None);
    };
    let entry = entry?;
    if !entry.header().entry_type().is_file() {
        return Ok(None);
    }
    let wanted = entry.size().min(u64::try_from(limit).unwrap_or(u64::MAX));
    let mut content = Vec::new();
    entry.take(wanted).read_to_end(&mut content)?;
    if u64::try_from(content.len()).unwrap_or(u64::MAX) < wanted {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(kind: tar::EntryType, path: &str, content: &[u8]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        if kind.is_symlink() {
            builder
                .append_link(&mut header, path, "/etc/passwd")
                .unwrap();
        } else {
            builder.append_data(&mut header, path, content).unwrap();
        }
        builder.into_inner().unwrap()
    }

    async fn read_archive(bytes: Vec<u8>, limit: usize) -> Result<Option<Vec<u8>>, EngineError> {
        let parts: Vec<_> = bytes
            .chunks(100)
            .map(|part| Ok(Bytes::copy_from_slice(part)))
            .collect();
        first_file(futures::stream::iter(parts), limit).await
    }

    #[tokio::test]
    async fn a_file_is_read_up_to_the_limit() {
        let content = vec![b'x'; 100_000];
        let bytes = archive(tar::EntryType::Regular, "config.json", &content);
        assert_eq!(
            read_archive(bytes.clone(), 1 << 20).await.unwrap().unwrap(),
            content
        );
        assert_eq!(read_archive(bytes, 10).await.unwrap().unwrap().len(), 10);
    }

    #[tokio::test]
    async fn a_name_of_three_hundred_characters_does_not_hide_the_content() {
        let bytes = archive(tar::EntryType::Regular, &"n".repeat(300), b"content");
        assert_eq!(read_archive(bytes, 100).await.unwrap().unwrap(), b"content");
    }

    #[tokio::test]
    async fn l25_a_planted_link_is_no_file() {
        let bytes = archive(tar::EntryType::Symlink, "probe", b"");
        assert_eq!(read_archive(bytes, 100).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_stream_that_breaks_off_is_an_error_and_not_a_short_file() {
        let mut bytes = archive(tar::EntryType::Regular, "f", &vec![b'x'; 5000]);
        bytes.truncate(2000);
        assert!(read_archive(bytes, 1 << 20).await.is_err());
    }
}
