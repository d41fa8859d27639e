//! A double of the API server: the objects of one cluster in memory, over real sockets, with a kubelet that starts every Pod.
//!
//! It serves what the Kubernetes engine asks for, in the forms in which a real server answers: listings in pages, metadata alone,
//! watches with bookmarks, merge patches, preconditions, deletions with a grace. Rights, admission and schemas it has none: the real
//! cluster of the long tier proves them.

mod kubelet;
mod request;
mod serve;
mod store;
mod watching;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use store::Store;

/// Properties of the double.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// Time that each answer takes.
    pub latency: Duration,
    /// Time from the creation of a Pod to its readiness.
    pub start: Duration,
    /// Time between bookmarks of a watch.
    pub bookmarks: Duration,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            latency: Duration::ZERO,
            start: Duration::from_millis(50),
            bookmarks: Duration::from_secs(60),
        }
    }
}

/// Refusals that are answered in place of the next calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusals {
    /// Status of the answer.
    pub status: u16,
    /// Calls that get it.
    pub left: usize,
}

/// The double. Ends with the runtime.
pub struct ClusterDouble {
    address: SocketAddr,
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    store: Store,
    manner: Manner,
    calls: Mutex<BTreeMap<String, usize>>,
    refusals: Mutex<Option<Refusals>>,
    tasks: TaskTracker,
}

impl std::fmt::Debug for ClusterDouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterDouble")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl ClusterDouble {
    /// Starts it on a free port of loopback.
    pub async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let tasks = TaskTracker::new();
        let shared = Arc::new(Shared {
            store: Store::default(),
            manner,
            calls: Mutex::default(),
            refusals: Mutex::default(),
            tasks: tasks.clone(),
        });
        let served = Arc::clone(&shared);
        tasks.clone().spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let shared = Arc::clone(&served);
                let service = hyper::service::service_fn(move |request| {
                    let shared = Arc::clone(&shared);
                    async move {
                        Ok::<_, std::convert::Infallible>(
                            serve::answer_request(shared, request).await,
                        )
                    }
                });
                tasks.spawn(async move {
                    let builder = auto::Builder::new(TokioExecutor::new());
                    // A client that went away has had its answer, or does not want it.
                    drop(
                        builder
                            .serve_connection(TokioIo::new(stream), service)
                            .await,
                    );
                });
            }
        });
        Self { address, shared }
    }

    /// A file as kubectl has it, for `namespace`.
    pub fn kubeconfig(&self, namespace: &str) -> serde_json::Value {
        serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "double",
            "clusters": [{ "name": "double", "cluster": { "server": format!("http://{}", self.address) } }],
            "users": [{ "name": "double", "user": {} }],
            "contexts": [{ "name": "double", "context": {
                "cluster": "double", "user": "double", "namespace": namespace,
            }}],
        })
    }

    /// Numbers of calls since the last look, by verb and kind of object: `list pods`, `watch podtemplates`.
    pub fn take_calls(&self) -> BTreeMap<String, usize> {
        std::mem::take(&mut *lock(&self.shared.calls))
    }

    /// Refuses the next calls that are no watches.
    pub fn refuse(&self, refusals: Refusals) {
        *lock(&self.shared.refusals) = Some(refusals);
    }

    /// Number of objects of a kind.
    pub fn count(&self, kind: &str) -> usize {
        self.shared.store.count(kind)
    }

    /// Address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Puts an object there by hand; a Pod is not started.
    pub fn put(&self, kind: &str, namespace: &str, name: &str, object: serde_json::Value) {
        let key = store::Key::of(kind, namespace, name);
        self.shared.store.create(key, object).unwrap();
    }

    /// Changes an object that is there by hand.
    pub fn edit(
        &self,
        [kind, namespace, name]: [&str; 3],
        edit: impl FnOnce(&mut serde_json::Value),
    ) {
        let key = store::Key::of(kind, namespace, name);
        let mut object = self.shared.store.get(&key).unwrap().value();
        edit(&mut object);
        self.shared.store.patch(&key, &object).unwrap();
    }

    /// Takes an object away by hand, at once.
    pub fn remove(&self, [kind, namespace, name]: [&str; 3]) {
        let key = store::Key::of(kind, namespace, name);
        self.shared.store.delete(&key, None, 0).unwrap();
    }

    /// Forgets all changes of before: a watch that would go on from one of them is expired.
    pub fn forget_changes(&self) {
        self.shared.store.forget_changes();
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
