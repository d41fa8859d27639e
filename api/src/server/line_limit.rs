//! One line of the log a second for each client, whatever it sends; the others are counted.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::auth::client_address::Network;

/// Time for which one line about a client has to do.
pub(crate) const WINDOW: Duration = Duration::from_secs(1);
/// Most clients that are distinguished at a time; further ones share one line.
const MOST: usize = 10_000;

/// A client; `None`: one without an address, as on the admin socket.
pub(crate) type Client = Option<IpAddr>;

/// The lines of one log. Clones share what they know of clients.
#[derive(Debug, Clone, Default)]
pub(crate) struct LineLimit(Arc<Mutex<Windows>>);

/// Lines that were left out and are due.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Clients with the number of their lines.
    pub(crate) clients: Vec<(Client, u64)>,
    /// Lines of clients for whom there was no room.
    pub(crate) others: u64,
}

#[derive(Debug, Default)]
struct Windows {
    /// By network; `None` for clients without an address.
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

impl LineLimit {
    fn windows(&self) -> MutexGuard<'_, Windows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the right to a line about this client, with the number of those that were left out before it.
    pub(crate) fn take(&self, client: Client) -> Option<u64> {
        let now = Instant::now();
        let mut windows = self.windows();
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

    /// Takes what was left out of the log of clients whose last line is this old. Clients that send nothing more are
    /// forgotten.
    pub(crate) fn take_left_out(&self, age: Duration) -> LeftOut {
        let now = Instant::now();
        let mut due = Vec::new();
        let mut windows = self.windows();
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
        LeftOut {
            clients: due,
            others: std::mem::take(&mut windows.others),
        }
    }
}

/// Address of a client, for the log.
pub(crate) fn show_client(client: Client) -> String {
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
        let log = LineLimit::default();
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
        let log = LineLimit::default();
        let lines = (0..20_000).filter(|n| log.take(client(*n)).is_some());
        assert_eq!(lines.count(), MOST);
        let len = || log.0.lock().unwrap().clients.len();
        assert_eq!(len(), MOST);
        assert_eq!(log.0.lock().unwrap().others, 10_000);
        assert_eq!(log.take(client(0)), None);
        advance(WINDOW).await;
        log.take_left_out(WINDOW);
        assert_eq!(len(), 1, "its summary is its line of this second");
        assert_eq!(log.take(client(0)), None);
        advance(WINDOW).await;
        log.take_left_out(WINDOW);
        advance(WINDOW).await;
        log.take_left_out(WINDOW);
        assert_eq!(len(), 0);
    }
}
