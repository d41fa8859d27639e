//! Work that takes long without waiting for anything.

use std::future::pending;
use std::panic::resume_unwind;

use tokio::task::spawn_blocking;

/// Does it on a thread of its own kind; a panic goes on here. Not more of it runs at once than there are workers to wait
/// for it; what is not waited for any more still runs to its end.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime ends, and nobody goes on from here.
            Err(_) => pending().await,
        },
    }
}
