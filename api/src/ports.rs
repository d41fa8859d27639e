//! What handlers ask of the world while a request waits: live reads that no table can answer.
//!
//! The binary implements these traits on the drivers and on the runtime. Handlers never see a
//! driver, and never write through a port.

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use schema::ids::{Timestamp, Uid};
use serde::Serialize;

use crate::error::{ApiError, Cause};

/// Why a live read failed.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The engine can't be reached.
    #[error("the container engine can't be reached")]
    EngineUnavailable(#[source] Cause),
    /// Anything else.
    #[error("a live read failed")]
    Failed(#[source] Cause),
}

impl From<PortError> for ApiError {
    fn from(error: PortError) -> Self {
        match error {
            PortError::EngineUnavailable(_) => Self::EngineUnavailable,
            PortError::Failed(_) => Self::internal(error),
        }
    }
}

/// Which part of a container's log to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogQuery {
    /// Only the last so many lines; `None` for all.
    pub tail: Option<u32>,
    /// Only lines from this moment on.
    pub since: Option<Timestamp>,
    /// Keep the stream open for new lines.
    pub follow: bool,
}

/// A stream of log pieces, oldest first: bytes as the agent wrote them, each line prefixed with its
/// time, in bounded pieces.
pub type LogStream = BoxStream<'static, Result<Bytes, PortError>>;

/// Reads the logs of users' containers.
#[async_trait]
pub trait ContainerLogs: Send + Sync + 'static {
    /// The log of a user's container; `None` when the user has no container now.
    ///
    /// # Errors
    /// When the engine can't be asked.
    async fn logs(&self, user: &Uid, query: LogQuery) -> Result<Option<LogStream>, PortError>;
}

/// Reads what the engine knows of users' containers.
#[async_trait]
pub trait ContainerInspect: Send + Sync + 'static {
    /// The engine's facts as JSON, without secrets; `None` when the user has no container now.
    ///
    /// # Errors
    /// When the engine can't be asked.
    async fn inspect(&self, user: &Uid) -> Result<Option<serde_json::Value>, PortError>;
}

/// One sample of a container's resource use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Usage {
    /// Processor use in percent of one core.
    pub cpu_percent: f64,
    /// Memory in use, in bytes, without the page cache.
    pub memory_bytes: u64,
    /// Memory limit in bytes.
    pub memory_limit_bytes: u64,
    /// Number of processes.
    pub pids: u64,
    /// Bytes received on all networks.
    pub network_rx_bytes: u64,
    /// Bytes sent on all networks.
    pub network_tx_bytes: u64,
}

/// Samples the resource use of users' containers.
#[async_trait]
pub trait ContainerStats: Send + Sync + 'static {
    /// One sample; `None` when the user's container does not run.
    ///
    /// # Errors
    /// When the engine can't be asked.
    async fn stats(&self, user: &Uid) -> Result<Option<Usage>, PortError>;
}

/// What leads to the next look at an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LookBy {
    /// A pass is under way, or about to begin.
    Now,
    /// The end of a back-off, or of a wait that the last pass asked for.
    Timer,
    /// The next full pass.
    Resync,
    /// Somebody who resumes it.
    Resume,
}

/// When an object is looked at next without anybody's doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NextLook {
    /// What leads to it.
    pub by: LookBy,
    /// When; `None` while nothing is planned.
    pub at: Option<Timestamp>,
}

/// What is wrong with a part of the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Since when.
    pub since: Timestamp,
    /// What, in words that anybody may read: no names of users, no addresses, no paths.
    pub message: String,
    /// Whether the service should get no requests while it is so.
    pub fatal: bool,
}

/// A part of the service, and what is wrong with it, if anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartHealth {
    /// The part, as `/readyz` names it.
    pub part: String,
    /// What is wrong with it.
    pub fault: Option<Fault>,
}

/// Knows how the parts of the service are, besides database, engine and leadership.
pub trait Health: Send + Sync + 'static {
    /// All parts, in a fixed order.
    fn parts(&self) -> Vec<PartHealth>;
}

/// Whether the engine could be reached lately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EngineState {
    /// It could.
    pub available: bool,
    /// Its version, or why it couldn't.
    pub message: String,
}

/// Knows the state of the engine without asking it.
pub trait EngineHealth: Send + Sync + 'static {
    /// The latest known state.
    fn engine(&self) -> EngineState;
    /// The agents' network as last seen, as JSON; `None` when there is none.
    fn network(&self) -> Option<serde_json::Value>;
}

/// Who runs the reconcilers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeaderState {
    /// Whether it is this process.
    pub leading: bool,
    /// The name of the leader, when known.
    pub holder: Option<String>,
}

/// Knows who runs the reconcilers.
pub trait Leadership: Send + Sync + 'static {
    /// The latest known state.
    fn leader(&self) -> LeaderState;
}

/// What an operator sees of the reconcilers of this process, and may ask of them.
#[async_trait]
pub trait Reconcilers: Send + Sync + 'static {
    /// Live numbers, one JSON object for each reconciler, with its `name`.
    fn summaries(&self) -> Vec<serde_json::Value>;
    /// What the next pass over an object would do, as JSON (`actions`, `conditions`, …): a dry run.
    /// `None`: there is no such reconciler, or nothing is desired and nothing is there.
    ///
    /// # Errors
    /// A sentence that says why the object cannot be observed now.
    async fn dry_run(
        &self,
        reconciler: &str,
        key: &str,
    ) -> Result<Option<serde_json::Value>, String>;
    /// When an object is looked at next; `None` on a standby, which does not know.
    fn next_look(&self, reconciler: &str, key: &str) -> Option<NextLook>;
    /// Asks for a pass over one object at once, back-off or not.
    fn retry(&self, reconciler: &str, key: &str);
    /// Asks one reconciler, or all, to look at everything at once.
    fn wake(&self, reconciler: Option<&str>);
}
