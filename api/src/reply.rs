//! What a handler answers: the success envelope, bare resources, text and event streams.

use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::header::{
    CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName,
    LOCATION,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use warp::Reply as _;

use crate::budget::StreamCost;
use crate::error::{ApiError, Cause, Result};

/// The response type of the HTTP stack.
pub(crate) type Response = warp::reply::Response;

/// How often an idle event stream sends a comment, so that proxies keep it open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Bytes counted for a download: pieces under way, and a thread or an open file. One user has 32 long ones at once, or 128 short ones.
const DOWNLOAD_COST: RangeInclusive<usize> = 256 * 1024..=1024 * 1024;

/// One server-sent event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// The event's type; `None` is the default type `message`.
    pub name: Option<String>,
    /// The id a client sends back as `Last-Event-ID`.
    pub id: Option<String>,
    /// The payload; line breaks are kept.
    pub data: String,
}

impl Event {
    /// An event of the default type with a JSON payload.
    ///
    /// # Errors
    /// [`ApiError::Internal`] when the value has no JSON form.
    pub fn json(value: &impl Serialize) -> Result<Self> {
        Ok(Self {
            data: serde_json::to_string(value).map_err(ApiError::internal)?,
            ..Self::default()
        })
    }
}

impl Event {
    /// The event as it goes over the wire.
    pub(crate) fn to_frame(&self) -> Bytes {
        let mut frame = String::with_capacity(self.data.len() + 128);
        let line = |frame: &mut String, field: &str, text: &str| {
            for part in [field, text, "\n"] {
                frame.push_str(part);
            }
        };
        if let Some(name) = &self.name {
            line(&mut frame, "event:", name);
        }
        // Readers end a line at each of the three ends that there are.
        for text in self.data.lines().flat_map(|text| text.split('\r')) {
            line(&mut frame, "data: ", text);
        }
        if let Some(id) = &self.id {
            line(&mut frame, "id:", id);
        }
        frame.push('\n');
        frame.into()
    }
}

/// A boxed stream of events.
type Frames = Pin<Box<dyn Stream<Item = Bytes> + Send>>;
type Events = Pin<Box<dyn Stream<Item = Event> + Send>>;

/// A boxed stream of pieces of a body.
type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, Cause>> + Send>>;

enum Payload {
    Json(Value),
    /// JSON text that was made before.
    ReadyMade(Bytes),
    /// JSON with a long text as its last field, written as it is read.
    JsonWithText(Map<String, Value>, &'static str, String),
    Text(String),
    /// HTML, and what of it a browser may do.
    Page(String, HeaderValue),
    Events(Events),
    Pieces(Pieces),
    Frames(Frames),
    LastFrames(Frames),
    Empty,
    /// The value could not be serialised; reported when the response is built.
    Broken(serde_json::Error),
}

/// What a handler answers.
pub struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    payload: Payload,
    pretty: bool,
}

impl Reply {
    /// The success envelope with its message.
    pub fn ok(message: impl Into<String>) -> Self {
        let mut body = Map::new();
        body.insert("success".to_owned(), json!(true));
        body.insert("message".to_owned(), json!(message.into()));
        Self::new(Payload::Json(Value::Object(body)))
    }

    /// A resource without the envelope.
    pub fn resource(value: &impl Serialize) -> Self {
        Self::new(match serde_json::to_value(value) {
            Ok(value) => Payload::Json(value),
            Err(error) => Payload::Broken(error),
        })
    }

    /// JSON text that was made before.
    pub fn json(text: Bytes) -> Self {
        Self::new(Payload::ReadyMade(text))
    }

    /// JSON over several lines with indentation: for people who read it as it is.
    #[must_use]
    pub fn pretty(mut self) -> Self {
        self.pretty = true;
        self
    }

    /// Plain UTF-8 text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Payload::Text(text.into()))
    }

    /// A page with its Content-Security-Policy.
    pub fn page(html: String, policy: HeaderValue) -> Self {
        Self::new(Payload::Page(html, policy))
    }

    /// Another address to go to.
    pub fn redirect(to: HeaderValue) -> Self {
        Self::new(Payload::Empty)
            .status(StatusCode::FOUND)
            .header(LOCATION, to)
    }

    /// 204 without a body.
    pub fn empty() -> Self {
        Self::new(Payload::Empty).status(StatusCode::NO_CONTENT)
    }

    /// An event stream. It ends with the stream given, or when the service shuts down.
    pub fn events(events: impl Stream<Item = Event> + Send + 'static) -> Self {
        Self::new(Payload::Events(Box::pin(events))).header(
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        )
    }

    /// A file of this name, sent piece by piece. It ends with the stream given; an error in it, or the
    /// service's end, cuts the connection, so that nobody takes a part for the whole.
    pub fn download<E>(
        content_type: HeaderValue,
        name: &str,
        pieces: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Self
    where
        E: Into<Cause>,
    {
        let disposition = HeaderValue::try_from(disposition(name));
        let pieces = pieces.map(|piece| piece.map_err(Into::into));
        Self::new(Payload::Pieces(Box::pin(pieces)))
            .header(CONTENT_TYPE, content_type)
            .header(
                CONTENT_DISPOSITION,
                disposition.unwrap_or(HeaderValue::from_static("attachment")),
            )
    }

    /// A download that a browser may show in its page.
    #[must_use]
    pub(crate) fn inline(mut self) -> Self {
        let inline = HeaderValue::from_static("inline");
        self.headers.insert(CONTENT_DISPOSITION, inline);
        self
    }

    /// An event stream whose pieces are as they go over the wire, because several clients get the same
    /// ones. It keeps itself alive; it ends with the stream given, or when the service shuts down.
    pub(crate) fn frames(frames: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::event_stream(Payload::Frames(Box::pin(frames)))
    }

    /// The same for one that still has something to say when the service shuts down, and ends by itself soon after.
    pub(crate) fn last_frames(frames: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::event_stream(Payload::LastFrames(Box::pin(frames)))
    }

    fn event_stream(payload: Payload) -> Self {
        Self::new(payload)
            .header(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"))
            .header(
                HeaderName::from_static("x-accel-buffering"),
                HeaderValue::from_static("no"),
            )
    }

    fn new(payload: Payload) -> Self {
        Self {
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            payload,
            pretty: false,
        }
    }

    /// Adds a field to a JSON answer; a second field of the same name replaces the first.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Serialize) -> Self {
        if let Payload::Json(Value::Object(body)) = &mut self.payload {
            match serde_json::to_value(value) {
                Ok(value) => {
                    body.insert(name.to_owned(), value);
                }
                Err(error) => self.payload = Payload::Broken(error),
            }
        }
        self
    }

    /// Adds every field of a struct to a JSON answer.
    #[must_use]
    pub(crate) fn with_fields_of(mut self, value: &impl Serialize) -> Self {
        if let Payload::Json(Value::Object(body)) = &mut self.payload {
            match serde_json::to_value(value) {
                Ok(Value::Object(fields)) => body.extend(fields),
                Ok(_) => {
                    let error = "an answer's fields are no object";
                    self.payload = Payload::Broken(serde::ser::Error::custom(error));
                }
                Err(error) => self.payload = Payload::Broken(error),
            }
        }
        self
    }

    /// The same in the failure envelope, with the status it has.
    #[must_use]
    pub(crate) fn with_failure(mut self, code: &str, error: String) -> Self {
        if let Payload::Json(Value::Object(body)) = &mut self.payload {
            body.insert("success".to_owned(), json!(false));
            body.insert("code".to_owned(), json!(code));
            body.insert("error".to_owned(), json!(error));
        }
        self
    }

    /// Adds a long text to a JSON answer: written piece by piece, since what JSON escapes takes up to six times the memory.
    #[must_use]
    pub(crate) fn with_long_text(mut self, name: &'static str, text: String) -> Self {
        if let Payload::Json(Value::Object(body)) = &mut self.payload {
            let mut body = std::mem::take(body);
            body.remove(name);
            self.payload = Payload::JsonWithText(body, name, text);
        }
        self
    }

    /// Another status than 200.
    #[must_use]
    pub fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// Builds the response. `shutdown` ends an event stream.
    pub(crate) fn into_response(self, shutdown: &CancellationToken) -> Result<Response> {
        let mut response = match self.payload {
            Payload::Json(value) => {
                let bytes = if self.pretty {
                    serde_json::to_vec_pretty(&value)
                } else {
                    serde_json::to_vec(&value)
                }
                .map_err(ApiError::internal)?;
                typed(bytes, "application/json")
            }
            Payload::JsonWithText(body, name, text) => {
                let cost = StreamCost(text.len());
                let pieces = json_pieces(&body, name, text)?;
                let mut response = flowing(pieces);
                response.extensions_mut().insert(cost);
                let json = HeaderValue::from_static("application/json");
                response.headers_mut().insert(CONTENT_TYPE, json);
                response
            }
            Payload::ReadyMade(text) => typed(text, "application/json"),
            Payload::Text(text) => typed(text.into_bytes(), "text/plain; charset=utf-8"),
            Payload::Page(html, policy) => {
                let mut response = typed(html.into_bytes(), "text/html; charset=utf-8");
                let headers = response.headers_mut();
                headers.insert(CONTENT_SECURITY_POLICY, policy);
                response
            }
            Payload::Empty => Response::default(),
            Payload::Events(events) => {
                let events = events
                    .take_until(shutdown.clone().cancelled_owned())
                    .map(|event| Ok::<_, std::convert::Infallible>(to_sse(event)));
                let events = Shared(Mutex::new(Box::pin(events)));
                let kept = warp::sse::keep_alive().interval(KEEP_ALIVE).stream(events);
                warp::sse::reply(kept).into_response()
            }
            Payload::Pieces(pieces) => {
                let stopped = shutdown.clone();
                let cut = futures::stream::once(async move {
                    let cause = || Err(Cause::from("the service is ending"));
                    stopped.is_cancelled().then(cause)
                });
                let pieces = pieces
                    .take_until(shutdown.clone().cancelled_owned())
                    .chain(cut.filter_map(std::future::ready));
                let pieces = Shared(Mutex::new(Box::pin(pieces)));
                let mut response = warp::reply::stream(pieces).into_response();
                let length = self.headers.get(CONTENT_LENGTH);
                let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
                let (least, most) = DOWNLOAD_COST.into_inner();
                let cost = length.unwrap_or(most).clamp(least, most);
                response.extensions_mut().insert(StreamCost(cost));
                response
            }
            Payload::Frames(frames) => {
                flowing(frames.take_until(shutdown.clone().cancelled_owned()))
            }
            Payload::LastFrames(frames) => flowing(frames),
            Payload::Broken(error) => return Err(ApiError::internal(error)),
        };
        *response.status_mut() = self.status;
        response.headers_mut().extend(self.headers);
        Ok(response)
    }
}

/// How a browser is told to save a file of this name (RFC 6266): for those that know no other way in ASCII, and as it is
/// (RFC 8187).
fn disposition(name: &str) -> String {
    let plain = |c: char| match c {
        '"' | '\\' | '/' | '%' => '_',
        c if c.is_ascii_graphic() || c == ' ' => c,
        _ => '_',
    };
    let ascii: String = name.chars().map(plain).collect();
    if ascii == name {
        return format!("attachment; filename=\"{ascii}\"");
    }
    const ATTRIBUTE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_');
    let exact = utf8_percent_encode(name, ATTRIBUTE);
    format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{exact}")
}

/// Bytes of a long text that are written at once.
const TEXT_PIECE: usize = 16 * 1024;

/// A JSON object whose last field is a long text, in pieces.
fn json_pieces(
    body: &Map<String, Value>,
    name: &'static str,
    text: String,
) -> Result<impl Stream<Item = Bytes> + Send + 'static> {
    let mut head = serde_json::to_vec(body).map_err(ApiError::internal)?;
    head.pop();
    let comma = if body.is_empty() { "" } else { "," };
    head.extend_from_slice(format!("{comma}\"{name}\":\"").as_bytes());
    let texts = futures::stream::unfold((text, 0), |(text, begin)| async move {
        let rest = text.get(begin..).filter(|rest| !rest.is_empty())?;
        let piece = &rest[..rest.floor_char_boundary(TEXT_PIECE)];
        let next = begin + piece.len();
        // A text has a JSON form, between two quotation marks.
        let written = Bytes::from(Value::from(piece).to_string());
        let escaped = written.slice(1..written.len() - 1);
        Some((escaped, (text, next)))
    });
    let once = |bytes| futures::stream::once(std::future::ready(bytes));
    Ok(once(Bytes::from(head))
        .chain(texts)
        .chain(once(Bytes::from_static(b"\"}"))))
}

fn flowing(frames: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let frames = frames.map(Ok::<_, std::convert::Infallible>);
    warp::reply::stream(Shared(Mutex::new(Box::pin(frames)))).into_response()
}

fn typed(bytes: impl Into<Bytes>, content_type: &'static str) -> Response {
    let mut response = Response::new(bytes.into().into());
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn to_sse(event: Event) -> warp::sse::Event {
    // The blank belongs to the frame, not to the data: readers of little care look for `data: `.
    let lines: Vec<String> = event.data.lines().map(|line| format!(" {line}")).collect();
    let mut sse = warp::sse::Event::default().data(lines.join("\n"));
    if let Some(name) = event.name {
        sse = sse.event(name);
    }
    if let Some(id) = event.id {
        sse = sse.id(id);
    }
    sse
}

/// Makes a stream `Sync`, as response bodies must be. It is only ever polled through `&mut`, so the
/// lock is never contended.
struct Shared<S>(Mutex<Pin<Box<S>>>);

impl<S: Stream> Stream for Shared<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .as_mut()
            .poll_next(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    async fn body_of(reply: Reply) -> (StatusCode, String) {
        let response = reply.into_response(&CancellationToken::new()).unwrap();
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn success_has_a_message_and_extra_fields() {
        let (status, body) = body_of(
            Reply::ok("done")
                .with("generation", 3)
                .status(StatusCode::ACCEPTED),
        )
        .await;
        assert_eq!(status, StatusCode::ACCEPTED);
        let value: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            value,
            json!({"success": true, "message": "done", "generation": 3})
        );
    }

    #[tokio::test]
    async fn long_text_is_one_json_string() {
        let text = "\u{1}\"ä€😀\n".repeat(5000);
        let reply = Reply::ok("")
            .with("content", "")
            .with_long_text("content", text.clone());
        let (_, body) = body_of(reply).await;
        let value: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            value,
            json!({"success": true, "message": "", "content": text})
        );
    }

    #[tokio::test]
    async fn failures_have_error_and_code() {
        let (status, body) =
            body_of(ApiError::invalid("page", "page begins at 1").to_reply()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        let value: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            value,
            json!({"success": false, "error": "page begins at 1", "code": "invalid_parameter", "field": "page"})
        );
    }

    #[tokio::test]
    async fn event_streams_end_when_the_service_shuts_down() {
        let shutdown = CancellationToken::new();
        let reply = Reply::events(
            futures::stream::once(async {
                Event {
                    data: "a\nb".to_owned(),
                    ..Event::default()
                }
            })
            .chain(futures::stream::pending()),
        );
        let mut body = reply.into_response(&shutdown).unwrap().into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "data: a\ndata: b\n\n");
        shutdown.cancel();
        assert!(body.frame().await.is_none());
    }

    #[test]
    fn l23_any_name_of_a_download_makes_a_header() {
        for (name, expected) in [
            ("a b.zip", "attachment; filename=\"a b.zip\""),
            (
                "\u{e9}\"\r\n.zip",
                "attachment; filename=\"____.zip\"; filename*=UTF-8''%C3%A9%22%0D%0A.zip",
            ),
        ] {
            assert_eq!(disposition(name), expected);
            assert!(HeaderValue::try_from(disposition(name)).is_ok());
        }
    }

    #[test]
    fn a_value_without_json_form_is_a_server_error() {
        let bad: std::collections::HashMap<(i32, i32), i32> = [((1, 2), 3)].into();
        let result = Reply::ok("x")
            .with("bad", bad)
            .into_response(&CancellationToken::new());
        assert!(matches!(result, Err(ApiError::Internal(_))));
    }
}
