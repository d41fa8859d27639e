//! The test cluster, as an administrator with kubectl sees it: `AGENTYARD_TEST_ENGINE=kubernetes`.
//!
//! Each test has a namespace of its own, in which Pod Security's `restricted` is enforced. The service runs beside the cluster, in
//! its network, as an account with only the rights of the Role.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use schema::clock::{Clock, SystemClock};
use serde_json::{Value, json};

use super::engine::{Happened, Seen};

const HOW: &str = "is not set: this test needs a real cluster. Name the STATE folder of one that is up and has the images of \
    tests/services/cluster-images, put its kubectl into PATH, and run the test inside its network namespace: `make test-long PART=kubernetes`";
/// The user of the host that the service runs as: `restricted` takes no root.
pub const USER: u32 = 1000;
/// The node, on which the service runs.
const NODE: &str = "10.90.0.1";
const ROLE: &str = include_str!("../../reconcilers/engine/kubernetes/tests/cluster/role.yaml");

/// An address of the node besides, which agents reach when a test lets them: what tests serve to agents is there.
pub const BESIDE: &str = "10.91.0.1";

/// Returns true if the tests are to run on the cluster.
pub fn is_wanted() -> bool {
    match std::env::var("AGENTYARD_TEST_ENGINE").as_deref() {
        Err(_) | Ok("docker") => false,
        Ok("kubernetes") => true,
        Ok(other) => panic!("AGENTYARD_TEST_ENGINE is {other:?}; give docker or kubernetes"),
    }
}

/// A namespace of one test.
pub struct Cluster {
    state: PathBuf,
    namespace: String,
    /// Port of the agent listener of its services.
    port: u16,
    options: OnceLock<PathBuf>,
}

impl Cluster {
    pub fn claim() -> Self {
        let state = std::env::var("AGENTYARD_TEST_CLUSTER");
        let state = state.unwrap_or_else(|_| panic!("AGENTYARD_TEST_CLUSTER {HOW}"));
        let free = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
        let cluster = Self {
            state: state.into(),
            namespace: format!("e2e-{:016x}", rand::random::<u64>()),
            port: free.local_addr().unwrap().port(),
            options: OnceLock::new(),
        };
        let mut address = Command::new("ip");
        address.args(["address", "replace", &format!("{BESIDE}/32"), "dev", "lo"]);
        assert!(address.status().unwrap().success());
        let labels = json!({ "pod-security.kubernetes.io/enforce": "restricted" });
        let account = |name: &str| json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name } });
        cluster.apply_objects(&[
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": cluster.namespace, "labels": labels } }),
            account("agentyard"),
            account("agentyard-agent"),
            serde_yaml::from_str(ROLE).unwrap(),
            json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": "agentyard" },
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "agentyard" },
                "subjects": [{ "kind": "ServiceAccount", "name": "agentyard", "namespace": cluster.namespace }] }),
        ]);
        cluster
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command
            .arg("--kubeconfig")
            .arg(self.state.join("conf/admin.kubeconfig"))
            .args(["--namespace", &self.namespace])
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    /// Runs a `kubectl` command; gives what it prints, or `None` when it fails.
    fn try_kubectl(&self, arguments: &[&str]) -> Option<String> {
        let output = self.command(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    }

    /// Runs a `kubectl` command that must succeed.
    #[track_caller]
    fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output();
        let output = output.expect("kubectl is in PATH");
        assert!(
            output.status.success(),
            "kubectl {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn apply_objects(&self, objects: &[Value]) {
        let place = tempfile::NamedTempFile::new().unwrap();
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        serde_json::to_writer(&place, &list).unwrap();
        self.kubectl(&["apply", "-f", place.path().to_str().unwrap()]);
    }

    /// The options of `serve` for a data directory, which the cluster mounts from now on.
    pub fn arguments(&self, data: &Path) -> Vec<String> {
        let options = self.options.get_or_init(|| self.write_options(data));
        let options = options.to_str().unwrap();
        // A second server beside the first is one that no agent reaches.
        let listen = match std::net::TcpListener::bind(("0.0.0.0", self.port)) {
            Ok(_) => format!("0.0.0.0:{}", self.port),
            Err(_) => "127.0.0.1:0".to_owned(),
        };
        let all = [
            "--engine",
            "kubernetes",
            "--engine-options",
            options,
            "--agent-listen",
            &listen,
        ];
        all.map(str::to_owned).to_vec()
    }

    /// Makes the volume, the way of agents to the service, and the file of options beside the data directory.
    fn write_options(&self, data: &Path) -> PathBuf {
        let namespace = &self.namespace;
        let names = json!({ "name": "agentyard-agents", "labels": { "kubernetes.io/service-name": "agentyard-agents" } });
        self.apply_objects(&[
            json!({ "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": namespace }, "spec": {
                "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteMany"], "storageClassName": "",
                "persistentVolumeReclaimPolicy": "Retain", "hostPath": { "path": data, "type": "Directory" },
                "claimRef": { "namespace": namespace, "name": "data" } } }),
            json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "data" }, "spec": {
                "accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": namespace,
                "resources": { "requests": { "storage": "1Gi" } } } }),
            json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "agentyard-agents" }, "spec": {
                "ports": [{ "name": "http", "port": 8081, "targetPort": self.port }] } }),
            json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": names, "addressType": "IPv4",
                "ports": [{ "name": "http", "port": self.port }], "endpoints": [{ "addresses": [NODE] }] }),
        ]);
        let admin = std::fs::read(self.state.join("conf/admin.kubeconfig")).unwrap();
        let admin: Value = serde_yaml::from_slice(&admin).unwrap();
        let token = self.kubectl(&["create", "token", "agentyard", "--duration", "24h"]);
        let kubeconfig = json!({ "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{ "name": "c", "cluster": admin["clusters"][0]["cluster"] }],
            "users": [{ "name": "u", "user": { "token": token } }],
            "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u", "namespace": namespace } }] });
        let place = data.parent().unwrap();
        let write = |name: &str, value: &Value| {
            let path = place.join(name);
            std::fs::write(&path, value.to_string()).unwrap();
            chown(&path, Some(USER), Some(USER)).unwrap();
            path
        };
        let kubeconfig = write("kubeconfig", &kubeconfig);
        let options = json!({
            "kubeconfig": kubeconfig,
            "data": { "claim": "data" },
            "image": "localhost/agentyard:test",
            "network": { "serviceUrl": "http://agentyard-agents:8081", "servicePort": self.port,
                "serviceNetworks": [format!("{NODE}/32")], "nameServers": [NODE] },
            "pods": { "serviceAccount": "agentyard-agent" },
        });
        write("options.yaml", &options)
    }

    /// Templates with their Pods.
    fn objects(&self) -> Vec<(Value, Option<Value>)> {
        let text = self.kubectl(&["get", "podtemplates,pods", "--output", "json"]);
        let list: Value = serde_json::from_str(&text).unwrap();
        let items = list["items"].as_array().unwrap();
        let kind = |kind: &'static str| items.iter().filter(move |item| item["kind"] == kind);
        let templates = kind("PodTemplate").map(|template| {
            let owner = |pod: &&Value| {
                pod["metadata"]["ownerReferences"][0]["uid"] == template["metadata"]["uid"]
            };
            (template.clone(), kind("Pod").find(owner).cloned())
        });
        templates.collect()
    }

    pub fn ours(&self) -> Vec<Seen> {
        let objects = self.objects();
        let seen = objects.iter().map(|(template, pod)| {
            let metadata = &template["metadata"];
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            Seen {
                id: format!("{}.{}", text(&metadata["name"]), text(&metadata["uid"])),
                name: text(&metadata["annotations"]["agentyard.io/name"]),
                state: state(pod.as_ref()).to_owned(),
            }
        });
        seen.collect()
    }

    /// A container in the words of the other engine, as far as tests read them.
    pub fn inspect(&self, container: &str) -> Value {
        let found = self.find_objects(container);
        let (template, pod) = found.unwrap_or_else(|| panic!("there is no {container}"));
        let labels = template["metadata"]["annotations"]["agentyard.io/labels"].as_str();
        let labels: Value = serde_json::from_str(labels.unwrap()).unwrap();
        let agent = &template["template"]["spec"]["containers"][0];
        let limits = &agent["resources"]["limits"];
        let started = pod
            .as_ref()
            .map(|pod| status(pod)["state"]["running"]["startedAt"].clone());
        let environment = agent["env"].as_array().into_iter().flatten();
        let environment = environment.map(|it| {
            let text = |key: &str| it[key].as_str().unwrap_or_default();
            format!("{}={}", text("name"), text("value"))
        });
        json!({
            "Config": { "Labels": labels, "Image": agent["image"], "Env": environment.collect::<Vec<_>>(), "Cmd": agent["command"] },
            "HostConfig": { "Memory": to_whole(units(&limits["memory"])), "NanoCpus": to_whole(units(&limits["cpu"]) * 1e9) },
            "State": { "Running": state(pod.as_ref()) == "running", "StartedAt": started },
            "Image": agent["image"],
        })
    }

    /// A container by name or id.
    fn find_objects(&self, container: &str) -> Option<(Value, Option<Value>)> {
        self.objects().into_iter().find(|(template, _)| {
            let metadata = &template["metadata"];
            let id = [&metadata["name"], &metadata["uid"]].map(|it| it.as_str().unwrap());
            metadata["annotations"]["agentyard.io/name"] == container || id.join(".") == container
        })
    }

    fn pod_of(&self, container: &str) -> Option<String> {
        let (_, pod) = self.find_objects(container)?;
        pod?["metadata"]["name"].as_str().map(str::to_owned)
    }

    /// Runs with kubectl the counterpart of a Docker command, as an administrator would.
    pub fn by_hand(&self, arguments: &[&str]) -> Option<String> {
        match arguments {
            ["rm", "-f", name] => {
                let (template, _) = self.find_objects(name)?;
                let template = template["metadata"]["name"].as_str().unwrap();
                self.try_kubectl(&["delete", "podtemplate", template, "--wait=false"])
            }
            ["stop", name] => {
                self.try_kubectl(&["delete", "pod", &self.pod_of(name)?, "--wait=false"])
            }
            ["kill", name] => {
                let pod = self.pod_of(name)?;
                let kill = "kill -KILL $(pidof picoclaw echo-agent)";
                self.try_kubectl(&["exec", &pod, "-c", "agent", "--", "sh", "-c", kill])
                    .or(Some(String::new()))
            }
            ["exec", name, program @ ..] => {
                let pod = self.pod_of(name)?;
                let before = ["exec", &pod, "-c", "agent", "--"];
                self.try_kubectl(&[before.as_slice(), program].concat())
            }
            ["logs", name] => self.try_kubectl(&["logs", &self.pod_of(name)?, "-c", "agent"]),
            other => panic!("{other:?} has no meaning on a cluster: this test is for Docker"),
        }
    }

    /// The clock of events, which has whole seconds: what happens after this call is not before what it returns.
    pub fn now(&self) -> String {
        let since = u64::try_from(SystemClock.now().as_millis()).unwrap();
        let next = since / 1000 + 1;
        std::thread::sleep(Duration::from_millis(next * 1000 - since));
        next.to_string()
    }

    /// Templates made and agents started since a moment.
    pub fn happened(&self, since: &str) -> Vec<Happened> {
        let since: i64 = since.parse().unwrap();
        let objects = self.objects();
        // All Pods of a user have one name.
        let name_of = |pod: &Value| {
            let found = objects.iter().find(|(template, _)| {
                let uid = template["metadata"]["labels"]["agentyard.io/uid"].as_str();
                pod.as_str().and_then(|pod| pod.strip_prefix("agent-")) == uid
            });
            found.map(|(template, _)| {
                template["metadata"]["annotations"]["agentyard.io/name"].clone()
            })
        };
        let created = objects.iter().map(|(template, _)| {
            let metadata = &template["metadata"];
            let name = metadata["annotations"]["agentyard.io/name"].clone();
            ("create", name, metadata["creationTimestamp"].clone())
        });
        let text = self.kubectl(&[
            "get",
            "events",
            "--field-selector",
            "reason=Started",
            "--output",
            "json",
        ]);
        let events: Value = serde_json::from_str(&text).unwrap();
        let started = events["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|event| {
                let involved = &event["involvedObject"];
                let is_agent = involved["fieldPath"] == "spec.containers{agent}";
                let name = name_of(&involved["name"]).unwrap_or_default();
                is_agent.then(|| ("start", name, event["lastTimestamp"].clone()))
            });
        let mut all: Vec<_> = created.chain(started).collect();
        all.retain(|(_, _, at)| seconds_of(at) >= since);
        all.sort_by_key(|(_, _, at)| seconds_of(at));
        let happened = all.into_iter().map(|(action, name, at)| Happened {
            kind: "container".to_owned(),
            action: action.to_owned(),
            name: name.as_str().unwrap_or_default().to_owned(),
            at: u64::try_from(seconds_of(&at)).unwrap() * 1_000_000_000,
        });
        happened.collect()
    }
}

fn seconds_of(at: &Value) -> i64 {
    let moment = serde_json::from_value::<schema::ids::Timestamp>(at.clone());
    moment.map_or(0, schema::ids::Timestamp::as_secs)
}

fn status(pod: &Value) -> Value {
    let all = pod["status"]["containerStatuses"].as_array();
    let agent = all.into_iter().flatten().find(|it| it["name"] == "agent");
    agent.cloned().unwrap_or_default()
}

fn state(pod: Option<&Value>) -> &'static str {
    let Some(pod) = pod else {
        return "exited";
    };
    let state = &status(pod)["state"];
    match state {
        _ if !pod["metadata"]["deletionTimestamp"].is_null() => "removing",
        _ if !state["running"].is_null() => "running",
        _ if !state["terminated"].is_null() => "exited",
        _ => "starting",
    }
}

#[allow(clippy::cast_possible_truncation)]
fn to_whole(number: f64) -> i64 {
    number.round() as i64
}

/// A quantity of the cluster.
fn units(quantity: &Value) -> f64 {
    let text = quantity.as_str().unwrap_or("0");
    let end = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let factor = match unit {
        "m" => 1e-3,
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        other => panic!("unit {other:?}"),
    };
    digits.parse::<f64>().unwrap() * factor
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for seen in self.ours() {
                eprintln!("left on the cluster: {seen:?}");
            }
            let events = self.try_kubectl(&["get", "events", "--sort-by=.lastTimestamp"]);
            let events = events.unwrap_or_default();
            let lines: Vec<&str> = events.lines().collect();
            eprintln!("{}", lines[lines.len().saturating_sub(20)..].join("\n"));
        }
        self.try_kubectl(&["delete", "namespace", &self.namespace, "--wait=false"]);
        self.try_kubectl(&[
            "delete",
            "persistentvolume",
            &self.namespace,
            "--wait=false",
        ]);
    }
}
