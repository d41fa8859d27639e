//! The container engine as reconcilers see it.
//!
//! [`ContainerEngine`] is the whole surface: a few idempotent verbs over plain data. No type of an
//! engine's client library appears here, so a second kind of engine is a second
//! implementation of this trait that passes the same contract suite.
//!
//! Contract, for every implementation:
//! - *Already so is success*: starting what runs, stopping what stands, removing what is gone.
//! - *Unknown is not empty*: a listing that could not be read is an error, never an empty list.
//! - Every call may be cancelled at any await and repeated.
//! - [`EngineError::Unavailable`] means the engine could not be reached; nothing is known of the world.

mod firewall;
mod metered;
pub mod own_address;
mod reference;
mod subnet;

pub use firewall::{FirewallError, Found, HostFirewall, HostRules};
pub use metered::MeteredEngine;
pub use reference::tagged;
pub use subnet::parse_subnet;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::Stream;
pub use schema::image::PullEvent;
pub use schema::live::{
    Bind, Container, ContainerDetails, ContainerSettings, ContainerState, ExecSettings,
    LABEL_RESTART_TOKEN, LocalImage as Image, LogLimits, LogOptions, Network, RegistryCredentials,
    Sample, Usage as Stats,
};
use tokio::io::AsyncWrite;

/// How long an engine may take to answer before it counts as unavailable.
pub const PING_LIMIT: Duration = Duration::from_secs(8);
/// How long a call may take.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Label: the instance of Agentyard that owns the object.
pub const LABEL_OWNER: &str = "io.agentyard.owner";
/// Label: the uid of the user.
pub const LABEL_UID: &str = "io.agentyard.uid";
/// Label: the generation for which the object was made.
pub const LABEL_GENERATION: &str = "io.agentyard.generation";
/// Label: the digest of the settings the object was made with.
pub const LABEL_SPEC_DIGEST: &str = "io.agentyard.spec-digest";

/// A stream of driver items, boxed.
pub type EngineStream<T> = Pin<Box<dyn Stream<Item = Result<T, EngineError>> + Send>>;

/// The verbs of a container engine.
#[async_trait]
pub trait ContainerEngine: Send + Sync + 'static {
    /// Whether the engine answers at all. One that has not within [`PING_LIMIT`] counts as unavailable: other calls end, and
    /// new ones fail at once, until it answers a ping again.
    async fn ping(&self) -> Result<(), EngineError>;
    /// Reads version and host facts. Also the connection test.
    async fn info(&self) -> Result<EngineInfo, EngineError>;

    /// Lists containers that carry `LABEL_OWNER=owner`, stopped ones included; with `uid` only that
    /// user's. One engine call.
    async fn list(&self, owner: &str, uid: Option<&str>) -> Result<Vec<Container>, EngineError>;

    /// Reads everything about one container, by id or name, owned or not; `None` when there is none.
    async fn inspect(&self, id_or_name: &str) -> Result<Option<ContainerDetails>, EngineError>;

    /// Creates a container (not started) and returns its id. A taken name is [`EngineError::NameTaken`].
    async fn create(&self, name: &str, settings: &ContainerSettings)
    -> Result<String, EngineError>;

    /// Starts a container; success when it already runs, [`EngineError::Conflict`] when it is paused.
    ///
    /// Because containers are made with an init process, a program that does not exist is no
    /// failed start: the container runs and exits with code 127.
    async fn start(&self, id: &str) -> Result<(), EngineError>;

    /// Asks a container to stop and kills it after `grace` (whole seconds, rounded up); success
    /// when it stands or is gone. Works on a paused container too.
    async fn stop(&self, id: &str, grace: Duration) -> Result<(), EngineError>;

    /// Removes a container and its anonymous volumes, killing it when it runs; success when it is gone.
    async fn remove(&self, id: &str) -> Result<(), EngineError>;

    /// Gives a container another name; success when it already bears it.
    async fn rename(&self, id: &str, name: &str) -> Result<(), EngineError>;

    /// Reads a network by name; `None` when there is none.
    async fn network(&self, name: &str) -> Result<Option<Network>, EngineError>;

    /// Creates a bridge network. A taken name is [`EngineError::NameTaken`].
    async fn create_network(&self, settings: &NetworkSettings) -> Result<(), EngineError>;

    /// Removes a network; success when it is gone; [`EngineError::Conflict`] while containers use it.
    async fn remove_network(&self, id: &str) -> Result<(), EngineError>;

    /// Reads an image by reference or id; `None` when the engine has none.
    async fn image(&self, reference: &str) -> Result<Option<Image>, EngineError>;

    /// Lists all images, whoever put them there. One engine call.
    async fn images(&self) -> Result<Vec<Image>, EngineError>;

    /// Takes a reference off its image, and removes the image when that was the last one; or removes
    /// an image by id. Success when it is gone. Never by force: [`EngineError::Conflict`] while a
    /// container, running or not, is made from the image that would go, and for the id of an image
    /// with several tags.
    async fn remove_image(&self, reference_or_id: &str) -> Result<(), EngineError>;

    /// Pulls an image, as long as the stream is read: dropping it calls the pull off. The first error,
    /// of the registry or of the connection, is the last item; a stream that ends without one has
    /// pulled, and the caller asks for the [`image`](Self::image).
    async fn pull(
        &self,
        reference: &str,
        credentials: Option<&RegistryCredentials>,
    ) -> Result<EngineStream<PullEvent>, EngineError>;

    /// Reads at most `limit` bytes of one regular file inside a container that need not run; `None`
    /// when there is none.
    async fn read_file(
        &self,
        id: &str,
        path: &str,
        limit: usize,
    ) -> Result<Option<Vec<u8>>, EngineError>;

    /// A directory of a container that need not run, with everything in it, as a tar stream whose entries begin with the
    /// directory's own name; `None` when nothing is there. The stream is as long as the directory is large.
    async fn read_tree(
        &self,
        id: &str,
        path: &str,
    ) -> Result<Option<EngineStream<Bytes>>, EngineError>;

    /// Log lines of a container, oldest first, in bounded pieces. Without `follow` the stream ends
    /// with the log; with it, with the process.
    async fn logs(
        &self,
        id: &str,
        options: &LogOptions,
    ) -> Result<EngineStream<LogChunk>, EngineError>;

    /// Runs a program in a running container, beside its main process. A program that does not exist is no failure: its output says
    /// so, and it ends with code 126 or 127. Dropping the result does not end it.
    async fn exec(&self, id: &str, settings: &ExecSettings) -> Result<Exec, EngineError>;

    /// Gives the terminal of a program another size.
    async fn resize_exec(&self, exec: &str, columns: u16, rows: u16) -> Result<(), EngineError>;

    /// The code with which a program has ended; `None` while it runs.
    async fn exec_exit_code(&self, exec: &str) -> Result<Option<i64>, EngineError>;

    /// One sample of a running container's resource use; `None` when it does not run.
    async fn stats(&self, id: &str) -> Result<Option<Stats>, EngineError>;

    /// Reads what a running container has used so far, in one short call; `None` when it does not run.
    async fn sample(&self, id: &str) -> Result<Option<Sample>, EngineError>;

    /// Life-cycle events of owned containers from now on: `create`, `start`, `restart`, `die`,
    /// `oom`, `destroy`, `rename`, `pause`, `unpause`, `update`; never one that a read causes.
    /// Nothing that happens after this call has returned is missed by a reader that begins to read
    /// soon: the engine keeps its last 256 events (of all kinds and owners) for one that begins late.
    /// The stream ends or fails when the connection is lost, and on network
    /// connections from time to time by itself; whoever reads it then lists again before trusting
    /// anything. Changes of a container's networks cause no event.
    async fn events(&self, owner: &str) -> Result<EngineStream<EngineEvent>, EngineError>;
}

/// Version and host facts of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineInfo {
    /// The engine's own version, for people.
    pub version: String,
    /// The API version the engine speaks, as (major, minor).
    pub api_version: (u32, u32),
    /// Number of processors of the engine's host.
    pub cpus: u32,
    /// Memory of the engine's host in bytes.
    pub memory_bytes: u64,
    /// Which limits take effect there.
    pub limits: Limits,
}

/// Which limits the engine's host can enforce. The engine drops one that it cannot with a warning, and `inspect` reads
/// 0 for it for ever, which is no drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory.
    pub memory: bool,
    /// Processor time.
    pub cpu: bool,
    /// Number of processes.
    pub pids: bool,
}

impl Limits {
    /// All of them.
    pub const ALL: Self = Self {
        memory: true,
        cpu: true,
        pids: true,
    };

    /// Settings without the limits that cannot be enforced.
    pub fn enforceable(self, settings: &ContainerSettings) -> ContainerSettings {
        let mut settings = settings.clone();
        if !self.memory {
            settings.memory_bytes = 0;
        }
        if !self.cpu {
            settings.nano_cpus = 0;
        }
        if !self.pids {
            settings.pids_limit = 0;
        }
        settings
    }
}

/// A network to create: bridge driver, no traffic between its containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkSettings {
    /// Name.
    pub name: String,
    /// Subnet in CIDR form; the engine allocates all addresses, the gateway gets the first.
    pub subnet: String,
    /// Labels. Never a secret.
    pub labels: BTreeMap<String, String>,
}

/// A piece of log text; a line may be spread over several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogChunk {
    /// Standard error rather than standard output.
    pub stderr: bool,
    /// The bytes as the agent wrote them; at most 64 KiB.
    pub bytes: bytes::Bytes,
}

/// A program that runs in a container.
pub struct Exec {
    /// Its id.
    pub id: String,
    /// Its input; shutting it down is the end of it.
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
    /// Its output, in bounded pieces; ends with it. All of it is standard output if it has a terminal.
    pub output: EngineStream<LogChunk>,
}

/// Something happened to an owned container: observe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineEvent {
    /// The uid label of the container.
    pub uid: String,
    /// The engine's word for what happened, for logs only.
    pub action: String,
}

/// What an engine call can fail with.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The engine cannot be reached, or went away during the call.
    #[error("the container engine cannot be reached")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The call took longer than its limit.
    #[error("the container engine did not answer within {} s", .0.as_secs())]
    Timeout(Duration),
    /// The object does not exist.
    #[error("the engine has no such object: {0}")]
    NotFound(String),
    /// The name belongs to another object.
    #[error("the name is already in use: {0}")]
    NameTaken(String),
    /// The object is in a state that forbids this, or somebody else changed it meanwhile.
    #[error("the engine reports a conflict: {0}")]
    Conflict(String),
    /// The engine refused the request as it is; repeating it changes nothing.
    #[error("the engine refused the request: {0}")]
    Refused(String),
    /// No address is left in the network.
    #[error("the agent network has no free address")]
    NetworkFull,
    /// No space left where the engine or the data directory stores things.
    #[error("no space left: {0}")]
    StorageFull(String),
    /// A pull failed, in the registry's or engine's words.
    #[error("the image could not be pulled: {0}")]
    PullFailed(String),
    /// A pull failed for a reason that trying again does not mend: the registry has no such image, or
    /// does not give it to us.
    #[error("the image could not be pulled: {0}")]
    PullRefused(String),
    /// The engine failed by itself.
    #[error("the engine failed: {0}")]
    Internal(String),
}
