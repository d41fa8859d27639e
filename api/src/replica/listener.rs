//! The listener for other replicas: it answers requests with a valid stamp, and nothing else.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::call::Call;
use super::serve::{answer_call, open_stream};
use super::stamp::{Covered, digest};
use crate::deps::Deps;
use crate::limits::{REPLICA_BODIES, REPLICA_CONNECTIONS};
use crate::server::{Client, LeftOut, LineLimit, Stall, WINDOW, show_client};

/// Path of all requests.
pub(super) const PATH: &str = "/replica";
/// The header that holds the call.
pub(super) const CALL: &str = "agentyard-call";
/// The protocol of a connection that goes on as a WebSocket.
pub(super) const PROTOCOL: &str = "agentyard-replica";

/// Most bytes of the head of a request.
const HEAD_BYTES: usize = 64 * 1024;
/// Longest time for the head of a request.
const HEAD: Duration = Duration::from_secs(5);
/// Longest time for a body.
const BODY: Duration = Duration::from_secs(30);
/// Longest body: the longest message of a client, with room around it.
const LONGEST: usize = 5 * 1024 * 1024;
/// Longest time of a whole request: more than the longest call takes.
const WHOLE: Duration = Duration::from_secs(130);
/// Longest time for a peer to take nothing of what is sent to it.
const STALL: Duration = Duration::from_secs(30);
/// Longest time for requests to finish once the service stops.
const LAST: Duration = Duration::from_secs(6);

/// Serves other replicas until the service stops.
pub async fn serve_replicas(listener: TcpListener, deps: Deps) {
    let permits = REPLICA_CONNECTIONS.semaphore();
    let bodies = REPLICA_BODIES.semaphore_of(REPLICA_BODIES.all() / 1024);
    let connections = TaskTracker::new();
    let cut = CancellationToken::new();
    let warnings = LineLimit::default();
    let summaries = summarise(&warnings);
    tokio::pin!(summaries);
    loop {
        let accepted = async {
            let permit = permits.clone().acquire_owned().await.ok()?;
            Some((permit, listener.accept().await))
        };
        let accepted = tokio::select! {
            biased;
            () = deps.shutdown.cancelled() => break,
            () = &mut summaries => break,
            accepted = accepted => accepted,
        };
        let Some((permit, accepted)) = accepted else {
            break;
        };
        match accepted {
            Ok((stream, peer)) => {
                let client = Some(peer.ip().to_canonical());
                let shared = (deps.clone(), bodies.clone(), warnings.clone());
                let serve = serve_one(stream, client, shared);
                let cut = cut.clone();
                connections.spawn(async move {
                    let _ = cut.run_until_cancelled(serve).await;
                    drop(permit);
                });
            }
            Err(error) => {
                if let Some(left_out) = warnings.take(None) {
                    tracing::warn!(%error, left_out, "a connection of another replica could not be accepted");
                }
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    connections.close();
    let _ = timeout(LAST, connections.wait()).await;
    cut.cancel();
    connections.wait().await;
    flush(&warnings, Duration::ZERO);
}

/// Writes each second how many warnings were left out.
async fn summarise(warnings: &LineLimit) {
    let mut ticks = interval(WINDOW);
    loop {
        ticks.tick().await;
        flush(warnings, WINDOW);
    }
}

fn flush(warnings: &LineLimit, age: Duration) {
    let LeftOut { clients, others } = warnings.take_left_out(age);
    for (client, left_out) in clients {
        let client = show_client(client);
        tracing::warn!(
            client,
            left_out,
            "more requests of this client had no valid stamp"
        );
    }
    if others > 0 {
        tracing::warn!(
            left_out = others,
            "requests of other clients had no valid stamp"
        );
    }
}

async fn serve_one(
    stream: TcpStream,
    client: Client,
    (deps, bodies, warnings): (Deps, Arc<Semaphore>, LineLimit),
) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let (deps, bodies, warnings) = (deps.clone(), bodies.clone(), warnings.clone());
        let answered = async move {
            let warn = || warn_of_stamp(&warnings, client);
            let answered = timeout(WHOLE, take_request(&deps, &bodies, request, warn)).await;
            let late = StatusCode::GATEWAY_TIMEOUT;
            Ok::<_, Infallible>(answered.unwrap_or_else(|_| refusal(late)))
        };
        Box::pin(answered)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(Stall::new(stream, STALL)), service)
        .with_upgrades();
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection of another replica ended early");
    }
}

/// An answer without a body.
pub(super) fn refusal(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

async fn take_request(
    deps: &Deps,
    bodies: &Semaphore,
    mut request: Request<Incoming>,
    warn: impl FnOnce(),
) -> Response<Full<Bytes>> {
    let upgrade = hyper::upgrade::on(&mut request);
    let (head, body) = request.into_parts();
    if head.uri.path() != PATH || head.uri.query().is_some() {
        return refusal(StatusCode::NOT_FOUND);
    }
    // Before anything of the body is read.
    let Some((call, expected)) = check_stamp(deps, &head.method, &head.headers) else {
        warn();
        return refusal(StatusCode::UNAUTHORIZED);
    };
    let Some(call) = Call::decode(call) else {
        // Of another release.
        return refusal(StatusCode::BAD_REQUEST);
    };
    let size = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let permits = u32::try_from(size.min(LONGEST).div_ceil(1024)).unwrap_or(u32::MAX);
    let read = timeout(BODY, async {
        let room = bodies.acquire_many(permits).await.ok()?;
        let body = Limited::new(body, LONGEST).collect().await.ok()?;
        Some((room, body.to_bytes()))
    });
    let Ok(Some((_room, body))) = read.await else {
        return refusal(StatusCode::BAD_REQUEST);
    };
    if digest(&body) != expected {
        return refusal(StatusCode::UNAUTHORIZED);
    }
    match head.method {
        Method::GET => open_stream(deps, call, upgrade).await,
        _ => answer_call(deps, call, body).await,
    }
}

/// Warns, at most once a second for each address: every client of the listener can cause it.
fn warn_of_stamp(warnings: &LineLimit, client: Client) {
    let Some(left_out) = warnings.take(client) else {
        return;
    };
    tracing::warn!(
        client = show_client(client),
        left_out,
        "a request to the listener for replicas had no valid stamp; check that the clocks agree"
    );
}

/// The call, and the digest of the body that belongs to it; `None` without a valid stamp.
fn check_stamp<'a>(
    deps: &Deps,
    method: &Method,
    headers: &'a HeaderMap,
) -> Option<(&'a str, String)> {
    let inner = deps.replicas.0.as_ref()?;
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let call = text(CALL)?;
    let covered = Covered {
        to: &inner.me.id,
        method: method.as_str(),
        path: PATH,
        call,
    };
    let stamp = text(AUTHORIZATION.as_str())?;
    let expected = inner.seal.check_stamp(covered, stamp, deps.clock.now())?;
    Some((call, expected))
}
