//! Kubernetes as an engine.
//!
//! A container is a core/v1 `PodTemplate`, which remembers its settings, name and last end, and while it runs the Pod that the
//! template owns. All Pods of a user have one name, so the API server itself refuses a second agent. Nothing outside one namespace
//! is read or written.

mod cache;
mod client;
mod containers;
mod convert;
mod drift;
mod exec;
mod failure;
mod homes;
mod images;
mod mirror;
mod log_lines;
mod logs;
mod names;
mod network;
mod objects;
mod options;
mod quantity;
mod read;
mod reason;
mod run;
mod state;
mod stats;
mod verbs;
mod watch;

use engine::EngineFacts;
use schema::clock::SharedClock;
use tokio::sync::{Mutex, mpsc};

pub use client::{Access, AccessError};
pub use convert::PodDefaults;
pub use options::{DataOptions, NetworkOptions, Options, PodOptions};

use cache::{Cache, Ended};
use client::Cluster;

/// Words for people.
pub const FACTS: EngineFacts = EngineFacts {
    name: "Kubernetes",
    unreachable: "check that the API server answers and accepts the service account of the service",
    inventory: Some(INVENTORY),
    removal: Some(REMOVAL),
};

/// Ends of runs that wait to be written down.
const ENDS: usize = 4096;

/// Agents as Pods of one namespace.
pub struct KubernetesEngine {
    cluster: Cluster,
    cache: Cache,
    defaults: PodDefaults,
    clock: SharedClock,
    metrics: stats::Metrics,
    ends: mpsc::Sender<Ended>,
    /// For [`follow`](Self::follow), one at a time.
    reported: Mutex<mpsc::Receiver<Ended>>,
}

impl std::fmt::Debug for KubernetesEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubernetesEngine")
            .field("namespace", &self.cluster.namespace)
            .finish_non_exhaustive()
    }
}

impl KubernetesEngine {
    /// Agents in `namespace`, without one in that of `access` itself. Connects at the first call; to be called within a Tokio
    /// runtime.
    ///
    /// # Errors
    /// The way to the cluster cannot be read, see [`AccessError`].
    pub async fn new(
        access: Access,
        namespace: Option<String>,
        defaults: PodDefaults,
        clock: SharedClock,
    ) -> Result<Self, AccessError> {
        let cluster = Cluster::open(access, namespace).await?;
        Ok(Self::in_cluster(cluster, defaults, clock))
    }

    fn in_cluster(cluster: Cluster, defaults: PodDefaults, clock: SharedClock) -> Self {
        let (ends, reported) = mpsc::channel(ENDS);
        Self {
            cluster,
            cache: Cache::default(),
            defaults,
            clock,
            metrics: stats::Metrics::default(),
            ends,
            reported: Mutex::new(reported),
        }
    }

    /// Follows the cluster for ever. Listings of all containers and events come from it: a supervised task runs it for as long as the
    /// engine is used.
    pub async fn follow(&self) {
        let templates = watch::Templates(self.cluster.watched_templates.clone());
        let pods = watch::Pods(self.cluster.watched_pods.clone());
        let note = async {
            let mut reported = self.reported.lock().await;
            while let Some(end) = reported.recv().await {
                if let Err(error) = self.note_end(&end.template, &end.run).await {
                    let why = schema::error::chain(&error);
                    tracing::warn!(
                        template = end.template,
                        why,
                        "the end of a Pod is not noted"
                    );
                }
            }
        };
        tokio::join!(
            watch::follow(templates, self),
            watch::follow(pods, self),
            note,
        );
    }
}

#[cfg(test)]
mod tests;
