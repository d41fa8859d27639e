//! An upgrade of users that run, two at a time, against the same engine calls made raw in the same order;
//! and starts that somebody waits for during it, one after another, against raw starts during the raw work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{
    AgentNetwork, Bind, ContainerSettings, Containers, Images, LABEL_OWNER, NetworkSettings,
};
use engine_docker::{DockerEngine, DockerHost};
use futures::StreamExt;
use schema::clock::{Clock, SystemClock};
use schema::condition::ConditionStatus;
use schema::container::{self, Desired};
use schema::ids::{Generation, Kind, Uid};
use schema::object;
use schema::rollout::{self, NewRollout, Phase, RolloutKind};
use tokio_util::sync::CancellationToken;

use crate::in_process::InProcess;
use crate::seconds;

const RUN: &str = "agentyard-bench-rollout";
const NETWORK: &str = "agentyard";
/// How many users are under way at once.
const AT_ONCE: usize = 2;
const GRACE: Duration = Duration::from_secs(10);

pub async fn run() {
    let users: usize = std::env::var("AGENTYARD_BENCH_ROLLOUT")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20);
    let host = std::env::var("AGENTYARD_TEST_DOCKER_HOST")
        .expect("no engine: run `make bench`, which starts one");
    let host: DockerHost = host.parse().unwrap();
    let engine = Arc::new(DockerEngine::new(host.clone(), None));

    println!("rollout: upgrade of {users} running users, {AT_ONCE} at once");
    let raw = Raw::new(Arc::clone(&engine), users).await;
    let (bare, bare_starts) = raw.upgrade().await;
    raw.clean().await;
    println!("  raw engine, the same order   {}", seconds(bare));

    let bench = InProcess::start(host).await;
    // One more user, who is started again and again in the midst of it.
    let mut uids = bench.create_users(users + 1, Desired::Stopped).await;
    let visitor = uids.pop().unwrap();
    bench.set_all(&uids, Desired::Running, false).await;
    bench.all_ready(users + 1).await;
    let begin = Instant::now();
    let ended = CancellationToken::new();
    let (took, starts) = tokio::join!(
        async {
            upgrade(&bench, &uids).await;
            ended.cancel();
            begin.elapsed()
        },
        async {
            let mut starts = Vec::new();
            while !ended.is_cancelled() {
                starts.push(set(&bench, &visitor, Desired::Running).await);
                set(&bench, &visitor, Desired::Stopped).await;
            }
            starts
        }
    );
    println!(
        "  agentyard                    {}   ratio {:.2}",
        seconds(took),
        took.as_secs_f64() / bare.as_secs_f64()
    );
    for (what, of) in [("median", 2), ("worst", 1)] {
        let (bare, ours) = (nth(&bare_starts, of), nth(&starts, of));
        println!(
            "  start during it, {what:<6}      {} raw (of {}), {} ours (of {})   ratio {:.2}",
            seconds(bare),
            bare_starts.len(),
            seconds(ours),
            starts.len(),
            ours.as_secs_f64() / bare.as_secs_f64()
        );
    }
    uids.push(visitor);
    bench.set_all(&uids, Desired::Stopped, false).await;
    bench.all_ready(users + 1).await;
    bench.stop().await;
    if let Some(network) = engine.network(NETWORK).await.unwrap() {
        engine.remove_network(&network.id).await.unwrap();
    }
}

/// The worst (`of` = 1) or the median (`of` = 2).
fn nth(times: &[Duration], of: usize) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    times[(times.len() / of).min(times.len() - 1)]
}

/// From the request to the observed end.
async fn upgrade(bench: &InProcess, uids: &[Uid]) {
    let db = &bench.prepared.db;
    let new = NewRollout {
        kind: RolloutKind::Migrate,
        reference: "docker.io/library/echo:2".to_owned(),
        source: None,
        max_unavailable: u32::try_from(AT_ONCE).unwrap(),
        pause_on_failure: true,
        health_timeout: Duration::from_secs(60),
        min_ready: Duration::ZERO,
    };
    let mut tx = db.begin().await.unwrap();
    let rollout = rollout::create(&mut tx, &new, uids, "bench", SystemClock.now())
        .await
        .unwrap();
    tx.commit().await.unwrap();
    loop {
        let mut connection = db.read().await.unwrap();
        let (row, _) = rollout::get(&mut connection, &rollout)
            .await
            .unwrap()
            .unwrap();
        drop(connection);
        assert_ne!(row.facts.phase, Phase::Paused, "{}", row.facts.message);
        if row.facts.finished_at.is_some() {
            assert_eq!(row.facts.phase, Phase::Succeeded);
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// From the request to the observed end: ready, or stopped.
async fn set(bench: &InProcess, uid: &Uid, desired: Desired) -> Duration {
    let db = &bench.prepared.db;
    let begin = Instant::now();
    let mut tx = db.begin().await.unwrap();
    let generation: Generation = container::set_desired(&mut tx, uid, desired, false, None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    loop {
        let mut connection = db.read().await.unwrap();
        let row = object::get(&mut connection, Kind::Container, uid)
            .await
            .unwrap()
            .unwrap();
        drop(connection);
        let ready = row
            .status
            .conditions
            .iter()
            .any(|c| c.status == ConditionStatus::True);
        if ready && row.status.observed_generation >= generation {
            return begin.elapsed();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The same containers, made and replaced by nothing but engine calls.
struct Raw {
    engine: Arc<DockerEngine>,
    users: usize,
    home: tempfile::TempDir,
}

impl Raw {
    async fn new(engine: Arc<DockerEngine>, users: usize) -> Self {
        let network = NetworkSettings {
            name: RUN.to_owned(),
            subnet: "10.87.0.0/16".to_owned(),
            labels: [(LABEL_OWNER.to_owned(), RUN.to_owned())].into(),
            isolation: Default::default(),
        };
        if engine.network(RUN).await.unwrap().is_none() {
            engine.create_network(&network).await.unwrap();
        }
        let raw = Self {
            engine,
            users,
            home: tempfile::tempdir().unwrap(),
        };
        for number in 0..users {
            let id = raw.create(&raw.name(number), "echo:1").await;
            raw.engine.start(&id).await.unwrap();
            raw.ready(&id).await;
        }
        raw
    }

    fn name(&self, number: usize) -> String {
        format!("{RUN}-{number}")
    }

    async fn create(&self, name: &str, image: &str) -> String {
        let home = self.home.path().join(name);
        std::fs::create_dir_all(&home).unwrap();
        let settings = ContainerSettings {
            image: self.engine.image(image).await.unwrap().unwrap().id,
            user: Some("0:0".to_owned()),
            labels: [(LABEL_OWNER.to_owned(), RUN.to_owned())].into(),
            environment: [("HOME".to_owned(), "/root".to_owned())].into(),
            binds: vec![Bind {
                source: home.to_str().unwrap().to_owned(),
                target: "/root".to_owned(),
                read_only: false,
            }],
            network: RUN.to_owned(),
            memory_bytes: 1 << 30,
            pids_limit: 512,
            ..ContainerSettings::default()
        };
        self.engine.create(name, &settings).await.unwrap()
    }

    /// Waits until the agent answers, as its adapter asks it.
    async fn ready(&self, id: &str) {
        loop {
            let details = self.engine.inspect(id).await.unwrap().unwrap();
            let address = details.container.networks.get(RUN).cloned().flatten();
            if let Some(address) = address
                && tokio::net::TcpStream::connect((address.as_str(), 18790))
                    .await
                    .is_ok()
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// One user's replacement, call by call as the service makes them.
    async fn replace(&self, number: usize) {
        let (base, engine) = (self.name(number), &self.engine);
        let next = self.create(&format!("{base}.next-"), "echo:2").await;
        let old = engine.inspect(&base).await.unwrap().unwrap().container.id;
        engine.stop(&old, GRACE).await.unwrap();
        engine.rename(&old, &format!("{base}.prev-")).await.unwrap();
        engine.rename(&next, &base).await.unwrap();
        engine.start(&next).await.unwrap();
        self.ready(&next).await;
        engine.remove(&old).await.unwrap();
    }

    /// The canary, then batches; beside it one start after another. How long each took.
    async fn upgrade(&self) -> (Duration, Vec<Duration>) {
        let begin = Instant::now();
        let ended = CancellationToken::new();
        let all = async {
            self.replace(0).await;
            let rest: Vec<usize> = (1..self.users).collect();
            for batch in rest.chunks(AT_ONCE) {
                futures::future::join_all(batch.iter().map(|number| self.replace(*number))).await;
            }
            ended.cancel();
            begin.elapsed()
        };
        let visitor = async {
            let mut starts = Vec::new();
            while !ended.is_cancelled() {
                let begin = Instant::now();
                let id = self.create(&self.name(self.users), "echo:1").await;
                self.engine.start(&id).await.unwrap();
                self.ready(&id).await;
                starts.push(begin.elapsed());
                self.engine.stop(&id, GRACE).await.unwrap();
                self.engine.remove(&id).await.unwrap();
            }
            starts
        };
        tokio::join!(all, visitor)
    }

    async fn clean(&self) {
        let numbers = futures::stream::iter(0..=self.users);
        numbers
            .for_each_concurrent(8, async |number| {
                self.engine.remove(&self.name(number)).await.unwrap();
            })
            .await;
        let network = self.engine.network(RUN).await.unwrap().unwrap();
        self.engine.remove_network(&network.id).await.unwrap();
    }
}
