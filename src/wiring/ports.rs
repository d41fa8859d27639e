//! The API's ports, implemented on the drivers and on the runtime.

use std::sync::Arc;
use std::time::Duration;

use api::ports::{
    ContainerDetails, ContainerInspect, ContainerLogs, ContainerStats, DryRun, EngineHealth,
    EngineState, ImageLimits, Images, LeaderState, Leadership as LeadershipPort, LiveNumbers,
    LoadPoint, LocalImage, LogOptions, LogStream, ModelHost, ModelQuestion, ModelVerdict, Models,
    Network, NextReconciliation, PortError, Pulls as PullsPort, Reconcilers, RegistryCredentials,
    RegistryError, RegistryTags, Usage,
};
use async_trait::async_trait;
use engine::{Container, ContainerState, EngineError};
use futures::StreamExt;
use reconcilers::drivers::model_probe::{self, ModelProbe};
use reconcilers::drivers::registry::{OciRegistry, Registry};
use reconcilers::runtime::leader::Leadership;
use reconcilers::runtime::summary::ReconcilerHandle;
use reconcilers::shared::load::Load;
use reconcilers::shared::pulls::Pulls;
use reconcilers::shared::view::{Connection, EngineView, Observed};
use schema::config::{HostAccess, LanAccess};
use schema::ids::Uid;
use schema::image::{ImageReference, PullLog, RunningPull};
use url::Url;

use super::health::Health;

/// Everything the API may ask of the world.
pub struct Ports {
    /// The shared view of the engine.
    pub view: Arc<EngineView>,
    /// Processors and memory of agents.
    pub load: Arc<Load>,
    /// Pulls of this process.
    pub pulls: Arc<Pulls>,
    /// Whether this process leads.
    pub leadership: Leadership,
    /// How the parts of the service are.
    pub health: Arc<Health>,
    /// The reconcilers.
    pub handles: Vec<Arc<dyn ReconcilerHandle>>,
}

pub(super) fn port_error(error: EngineError) -> PortError {
    match error {
        EngineError::Unavailable(_) | EngineError::Timeout(_) => {
            PortError::EngineUnavailable(Box::new(error))
        }
        EngineError::Unsupported(sentence) => PortError::Unsupported(sentence),
        other => PortError::Failed(Box::new(other)),
    }
}

/// How long somebody who reads live waits for the engine.
const LIVE: Duration = Duration::from_secs(5);

/// A live read: an engine that does not answer in time is as good as away.
pub(super) async fn live<T>(
    read: impl Future<Output = Result<T, PortError>>,
) -> Result<T, PortError> {
    match tokio::time::timeout(LIVE, read).await {
        Ok(result) => result,
        Err(_) => Err(PortError::EngineUnavailable(
            format!("the engine did not answer within {LIVE:?}").into(),
        )),
    }
}

impl Ports {
    /// The container that a person means: the one that runs, else the one in use.
    pub(super) async fn container(&self, user: &Uid) -> Result<Option<Container>, PortError> {
        match self.view.peek(user).await.map_err(port_error)? {
            Observed::Unavailable(_, why) => Err(PortError::EngineUnavailable(why.into())),
            Observed::Containers { containers, .. } => {
                let running = containers
                    .iter()
                    .find(|c| c.state == ContainerState::Running);
                // Sorted by name, so that the one in use comes before its replacement.
                Ok(running.or_else(|| containers.first()).cloned())
            }
        }
    }
}

#[async_trait]
impl ContainerLogs for Ports {
    async fn logs(&self, user: &Uid, options: LogOptions) -> Result<Option<LogStream>, PortError> {
        let open = async {
            let Some(container) = self.container(user).await? else {
                return Ok(None);
            };
            match self
                .view
                .compute()
                .containers
                .logs(&container.id, &options)
                .await
            {
                Ok(stream) => Ok(Some(stream)),
                Err(EngineError::NotFound(_)) => Ok(None),
                Err(error) => Err(port_error(error)),
            }
        };
        let stream = live(open).await?;
        Ok(stream.map(|stream| {
            let bytes = stream.map(|piece| match piece {
                Ok(chunk) => Ok(chunk.bytes),
                Err(error) => Err(port_error(error)),
            });
            bytes.boxed()
        }))
    }
}

#[async_trait]
impl ContainerInspect for Ports {
    async fn inspect(&self, user: &Uid) -> Result<Option<ContainerDetails>, PortError> {
        let read = async {
            let Some(container) = self.container(user).await? else {
                return Ok(None);
            };
            let details = self.view.compute().containers.inspect(&container.id).await;
            details.map_err(port_error)
        };
        live(read).await
    }
}

#[async_trait]
impl ContainerStats for Ports {
    async fn stats(&self, user: &Uid) -> Result<Option<Usage>, PortError> {
        let read = async {
            let Some(container) = self.container(user).await? else {
                return Ok(None);
            };
            let stats = self.view.compute().containers.stats(&container.id).await;
            stats.map_err(port_error)
        };
        live(read).await
    }
}

#[async_trait]
impl Images for Ports {
    fn limits(&self) -> ImageLimits {
        let facts = self.view.compute().facts;
        ImageLimits {
            inventory: facts.inventory,
            removal: facts.removal,
        }
    }

    async fn list(&self) -> Result<Vec<LocalImage>, PortError> {
        live(async {
            self.view
                .compute()
                .images
                .images()
                .await
                .map_err(port_error)
        })
        .await
    }
}

/// Providers of models, which no reconciler asks.
pub struct ModelProviders(pub ModelProbe);

#[async_trait]
impl Models for ModelProviders {
    async fn try_model(&self, question: &ModelQuestion) -> ModelVerdict {
        self.0.ask(question).await
    }

    async fn locate(&self, address: &Url) -> Vec<ModelHost> {
        model_probe::locate(address).await
    }
}

/// Registries, which no reconciler asks.
pub struct Registries(pub OciRegistry);

#[async_trait]
impl RegistryTags for Registries {
    async fn tags(
        &self,
        image: &ImageReference,
        credentials: Option<RegistryCredentials>,
        plain_http: bool,
    ) -> Result<Vec<String>, RegistryError> {
        let tags = self.0.tags(image, credentials.as_ref(), plain_http).await;
        tags.map_err(|error| {
            let cause = api::error::chain(&error);
            tracing::warn!(error = cause, "could not list the tags of a registry");
            RegistryError(error.to_string())
        })
    }
}

impl PullsPort for Ports {
    fn log(&self, reference: &str) -> Option<Arc<PullLog>> {
        self.pulls.log(reference)
    }

    fn running(&self) -> Vec<RunningPull> {
        self.pulls.list()
    }
}

impl EngineHealth for Ports {
    fn engine(&self) -> EngineState {
        match self.view.connection() {
            Connection::Up => EngineState {
                available: true,
                message: self.view.version(),
            },
            // `/readyz` shows it to everybody: addresses and paths stay in the engine's conditions.
            Connection::Unavailable(_) => EngineState {
                available: false,
                message: "the container engine cannot be reached".to_owned(),
            },
            Connection::Unusable(_, message) => EngineState {
                available: false,
                message,
            },
        }
    }

    fn cpus(&self) -> Option<u32> {
        self.view.cpus()
    }

    fn network(&self) -> Option<Network> {
        self.view.network()
    }

    fn effective_access(&self, host: HostAccess, lan: LanAccess) -> (HostAccess, LanAccess) {
        let network = &self.view.compute().network;
        network.effective_access(host, lan)
    }

    fn load(&self) -> Vec<LoadPoint> {
        self.load.history()
    }
}

impl LeadershipPort for Ports {
    fn leader(&self) -> LeaderState {
        LeaderState {
            leading: self.leadership.is_leader(),
            holder: self.health.leader(),
        }
    }
}

#[async_trait]
impl Reconcilers for Ports {
    fn summaries(&self) -> Vec<(&'static str, LiveNumbers)> {
        let summaries = self.handles.iter().map(|handle| handle.summary());
        // Counts of objects come from the database.
        summaries
            .map(|summary| (summary.name, summary.live))
            .collect()
    }

    async fn dry_run(&self, reconciler: &str, key: &str) -> Result<Option<DryRun>, String> {
        let Some(handle) = self.handles.iter().find(|h| h.name() == reconciler) else {
            return Ok(None);
        };
        handle.dry_run(key).await.map_err(|error| error.message)
    }

    fn next_reconciliation(&self, reconciler: &str, key: &str) -> Option<NextReconciliation> {
        let handle = self.handles.iter().find(|h| h.name() == reconciler)?;
        handle.next_reconciliation(key)
    }

    fn retry(&self, reconciler: &str, key: &str) {
        for handle in self.handles.iter().filter(|h| h.name() == reconciler) {
            handle.retry(key);
        }
    }

    fn wake(&self, reconciler: Option<&str>) {
        for handle in &self.handles {
            if reconciler.is_none_or(|name| name == handle.name()) {
                handle.retry_all();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use reconcilers::runtime::supervise::chain;

    use super::*;

    #[test]
    fn that_the_engine_is_away_is_said_once() {
        let said = |error| chain(&port_error(error));
        assert_eq!(
            said(EngineError::Unavailable("connection refused".into())),
            "the container engine cannot be reached: connection refused"
        );
        assert_eq!(
            said(EngineError::Timeout(std::time::Duration::from_secs(5))),
            "the container engine did not answer within 5 s"
        );
    }
}
