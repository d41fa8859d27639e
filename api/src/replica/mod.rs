//! Several replicas on PostgreSQL as one service: what only one of them can answer is passed on to it, once.
//!
//! All executors of a user and service are at one replica, which has their *place* (`places`): it takes the place with the first of them
//! and gives it back some time after the last. An executor that connects elsewhere is piped to it, so that its registry alone decides who
//! is asked, displaced and refused; a tool call that comes elsewhere is carried out by it as a whole, so that policy, limits and the audit
//! trail are asked once (`mcp/elsewhere.rs`). A conversation is at the replica that has locked its folder (`chat/elsewhere.rs`).
//!
//! Replicas speak HTTP with each other through a listener that serves nothing else (`listener`). Each request carries a call (`call`) and
//! a stamp under a key of the installation (`stamp`). Nothing that was passed on is passed on again. Without `--replica-listen`, and on
//! SQLite, there is one replica: no query and no request is made then.

mod call;
mod client;
mod list;
mod listener;
mod pipe;
mod places;
mod processes;
mod serve;
mod stamp;

use std::sync::Arc;
use std::time::Duration;

use schema::clock::SharedClock;
use schema::replica::{Replica, ReplicaTable};
use schema::secrets::MasterKey;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use call::{Call, Client};
pub(crate) use client::Unsent;
pub(crate) use list::{disconnect_executor, list_connected};
pub use listener::serve_replicas;
pub(crate) use pipe::pipe_websocket;
use places::Places;
pub use places::run;
pub(crate) use places::{Entered, Place};
pub use processes::Processes;
pub(crate) use processes::describe_differences;
use stamp::Seal;

/// Label of the key under which requests between replicas are stamped.
const LABEL: &str = "replica request";
/// Longest time for other replicas to answer what all of them are asked.
const ALL: Duration = Duration::from_secs(5);
/// Numbers of connections that a replica gives.
const NUMBERS: u64 = 1 << 32;

/// This replica, and calls to the other replicas; the default is a replica that is alone. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Replicas(Option<Arc<Inner>>);

struct Inner {
    me: Replica,
    table: ReplicaTable,
    seal: Seal,
    clock: SharedClock,
    places: Places,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner")
            .field("me", &self.me)
            .finish_non_exhaustive()
    }
}

impl Replicas {
    /// Replicas of an installation, of which `me` is this one. To be called before the database listens for changes.
    pub fn new(
        table: ReplicaTable,
        me: Replica,
        master_key: &MasterKey,
        clock: SharedClock,
        (tasks, shutdown): (TaskTracker, CancellationToken),
    ) -> Self {
        let places = Places::new(table.notices());
        tracing::info!(
            number = me.number,
            address = me.address,
            "joined the other replicas"
        );
        Self(Some(Arc::new(Inner {
            seal: Seal::new(master_key.derive(LABEL, b"")),
            me,
            table,
            clock,
            places,
            tasks,
            shutdown,
        })))
    }

    /// Returns true when requests may have to be passed on.
    pub fn has_others(&self) -> bool {
        self.0.is_some()
    }

    /// The number before the first connection of this replica; connections of other replicas have other numbers.
    pub(crate) fn first_number(&self) -> u64 {
        let number = self.0.as_ref().map_or(1, |inner| inner.me.number);
        u64::try_from(number - 1).unwrap_or_default() * NUMBERS
    }

    /// The beginning of the ids of streams that are here; nothing when this replica is alone.
    pub(crate) fn stream_prefix(&self) -> String {
        let inner = self.0.as_ref();
        inner.map_or_else(String::new, |inner| format!("r{}-", inner.me.number))
    }

    /// The other replica that has a stream; `None` when it is here, or nowhere.
    pub(crate) async fn with_stream(&self, id: &str) -> Option<Replica> {
        let number = id.strip_prefix('r')?.split_once('-')?.0.parse().ok()?;
        self.with_number(number).await
    }

    /// The other replica that has a connection.
    pub(crate) async fn with_connection(&self, connection: u64) -> Option<Replica> {
        self.0.as_ref()?;
        let number = i64::try_from(connection / NUMBERS).ok()? + 1;
        self.with_number(number).await
    }

    async fn with_number(&self, number: i64) -> Option<Replica> {
        if self.0.as_ref()?.me.number == number {
            return None;
        }
        let replicas = self.list_others().await;
        replicas.into_iter().find(|other| other.number == number)
    }

    /// The other replicas that live. None when they cannot be read, which is logged.
    pub(crate) async fn list_others(&self) -> Vec<Replica> {
        let Some(inner) = &self.0 else {
            return Vec::new();
        };
        match inner.table.live().await {
            Ok(mut all) => {
                all.retain(|replica| replica.id != inner.me.id && !replica.address.is_empty());
                all
            }
            Err(error) => {
                let error = schema::error::chain(&error);
                tracing::warn!(error, "the other replicas cannot be read");
                Vec::new()
            }
        }
    }

    /// Asks all other replicas, and gives the answers of those that answer in time.
    pub(crate) async fn ask_all(&self, call: &Call, body: bytes::Bytes) -> Vec<bytes::Bytes> {
        let replicas = self.list_others().await;
        let asked = replicas.iter().map(|other| async {
            let answered = self.ask_replica(other, call, body.clone(), ALL).await;
            let text = match answered {
                Ok(answered) if answered.is_success() => answered.text().await,
                Ok(_) => None,
                Err(_) => None,
            };
            if text.is_none() {
                let number = other.number;
                tracing::warn!(number, "another replica has not answered");
            }
            text
        });
        let answers = futures::future::join_all(asked).await;
        answers.into_iter().flatten().collect()
    }

    /// The same, without waiting.
    pub(crate) fn tell_all(&self, call: Call, body: bytes::Bytes) {
        let Some(inner) = &self.0 else {
            return;
        };
        let replicas = self.clone();
        inner.tasks.spawn(async move {
            replicas.ask_all(&call, body).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use schema::ids::Uid;

    use super::*;
    use crate::executors::{Key, Service};

    #[tokio::test]
    async fn replica_that_is_alone_asks_no_other() {
        let alone = Replicas::default();
        let key = Key {
            user: Uid::random(),
            service: Service::Browser,
        };
        assert!(!alone.has_others());
        assert!(alone.owner(&key, false).await.is_none());
        assert!(matches!(
            alone.enter_place(&key).await,
            Ok(Entered::Here(None))
        ));
        assert!(alone.list_others().await.is_empty());
        assert!(alone.with_stream("r2-a").await.is_none());
        assert!(alone.with_connection(7 * NUMBERS).await.is_none());
        assert_eq!((alone.first_number(), &*alone.stream_prefix()), (0, ""));
    }
}
