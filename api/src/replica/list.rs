//! The executors of all replicas.

use bytes::Bytes;
use schema::ids::Uid;

use super::call::Call;
use crate::deps::Deps;
use crate::executors::{Close, Connected, ConnectionId};

/// The executors that are connected, to whichever replica, oldest connection first; `user`: only those of one user.
pub(crate) async fn list_connected(deps: &Deps, user: Option<&Uid>) -> Vec<Connected> {
    let mut all = deps.mcp.hub.connected();
    all.retain(|one| user.is_none_or(|user| one.key.user == *user));
    if !deps.replicas.has_others() {
        return all;
    }
    let call = Call::Executors {
        user: user.cloned(),
    };
    for text in deps.replicas.ask_all(&call, Bytes::new()).await {
        let theirs: Vec<Connected> = serde_json::from_slice(&text).unwrap_or_default();
        all.extend(theirs);
    }
    all.sort_by_key(|one| (one.about.since, one.connection));
    all
}

/// Ends the connection of an executor, at whichever replica.
pub(crate) async fn disconnect_executor(deps: &Deps, connection: ConnectionId) {
    match deps.replicas.with_connection(connection.0).await {
        None => deps.mcp.hub.dismiss(connection, Close::Dismissed),
        Some(other) => {
            let call = Call::Disconnect { connection };
            let asked = deps
                .replicas
                .ask_replica(&other, &call, Bytes::new(), super::ALL);
            if let Err(error) = asked.await {
                tracing::warn!(?error, "an executor of another replica is not disconnected");
            }
        }
    }
}
