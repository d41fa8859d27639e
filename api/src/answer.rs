//! Typed answers: what a handler sends, and at the same time what the API document says of it.
//!
//! A handler returns a type that implements [`Answers`]. The registry asks the type for its schema
//! when the handler is bound, so what is documented is what is sent, and nothing can be forgotten.

use std::convert::Infallible;

use futures::Stream;
use http::header::HeaderName;
use http::{HeaderValue, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::error::{ApiError, Cause};
use crate::openapi::Schemas;
use crate::reply::{Event, Reply};

/// So many users, as messages say it: `1 user`, `2 users`.
pub(crate) fn users<N: From<u8> + PartialEq + std::fmt::Display>(count: N) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} user{plural}")
}

/// What a handler may answer with.
pub trait Answers: Send + 'static {
    /// What is sent.
    fn into_reply(self) -> Reply;
    /// What is documented: the body for each status, without those of failures.
    fn describe(schemas: &mut Schemas) -> Vec<Body>;
}

/// One body that a route may answer with.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    /// The status it comes with.
    pub status: StatusCode,
    /// Its content type; empty: there is no body.
    pub content_type: &'static str,
    /// Its JSON Schema.
    pub schema: Value,
}

impl Body {
    /// A body of JSON.
    pub fn json(schema: Value) -> Self {
        Self {
            status: StatusCode::OK,
            content_type: "application/json",
            schema,
        }
    }

    /// A body of plain text.
    pub fn text(status: StatusCode) -> Self {
        Self {
            status,
            content_type: "text/plain",
            schema: json!({"type": "string"}),
        }
    }

    /// An event stream; the schema is that of one event.
    pub fn events() -> Self {
        Self {
            status: StatusCode::OK,
            content_type: "text/event-stream",
            schema: json!({"$ref": "#/components/schemas/StreamEvent"}),
        }
    }
}

/// The success envelope without further fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Plain {}

/// The success envelope with the fields of `T`.
pub struct Answer<T = Plain> {
    envelope: Reply,
    fields: T,
    /// A field that is written as it is read, in place of that of `fields`.
    long_text: Option<(&'static str, String)>,
}

impl Answer {
    /// The envelope alone.
    pub fn plain(message: impl Into<String>) -> Self {
        Self::ok(message, Plain {})
    }
}

impl<T> Answer<T> {
    /// The envelope with its message, and the fields.
    pub fn ok(message: impl Into<String>, fields: T) -> Self {
        Self {
            envelope: Reply::ok(message),
            fields,
            long_text: None,
        }
    }

    /// The failure envelope, and fields that are reported all the same.
    pub fn failed(error: &ApiError, fields: T) -> Self {
        Self {
            envelope: error.to_reply(),
            fields,
            long_text: None,
        }
    }

    /// The same answer with other fields.
    pub fn map<U>(self, fields: impl FnOnce(T) -> U) -> Answer<U> {
        Answer {
            envelope: self.envelope,
            fields: fields(self.fields),
            long_text: self.long_text,
        }
    }

    /// Gives a field of the answer a long text, which is written as it is read.
    #[must_use]
    pub(crate) fn with_long_text(self, field: &'static str, text: String) -> Self {
        Self {
            long_text: Some((field, text)),
            ..self
        }
    }

    /// Another status than 200.
    #[must_use]
    pub fn status(self, status: StatusCode) -> Self {
        Self {
            envelope: self.envelope.status(status),
            ..self
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(self, name: HeaderName, value: HeaderValue) -> Self {
        Self {
            envelope: self.envelope.header(name, value),
            ..self
        }
    }
}

impl<T: Serialize + ToSchema + Send + 'static> Answers for Answer<T> {
    fn into_reply(self) -> Reply {
        let reply = self.envelope.with_fields_of(&self.fields);
        match self.long_text {
            Some((field, text)) => reply.with_long_text(field, text),
            None => reply,
        }
    }

    fn describe(schemas: &mut Schemas) -> Vec<Body> {
        vec![Body::json(schemas.enveloped::<T>())]
    }
}

/// An answer about several things that succeed or fail by themselves: if some have failed, `success` is false, with status 200, and
/// `error` says which.
pub struct Partly<T> {
    answer: Answer<T>,
    failure: Option<String>,
}

impl<T> Answer<T> {
    /// The same, but for what has failed.
    pub(crate) fn partly(self, failure: Option<String>) -> Partly<T> {
        let answer = match failure {
            Some(_) => self.status(StatusCode::OK),
            None => self,
        };
        Partly { answer, failure }
    }
}

impl<T: Serialize + ToSchema + Send + 'static> Answers for Partly<T> {
    fn into_reply(self) -> Reply {
        let reply = self.answer.into_reply();
        match self.failure {
            Some(error) => reply.with_failure("partly_failed", error),
            None => reply,
        }
    }

    fn describe(schemas: &mut Schemas) -> Vec<Body> {
        let whole = schemas.enveloped::<T>();
        let fields = schemas.reference::<T>();
        let failed = json!({
            "type": "object",
            "required": ["success", "message", "error", "code"],
            "properties": {
                "success": {"type": "boolean", "enum": [false]},
                "message": {"type": "string"},
                "error": {"type": "string", "description": "Which have failed, and why."},
                "code": {"type": "string", "enum": ["partly_failed"]},
            },
        });
        vec![Body::json(
            json!({"oneOf": [whole, {"allOf": [failed, fields]}]}),
        )]
    }
}

/// JSON without the envelope.
pub struct Resource<T> {
    reply: Reply,
    // Only the type is needed, for the document.
    _of: std::marker::PhantomData<fn() -> T>,
}

impl<T: Serialize> Resource<T> {
    /// The resource.
    pub fn new(value: &T) -> Self {
        Self::of_reply(Reply::resource(value))
    }

    /// The resource over several lines with indentation: for people who read it as it is.
    pub fn pretty(value: &T) -> Self {
        Self::of_reply(Reply::resource(value).pretty())
    }
}

impl<T> Resource<T> {
    fn of_reply(reply: Reply) -> Self {
        Self {
            reply,
            _of: std::marker::PhantomData,
        }
    }

    /// JSON text that was made before.
    pub fn ready_made(json: bytes::Bytes) -> Self {
        Self::of_reply(Reply::json(json))
    }

    /// Adds a header.
    #[must_use]
    pub fn header(self, name: HeaderName, value: HeaderValue) -> Self {
        Self::of_reply(self.reply.header(name, value))
    }
}

impl<T: ToSchema + 'static> Answers for Resource<T> {
    fn into_reply(self) -> Reply {
        self.reply
    }

    fn describe(schemas: &mut Schemas) -> Vec<Body> {
        vec![Body::json(schemas.reference::<T>())]
    }
}

/// Plain UTF-8 text.
pub struct Text(pub String);

impl Answers for Text {
    fn into_reply(self) -> Reply {
        Reply::text(self.0)
    }

    fn describe(_: &mut Schemas) -> Vec<Body> {
        vec![Body::text(StatusCode::OK)]
    }
}

/// Another address to go to.
pub struct Redirect(Reply);

impl Redirect {
    /// The address.
    pub fn to(address: HeaderValue) -> Self {
        Self(Reply::redirect(address))
    }

    /// Adds a header.
    #[must_use]
    pub fn header(self, name: HeaderName, value: HeaderValue) -> Self {
        Self(self.0.header(name, value))
    }
}

impl Answers for Redirect {
    fn into_reply(self) -> Reply {
        self.0
    }

    fn describe(_: &mut Schemas) -> Vec<Body> {
        vec![Body {
            content_type: "",
            ..Body::text(StatusCode::FOUND)
        }]
    }
}

/// An event stream. It ends with the stream given, or when the service shuts down.
pub struct Events(Reply);

impl Events {
    /// The stream.
    pub fn new(events: impl Stream<Item = Event> + Send + 'static) -> Self {
        Self(Reply::events(events))
    }
}

impl Events {
    /// A stream whose pieces are as they go over the wire.
    pub(crate) fn frames(frames: impl Stream<Item = bytes::Bytes> + Send + 'static) -> Self {
        Self(Reply::frames(frames))
    }
}

impl Answers for Events {
    fn into_reply(self) -> Reply {
        self.0
    }

    fn describe(_: &mut Schemas) -> Vec<Body> {
        vec![Body::events()]
    }
}

/// JSON Lines as a file, piece by piece.
pub struct JsonLines(Reply);

impl JsonLines {
    /// JSON Lines have no registered type; this one is understood most.
    const CONTENT_TYPE: &'static str = "application/x-ndjson";

    /// The file's name and its pieces; an error in them cuts the download short.
    pub fn new<E: Into<Cause>>(
        name: &'static str,
        pieces: impl Stream<Item = Result<bytes::Bytes, E>> + Send + 'static,
    ) -> Self {
        let content_type = HeaderValue::from_static(Self::CONTENT_TYPE);
        Self(Reply::download(content_type, name, pieces))
    }
}

impl Answers for JsonLines {
    fn into_reply(self) -> Reply {
        self.0
    }

    fn describe(_: &mut Schemas) -> Vec<Body> {
        vec![Body {
            content_type: Self::CONTENT_TYPE,
            ..Body::text(StatusCode::OK)
        }]
    }
}

/// A file, piece by piece.
pub struct Download(Reply);

impl Download {
    /// The file's type, name and pieces; an error in them cuts the download short.
    pub fn new<E: Into<Cause>>(
        content_type: HeaderValue,
        name: &str,
        pieces: impl Stream<Item = Result<bytes::Bytes, E>> + Send + 'static,
    ) -> Self {
        Self(Reply::download(content_type, name, pieces))
    }
}

impl Answers for Download {
    fn into_reply(self) -> Reply {
        self.0
    }

    fn describe(_: &mut Schemas) -> Vec<Body> {
        vec![Body {
            content_type: "application/zip",
            schema: json!({"type": "string", "format": "binary"}),
            ..Body::text(StatusCode::OK)
        }]
    }
}

/// A file of a workspace, a part of it, a directory as a zip file, or nothing because the client has it.
pub struct FileDownload(Reply);

impl FileDownload {
    /// What is sent.
    pub(crate) fn new(reply: Reply) -> Self {
        Self(reply)
    }
}

impl Answers for FileDownload {
    fn into_reply(self) -> Reply {
        self.0
    }

    fn describe(_: &mut Schemas) -> Vec<Body> {
        let bytes = |status, content_type| Body {
            content_type,
            schema: json!({"type": "string", "format": "binary"}),
            ..Body::text(status)
        };
        vec![
            bytes(StatusCode::OK, "application/octet-stream"),
            bytes(StatusCode::OK, "application/zip"),
            bytes(StatusCode::PARTIAL_CONTENT, "application/octet-stream"),
            bytes(StatusCode::NOT_MODIFIED, ""),
        ]
    }
}

/// What is there now, or an event stream that goes on.
pub enum Live<T> {
    /// What is there now.
    Now(Answer<T>),
    /// The stream.
    Stream(Events),
}

impl<T: Serialize + ToSchema + Send + 'static> Answers for Live<T> {
    fn into_reply(self) -> Reply {
        match self {
            Self::Now(answer) => answer.into_reply(),
            Self::Stream(events) => events.into_reply(),
        }
    }

    fn describe(schemas: &mut Schemas) -> Vec<Body> {
        let mut bodies = Answer::<T>::describe(schemas);
        bodies.extend(Events::describe(schemas));
        bodies
    }
}

/// A handler that only ever fails.
impl Answers for Infallible {
    fn into_reply(self) -> Reply {
        match self {}
    }

    fn describe(_: &mut Schemas) -> Vec<Body> {
        Vec::new()
    }
}

/// The envelope with whatever else: all that can be documented of an answer without a type.
impl Answers for Reply {
    fn into_reply(self) -> Reply {
        self
    }

    fn describe(schemas: &mut Schemas) -> Vec<Body> {
        vec![Body::json(schemas.enveloped::<Plain>())]
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[derive(Serialize, ToSchema)]
    struct Count {
        count: u32,
    }

    async fn sent(answer: impl Answers) -> (StatusCode, Value) {
        let shutdown = CancellationToken::new();
        let response = answer.into_reply().into_response(&shutdown).unwrap();
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    #[tokio::test]
    async fn fields_stand_beside_those_of_the_envelope() {
        let answer = Answer::ok("done", 1).map(|count| Count { count });
        let expected = json!({"success": true, "message": "done", "count": 1});
        assert_eq!(sent(answer).await, (StatusCode::OK, expected));
    }

    #[tokio::test]
    async fn a_failure_can_tell_fields_too() {
        let error = ApiError::NameBeingRemoved;
        let (status, body) = sent(Answer::failed(&error, Count { count: 2 })).await;
        assert_eq!(status, StatusCode::CONFLICT);
        assert_eq!(body["code"], "name_being_removed");
        assert_eq!(body["count"], 2);
    }

    #[test]
    fn what_can_come_in_two_ways_is_described_in_both() {
        let bodies = Live::<Count>::describe(&mut Schemas::default());
        let types: Vec<_> = bodies.iter().map(|body| body.content_type).collect();
        assert_eq!(types, ["application/json", "text/event-stream"]);
    }
}
