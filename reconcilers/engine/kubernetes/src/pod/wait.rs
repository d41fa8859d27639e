//! The wait for the cluster's policies, which are in force only a moment after a Pod has begun.

use std::time::Duration;

use tokio::time::Instant;

use super::is_reached;

/// Time between two tries.
const PAUSE: Duration = Duration::from_millis(100);
/// Tries in a row that must fail: one may fail by chance.
const CLOSED: u32 = 2;

/// Returns once none of these addresses is reached any more, twice in a row. Calls `complain` once, with those that are still
/// reached after `limit`.
pub fn wait_closed(addresses: &[String], limit: Duration, complain: impl FnOnce(&[&String])) {
    let begun = Instant::now();
    let mut complain = Some(complain);
    let mut closed = 0;
    while closed < CLOSED {
        let open: Vec<&String> = addresses.iter().filter(|it| is_reached(it)).collect();
        closed = if open.is_empty() { closed + 1 } else { 0 };
        if !open.is_empty()
            && begun.elapsed() >= limit
            && let Some(complain) = complain.take()
        {
            complain(&open);
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn wait_ends_once_the_address_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (said, heard) = mpsc::channel();
        let waited = address.clone();
        let waiting = std::thread::spawn(move || {
            wait_closed(&[waited], Duration::ZERO, |open| {
                said.send(open.iter().map(|it| (*it).clone()).collect::<Vec<_>>())
                    .unwrap();
            });
        });
        assert_eq!(heard.recv().unwrap(), [address]);
        assert!(!waiting.is_finished());
        drop(listener);
        waiting.join().unwrap();
    }
}
