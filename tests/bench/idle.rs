//! A no-op pass over a thousand running agents, and a minute in which nothing happens but the questions whether they answer,
//! against a minute without them.

use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::Containers;
use kit::engine::FakeEngine;
use rustix::time::{ClockId, clock_gettime};
use schema::clock::SystemClock;
use schema::container::Desired;

use crate::in_process::InProcess;
use crate::seconds;

const USERS: usize = 1000;
const MINUTE: Duration = Duration::from_secs(60);
/// An agent is asked every 30 s.
const QUESTIONS: usize = 2 * USERS;
/// The agents' network and where they answer.
const SUBNET: &str = "10.88.0.0/16";
const PORT: u16 = 18790;

/// Answers for all agents.
struct Answers(Child);

impl Answers {
    fn start(dir: &std::path::Path) -> Self {
        std::fs::write(dir.join("health"), "ok\n").unwrap();
        // Makes each address of the agents' network one of this host.
        let routed = Command::new("ip")
            .args(["route", "replace", "local", SUBNET, "dev", "lo"])
            .status();
        assert!(
            routed.unwrap().success(),
            "run `make bench`, which has a network of its own"
        );
        let server = Command::new("busybox")
            .args(["httpd", "-f", "-p", &PORT.to_string(), "-h"])
            .arg(dir)
            .spawn();
        Self(server.expect("busybox is missing: run `make services-up`"))
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        let _ = Command::new("ip")
            .args(["route", "del", "local", SUBNET, "dev", "lo"])
            .status();
    }
}

/// Time of processors that this process has used.
fn used() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        used.tv_sec.try_into().unwrap(),
        used.tv_nsec.try_into().unwrap(),
    )
}

/// A service with ready agents, on a fake engine.
async fn start(set: &[&str]) -> (InProcess, FakeEngine) {
    let fake = FakeEngine::new(Arc::new(SystemClock));
    fake.add_image("echo:1");
    let bench = InProcess::start_with(fake.clone(), set).await;
    bench.create_users(USERS, Desired::Running).await;
    bench.all_ready(USERS).await;
    (bench, fake)
}

/// Time of processors that a minute takes in which nothing happens.
async fn idle_minute() -> Duration {
    tokio::time::sleep(Duration::from_secs(10)).await;
    let before = used();
    tokio::time::sleep(MINUTE).await;
    used() - before
}

pub async fn run() {
    let dir = tempfile::tempdir().unwrap();
    let _answers = Answers::start(dir.path());
    println!("idle: {USERS} running agents");
    let (bench, fake) = start(&[]).await;
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let begin = Instant::now();
        bench.resync().await;
        best = best.min(begin.elapsed());
    }
    let mut bare = Duration::MAX;
    for _ in 0..5 {
        let begin = Instant::now();
        let listed = fake.list(&bench.prepared.instance_id, None).await.unwrap();
        let mut connection = bench.prepared.db.read().await.unwrap();
        let rows = schema::container::all(&mut connection).await.unwrap();
        bare = bare.min(begin.elapsed());
        assert_eq!((listed.len(), rows.len()), (USERS, USERS));
    }
    println!(
        "  pass of all reconcilers {}, one listing and one scan {}   ratio {:.2}",
        seconds(best),
        seconds(bare),
        best.as_secs_f64() / bare.as_secs_f64()
    );

    let asking = idle_minute().await;
    bench.stop().await;
    let (bench, _) = start(&["container.probe_interval=0s"]).await;
    let silent = idle_minute().await;
    bench.stop().await;
    println!(
        "  processor time of an idle minute {}, without its {QUESTIONS} questions {}   ratio {:.2}",
        seconds(asking),
        seconds(silent),
        asking.as_secs_f64() / silent.as_secs_f64()
    );
}
