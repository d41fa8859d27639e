//! Docker Engine, by its HTTP API (1.41 and newer), through the client library bollard.
//!
//! Source for the verbs, fields and status codes: the Docker Engine API reference, version 1.41.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bollard::Docker;
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, EventsOptionsBuilder, ListContainersOptionsBuilder,
    RemoveContainerOptionsBuilder, RenameContainerOptionsBuilder, StatsOptionsBuilder,
    StopContainerOptionsBuilder,
};
use bytes::Bytes;
pub(super) use engine::ignore_missing;
use engine::{
    CALL_TIMEOUT, Container, ContainerDetails, ContainerSettings, Containers, EngineError,
    EngineEvent, EngineInfo, EngineStream, Exec, ExecSettings, LABEL_OWNER, LABEL_UID, Limits,
    LogChunk, LogOptions, PING_LIMIT, Sample, Stats, drift,
};
use futures::{FutureExt, Stream, StreamExt};
use schema::ids::Timestamp;
use tokio::sync::watch;

use super::connect::{Connection, DockerHost, TlsFiles};
use super::failure::{from_client, limit_time};
use super::firewall::Iptables;
use super::frames::FrameDecoder;
use super::{convert, exec, request};

/// How long a log that is read to its end may go without a piece.
const LOG_IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// The oldest API version understood.
const OLDEST_API: (u32, u32) = (1, 41);
/// The first release that speaks it.
const OLDEST: &str = "Docker 20.10";
/// How long a pull may go without any sign of progress.
pub const PULL_IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// The actions after which a container may differ from what was seen before. Without the filter
/// the engine also reports reads (`archive-path`, `exec_*`, `top`): our own probes would wake us.
const ACTIONS: [&str; 10] = [
    "create", "start", "restart", "die", "oom", "destroy", "rename", "pause", "unpause", "update",
];

/// The engine is there, and does not answer.
#[derive(Debug, thiserror::Error)]
#[error("it does not answer within {PING_LIMIT:?}")]
struct Unresponsive;

impl From<Unresponsive> for EngineError {
    fn from(why: Unresponsive) -> Self {
        Self::Unavailable(Box::new(why))
    }
}

/// A Docker Engine. Clones share its connection.
#[derive(Debug, Clone)]
pub struct DockerEngine {
    pub(super) connection: Arc<Connection>,
    /// Whether it answered the last ping.
    responsive: watch::Sender<bool>,
    pub(super) call_timeout: Duration,
    pub(super) pull_idle_timeout: Duration,
    /// The packet filter of its host, if this is it.
    pub(super) firewall: Option<Iptables>,
}

impl DockerEngine {
    /// The engine at `host`, behind TLS when certificates are given. Connects at the first call.
    pub fn new(host: DockerHost, tls: Option<TlsFiles>) -> Self {
        Self {
            connection: Arc::new(Connection::new(host, tls)),
            responsive: watch::Sender::new(true),
            call_timeout: CALL_TIMEOUT,
            pull_idle_timeout: PULL_IDLE_TIMEOUT,
            firewall: None,
        }
    }

    /// The same engine, whose host has this packet filter.
    #[must_use]
    pub fn with_firewall(mut self, firewall: Iptables) -> Self {
        self.firewall = Some(firewall);
        self
    }

    /// The same engine with other limits of time: of a call, and of a pull without progress.
    #[must_use]
    pub fn with_timeouts(mut self, call: Duration, pull_idle: Duration) -> Self {
        self.call_timeout = call;
        self.pull_idle_timeout = pull_idle;
        self
    }

    /// One call, within the usual limit of time.
    pub(super) async fn call<T, C>(&self, call: C) -> Result<T, EngineError>
    where
        C: AsyncFnOnce(&Docker) -> Result<T, bollard::errors::Error>,
    {
        self.call_within(self.call_timeout, call).await
    }

    async fn call_within<T, C>(&self, limit: Duration, call: C) -> Result<T, EngineError>
    where
        C: AsyncFnOnce(&Docker) -> Result<T, bollard::errors::Error>,
    {
        let mut responsive = self.responsive.subscribe();
        let answer = limit_time(limit, async {
            let docker = self.connection.docker().await?;
            // On the heap: the library's futures hold whole request bodies.
            Box::pin(call(docker)).await.map_err(from_client)
        });
        tokio::select! {
            biased;
            _ = responsive.wait_for(|responsive| !responsive) => Err(Unresponsive.into()),
            answer = answer => answer,
        }
    }

    /// Waits until a removal that somebody else began is through.
    async fn wait_removed(&self, id: &str) -> Result<(), EngineError> {
        limit_time(self.call_timeout, async {
            while self.inspect(id).await?.is_some() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Ok(())
        })
        .await
    }
}

#[async_trait]
impl Containers for DockerEngine {
    async fn ping(&self) -> Result<(), EngineError> {
        let answer = async {
            let docker = self.connection.docker().await?;
            Box::pin(docker.ping()).await.map_err(from_client)
        };
        let answered = tokio::time::timeout(PING_LIMIT, answer).await;
        self.responsive.send_replace(answered.is_ok());
        answered.map_err(|_| Unresponsive)?.map(drop)
    }

    async fn info(&self) -> Result<EngineInfo, EngineError> {
        let (version, info) = self
            .call(async |docker| Ok((docker.version().await?, docker.info().await?)))
            .await?;
        let api_version = version
            .api_version
            .as_deref()
            .and_then(|text| text.split_once('.'))
            .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
            .ok_or_else(|| EngineError::Internal("the engine reports no API version".to_owned()))?;
        Ok(EngineInfo {
            version: version.version.unwrap_or_default(),
            too_old: describe_too_old(api_version),
            cpus: info.ncpu.and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
            memory_bytes: info
                .mem_total
                .and_then(|n| u64::try_from(n).ok())
                .unwrap_or(0),
            root_dir: info.docker_root_dir.map(PathBuf::from),
            limits: Limits {
                memory: info.memory_limit.unwrap_or(false),
                cpu: info.cpu_cfs_quota.unwrap_or(false),
                pids: info.pids_limit.unwrap_or(false),
            },
        })
    }

    async fn list(&self, owner: &str, uid: Option<&str>) -> Result<Vec<Container>, EngineError> {
        let mut labels = vec![format!("{LABEL_OWNER}={owner}")];
        labels.extend(uid.map(|uid| format!("{LABEL_UID}={uid}")));
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&HashMap::from([("label", labels)]))
            .build();
        self.call(async |docker| docker.list_containers(Some(options)).await)
            .await?
            .into_iter()
            .map(convert::container)
            .collect()
    }

    async fn inspect(&self, id_or_name: &str) -> Result<Option<ContainerDetails>, EngineError> {
        let id = request::check_word(id_or_name)?;
        let answer = self
            .call(async |docker| docker.inspect_container(id, None).await)
            .await;
        let details = ignore_missing(answer)?.map(convert::details).transpose()?;
        // The engine also finds a container by the beginning of its id.
        Ok(details.filter(|details| {
            details.container.name == id_or_name || details.container.id.starts_with(id_or_name)
        }))
    }

    async fn create(
        &self,
        name: &str,
        settings: &ContainerSettings,
    ) -> Result<String, EngineError> {
        let name = request::check_word(name)?;
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        let body = Box::new(convert::container_body(settings));
        let answer = self
            .call(async |docker| docker.create_container(Some(options), *body).await)
            .await?;
        if !answer.warnings.is_empty() {
            tracing::warn!(container = name, warnings = ?answer.warnings, "the engine made a container with warnings");
        }
        Ok(answer.id)
    }

    async fn start(&self, id: &str) -> Result<(), EngineError> {
        let id = request::check_word(id)?;
        self.call(async |docker| docker.start_container(id, None).await)
            .await
    }

    async fn stop(&self, id: &str, grace: Duration) -> Result<(), EngineError> {
        let id = request::check_word(id)?;
        // Whole seconds, rounded up: 0 would kill at once.
        let seconds = grace.as_secs() + u64::from(grace.subsec_nanos() > 0);
        let options = StopContainerOptionsBuilder::default()
            .t(i32::try_from(seconds).unwrap_or(i32::MAX))
            .build();
        let stopped = self
            .call_within(grace + self.call_timeout, async |docker| {
                docker.stop_container(id, Some(options)).await
            })
            .await;
        ignore_missing(stopped).map(|_| ())
    }

    async fn remove(&self, id: &str) -> Result<(), EngineError> {
        let id = request::check_word(id)?;
        let options = RemoveContainerOptionsBuilder::default()
            .force(true)
            .v(true)
            .build();
        let removed = self
            .call(async |docker| docker.remove_container(id, Some(options)).await)
            .await;
        match removed {
            // "removal of container … is already in progress"
            Err(EngineError::Conflict(text)) if text.contains("in progress") => {
                self.wait_removed(id).await
            }
            removed => ignore_missing(removed).map(|_| ()),
        }
    }

    async fn rename(&self, id: &str, name: &str) -> Result<(), EngineError> {
        let id = request::check_word(id)?;
        let options = RenameContainerOptionsBuilder::default()
            .name(request::check_word(name)?)
            .build();
        let renamed = self
            .call(async |docker| docker.rename_container(id, options).await)
            .await;
        match renamed {
            // "Renaming a container with the same name as its current name", or the name is its own.
            Err(error @ (EngineError::Refused(_) | EngineError::NameTaken(_))) => {
                match self.inspect(id).await? {
                    Some(details) if details.container.name == name => Ok(()),
                    _ => Err(error),
                }
            }
            renamed => renamed,
        }
    }

    async fn logs(
        &self,
        id: &str,
        options: &LogOptions,
    ) -> Result<EngineStream<LogChunk>, EngineError> {
        let id = request::check_word(id)?;
        // A stream fails late, with its first item; a missing container is reported at once.
        self.no_such_file(id).await?;
        let docker = limit_time(self.call_timeout, self.connection.docker()).await?;
        let bytes = request::raw_request(docker, id, &request::log_query(id, options));
        let idle = (!options.follow).then_some(LOG_IDLE_TIMEOUT);
        Ok(log_pieces(bytes, idle).boxed())
    }

    async fn exec(&self, id: &str, settings: &ExecSettings) -> Result<Exec, EngineError> {
        let id = request::check_word(id)?;
        let docker = limit_time(self.call_timeout, self.connection.docker()).await?;
        let version = docker.client_version();
        let creating = exec::create_exec(docker.clone(), id.to_owned(), exec::config(settings));
        let created = limit_time(self.call_timeout, creating).await?;
        let version = format!("v{}.{}", version.major_version, version.minor_version);
        let start = exec::start_exec(
            self.connection.address(),
            version,
            created.clone(),
            settings.tty,
        );
        let (input, output) = limit_time(self.call_timeout, start).await?;
        Ok(Exec {
            input,
            output,
            control: Arc::new(exec::Program::new(self.clone(), created)),
        })
    }

    async fn stats(&self, id: &str) -> Result<Option<Stats>, EngineError> {
        let id = request::check_word(id)?;
        // Not "one shot": the engine then takes a second sample a second later, and only two of
        // them make a rate.
        let options = StatsOptionsBuilder::default()
            .stream(false)
            .one_shot(false)
            .build();
        let sample = self
            .call(async |docker| {
                let mut samples = docker.stats(id, Some(options)).boxed();
                samples.next().await.transpose()
            })
            .await?;
        Ok(sample.and_then(convert::stats))
    }

    async fn sample(&self, id: &str) -> Result<Option<Sample>, EngineError> {
        let id = request::check_word(id)?;
        let options = StatsOptionsBuilder::default()
            .stream(false)
            .one_shot(true)
            .build();
        let answer = self
            .call(async |docker| {
                let mut samples = docker.stats(id, Some(options)).boxed();
                samples.next().await.transpose()
            })
            .await;
        Ok(ignore_missing(answer)?
            .flatten()
            .as_ref()
            .and_then(convert::sample))
    }

    async fn events(&self, owner: &str) -> Result<EngineStream<EngineEvent>, EngineError> {
        // The request is sent when the stream is first read, and the engine subscribes a moment
        // after it has answered. Asking for everything since now, by the engine's own clock, closes
        // both gaps: the engine keeps recent events and sends them again.
        let info = self.call(async |docker| docker.info().await).await?;
        let since = info
            .system_time
            .as_deref()
            .and_then(Timestamp::parse_rfc3339)
            .ok_or_else(|| EngineError::Internal("the engine reports no time".to_owned()))?;
        let options = EventsOptionsBuilder::default()
            .since(&request::seconds(since))
            .filters(&HashMap::from([
                ("type", vec!["container".to_owned()]),
                ("label", vec![format!("{LABEL_OWNER}={owner}")]),
                ("event", ACTIONS.map(str::to_owned).to_vec()),
            ]))
            .build();
        let docker = limit_time(self.call_timeout, self.connection.docker()).await?;
        let events = docker
            .events(Some(options))
            .filter_map(|message| std::future::ready(event(message).transpose()));
        Ok(match self.connection.event_stream_age() {
            Some(age) => events.take_until(tokio::time::sleep(age).boxed()).boxed(),
            None => events.boxed(),
        })
    }

    fn drift(
        &self,
        container: &Container,
        details: Option<&ContainerDetails>,
        wanted: &ContainerSettings,
        limits: Limits,
    ) -> Option<&'static str> {
        drift::compare(container, details, wanted, limits)
    }
}

/// Says which version is needed; `None` when this one is new enough.
fn describe_too_old(version: (u32, u32)) -> Option<String> {
    let ((major, minor), (least_major, least_minor)) = (version, OLDEST_API);
    (version < OLDEST_API).then(|| {
        format!(
            "the engine speaks API {major}.{minor}; {least_major}.{least_minor} or newer is needed ({OLDEST})"
        )
    })
}

/// An event of an owned container; one without a uid concerns nobody.
fn event(
    message: Result<bollard::models::EventMessage, bollard::errors::Error>,
) -> Result<Option<EngineEvent>, EngineError> {
    let message = message.map_err(from_client)?;
    let attributes = message.actor.and_then(|actor| actor.attributes);
    let uid = attributes.and_then(|mut attributes| attributes.remove(LABEL_UID));
    Ok(uid.map(|uid| EngineEvent {
        uid,
        action: message.action.unwrap_or_default(),
    }))
}

/// Cuts raw log bytes into pieces; ends after the first error, or when nothing came for `idle`.
fn log_pieces(
    bytes: impl Stream<Item = Result<Bytes, bollard::errors::Error>> + Unpin + Send + 'static,
    idle: Option<Duration>,
) -> impl Stream<Item = Result<LogChunk, EngineError>> + Send {
    let bytes = bytes.map(|part| part.map_err(from_client));
    pieces(bytes, FrameDecoder::default(), idle)
}

/// The same with a decoder that knows how the bytes are framed.
pub(super) fn pieces(
    bytes: impl Stream<Item = Result<Bytes, EngineError>> + Unpin + Send + 'static,
    decoder: FrameDecoder,
    idle: Option<Duration>,
) -> impl Stream<Item = Result<LogChunk, EngineError>> + Send {
    let reader = Some((bytes, decoder));
    futures::stream::unfold(reader, move |reader| async move {
        let (mut bytes, mut decoder) = reader?;
        let next = match idle {
            Some(limit) => match tokio::time::timeout(limit, bytes.next()).await {
                Ok(next) => next,
                Err(_) => return Some((vec![Err(EngineError::Timeout(limit))], None)),
            },
            None => bytes.next().await,
        };
        let mut pieces = Vec::new();
        let (outcome, more) = match next {
            Some(Ok(part)) => (decoder.feed(part, &mut pieces), true),
            Some(Err(error)) => (Err(error), false),
            None => (decoder.finish(&mut pieces), false),
        };
        let mut items: Vec<_> = pieces.into_iter().map(Ok).collect();
        let more = more && outcome.is_ok();
        items.extend(outcome.err().map(Err));
        Some((items, more.then_some((bytes, decoder))))
    })
    .map(futures::stream::iter)
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_engine_is_refused_with_the_needed_version() {
        let needed = "the engine speaks API 1.40; 1.41 or newer is needed (Docker 20.10)";
        assert_eq!(describe_too_old((1, 40)).as_deref(), Some(needed));
        for version in [(1, 41), (1, 52), (2, 0)] {
            assert_eq!(describe_too_old(version), None, "{version:?}");
        }
    }
}
