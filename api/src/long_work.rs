//! Reading what strangers wrote, which holds up no async thread when it is long.

use std::sync::LazyLock;

use schema::ids::Uid;
use schema::under_way::track_call;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::limits::{PARSES, PerOwner};

/// From so many bytes on it is long: what is shorter takes less than a millisecond.
const LONG: usize = 256 * 1024;

/// How many of them are read at once: each takes a core, and many times its length of memory.
#[expect(clippy::disallowed_methods, reason = "of the row `PARSES`")]
static PLACES: Semaphore = Semaphore::const_new(PARSES.all());

/// Places of single users, taken before, so that one user who has much to read is one in the line.
static PLACES_OF_USERS: LazyLock<PerOwner<Uid>> = LazyLock::new(|| PerOwner::new(PARSES.each()));

/// Does work on so many bytes of a user. `None` when it was broken off by a panic.
pub(crate) async fn work_on<T: Send + 'static>(
    user: &Uid,
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    if bytes < LONG {
        return Some(work());
    }
    run_long_work(user, work).await
}

/// Runs long work for a user on a thread of its own. `None` after a panic.
pub(crate) async fn run_long_work<T: Send + 'static>(
    user: &Uid,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    // It is never closed.
    let own = PLACES_OF_USERS.part_of(user).acquire_owned().await;
    run_blocking(move || {
        let _own = own;
        work()
    })
    .await
}

/// Runs long work of the service on a thread of its own. `None` after a panic.
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
    use std::sync::{Arc, Mutex, mpsc};
    use std::thread;

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn only_what_is_long_leaves_its_thread() {
        let here = thread::current().id();
        let user = Uid::random();
        for (bytes, stays) in [(0, true), (LONG - 1, true), (LONG, false)] {
            let there = work_on(&user, bytes, || thread::current().id()).await;
            assert_eq!(there == Some(here), stays, "{bytes}");
        }
        assert_eq!(PLACES.available_permits(), 2);
    }

    #[tokio::test]
    async fn user_with_much_work_leaves_a_place_to_others() {
        let (busy, other) = (Uid::random(), Uid::random());
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let mut works = JoinSet::new();
        for _ in 0..3 {
            let (busy, held) = (busy.clone(), Arc::clone(&held));
            works.spawn(
                async move { work_on(&busy, LONG, move || held.lock().unwrap().recv()).await },
            );
        }
        tokio::task::yield_now().await;
        assert_eq!(work_on(&other, LONG, || 7).await, Some(7));
        drop(release);
        assert_eq!(works.join_all().await.len(), 3);
    }
}
