//! What a GET opens, and how it goes on: the streams on which nothing is answered.

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::answer::{notification, success};
use super::modern::META_SUBSCRIPTION;
use super::post::Request;
use super::revision::Revision;
use super::stream::{self as decision, EVENT_ID, VERSION};
use super::{Present, STREAMS, events, old_sse};
use crate::error::{ApiError, Result};
use crate::executors;
use crate::limits::Place;
use crate::reply::Reply;
use schema::ids::Uid;

/// When whoever has too many streams may try again.
pub(super) const RETRY_AFTER: std::time::Duration = std::time::Duration::from_secs(5);

/// A stream's right to be there.
pub(super) struct Open {
    _place: Place<Uid>,
    present: Present,
}

impl Open {
    /// # Errors
    /// 429 when the user has as many as there may be.
    pub(super) fn new(request: &Request) -> Result<Self> {
        let (mcp, user) = (&request.deps.mcp, &request.bearer.account.uid);
        let place = mcp.streams.enter(user);
        let place = place.ok_or(ApiError::TooManyStreams {
            most: STREAMS,
            retry_after: RETRY_AFTER,
        })?;
        Ok(Self {
            _place: place,
            present: mcp.enter(&request.bearer),
        })
    }

    /// Waits until the token is no longer valid.
    pub(super) async fn ended(&self) {
        self.present.revoked().await;
    }
}

/// Opens what a GET asks for.
///
/// # Errors
/// 405 for clients of a revision that has none, and where `mcp.get_stream` refuses it; 429 for one too many; 404 for an ended session.
pub(crate) fn get(request: Request) -> Result<Reply> {
    match decision::choose(&request.headers) {
        decision::Stream::Refused => Err(ApiError::MethodNotAllowed { allow: "POST" }),
        decision::Stream::Endpoint { probing } => old_sse::open(&request, probing),
        decision::Stream::News => match request.session() {
            Err(ended) => Ok(ended.into()),
            Ok(_) if request.deps.settings().refuses_get => Err(ApiError::MethodNotAllowed {
                allow: "POST, DELETE",
            }),
            Ok(_) => Ok(news(&request)),
        },
    }
}

/// The news of one user's executors.
struct News {
    open: Open,
    news: executors::News,
}

impl News {
    fn of(request: &Request) -> Result<Self> {
        Ok(Self {
            open: Open::new(request)?,
            news: request.deps.mcp.hub.news(request.key()),
        })
    }

    /// What is sent next: `changed` when something has changed, a comment when nothing has for a while; `None` at the end.
    async fn next(&mut self, changed: &str) -> Option<Bytes> {
        tokio::select! {
            () = self.open.ended() => None,
            () = self.news.changed() => Some(events::message(changed.to_owned())),
            () = sleep(events::KEEP_ALIVE) => Some(events::comment()),
        }
    }
}

const CHANGED: &str = "notifications/tools/list_changed";

/// What begins a stream of Streamable HTTP: an event with an id, of which clients count that they got somewhere.
fn first(headers: &HeaderMap) -> Bytes {
    let version = headers
        .get(VERSION)
        .and_then(|version| version.to_str().ok());
    match version.and_then(|version| version.parse::<Revision>().ok()) {
        Some(version) if version >= Revision::V2025_11_25 => {
            let id = format!("{EVENT_ID}{}.0", uuid::Uuid::new_v4().simple());
            events::beginning(&id)
        }
        _ => events::comment(),
    }
}

/// The stream of Streamable HTTP. One too many ends at once.
fn news(request: &Request) -> Reply {
    match News::of(request) {
        Ok(news) => {
            let first = first(&request.headers);
            Reply::frames(with_first(first, news, notification(CHANGED, None)))
        }
        Err(_) => come_again(&request.headers),
    }
}

/// A stream that ends at once: clients give up a session over one that is refused, but come again later when one ends.
pub(crate) fn come_again(headers: &HeaderMap) -> Reply {
    let ends = [events::come_again(RETRY_AFTER), first(headers)];
    Reply::frames(stream::iter(ends))
}

/// Whether a GET with these headers goes on with a session.
pub(crate) fn goes_on(headers: &HeaderMap) -> bool {
    decision::choose(headers) == decision::Stream::News
}

fn with_first(first: Bytes, news: News, changed: String) -> impl Stream<Item = Bytes> + Send {
    let rest = stream::unfold((news, changed), |(mut news, changed)| async move {
        let next = news.next(&changed).await?;
        Some((next, (news, changed)))
    });
    stream::once(async move { first }).chain(rest)
}

/// What a client of the revision without sessions wants to be told.
#[derive(Deserialize, Default)]
struct Listen {
    #[serde(default)]
    notifications: Wanted,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Wanted {
    #[serde(default)]
    tools_list_changed: bool,
}

/// The stream of the revision without sessions: first what it will tell, at its end a result.
pub(super) fn listen(request: &Request, id: &RawValue, params: Option<&RawValue>) -> Reply {
    let news = match News::of(request) {
        Ok(news) => news,
        Err(error) => return error.to_reply(),
    };
    let listen = params.and_then(|raw| serde_json::from_str::<Listen>(raw.get()).ok());
    let wanted = listen.unwrap_or_default().notifications.tools_list_changed;
    let subscription: Value = serde_json::from_str(id.get()).unwrap_or_default();
    let meta = json!({META_SUBSCRIPTION: subscription});
    let told = match wanted {
        true => json!({"toolsListChanged": true}),
        false => json!({}),
    };
    let acknowledged = notification(
        "notifications/subscriptions/acknowledged",
        Some(&json!({"_meta": meta, "notifications": told})),
    );
    let changed = notification(CHANGED, Some(&json!({"_meta": meta})));
    let end = success(id, &json!({"resultType": "complete"})).unwrap_or_default();
    let first = events::message(acknowledged);
    let frames = with_first(first, news, changed)
        .filter(move |frame| {
            let passes = wanted || frame.starts_with(b":") || !contains_change(frame);
            std::future::ready(passes)
        })
        .chain(stream::once(async move { events::message(end) }));
    Reply::frames(frames)
}

fn contains_change(frame: &Bytes) -> bool {
    frame
        .windows(CHANGED.len())
        .any(|window| window == CHANGED.as_bytes())
}
