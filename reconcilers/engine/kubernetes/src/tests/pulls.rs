//! Pulls against a cluster whose nodes pull by script.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use engine::{Containers, Digests, EngineError, Images, PullEvent};
use futures::StreamExt;
use http::Request;
use http_body_util::BodyExt;
use kube::client::{Body, ClientBuilder};
use schema::clock::SystemClock;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tower::service_fn;

use super::images::{Says, TAG, id};
use super::server::{Reply, answer, failure, list};
use super::{merge, options, pod, settings, template_of};
use crate::KubernetesEngine;
use crate::client::{Cluster, build_retrying_client};
use crate::names::{OWNER, PULL};
use crate::network::{PULLER, ROLE};
use crate::puller::{self, State};
use crate::references::Resolved;

/// A status of a puller, by its node and the time since its creation.
type Nodes = Arc<dyn Fn(&str, Duration) -> Value + Send + Sync>;

/// A cluster with an agent on each of some nodes.
struct World {
    templates: Vec<Value>,
    agents: Vec<Value>,
    pullers: BTreeMap<String, (Value, Instant)>,
    nodes: Nodes,
    /// Pods that still may be made.
    quota: usize,
    /// Nodes in the order in which they were asked, and most at once.
    asked: Vec<String>,
    most: usize,
}

/// An engine in it.
pub(super) struct Yard {
    pub(super) engine: KubernetesEngine,
    world: Arc<Mutex<World>>,
}

fn pulled_status(_: &str, age: Duration) -> Value {
    match age.as_secs() {
        0 | 1 => json!({ "phase": "Pending" }),
        _ => container(json!({ "terminated": { "exitCode": 128, "reason": "StartError" } })),
    }
}

fn container(state: Value) -> Value {
    json!({ "phase": "Pending", "containerStatuses": [
        { "name": "pull", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state },
    ]})
}

fn waiting(reason: &str, message: &str) -> Value {
    container(json!({ "waiting": { "reason": reason, "message": message } }))
}

/// An agent of this image on a node of its own.
fn agent(number: usize, image: &str) -> (Value, Value) {
    let mut settings = settings();
    settings.image = image.to_owned();
    let made = template_of(
        &settings,
        &[("agentyard.io/started", "2026-01-01T00:01:00Z")],
    );
    let node = format!("n{number:02}");
    let mut agent = serde_json::to_value(pod(&made, json!({}))).unwrap();
    let running = json!([{ "name": "agent", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
        "state": { "running": {} } }]);
    agent["metadata"]["name"] = json!(format!("agent-u{number}"));
    agent["metadata"]["uid"] = json!(format!("p{number}"));
    agent["metadata"]["ownerReferences"][0]["uid"] = json!(format!("t{number}"));
    merge(
        &mut agent,
        json!({
            "spec": { "nodeName": node }, "status": { "phase": "Running", "containerStatuses": running },
        }),
    );
    let mut template = serde_json::to_value(made).unwrap();
    template["metadata"]["name"] = json!(format!("agent-u{number}-0123abcd"));
    template["metadata"]["uid"] = json!(format!("t{number}"));
    (template, agent)
}

impl World {
    fn serve_request(&mut self, method: &str, address: &str, body: &[u8]) -> Option<Reply> {
        if address.contains("watch=true") {
            return None;
        }
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let name = path.rsplit('/').next().unwrap_or_default();
        let reply = match (method, name) {
            ("GET", "podtemplates") => answer(200, &list("5", "", &self.templates)),
            ("GET", "pods") if query.contains("role%3Dpuller") || query.contains("pull%3D") => {
                let pods: Vec<Value> = self.pullers.values().map(|it| self.shown_pod(it)).collect();
                let wanted = |pod: &Value| match query.split_once("pull%3D") {
                    Some((_, rest)) => {
                        let pull = rest.split('&').next().unwrap_or_default();
                        pod["metadata"]["labels"][PULL] == json!(pull)
                    }
                    None => true,
                };
                let pods: Vec<Value> = pods.into_iter().filter(wanted).collect();
                answer(200, &list("9", "", &pods))
            }
            ("GET", "pods") => answer(200, &list("5", "", &self.agents)),
            ("POST", "pods") if self.pullers.len() >= self.quota => {
                answer(403, &failure(403, "pods is forbidden: exceeded quota: few"))
            }
            ("POST", "pods") => {
                let mut pod: Value = serde_json::from_slice(body).unwrap();
                let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
                pod["metadata"]["uid"] = json!(format!("uid-{name}"));
                self.asked.push(node_of(&pod));
                let made = answer(201, &pod);
                self.pullers.insert(name, (pod, Instant::now()));
                self.most = self.most.max(self.pullers.len());
                made
            }
            ("DELETE", name) => match self.pullers.remove(name) {
                Some((pod, _)) => answer(200, &pod),
                None => answer(404, &failure(404, "NotFound")),
            },
            other => panic!("{other:?}"),
        };
        Some(reply)
    }

    fn shown_pod(&self, (pod, made): &(Value, Instant)) -> Value {
        let mut pod = pod.clone();
        pod["status"] = (self.nodes)(&node_of(&pod), made.elapsed());
        pod
    }
}

fn node_of(pod: &Value) -> String {
    let required =
        &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let field = &required["nodeSelectorTerms"][0]["matchFields"][0];
    assert_eq!(field["key"], "metadata.name");
    field["values"][0].as_str().unwrap().to_owned()
}

impl Yard {
    /// A running agent of each of these images, each on a node of its own; nodes pull within two seconds.
    pub(super) fn new(images: &[&str], digests: Arc<dyn Digests>) -> Self {
        let agents = images.iter().enumerate();
        let (templates, agents) = agents.map(|(number, image)| agent(number, image)).unzip();
        let world = Arc::new(Mutex::new(World {
            templates,
            agents,
            pullers: BTreeMap::new(),
            nodes: Arc::new(pulled_status),
            quota: usize::MAX,
            asked: Vec::new(),
            most: 0,
        }));
        let builder = || {
            let world = Arc::clone(&world);
            let service = service_fn(move |request: Request<Body>| {
                let world = Arc::clone(&world);
                async move {
                    let address = request.uri().path_and_query().unwrap().as_str().to_owned();
                    let method = request.method().as_str().to_owned();
                    let body: Bytes = request.into_body().collect().await.unwrap().to_bytes();
                    let reply = world
                        .lock()
                        .unwrap()
                        .serve_request(&method, &address, &body);
                    match reply {
                        Some(reply) => Ok::<_, std::convert::Infallible>(reply),
                        None => std::future::pending().await,
                    }
                }
            });
            ClientBuilder::new(service, "test")
        };
        let cluster = Cluster::new(
            build_retrying_client(builder()).unwrap(),
            builder().build(),
            "test",
        );
        let engine =
            KubernetesEngine::in_cluster(cluster, options(), "instance", Arc::new(SystemClock));
        let engine = engine.with_registries(digests);
        Self { engine, world }
    }

    fn with_nodes(self, nodes: impl Fn(&str, Duration) -> Value + Send + Sync + 'static) -> Self {
        self.world().nodes = Arc::new(nodes);
        self
    }

    fn world(&self) -> std::sync::MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    fn left_pods(&self) -> Vec<String> {
        self.world().pullers.keys().cloned().collect()
    }

    async fn pull(&self) -> Vec<Result<PullEvent, EngineError>> {
        run_during(&self.engine, async {
            let events = self.engine.pull(TAG, None).await.unwrap();
            events.collect().await
        })
        .await
    }
}

/// Does something while the cluster is followed.
pub(super) async fn run_during<T>(engine: &KubernetesEngine, work: impl Future<Output = T>) -> T {
    tokio::select! {
        () = engine.follow() => panic!("it follows for ever"),
        done = work => done,
    }
}

fn statuses(events: &[Result<PullEvent, EngineError>]) -> Vec<String> {
    let told = events.iter().map(|event| {
        let event = event.as_ref().unwrap();
        match &event.id {
            Some(node) => format!("{node}: {}", event.status),
            None => event.status.clone(),
        }
    });
    told.collect()
}

#[tokio::test(start_paused = true)]
async fn each_node_of_an_agent_pulls_unless_it_has_the_image() {
    let images = [id('b'), id('a'), id('b')];
    let yard = Yard::new(&images.each_ref().map(String::as_str), Says::digest_of('a'));
    let before = run_during(&yard.engine, async {
        yard.engine.list("instance", None).await.unwrap();
        yard.engine.image(TAG).await.unwrap().unwrap()
    })
    .await;
    assert!(!before.is_local);
    let told = statuses(&yard.pull().await);
    let digest = format!("Digest: sha256:{}", "a".repeat(64));
    assert_eq!(
        told,
        [
            &*digest,
            "n00: Waiting",
            "n01: Already exists",
            "n02: Waiting",
            "1 of 3 nodes have the image",
            "n00: Pulling",
            "n02: Pulling",
            "n00: Pull complete",
            "2 of 3 nodes have the image",
            "n02: Pull complete",
            "3 of 3 nodes have the image",
        ]
    );
    assert_eq!(yard.left_pods(), [""; 0]);
    let after = yard.engine.image(TAG).await.unwrap().unwrap();
    assert!(after.is_local);
    let listed = yard.engine.list("instance", None).await.unwrap();
    assert_eq!(listed.len(), 3, "pullers are no containers");
}

#[tokio::test(start_paused = true)]
async fn without_agents_nothing_is_pulled() {
    let yard = Yard::new(&[], Says::digest_of('a'));
    let told = statuses(&yard.pull().await);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(yard.world().asked.is_empty());
    assert!(yard.engine.image(TAG).await.unwrap().unwrap().is_local);
}

#[tokio::test(start_paused = true)]
async fn twenty_nodes_pull_at_once() {
    let image = id('b');
    let yard = Yard::new(&[image.as_str(); 50], Says::digest_of('a'));
    let events = yard.pull().await;
    assert!(events.iter().all(Result::is_ok), "{events:?}");
    let world = yard.world();
    let asked: BTreeSet<&String> = world.asked.iter().collect();
    assert_eq!((asked.len(), world.asked.len(), world.most), (50, 50, 20));
    assert!(world.pullers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn used_up_quota_lets_nodes_pull_in_turn() {
    let image = id('b');
    let yard = Yard::new(&[image.as_str(); 5], Says::digest_of('a'));
    yard.world().quota = 2;
    let events = yard.pull().await;
    assert!(events.iter().all(Result::is_ok), "{events:?}");
    assert_eq!(yard.world().most, 2);
    yard.world().quota = 0;
    let yard = Yard::new(&[image.as_str()], Says::digest_of('a'));
    yard.world().quota = 0;
    let events = yard.pull().await;
    let last = events.last().unwrap();
    assert!(
        matches!(last, Err(EngineError::QuotaExceeded(_))),
        "{last:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn node_that_cannot_pull_ends_the_pull_in_its_words() {
    // The node tries it again after 10, 20 and 40 seconds.
    let words = "failed to resolve: unexpected status: 401 Unauthorized";
    let failing = move |node: &str, age: Duration| match (node, age.as_secs()) {
        ("n00", _) => pulled_status(node, age),
        (_, 0..2 | 12..14 | 34..36) => waiting("ErrImagePull", words),
        _ => waiting("ImagePullBackOff", "Back-off pulling image"),
    };
    let image = id('b');
    let yard = Yard::new(&[image.as_str(); 2], Says::digest_of('a')).with_nodes(failing);
    let begun = Instant::now();
    let mut events = yard.pull().await;
    let last = events.pop().unwrap();
    let Err(EngineError::PullRefused(why)) = last else {
        panic!("{last:?}");
    };
    assert!(
        why.starts_with("the node n01 cannot pull it: ErrImagePull: failed"),
        "{why}"
    );
    assert!(why.contains("pods.overlay.spec.imagePullSecrets"), "{why}");
    let took = begun.elapsed().as_secs();
    assert!((30..62).contains(&took), "{took}");
    assert_eq!(yard.left_pods(), [""; 0]);
    assert!(!yard.engine.image(TAG).await.unwrap().unwrap().is_local);
}

#[tokio::test(start_paused = true)]
async fn full_node_is_left_out_if_another_one_pulls() {
    let words = "no space left on device";
    let image = id('b');
    for (full_nodes, is_pulled) in [(1, true), (2, false)] {
        let full = move |node: &str, age: Duration| match (node, full_nodes) {
            ("n00", 1) => pulled_status(node, age),
            _ => waiting("ErrImagePull", words),
        };
        let yard = Yard::new(&[image.as_str(); 2], Says::digest_of('a')).with_nodes(full);
        let mut events = yard.pull().await;
        if !is_pulled {
            let last = events.pop().unwrap();
            assert!(matches!(last, Err(EngineError::PullFailed(_))), "{last:?}");
        }
        let lines = statuses(&events);
        let left_out = "n01: Left out: ErrImagePull: no space left on device";
        assert!(lines.iter().any(|line| line == left_out), "{lines:?}");
        assert_eq!(yard.left_pods(), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn name_that_no_node_takes_is_refused_at_once() {
    let failing = |_: &str, _: Duration| waiting("InvalidImageName", "couldn't parse");
    let image = id('b');
    let yard = Yard::new(&[image.as_str()], Says::digest_of('a')).with_nodes(failing);
    let events = yard.pull().await;
    let last = events.last().unwrap();
    assert!(matches!(last, Err(EngineError::PullRefused(_))), "{last:?}");
    assert_eq!(yard.left_pods(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn node_that_takes_no_pod_is_left_out() {
    let full = |node: &str, age: Duration| match node {
        "n00" => json!({ "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "cordoned" },
        ]}),
        "n01" => json!({ "phase": "Failed", "reason": "OutOfcpu", "message": "too full" }),
        _ => pulled_status(node, age),
    };
    let image = id('b');
    let yard = Yard::new(&[image.as_str(); 3], Says::digest_of('a')).with_nodes(full);
    let told = statuses(&yard.pull().await);
    for expected in ["n00: Left out: cordoned", "n01: Left out: too full"] {
        assert!(told.iter().any(|line| line == expected), "{told:?}");
    }
    assert_eq!(told.last().unwrap(), "1 of 3 nodes have the image");
    assert_eq!(yard.left_pods(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn cancelled_pull_leaves_no_pod() {
    let image = id('b');
    let slow = |_: &str, _: Duration| json!({ "phase": "Pending" });
    let yard = Yard::new(&[image.as_str(); 3], Says::digest_of('a')).with_nodes(slow);
    run_during(&yard.engine, async {
        let events = yard.engine.pull(TAG, None).await.unwrap();
        let reading = events.take_while(|event| {
            let pulls = event.as_ref().is_ok_and(|event| event.status == "Pulling");
            async move { !pulls }
        });
        reading.collect::<Vec<_>>().await;
        assert_eq!(yard.left_pods().len(), 3);
        sleep(Duration::from_secs(1)).await;
    })
    .await;
    assert_eq!(yard.left_pods(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_killed_service_are_removed_by_the_next_pull() {
    let image = id('b');
    let yard = Yard::new(&[image.as_str()], Says::digest_of('a'));
    let resolved = Resolved::Fixed(id('c'));
    let old = puller::pod(&resolved, "n00", ("instance", "old", 0), &options().pods);
    let mut old = serde_json::to_value(old).unwrap();
    old["metadata"]["uid"] = json!("old");
    let entry = ("agentyard-pull-old-0".to_owned(), (old, Instant::now()));
    yard.world().pullers.extend([entry]);
    let events = yard.pull().await;
    assert!(events.iter().all(Result::is_ok), "{events:?}");
    assert_eq!(yard.left_pods(), [""; 0]);
}

#[test]
fn puller_has_what_the_overlay_says_and_no_rights() {
    let mut pods = options().pods;
    pods.overlay = serde_json::from_value(json!({
        "metadata": { "annotations": { "sidecar": "no" } },
        "spec": {
            "containers": [], "imagePullSecrets": [{ "name": "registry" }], "nodeSelector": { "pool": "agents" },
            "tolerations": [{ "key": "agents", "operator": "Exists" }], "hostNetwork": true,
        },
    }))
    .unwrap();
    let resolved = Resolved::Fixed(id('a'));
    let pod = puller::pod(
        &resolved,
        "n1",
        ("Instance/1", "0123456789abcdef", 7),
        &pods,
    );
    let pod = serde_json::to_value(pod).unwrap();
    assert_eq!(pod["metadata"]["name"], "agentyard-pull-0123456789ab-7");
    let labels = &pod["metadata"]["labels"];
    assert_eq!(labels[ROLE], PULLER);
    assert!(labels[OWNER].as_str().unwrap().starts_with('x'));
    assert_eq!(pod["metadata"]["annotations"]["sidecar"], "no");
    let spec = &pod["spec"];
    for (field, expected) in [
        ("imagePullSecrets", json!([{ "name": "registry" }])),
        ("nodeSelector", json!({ "pool": "agents" })),
        ("serviceAccountName", json!("agentyard-agent")),
        ("automountServiceAccountToken", json!(false)),
        ("activeDeadlineSeconds", json!(1800)),
        ("restartPolicy", json!("Never")),
        ("hostNetwork", Value::Null),
    ] {
        assert_eq!(spec[field], expected, "{field}");
    }
    let container = &spec["containers"][0];
    assert_eq!(container["image"], json!(id('a')));
    assert_eq!(container["imagePullPolicy"], "IfNotPresent");
    let context = &container["securityContext"];
    assert_eq!(context["runAsNonRoot"], true);
    assert_eq!(context["allowPrivilegeEscalation"], false);
    assert_eq!(context["capabilities"]["drop"], json!(["ALL"]));
    assert_eq!(context["seccompProfile"]["type"], "RuntimeDefault");
}

#[rstest::rstest]
#[case(json!({ "phase": "Pending" }), State::Pulling)]
#[case(waiting("ContainerCreating", ""), State::Pulling)]
#[case(waiting("CreateContainerError", "no such file"), State::Done)]
#[case(
    waiting("CreateContainerConfigError", "image will run as root"),
    State::Done
)]
#[case(waiting("RunContainerError", "no such file"), State::Done)]
#[case(container(json!({ "running": {} })), State::Done)]
#[case(container(json!({ "terminated": { "exitCode": 128 } })), State::Done)]
#[case(json!({ "phase": "Failed", "reason": "DeadlineExceeded" }), State::TooSlow)]
#[case(json!({ "phase": "Failed", "reason": "Evicted" }), State::Refused("Evicted".to_owned()))]
#[case(
    json!({ "phase": "Failed", "reason": "Evicted", "containerStatuses": [{
        "name": "pull", "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "terminated": { "exitCode": 137, "reason": "ContainerStatusUnknown" } },
    }]}),
    State::Refused("Evicted".to_owned())
)]
fn node_has_the_image_once_the_command_is_missing(#[case] status: Value, #[case] expected: State) {
    let resolved = Resolved::Fixed(id('a'));
    let pod = puller::pod(&resolved, "n1", ("i", "p", 0), &options().pods);
    let mut pod = serde_json::to_value(pod).unwrap();
    pod["status"] = status;
    assert_eq!(
        puller::state(&serde_json::from_value(pod).unwrap()),
        expected
    );
}
