//! Waiting for something to become true.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{PATIENCE, long};

const PAUSE: Duration = Duration::from_millis(40);

/// Calls `look` until it gives `Ok`; fails with the last `Err` after `limit`, which is at least [`PATIENCE`] unless the
/// long tier runs. Returns the value and the time that passed.
pub async fn eventually<T>(
    what: &str,
    limit: Duration,
    mut look: impl AsyncFnMut() -> Result<T, String>,
) -> (T, Duration) {
    let start = Instant::now();
    let limit = if long() { limit } else { limit.max(PATIENCE) };
    loop {
        match look().await {
            Ok(value) => return (value, start.elapsed()),
            Err(last) if start.elapsed() >= limit => {
                panic!("not within {limit:?}: {what}; last seen: {last}")
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// Asks again and again until `look` gives true.
pub async fn until(what: &str, limit: Duration, mut look: impl AsyncFnMut() -> bool) -> Duration {
    let asked = eventually(what, limit, async || {
        if look().await {
            Ok(())
        } else {
            Err("no".to_owned())
        }
    });
    asked.await.1
}
