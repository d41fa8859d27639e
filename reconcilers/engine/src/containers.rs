//! Containers: their life, their output, their use.

use std::time::Duration;

use async_trait::async_trait;

use super::{
    Container, ContainerDetails, ContainerSettings, EngineError, EngineEvent, EngineInfo,
    EngineStream, Exec, ExecSettings, Limits, LogChunk, LogOptions, Sample, Stats,
};

/// The verbs of an engine for containers.
#[async_trait]
pub trait Containers: Send + Sync + 'static {
    /// Succeeds if the engine answers at all. One that has not within [`PING_LIMIT`](super::PING_LIMIT) counts as
    /// unavailable: other calls end, and new ones fail at once, until it answers a ping again.
    async fn ping(&self) -> Result<(), EngineError>;
    /// Reads version and host facts. Also the connection test.
    async fn info(&self) -> Result<EngineInfo, EngineError>;

    /// Lists containers that carry `LABEL_OWNER=owner`, stopped ones included; with `uid` only that
    /// user's. One engine call.
    async fn list(&self, owner: &str, uid: Option<&str>) -> Result<Vec<Container>, EngineError>;

    /// Reads everything about one container, by id or name, owned or not; `None` when there is none.
    async fn inspect(&self, id_or_name: &str) -> Result<Option<ContainerDetails>, EngineError>;

    /// Names the first property in which a container that was made as `wanted` is not so any more, because an administrator
    /// or another program changed it; `None` when it is as it was made. Compared are only properties that we set, as far as
    /// this engine keeps them; `details` as far as they were read, `limits` as last reported. Pure.
    fn drift(
        &self,
        container: &Container,
        details: Option<&ContainerDetails>,
        wanted: &ContainerSettings,
        limits: Limits,
    ) -> Option<&'static str>;

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

    /// One sample of a running container's resource use; `None` when it does not run, or was not measured yet.
    /// [`EngineError::Unsupported`] on an engine that measures nothing.
    async fn stats(&self, id: &str) -> Result<Option<Stats>, EngineError>;

    /// Reads what a running container has used so far, in one short call; `None` when it does not run.
    async fn sample(&self, id: &str) -> Result<Option<Sample>, EngineError>;

    /// Life-cycle events of owned containers from now on: `create`, `start`, `restart`, `die`,
    /// `oom`, `destroy`, `rename`, `pause`, `unpause`, `update`; never one that a read causes.
    /// Nothing that happens after this call has returned is missed by a reader that begins to read
    /// soon: the engine keeps its last 256 events (of all kinds and owners) for one that begins late.
    /// The stream ends or fails when the connection is lost, and on network
    /// connections from time to time by itself; its reader then lists again before trusting
    /// anything. Changes of a container's networks cause no event.
    async fn events(&self, owner: &str) -> Result<EngineStream<EngineEvent>, EngineError>;
}
