//! The pulls themselves, and those who watch them.

use std::sync::Arc;
use std::time::Duration;

use schema::clock::ManualClock;
use schema::image::{PullReader, PullUpdate};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::image::support::{AGENT, START, broken, slow};
use kit::engine::{FakeEngine, PullEnd, Verb};
use reconcilers::runtime::Waits;
use reconcilers::shared::pulls::{CANCELLED, PullReport, PullState, Pulls};

struct Port {
    fake: FakeEngine,
    clock: Arc<ManualClock>,
    shutdown: CancellationToken,
    pulls: Arc<Pulls>,
}

fn port() -> Port {
    let clock = Arc::new(ManualClock::new(START));
    let fake = FakeEngine::new(clock.clone());
    let shutdown = CancellationToken::new();
    let pulls = Pulls::new(
        Arc::new(fake.clone()),
        clock.clone(),
        Waits::default(),
        TaskTracker::new(),
        shutdown.clone(),
    );
    Port {
        fake,
        clock,
        shutdown,
        pulls: Arc::new(pulls),
    }
}

impl Port {
    fn publish(&self, reference: &str, ends: PullEnd) {
        self.fake.publish_image(reference);
        self.fake.script_pull(reference, slow(ends));
    }

    fn viewer(&self, reference: &str) -> PullReader {
        self.pulls.log(reference).unwrap().read(0)
    }
}

/// All that a viewer reads; the last event is the only one of its kind.
async fn told(mut viewer: PullReader) -> Vec<PullUpdate> {
    let mut told = Vec::new();
    while let Some((_, update)) = viewer.next().await {
        told.push(update);
    }
    let lasts = told.iter().filter(|update| update.is_last()).count();
    assert_eq!(lasts, 1, "{told:?}");
    assert!(told.last().unwrap().is_last(), "{told:?}");
    let percents = percents(&told);
    assert!(percents.is_sorted(), "{percents:?}");
    told
}

fn percents(told: &[PullUpdate]) -> Vec<u8> {
    let sums = told.iter().filter_map(|update| match update {
        PullUpdate::Progress { sum, .. } => Some(sum.percent),
        _ => None,
    });
    sums.collect()
}

#[tokio::test(start_paused = true)]
async fn l37_a_viewer_sees_a_percentage_that_never_falls_up_to_100_and_one_done() {
    let port = port();
    port.publish("agent:1", PullEnd::Done);
    port.pulls.start(AGENT, None, "t1");
    let told = told(port.viewer("agent:1")).await;
    let percents = percents(&told);
    assert_eq!((percents.first(), percents.last()), (Some(&0), Some(&100)));
    assert!(percents.iter().filter(|p| **p == 100).count() == 1);
    assert!(percents.len() > 15, "{percents:?}");
    let image = port.fake.all_images().remove(0);
    let done = PullUpdate::Done {
        image_id: image.id.clone(),
        digest: image.repo_digests.first().cloned(),
    };
    assert_eq!(told.last(), Some(&done));
    assert!(matches!(port.pulls.report(AGENT), PullReport::Done { token, .. } if token == "t1"));
    assert_eq!(port.pulls.state(AGENT), PullState::Idle);
    assert!(port.pulls.recently_done("agent:1"));
}

#[tokio::test(start_paused = true)]
async fn l37_a_pull_that_breaks_mid_layer_ends_in_one_error() {
    let port = port();
    port.publish("agent:1", PullEnd::Fails(7, Arc::new(broken)));
    port.pulls.start(AGENT, None, "");
    let told = told(port.viewer(AGENT)).await;
    assert!(
        matches!(told.last(), Some(PullUpdate::Failed { message }) if message.contains("unexpected EOF"))
    );
    assert!(percents(&told).iter().all(|p| *p < 100));
    assert!(matches!(
        port.pulls.state(AGENT),
        PullState::Failed { failures: 1, .. }
    ));
}

#[tokio::test(start_paused = true)]
async fn a_viewer_who_comes_later_gets_the_past_in_short_and_the_same_end() {
    let port = port();
    port.publish("agent:1", PullEnd::Done);
    port.pulls.start(AGENT, None, "");
    let mut first = JoinSet::new();
    first.spawn(told(port.viewer(AGENT)));
    tokio::time::sleep(Duration::from_millis(750)).await;
    let late = port.viewer(AGENT);
    assert_eq!(port.pulls.list()[0].viewers, 2);
    assert_eq!(port.pulls.list()[0].reference, AGENT);
    let (first, late) = (first.join_all().await.remove(0), told(late).await);
    assert_eq!(first.last(), late.last());
    assert!(late.len() < first.len());
    // One event of the tag and one of each layer, then the rest as it came.
    assert_eq!(first[first.len() - (late.len() - 4)..], late[4..]);
    assert_eq!(port.fake.calls().of(Verb::Pull), 1);
    assert!(port.pulls.list().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_closed_viewer_stops_nothing() {
    let port = port();
    port.publish("agent:1", PullEnd::Done);
    port.pulls.start(AGENT, None, "");
    let mut viewer = port.viewer(AGENT);
    viewer.next().await.unwrap();
    drop(viewer);
    assert_eq!(port.pulls.list()[0].viewers, 0);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(port.pulls.recently_done(AGENT));
}

#[tokio::test(start_paused = true)]
async fn a_viewer_that_does_not_read_gets_the_newest_and_the_end() {
    let port = port();
    port.fake.publish_image("agent:1");
    let mut script = slow(PullEnd::Done);
    script.layers = (0..60).map(|n| (format!("layer{n}"), 1_000)).collect();
    port.fake.script_pull("agent:1", script);
    port.pulls.start(AGENT, None, "");
    let mut viewer = port.viewer(AGENT);
    assert!(viewer.next().await.is_some());
    // Hundreds of events later.
    tokio::time::sleep(Duration::from_secs(40)).await;
    let (_, next) = viewer.next().await.unwrap();
    let PullUpdate::Progress { sum, .. } = &next else {
        panic!("{next:?}");
    };
    assert!(sum.percent > 50, "not what came first: {next:?}");
    let rest = told(viewer).await;
    assert!(rest.len() > 60);
}

#[tokio::test(start_paused = true)]
async fn the_end_is_told_for_a_minute() {
    let port = port();
    port.publish("agent:1", PullEnd::Done);
    assert!(port.pulls.log(AGENT).is_none());
    port.pulls.start(AGENT, None, "");
    tokio::time::sleep(Duration::from_secs(10)).await;
    port.clock.advance(Duration::from_secs(59));
    let end = told(port.viewer(AGENT)).await;
    // The tag, the three layers, 100 %, and the end.
    assert_eq!(end.len(), 6);
    assert!(matches!(end.last(), Some(PullUpdate::Done { .. })));
    port.clock.advance(Duration::from_secs(1));
    assert!(port.pulls.log(AGENT).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_pull_stops_at_once_and_makes_room() {
    let port = port();
    for number in 1..=4 {
        port.publish(&format!("agent:{number}"), PullEnd::Hangs(3));
        port.pulls.start(&format!("agent:{number}"), None, "t");
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(port.fake.pulls_under_way(), 3, "the fourth waits");
    assert_eq!(port.pulls.list().len(), 4);
    let viewer = port.viewer(AGENT);
    port.pulls.cancel(AGENT);
    port.pulls.cancel(AGENT);
    let told = told(viewer).await;
    let message = CANCELLED.to_owned();
    assert_eq!(told.last(), Some(&PullUpdate::Failed { message }));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(port.fake.pulls_under_way(), 3, "the fourth has its turn");
    assert!(matches!(
        port.pulls.report(AGENT),
        PullReport::Failed { token, failures: 1, refused: false, .. } if token == "t"
    ));
    // A cancelled pull that is asked for again is another one.
    port.fake.script_pull("agent:1", slow(PullEnd::Done));
    port.pulls.cancel("agent:2");
    port.pulls.start(AGENT, None, "t");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(port.pulls.recently_done(AGENT));
}

#[tokio::test(start_paused = true)]
async fn failures_are_counted_for_a_request_and_forgotten_with_the_next() {
    let port = port();
    port.publish("agent:1", PullEnd::Fails(1, Arc::new(broken)));
    let failures = |port: &Port| match port.pulls.report(AGENT) {
        PullReport::Failed { failures, .. } => failures,
        other => panic!("{other:?}"),
    };
    for (token, expected) in [("t1", 1), ("t1", 2), ("", 3), ("t2", 1)] {
        port.pulls.start(AGENT, None, token);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(failures(&port), expected, "{token:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_is_told_apart() {
    let port = port();
    port.fake.publish_image("agent:2");
    for (reference, expected) in [
        ("agent:1", true),
        ("nobody.example/agent:1", false),
        ("sha256:aa", false),
    ] {
        port.pulls.start(reference, None, "");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(
            matches!(
                port.pulls.report(reference),
                PullReport::Failed { refused, .. } if refused == expected
            ),
            "{reference}: {:?}",
            port.pulls.report(reference)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_service_ends_pulls_and_tells_viewers() {
    let port = port();
    port.publish("agent:1", PullEnd::Hangs(3));
    port.pulls.start(AGENT, None, "");
    let viewer = port.viewer(AGENT);
    tokio::time::sleep(Duration::from_secs(1)).await;
    port.shutdown.cancel();
    assert!(matches!(
        told(viewer).await.last(),
        Some(PullUpdate::Failed { .. })
    ));
    assert_eq!(port.fake.pulls_under_way(), 0);
}
