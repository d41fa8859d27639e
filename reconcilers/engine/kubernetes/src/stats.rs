//! Use of processors and memory, where the cluster has the API `metrics.k8s.io`.
//!
//! It tells rates of the last seconds, of all Pods in one answer, so one answer serves all containers for a while; what a container
//! has used so far is added up from the rates.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::{EngineError, Sample, Stats};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::ListParams;
use kube::core::Request;
use schema::ids::Timestamp;
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::KubernetesEngine;
use super::convert::CONTAINER;
use super::names::{Id, SELECTOR};
use super::quantity;
use super::reason::Progress;
use super::rights::NO_METRICS;
use super::state::{PodState, moment};

/// Age of an answer that is not used any more. The cluster measures each quarter of a minute.
const AGE: Duration = Duration::from_secs(10);
/// Longest time that one measurement is taken to last.
const LONGEST: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, Deserialize)]
struct List {
    items: Vec<PodMetrics>,
}

/// Use of one Pod.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PodMetrics {
    metadata: ObjectMeta,
    timestamp: Option<Time>,
    containers: Vec<ContainerMetrics>,
}

#[derive(Debug, Clone, Deserialize)]
struct ContainerMetrics {
    name: String,
    usage: HashMap<String, Quantity>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Measured {
    at: Timestamp,
    nano_cores: i64,
    memory_bytes: u64,
    /// Processor time since the first measurement.
    cpu: Duration,
}

#[derive(Debug, Default)]
struct Answers {
    asked: Option<Instant>,
    by_pod: HashMap<String, Measured>,
}

/// The last answers.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    answers: Mutex<Answers>,
    absent: AtomicBool,
}

impl KubernetesEngine {
    /// The Pod of a container that runs.
    async fn running_pod(&self, id: &str) -> Result<Option<Pod>, EngineError> {
        let (_, template) = self.known_template(id).await?;
        let pod = self.own_pod(&template).await?;
        let runs = |pod: &Pod| PodState::of(pod).is_some_and(|it| it.progress == Progress::Running);
        Ok(pod.filter(runs))
    }

    pub(crate) async fn read_stats(&self, id: &str) -> Result<Option<Stats>, EngineError> {
        let Some(pod) = self.running_pod(id).await? else {
            return Ok(None);
        };
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let limit = pod.spec.as_ref().and_then(super::read::agent);
        let limit =
            limit.and_then(|agent| agent.resources.as_ref()?.limits.as_ref()?.get("memory"));
        let limit = limit.and_then(quantity::units).unwrap_or(0);
        let measured = self.measure_pod(name).await?;
        if self.metrics.absent.load(Ordering::Relaxed) {
            return Err(EngineError::Unsupported(NO_METRICS));
        }
        Ok(measured.map(|measured| Stats {
            cpu_percent: percent(measured.nano_cores),
            memory_bytes: measured.memory_bytes,
            memory_limit_bytes: u64::try_from(limit).unwrap_or(0),
            pids: None,
            network_rx_bytes: None,
            network_tx_bytes: None,
        }))
    }

    /// Asks the cluster about nothing but the use of all: all agents are sampled again and again.
    pub(crate) async fn read_sample(&self, id: &str) -> Result<Option<Sample>, EngineError> {
        let pod = Id::parse(id).and_then(|id| self.cache.pod(&id.uid));
        let Some(pod) = pod.filter(|pod| pod.progress == Progress::Running) else {
            return Ok(None);
        };
        let measured = self.measure_pod(&pod.name).await?;
        Ok(measured.map(|measured| Sample {
            cpu: measured.cpu,
            memory_bytes: measured.memory_bytes,
        }))
    }

    /// Use that was measured of the Pod of this name.
    async fn measure_pod(&self, name: &str) -> Result<Option<Measured>, EngineError> {
        let mut answers = self.metrics.answers.lock().await;
        if answers.asked.is_none_or(|at| at.elapsed() >= AGE) {
            match self.ask_metrics().await {
                Ok(listed) => {
                    answers.by_pod = add_answer(&answers.by_pod, listed);
                    self.metrics.absent.store(false, Ordering::Relaxed);
                }
                // No metrics server, or no right to ask it.
                Err(EngineError::NotFound(why) | EngineError::Forbidden(why)) => {
                    answers.by_pod.clear();
                    if !self.metrics.absent.swap(true, Ordering::Relaxed) {
                        tracing::info!(why, "{NO_METRICS}");
                    }
                }
                Err(error) => return Err(error),
            }
            answers.asked = Some(Instant::now());
        }
        Ok(answers.by_pod.get(name).copied())
    }

    pub(crate) async fn ask_metrics(&self) -> Result<Vec<PodMetrics>, EngineError> {
        let path = format!(
            "/apis/metrics.k8s.io/v1beta1/namespaces/{}/pods",
            self.cluster.namespace
        );
        let params = ListParams::default().labels(SELECTOR);
        let request = Request::new(path)
            .list(&params)
            .map_err(kube::Error::BuildRequest);
        let call = async {
            let list: List = self.cluster.client.request(request?).await?;
            Ok(list.items)
        };
        self.cluster.read(call).await
    }
}

/// Adds a new answer to the last one.
fn add_answer(
    known: &HashMap<String, Measured>,
    listed: Vec<PodMetrics>,
) -> HashMap<String, Measured> {
    let mut found = HashMap::with_capacity(listed.len());
    for pod in listed {
        let agent = pod.containers.iter().find(|it| it.name == CONTAINER);
        let (Some(name), Some(at), Some(agent)) = (pod.metadata.name, pod.timestamp, agent) else {
            continue;
        };
        let nano_cores = agent
            .usage
            .get("cpu")
            .and_then(quantity::nanos)
            .unwrap_or(0);
        let memory = agent
            .usage
            .get("memory")
            .and_then(quantity::units)
            .unwrap_or(0);
        let at = moment(&at);
        let (before, cpu) = known
            .get(&name)
            .map_or((at, Duration::ZERO), |known| (known.at, known.cpu));
        let lasted = at.since(before).min(LONGEST);
        found.insert(
            name,
            Measured {
                at,
                nano_cores,
                memory_bytes: u64::try_from(memory).unwrap_or(0),
                cpu: cpu + used_time(nano_cores, lasted),
            },
        );
    }
    found
}

/// Processor time at a rate.
fn used_time(nano_cores: i64, lasted: Duration) -> Duration {
    let nanos = i128::from(nano_cores) * i128::try_from(lasted.as_millis()).unwrap_or(0) / 1000;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

#[allow(clippy::cast_precision_loss)]
fn percent(nano_cores: i64) -> f64 {
    nano_cores as f64 / 1e7
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(at: &str, cpu: &str) -> Vec<PodMetrics> {
        let list = json!({ "items": [{
            "metadata": { "name": "agent-u1" },
            "timestamp": at,
            "window": "15s",
            "containers": [
                { "name": "sidecar", "usage": { "cpu": "9", "memory": "9Gi" } },
                { "name": "agent", "usage": { "cpu": cpu, "memory": "12Mi" } },
            ],
        }]});
        serde_json::from_value::<List>(list).unwrap().items
    }

    #[test]
    fn use_is_the_agents_and_adds_up() {
        let first = add_answer(&HashMap::new(), answer("2026-01-01T00:00:00Z", "250m"));
        let measured = first["agent-u1"];
        assert_eq!(
            (measured.nano_cores, measured.memory_bytes),
            (250_000_000, 12 << 20)
        );
        assert_eq!(measured.cpu, Duration::ZERO);
        assert!((percent(measured.nano_cores) - 25.0).abs() < 1e-9);
        let second = add_answer(&first, answer("2026-01-01T00:00:20Z", "500m"));
        assert_eq!(second["agent-u1"].cpu, Duration::from_secs(10));
        let same = add_answer(&second, answer("2026-01-01T00:00:20Z", "500m"));
        assert_eq!(same["agent-u1"].cpu, Duration::from_secs(10));
    }
}
