//! Receives uploads piece by piece: their files may be larger than what may be held in memory.

use std::fs::File;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures::{Stream, StreamExt};
use http::HeaderMap;
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH};
use multer::{Constraints, Multipart, SizeLimit};
use tokio::io::{AsyncSeekExt, AsyncWriteExt};
use tokio::time::{timeout, timeout_at};

use super::body::{ContentType, FILE};
use super::fields::Fields;
use super::multipart::unify_lines;
use super::pace::{IDLE, Pace};
use crate::error::{ApiError, Result};

/// Longest time for a whole body.
const TOTAL: Duration = Duration::from_secs(3600);
/// Longest text of a field beside the file, in bytes.
const FIELD: u64 = 64 * 1024;
/// Longest texts of all of them, in bytes.
const FIELDS: usize = 256 * 1024;
/// Bytes that the parser is given before it has to look whether it has something to give out.
const AT_ONCE: u64 = 128 * 1024;
/// Most bytes that the parser may take in without giving anything out: it keeps them, and searches them again with each piece.
const UNREAD: u64 = 2 * 1024 * 1024;

const MALFORMED: ApiError = ApiError::InvalidBody("the body is not valid multipart/form-data");

/// Where the files of an upload go, one after another.
pub(crate) trait Sink {
    /// A file begins, which its sender calls by this name.
    async fn begin(&mut self, name: Option<String>) -> Result<()>;
    /// The next bytes of it.
    async fn piece(&mut self, piece: Bytes) -> Result<()>;
    /// It has arrived.
    async fn end(&mut self) -> Result<()>;
}

/// Receives multipart/form-data whose parts [`FILE`] go to `sink`, and the fields beside them. Nothing is received that is
/// longer than `limit`.
///
/// # Errors
/// 413 as soon as the announced or received length passes the limit; 408 when the client pauses or drips; 400 when the body is
/// malformed or cut; 415 for another content type; those of the sink.
pub(crate) async fn read_files<S, B, E>(
    headers: &HeaderMap,
    body: S,
    limit: u64,
    sink: &mut impl Sink,
) -> Result<Fields>
where
    S: Stream<Item = Result<B, E>> + Send,
    B: Buf,
{
    const UNSUPPORTED: ApiError =
        ApiError::UnsupportedMediaType("send the file as multipart/form-data");
    let Some(ContentType::Multipart { boundary }) = ContentType::of(headers)? else {
        return Err(UNSUPPORTED);
    };
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit) {
        return Err(ApiError::TooLarge { limit });
    }
    let mut body = pin!(body);
    // What the parser has taken in since it last gave something out.
    let unread = AtomicU64::new(0);
    let fields = {
        let sizes = SizeLimit::new()
            .whole_stream(limit)
            .per_field(FIELD)
            .for_field(FILE, limit);
        let constraints = Constraints::new().size_limit(sizes);
        let pieces = pieces(body.as_mut(), limit, &unread);
        let mut parts = Multipart::with_constraints(pieces, boundary, constraints);
        read_parts(&mut parts, &unread, sink).await?
    };
    // What stands after the last part is of no use, but the connection is when it has been read.
    let _ = timeout(IDLE, body.next()).await;
    Ok(fields)
}

/// The pieces of a body, as long as they come in time and are not too many.
fn pieces<'a, S, B, E>(
    body: Pin<&'a mut S>,
    limit: u64,
    unread: &'a AtomicU64,
) -> impl Stream<Item = Result<Bytes>> + Send + 'a
where
    S: Stream<Item = Result<B, E>> + Send,
    B: Buf,
{
    let pace = Pace::begin_body(TOTAL);
    futures::stream::try_unfold((body, 0_u64), move |(mut body, received)| async move {
        // The parser takes in all there is, unless it has to wait, before it gives anything out.
        if unread.load(Ordering::Relaxed) > AT_ONCE {
            tokio::task::yield_now().await;
        }
        let mut piece = match timeout_at(pace.deadline(received), body.next()).await {
            Ok(Some(Ok(piece))) => piece,
            Ok(Some(Err(_))) => {
                return Err(ApiError::InvalidBody(
                    "the body ended before it was complete",
                ));
            }
            Ok(None) => return Ok(None),
            Err(_) => return Err(ApiError::RequestTimeout),
        };
        let length = piece.remaining() as u64;
        let received = received.saturating_add(length);
        if received > limit {
            return Err(ApiError::TooLarge { limit });
        }
        if unread.fetch_add(length, Ordering::Relaxed) > UNREAD {
            return Err(MALFORMED);
        }
        let piece = piece.copy_to_bytes(piece.remaining());
        Ok(Some((piece, (body, received))))
    })
}

async fn read_parts(
    parts: &mut Multipart<'_>,
    unread: &AtomicU64,
    sink: &mut impl Sink,
) -> Result<Fields> {
    let mut fields = Fields::default();
    let mut text_length = 0;
    while let Some(mut part) = parts.next_field().await.map_err(refused)? {
        unread.store(0, Ordering::Relaxed);
        let name = part.name().ok_or(MALFORMED)?.to_owned();
        if name != FILE {
            let bytes = part.bytes().await.map_err(refused)?;
            text_length += name.len() + bytes.len();
            if text_length > FIELDS {
                return Err(ApiError::InvalidBody(
                    "the fields beside the file are too long",
                ));
            }
            let text = String::from_utf8(bytes.into())
                .map_err(|_| ApiError::InvalidBody("a part of the body is not valid UTF-8"))?;
            fields.insert(name, unify_lines(text))?;
            continue;
        }
        sink.begin(file_name(part.headers())?).await?;
        while let Some(piece) = part.chunk().await.map_err(refused)? {
            unread.store(0, Ordering::Relaxed);
            sink.piece(piece).await?;
        }
        sink.end().await?;
    }
    Ok(fields)
}

/// What a failure of the parser means: that of the body, or that it cannot be read.
fn refused(error: multer::Error) -> ApiError {
    match error {
        multer::Error::StreamReadFailed(cause) => match cause.downcast() {
            Ok(of_body) => *of_body,
            Err(_) => MALFORMED,
        },
        _ => MALFORMED,
    }
}

/// Receives multipart/form-data with one part [`FILE`], which goes to the file that `make` makes, and fields beside it.
/// Nothing is kept when something is wrong.
///
/// # Errors
/// As [`read_files`]; 400 for a second file; 507 when the disk is full.
pub(crate) async fn read_spooled<S, B, E>(
    headers: &HeaderMap,
    body: S,
    limit: u64,
    make: impl Fn() -> io::Result<File>,
) -> Result<Fields>
where
    S: Stream<Item = Result<B, E>> + Send,
    B: Buf,
{
    let mut spool = Spool {
        make,
        file: None,
        whole: None,
    };
    let mut fields = read_files(headers, body, limit, &mut spool).await?;
    if let Some(file) = spool.whole {
        fields.set_spooled(file);
    }
    Ok(fields)
}

/// One file, on disk.
struct Spool<M> {
    make: M,
    file: Option<tokio::fs::File>,
    whole: Option<File>,
}

impl<M: Fn() -> io::Result<File>> Sink for Spool<M> {
    async fn begin(&mut self, _: Option<String>) -> Result<()> {
        if self.whole.is_some() {
            return Err(ApiError::invalid(FILE, format!("{FILE} is given twice")));
        }
        let file = (self.make)().map_err(not_written)?;
        self.file = Some(tokio::fs::File::from_std(file));
        Ok(())
    }

    async fn piece(&mut self, piece: Bytes) -> Result<()> {
        match &mut self.file {
            Some(file) => file.write_all(&piece).await.map_err(not_written),
            None => Ok(()),
        }
    }

    async fn end(&mut self) -> Result<()> {
        if let Some(mut file) = self.file.take() {
            file.flush().await.map_err(not_written)?;
            file.rewind().await.map_err(not_written)?;
            self.whole = Some(file.into_std().await);
        }
        Ok(())
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

/// How the sender of a part calls its file.
///
/// Browsers and curl write `%22`, `%0D` and `%0A` for the three characters that cannot stand in the header, and everything
/// else as it is in UTF-8, a backslash too (<https://html.spec.whatwg.org/#multipart-form-data>); older programs write a
/// backslash before a quote, and some `filename*` (RFC 8187).
///
/// # Errors
/// 400 when the name is not UTF-8.
fn file_name(headers: &HeaderMap) -> Result<Option<String>> {
    const NOT_UTF8: fn() -> ApiError = || ApiError::InvalidBody("a file name is not valid UTF-8");
    let Some(value) = headers.get(CONTENT_DISPOSITION) else {
        return Ok(None);
    };
    let value = std::str::from_utf8(value.as_bytes()).map_err(|_| NOT_UTF8())?;
    // What stands in quotes is a name, whatever it looks like.
    let quoted = |before: &str, rest: &str| before.contains("filename=") && rest.contains('"');
    let exact = value.split_once("filename*=");
    if let Some((_, rest)) = exact.filter(|(before, rest)| !quoted(before, rest)) {
        let encoded = rest.split(';').next().unwrap_or(rest).trim();
        if let Some((charset, name)) = encoded.split_once("''")
            && charset.eq_ignore_ascii_case("utf-8")
        {
            let name = percent_encoding::percent_decode_str(name).decode_utf8();
            return Ok(Some(name.map_err(|_| NOT_UTF8())?.into_owned()));
        }
    }
    let Some((_, rest)) = value.split_once("filename=") else {
        return Ok(None);
    };
    let name = match rest.strip_prefix('"') {
        // It stands last, so the last quote is its end, whatever is in it.
        Some(rest) => rest.rsplit_once('"').map_or(rest, |(name, _)| name),
        None => rest.split(';').next().unwrap_or(rest).trim(),
    };
    let mut name = name.to_owned();
    if name.contains("\\\"") {
        name = name.replace("\\\"", "\"").replace("\\\\", "\\");
    }
    for (escape, character) in [("%22", "\""), ("%0D", "\r"), ("%0A", "\n")] {
        name = name.replace(escape, character);
    }
    Ok(Some(name))
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

    #[test]
    fn l23_file_names_are_what_browsers_and_programs_mean() {
        for (value, expected) in [
            ("form-data; name=\"file\"", None),
            (
                "form-data; name=\"file\"; filename=\"a b.txt\"",
                Some("a b.txt"),
            ),
            (
                "form-data; name=\"file\"; filename=\"a%22b%0D%0A.txt\"",
                Some("a\"b\r\n.txt"),
            ),
            (
                "form-data; name=\"file\"; filename=\"100% a\\\"",
                Some("100% a\\"),
            ),
            (
                "form-data; name=\"file\"; filename=\"a\\\"b\\\\c\"",
                Some("a\"b\\c"),
            ),
            (
                "form-data; name=\"file\"; filename=\"a\"b.txt\"",
                Some("a\"b.txt"),
            ),
            ("form-data; name=file; filename=a.txt", Some("a.txt")),
            (
                "form-data; name=\"file\"; filename=\"e\u{301}\u{1f600}\"",
                Some("e\u{301}\u{1f600}"),
            ),
            (
                "form-data; name=\"file\"; filename*=UTF-8''%C3%A9%22.txt",
                Some("\u{e9}\".txt"),
            ),
            (
                "form-data; name=\"file\"; filename=\"_.txt\"; filename*=UTF-8''%C3%A9.txt",
                Some("\u{e9}.txt"),
            ),
            (
                "form-data; name=\"file\"; filename=\"a; filename*=UTF-8''b.txt\"",
                Some("a; filename*=UTF-8''b.txt"),
            ),
        ] {
            let mut headers = HeaderMap::new();
            let header = HeaderValue::from_bytes(value.as_bytes()).unwrap();
            headers.insert(CONTENT_DISPOSITION, header);
            assert_eq!(file_name(&headers).unwrap().as_deref(), expected, "{value}");
        }
        let mut headers = HeaderMap::new();
        let header = HeaderValue::from_bytes(b"form-data; filename=\"\xff\"").unwrap();
        headers.insert(CONTENT_DISPOSITION, header);
        let error = file_name(&headers).unwrap_err();
        assert_eq!(error.status(), StatusCode::BAD_REQUEST);
    }

    #[tokio::test]
    async fn a_full_disk_is_named() {
        let full = || Err(io::Error::from(io::ErrorKind::StorageFull));
        let pieces = futures::stream::iter([Ok::<_, Infallible>(Bytes::from(body(b"x")))]);
        let error = read_spooled(&headers(), pieces, 10_000, full).await.err();
        assert_eq!(error.unwrap().status(), StatusCode::INSUFFICIENT_STORAGE);
    }
}
