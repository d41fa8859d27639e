//! What a POST is (executors.md, 2.3), and a DELETE.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use futures::stream;
use http::header::{ACCEPT, HeaderName};
use http::{HeaderMap, HeaderValue, StatusCode};
use rand::RngExt;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::answer::{Answer, RpcError, failure};
use super::audit::Origin;
use super::elsewhere::pass_message;
use super::handshake::agreed;
use super::message::{Body, Message, Params, Unreadable};
use super::progress::Progress;
use super::revision::Revision;
use super::session::SessionId;
use super::stream::{SESSION, VERSION};
use super::tools::{Bounds, CallResult, Caller};
use super::{answer, events, modern, old_sse};
use crate::auth::mcp_token::Bearer;
use crate::deps::Deps;
use crate::error::{ApiError, Result};
use crate::executors::{self, Key, Service};
use crate::limits::Share;
use crate::long_work::work_on;
use crate::reply::Reply;

/// How long an answer is waited for before it becomes a stream of events.
const AT_ONCE: Duration = Duration::from_secs(20);
/// Longest time until an answer that cannot become one: the shortest limit of a client is 60 s.
const AS_JSON: Duration = Duration::from_secs(55);
/// Longest time until one that can.
pub(super) const AS_EVENTS: Duration = Duration::from_secs(110);
/// How long calls go on when the service ends: as long as those at executors do.
const LAST_CALLS: Duration = Duration::from_secs(4);
/// How often a client that waits for one is told that it still comes.
const STILL_THERE: Duration = Duration::from_secs(10);

/// A request to the endpoint.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) deps: Deps,
    pub(crate) bearer: Bearer,
    pub(crate) service: Service,
    /// What a proxy has taken off the beginning of the path.
    pub(crate) prefix: String,
    pub(crate) headers: Arc<HeaderMap>,
    /// Where it comes from.
    pub(crate) origin: Origin,
    /// Its part of the memory for bodies, which what is carried out keeps.
    pub(crate) memory: Option<Arc<Share>>,
}

/// What a client takes as an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepted {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accepted {
    const JSON: Self = Self {
        json: true,
        events: false,
    };

    /// Without the header: JSON, which every client can read.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let Some(accept) = headers.get(ACCEPT).and_then(|value| value.to_str().ok()) else {
            return Self::JSON;
        };
        let takes = |what: &str| accept.contains(what);
        let events = takes("text/event-stream");
        Self {
            json: takes("application/json") || takes("*/*") || takes("application/*") || !events,
            events,
        }
    }
}

impl Request {
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(super) fn key(&self) -> Key {
        Key {
            user: self.bearer.account.uid.clone(),
            service: self.service,
        }
    }

    pub(super) fn caller(&self, bounds: Bounds, session: Option<&str>) -> Caller {
        Caller {
            origin: self.origin.clone().within(session),
            account: self.bearer.account.clone(),
            token: self.bearer.version,
            service: self.service,
            bounds,
        }
    }

    /// A session as it is remembered: ids that are not ours may be the same for several users, and long.
    pub(super) fn name_of(&self, session: &str) -> String {
        let mut hash = Sha256::new();
        for part in [
            &*self.bearer.account.uid.to_string(),
            &*self.service.to_string(),
            session,
        ] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        hex::encode(hash.finalize())
    }

    /// The session that the request names.
    ///
    /// # Errors
    /// 404 for one that was ended, and for one of somebody else. One that cannot be read is taken, unless `mcp.session_strict` is set: it
    /// gives no right, and clients do not begin anew when theirs is refused.
    pub(super) fn session(&self) -> std::result::Result<Option<&str>, Ended> {
        let Some(id) = self.text(SESSION) else {
            return Ok(None);
        };
        let mcp = &self.deps.mcp;
        let own = mcp.key.read(id);
        let of_others = |session: &SessionId| !mcp.key.is_of(session, &self.bearer.account.uid);
        let unknown = own.is_none() && self.deps.settings().strict_sessions;
        if unknown
            || mcp.ended.contains_key(&self.name_of(id))
            || own.as_ref().is_some_and(of_others)
        {
            return Err(Ended);
        }
        Ok(Some(id))
    }
}

/// A session that is over, or none of this user.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended;

impl From<Ended> for Reply {
    /// Some clients look for these words, and begin anew.
    fn from(_: Ended) -> Self {
        let error = RpcError::new(RpcError::INVALID_REQUEST, "session not found");
        refused(StatusCode::NOT_FOUND, None, &error)
    }
}

pub(super) fn json(answer: impl Into<Answer>) -> Reply {
    Reply::json(Bytes::from(answer.into()))
}

pub(super) fn refused(status: StatusCode, id: Option<&RawValue>, error: &RpcError) -> Reply {
    json(failure(id, error)).status(status)
}

fn accepted() -> Reply {
    Reply::empty().status(StatusCode::ACCEPTED)
}

/// Ends a session, as its client asks for.
pub(crate) fn end_session(request: &Request) -> Result<Reply> {
    if request.text(VERSION).is_some_and(Revision::is_modern) {
        return Err(ApiError::MethodNotAllowed { allow: "POST" });
    }
    match request.session() {
        Ok(Some(id)) => {
            request.deps.mcp.end_everywhere(request.name_of(id));
            Ok(Reply::empty())
        }
        Ok(None) => Err(ApiError::invalid(
            SESSION,
            "the header mcp-session-id is missing",
        )),
        Err(ended) => Ok(ended.into()),
    }
}

/// Answers a POST. `stream` is the stream beside which it is sent, in HTTP+SSE.
pub(crate) async fn post(request: Request, stream: Option<&str>, body: Bytes) -> Reply {
    if let Err(retry_after) = request.deps.mcp.limits.message(&request.key()) {
        let said = "more than 100 messages in a second; send fewer";
        return ApiError::TooManyMessages { said, retry_after }.to_reply();
    }
    if let Some(stream) = stream
        && let Some(reply) = pass_message(&request, stream, &body).await
    {
        return reply;
    }
    let user = &request.bearer.account.uid;
    let read = work_on(user, body.len(), move || Body::read(&body)).await;
    let read = read.unwrap_or(Err(Unreadable::NotJson));
    if let Some(stream) = stream {
        return old_sse::post(&request, stream, read).await;
    }
    let version = request.text(VERSION);
    let message = match read {
        Ok(Body::One(message)) => message,
        Ok(Body::Batch(all)) if version.is_none_or(|version| version == "2025-03-26") => {
            return batch(&request, all).await;
        }
        Ok(Body::Batch(_)) => {
            let error = RpcError::new(RpcError::INVALID_REQUEST, "this revision has no batches");
            return refused(StatusCode::BAD_REQUEST, None, &error);
        }
        Err(unreadable) => {
            // Clients that begin with a handshake end their session over an error of HTTP.
            let handshake = !version.is_some_and(Revision::is_modern);
            let status = match unreadable {
                Unreadable::NoMessage(..) | Unreadable::TooMany if handshake => StatusCode::OK,
                _ => StatusCode::BAD_REQUEST,
            };
            return refused(status, unreadable.id(), &unreadable.error());
        }
    };
    let Message::Request { id, method, params } = message else {
        let session = request.session().ok().flatten();
        take_note(&request, session, &message);
        return accepted();
    };
    if modern::is_meant(version, params.as_ref()) {
        return modern::answer(request, &id, &method, params).await;
    }
    let session = match request.session() {
        // It begins one.
        _ if method == "initialize" => None,
        Ok(session) => session.map(ToOwned::to_owned),
        Err(ended) => return ended.into(),
    };
    let begins = (method == "initialize").then(|| begin(&request, params.as_ref()));
    let reply = single(&request, session, id, method, params).await;
    match begins.and_then(|id| HeaderValue::try_from(id).ok()) {
        Some(id) => reply.header(HeaderName::from_static(SESSION), id),
        None => reply,
    }
}

fn begin(request: &Request, params: Option<&Params>) -> String {
    request.deps.mcp.key.issue(
        request.service,
        agreed(params.map(|params| &*params.raw)),
        request.deps.clock.now(),
        &request.bearer.account.uid,
        rand::rng().random(),
    )
}

/// A notification. Those that are not known mean nothing.
pub(super) fn take_note(request: &Request, session: Option<&str>, message: &Message) {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled {
        request_id: Box<RawValue>,
    }
    let Message::Notification { method, params } = message else {
        return;
    };
    if method != "notifications/cancelled" {
        return;
    }
    let cancelled = params.as_ref();
    let cancelled = cancelled.and_then(|raw| serde_json::from_str::<Cancelled>(raw.get()).ok());
    if let (Some(session), Some(cancelled)) = (session, cancelled) {
        let session = request.name_of(session);
        request
            .deps
            .mcp
            .cancel_everywhere(session, &cancelled.request_id);
    }
}

/// As [`go`]; what was cancelled is answered, too, as HTTP wants it, though nobody reads it.
fn go_to_its_end(
    request: &Request,
    bounds: Bounds,
    session: Option<String>,
    id: Box<RawValue>,
    method: String,
    params: Option<Params>,
) -> impl Future<Output = Answer> + Send + 'static {
    let answer = go(request, bounds, session, id.clone(), method, params);
    async move {
        let cancelled = || failure(Some(&id), &RpcError::new(RpcError::INTERNAL, "cancelled"));
        answer.await.unwrap_or_else(|| cancelled().into())
    }
}

/// Begins a request; there is no answer when it is cancelled. It goes on when its client is gone: only a notification cancels it.
pub(super) fn go(
    request: &Request,
    bounds: Bounds,
    session: Option<String>,
    id: Box<RawValue>,
    method: String,
    params: Option<Params>,
) -> impl Future<Output = Option<Answer>> + Send + 'static {
    let (sender, answer) = oneshot::channel();
    let mcp = request.deps.mcp.clone();
    let caller = request.caller(bounds, session.as_deref());
    let session = session.map(|session| request.name_of(&session));
    let fallback = id.clone();
    // Before it is carried out: what cancels it may come right behind it.
    let call = mcp.calls.begin(session.as_deref(), &id);
    let memory = request.memory.clone();
    let shutdown = request.deps.shutdown.clone();
    let ends = shutdown.clone();
    request.deps.tasks.spawn(async move {
        let _memory = memory;
        let params = params.as_ref().map(|params| &*params.raw);
        let answered = tokio::select! {
            answered = mcp.answer(&caller, &id, &method, params) => Some(answered),
            () = call.cancelled() => None,
            stopped = last_moment(&ends) => Some(Err(stopped)),
        };
        let answered = answered
            .map(|answered| answered.unwrap_or_else(|error| failure(Some(&id), &error).into()));
        let _ = sender.send(answered);
    });
    async move {
        let gone = || {
            let said = match shutdown.is_cancelled() {
                true => "the service restarts",
                false => "internal error",
            };
            failure(Some(&fallback), &RpcError::new(RpcError::INTERNAL, said))
        };
        answer.await.unwrap_or_else(|_| Some(gone().into()))
    }
}

/// Waits until the service ends, and as long as calls may then still take. What is said of those that have not ended.
pub(super) async fn last_moment(shutdown: &CancellationToken) -> RpcError {
    shutdown.cancelled().await;
    sleep(LAST_CALLS).await;
    RpcError::new(RpcError::INTERNAL, "the service restarts")
}

/// What an answer may be. Pictures come in one piece, so a call for one never becomes a stream later on.
pub(super) fn bounds(accepted: Accepted, may_stream: bool) -> Bounds {
    Bounds {
        time: if may_stream { AS_EVENTS } else { AS_JSON },
        bytes: match accepted.json {
            true => usize::MAX,
            false => events::LONGEST_EVENT,
        },
    }
}

/// Whether an answer may become a stream of events when it does not come soon.
pub(super) fn may_stream(request: &Request, accepted: Accepted, params: Option<&Params>) -> bool {
    let catalogue = &request.deps.mcp.catalogue;
    let picture = params.is_some_and(|params| catalogue.may_show(request.service, params));
    accepted.events && !picture
}

/// Answers one request of a client that has begun with a handshake.
async fn single(
    request: &Request,
    session: Option<String>,
    id: Box<RawValue>,
    method: String,
    params: Option<Params>,
) -> Reply {
    let accepted = Accepted::of(&request.headers);
    let may_stream = may_stream(request, accepted, params.as_ref());
    let progress = Progress::of(params.as_ref());
    let answer = go_to_its_end(
        request,
        bounds(accepted, may_stream),
        session,
        id.clone(),
        method,
        params,
    );
    reply(accepted, may_stream, &id, progress, answer).await
}

/// JSON if the answer comes soon, and a stream of events if it does not.
pub(super) async fn reply(
    accepted: Accepted,
    may_stream: bool,
    id: &RawValue,
    progress: Progress,
    answer: impl Future<Output = Answer> + Send + 'static,
) -> Reply {
    let mut answer = Box::pin(answer);
    let ready = match may_stream {
        true => timeout(AT_ONCE, &mut answer).await.ok(),
        false => Some(answer.as_mut().await),
    };
    match ready {
        Some(text) if accepted.json => json(text),
        Some(answer) => {
            let event = event(id, answer);
            Reply::last_frames(stream::once(async move { event }))
        }
        None => Reply::last_frames(late(id.to_owned(), progress, answer)),
    }
}

/// Says that the answer still comes until there is one.
fn late(
    id: Box<RawValue>,
    progress: Progress,
    answer: std::pin::Pin<Box<impl Future<Output = Answer> + Send + 'static>>,
) -> impl futures::Stream<Item = Bytes> + Send + 'static {
    stream::unfold(Some((answer, progress)), move |waiting| {
        let id = id.clone();
        async move {
            let (mut answer, progress) = waiting?;
            tokio::select! {
                answer = &mut answer => Some((event(&id, answer), None)),
                () = sleep(STILL_THERE) => Some((progress.news(), Some((answer, progress)))),
            }
        }
    })
}

/// The answer as an event, or why it cannot be one. It keeps its share of the memory for answers until it is sent.
pub(super) fn event(id: &RawValue, answer: Answer) -> Bytes {
    let Answer { mut text, share } = answer;
    if text.len() >= events::LONGEST_EVENT {
        let said = format!(
            "the result has {} bytes, and this kind of connection takes less than {}; ask for less",
            text.len(),
            events::LONGEST_EVENT
        );
        text = answer::success(id, &CallResult::error(said)).unwrap_or_default();
    }
    share.held_by(events::message(text))
}

/// Answers a batch (revision 2025-03-26).
async fn batch(request: &Request, all: Vec<std::result::Result<Message, Unreadable>>) -> Reply {
    let session = request
        .session()
        .map(|session| session.map(ToOwned::to_owned));
    let asks = |message: &std::result::Result<Message, Unreadable>| {
        matches!(message, Ok(Message::Request { .. }))
    };
    let session = match session {
        Ok(session) => session,
        Err(ended) if all.iter().any(asks) => return ended.into(),
        // What needs no answer is never refused.
        Err(_) => None,
    };
    let mut answers = Vec::new();
    for message in all {
        match message {
            Ok(Message::Request { id, method, params }) => {
                answers.push(futures::future::Either::Left(go_to_its_end(
                    request,
                    bounds(Accepted::JSON, false),
                    session.clone(),
                    id,
                    method,
                    params,
                )));
            }
            Ok(message) => take_note(request, session.as_deref(), &message),
            Err(unreadable) => {
                let text = failure(unreadable.id(), &unreadable.error());
                answers.push(futures::future::Either::Right(std::future::ready(
                    text.into(),
                )));
            }
        }
    }
    if answers.is_empty() {
        return accepted();
    }
    let (mut texts, mut share) = (Vec::new(), executors::Share::default());
    for answer in join_all(answers).await {
        texts.push(answer.text);
        share.join(answer.share);
    }
    let text = format!("[{}]", texts.join(","));
    json(Answer { text, share })
}
