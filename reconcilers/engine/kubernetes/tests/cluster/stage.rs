//! A stage in the test cluster: a namespace of its own, in which Pod Security's `restricted` is enforced.

use std::collections::BTreeMap;
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use engine::{ContainerDetails, ContainerState, Containers, Digests};
use engine_kubernetes::{KubernetesEngine, Options};
use futures::StreamExt;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{
    Namespace, PersistentVolume, PersistentVolumeClaim, Pod, PodTemplate, ServiceAccount,
};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kit::contract::engine::{Hand, Stage};
use kube::api::{
    DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use schema::clock::SystemClock;
use schema::ids::Uid;
use serde_json::{Value, json};

/// The sentence that tells how to get a cluster.
const HOW: &str = "AGENTYARD_TEST_CLUSTER is not set: this test needs a real cluster. Name the STATE folder of one that is up and has \
    the images of tests/cluster/echo-image and agentyard-image and the registry of tests/cluster/registry, and run the test inside its network namespace: \
    `ip netns exec $(cat STATE/netns) env AGENTYARD_TEST_CLUSTER=STATE cargo nextest run --profile long -p engine-kubernetes`";
/// Image of the service, as Pods beside agents run it.
const IMAGE: &str = "localhost/agentyard:test";
/// Users of agents' processes.
const USER: u32 = 1000;

/// A namespace of one test.
pub struct ClusterStage {
    pub engine: Arc<KubernetesEngine>,
    pub namespace: String,
    admin: Client,
    pub place: tempfile::TempDir,
    home: PathBuf,
    following: tokio::task::JoinHandle<()>,
}

fn admin_kubeconfig() -> PathBuf {
    let state = std::env::var("AGENTYARD_TEST_CLUSTER").expect(HOW);
    Path::new(&state).join("conf/admin.kubeconfig")
}

fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A namespace in which `restricted` is enforced.
pub async fn stage() -> ClusterStage {
    stage_with("restricted").await
}

/// A namespace in which this standard of Pod Security is enforced.
pub async fn stage_with(standard: &str) -> ClusterStage {
    build_stage(standard, json!({}), None).await
}

/// A namespace with these options besides; the service is this process, on the node.
pub async fn stage_of(standard: &str, changes: Value) -> ClusterStage {
    build_stage(standard, changes, None).await
}

/// A namespace in which `restricted` is enforced, and references mean what `digests` says.
pub async fn stage_of_registry(digests: Arc<dyn Digests>) -> ClusterStage {
    build_stage("restricted", json!({}), Some(digests)).await
}

async fn build_stage(
    standard: &str,
    changes: Value,
    digests: Option<Arc<dyn Digests>>,
) -> ClusterStage {
    let path = admin_kubeconfig();
    let file = Kubeconfig::read_from(&path).unwrap();
    let config = Config::from_custom_kubeconfig(file.clone(), &KubeConfigOptions::default()).await;
    let admin = Client::try_from(config.unwrap()).unwrap();
    let namespace = format!("contract-{}", &Uid::random().as_str()[..12]);
    let place = tempfile::tempdir().unwrap();
    let home = place.path().join("users/alice");
    std::fs::create_dir_all(&home).unwrap();
    chown(&home, Some(USER), Some(USER)).unwrap();

    let post = PostParams::default();
    let labels = json!({ "pod-security.kubernetes.io/enforce": standard });
    let wanted = json!({ "metadata": { "name": namespace, "labels": labels } });
    let namespaces: Api<Namespace> = Api::all(admin.clone());
    namespaces.create(&post, &object(wanted)).await.unwrap();
    make_claim(&admin, &namespace, place.path()).await;
    let token = make_account(&admin, &namespace).await;

    let server = file.clusters[0].cluster.clone().unwrap();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{ "name": "c", "cluster": {
            "server": server.server, "certificate-authority-data": server.certificate_authority_data,
        }}],
        "users": [{ "name": "u", "user": { "token": token } }],
        "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u", "namespace": namespace } }],
    });
    let kubeconfig = place.path().join("kubeconfig");
    let mut options = std::fs::OpenOptions::new();
    let file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&kubeconfig);
    serde_json::to_writer(file.unwrap(), &config).unwrap();
    let options = json!({
        "kubeconfig": kubeconfig,
        "data": { "claim": "data" },
        "image": IMAGE,
        // Without policies an agent would wait for ever.
        "network": {
            "serviceUrl": "http://10.90.0.1:8081", "serviceNetworks": ["10.90.0.1/32"],
            "nameServers": ["10.90.0.1"], "closeSeconds": 0,
        },
        "pods": { "serviceAccount": "agentyard-agent" },
    });
    let mut options = options;
    merge(&mut options, changes);
    let options: Options = object(options);
    let clock = Arc::new(SystemClock);
    let engine = KubernetesEngine::new(options, &namespace, clock).await;
    let engine = Arc::new(match digests {
        Some(digests) => engine.unwrap().with_registries(digests),
        None => engine.unwrap(),
    });
    let followed = Arc::clone(&engine);
    #[allow(clippy::disallowed_methods)]
    let following = tokio::spawn(async move { followed.follow().await });
    ClusterStage {
        engine,
        namespace,
        admin,
        place,
        home,
        following,
    }
}

/// Merges objects; everything else is replaced.
fn merge(target: &mut Value, changes: Value) {
    match (target, changes) {
        (Value::Object(target), Value::Object(changes)) => {
            for (key, value) in changes {
                merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, changes) => *target = changes,
    }
}

/// A volume on a folder of the node, claimed as `data`.
async fn make_claim(admin: &Client, namespace: &str, folder: &Path) {
    let post = PostParams::default();
    let volumes: Api<PersistentVolume> = Api::all(admin.clone());
    let volume = json!({ "metadata": { "name": namespace }, "spec": {
        "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteMany"], "storageClassName": "",
        "persistentVolumeReclaimPolicy": "Retain", "hostPath": { "path": folder, "type": "Directory" },
        "claimRef": { "namespace": namespace, "name": "data" },
    }});
    volumes.create(&post, &object(volume)).await.unwrap();
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(admin.clone(), namespace);
    let claim = json!({ "metadata": { "name": "data" }, "spec": {
        "accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": namespace,
        "resources": { "requests": { "storage": "1Gi" } },
    }});
    claims.create(&post, &object(claim)).await.unwrap();
}

/// The service's account, with its rights, and the agents'; returns a token of the first.
async fn make_account(admin: &Client, namespace: &str) -> String {
    let post = PostParams::default();
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), namespace);
    for name in ["agentyard", "agentyard-agent"] {
        let account = object(json!({ "metadata": { "name": name } }));
        accounts.create(&post, &account).await.unwrap();
    }
    let role: Role = serde_yaml::from_str(include_str!("role.yaml")).unwrap();
    let roles: Api<Role> = Api::namespaced(admin.clone(), namespace);
    roles.create(&post, &role).await.unwrap();
    let binding = json!({ "metadata": { "name": "agentyard" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "agentyard" },
        "subjects": [{ "kind": "ServiceAccount", "name": "agentyard", "namespace": namespace }],
    });
    let bindings: Api<RoleBinding> = Api::namespaced(admin.clone(), namespace);
    bindings.create(&post, &object(binding)).await.unwrap();
    let request = TokenRequest {
        spec: TokenRequestSpec::default(),
        ..TokenRequest::default()
    };
    let answer: TokenRequest = accounts
        .create_subresource("token", "agentyard", &post, &request)
        .await
        .unwrap();
    answer.status.unwrap().token
}

impl ClusterStage {
    /// Removes the namespace; not waited for.
    pub async fn strike(self) {
        self.following.abort();
        let namespaces: Api<Namespace> = Api::all(self.admin.clone());
        let params = DeleteParams::default();
        drop(namespaces.delete(&self.namespace, &params).await);
        let volumes: Api<PersistentVolume> = Api::all(self.admin.clone());
        drop(volumes.delete(&self.namespace, &params).await);
    }

    /// As an administrator.
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.admin.clone(), &self.namespace)
    }

    /// Objects of the whole cluster, as an administrator.
    pub fn cluster_api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::ClusterResourceScope>,
        K::DynamicType: Default,
    {
        Api::all(self.admin.clone())
    }

    /// Changes the template of a container by hand.
    pub async fn patch_template(&self, name: &str, patch: Value) {
        let details = self.see(name).await;
        let (template, _) = details.container.id.split_once('.').unwrap();
        let templates: Api<PodTemplate> = self.api();
        let patch = Patch::Strategic(patch);
        let params = PatchParams::default();
        templates.patch(template, &params, &patch).await.unwrap();
    }

    /// The Pods of the namespace.
    pub async fn pods(&self) -> Vec<Pod> {
        let pods: Api<Pod> = self.api();
        pods.list(&ListParams::default()).await.unwrap().items
    }

    /// The version of the namespace's Pods now.
    pub async fn version(&self) -> String {
        let pods: Api<Pod> = self.api();
        let listed = pods.list(&ListParams::default()).await.unwrap();
        listed.metadata.resource_version.unwrap()
    }

    /// Lets the cluster's version rise without a change of Pods.
    pub async fn change_something_else(&self) {
        let accounts: Api<ServiceAccount> = self.api();
        let account = object(json!({ "metadata": { "name": "other" } }));
        let params = PostParams::default();
        accounts.create(&params, &account).await.unwrap();
    }

    /// Returns true if a watch of Pods cannot go on from a version any more: the server answers 410.
    pub async fn is_forgotten(&self, version: &str) -> bool {
        let pods: Api<Pod> = self.api();
        let params = WatchParams::default().timeout(5);
        let mut events = match pods.watch(&params, version).await {
            Ok(events) => events.boxed(),
            Err(kube::Error::Api(status)) => return status.code == 410,
            Err(error) => panic!("{error}"),
        };
        matches!(events.next().await, Some(Ok(WatchEvent::Error(status))) if status.code == 410)
    }

    /// Runs a script in a container of this name until it ends; returns its end.
    pub async fn run_script(&self, name: &str, script: &str) -> ContainerDetails {
        let mut settings = self.settings("u1");
        settings.command = Some(["/bin/sh", "-c", script].map(str::to_owned).to_vec());
        let id = self
            .engine
            .create(&self.name(name), &settings)
            .await
            .unwrap();
        self.engine.start(&id).await.unwrap();
        self.until(&id, |seen| seen.container.state == ContainerState::Exited)
            .await
    }

    /// Waits until something is so.
    pub async fn wait_for(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        for _ in 0..600 {
            if holds().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{what} never came true");
    }
}

impl Stage for ClusterStage {
    type Engine = KubernetesEngine;

    fn engine(&self) -> &KubernetesEngine {
        &self.engine
    }

    fn owner(&self) -> &str {
        &self.namespace
    }

    fn name(&self, name: &str) -> String {
        format!("agentyard-{name}")
    }

    fn network(&self) -> &str {
        engine::NETWORK
    }

    fn tiny_subnet(&self) -> String {
        panic!("networks have no subnets here")
    }

    fn home(&self) -> &Path {
        &self.home
    }

    fn home_source(&self) -> String {
        "data:users/alice".to_owned()
    }

    fn user(&self) -> &str {
        "1000:1000"
    }

    async fn hand(&self, hand: Hand<'_>) {
        match hand {
            Hand::LimitMemory(name, limit) => {
                let limits = json!({ "limits": { "memory": limit.to_string() } });
                let containers = json!([{ "name": "agent", "resources": limits }]);
                let patch = json!({ "template": { "spec": { "containers": containers } } });
                self.patch_template(name, patch).await;
            }
            Hand::AlwaysRestart(name) => {
                let patch = json!({ "template": { "spec": { "restartPolicy": "Always" } } });
                self.patch_template(name, patch).await;
            }
            Hand::Stop(_) => {
                let pods: Api<Pod> = self.api();
                pods.delete("agent-u1", &DeleteParams::default())
                    .await
                    .unwrap();
            }
            Hand::Remove(name) => {
                let details = self.see(name).await;
                let (template, _) = details.container.id.split_once('.').unwrap();
                let templates: Api<PodTemplate> = self.api();
                templates
                    .delete(template, &DeleteParams::background())
                    .await
                    .unwrap();
            }
            Hand::Pause(_) | Hand::Disconnect(..) | Hand::Import(_) | Hand::Tag(..) => {
                panic!("{hand:?} has no meaning here")
            }
        }
    }

    async fn let_speak(&self, _name: &str) {}
}

/// Labels of a container, for tests that make objects themselves.
pub fn labels(owner: &str, uid: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        (engine::LABEL_OWNER.to_owned(), owner.to_owned()),
        (engine::LABEL_UID.to_owned(), uid.to_owned()),
    ])
}
