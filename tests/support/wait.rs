//! Waiting for something to become true.

use std::time::Duration;

use tokio::time::{Instant, sleep};

const PAUSE: Duration = Duration::from_millis(40);

/// Asks again and again until `look` gives `Ok`; fails with the last `Err` when the time is up.
///
/// Gives the value and how long it took.
pub async fn eventually<T>(
    what: &str,
    limit: Duration,
    mut look: impl AsyncFnMut() -> Result<T, String>,
) -> (T, Duration) {
    let start = Instant::now();
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
