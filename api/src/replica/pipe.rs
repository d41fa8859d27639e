//! A WebSocket of a client whose other end is at another replica.

use std::time::Duration;

use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::time::sleep;

use crate::deps::Dependencies;

/// Bytes that are kept for each direction.
const BUFFER: usize = 8 * 1024;
/// Time for which it goes on when the service ends: as long as calls under way.
const LAST: Duration = Duration::from_secs(4);

/// Passes bytes between a client and another replica until one of them ends.
pub(crate) fn pipe_websocket(deps: &Dependencies, client: OnUpgrade, other: Upgraded) {
    let shutdown = deps.shutdown.clone();
    deps.tasks.spawn(async move {
        let client = match client.await {
            Ok(client) => client,
            Err(error) => {
                return tracing::debug!(%error, "a client was gone before it was connected");
            }
        };
        let (mut client, mut other) = (TokioIo::new(client), TokioIo::new(other));
        let last = async {
            shutdown.cancelled().await;
            sleep(LAST).await;
        };
        tokio::select! {
            _ = copy_bidirectional_with_sizes(&mut client, &mut other, BUFFER, BUFFER) => {}
            () = last => {}
        }
    });
}
