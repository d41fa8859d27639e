//! Reading what strangers wrote, which holds up no async thread when it is long.

use schema::under_way::track_call;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::limits::PARSES;

/// From so many bytes on it is long: what is shorter takes less than a millisecond.
const LONG: usize = 256 * 1024;

/// How many of them are read at once: each takes a core, and many times its length of memory.
static PLACES: Semaphore = Semaphore::const_new(PARSES.all());

/// Does work on so many bytes. `None` when it was broken off by a panic.
pub(crate) async fn work_on<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    if bytes < LONG {
        return Some(work());
    }
    run_blocking(work).await
}

/// Runs long work on a thread of its own. `None` after a panic.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    // It is never closed.
    let place = PLACES.acquire().await;
    let work = track_call("parsing of long input", move || {
        // Nobody stops what has begun, also when nobody waits for it any more.
        let _place = place;
        work()
    });
    spawn_blocking(work).await.ok()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn only_what_is_long_leaves_its_thread() {
        let here = thread::current().id();
        for (bytes, stays) in [(0, true), (LONG - 1, true), (LONG, false)] {
            let there = work_on(bytes, || thread::current().id()).await;
            assert_eq!(there == Some(here), stays, "{bytes}");
        }
        assert_eq!(PLACES.available_permits(), 2);
    }
}
