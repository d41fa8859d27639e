//! Kubernetes as an engine.
//!
//! A container is a core/v1 `PodTemplate`, which remembers its settings, name and last end, and while it runs the Pod that the
//! template owns. All Pods of a user have one name, so the API server itself refuses a second agent. Nothing outside one namespace
//! is read or written.

mod address;
mod cache;
mod checked;
mod client;
mod closed;
mod compute;
mod containers;
mod convert;
mod drift;
mod exec;
mod failure;
mod homes;
mod images;
mod left_over;
mod log_lines;
mod logs;
mod mirror;
mod name_servers;
mod names;
mod network;
mod objects;
mod options;
mod options_file;
mod placing;
pub mod pod;
mod pods;
mod policies;
mod proof;
mod puller;
mod pulling;
mod quantity;
mod read;
mod reason;
mod references;
mod rights;
mod run;
mod state;
mod stats;
mod verbs;
mod watch;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use engine::{Digests, EngineFacts};
use schema::clock::SharedClock;
use tokio::sync::{Mutex, mpsc};

pub use client::AccessError;
pub use compute::compute;
pub use options::{DataOptions, NetworkOptions, Options, PodOptions};
pub use options_file::OptionsError;
pub use rights::Rights;

use cache::{Cache, Ended};
use client::{Access, Cluster};
use references::ImageSource;

/// Images that a listing leaves out.
const INVENTORY: &str = "images of agents, and those pulled since the service started; other images of the nodes are not visible";
/// Says how images are removed.
const REMOVAL: &str =
    "the nodes' kubelets remove images themselves, once no Pod has them and the disk fills up";
/// Words for people.
pub const FACTS: EngineFacts = EngineFacts {
    name: "Kubernetes",
    unreachable: "check that the API server answers and accepts the service account of the service",
    inventory: Some(INVENTORY),
    removal: Some(REMOVAL),
    foreign_network: None,
};

/// Ends of runs that wait to be written down.
const ENDS: usize = 4096;

/// Agents as Pods of one namespace.
pub struct KubernetesEngine {
    cluster: Arc<Cluster>,
    cache: Cache,
    options: Options,
    owner: String,
    images: Arc<ImageSource>,
    clock: SharedClock,
    /// Agents may reach everything, so none waits until something is closed.
    is_open: AtomicBool,
    metrics: stats::Metrics,
    ends: mpsc::Sender<Ended>,
    /// For [`follow`](Self::follow), one at a time.
    reported: Mutex<mpsc::Receiver<Ended>>,
    /// Pulls that were called off, whose Pods are to be removed; the same.
    called_off: Mutex<mpsc::UnboundedReceiver<String>>,
}

impl std::fmt::Debug for KubernetesEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubernetesEngine")
            .field("namespace", &self.cluster.namespace)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

impl KubernetesEngine {
    /// Agents of the instance `owner`. Connects at the first call; to be called within a Tokio runtime.
    ///
    /// # Errors
    /// The way to the cluster cannot be read, see [`AccessError`].
    pub async fn new(
        options: Options,
        owner: &str,
        clock: SharedClock,
    ) -> Result<Self, AccessError> {
        let access = match options.kubeconfig.clone() {
            Some(path) => Access::Kubeconfig(path),
            None => Access::InCluster,
        };
        let mut options = options;
        if options.network.name_servers.is_empty() {
            options.network.name_servers = name_servers::read_servers().await;
        }
        let cluster = Cluster::from_access(access, options.namespace.clone()).await?;
        Ok(Self::in_cluster(cluster, options, owner, clock))
    }

    /// This engine, which asks registries what references mean. Without it references stand for themselves.
    #[must_use]
    pub fn with_registries(mut self, digests: Arc<dyn Digests>) -> Self {
        let (images, called_off) = ImageSource::with_digests(&self.owner, digests);
        self.images = Arc::new(images);
        self.called_off = Mutex::new(called_off);
        self
    }

    fn in_cluster(cluster: Cluster, options: Options, owner: &str, clock: SharedClock) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "ends of runs; a writer waits for a place"
        )]
        let (ends, reported) = mpsc::channel(ENDS);
        let (images, called_off) = ImageSource::new(owner);
        Self {
            cluster: Arc::new(cluster),
            cache: Cache::default(),
            options,
            owner: owner.to_owned(),
            images: Arc::new(images),
            called_off: Mutex::new(called_off),
            clock,
            is_open: AtomicBool::new(false),
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
                match self.note_end(&end.template, &end.run).await {
                    Ok(()) => self.cache.drop_end(&end.template),
                    Err(error) => {
                        let why = schema::error::chain(&error);
                        tracing::warn!(
                            template = end.template,
                            why,
                            "the end of a Pod is not noted"
                        );
                    }
                }
            }
        };
        tokio::join!(
            // On the heap: they hold whole objects.
            Box::pin(watch::follow(templates, self)),
            Box::pin(watch::follow(pods, self)),
            Box::pin(note),
            Box::pin(self.remove_pullers_called_off()),
            Box::pin(self.remove_left_over_pods()),
        );
    }
}

#[cfg(test)]
mod tests;
