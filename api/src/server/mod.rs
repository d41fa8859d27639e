//! The accept loop: listeners, connection limits, TLS, time limits, and what every response gets.
//!
//! Connections are ours rather than the web framework's because the framework offers no TLS, no
//! time limits and no bounded shutdown.

mod connection;
mod layers;
mod listener;
mod request;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use hyper_util::server::graceful::GracefulShutdown;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use listener::{ListenError, Listener};
pub use request::{Peer, RequestContext, RequestId, Surface};
pub use tls::{Tls, TlsError};

use crate::dispatch::Api;
use layers::AppService;

/// Bounds of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most connections at once; further ones wait in the system's backlog.
    pub connections: usize,
    /// Longest time for the head of a request, for a TLS handshake, and for a connection to send
    /// its first request.
    pub head: Duration,
    /// Longest time for requests to finish once the service stops.
    pub shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            head: Duration::from_secs(10),
            shutdown: Duration::from_secs(10),
        }
    }
}

/// Serves the API on listeners.
#[derive(Clone)]
pub struct Server {
    service: AppService,
    limits: Limits,
}

impl Server {
    /// A server for an API.
    pub fn new(api: Api, limits: Limits) -> Self {
        Self {
            service: layers::stack(api.filter()),
            limits,
        }
    }

    /// Accepts connections until `shutdown`, then lets requests finish, at most
    /// [`Limits::shutdown`] long. Connections that are still open then are dropped.
    pub async fn run(self, mut listener: Listener, shutdown: CancellationToken) {
        let limits = self.limits;
        let permits = Arc::new(Semaphore::new(limits.connections));
        let graceful = GracefulShutdown::new();
        let connections = TaskTracker::new();
        let abort = CancellationToken::new();
        loop {
            let accepted = async {
                // First the permit: without a free one the system's backlog holds newcomers.
                let permit = permits.clone().acquire_owned().await.ok()?;
                Some((permit, listener.accept().await))
            };
            let (permit, accepted) = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
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
            let serve = connection::serve(
                incoming,
                self.service.clone(),
                graceful.watcher(),
                limits.head,
            );
            let abort = abort.clone();
            connections.spawn(async move {
                tokio::select! {
                    () = abort.cancelled() => {}
                    () = serve => {}
                }
                drop(permit);
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
    }
}

#[cfg(test)]
mod tests;
