//! HTTP+SSE (revision 2024-11-05): one stream, beside which requests are posted, and on which they are answered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::StatusCode;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use schema::ids::Uid;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::answer::failure;
use super::get::{Open, RETRY_AFTER};
use super::message::{Body, Message, Unreadable};
use super::post::{self, Ended, Request, refused};
use super::tools::Bounds;
use super::{Mcp, events};
use crate::deps::Deps;
use crate::error::{ApiError, Result};
use crate::executors::Service;
use crate::limits::{MCP_WAITING, MCP_WAITING_BYTES};
use crate::reply::{Event, Reply};

/// Most answers that wait to be sent on one stream.
const WAITING: usize = MCP_WAITING.each();
/// How long a client may take nothing while more waits.
const SLOW: Duration = Duration::from_secs(10);
/// How long a stream may stay unused whose client may only have tried what opens.
const UNUSED: Duration = Duration::from_secs(60);
/// How long requests are still taken when the stream is gone.
const DETACHED: Duration = Duration::from_secs(60);
/// Clients wait for a minute, and end over a longer event.
const BOUNDS: Bounds = Bounds {
    time: Duration::from_secs(55),
    bytes: events::LONGEST_EVENT,
};

/// The streams that are open, by their ids. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct OldSessions(Arc<Mutex<HashMap<String, Arc<Session>>>>);

#[derive(Debug)]
struct Session {
    user: Uid,
    service: Service,
    answers: mpsc::Sender<(Bytes, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
    under_way: Arc<Semaphore>,
    used: CancellationToken,
    over: CancellationToken,
}

impl OldSessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: &str, user: &Uid, service: Service) -> Option<Arc<Session>> {
        let found = self.lock().get(id).cloned();
        found.filter(|session| {
            session.user == *user && session.service == service && !session.over.is_cancelled()
        })
    }
}

impl Session {
    /// Sends an answer; a client that takes none loses its stream.
    async fn send(&self, frame: Bytes) {
        let sent = async {
            let size = u32::try_from(frame.len()).unwrap_or(u32::MAX);
            let permit = Arc::clone(&self.room).acquire_many_owned(size).await;
            let permit = permit.map_err(drop)?;
            self.answers.send((frame, permit)).await.map_err(drop)
        };
        // A stream that is gone may be missed by nobody.
        if timeout(SLOW, sent).await.is_err() {
            self.over.cancel();
        }
    }
}

/// The stream of a session; its entry goes a while after it. It keeps nothing of its request: headers are parts of what was read from
/// the connection, all of which would stay.
struct Attached {
    mcp: Arc<Mcp>,
    deps: Deps,
    id: String,
    session: Arc<Session>,
    answers: mpsc::Receiver<(Bytes, OwnedSemaphorePermit)>,
    open: Open,
    /// Until when somebody has to use it; `None`: as long as it likes.
    unused_until: Option<Instant>,
}

impl Attached {
    async fn next(&mut self) -> Option<Bytes> {
        let unused = self.unused_until;
        tokio::select! {
            biased;
            () = self.open.ended() => None,
            () = self.session.over.cancelled() => None,
            answer = self.answers.recv() => answer.map(|(frame, _)| frame),
            () = last_answered(&self.deps.shutdown, &self.session) => self.answers.try_recv().ok().map(|(frame, _)| frame),
            () = wait_until(unused) => {
                self.unused_until = None;
                self.session.used.is_cancelled().then(events::comment)
            }
            () = sleep(events::KEEP_ALIVE) => Some(events::comment()),
        }
    }
}

/// Waits until the service ends, and then until all requests are answered, which have a last moment.
async fn last_answered(shutdown: &CancellationToken, session: &Session) {
    shutdown.cancelled().await;
    let all = u32::try_from(WAITING).unwrap_or(u32::MAX);
    // It is never closed.
    let _ = session.under_way.acquire_many(all).await;
}

async fn wait_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let (mcp, id) = (self.mcp.clone(), std::mem::take(&mut self.id));
        let Some(place) = mcp.detached.enter(&self.session.user) else {
            mcp.old_sessions.lock().remove(&id);
            return;
        };
        let shutdown = self.deps.shutdown.clone();
        self.deps.tasks.spawn(async move {
            let _ = shutdown.run_until_cancelled(sleep(DETACHED)).await;
            mcp.old_sessions.lock().remove(&id);
            drop(place);
        });
    }
}

/// Opens a stream.
///
/// # Errors
/// 429 when the user has too many.
pub(super) fn open(request: &Request, probing: bool) -> Result<Reply> {
    let open = Open::new(request)?;
    let mcp = request.deps.mcp.clone();
    let prefix = request.deps.replicas.stream_prefix();
    let id = format!("{prefix}{}", uuid::Uuid::new_v4().simple());
    let (sender, answers) = MCP_WAITING.queue();
    let session = Arc::new(Session {
        user: request.bearer.account.uid.clone(),
        service: request.service,
        answers: sender,
        room: MCP_WAITING_BYTES.semaphore_of_one(),
        under_way: MCP_WAITING.semaphore_of_one(),
        used: CancellationToken::new(),
        over: CancellationToken::new(),
    });
    mcp.old_sessions
        .lock()
        .insert(id.clone(), Arc::clone(&session));
    let endpoint = Event {
        name: Some("endpoint".to_owned()),
        data: endpoint(request, &id),
        ..Event::default()
    };
    let first = endpoint.to_frame();
    let attached = Attached {
        mcp,
        deps: request.deps.clone(),
        id,
        session,
        answers,
        open,
        unused_until: probing.then(|| Instant::now() + UNUSED),
    };
    let rest = stream::unfold(attached, |mut attached| async move {
        let frame = attached.next().await?;
        Some((frame, attached))
    });
    Ok(Reply::last_frames(
        stream::once(async move { first }).chain(rest),
    ))
}

/// Where requests are posted to. With the token only if the client had it in the address: others send their header again.
fn endpoint(request: &Request, id: &str) -> String {
    let (prefix, service) = (&request.prefix, request.service);
    let mut path = format!("{prefix}/api/mcp/sse/{service}?sessionId={id}");
    if let Some(token) = &request.bearer.in_query {
        use secrecy::ExposeSecret;
        let token = utf8_percent_encode(token.expose_secret(), NON_ALPHANUMERIC);
        path.push_str(&format!("&token={token}"));
    }
    path
}

/// A message that was posted, or why it is none.
type Read = std::result::Result<Message, Unreadable>;

/// Takes what is posted beside a stream.
pub(super) async fn post(
    request: &Request,
    id: &str,
    read: std::result::Result<Body, Unreadable>,
) -> Reply {
    let mcp = &request.deps.mcp;
    let user = &request.bearer.account.uid;
    let Some(session) = mcp.old_sessions.find(id, user, request.service) else {
        return Ended.into();
    };
    session.used.cancel();
    let messages = match read {
        Ok(Body::One(message)) => vec![Ok(message)],
        Ok(Body::Batch(all)) => all,
        Err(unreadable @ (Unreadable::NoMessage(..) | Unreadable::TooMany)) => {
            vec![Err(unreadable)]
        }
        Err(unreadable) => {
            return refused(StatusCode::BAD_REQUEST, None, &unreadable.error());
        }
    };
    // A place for each that is answered, all of them or none.
    let answered = |message: &Read| {
        !matches!(
            message,
            Ok(Message::Notification { .. } | Message::Response)
        )
    };
    let count = messages.iter().filter(|message| answered(message)).count();
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let places = Arc::clone(&session.under_way).try_acquire_many_owned(count);
    let Ok(mut places) = places else {
        let said = "64 requests of the stream wait for their answers; read those first";
        let retry_after = RETRY_AFTER;
        return ApiError::TooManyMessages { said, retry_after }.to_reply();
    };
    for message in messages {
        let (number, method, params) = match message {
            Ok(Message::Request { id, method, params }) => (id, method, params),
            Ok(message) => {
                post::take_note(request, Some(id), &message);
                continue;
            }
            Err(unreadable) => {
                let (place, session) = (places.split(1), Arc::clone(&session));
                request.deps.tasks.spawn(async move {
                    let said = failure(unreadable.id(), &unreadable.error());
                    session.send(events::message(said)).await;
                    drop(place);
                });
                continue;
            }
        };
        let answer = post::go(
            request,
            BOUNDS,
            Some(id.to_owned()),
            number.clone(),
            method,
            params,
        );
        let (place, session) = (places.split(1), Arc::clone(&session));
        request.deps.tasks.spawn(async move {
            // Nobody waits for the answer to what was cancelled.
            if let Some(answer) = answer.await {
                session.send(post::event(&number, answer)).await;
            }
            drop(place);
        });
    }
    Reply::text("Accepted").status(StatusCode::ACCEPTED)
}
