//! What wakes keys, and what happens when it fails.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use schema::condition::ConditionStatus;
use tokio::time::Instant;

use super::support::{Fault, Rig, Thing, World, key, pass_time, settings};
use crate::runtime::ErrorClass::Transient;
use crate::runtime::controller::{Settings, WorldEvent};

fn two() -> World {
    World::with(&[("a", Thing::new(1, 1)), ("b", Thing::new(1, 1))])
}

async fn rested(settings: Settings) -> Rig {
    let rig = Rig::with(two(), settings);
    rig.until_ready("a").await;
    rig.until_ready("b").await;
    rig
}

#[tokio::test(start_paused = true)]
async fn a_lost_ring_costs_two_seconds() {
    let rig = rested(settings()).await;
    rig.world.change("a", 2);
    let started = Instant::now();
    rig.until_ready("a").await;
    assert!(
        started.elapsed() <= Duration::from_millis(2010),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_closed_bell_leaves_the_poll() {
    let mut rig = rested(settings()).await;
    rig.ringer = None;
    rig.until("noticed", |rig| rig.summary().live.bell_closed)
        .await;
    for n in 2..6 {
        rig.world.change("a", n);
        let started = Instant::now();
        rig.until_ready("a").await;
        assert!(started.elapsed() <= Duration::from_millis(2010));
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_goes_on_where_the_last_one_that_was_answered_ended() {
    let rig = rested(settings()).await;
    rig.store.state().looks.clear();
    rig.store.looks_broken.store(true, SeqCst);
    pass_time(5.0).await;
    rig.world.change("a", 2);
    pass_time(5.0).await;
    rig.store.looks_broken.store(false, SeqCst);
    rig.until_ready("a").await;
    pass_time(5.0).await;
    let looks = rig.store.state().looks.clone();
    let since: Vec<i64> = looks.iter().map(|since| since.unwrap()).collect();
    let first = since[0];
    let repeated = since.iter().filter(|since| **since == first).count();
    assert!(
        repeated > 1,
        "what was not answered is asked again: {since:?}"
    );
    let rest = &since[repeated..];
    let counted: Vec<i64> = (1..).map(|n| first + n).take(rest.len()).collect();
    assert!(rest.len() > 1 && rest == counted, "{since:?}");
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_bell_leads_to_a_full_pass() {
    let rig = rested(settings()).await;
    let listings = rig.world.state().listings.len();
    let looks = rig.store.state().looks.len();
    assert!(rig.store.state().looks[1..].iter().all(Option::is_some));
    rig.ringer.as_ref().unwrap().reconnected();
    pass_time(0.1).await;
    assert_eq!(rig.world.state().listings.len(), listings + 1);
    assert_eq!(rig.store.state().looks[looks..], [None], "a full look, too");
}

#[tokio::test(start_paused = true)]
async fn an_event_of_the_world_is_looked_at_at_once() {
    let rig = rested(settings()).await;
    rig.world.state().things.get_mut(&key("a")).unwrap().actual = 0;
    rig.event(WorldEvent::Key(key("a")));
    pass_time(0.1).await;
    assert_eq!(rig.world.actual("a"), 1);
}

#[tokio::test(start_paused = true)]
async fn l57_any_gap_in_the_events_leads_to_a_full_pass() {
    let mut rig = rested(settings()).await;
    for gap in [Some(WorldEvent::Lost), Some(WorldEvent::Reconnected), None] {
        rig.world.state().things.get_mut(&key("b")).unwrap().actual = 0;
        match gap {
            Some(event) => rig.event(event),
            None => rig.events = None,
        }
        pass_time(0.1).await;
        assert_eq!(rig.world.actual("b"), 1);
    }
    assert!(rig.summary().live.events_closed);
    // Without events the resync still finds everything.
    rig.world.state().things.get_mut(&key("b")).unwrap().actual = 0;
    pass_time(70.0).await;
    assert_eq!(rig.world.actual("b"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_resync_comes_every_interval_give_or_take_a_tenth() {
    let rig = rested(settings()).await;
    pass_time(3600.0).await;
    let listings = rig.world.state().listings.clone();
    let gaps: Vec<f64> = listings
        .windows(2)
        .map(|w| (w[1] - w[0]).as_secs_f64())
        .collect();
    assert!(
        gaps.iter().all(|gap| (53.9..66.1).contains(gap)),
        "{gaps:?}"
    );
    assert!(gaps.iter().any(|gap| *gap < 58.0) && gaps.iter().any(|gap| *gap > 62.0));
    let summary = rig.summary();
    assert!(summary.live.last_resync_at.is_some() && summary.live.last_resync_ms.is_some());
}

#[tokio::test(start_paused = true)]
async fn the_resync_interval_can_be_set() {
    let rig = rested(Settings {
        resync: Some(Duration::from_secs(5)),
        ..settings()
    })
    .await;
    pass_time(100.0).await;
    assert!((18..24).contains(&rig.world.state().listings.len()));
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_fails_is_retried_soon_and_told() {
    for fault in [Fault::Fail(Transient), Fault::Panic, Fault::Hang] {
        let rig = rested(Settings {
            keys_timeout: Duration::from_secs(10),
            ..settings()
        })
        .await;
        rig.world.state().keys_faults.extend([fault; 3]);
        rig.handle.wake();
        rig.until("told", |rig| rig.summary().live.resync_error.is_some())
            .await;
        let started = Instant::now();
        rig.until("recovered", |rig| rig.summary().live.resync_error.is_none())
            .await;
        assert!(started.elapsed() < Duration::from_secs(40));
    }
}

#[tokio::test(start_paused = true)]
async fn l31_while_nothing_can_be_listed_ready_is_not_claimed() {
    let rig = rested(settings()).await;
    rig.world
        .state()
        .keys_faults
        .extend([Fault::Fail(Transient); 100]);
    rig.world.observe_fault("a", Fault::Fail(Transient), 3);
    rig.handle.wake();
    let started = Instant::now();
    rig.until("doubted", |rig| {
        rig.store
            .ready("a")
            .is_some_and(|ready| ready.status == ConditionStatus::Unknown)
    })
    .await;
    assert!(started.elapsed() < Duration::from_secs(5));
    rig.until_ready("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_read_is_told_and_asked_again() {
    let rig = Rig::new(two());
    rig.store.broken.store(true, SeqCst);
    pass_time(30.0).await;
    assert!(rig.summary().live.store_error.is_some());
    assert_eq!(
        rig.world.state().observed.len(),
        0,
        "nothing is known, so nothing is done"
    );
    rig.store.broken.store(false, SeqCst);
    rig.until_ready("a").await;
    rig.until("told", |rig| rig.summary().live.store_error.is_none())
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_wake_by_the_operator_looks_at_everything() {
    let rig = rested(settings()).await;
    rig.world.change("a", 4);
    rig.world.state().things.get_mut(&key("b")).unwrap().actual = 9;
    rig.handle.wake();
    pass_time(0.1).await;
    assert_eq!((rig.world.actual("a"), rig.world.actual("b")), (4, 1));
}

#[tokio::test(start_paused = true)]
async fn random_storms_end_in_the_desired_state_without_overlap() {
    let names: Vec<String> = (0..8).map(|n| format!("k{n}")).collect();
    let things: Vec<(&str, Thing)> = names
        .iter()
        .map(|n| (n.as_str(), Thing::new(1, 0)))
        .collect();
    let world = World::with(&things);
    for (n, name) in names.iter().enumerate() {
        let n = n as u64;
        world.apply_fault(name, Fault::Slow(Duration::from_millis(13 * n)), 40);
        world.observe_fault(name, Fault::Slow(Duration::from_millis(7 * (8 - n))), 40);
    }
    let rig = Rig::new(world);
    for round in 0..200u64 {
        let name = &names[(round * 5 % 8) as usize];
        match round % 3 {
            0 => rig.change(name, (round % 7) as i64),
            1 => rig.event(WorldEvent::Key(key(name))),
            _ => rig.handle.retry(name),
        }
        pass_time(0.011).await;
    }
    for name in &names {
        rig.until_ready(name).await;
    }
    let state = rig.world.state();
    assert_eq!(state.overlaps, 0);
    assert!(
        state
            .things
            .values()
            .all(|thing| thing.actual == thing.desired)
    );
}
