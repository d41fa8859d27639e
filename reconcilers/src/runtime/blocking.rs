//! Work that takes long without waiting for anything.

use std::future::pending;
use std::panic::resume_unwind;

use schema::under_way::track_call;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// How much of it runs at once.
#[expect(
    clippy::disallowed_methods,
    reason = "four places for the work of passes"
)]
static TURNS: Semaphore = Semaphore::const_new(4);

/// Does it on a thread where it holds up no request; a panic goes on here. Who is not waited for any more still keeps its
/// turn to its end.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    // It is never closed.
    let turn = TURNS.acquire().await;
    let done = spawn_blocking(track_call(
        "planning or parsing of a reconciler",
        move || {
            let _turn = turn;
            work()
        },
    ));
    match done.await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime ends, and nobody goes on from here.
            Err(_) => pending().await,
        },
    }
}
