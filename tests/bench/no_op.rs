//! A pass over ten thousand users with nothing to do, against the least it could do: one listing of
//! the engine and one scan of the database.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::Containers;
use kit::engine::FakeEngine;
use schema::clock::SystemClock;
use schema::container::Desired;

use crate::in_process::InProcess;
use crate::seconds;

const USERS: usize = 10_000;

pub async fn run() {
    let fake = FakeEngine::new(Arc::new(SystemClock));
    fake.add_image("echo:1");
    let bench = InProcess::start(fake.clone()).await;
    bench.create_users(USERS, Desired::Stopped).await;
    println!("no-op pass: {USERS} users");
    let begin = Instant::now();
    bench.all_ready(USERS).await;
    println!(
        "  first pass (statuses saved, directories made) {}",
        seconds(begin.elapsed())
    );

    let handle = bench
        .service
        .handles
        .iter()
        .find(|handle| handle.name() == "container")
        .unwrap();
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let before = handle.summary().live.last_resync_at;
        let begin = Instant::now();
        handle.wake();
        loop {
            let now = handle.summary();
            if now.live.last_resync_at != before
                && now.live.queue_depth == 0
                && now.live.in_flight == 0
            {
                break;
            }
            tokio::time::sleep(Duration::from_micros(500)).await;
        }
        best = best.min(begin.elapsed());
    }
    let mut bare = Duration::MAX;
    for _ in 0..5 {
        let begin = Instant::now();
        let listed = fake.list(&bench.prepared.instance_id, None).await.unwrap();
        let mut connection = bench.prepared.db.read().await.unwrap();
        let rows = schema::container::all(&mut connection).await.unwrap();
        bare = bare.min(begin.elapsed());
        assert_eq!((listed.len(), rows.len()), (0, USERS));
    }
    println!(
        "  one listing and one scan                      {}",
        seconds(bare)
    );
    println!(
        "  agentyard                                     {}   ratio {:.2}",
        seconds(best),
        best.as_secs_f64() / bare.as_secs_f64()
    );
    bench.stop().await;
}
