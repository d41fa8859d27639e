//! One connection, from handshake to end.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming as RequestBody;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::Watcher;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep, timeout};

use super::layers::{self, AppService, Body};
use super::listener::{Incoming, Transport};
use super::request::Peer;

/// Most bytes of a request's head, in HTTP/1 and HTTP/2.
const MAX_HEAD: usize = 64 * 1024;
/// Most requests at once on one HTTP/2 connection.
const MAX_STREAMS: u32 = 100;
/// How often an HTTP/2 peer must show that it is there, and how long its answer may take.
const PING: Duration = Duration::from_secs(30);

/// Serves a connection to its end.
pub(super) async fn serve(
    incoming: Incoming,
    service: AppService,
    watcher: Watcher,
    head: Duration,
) {
    let peer = incoming.peer;
    match incoming.transport {
        Transport::Tcp(stream) => talk(stream, peer, service, watcher, head).await,
        Transport::Unix(stream) => talk(stream, peer, service, watcher, head).await,
        Transport::Tls(stream, tls) => match timeout(head, tls.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => talk(stream, peer, service, watcher, head).await,
            Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        },
    }
}

async fn talk<S>(stream: S, peer: Peer, service: AppService, watcher: Watcher, head: Duration)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let asked = Arc::new(AtomicBool::new(false));
    let seen = asked.clone();
    let handler = service_fn(move |request: Request<RequestBody>| {
        seen.store(true, Ordering::Relaxed);
        layers::answer(service.clone(), request, peer)
            as futures::future::BoxFuture<'static, Result<Response<Body>, Infallible>>
    });
    let builder = builder(head);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), handler);
    let connection = watcher.watch(connection);
    tokio::pin!(connection);
    // The protocol is told apart by the first bytes, and nothing in there limits how long those may
    // take; nor has HTTP/2 a time limit for a request's head. So the first request has one here.
    let result = tokio::select! {
        result = &mut connection => result,
        () = sleep(head) => {
            if !asked.load(Ordering::Relaxed) {
                tracing::debug!("a connection sent no request in time");
                return;
            }
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}

fn builder(head: Duration) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .max_buf_size(MAX_HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(PING))
        .keep_alive_timeout(PING)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX));
    builder
}
