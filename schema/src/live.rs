//! What is read live, in no table: of the engine, of directories and of the reconcilers of this process.
//!
//! Drivers and the runtime give these types, the API shows them; neither sees the other.

mod container;
mod directory;
mod identity;
mod model;

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;
use serde::Serialize;
use utoipa::ToSchema;

pub use container::{
    Bind, Container, ContainerDetails, ContainerSettings, ContainerState, LABEL_DEBUG,
    LABEL_RESTART_TOKEN, LogLimits, Loss, Probe, Waiting,
};

pub use directory::{
    CheckStep, CheckedGroup, DirectoryCheck, DirectoryListing, DirectoryPerson, DirectoryUser,
    SyncPlan, SyncRename,
};
pub use identity::{PendingSignIn, ProvidedIdentity, ProviderFailure};
pub use model::{ModelFault, ModelHost, ModelQuestion, ModelVerdict};

use crate::condition::{Condition, ConditionStatus, ConditionType, Reason};
use crate::ids::{Generation, Timestamp};

/// Which part of a container's log to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogOptions {
    /// Only the last so many lines; `None` for all.
    pub tail: Option<u32>,
    /// Only lines from this moment on.
    pub since: Option<Timestamp>,
    /// Keep the stream open for new lines.
    pub follow: bool,
    /// Prefix each line with its time.
    pub timestamps: bool,
}

/// A program to run in a container, beside its main process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecSettings {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Variables as `NAME=value`, beside those of the container.
    pub environment: Vec<String>,
    /// It gets input.
    pub stdin: bool,
    /// It gets a terminal.
    pub tty: bool,
    /// Word by which its processes can be found: value of the variable `AGENTYARD_EXEC`.
    pub mark: String,
}

/// One sample of a container's resource use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
#[schema(as = ContainerUsage)]
pub struct Usage {
    /// Processor use in percent of one core.
    pub cpu_percent: f64,
    /// Memory in use, in bytes, without the page cache.
    pub memory_bytes: u64,
    /// Memory limit in bytes.
    pub memory_limit_bytes: u64,
    /// Number of processes; null where the engine does not count them.
    #[schema(required = true)]
    pub pids: Option<u64>,
    /// Bytes received on all networks; null where the engine does not count them.
    #[schema(required = true)]
    pub network_rx_bytes: Option<u64>,
    /// Bytes sent on all networks; null where the engine does not count them.
    #[schema(required = true)]
    pub network_tx_bytes: Option<u64>,
}

/// Use of one container so far, as a cheap sample reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Processor time since its start.
    pub cpu: Duration,
    /// Memory in use, in bytes, without the page cache.
    pub memory_bytes: u64,
}

/// Use of all agents at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
#[schema(as = AgentLoad)]
pub struct LoadPoint {
    /// Time of the samples.
    pub at: Timestamp,
    /// Processors in use, as a number of cores.
    #[schema(example = 1.25)]
    pub cores: f64,
    /// Memory in use, in bytes, without the page cache.
    #[schema(example = 734_003_200)]
    pub memory_bytes: u64,
    /// Running containers that have a sample.
    #[schema(example = 12)]
    pub sampled: usize,
    /// Running containers.
    #[schema(example = 12)]
    pub running: usize,
}

/// An image on the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalImage {
    /// `sha256:…`
    pub id: String,
    /// References that point at it (`name:tag`), as the engine writes them.
    pub repo_tags: Vec<String>,
    /// Repository digests (`name@sha256:…`).
    pub repo_digests: Vec<String>,
    /// Size in bytes; 0: not known.
    pub size: u64,
    /// When it was built; the beginning of time: not known.
    pub created_at: Timestamp,
    /// It is wherever containers run, as far as is known; else a start waits until it is pulled.
    pub is_local: bool,
}

/// A user name and password for a registry.
#[derive(Debug, Clone)]
pub struct RegistryCredentials {
    /// User name.
    pub username: String,
    /// Password or token.
    pub password: SecretString,
}

/// A network as the engine describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = AgentNetwork)]
pub struct Network {
    /// The engine's id.
    #[serde(skip)]
    pub id: String,
    /// Its name.
    #[schema(example = "agentyard")]
    pub name: String,
    /// Its driver, normally `bridge`.
    #[schema(example = "bridge")]
    pub driver: String,
    /// Subnet of the first address pool.
    #[schema(example = "10.88.0.0/16")]
    pub subnet: Option<String>,
    /// Gateway of the first address pool: the host's address in it.
    #[schema(example = "10.88.0.1")]
    pub gateway: Option<String>,
    /// Whether containers on it can reach each other.
    pub inter_container_traffic: bool,
    /// Digest of the rules that the engine itself keeps for it; empty: it keeps none.
    #[serde(skip)]
    pub policies: String,
    /// All labels.
    #[serde(skip)]
    pub labels: BTreeMap<String, String>,
    /// Ids of attached (running) containers.
    #[serde(skip)]
    pub containers: Vec<String>,
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

/// What the next reconciliation of an object would do.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = Plan)]
pub struct DryRun {
    /// The generation of the desired state that was read.
    pub generation: Generation,
    /// The steps.
    pub actions: Vec<String>,
    /// The conditions that it would set.
    pub conditions: Vec<PlannedCondition>,
    /// After how many milliseconds it would reconcile again; null: at the resync.
    pub requeue_after_ms: Option<u64>,
}

/// What leads to the next reconciliation of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// A pass is under way, or about to begin.
    Now,
    /// The end of a back-off, or of a wait that the last pass asked for.
    Timer,
    /// The next full pass.
    Resync,
    /// Somebody who resumes it.
    Resume,
}

/// When an object is reconciled next without anybody's doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextReconciliation {
    /// What leads to it.
    pub by: Trigger,
    /// When; `None` while nothing is planned.
    pub at: Option<Timestamp>,
}

/// Live numbers of one reconciler of this process. On a standby, which observes nothing, they are
/// zero.
#[derive(Debug, Clone, PartialEq, Default, Serialize, ToSchema)]
pub struct LiveNumbers {
    /// Whether this process runs this reconciler.
    pub leader: bool,
    /// Keys that wait for a worker.
    pub queue_depth: usize,
    /// Longest time that a key has waited for a worker, in milliseconds; null while none waits.
    pub oldest_wait_ms: Option<u64>,
    /// Keys that wait for a time: a back-off or a planned recheck.
    pub delayed: usize,
    /// Reconciliations under way.
    pub in_flight: usize,
    /// When all keys were last queued.
    pub last_resync_at: Option<Timestamp>,
    /// How long listing the keys took, in milliseconds.
    pub last_resync_ms: Option<u64>,
    /// When all keys are queued next, unless requested earlier.
    pub next_resync_at: Option<Timestamp>,
    /// Why keys could not be listed, if the last attempt failed.
    pub resync_error: Option<String>,
    /// Why changes could not be read from the database, if the last attempt failed.
    pub store_error: Option<String>,
    /// Single objects that are paused.
    pub paused_objects: usize,
    /// Notifications of changes have ended; changes are found by polling.
    pub bell_closed: bool,
    /// The engine's event stream is closed; its changes are found by the resync.
    pub events_closed: bool,
    /// The engine's event stream is degraded; its changes are found by the resync.
    pub events_lost: bool,
    /// Objects whose last reconciliation panicked.
    pub panicked: usize,
    /// Panics that were caught since the process began.
    pub panics: u64,
    /// When the last panic was caught.
    pub last_panic_at: Option<Timestamp>,
    /// Since when the reconciler makes no progress although it should; null while it does.
    pub stuck_since: Option<Timestamp>,
    /// The symptom.
    pub stuck: Option<String>,
}
