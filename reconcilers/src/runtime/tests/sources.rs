//! What wakes keys, and what happens when it fails.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use schema::condition::ConditionStatus;
use tokio::time::Instant;

use super::support::{Fault, Thing, World, Yard, key, pass_time, settings};
use crate::runtime::ErrorClass::Transient;
use crate::runtime::controller::{Settings, WorldEvent};

fn two() -> World {
    World::with(&[("a", Thing::new(1, 1)), ("b", Thing::new(1, 1))])
}

async fn rested(settings: Settings) -> Yard {
    let yard = Yard::with(two(), settings);
    yard.until_ready("a").await;
    yard.until_ready("b").await;
    yard
}

#[tokio::test(start_paused = true)]
async fn a_lost_ring_costs_two_seconds() {
    let yard = rested(settings()).await;
    yard.world.change("a", 2);
    let started = Instant::now();
    yard.until_ready("a").await;
    assert!(
        started.elapsed() <= Duration::from_millis(2010),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_closed_bell_leaves_the_poll() {
    let mut yard = rested(settings()).await;
    yard.ringer = None;
    yard.until("noticed", |yard| yard.summary().live.bell_closed)
        .await;
    for n in 2..6 {
        yard.world.change("a", n);
        let started = Instant::now();
        yard.until_ready("a").await;
        assert!(started.elapsed() <= Duration::from_millis(2010));
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_goes_on_where_the_last_one_that_was_answered_ended() {
    let yard = rested(settings()).await;
    yard.store.state().looks.clear();
    yard.store.looks_broken.store(true, SeqCst);
    pass_time(5.0).await;
    yard.world.change("a", 2);
    pass_time(5.0).await;
    yard.store.looks_broken.store(false, SeqCst);
    yard.until_ready("a").await;
    pass_time(5.0).await;
    let looks = yard.store.state().looks.clone();
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
    let yard = rested(settings()).await;
    let listings = yard.world.state().listings.len();
    let looks = yard.store.state().looks.len();
    assert!(yard.store.state().looks[1..].iter().all(Option::is_some));
    yard.ringer.as_ref().unwrap().reconnected();
    pass_time(0.1).await;
    assert_eq!(yard.world.state().listings.len(), listings + 1);
    assert_eq!(
        yard.store.state().looks[looks..],
        [None],
        "a full read, too"
    );
}

#[tokio::test(start_paused = true)]
async fn an_event_of_the_world_is_looked_at_at_once() {
    let yard = rested(settings()).await;
    yard.world.state().things.get_mut(&key("a")).unwrap().actual = 0;
    yard.event(WorldEvent::Key(key("a")));
    pass_time(0.1).await;
    assert_eq!(yard.world.actual("a"), 1);
}

#[tokio::test(start_paused = true)]
async fn l57_any_gap_in_the_events_leads_to_a_full_pass() {
    let mut yard = rested(settings()).await;
    for gap in [Some(WorldEvent::Lost), Some(WorldEvent::Reconnected), None] {
        yard.world.state().things.get_mut(&key("b")).unwrap().actual = 0;
        match gap {
            Some(event) => yard.event(event),
            None => yard.events = None,
        }
        pass_time(0.1).await;
        assert_eq!(yard.world.actual("b"), 1);
    }
    assert!(yard.summary().live.events_closed);
    // Without events the resync still finds everything.
    yard.world.state().things.get_mut(&key("b")).unwrap().actual = 0;
    pass_time(70.0).await;
    assert_eq!(yard.world.actual("b"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_resync_comes_every_interval_give_or_take_a_tenth() {
    let yard = rested(settings()).await;
    pass_time(3600.0).await;
    let listings = yard.world.state().listings.clone();
    let gaps: Vec<f64> = listings
        .windows(2)
        .map(|w| (w[1] - w[0]).as_secs_f64())
        .collect();
    assert!(
        gaps.iter().all(|gap| (53.9..66.1).contains(gap)),
        "{gaps:?}"
    );
    assert!(gaps.iter().any(|gap| *gap < 58.0) && gaps.iter().any(|gap| *gap > 62.0));
    let summary = yard.summary();
    assert!(summary.live.last_resync_at.is_some() && summary.live.last_resync_ms.is_some());
}

#[tokio::test(start_paused = true)]
async fn the_resync_interval_can_be_set() {
    let yard = rested(Settings {
        resync: Some(Duration::from_secs(5)),
        ..settings()
    })
    .await;
    pass_time(100.0).await;
    assert!((18..24).contains(&yard.world.state().listings.len()));
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_fails_is_retried_soon_and_told() {
    for fault in [Fault::Fail(Transient), Fault::Panic, Fault::Hang] {
        let yard = rested(Settings {
            keys_timeout: Duration::from_secs(10),
            ..settings()
        })
        .await;
        yard.world.state().keys_faults.extend([fault; 3]);
        yard.handle.wake();
        yard.until("told", |yard| yard.summary().live.resync_error.is_some())
            .await;
        let started = Instant::now();
        yard.until("recovered", |yard| {
            yard.summary().live.resync_error.is_none()
        })
        .await;
        assert!(started.elapsed() < Duration::from_secs(40));
    }
}

#[tokio::test(start_paused = true)]
async fn l31_while_nothing_can_be_listed_ready_is_not_claimed() {
    let yard = rested(settings()).await;
    yard.world
        .state()
        .keys_faults
        .extend([Fault::Fail(Transient); 100]);
    yard.world.observe_fault("a", Fault::Fail(Transient), 3);
    yard.handle.wake();
    let started = Instant::now();
    yard.until("doubted", |yard| {
        yard.store
            .ready("a")
            .is_some_and(|ready| ready.status == ConditionStatus::Unknown)
    })
    .await;
    assert!(started.elapsed() < Duration::from_secs(5));
    yard.until_ready("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_read_is_told_and_asked_again() {
    let yard = Yard::new(two());
    yard.store.broken.store(true, SeqCst);
    pass_time(30.0).await;
    assert!(yard.summary().live.store_error.is_some());
    assert_eq!(
        yard.world.state().observed.len(),
        0,
        "nothing is known, so nothing is done"
    );
    yard.store.broken.store(false, SeqCst);
    yard.until_ready("a").await;
    yard.until("told", |yard| yard.summary().live.store_error.is_none())
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_wake_by_the_operator_looks_at_everything() {
    let yard = rested(settings()).await;
    yard.world.change("a", 4);
    yard.world.state().things.get_mut(&key("b")).unwrap().actual = 9;
    yard.handle.wake();
    pass_time(0.1).await;
    assert_eq!((yard.world.actual("a"), yard.world.actual("b")), (4, 1));
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
    let yard = Yard::new(world);
    for round in 0..200u64 {
        let name = &names[(round * 5 % 8) as usize];
        match round % 3 {
            0 => yard.change(name, (round % 7) as i64),
            1 => yard.event(WorldEvent::Key(key(name))),
            _ => yard.handle.retry(name),
        }
        pass_time(0.011).await;
    }
    for name in &names {
        yard.until_ready(name).await;
    }
    let state = yard.world.state();
    assert_eq!(state.overlaps, 0);
    assert!(
        state
            .things
            .values()
            .all(|thing| thing.actual == thing.desired)
    );
}
