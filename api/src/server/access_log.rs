//! The access log: a line for each request, but only so many for what is refused.
//!
//! Anybody can have as many requests refused as the network carries. So of those of one client that were
//! refused, or that nobody known sent, at most one line a second is written; the others are counted, and
//! the next line says how many there were (L62, L70).

use std::time::Duration;

use http::{Method, StatusCode};
use tokio::time::{Instant, interval};

use super::line_limit::{LeftOut, LineLimit, WINDOW, show_client};
use crate::dispatch::Trail;

/// Longest method name written to the log, in bytes. Clients can make up methods.
const MAX_METHOD: usize = 16;

/// The log. Clones share what they know of clients.
#[derive(Debug, Clone, Default)]
pub(super) struct AccessLog(LineLimit);

impl AccessLog {
    /// One line, of bounded length: the route's pattern instead of the path, and no header or parameter
    /// (L62). Reads that went well are for debugging only.
    pub(super) fn request(
        &self,
        method: &Method,
        status: StatusCode,
        begun: Instant,
        trail: Option<&Trail>,
    ) {
        let method = method.as_str();
        let method = method.get(..MAX_METHOD).unwrap_or(method);
        let route = trail.and_then(|trail| trail.route).unwrap_or("-");
        let caller = trail.and_then(|trail| trail.caller.as_deref());
        let address = trail.and_then(|trail| trail.client);
        let client = show_client(address);
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let read = method == "GET" || method == "HEAD" || method == "OPTIONS";
        let good = !status.is_client_error() && !status.is_server_error();
        let (status, name) = (status.as_u16(), caller.unwrap_or("-"));
        if good && read {
            tracing::debug!(method, route, status, ms, client, caller = name, "request");
        } else if good && caller.is_some() {
            tracing::info!(method, route, status, ms, client, caller = name, "request");
        } else {
            match self.0.take(address) {
                None => {}
                Some(0) => {
                    tracing::info!(method, route, status, ms, client, caller = name, "request");
                }
                Some(left_out) => tracing::info!(
                    method,
                    route,
                    status,
                    ms,
                    client,
                    caller = name,
                    left_out,
                    "request"
                ),
            }
        }
    }

    /// Writes what was left out of the log, for as long as it is awaited. Whoever asks no more is
    /// forgotten.
    pub(super) async fn summarise(&self) {
        let mut ticks = interval(WINDOW);
        loop {
            ticks.tick().await;
            self.flush(WINDOW);
        }
    }

    /// Writes what was left out of the log of clients whose last line is this old.
    pub(super) fn flush(&self, age: Duration) {
        let LeftOut { clients, others } = self.0.take_left_out(age);
        for (client, left_out) in clients {
            let client = show_client(client);
            tracing::info!(
                client,
                left_out,
                "more requests of this client were refused"
            );
        }
        if others > 0 {
            tracing::info!(left_out = others, "requests of other clients were refused");
        }
    }
}
