//! One connection, from handshake to end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response, Version};
use http_body_util::BodyExt;
use hyper::body::Incoming as RequestBody;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::Watcher;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::Limits;
use super::layers::{self, Body, Stack};
use super::linger::{Linger, Received, Unread};
use super::listener::{Incoming, Transport};
use super::plain::{is_plain, refuse_plain};
use super::request::Peer;
use super::stall::Stall;
use super::streams::StreamExecutor;

/// Most bytes of a request's head, in HTTP/1 and HTTP/2.
const MAX_HEAD: usize = 64 * 1024;
/// Most requests at once on one HTTP/2 connection.
const MAX_STREAMS: u32 = 100;
/// Most bytes of one answer that HTTP/2 keeps while the socket is full.
const MAX_SEND_BUFFER: usize = 64 * 1024;
/// How often an HTTP/2 peer must show that it is there, and how long its answer may take.
const PING: Duration = Duration::from_secs(30);

/// Serves a connection to its end. Each kind is boxed by itself: one of TLS takes more memory than a plain one, which would be all
/// connections'.
pub(super) fn serve(
    incoming: Incoming,
    stack: Stack,
    watcher: Watcher,
    limits: Limits,
) -> BoxFuture<'static, ()> {
    let peer = incoming.peer;
    match incoming.transport {
        Transport::Tcp(stream) => Box::pin(talk(stream, peer, stack, watcher, limits)),
        Transport::Unix(stream) => Box::pin(talk(stream, peer, stack, watcher, limits)),
        Transport::Tls(stream, tls) => Box::pin(async move {
            match timeout(limits.head, is_plain(&stream)).await {
                Ok(false) => {}
                Ok(true) => {
                    let refused = refuse_plain(stream, limits.head);
                    let _ = timeout(limits.head + limits.stall, refused).await;
                    return;
                }
                Err(_) => return tracing::debug!("a client of the TLS port sent nothing"),
            }
            match timeout(limits.head, tls.acceptor().accept(stream)).await {
                Ok(Ok(stream)) => talk(stream, peer, stack, watcher, limits).await,
                Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                Err(_) => tracing::debug!("a TLS handshake took too long"),
            }
        }),
    }
}

/// Speaks HTTP on a stream that is ready for it, to its end.
pub(super) async fn talk<S>(stream: S, peer: Peer, stack: Stack, watcher: Watcher, limits: Limits)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (requests, changes) = watch::channel(Requests::default());
    let requests = Arc::new(requests);
    let unread = Unread::default();
    let left = unread.clone();
    let handler = service_fn(move |request: Request<RequestBody>| {
        let open = Open::new(requests.clone(), request.version());
        let request = request.map(|body| Received::new(body, left.clone()));
        let answer = layers::answer(stack.clone(), request, peer);
        let answer = async move { Ok(answer.await?.map(|body| keep(body, open))) };
        Box::pin(answer) as BoxFuture<'static, Result<Response<Body>, Infallible>>
    });
    let builder = builder(limits);
    let stream = Linger::new(stream, unread);
    let io = TokioIo::new(Stall::new(stream, limits.stall));
    let connection = builder.serve_connection_with_upgrades(io, handler);
    let connection = watcher.watch(connection);
    tokio::pin!(connection);
    // Whoever answers pings may do so for ever, so HTTP/2 has no limit for idle connections either.
    // The first bytes decide the protocol, and nothing in there limits how long those may
    // take; nor has HTTP/2 a time limit for a request's head. So the first request has one here.
    let result = tokio::select! {
        result = &mut connection => result,
        why = silence(changes, limits) => {
            tracing::debug!("{why}");
            return;
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// The requests of one connection.
#[derive(Debug, Default)]
struct Requests {
    /// That of the first one.
    protocol: Option<Version>,
    /// Those whose answer is not complete yet.
    open: usize,
}

/// One request, until its answer's body has been handed over or given up.
struct Open(Arc<watch::Sender<Requests>>);

impl Open {
    fn new(requests: Arc<watch::Sender<Requests>>, protocol: Version) -> Self {
        requests.send_modify(|requests| {
            requests.protocol = Some(protocol);
            requests.open += 1;
        });
        Self(requests)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0
            .send_modify(|requests| requests.open = requests.open.saturating_sub(1));
    }
}

/// The same body, which keeps its request open for as long as it is there.
fn keep(body: Body, open: Open) -> Body {
    let kept = body.map_err(move |error| {
        let _open = &open;
        error
    });
    kept.boxed_unsync()
}

/// Waits until nothing has been asked for too long; says which limit that was.
async fn silence(mut changes: watch::Receiver<Requests>, limits: Limits) -> &'static str {
    sleep(limits.head).await;
    let protocol = changes.borrow_and_update().protocol;
    match protocol {
        None => return "a connection sent no request in time",
        Some(Version::HTTP_2) => {}
        // Has its own limit for the next request's head, which begins once all is sent.
        Some(_) => return std::future::pending().await,
    }
    loop {
        // Any change begins the time anew, even one that is over already.
        let open = changes.borrow_and_update().open;
        let limit = match open {
            0 => timeout(limits.idle, changes.changed()).await,
            _ => Ok(changes.changed().await),
        };
        match limit {
            Err(_) => return "a connection was idle for too long",
            Ok(Ok(())) => {}
            // The connection has dropped its handler and is about to end.
            Ok(Err(_)) => std::future::pending().await,
        }
    }
}

fn builder(limits: Limits) -> auto::Builder<StreamExecutor> {
    let stall = limits.stall;
    let mut builder = auto::Builder::new(StreamExecutor { stall });
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(MAX_HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(PING))
        .keep_alive_timeout(PING)
        .max_concurrent_streams(MAX_STREAMS)
        .max_send_buf_size(MAX_SEND_BUFFER)
        .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX));
    builder
}
