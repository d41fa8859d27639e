//! The verbs of an engine.

use std::time::Duration;

use async_trait::async_trait;
use engine::{
    CALL_TIMEOUT, Container, ContainerDetails, ContainerSettings, Containers, EngineError,
    EngineEvent, EngineInfo, EngineStream, Exec, ExecSettings, LABEL_OWNER, LABEL_UID, Limits,
    LogChunk, LogOptions, PING_LIMIT, Sample, Stats,
};
use futures::StreamExt;
use k8s_openapi::api::core::v1::PodTemplate;
use kube::api::ListParams;
use tokio::sync::broadcast;

use super::names::{self, Id};
use super::state::{self, PodState, Template};
use super::{KubernetesEngine, drift};

/// The oldest minor version of Kubernetes 1 whose Pods report what is read here.
const OLDEST: u32 = 33;

/// The watches of the cluster have been silent for too long.
#[derive(Debug, thiserror::Error)]
#[error("the watch of the cluster reports nothing")]
pub(crate) struct Silent;

/// A reader of events was too slow.
#[derive(Debug, thiserror::Error)]
#[error("{0} events were not read in time")]
struct Behind(u64);

impl KubernetesEngine {
    async fn version(&self) -> Result<k8s_openapi::apimachinery::pkg::version::Info, EngineError> {
        let asked = self.cluster.client.apiserver_version();
        self.cluster.call_within(PING_LIMIT, asked).await
    }

    /// The containers of one user, as they are now.
    async fn list_user(&self, owner: &str, uid: &str) -> Result<Vec<Container>, EngineError> {
        let params = ListParams::default().labels(&names::selector(owner, Some(uid)));
        let (templates, pods) = tokio::try_join!(
            self.cluster
                .read(self.cluster.templates.list_metadata(&params)),
            self.cluster.read(self.cluster.pods.list(&params)),
        )?;
        let now = self.clock.now();
        let pods: Vec<PodState> = pods.items.iter().filter_map(PodState::of).collect();
        let mut containers = Vec::with_capacity(templates.items.len());
        for template in templates.items {
            let Some(template) = Template::of(&template.metadata) else {
                continue;
            };
            let is_label = |key: &str, value: &str| {
                template.labels.get(key).map(String::as_str) == Some(value)
            };
            if !is_label(LABEL_OWNER, owner) || !is_label(LABEL_UID, uid) {
                continue;
            }
            let pod = pods.iter().find(|pod| pod.template == template.id.uid);
            let mut container = state::container(&template, pod, now);
            if let Some(pod) = pod {
                state::explain_wait(&mut container, &self.explanation(pod, now).await);
            }
            containers.push(container);
        }
        Ok(containers)
    }
}

impl KubernetesEngine {
    /// Adds the end of the last run to a template without a Pod that does not tell of that run yet: the watch has seen it, or sees it
    /// soon.
    async fn add_end(&self, template: &mut PodTemplate) -> Result<(), EngineError> {
        let Some(known) = Template::of(&template.metadata) else {
            return Ok(());
        };
        if known.started.is_none() {
            return Ok(());
        }
        let uid = &known.id.uid;
        if let Some(pod) = self.cache.pod(uid) {
            self.cache.wait_pod_gone(uid, &pod.uid).await;
        }
        let noted = known.last_run.map(|run| run.pod);
        let kept = self.cache.kept_end(uid);
        if let Some(run) = kept.filter(|run| noted.as_ref() != Some(&run.pod)) {
            let text = serde_json::to_string(&run);
            let text = text.map_err(|error| EngineError::Internal(error.to_string()))?;
            let annotations = template.metadata.annotations.get_or_insert_default();
            annotations.insert(names::LAST_RUN.to_owned(), text);
        } else if noted.is_none()
            && let Some(noted) = self.template(&known.id).await?
        {
            // It may have been noted since the template was read.
            *template = noted;
        }
        Ok(())
    }
}

#[async_trait]
impl Containers for KubernetesEngine {
    async fn ping(&self) -> Result<(), EngineError> {
        if self.cluster.has_answered() {
            return Ok(());
        }
        match self.version().await {
            Err(EngineError::Timeout(_)) => Err(EngineError::Unavailable(Box::new(Silent))),
            answer => answer.map(drop),
        }
    }

    async fn info(&self) -> Result<EngineInfo, EngineError> {
        let version = self.version().await?;
        let digits = |text: &str| -> u32 {
            let end = text
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(text.len());
            text.get(..end)
                .and_then(|text| text.parse().ok())
                .unwrap_or(0)
        };
        let is_old = digits(&version.major) < 2 && digits(&version.minor) < OLDEST;
        let too_old = is_old.then(|| {
            format!(
                "the cluster is Kubernetes {}; 1.{OLDEST} or newer is needed",
                version.git_version
            )
        });
        Ok(EngineInfo {
            version: version.git_version,
            too_old,
            // Of nodes, which the service has no right to read.
            cpus: 0,
            memory_bytes: 0,
            root_dir: None,
            limits: Limits {
                pids: false,
                ..Limits::ALL
            },
        })
    }

    async fn list(&self, owner: &str, uid: Option<&str>) -> Result<Vec<Container>, EngineError> {
        if let Some(uid) = uid {
            return self.list_user(owner, uid).await;
        }
        self.cache.wait_listed(CALL_TIMEOUT).await;
        let containers = self.cache.containers(self.clock.now());
        let mut containers =
            containers.ok_or_else(|| EngineError::Unavailable(Box::new(Silent)))?;
        containers.retain(|container| {
            container.labels.get(LABEL_OWNER).map(String::as_str) == Some(owner)
        });
        Ok(containers)
    }

    async fn inspect(&self, id_or_name: &str) -> Result<Option<ContainerDetails>, EngineError> {
        let template = match Id::parse(id_or_name) {
            Some(id) => self.template(&id).await?,
            None => self.find_named(id_or_name).await?,
        };
        let Some(template) = template else {
            return Ok(None);
        };
        let pod = self.own_pod(&template).await?;
        let now = self.clock.now();
        let events = match pod.as_ref().and_then(PodState::of) {
            Some(pod) => self.explanation(&pod, now).await,
            None => Vec::new(),
        };
        let mut template = template;
        if pod.is_none() {
            self.add_end(&mut template).await?;
        }
        Ok(state::details(&template, pod.as_ref(), &events, now))
    }

    fn drift(
        &self,
        container: &Container,
        details: Option<&ContainerDetails>,
        wanted: &ContainerSettings,
        _limits: Limits,
    ) -> Option<&'static str> {
        drift::find_drift(container, details, wanted)
    }

    async fn create(
        &self,
        name: &str,
        settings: &ContainerSettings,
    ) -> Result<String, EngineError> {
        Box::pin(self.create_container(name, settings)).await
    }

    async fn start(&self, id: &str) -> Result<(), EngineError> {
        Box::pin(self.start_container(id)).await
    }

    async fn stop(&self, id: &str, grace: Duration) -> Result<(), EngineError> {
        Box::pin(self.stop_container(id, grace)).await
    }

    async fn remove(&self, id: &str) -> Result<(), EngineError> {
        Box::pin(self.remove_container(id)).await
    }

    async fn rename(&self, id: &str, name: &str) -> Result<(), EngineError> {
        Box::pin(self.rename_container(id, name)).await
    }

    async fn logs(
        &self,
        id: &str,
        options: &LogOptions,
    ) -> Result<EngineStream<LogChunk>, EngineError> {
        Box::pin(self.read_logs(id, options)).await
    }

    async fn exec(&self, id: &str, settings: &ExecSettings) -> Result<Exec, EngineError> {
        Box::pin(self.run_program(id, settings)).await
    }

    async fn stats(&self, id: &str) -> Result<Option<Stats>, EngineError> {
        self.read_stats(id).await
    }

    async fn sample(&self, id: &str) -> Result<Option<Sample>, EngineError> {
        self.read_sample(id).await
    }

    async fn events(&self, owner: &str) -> Result<EngineStream<EngineEvent>, EngineError> {
        let changes = self.cache.subscribe_changes();
        let owner = owner.to_owned();
        let events = futures::stream::unfold(Some((changes, owner)), |reading| async move {
            let (mut changes, owner) = reading?;
            loop {
                match changes.recv().await {
                    Ok(change) if change.owner == owner => {
                        return Some((Ok(change.event), Some((changes, owner))));
                    }
                    Ok(_) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                    Err(broadcast::error::RecvError::Lagged(missed)) => {
                        let error = EngineError::Unavailable(Box::new(Behind(missed)));
                        return Some((Err(error), None));
                    }
                }
            }
        });
        Ok(events.boxed())
    }
}
