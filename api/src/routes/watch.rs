//! `GET /api/admin/watch` and `GET /api/user/watch`: changes of objects as an event stream that can be resumed.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http::HeaderMap;
use schema::change::{self, Filter, News, Position};
use schema::ids::{Kind, Uid};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};
use utoipa::ToSchema;

use super::{live, params};
use crate::answer::Events;
use crate::deps::Deps;
use crate::dispatch::{Actor, OrdinaryUser, Superadmin};
use crate::error::{ApiError, Result};
use crate::executors::{Key, Service};
use crate::input::Input;
use crate::limits::{OWN_WATCHERS, WATCHERS};
use crate::replica;
use crate::reply::Event;
use crate::route::{Area, Failure, Route, Tokens};
use crate::watch::{Batch, Report, Watching, position_event};

/// After this time what could not be read is read again.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("watch", "/api/admin/watch", watch).holds(&WATCHERS)
.tokens(Tokens::Read)
            .title(
                Area::Operators,
                "Watch objects (event stream that can be resumed)",
            )
            .about(
                "One event per changed object, with its current state; changes in quick \
                 succession are one event. The first event is `open`, with the id to send as \
                 `Last-Event-ID` when reconnecting, or `resync` if the history since the client's \
                 position is gone: then list again. A client that reads too slowly is \
                 disconnected.",
            )
            .fails(&[
                TOO_MANY,
                Failure::BUSY,
            ]),
        Route::get("own_watch", "/api/user/watch", watch_own).holds(&OWN_WATCHERS)
            .title(
                Area::Account,
                "Watch my container, configuration, skills and executors (event stream that can be resumed)",
            )
            .about(
                "As `/api/admin/watch`, of `container/…`, `agent-config/…` and `skill-set/…` of the caller. Besides, an event \
                 `executors` says how many browsers and desktops are connected: `{\"browser\":1,\"computer\":0}`, at the \
                 beginning and whenever that changes.",
            )
            .fails(&[
                TOO_MANY,
                Failure(
                    429,
                    "too_many_streams",
                    "the account already has 8 such streams",
                ),
                Failure::BUSY,
            ]),
    ]
}

const TOO_MANY: Failure = Failure(503, "too_many_watchers", "too many watchers");

/// How long a browser waits before it comes back, in milliseconds.
const RETRY: &str = "retry:2000\n";
/// What a client has seen, in the words of event streams.
const LAST_EVENT_ID: &str = "last-event-id";

/// What is watched, and from where on.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct WatchParams {
    /// Only this object: `kind/name`.
    #[schema(example = "container/alice")]
    object: Option<String>,
    /// Only objects of this kind.
    #[schema(value_type = Option<Kind>)]
    kind: Option<String>,
    /// Resume after this event, for clients that cannot send the header `Last-Event-ID`, which takes precedence.
    last_event_id: Option<String>,
}

impl WatchParams {
    fn filter(&self) -> Result<Filter> {
        match (params::given(&self.object), params::given(&self.kind)) {
            (None, None) => Ok(Filter::default()),
            (Some(object), None) => {
                let (kind, name) = params::object_address("object", object)?;
                Ok(Filter::object(kind, &name))
            }
            (None, Some(kind)) => Ok(Filter {
                kind: Some(params::kind("kind", kind)?),
                ..Filter::default()
            }),
            (Some(_), Some(_)) => Err(params::kind_beside_object()),
        }
    }
}

/// Where a client has come to, by its header or else its parameter; `None`: it begins.
fn read_position(headers: &HeaderMap, last_event_id: Option<&str>) -> Result<Option<Position>> {
    let header = headers.get(LAST_EVENT_ID).map(|value| value.to_str());
    let text = match header {
        Some(text) => text.unwrap_or("?"),
        None => last_event_id.unwrap_or_default(),
    };
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        ApiError::invalid(
            "last_event_id",
            "Last-Event-ID (or last_event_id) is an id as this server has sent it",
        )
    })
}

/// `GET /api/admin/watch`: the present state of each object that changes.
///
/// The first event is `open` with the position to come back with, or `resync` when the history since
/// the client's position is gone: then it must list everything again. Several changes of one object
/// between two looks are one event. The stream ends with the session, with the service, and when the
/// client reads too slowly.
///
/// # Errors
/// 400 for a bad object, kind or position; 503 when too many watch.
async fn watch(
    Superadmin(actor): Superadmin,
    input: Input<WatchParams>,
    deps: Deps,
) -> Result<Events> {
    let filter = input.params.filter()?;
    let since = read_position(&input.meta.headers, input.params.last_event_id.as_deref())?;
    let watching = deps.watch.join().await?;
    let watcher = Watcher::begin(deps.clone(), watching, filter, since).await?;
    let dead = live::death(deps, actor);
    Ok(Events::frames(watcher.frames().take_until(dead)))
}

/// From where on own objects are watched.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct OwnWatchParams {
    /// Resume after this event, for clients that cannot send the header `Last-Event-ID`, which takes precedence.
    last_event_id: Option<String>,
}

/// `GET /api/user/watch`: the same of the caller's own objects, and of executors that come and go.
///
/// # Errors
/// 400 for a bad position; 429 when the account has too many such streams, 503 when too many watch.
async fn watch_own(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<OwnWatchParams>,
    deps: Deps,
) -> Result<Events> {
    let last = input.params.last_event_id.as_deref();
    let since = read_position(&input.meta.headers, last)?;
    let uid = session.account.uid.clone();
    let watching = deps.watch.join_own(&uid).await?;
    let executors = executor_counts(&deps, uid.clone());
    let filter = Filter::of_user(uid);
    let watcher = Watcher::begin(deps.clone(), watching, filter, since).await?;
    let dead = live::death(deps, Actor::Session(session));
    // The watcher ends when its client reads too slowly; then all of it ends.
    let frames = watcher.frames().map(Some).chain(stream::iter([None]));
    let frames = stream::select(frames, executors.map(Some));
    let frames = frames.take_while(|frame| std::future::ready(frame.is_some()));
    let frames = frames.filter_map(std::future::ready);
    Ok(Events::frames(frames.take_until(dead)))
}

/// Events that say how many executors of each service a user has, now and whenever that changes.
fn executor_counts(deps: &Deps, uid: Uid) -> impl Stream<Item = Bytes> + Send + 'static {
    let (deps, hub) = (deps.clone(), deps.mcp.hub.clone());
    let keys = Service::ALL.map(|service| Key {
        user: uid.clone(),
        service,
    });
    // Before the first count: what changes from now on is heard.
    let news = keys.clone().map(|key| hub.news(key));
    stream::unfold(
        (deps, keys, news, None),
        |(deps, keys, mut news, before)| async move {
            loop {
                let counts = count_executors(&deps, &keys).await;
                if before != Some(counts) {
                    let pairs = keys.iter().zip(counts);
                    let pairs = pairs.map(|(key, count)| (key.service.to_string(), json!(count)));
                    let event = Event {
                        name: Some("executors".to_owned()),
                        data: Value::Object(pairs.collect()).to_string(),
                        ..Event::default()
                    };
                    return Some((event.to_frame(), (deps, keys, news, Some(counts))));
                }
                let [browser, computer] = &mut news;
                tokio::select! {
                    () = browser.changed() => {}
                    () = computer.changed() => {}
                }
            }
        },
    )
}

async fn count_executors(deps: &Deps, keys: &[Key; 2]) -> [usize; 2] {
    if !deps.replicas.has_others() {
        return keys.each_ref().map(|key| deps.mcp.hub.of_key(key).len());
    }
    let all = replica::list_connected(deps, Some(&keys[0].user)).await;
    let count = |key: &Key| all.iter().filter(|one| one.key == *key).count();
    keys.each_ref().map(count)
}

/// One client's stream.
struct Watcher {
    deps: Deps,
    watching: Watching,
    filter: Filter,
    /// Everything until here was sent, or does not concern this client.
    at: Position,
    /// The database has more than one page.
    behind: bool,
    /// Still to be sent, beginning with the first event.
    ready: VecDeque<Bytes>,
    /// When something was sent last; what others receive in between does not concern this client.
    spoke: Instant,
}

impl Watcher {
    /// Reads where the client stands. The hub reports everything that is not in this read.
    async fn begin(
        deps: Deps,
        watching: Watching,
        filter: Filter,
        since: Option<Position>,
    ) -> Result<Self> {
        let mut connection = deps.db.snapshot().await?;
        let (at, news) = match since {
            None => (change::position(&mut connection).await?, None),
            Some(since) => {
                let news =
                    change::after(&mut connection, &since, &filter, deps.watch.bounds().page)
                        .await?;
                (since, Some(news))
            }
        };
        drop(connection);
        let mut ready = VecDeque::from([Bytes::from_static(RETRY.as_bytes())]);
        if !matches!(news, Some(News::Resync(_))) {
            ready.push_back(position_event("open", &at)?.to_frame());
        }
        let mut watcher = Self {
            deps,
            watching,
            filter,
            at,
            behind: false,
            ready,
            spoke: Instant::now(),
        };
        if let Some(news) = news {
            watcher.read(news)?;
        }
        Ok(watcher)
    }

    /// What the database has said.
    fn read(&mut self, news: News) -> Result<()> {
        let (reports, through, more) = Report::all(&self.at, news)?;
        self.ready
            .extend(reports.into_iter().map(|report| report.frame));
        (self.at, self.behind) = (through, more);
        Ok(())
    }

    /// Another page from the database.
    async fn catch_up(&mut self) -> Result<()> {
        let page = self.deps.watch.bounds().page;
        let mut connection = self.deps.db.snapshot().await?;
        let news = change::after(&mut connection, &self.at, &self.filter, page).await?;
        drop(connection);
        self.read(news)
    }

    /// What the hub has said; some of it may have been read from the database already.
    fn hear(&mut self, batch: &Batch) {
        for report in batch.iter() {
            if report.is_resync() {
                // The hub has missed something; whether this client has, the database knows.
                self.behind = true;
                return;
            }
            let known =
                report.at.instance == self.at.instance && report.at.version <= self.at.version;
            if known {
                continue;
            }
            if report.concerns(&self.filter) {
                self.ready.push_back(report.frame.clone());
            }
            self.at = report.at.clone();
        }
    }

    /// The next piece; `None` when this client must come back.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            if self.behind {
                match self.catch_up().await {
                    Ok(()) => {}
                    // What cannot be read now is read when the database is back.
                    Err(ApiError::DatabaseUnavailable(_)) => sleep(READ_AGAIN).await,
                    Err(error) => {
                        error.log();
                        return None;
                    }
                }
                continue;
            }
            let silent_until = self.spoke + self.deps.watch.bounds().keep_alive;
            match timeout_at(silent_until, self.watching.next()).await {
                Ok(Some(batch)) => self.hear(&batch),
                Ok(None) => return None,
                // No event, but it moves the position of whoever watches a quiet object.
                Err(_) => return Some(format!(":\nid:{}\n\n", self.at).into()),
            }
        }
    }

    fn frames(self) -> impl Stream<Item = Bytes> + Send {
        stream::unfold(self, |mut watcher| async move {
            let frame = watcher.next().await?;
            watcher.spoke = Instant::now();
            Some((frame, watcher))
        })
    }
}

#[cfg(test)]
mod tests;
