//! A no-op pass over a thousand running agents, and a minute in which nothing happens but the questions whether they answer,
//! against the same questions asked bare.

use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kit::engine::FakeEngine;
use reconcilers::drivers::docker::ContainerEngine;
use rustix::time::{ClockId, clock_gettime};
use schema::clock::SystemClock;
use schema::container::Desired;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

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

async fn ask(number: usize) {
    let address = format!("10.88.{}.{}:{PORT}", number / 250, 2 + number % 250);
    let mut stream = TcpStream::connect(address).await.unwrap();
    let question = b"GET /health HTTP/1.0\r\n\r\n";
    stream.write_all(question).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.0 200"));
}

pub async fn run() {
    let dir = tempfile::tempdir().unwrap();
    let _answers = Answers::start(dir.path());
    let fake = FakeEngine::new(Arc::new(SystemClock));
    fake.add_image("echo:1");
    println!("idle: {USERS} running agents");
    let bench = InProcess::start(Arc::new(fake.clone())).await;
    bench.create_users(USERS, Desired::Running).await;
    bench.all_ready(USERS).await;

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

    tokio::time::sleep(Duration::from_secs(10)).await;
    let before = used();
    tokio::time::sleep(MINUTE).await;
    let idle = used() - before;
    bench.stop().await;
    let before = used();
    for number in 0..QUESTIONS {
        ask(number % USERS).await;
    }
    let bare = used() - before;
    println!(
        "  processor time of an idle minute {}, of {QUESTIONS} bare questions {}   ratio {:.2}",
        seconds(idle),
        seconds(bare),
        idle.as_secs_f64() / bare.as_secs_f64()
    );
}
