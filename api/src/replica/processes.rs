//! The processes that serve an installation, with their flags that reach agents.

use std::time::Duration;

use schema::config::flags::{self, AgentFlags};
use schema::error::{DbError, chain};
use schema::reader::Connection;
use schema::replica::{Replica, ReplicaTable};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

/// Time between two heartbeats of a process that other replicas do not reach.
const BEAT: Duration = Duration::from_secs(5);
/// Longest time of a goodbye.
const GOODBYE: Duration = Duration::from_secs(2);

/// This process among those that serve the installation.
#[derive(Debug, Clone)]
pub struct Processes {
    me: Replica,
    /// Rows of all of them; `None` on SQLite, where one process serves.
    table: Option<ReplicaTable>,
}

impl Processes {
    /// A process that has joined the others, or is alone.
    pub fn new(me: Replica, table: Option<ReplicaTable>) -> Self {
        Self { me, table }
    }

    /// This process and the rows of all; `None` on SQLite.
    pub fn table(&self) -> Option<(&Replica, &ReplicaTable)> {
        self.table.as_ref().map(|table| (&self.me, table))
    }

    /// Returns true for this process.
    pub(crate) fn is_this(&self, process: &Replica) -> bool {
        process.id == self.me.id
    }

    /// Lists the processes that live, by their numbers.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list(&self, connection: &mut Connection) -> Result<Vec<Replica>, DbError> {
        match &self.table {
            Some(_) => ReplicaTable::live_on(connection).await,
            None => Ok(vec![self.me.clone()]),
        }
    }

    /// Lists differences between the flags of processes and those that agents have, each as a sentence.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn list_differences(
        &self,
        connection: &mut Connection,
    ) -> Result<Vec<String>, DbError> {
        let Some(agents) = flags::read(connection).await? else {
            return Ok(Vec::new());
        };
        let all = self.list(connection).await?;
        let differing = all.iter().filter_map(|process| {
            let differences = describe_differences(process, &agents);
            let name = &process.name;
            (!differences.is_empty()).then(|| {
                format!(
                    "replica {name}: {}; agents would change when it leads: give all replicas the same flags",
                    differences.join(", ")
                )
            })
        });
        Ok(differing.collect())
    }

    /// Records that this process lives, until the service stops. Not needed of one that other replicas reach.
    pub async fn record_heartbeats(self, shutdown: CancellationToken) {
        let Some(table) = &self.table else {
            return shutdown.cancelled().await;
        };
        let mut beat = interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while shutdown.run_until_cancelled(beat.tick()).await.is_some() {
            if let Err(error) = table.beat(&self.me).await {
                let error = chain(&error);
                tracing::debug!(error, "the heartbeat cannot be recorded");
            }
        }
        let _ = timeout(GOODBYE, table.leave(&self.me.id)).await;
    }
}

/// Describes the flags of a process that agents have with another value.
pub(crate) fn describe_differences(process: &Replica, agents: &AgentFlags) -> Vec<String> {
    let flags = AgentFlags::from_text(&process.flags);
    let differences = flags.differences(agents);
    let words =
        differences.map(|(name, here, theirs)| format!("--{name} is {here}, agents have {theirs}"));
    words.collect()
}
