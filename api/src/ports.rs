//! What handlers ask of the world while a request waits: live reads that no table can answer.
//!
//! The binary implements these traits on the drivers and on the runtime. Handlers never see a
//! driver, and never write through a port.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use schema::condition::{Condition, ConditionStatus, ConditionType, Reason};
use schema::ids::{Generation, Timestamp, Uid};
use schema::image::{ImageReference, PullLog, RunningPull};
pub use schema::live::{LiveNumbers, LocalImage, LookBy, NextLook, Usage};
use secrecy::SecretString;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{ApiError, Cause};

/// Why a live read failed.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The engine can't be reached, as the cause says itself.
    #[error(transparent)]
    EngineUnavailable(Cause),
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

/// A container as the engine reports it. Of the environment, names only: values may be secrets.
#[derive(Debug, Clone, PartialEq, Default, Serialize, ToSchema)]
pub struct ContainerDetails {
    /// The engine's id.
    pub id: String,
    /// Name on the engine.
    #[schema(example = "agentyard-alice")]
    pub name: String,
    /// `created`, `running`, `paused`, `restarting`, `removing`, `exited` or `dead`.
    #[schema(example = "running")]
    pub state: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last started.
    pub started_at: Option<Timestamp>,
    /// When it last exited.
    pub finished_at: Option<Timestamp>,
    /// Exit code of the last exit; null while it runs.
    pub exit_code: Option<i64>,
    /// Killed for using too much memory.
    pub oom_killed: bool,
    /// The engine's error when a start failed.
    pub error: String,
    /// Id of its image.
    pub image: String,
    /// Opaque; the restart that it was created for.
    pub restart_token: Option<String>,
    /// It runs the adapter's debug command.
    pub debug: bool,
    /// Command line.
    pub command: Option<Vec<String>>,
    /// Names of environment variables.
    pub environment: Vec<String>,
    /// `uid:gid`; null = the image's own user.
    pub user: Option<String>,
    /// Host name inside.
    pub hostname: Option<String>,
    /// Directories of the host that it sees.
    pub mounts: Vec<Mount>,
    /// Networks by name, with the address where there is one.
    pub networks: BTreeMap<String, Option<String>>,
    /// Processor limit in billionths of a core; 0 = none.
    pub cpu_limit_nanos: i64,
    /// Memory limit in bytes; 0 = none.
    pub memory_limit_bytes: i64,
    /// Limit of processes; 0 = none.
    pub pids_limit: i64,
    /// Capabilities it has.
    pub capabilities: Vec<String>,
    /// All labels.
    pub labels: BTreeMap<String, String>,
}

/// A directory of the host inside a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Mount {
    /// Path as the engine's host sees it.
    pub source: String,
    /// Path inside.
    pub target: String,
    /// Mounted read-only.
    pub read_only: bool,
}

/// Reads what the engine knows of users' containers.
#[async_trait]
pub trait ContainerInspect: Send + Sync + 'static {
    /// The engine's facts, without secrets; `None` when the user has no container now.
    ///
    /// # Errors
    /// When the engine can't be asked.
    async fn inspect(&self, user: &Uid) -> Result<Option<ContainerDetails>, PortError>;
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

/// A fault of a part of the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Fault {
    /// Since when.
    pub since: Timestamp,
    /// What is wrong; public: no names of users, no addresses, no paths.
    pub message: String,
    /// Whether the service should get no requests meanwhile.
    pub fatal: bool,
}

/// A part of the service, and what is wrong with it, if anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
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

/// Whether the engine was reachable at the last attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct EngineState {
    /// It was reachable.
    pub available: bool,
    /// Its version, or why it was not reachable.
    pub message: String,
}

/// Knows the state of the engine without asking it.
pub trait EngineHealth: Send + Sync + 'static {
    /// The latest known state.
    fn engine(&self) -> EngineState;
    /// The agents' network as last seen; `None` when there is none.
    fn network(&self) -> Option<AgentNetwork>;
}

/// The network that agents' containers are in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AgentNetwork {
    /// Its name.
    #[schema(example = "agentyard")]
    pub name: String,
    /// Its driver.
    #[schema(example = "bridge")]
    pub driver: String,
    /// Its addresses.
    #[schema(example = "10.88.0.0/16")]
    pub subnet: Option<String>,
    /// The host's address in it.
    #[schema(example = "10.88.0.1")]
    pub gateway: Option<String>,
    /// Whether containers reach each other.
    pub inter_container_traffic: bool,
}

/// Who runs the reconcilers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
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

/// A condition that a reconciliation would set. It has no time yet.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PlannedCondition {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ConditionType,
    /// The status it would have.
    pub status: ConditionStatus,
    /// Why, stable for programs.
    pub reason: Reason,
    /// Why, as a sentence.
    pub message: String,
    /// How to fix it; empty when there is nothing to do.
    pub remedy: &'static str,
}

impl From<Condition> for PlannedCondition {
    fn from(condition: Condition) -> Self {
        Self {
            kind: condition.kind,
            status: condition.status,
            reason: condition.reason,
            message: condition.message,
            remedy: condition.reason.remedy(),
        }
    }
}

/// What the next reconciliation of an object would do: a dry run.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Plan {
    /// The generation of the desired state that was read.
    pub generation: Generation,
    /// The steps.
    pub actions: Vec<String>,
    /// The conditions that it would set.
    pub conditions: Vec<PlannedCondition>,
    /// After how many milliseconds it would reconcile again; null: at the resync.
    pub requeue_after_ms: Option<u64>,
}

/// What an operator sees of the reconcilers of this process, and may ask of them.
#[async_trait]
pub trait Reconcilers: Send + Sync + 'static {
    /// Live numbers of each reconciler, by name.
    fn summaries(&self) -> Vec<(&'static str, LiveNumbers)>;
    /// What the next pass over an object would do.
    /// `None`: there is no such reconciler, or nothing is desired and nothing is there.
    ///
    /// # Errors
    /// A sentence that says why the object cannot be observed now.
    async fn dry_run(&self, reconciler: &str, key: &str) -> Result<Option<Plan>, String>;
    /// When an object is looked at next; `None` on a standby, which does not know.
    fn next_look(&self, reconciler: &str, key: &str) -> Option<NextLook>;
    /// Asks for a pass over one object at once, back-off or not.
    fn retry(&self, reconciler: &str, key: &str);
    /// Asks one reconciler, or all, to look at everything at once.
    fn wake(&self, reconciler: Option<&str>);
}

/// Reads which images the engine has.
#[async_trait]
pub trait Images: Send + Sync + 'static {
    /// All of them, in one question.
    ///
    /// # Errors
    /// When the engine can't be asked.
    async fn list(&self) -> Result<Vec<LocalImage>, PortError>;
}

/// Knows the pulls of this process.
pub trait Pulls: Send + Sync + 'static {
    /// The log of the pull of a full reference; `None` when there is none here, now or within the last
    /// minute.
    fn log(&self, reference: &str) -> Option<Arc<PullLog>>;
    /// Pulls that wait or run, by reference.
    fn running(&self) -> Vec<RunningPull>;
}

/// Why a registry did not tell its tags: a sentence that names the registry and says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RegistryError(pub String);

/// Asks registries which tags there are.
#[async_trait]
pub trait RegistryTags: Send + Sync + 'static {
    /// All tags of the repository of `image`, in any order.
    ///
    /// # Errors
    /// When the registry can't be asked, refuses, or answers with something else.
    async fn tags(
        &self,
        image: &ImageReference,
        credentials: Option<(String, SecretString)>,
        plain_http: bool,
    ) -> Result<Vec<String>, RegistryError>;
}
