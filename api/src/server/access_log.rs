//! The access log: a line for each request, but only so many for what is refused.
//!
//! Anybody can have as many requests refused as the network carries. So of those of one client that were
//! refused, or that nobody known sent, at most one line a second is written; the others are counted, and
//! the next line says how many there were (L62, L70).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Method, StatusCode};
use tokio::time::{Instant, interval};

use crate::auth::client_address::Network;
use crate::dispatch::Trail;

/// For how long one line about a client has to do.
const WINDOW: Duration = Duration::from_secs(1);
/// Most clients that are told apart at a time; further ones share one line.
const MOST: usize = 10_000;
/// Longest method name written to the log, in bytes. Clients can make up methods.
const MAX_METHOD: usize = 16;

/// A client; `None`: the admin socket.
type Client = Option<IpAddr>;

/// The log. Clones share what they know of clients.
#[derive(Debug, Clone, Default)]
pub(super) struct AccessLog(Arc<Mutex<Windows>>);

#[derive(Debug, Default)]
struct Windows {
    /// By network; `None` for the admin socket.
    clients: HashMap<Option<Network>, Window>,
    /// Of those for whom there was no room.
    others: u64,
}

/// The time since a client's last line.
#[derive(Debug)]
struct Window {
    begun: Instant,
    left_out: u64,
    /// The latest of the addresses.
    client: Client,
}

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
        let client = shown(address);
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let read = method == "GET" || method == "HEAD" || method == "OPTIONS";
        let good = !status.is_client_error() && !status.is_server_error();
        let (status, name) = (status.as_u16(), caller.unwrap_or("-"));
        if good && read {
            tracing::debug!(method, route, status, ms, client, caller = name, "request");
        } else if good && caller.is_some() {
            tracing::info!(method, route, status, ms, client, caller = name, "request");
        } else {
            match self.take(address) {
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

    /// The right to a line about this client, with how many were left out before it.
    fn take(&self, client: Client) -> Option<u64> {
        let now = Instant::now();
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let network = client.map(Network::from);
        if let Some(window) = windows.clients.get_mut(&network) {
            window.client = client;
            if now.duration_since(window.begun) < WINDOW {
                window.left_out += 1;
                return None;
            }
            window.begun = now;
            return Some(std::mem::take(&mut window.left_out));
        }
        if windows.clients.len() >= MOST {
            windows.others += 1;
            return None;
        }
        let window = Window {
            begun: now,
            left_out: 0,
            client,
        };
        windows.clients.insert(network, window);
        Some(0)
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
        let now = Instant::now();
        let mut due = Vec::new();
        let others = {
            let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            windows.clients.retain(|_, window| {
                if now.duration_since(window.begun) < age {
                    return true;
                }
                let left_out = std::mem::take(&mut window.left_out);
                if left_out > 0 {
                    window.begun = now;
                    due.push((window.client, left_out));
                }
                left_out > 0
            });
            std::mem::take(&mut windows.others)
        };
        for (client, left_out) in due {
            let client = shown(client);
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

fn shown(client: Client) -> String {
    client.map_or_else(|| "-".to_owned(), |client| client.to_string())
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn client(n: u32) -> Client {
        Some(IpAddr::from(n.to_be_bytes()))
    }

    #[tokio::test(start_paused = true)]
    async fn l70_a_client_has_one_line_a_second_and_the_next_counts_what_was_left_out() {
        let log = AccessLog::default();
        assert_eq!(log.take(client(1)), Some(0));
        for _ in 0..1000 {
            assert_eq!(log.take(client(1)), None);
        }
        assert_eq!(log.take(client(2)), Some(0));
        assert_eq!(log.take(None), Some(0));
        advance(WINDOW).await;
        assert_eq!(log.take(client(1)), Some(1000));
        assert_eq!(log.take(client(1)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn l69_clients_that_ask_no_more_are_forgotten_and_their_number_is_bounded() {
        let log = AccessLog::default();
        let lines = (0..20_000).filter(|n| log.take(client(*n)).is_some());
        assert_eq!(lines.count(), MOST);
        let len = || log.0.lock().unwrap().clients.len();
        assert_eq!(len(), MOST);
        assert_eq!(log.0.lock().unwrap().others, 10_000);
        assert_eq!(log.take(client(0)), None);
        advance(WINDOW).await;
        log.flush(WINDOW);
        assert_eq!(len(), 1, "its summary is its line of this second");
        assert_eq!(log.take(client(0)), None);
        advance(WINDOW).await;
        log.flush(WINDOW);
        advance(WINDOW).await;
        log.flush(WINDOW);
        assert_eq!(len(), 0);
    }
}
