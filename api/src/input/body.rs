//! Receives request bodies: never more than the limit, never waiting for ever.

use std::time::Duration;

use bytes::{Buf, Bytes};
use futures::{Stream, StreamExt};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use tokio::time::timeout_at;

use super::fields::Fields;
use super::pace::Pace;
use super::{multipart, urlencoded};
use crate::error::{ApiError, Result};
use crate::limits::Share;

/// Longest time for a whole body of fields.
const TOTAL: Duration = Duration::from_secs(120);

/// The least memory asked for, in bytes: most bodies fit in there.
const FIRST_PIECE: usize = 1024;

/// The part of an upload that is the file.
pub(crate) const FILE: &str = "file";

const BODY_NOT_UTF8: fn() -> ApiError = || ApiError::InvalidBody("the body is not valid UTF-8");

/// How the fields of a body are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ContentType {
    UrlEncoded,
    Json,
    Multipart { boundary: String },
}

impl ContentType {
    /// Reads the headers; `None` when the request has no content type.
    ///
    /// # Errors
    /// 415 for a type or an encoding that is not taken, 400 for multipart without boundary.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Option<Self>> {
        const UNSUPPORTED: ApiError = ApiError::UnsupportedMediaType(
            "send application/x-www-form-urlencoded, multipart/form-data or application/json",
        );
        if headers
            .get(CONTENT_ENCODING)
            .is_some_and(|encoding| encoding != "identity")
        {
            return Err(ApiError::UnsupportedMediaType(
                "send the body without content encoding",
            ));
        }
        let Some(value) = headers.get(CONTENT_TYPE) else {
            return Ok(None);
        };
        let value = value.to_str().map_err(|_| UNSUPPORTED)?;
        let parsed: mime::Mime = value.parse().map_err(|_| UNSUPPORTED)?;
        match parsed.essence_str() {
            "application/x-www-form-urlencoded" => Ok(Some(Self::UrlEncoded)),
            "application/json" => Ok(Some(Self::Json)),
            "multipart/form-data" => {
                let boundary = multer::parse_boundary(value)
                    .map_err(|_| ApiError::InvalidBody("multipart/form-data needs a boundary"))?;
                Ok(Some(Self::Multipart { boundary }))
            }
            _ => Err(UNSUPPORTED),
        }
    }
}

/// Receives a body of at most `limit` bytes, whose memory `share` covers. `unwanted` is why the
/// first byte is refused; an empty body is never.
///
/// # Errors
/// 413 as soon as the announced or received length passes the limit; 408 when the client pauses or
/// drips; 400 when the connection breaks; 503 when no memory is left for it; `unwanted`.
async fn collect<S, B, E>(
    headers: &HeaderMap,
    body: S,
    limit: u64,
    share: &mut Share,
    mut unwanted: Option<ApiError>,
) -> Result<Bytes>
where
    S: Stream<Item = Result<B, E>>,
    B: Buf,
{
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit) {
        return Err(ApiError::TooLarge { limit });
    }
    let pace = Pace::begin_body(TOTAL);
    let mut received = Vec::new();
    futures::pin_mut!(body);
    loop {
        let deadline = pace.deadline(received.len() as u64);
        let piece = match timeout_at(deadline, body.next()).await {
            Ok(Some(Ok(piece))) => piece,
            Ok(Some(Err(_))) => {
                return Err(ApiError::InvalidBody(
                    "the body ended before it was complete",
                ));
            }
            Ok(None) => return Ok(received.into()),
            Err(_) => return Err(ApiError::RequestTimeout),
        };
        let total = received.len().saturating_add(piece.remaining());
        if u64::try_from(total).unwrap_or(u64::MAX) > limit {
            return Err(ApiError::TooLarge { limit });
        }
        if piece.has_remaining()
            && let Some(unwanted) = unwanted.take()
        {
            return Err(unwanted);
        }
        make_room(&mut received, total, limit, share)?;
        let mut piece = piece;
        while piece.has_remaining() {
            let chunk = piece.chunk();
            let length = chunk.len();
            received.extend_from_slice(chunk);
            piece.advance(length);
        }
    }
}

/// Sees to it that `total` bytes fit. Memory doubles, as a vector's does, but never past the limit.
fn make_room(received: &mut Vec<u8>, total: usize, limit: u64, share: &mut Share) -> Result<()> {
    if total <= received.capacity() {
        return Ok(());
    }
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let capacity = (received.capacity() * 2).max(FIRST_PIECE).min(most);
    let capacity = capacity.max(total);
    share.cover(capacity)?;
    received.reserve_exact(capacity - received.len());
    Ok(())
}

/// Receives a body and reads its fields. An empty body has none, whatever its type: browsers send
/// one along with a body that is an empty text. `share` covers the memory that the body takes, and
/// is to be kept for as long as the fields are.
///
/// # Errors
/// Those of receiving (413, 408, 400, 503), 415 for an unknown content type, 400 for malformed
/// content.
pub(crate) async fn read_fields<S, B, E>(
    headers: &HeaderMap,
    body: S,
    limit: u64,
    share: &mut Share,
) -> Result<Fields>
where
    S: Stream<Item = Result<B, E>>,
    B: Buf,
{
    let (content_type, unwanted) = match ContentType::of(headers) {
        Ok(content_type) => (content_type, None),
        Err(error) => (None, Some(error)),
    };
    let bytes = collect(headers, body, limit, share, unwanted).await?;
    if bytes.is_empty() {
        return Ok(Fields::default());
    }
    match content_type {
        Some(ContentType::UrlEncoded) => urlencoded::parse(&bytes, BODY_NOT_UTF8),
        Some(ContentType::Json) => Fields::from_json(&bytes),
        Some(ContentType::Multipart { boundary }) => multipart::parse(bytes, &boundary, None).await,
        None => Err(ApiError::UnsupportedMediaType(
            "the request has a body but no content type",
        )),
    }
}

/// Receives JSON as it is. Everything else as in [`read_fields`].
///
/// # Errors
/// As [`read_fields`]; 415 for every other content type.
pub(crate) async fn read_message<S, B, E>(
    headers: &HeaderMap,
    body: S,
    limit: u64,
    share: &mut Share,
) -> Result<Bytes>
where
    S: Stream<Item = Result<B, E>>,
    B: Buf,
{
    let unwanted = match ContentType::of(headers) {
        Ok(Some(ContentType::Json) | None) => None,
        Ok(_) => Some(ApiError::UnsupportedMediaType("send application/json")),
        Err(error) => Some(error),
    };
    collect(headers, body, limit, share, unwanted).await
}

/// Receives an upload: multipart/form-data with one part [`FILE`], and fields beside it. Everything else as in
/// [`read_fields`].
///
/// # Errors
/// As [`read_fields`]; 415 for every other content type.
pub(crate) async fn read_upload<S, B, E>(
    headers: &HeaderMap,
    body: S,
    limit: u64,
    share: &mut Share,
) -> Result<Fields>
where
    S: Stream<Item = Result<B, E>>,
    B: Buf,
{
    const UNSUPPORTED: ApiError =
        ApiError::UnsupportedMediaType("send the file as multipart/form-data");
    let (boundary, unwanted) = match ContentType::of(headers) {
        Ok(Some(ContentType::Multipart { boundary })) => (Some(boundary), None),
        Ok(_) => (None, Some(UNSUPPORTED)),
        Err(error) => (None, Some(error)),
    };
    let bytes = collect(headers, body, limit, share, unwanted).await?;
    match boundary {
        _ if bytes.is_empty() => Ok(Fields::default()),
        Some(boundary) => multipart::parse(bytes, &boundary, Some(FILE)).await,
        None => Err(UNSUPPORTED),
    }
}

/// Reads the fields of a query string.
///
/// # Errors
/// 400 when it is not UTF-8 after decoding, or repeats a field.
pub(crate) fn read_query(query: &str) -> Result<Fields> {
    urlencoded::parse(query.as_bytes(), || ApiError::InvalidEncoding)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::HeaderValue;
    use rstest::rstest;

    use tokio::time::Instant;

    use super::super::pace::IDLE;
    use super::*;
    use crate::budget::budget_of;

    async fn read<S, B, E>(headers: &HeaderMap, body: S, limit: u64) -> Result<Fields>
    where
        S: Stream<Item = Result<B, E>>,
        B: Buf,
    {
        read_fields(headers, body, limit, &mut budget_of(1024).share(&())).await
    }

    fn headers(content_type: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers
    }

    fn pieces(pieces: Vec<&'static [u8]>) -> impl Stream<Item = Result<Bytes, Infallible>> {
        futures::stream::iter(
            pieces
                .into_iter()
                .map(|piece| Ok(Bytes::from_static(piece))),
        )
    }

    #[rstest]
    #[case("application/x-www-form-urlencoded", 200)]
    #[case("application/x-www-form-urlencoded; charset=UTF-8", 200)]
    #[case("text/plain", 415)]
    #[case("application/xml", 415)]
    #[case("nonsense", 415)]
    #[case("multipart/form-data", 400)]
    #[tokio::test]
    async fn only_three_content_types_are_taken(#[case] kind: &'static str, #[case] status: u16) {
        let result = read(&headers(kind), pieces(vec![b"a=1"]), 100).await;
        assert_eq!(result.map_or_else(|e| e.status().as_u16(), |_| 200), status);
    }

    #[tokio::test]
    async fn compressed_bodies_are_refused() {
        let mut headers = headers("application/json");
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        let result = read(&headers, pieces(vec![b"{}"]), 100).await;
        assert!(matches!(result, Err(ApiError::UnsupportedMediaType(_))));
    }

    #[tokio::test]
    async fn an_empty_body_has_no_fields_and_needs_no_type() {
        read(&HeaderMap::new(), pieces(vec![]), 100).await.unwrap();
        let result = read(&HeaderMap::new(), pieces(vec![b"a"]), 100).await;
        assert!(matches!(result, Err(ApiError::UnsupportedMediaType(_))));
    }

    #[rstest]
    #[case("text/plain;charset=UTF-8")]
    #[case("nonsense")]
    #[case("multipart/form-data")]
    #[tokio::test]
    async fn an_empty_body_is_empty_whatever_its_type(#[case] kind: &'static str) {
        let mut fields = read(&headers(kind), pieces(vec![b"", b""]), 100)
            .await
            .unwrap();
        assert_eq!(fields.take_text("a").unwrap(), None);
    }

    #[tokio::test]
    async fn nothing_is_read_of_a_body_of_another_type() {
        let rest = futures::stream::once(async { unreachable!("read on") });
        let body = pieces(vec![b"", b"a=1"]).chain(rest);
        let result = read(&headers("text/plain"), body, 100).await;
        assert!(matches!(result, Err(ApiError::UnsupportedMediaType(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn l63_stalled_bodies_stay_within_the_budget() {
        const LIMIT: usize = 16 * 1024;
        let budget = budget_of(64);
        let stalled: Vec<_> = (0..20)
            .map(|_| async {
                let piece = Ok::<_, Infallible>(Bytes::from(vec![b'a'; LIMIT]));
                let body = futures::stream::iter([piece]).chain(futures::stream::pending());
                let form = headers("application/x-www-form-urlencoded");
                let mut share = budget.share(&());
                let begun = Instant::now();
                let result = read_fields(&form, body, LIMIT as u64, &mut share).await;
                (result.unwrap_err().code().to_owned(), begun.elapsed())
            })
            .collect();
        let ends = futures::future::join_all(stalled).await;
        let of = |code| ends.iter().filter(move |(end, _)| end == code);
        assert_eq!(of("request_timeout").count(), 4);
        assert_eq!(of("busy").count(), 16);
        assert!(of("busy").all(|(_, waited)| waited.is_zero()));
        // All of it is free again.
        budget.share(&()).cover(4 * LIMIT).unwrap();
    }

    #[tokio::test]
    async fn a_body_holds_no_more_than_its_limit() {
        let budget = budget_of(10);
        let mut share = budget.share(&());
        let form = headers("application/x-www-form-urlencoded");
        let drips = vec![b"a=".as_slice(); 4000];
        let result = read_fields(&form, pieces(drips), 10 * 1024, &mut share).await;
        result.unwrap();
    }

    #[tokio::test]
    async fn the_limit_is_exact_and_nothing_is_read_past_it() {
        let form = || headers("application/x-www-form-urlencoded");
        let exact = pieces(vec![b"a=345", b"67890"]);
        read(&form(), exact, 10).await.unwrap();
        let over = pieces(vec![b"a=345", b"678901"]).chain(futures::stream::once(async {
            unreachable!("read past the limit")
        }));
        let result = read(&form(), over, 10).await;
        assert!(matches!(result, Err(ApiError::TooLarge { limit: 10 })));
        let mut announced = form();
        announced.insert(CONTENT_LENGTH, HeaderValue::from_static("11"));
        let unread = futures::stream::once(async {
            unreachable!("read although the announced length is over the limit")
        });
        let result = read::<_, Bytes, Infallible>(&announced, unread, 10).await;
        assert!(matches!(result, Err(ApiError::TooLarge { .. })));
    }

    #[tokio::test(start_paused = true)]
    async fn l63_a_stalled_body_is_given_up_after_30_seconds() {
        let begun = Instant::now();
        let stalled = pieces(vec![b"a="]).chain(futures::stream::pending());
        let form = headers("application/x-www-form-urlencoded");
        let result = read(&form, stalled, 100).await;
        assert!(matches!(result, Err(ApiError::RequestTimeout)));
        assert_eq!(begun.elapsed(), IDLE);
    }

    #[tokio::test(start_paused = true)]
    async fn l63_a_dripping_body_is_given_up() {
        let begun = Instant::now();
        let drip = futures::stream::repeat(()).then(|()| async {
            tokio::time::sleep(Duration::from_secs(29)).await;
            Ok::<_, Infallible>(Bytes::from_static(b"a"))
        });
        let form = headers("application/x-www-form-urlencoded");
        let result = read(&form, drip, 1000).await;
        assert!(matches!(result, Err(ApiError::RequestTimeout)));
        assert_eq!(begun.elapsed(), IDLE);
    }
}
