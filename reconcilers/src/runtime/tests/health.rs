//! L55, L57: what is dead, degraded or has panicked shows in the summary.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use schema::condition::Reason;
use schema::live::Trigger;

use super::support::*;
use crate::runtime::ErrorClass;
use crate::runtime::controller::{Settings, WorldEvent};

#[tokio::test(start_paused = true)]
async fn l55_panics_are_counted_and_told_until_a_pass_succeeds() {
    let world = World::with(&[("a", Thing::new(1, 1))]);
    world.observe_fault("a", Fault::Panic, 2);
    let yard = Yard::new(world);
    yard.until("panicked", |yard| {
        yard.store.ready_reason("a") == Some(Reason::Panicked)
    })
    .await;
    let summary = yard.summary();
    assert_eq!((summary.live.panicked, summary.live.panics), (1, 1));
    assert!(summary.live.last_panic_at.is_some());
    assert_eq!(
        yard.handle.next_reconciliation("a").unwrap().by,
        Trigger::Timer
    );
    yard.until_ready("a").await;
    let summary = yard.summary();
    assert_eq!((summary.live.panicked, summary.live.panics), (0, 2));
    assert_eq!(
        yard.handle.next_reconciliation("a").unwrap().by,
        Trigger::Resync
    );
}

#[tokio::test(start_paused = true)]
async fn l55_hung_workers_are_a_stuck_reconciler_while_keys_wait() {
    let world = World::with(&[("a", Thing::new(1, 1)), ("b", Thing::new(1, 1))]);
    world.observe_fault("a", Fault::Hang, 1);
    let day = Duration::from_secs(24 * 3600);
    let settings = Settings {
        workers: 1,
        observe_timeout: day,
        pass_deadline: day,
        ..settings()
    };
    let yard = Yard::with(world, settings);
    pass_time(100.0).await;
    assert_eq!(yard.summary().live.stuck_since, None, "slow is not stuck");
    pass_time(100.0).await;
    let summary = yard.summary();
    assert!(summary.live.stuck_since.is_some(), "{summary:?}");
    assert!(summary.live.stuck.unwrap().contains("keys wait"));
    yard.store.state().pauses.all = true;
    pass_time(3.0).await;
    assert_eq!(yard.summary().live.stuck_since, None, "paused is not stuck");
    assert_eq!(
        yard.handle.next_reconciliation("b").unwrap().by,
        Trigger::Resume
    );
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_store_is_no_stuck_reconciler() {
    for from_the_start in [true, false] {
        let world = World::with(&[("a", Thing::new(1, 1))]);
        let yard = Yard::new(world);
        if !from_the_start {
            yard.until_ready("a").await;
        }
        yard.store.broken.store(true, SeqCst);
        yard.world.state().keys_faults.extend(std::iter::repeat_n(
            Fault::Fail(ErrorClass::Transient),
            10_000,
        ));
        yard.event(WorldEvent::Key(key("a")));
        for minute in 0..30 {
            pass_time(60.0).await;
            let summary = yard.summary();
            assert!(summary.live.store_error.is_some());
            assert_eq!(summary.live.stuck, None, "after {minute} minutes");
        }
        // The store is back; the listing fails for some reason of its own.
        yard.store.broken.store(false, SeqCst);
        pass_time(10.0).await;
        assert_eq!(yard.summary().live.stuck, None);
        pass_time(600.0).await;
        assert!(yard.summary().live.stuck.unwrap().contains("listed"));
    }
}

#[tokio::test(start_paused = true)]
async fn l57_lost_events_show_until_they_are_heard_again() {
    let yard = Yard::new(World::with(&[("a", Thing::new(1, 1))]));
    yard.until_ready("a").await;
    for (event, lost) in [
        (WorldEvent::Lost, true),
        (WorldEvent::Reconnected, false),
        (WorldEvent::Lost, true),
        (WorldEvent::Key(key("a")), false),
    ] {
        yard.event(event);
        pass_time(0.1).await;
        assert_eq!(yard.summary().live.events_lost, lost);
    }
}
