//! The accept loop: listeners, connection limits, TLS, time limits, and what every response gets.
//!
//! Connections are ours rather than the web framework's because the framework offers no TLS, no
//! time limits and no bounded shutdown.

mod access_log;
mod connection;
mod crowd;
mod layers;
mod line_limit;
mod linger;
mod listener;
mod metrics;
mod outgoing;
mod plain;
mod request;
mod stall;
mod streams;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use hyper_util::server::graceful::GracefulShutdown;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use layers::known_method;
pub(crate) use line_limit::{Client, LeftOut, LineLimit, WINDOW, show_client};
pub use listener::{ListenError, Listener};
pub use metrics::{MetricsSource, serve_metrics};
pub use request::{Peer, RequestContext, RequestId, Surface};
pub(crate) use stall::Stall;
pub use tls::{Tls, TlsError};

use crate::dispatch::Api;
use crate::limits::CONNECTIONS;
use crate::settings::WebSettings;
use crowd::Crowd;
use layers::Stack;

/// Bounds of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most connections at once; further ones wait in the system's backlog.
    pub connections: usize,
    /// Most connections at once of one client: an IPv4 address or an IPv6 /64. Trusted proxies speak
    /// for many clients and are exempt. Further ones are closed at once.
    pub per_client: usize,
    /// Longest time for the head of a request, for a TLS handshake, and for a connection to send
    /// its first request.
    pub head: Duration,
    /// Longest time without any open request on an HTTP/2 connection. (Waiting for the next request
    /// of HTTP/1 is limited by `head`.)
    pub idle: Duration,
    /// Longest time for a peer to take nothing of what is sent to it.
    pub stall: Duration,
    /// Longest time for requests to finish once the service stops.
    pub shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: CONNECTIONS.all(),
            per_client: CONNECTIONS.each(),
            head: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            stall: Duration::from_secs(30),
            // Everything together has to end within 10 s.
            shutdown: Duration::from_secs(8),
        }
    }
}

/// Serves the API on listeners.
#[derive(Clone)]
pub struct Server {
    stack: Stack,
    settings: watch::Receiver<Arc<WebSettings>>,
    limits: Limits,
}

impl Server {
    /// A server for an API.
    pub fn new(api: Api, limits: Limits) -> Self {
        Self {
            settings: api.settings(),
            stack: layers::stack(api.filter()),
            limits,
        }
    }

    /// Accepts connections until `shutdown`, then lets requests finish, at most
    /// [`Limits::shutdown`] long. Connections that are still open then are dropped.
    pub async fn run(self, mut listener: Listener, shutdown: CancellationToken) {
        let limits = self.limits;
        let permits = CONNECTIONS.semaphore_of(limits.connections);
        let crowd = Crowd::new(limits.per_client, self.settings.clone());
        let graceful = GracefulShutdown::new();
        let connections = TaskTracker::new();
        let abort = CancellationToken::new();
        let log = self.stack.log.clone();
        let summaries = log.summarise();
        tokio::pin!(summaries);
        loop {
            let accepted = async {
                // First the permit: without a free one the system's backlog holds newcomers.
                let permit = permits.clone().acquire_owned().await.ok()?;
                Some((permit, listener.accept().await))
            };
            let (permit, accepted) = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                () = &mut summaries => break,
                accepted = accepted => match accepted {
                    Some(accepted) => accepted,
                    None => break,
                },
            };
            let incoming = match accepted {
                Ok(incoming) => incoming,
                Err(error) => {
                    // Such as too many open files: the next attempt would fail at once, too.
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let Some(place) = crowd.enter(&incoming.peer) else {
                tracing::debug!(peer = ?incoming.peer.addr, "a client has too many connections");
                continue;
            };
            let serve = connection::serve(incoming, self.stack.clone(), graceful.watcher(), limits);
            let abort = abort.clone();
            connections.spawn(async move {
                tokio::select! {
                    () = abort.cancelled() => {}
                    () = serve => {}
                }
                drop((permit, place));
            });
        }
        listener.close();
        connections.close();
        let drained = async {
            graceful.shutdown().await;
            connections.wait().await;
        };
        if timeout(limits.shutdown, drained).await.is_err() {
            tracing::warn!(open = connections.len(), "connections were cut at shutdown");
            abort.cancel();
            connections.wait().await;
        }
        log.flush(Duration::ZERO);
    }
}

#[cfg(test)]
mod tests;
