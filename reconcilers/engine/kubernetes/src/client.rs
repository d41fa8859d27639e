//! Connections to the API server.
//!
//! The client library has no limit of calls: writes take turns here. It repeats what the server refuses for the moment, as late as
//! the server asks for.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use engine::{CALL_TIMEOUT, EngineError};
use http::{Request, Response};
use k8s_openapi::api::core::v1::{Event, Pod, PodTemplate};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::client::retry::{InvalidBackoff, RetryPolicy};
use kube::client::{Body, ClientBuilder};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tower::buffer::BufferLayer;
use tower::retry::RetryLayer;
use tower::{BoxError, Service};

use super::failure::{from_client, limit_time};

/// Most writes at once.
const WRITES: usize = 20;
/// Most calls that wait for a connection.
const QUEUE: usize = 1024;
const RETRIES: u32 = 3;
const RETRY_FIRST: Duration = Duration::from_millis(200);
const RETRY_MOST: Duration = Duration::from_secs(5);
const CONNECT: Duration = Duration::from_secs(5);
/// Age at which the last answer does not stand for a ping any more.
const ANSWER_AGE: Duration = Duration::from_secs(10);

/// Way to a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Access {
    /// The cluster in which the service itself runs, as the service account of its Pod.
    InCluster,
    /// A file as kubectl has it, with its current context.
    Kubeconfig(PathBuf),
}

/// Reason for which a cluster cannot be talked to.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The service does not run in a Pod, or has no service account there.
    #[error("the service account of the Pod cannot be read")]
    InCluster(#[source] kube::config::InClusterError),
    /// The file is not there, or not what it should be.
    #[error("{0}: the file cannot be used")]
    Kubeconfig(PathBuf, #[source] kube::config::KubeconfigError),
    /// The certificates or the address in it are no good.
    #[error("the settings of the API server cannot be used")]
    Client(#[source] kube::Error),
    /// The limits of retries are contradictory.
    #[error("the retries of calls cannot be set up")]
    Retry(#[source] InvalidBackoff),
}

/// The API of one namespace.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) templates: Api<PodTemplate>,
    pub(crate) pods: Api<Pod>,
    pub(crate) events: Api<Event>,
    pub(crate) policies: Api<NetworkPolicy>,
    /// For watches, which take a connection each for as long as they last. Nothing is repeated on it.
    pub(crate) watched_templates: Api<PodTemplate>,
    pub(crate) watched_pods: Api<Pod>,
    writes: Semaphore,
    /// The time of the last answer, unless a call has failed since.
    answered: Mutex<Option<Instant>>,
}

impl Cluster {
    /// Reads the way to the cluster; connects at the first call. Without `namespace` it is that of the way itself. Called within a
    /// Tokio runtime.
    ///
    /// # Errors
    /// See [`AccessError`].
    pub(crate) async fn from_access(
        access: Access,
        namespace: Option<String>,
    ) -> Result<Self, AccessError> {
        let mut config = match access {
            Access::InCluster => Config::incluster().map_err(AccessError::InCluster)?,
            Access::Kubeconfig(path) => {
                let bad = |error| AccessError::Kubeconfig(path.clone(), error);
                let file = Kubeconfig::read_from(&path).map_err(bad)?;
                let options = KubeConfigOptions::default();
                let config = Config::from_custom_kubeconfig(file, &options).await;
                config.map_err(|error| AccessError::Kubeconfig(path.clone(), error))?
            }
        };
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT);
        let namespace = namespace.unwrap_or_else(|| config.default_namespace.clone());
        let calls = ClientBuilder::try_from(config.clone()).map_err(AccessError::Client)?;
        let client = build_retrying_client(calls).map_err(AccessError::Retry)?;
        let watches = ClientBuilder::try_from(config).map_err(AccessError::Client)?;
        Ok(Self::new(client, watches.build(), &namespace))
    }

    /// The API of `namespace`, with these clients for calls and for watches.
    pub(crate) fn new(client: Client, watches: Client, namespace: &str) -> Self {
        Self {
            templates: Api::namespaced(client.clone(), namespace),
            pods: Api::namespaced(client.clone(), namespace),
            events: Api::namespaced(client.clone(), namespace),
            policies: Api::namespaced(client.clone(), namespace),
            watched_templates: Api::namespaced(watches.clone(), namespace),
            watched_pods: Api::namespaced(watches, namespace),
            client,
            namespace: namespace.to_owned(),
            #[expect(
                clippy::disallowed_methods,
                reason = "all writes to the cluster share it; reconcilers make them"
            )]
            writes: Semaphore::new(WRITES),
            answered: Mutex::default(),
        }
    }

    /// A call that changes something, in its turn. The turn counts to its time.
    pub(crate) async fn write<T>(
        &self,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, EngineError> {
        let call = async {
            let _turn = self.writes.acquire().await;
            call.await
        };
        self.read(call).await
    }

    /// A call that reads.
    pub(crate) async fn read<T>(
        &self,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, EngineError> {
        self.call_within(CALL_TIMEOUT, call).await
    }

    /// A call with a limit of time of its own.
    pub(crate) async fn call_within<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, EngineError> {
        // On the heap: the library's futures hold whole objects.
        let call = Box::pin(call);
        let answer = limit_time(limit, async { call.await.map_err(from_client) }).await;
        self.note_answer(&answer);
        answer
    }

    /// Notes what the outcome of a call says of the connection.
    pub(crate) fn note_answer<T>(&self, answer: &Result<T, EngineError>) {
        let lost = matches!(
            answer,
            Err(EngineError::Unavailable(_) | EngineError::Timeout(_))
        );
        *self.last_answer() = (!lost).then(Instant::now);
    }

    /// Returns true if the server has answered a moment ago, and no call has failed since.
    pub(crate) fn has_answered(&self) -> bool {
        self.last_answer()
            .is_some_and(|at| at.elapsed() < ANSWER_AGE)
    }

    fn last_answer(&self) -> MutexGuard<'_, Option<Instant>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client that repeats what the server refuses for the moment.
pub(crate) fn build_retrying_client<S, B>(calls: ClientBuilder<S>) -> Result<Client, InvalidBackoff>
where
    S: Service<Request<Body>, Response = Response<B>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send + Sync,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let retry = RetryPolicy::new(RETRY_FIRST, RETRY_MOST, RETRIES, true)?;
    let calls = calls
        .with_layer(&BufferLayer::new(QUEUE))
        .with_layer(&RetryLayer::new(retry));
    Ok(calls.build())
}
