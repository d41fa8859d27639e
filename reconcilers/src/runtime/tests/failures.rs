//! Passes that fail.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use schema::condition::{ConditionStatus, Reason};
use schema::ids::Generation;
use tokio::time::Instant;

use super::support::{Fault, Thing, World, Yard, key, pass_time, quick_backoff, settings};
use crate::runtime::ErrorClass::{Conflict, Terminal, Transient};
use crate::runtime::controller::{Settings, WorldEvent};

fn one(desired: i64, actual: i64) -> World {
    World::with(&[("a", Thing::new(desired, actual))])
}

#[tokio::test(start_paused = true)]
async fn a_passing_failure_is_told_and_retried_until_it_passes() {
    let world = one(1, 0);
    world.apply_fault("a", Fault::Fail(Transient), 3);
    let yard = Yard::new(world);
    yard.until("failed", |yard| yard.store.status("a").failures == 1)
        .await;
    let status = yard.store.status("a");
    assert_eq!(
        status.observed_generation,
        Generation(1),
        "seen, and failed"
    );
    assert_eq!(status.next_attempt_at, yard.handle.next_attempt("a"));
    assert!(status.next_attempt_at.is_some());
    let ready = yard.store.ready("a").unwrap();
    assert_eq!(
        (ready.status, ready.reason),
        (ConditionStatus::False, Reason::EngineUnavailable)
    );
    assert_eq!(ready.message, "as scripted");
    assert_eq!((yard.summary().failing, yard.summary().not_ready), (1, 1));
    yard.until_ready("a").await;
    assert_eq!(yard.world.passes("a"), 5);
    let status = yard.store.status("a");
    assert_eq!((status.failures, status.next_attempt_at), (0, None));
    let failed: Vec<_> = yard
        .store
        .state()
        .events
        .iter()
        .map(|e| (e.1, e.2.clone()))
        .collect();
    assert_eq!(failed[0], (Reason::EngineUnavailable, "Advance".to_owned()));
    assert_eq!(failed.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_failed_observation_makes_ready_unknown_and_counts_as_seen() {
    let world = one(1, 1);
    world.observe_fault("a", Fault::Fail(Transient), 200);
    let yard = Yard::new(world);
    yard.until("failed", |yard| yard.store.status("a").failures == 1)
        .await;
    let ready = yard.store.ready("a").unwrap();
    assert_eq!(
        (ready.status, ready.reason),
        (ConditionStatus::Unknown, Reason::EngineUnavailable)
    );
    yard.until("seen", |yard| {
        yard.store.status("a").observed_generation == Generation(1)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn events_poll_and_resync_do_not_defeat_the_backoff() {
    let world = one(1, 1);
    world.observe_fault("a", Fault::Fail(Transient), 10_000);
    let yard = Yard::new(world);
    // The status cannot be saved at first, so the key stays dirty and every poll reports it.
    yard.store.saves_broken.store(true, SeqCst);
    for round in 0..3600 {
        yard.event(WorldEvent::Key(key("a")));
        yard.ringer.as_ref().unwrap().ring();
        pass_time(1.0).await;
        if round == 1800 {
            yard.store.saves_broken.store(false, SeqCst);
        }
    }
    // Full jitter halves the delays: about 20 attempts to reach the cap and 24 more in the hour.
    assert!(yard.world.passes("a") < 60, "{}", yard.world.passes("a"));
    assert!(yard.world.passes("a") > 10);
}

#[tokio::test(start_paused = true)]
async fn a_new_generation_or_a_retry_cuts_the_backoff_short() {
    let world = one(1, 1);
    world.observe_fault("a", Fault::Fail(Transient), 1_000);
    let yard = Yard::with(world, quick_backoff(3000, 3000));
    yard.until("failed", |yard| yard.store.status("a").failures == 1)
        .await;
    pass_time(100.0).await;
    assert_eq!(yard.world.passes("a"), 1);
    yard.change("a", 2);
    yard.until("tried again", |yard| yard.store.status("a").failures == 2)
        .await;
    assert_eq!(yard.store.status("a").observed_generation, Generation(2));
    yard.handle.retry("a");
    yard.until("tried again", |yard| yard.store.status("a").failures == 3)
        .await;
    yard.world.state().observe_faults.clear();
    let started = Instant::now();
    yard.handle.retry("a");
    yard.until_ready("a").await;
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn l55_a_panic_in_a_pass_is_a_failure_of_that_object_only() {
    for stage in ["observe", "apply"] {
        let world = World::with(&[("a", Thing::new(1, 0)), ("b", Thing::new(1, 0))]);
        match stage {
            "observe" => world.observe_fault("a", Fault::Panic, 1),
            _ => world.apply_fault("a", Fault::Panic, 1),
        }
        let yard = Yard::with(
            world,
            Settings {
                workers: 1,
                ..settings()
            },
        );
        yard.until("told", |yard| {
            yard.store.ready_reason("a") == Some(Reason::Panicked)
        })
        .await;
        let message = yard.store.ready("a").unwrap().message;
        assert!(
            !message.contains("as scripted"),
            "the text of a panic stays in the log: {message}"
        );
        yard.until_ready("b").await;
        yard.until_ready("a").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_looked_at_again_at_once_and_is_no_failure() {
    let world = one(1, 0);
    world.apply_fault("a", Fault::Fail(Conflict), 10);
    let yard = Yard::new(world);
    let started = Instant::now();
    yard.until_ready("a").await;
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(yard.world.passes("a"), 12);
    assert!(
        yard.store
            .state()
            .events
            .iter()
            .all(|event| event.1 == Reason::Progressing)
    );
}

#[tokio::test(start_paused = true)]
async fn endless_conflicts_are_a_failure() {
    let world = one(1, 0);
    world.apply_fault("a", Fault::Fail(Conflict), 1_000);
    let yard = Yard::with(world, quick_backoff(100, 300));
    yard.until("failed", |yard| yard.store.status("a").failures == 1)
        .await;
    assert_eq!(yard.world.passes("a"), 11);
    pass_time(600.0).await;
    assert!(yard.world.passes("a") < 40);
}

#[tokio::test(start_paused = true)]
async fn a_terminal_failure_waits_for_the_resync_or_a_new_generation() {
    let world = one(1, 0);
    world.apply_fault("a", Fault::Fail(Terminal), 3);
    let yard = Yard::new(world);
    yard.until("failed", |yard| yard.store.status("a").failures == 1)
        .await;
    let status = yard.store.status("a");
    assert_eq!(status.next_attempt_at, None);
    assert_eq!(yard.store.ready_reason("a"), Some(Reason::InvalidSettings));
    for _ in 0..40 {
        yard.event(WorldEvent::Key(key("a")));
        yard.ringer.as_ref().unwrap().ring();
        pass_time(1.0).await;
    }
    assert_eq!(yard.world.passes("a"), 1);
    let writes = (
        yard.store.saves.load(SeqCst),
        yard.store.state().events.len(),
    );
    yard.until("the resync tries", |yard| yard.world.passes("a") == 2)
        .await;
    pass_time(1.0).await;
    assert_eq!(
        writes,
        (
            yard.store.saves.load(SeqCst),
            yard.store.state().events.len()
        ),
        "no news"
    );
    yard.change("a", 1);
    yard.until("the change tries", |yard| yard.world.passes("a") == 3)
        .await;
    yard.until("seen", |yard| {
        yard.store.status("a").observed_generation == Generation(2)
    })
    .await;
    assert_eq!(yard.store.status("a").failures, 1);
    yard.until_ready("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_step_that_hangs_is_cancelled_and_retried() {
    let world = one(1, 0);
    world.apply_fault("a", Fault::Hang, 1);
    let yard = Yard::new(world);
    let started = Instant::now();
    yard.until("failed", |yard| yard.store.status("a").failures == 1)
        .await;
    assert_eq!(started.elapsed().as_secs(), 20);
    assert_eq!(
        yard.store.ready("a").unwrap().message,
        "Advance took longer than 20 s"
    );
    yard.until_ready("a").await;
}

#[tokio::test(start_paused = true)]
async fn an_observation_that_hangs_is_cancelled_and_retried() {
    let world = one(1, 1);
    world.observe_fault("a", Fault::Hang, 1);
    let yard = Yard::new(world);
    let started = Instant::now();
    yard.until("failed", |yard| yard.store.status("a").failures == 1)
        .await;
    assert_eq!(started.elapsed().as_secs(), 60);
    yard.until_ready("a").await;
}

#[tokio::test(start_paused = true)]
async fn a_pass_has_a_deadline_over_all_its_steps() {
    let world = one(100, 0);
    world.apply_fault("a", Fault::Slow(Duration::from_secs(15)), 100);
    let yard = Yard::with(
        world,
        Settings {
            pass_deadline: Duration::from_secs(100),
            ..settings()
        },
    );
    let started = Instant::now();
    yard.until("failed", |yard| yard.store.status("a").failures == 1)
        .await;
    assert_eq!(started.elapsed().as_secs(), 100);
    assert_eq!(
        yard.store.ready("a").unwrap().message,
        "the pass took longer than 100 s"
    );
    assert_eq!(yard.world.actual("a"), 6, "what was done stays done");
    yard.until("it goes on from there", |yard| yard.world.actual("a") > 6)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_delays_but_loses_nothing() {
    let yard = Yard::new(one(1, 0));
    yard.store.saves_broken.store(true, SeqCst);
    yard.until("healed although unsaved", |yard| {
        yard.world.actual("a") == 1
    })
    .await;
    pass_time(30.0).await;
    assert!(yard.world.passes("a") < 20, "backs off");
    yard.store.saves_broken.store(false, SeqCst);
    yard.until_ready("a").await;
}

#[tokio::test(start_paused = true)]
async fn one_failing_object_does_not_hold_up_the_others() {
    let mut things = vec![("bad".to_owned(), Thing::new(1, 0))];
    things.extend((0..50).map(|n| (format!("good{n}"), Thing::new(1, 0))));
    let named: Vec<(&str, Thing)> = things
        .iter()
        .map(|(n, t)| (n.as_str(), t.clone()))
        .collect();
    let world = World::with(&named);
    world.apply_fault("bad", Fault::Hang, 1_000);
    let yard = Yard::with(
        world,
        Settings {
            workers: 2,
            ..settings()
        },
    );
    let started = Instant::now();
    yard.until("the others are ready", |yard| yard.summary().ready == 50)
        .await;
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(yard.world.state().overlaps, 0);
}
