//! Ten thousand agents on a cluster, all of them running, since stopped ones have no objects there: their creation, a start of the
//! service when all is as desired, and a quiet time, against bare listings of the same objects.
//!
//! The API server is a double in this process; the service runs in another one, whose memory is its own.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use engine::{Compute, Digests, EngineError, Meaning};
use kit::cluster::{ClusterDouble, Manner};
use schema::clock::SystemClock;
use schema::container::Desired;
use schema::image::ImageReference;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::in_process::{Engine, InProcess};
use crate::seconds;

/// The word with which this program is the service.
pub const WORD: &str = "cluster_service";
const USERS: usize = 10_000;
const NAMESPACE: &str = "agents";
/// Name of the Pod that the double has in place of the service's own.
const OWN_POD: &str = "agentyard-0";
/// Objects of one answer, as the engine asks for them.
const PAGE: usize = 500;

/// Number of agents; `AGENTYARD_BENCH_USERS` changes it.
fn users() -> usize {
    let given = std::env::var("AGENTYARD_BENCH_USERS").ok();
    given.map_or(USERS, |text| text.parse().unwrap())
}

/// A cluster whose registry gives every image one digest.
struct Cluster(engine_kubernetes::Options);

struct OneDigest;

#[async_trait]
impl Digests for OneDigest {
    async fn digest(&self, _: &ImageReference) -> Result<Meaning, EngineError> {
        Ok(Meaning::Digest(format!("sha256:{}", "a".repeat(64))))
    }
}

impl Engine for Cluster {
    fn compute(self, owner: &str, _: &str) -> Compute {
        let clock = Arc::new(SystemClock);
        let making = engine_kubernetes::compute(self.0, owner, clock, Arc::new(OneDigest));
        let handle = tokio::runtime::Handle::current();
        tokio::task::block_in_place(|| handle.block_on(making)).unwrap()
    }
}

/// The service in a process of its own.
struct Served {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Served {
    fn start(place: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg(WORD)
            .arg(place)
            .env("AGENTYARD_POD_NAME", OWN_POD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { process, lines }
    }

    /// The memory that it has of its own, in MB, once nothing is left to do.
    async fn measure_idle(&mut self) -> u64 {
        let line = self.lines.next_line().await.unwrap();
        line.expect("the service is idle").parse().unwrap()
    }

    async fn end(mut self) {
        drop(self.process.stdin.take());
        self.process.wait().await.unwrap();
    }
}

pub async fn run() {
    let double = ClusterDouble::start(Manner::default()).await;
    let place = tempfile::tempdir().unwrap();
    let kubeconfig = place.path().join("kubeconfig");
    std::fs::write(&kubeconfig, double.kubeconfig(NAMESPACE).to_string()).unwrap();
    let options = json!({
        "kubeconfig": kubeconfig, "data": { "claim": "data" }, "image": "registry.example.org/agentyard:1",
        "network": { "serviceUrl": "http://agentyard-agents:8081", "serviceLabels": { "app": "agentyard" }, "nameServers": ["10.96.0.10"] },
    });
    std::fs::write(place.path().join("options"), options.to_string()).unwrap();
    double.put("pods", NAMESPACE, OWN_POD, own_pod(place.path()));
    println!("cluster: {} running agents", users());

    let begin = Instant::now();
    let mut served = Served::start(place.path());
    served.measure_idle().await;
    println!(
        "  created and started in {}, calls {:?}",
        seconds(begin.elapsed()),
        double.take_calls()
    );
    let (templates, pods) = (double.count("podtemplates"), double.count("pods") - 1);
    assert_eq!((templates, pods), (users(), users()));
    served.end().await;
    double.take_calls();

    let begin = Instant::now();
    let mut served = Served::start(place.path());
    let memory = served.measure_idle().await;
    let cold = begin.elapsed();
    let calls = double.take_calls();
    let bare = list_bare(double.address()).await;
    println!(
        "  cold start to the end of the first pass {} (goal 30 s), bare listings {}   ratio {:.2}",
        seconds(cold),
        seconds(bare),
        cold.as_secs_f64() / bare.as_secs_f64()
    );
    println!("  calls of it {calls:?}");
    println!("  memory of its own {memory} MB (goal 250 MB)");
    double.take_calls();
    let quiet = std::env::var("AGENTYARD_BENCH_QUIET").ok();
    let quiet = quiet.map_or(600, |text| text.parse().unwrap());
    tokio::time::sleep(Duration::from_secs(quiet)).await;
    println!(
        "  calls in {quiet} quiet seconds {:?} (goal: watches and a listing each)",
        double.take_calls()
    );
    served.end().await;
}

/// The Pod of the service, as the proof of the data directory reads it.
fn own_pod(place: &Path) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "spec": {
            "containers": [{ "name": "service", "image": "registry.example.org/agentyard:1", "volumeMounts": [
                { "name": "data", "mountPath": place.join("data") },
            ]}],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }],
        },
    })
}

/// All pages of both listings, read and dropped.
async fn list_bare(address: std::net::SocketAddr) -> Duration {
    let client = reqwest::Client::new();
    let begin = Instant::now();
    for kind in ["podtemplates", "pods"] {
        let mut token = String::new();
        loop {
            let url = format!(
                "http://{address}/api/v1/namespaces/{NAMESPACE}/{kind}?limit={PAGE}&continue={token}"
            );
            let answer = client.get(url).send().await.unwrap();
            let page: serde_json::Value =
                serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
            match page["metadata"]["continue"].as_str() {
                Some(next) if !next.is_empty() => next.clone_into(&mut token),
                _ => break,
            }
        }
    }
    begin.elapsed()
}

/// Serves, the first time with new users, and says how much memory it takes when nothing is left to do. Ends with its input.
pub async fn serve(place: &Path) {
    let options = std::fs::read(place.join("options")).unwrap();
    let options = serde_json::from_slice(&options).unwrap();
    let data = place.join("data");
    let is_new = !data.exists();
    std::fs::create_dir_all(&data).unwrap();
    let service = InProcess::start_in(&data, Cluster(options)).await;
    if is_new {
        service.create_users(users(), Desired::Running).await;
    }
    service.all_ready(users()).await;
    print_memory();
    let input = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    input.await.unwrap().unwrap();
    service.stop().await;
}

fn print_memory() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes: u64 = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    println!("{}", kilobytes / 1000);
}
