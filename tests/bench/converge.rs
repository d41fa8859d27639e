//! Stopped users that shall all run, against the best rate of the raw engine: the same image, network
//! and settings, created and started with 1 to 8 calls at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{AgentNetwork, ContainerSettings, Containers, Images, LABEL_OWNER, NetworkSettings};
use engine_docker::{DockerEngine, DockerHost};
use futures::StreamExt;
use kit::engine::FakeEngine;
use schema::clock::SystemClock;
use schema::container::Desired;

use crate::in_process::InProcess;
use crate::seconds;

const RUN: &str = "agentyard-bench-raw";

pub async fn run() {
    let users: usize = std::env::var("AGENTYARD_BENCH_USERS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(50);
    let host = std::env::var("AGENTYARD_TEST_DOCKER_HOST")
        .expect("no engine: run `make bench`, which starts one");
    let host: DockerHost = host.parse().unwrap();
    let engine = Arc::new(DockerEngine::new(host.clone(), None));

    println!("converge: {users} stopped users shall run");
    let mut best = Duration::MAX;
    for lanes in [1, 2, 4, 8] {
        let took = raw(&engine, users, lanes).await;
        println!("  raw engine, {lanes} at once   {}", seconds(took));
        best = best.min(took);
    }

    let bench = InProcess::start(host).await;
    let uids = bench.create_users(users, Desired::Stopped).await;
    bench.all_ready(users).await;
    let begin = Instant::now();
    bench.set_all(&uids, Desired::Running, false).await;
    bench.all_ready(users).await;
    let took = begin.elapsed();
    println!(
        "  agentyard, to observed ready {}   ratio {:.2}",
        seconds(took),
        took.as_secs_f64() / best.as_secs_f64()
    );
    bench.set_all(&uids, Desired::Stopped, false).await;
    bench.all_ready(users).await;
    bench.stop().await;
    if let Some(network) = engine.network("agentyard").await.unwrap() {
        engine.remove_network(&network.id).await.unwrap();
    }

    // The same on an engine that costs nothing: what is left is our own work.
    let fake = FakeEngine::new(Arc::new(SystemClock));
    fake.add_image("echo:1");
    let bench = InProcess::start(fake).await;
    let uids = bench.create_users(users, Desired::Stopped).await;
    bench.all_ready(users).await;
    let begin = Instant::now();
    bench.set_all(&uids, Desired::Running, false).await;
    wait_running(&bench, users).await;
    let own = begin.elapsed() / u32::try_from(users).unwrap();
    println!(
        "  own time per start           {:.2} ms   ratio to a raw start {:.3}",
        own.as_secs_f64() * 1e3,
        own.as_secs_f64() / (best.as_secs_f64() / users as f64)
    );
    bench.stop().await;
}

/// On the engine in memory nothing answers HTTP, so ready cannot be waited for: started can.
async fn wait_running(bench: &InProcess, users: usize) {
    loop {
        let mut connection = bench.prepared.db.read().await.unwrap();
        let dirty = schema::object::dirty(&mut connection, schema::ids::Kind::Container)
            .await
            .unwrap();
        drop(connection);
        let idle = bench
            .service
            .handles
            .iter()
            .all(|h| h.summary().live.queue_depth == 0);
        if dirty.is_empty() && idle {
            return;
        }
        let _ = users;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn raw(engine: &Arc<DockerEngine>, users: usize, lanes: usize) -> Duration {
    let labels = [(LABEL_OWNER.to_owned(), RUN.to_owned())];
    let network = NetworkSettings {
        name: RUN.to_owned(),
        subnet: "10.87.0.0/16".to_owned(),
        labels: labels.clone().into(),
        isolation: Default::default(),
    };
    if engine.network(RUN).await.unwrap().is_none() {
        engine.create_network(&network).await.unwrap();
    }
    let image = engine.image("echo:1").await.unwrap().unwrap().id;
    let home = tempfile::tempdir().unwrap();
    let settings = Arc::new(ContainerSettings {
        image,
        user: Some("0:0".to_owned()),
        labels: labels.into(),
        binds: vec![engine::Bind {
            source: home.path().to_str().unwrap().to_owned(),
            target: "/root".to_owned(),
            read_only: false,
        }],
        network: RUN.to_owned(),
        memory_bytes: 1 << 30,
        pids_limit: 512,
        ..ContainerSettings::default()
    });
    let begin = Instant::now();
    let ids: Vec<String> = futures::stream::iter(0..users)
        .map(|number| {
            let (engine, settings) = (Arc::clone(engine), Arc::clone(&settings));
            async move {
                let id = engine
                    .create(&format!("{RUN}-{number}"), &settings)
                    .await
                    .unwrap();
                engine.start(&id).await.unwrap();
                id
            }
        })
        .buffer_unordered(lanes)
        .collect()
        .await;
    let took = begin.elapsed();
    futures::stream::iter(ids)
        .for_each_concurrent(8, |id| async move { engine.remove(&id).await.unwrap() })
        .await;
    let network = engine.network(RUN).await.unwrap().unwrap();
    engine.remove_network(&network.id).await.unwrap();
    took
}
