//! Pulls of a real engine from real registries, and those who watch them.
//!
//! Needs the test services (`make services-up`, `make run-tests`). Without them the tests fail; they never skip.

// Test code, although its functions bear no test attribute.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use engine::{Images, RegistryCredentials};
use engine_docker::DockerEngine;
use reconcilers::runtime::Waits;
use reconcilers::shared::pulls::{CANCELLED, PullReport, Pulls};
use schema::clock::SystemClock;
use schema::image::{PullReader, PullUpdate};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::registry::{self, LAYER, LAYERS, Proxy, Published, Way, credentials, is_there};

fn engine() -> DockerEngine {
    DockerEngine::new(registry::docker_host().parse().unwrap(), None)
}

fn pulls() -> Arc<Pulls> {
    Arc::new(Pulls::new(
        Arc::new(engine()),
        Arc::new(SystemClock),
        Waits::default(),
        TaskTracker::new(),
        CancellationToken::new(),
    ))
}

fn viewer(pulls: &Pulls, reference: &str) -> PullReader {
    pulls.log(reference).unwrap().read(0)
}

/// All that a viewer reads: a percentage that never falls, and one end.
async fn told(mut viewer: PullReader) -> Vec<PullUpdate> {
    let all = async {
        let mut told = Vec::new();
        while let Some((_, update)) = viewer.next().await {
            told.push(update);
        }
        told
    };
    let told = tokio::time::timeout(Duration::from_secs(300), all).await;
    let told = told.expect("the pull ends");
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

async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it never came true: {what}");
}

#[track_caller]
fn error(told: &[PullUpdate]) -> &str {
    match told.last() {
        Some(PullUpdate::Failed { message }) => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn engine_l37_a_pull_shows_its_way_to_100_and_one_done() {
    for (host, credentials) in [
        (registry::open(), None),
        (registry::closed(), Some(credentials())),
    ] {
        let mut image = Published::new(&host);
        let reference = image.at(&host);
        let pulls = pulls();
        pulls.start(&reference, credentials, "t1");
        let told = told(viewer(&pulls, &reference)).await;
        let percents = percents(&told);
        assert_eq!(percents.last(), Some(&100), "{told:?}");
        assert_eq!(percents.iter().filter(|p| **p == 100).count(), 1);
        let sums = told.iter().filter_map(|update| match update {
            PullUpdate::Progress { sum, .. } => Some(sum.bytes_total),
            _ => None,
        });
        let total = sums.max().unwrap();
        assert!(total >= (LAYERS * LAYER) as u64, "{total}");
        let there = engine().image(&reference).await.unwrap().unwrap();
        let done = PullUpdate::Done {
            image_id: there.id,
            digest: there.repo_digests.first().cloned(),
        };
        assert_eq!(told.last(), Some(&done));
        assert!(there.repo_digests[0].starts_with(&format!("{host}/")));
    }
}

#[tokio::test]
async fn engine_l37_wrong_or_missing_credentials_and_unknown_tags_end_in_one_refusal() {
    let host = registry::closed();
    let mut image = Published::new(&host);
    let reference = image.at(&host);
    let wrong = RegistryCredentials {
        username: credentials().username,
        password: "canary-hunter2".to_owned().into(),
    };
    let unknown = format!("{}2", reference.strip_suffix('1').unwrap());
    for (reference, credentials) in [
        (&reference, None),
        (&reference, Some(wrong)),
        (&unknown, Some(credentials())),
    ] {
        let pulls = pulls();
        pulls.start(reference, credentials, "t1");
        let told = told(viewer(&pulls, reference)).await;
        let message = error(&told);
        assert!(!message.contains("canary"), "{message}");
        let report = pulls.report(reference);
        assert!(
            matches!(report, PullReport::Failed { refused: true, .. }),
            "{report:?}"
        );
        assert!(!is_there(reference));
    }
}

#[tokio::test]
async fn engine_l37_a_registry_that_breaks_mid_layer_ends_in_one_error() {
    let mut image = Published::new(&registry::open());
    let proxy = Proxy::new(Way::Slow(1_000_000)).await;
    let reference = image.at(&proxy.address);
    let pulls = pulls();
    pulls.start(&reference, None, "t1");
    let viewer = viewer(&pulls, &reference);
    until("bytes of layers have come", || proxy.passed() > LAYER / 2).await;
    proxy.become_broken();
    let told = told(viewer).await;
    let percents = percents(&told);
    assert!(percents.iter().all(|p| *p < 100), "{percents:?}");
    assert!(percents.last().unwrap() > &0, "{percents:?}");
    assert!(!error(&told).is_empty());
    assert!(!is_there(&reference));
}

#[tokio::test]
async fn engine_two_viewers_see_the_same_pull_and_one_who_leaves_does_not_stop_it() {
    let mut image = Published::new(&registry::open());
    let proxy = Proxy::new(Way::Slow(2_000_000)).await;
    let reference = image.at(&proxy.address);
    let pulls = pulls();
    pulls.start(&reference, None, "t1");
    let mut first = JoinSet::new();
    first.spawn(told(viewer(&pulls, &reference)));
    until("bytes of layers have come", || proxy.passed() > LAYER / 2).await;
    let mut leaver = viewer(&pulls, &reference);
    leaver.next().await.unwrap();
    let late = viewer(&pulls, &reference);
    pulls.start(&reference, None, "t2");
    assert_eq!(pulls.list().len(), 1);
    assert_eq!(pulls.list()[0].viewers, 3);
    drop(leaver);
    assert_eq!(pulls.list()[0].viewers, 2);
    let (first, late) = (first.join_all().await.remove(0), told(late).await);
    assert!(matches!(first.last(), Some(PullUpdate::Done { .. })));
    assert_eq!(first.last(), late.last());
    assert!(percents(&late).first() > Some(&0), "{late:?}");
    assert!(matches!(pulls.report(&reference), PullReport::Done { token, .. } if token == "t2"));
    assert!(is_there(&reference));
}

#[tokio::test]
async fn engine_a_cancelled_pull_stops_on_the_engine() {
    let mut image = Published::new(&registry::open());
    let proxy = Proxy::new(Way::Slow(100_000)).await;
    let reference = image.at(&proxy.address);
    let pulls = pulls();
    pulls.start(&reference, None, "t1");
    let viewer = viewer(&pulls, &reference);
    until("bytes of layers have come", || proxy.passed() > LAYER / 20).await;
    pulls.cancel(&reference);
    assert_eq!(error(&told(viewer).await), CANCELLED);
    until("the engine has hung up", || proxy.connections() == 0).await;
    assert!(proxy.passed() < LAYERS * LAYER);
    assert!(!is_there(&reference));
}
