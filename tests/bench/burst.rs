//! A burst of starts on the real engine: the first users are to be ready long before the last.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::AgentNetwork;
use engine_docker::{DockerEngine, DockerHost};
use schema::condition::{self, ConditionStatus, ConditionType};
use schema::container::Desired;
use schema::ids::{Kind, Uid};
use schema::object;

use crate::in_process::InProcess;
use crate::seconds;

const USERS: usize = 40;
const POLL: Duration = Duration::from_millis(20);

pub async fn run() {
    let host = std::env::var("AGENTYARD_TEST_DOCKER_HOST")
        .expect("no engine: run `make bench`, which starts one");
    let host: DockerHost = host.parse().unwrap();
    let engine = Arc::new(DockerEngine::new(host.clone(), None));
    println!("burst: {USERS} stopped users shall run, all at once");
    let bench = InProcess::start(host).await;
    let uids = bench.create_users(USERS, Desired::Stopped).await;
    bench.all_ready(USERS).await;
    let begin = Instant::now();
    bench.set_all(&uids, Desired::Running, false).await;
    let times = ready_times(&bench, begin).await;
    let (first, median, total) = (times[0], times[USERS / 2 - 1], times[USERS - 1]);
    println!(
        "  first ready {}, p50 {}, all {}   p50 to all {:.2} (goal: at most 0.60)",
        seconds(first),
        seconds(median),
        seconds(total),
        median.as_secs_f64() / total.as_secs_f64()
    );
    bench.set_all(&uids, Desired::Stopped, false).await;
    bench.all_ready(USERS).await;
    bench.stop().await;
    if let Some(network) = engine.network("agentyard").await.unwrap() {
        engine.remove_network(&network.id).await.unwrap();
    }
}

/// The times after `begin` at which containers were seen ready, in order.
async fn ready_times(bench: &InProcess, begin: Instant) -> Vec<Duration> {
    let mut seen: HashMap<Uid, Duration> = HashMap::new();
    while seen.len() < USERS {
        tokio::time::sleep(POLL).await;
        let mut connection = bench.prepared.db.read().await.unwrap();
        let rows = object::statuses(&mut connection, Kind::Container).await;
        drop(connection);
        for row in rows.unwrap() {
            let ready = condition::find(&row.status.conditions, ConditionType::Ready);
            let is_ready = ready.is_some_and(|ready| ready.status == ConditionStatus::True);
            if is_ready && row.status.observed_generation == row.generation {
                seen.entry(row.uid).or_insert_with(|| begin.elapsed());
            }
        }
    }
    let mut times: Vec<_> = seen.into_values().collect();
    times.sort();
    times
}
