//! Receives an upload on disk: its file may be larger than what may be held in memory.

use std::fs::File;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures::{Stream, StreamExt};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use multer::{Constraints, Multipart, SizeLimit};
use tokio::io::{AsyncSeekExt, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};

use super::body::{ContentType, FILE};
use super::fields::Fields;
use crate::error::{ApiError, Result};

/// Longest pause between two pieces of a body.
const IDLE: Duration = Duration::from_secs(30);
/// Longest time for a whole body.
const TOTAL: Duration = Duration::from_secs(3600);
/// Longest text of a field beside the file, in bytes.
const FIELD: u64 = 64 * 1024;

/// Receives multipart/form-data with one part [`FILE`], which goes to the file that `make` makes, and fields beside it.
/// Nothing is received that is longer than `limit`, nor kept when something is wrong.
///
/// # Errors
/// 413 as soon as the announced or received length passes the limit; 408 when the client pauses or drips; 400 when the body is
/// malformed or cut; 415 for another content type; 507 when the disk is full.
pub(crate) async fn read_spooled<S, B, E>(
    headers: &HeaderMap,
    body: S,
    limit: u64,
    make: impl Fn() -> io::Result<File>,
) -> Result<Fields>
where
    S: Stream<Item = Result<B, E>>,
    B: Buf,
{
    const UNSUPPORTED: ApiError =
        ApiError::UnsupportedMediaType("send the file as multipart/form-data");
    const MALFORMED: ApiError = ApiError::InvalidBody("the body is not valid multipart/form-data");
    let Some(ContentType::Multipart { boundary }) = ContentType::of(headers)? else {
        return Err(UNSUPPORTED);
    };
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit) {
        return Err(ApiError::TooLarge { limit });
    }
    // The parser has words of its own for what goes wrong in here.
    let wrong: Arc<Mutex<Option<ApiError>>> = Arc::default();
    let mut body = pin!(body);
    let deadline = Instant::now() + TOTAL;
    let (sender, receiver) = futures::channel::mpsc::channel::<io::Result<Bytes>>(1);
    let feed = {
        let wrong = Arc::clone(&wrong);
        async move {
            let mut sender = sender;
            let mut received = 0_u64;
            loop {
                let next = timeout(IDLE, body.next());
                let piece = match timeout_at(deadline, next).await {
                    Ok(Ok(Some(Ok(mut piece)))) => {
                        received = received.saturating_add(piece.remaining() as u64);
                        match received > limit {
                            true => Err(ApiError::TooLarge { limit }),
                            false => Ok(piece.copy_to_bytes(piece.remaining())),
                        }
                    }
                    Ok(Ok(Some(Err(_)))) => Err(ApiError::InvalidBody(
                        "the body ended before it was complete",
                    )),
                    Ok(Ok(None)) => return,
                    Ok(Err(_)) | Err(_) => Err(ApiError::RequestTimeout),
                };
                let failed = piece.is_err();
                let piece = piece.map_err(|error| {
                    *wrong.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    io::Error::from(io::ErrorKind::InvalidData)
                });
                // Nobody reads on once something else is wrong.
                if futures::SinkExt::send(&mut sender, piece).await.is_err() || failed {
                    return;
                }
            }
        }
    };
    let sizes = SizeLimit::new()
        .whole_stream(limit)
        .per_field(FIELD)
        .for_field(FILE, limit);
    let constraints = Constraints::new().size_limit(sizes);
    let mut parts = Multipart::with_constraints(receiver, boundary, constraints);
    let read = async move {
        let mut fields = Fields::default();
        while let Some(mut part) = parts.next_field().await.map_err(|_| MALFORMED)? {
            let name = part.name().ok_or(MALFORMED)?.to_owned();
            if name != FILE {
                let bytes = part.bytes().await.map_err(|_| MALFORMED)?;
                let text = String::from_utf8(bytes.into())
                    .map_err(|_| ApiError::InvalidBody("a part of the body is not valid UTF-8"))?;
                fields.insert(name, text)?;
                continue;
            }
            let mut file = tokio::fs::File::from_std(make().map_err(not_written)?);
            while let Some(piece) = part.chunk().await.map_err(|_| MALFORMED)? {
                file.write_all(&piece).await.map_err(not_written)?;
            }
            file.flush().await.map_err(not_written)?;
            file.rewind().await.map_err(not_written)?;
            fields.insert_spooled(&name, file.into_std().await)?;
        }
        Ok(fields)
    };
    let ((), read) = futures::join!(feed, read);
    let wrong = wrong.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (wrong, read) {
        (Some(error), Err(_)) => Err(error),
        (_, read) => read,
    }
}

fn not_written(error: io::Error) -> ApiError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ApiError::StorageFull(error.into())
        }
        _ => ApiError::internal(error),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::io::Read;

    use http::header::CONTENT_TYPE;
    use http::{HeaderValue, StatusCode};

    use super::*;

    fn headers() -> HeaderMap {
        let mut headers = HeaderMap::new();
        let kind = HeaderValue::from_static("multipart/form-data; boundary=X");
        headers.insert(CONTENT_TYPE, kind);
        headers
    }

    fn body(file: &[u8]) -> Vec<u8> {
        let mut body = b"--X\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\npdf\r\n\
            --X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.zip\"\r\n\r\n"
            .to_vec();
        body.extend_from_slice(file);
        body.extend_from_slice(
            b"\r\n--X\r\nContent-Disposition: form-data; name=\"csrf_token\"\r\n\r\nabc\r\n--X--\r\n",
        );
        body
    }

    async fn read(body: Vec<u8>, limit: u64) -> Result<Fields> {
        let pieces: Vec<_> = body.chunks(1000).map(Bytes::copy_from_slice).collect();
        let pieces = pieces.into_iter().map(Ok::<_, Infallible>);
        let pieces = futures::stream::iter(pieces);
        read_spooled(&headers(), pieces, limit, tempfile::tempfile).await
    }

    #[tokio::test]
    async fn the_file_is_on_disk_and_fields_stand_on_both_sides_of_it() {
        let bytes: Vec<u8> = (0..100_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let mut fields = read(body(&bytes), 200_000).await.unwrap();
        assert_eq!(fields.take_text("name").unwrap().unwrap(), "pdf");
        assert_eq!(fields.take_text("csrf_token").unwrap().unwrap(), "abc");
        let mut found = Vec::new();
        let mut file = fields.take_spooled().unwrap();
        file.read_to_end(&mut found).unwrap();
        assert_eq!(found, bytes);
    }

    #[tokio::test]
    async fn l22_what_is_too_long_cut_or_malformed_is_refused() {
        let whole = body(&[7; 50_000]);
        let length = whole.len() as u64;
        assert!(read(whole.clone(), length).await.is_ok());
        let error = read(whole.clone(), length - 1).await.err().unwrap();
        assert_eq!(error.status(), StatusCode::PAYLOAD_TOO_LARGE);
        for cut in [10, 200, 30_000, whole.len() - 5] {
            let error = read(whole[..cut].to_vec(), length).await.err().unwrap();
            assert_eq!(error.status(), StatusCode::BAD_REQUEST, "{cut}");
        }
        let mut twice = body(b"x");
        let end = twice.len() - 7;
        twice.truncate(end);
        twice.extend_from_slice(&body(b"y"));
        let error = read(twice, length).await.err().unwrap();
        assert_eq!(error.status(), StatusCode::BAD_REQUEST);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_stops_is_not_waited_for() {
        let begin = Bytes::from(body(&[7; 5000])[..3000].to_vec());
        let pieces =
            futures::stream::iter([Ok::<_, Infallible>(begin)]).chain(futures::stream::pending());
        let read = read_spooled(&headers(), pieces, 10_000, tempfile::tempfile).await;
        let error = read.err().unwrap();
        assert_eq!(error.status(), StatusCode::REQUEST_TIMEOUT);
    }

    #[tokio::test]
    async fn a_full_disk_is_named() {
        let full = || Err(io::Error::from(io::ErrorKind::StorageFull));
        let pieces = futures::stream::iter([Ok::<_, Infallible>(Bytes::from(body(b"x")))]);
        let error = read_spooled(&headers(), pieces, 10_000, full).await.err();
        assert_eq!(error.unwrap().status(), StatusCode::INSUFFICIENT_STORAGE);
    }
}
