//! L55, L57: what is dead, deaf or has panicked shows in the summary.

use std::time::Duration;

use schema::condition::Reason;

use super::support::*;
use crate::runtime::controller::{Settings, WorldEvent};
use crate::runtime::summary::LookBy;

#[tokio::test(start_paused = true)]
async fn l55_panics_are_counted_and_told_until_a_pass_succeeds() {
    let world = World::with(&[("a", Thing::new(1, 1))]);
    world.observe_fault("a", Fault::Panic, 2);
    let rig = Rig::new(world);
    rig.until("panicked", |rig| {
        rig.store.ready_reason("a") == Some(Reason::Panicked)
    })
    .await;
    let summary = rig.summary();
    assert_eq!((summary.panicked, summary.panics), (1, 1));
    assert!(summary.last_panic_at.is_some());
    assert_eq!(rig.handle.next_look("a").unwrap().by, LookBy::Timer);
    rig.until_ready("a").await;
    let summary = rig.summary();
    assert_eq!((summary.panicked, summary.panics), (0, 2));
    assert_eq!(rig.handle.next_look("a").unwrap().by, LookBy::Resync);
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
    let rig = Rig::with(world, settings);
    pass_time(100.0).await;
    assert_eq!(rig.summary().stuck_since, None, "slow is not stuck");
    pass_time(100.0).await;
    let summary = rig.summary();
    assert!(summary.stuck_since.is_some(), "{summary:?}");
    assert!(summary.stuck.unwrap().contains("keys wait"));
    rig.store.state().pauses.all = true;
    pass_time(3.0).await;
    assert_eq!(rig.summary().stuck_since, None, "paused is not stuck");
    assert_eq!(rig.handle.next_look("b").unwrap().by, LookBy::Resume);
}

#[tokio::test(start_paused = true)]
async fn l57_lost_events_show_until_they_are_heard_again() {
    let rig = Rig::new(World::with(&[("a", Thing::new(1, 1))]));
    rig.until_ready("a").await;
    for (event, lost) in [
        (WorldEvent::Lost, true),
        (WorldEvent::Reconnected, false),
        (WorldEvent::Lost, true),
        (WorldEvent::Key(key("a")), false),
    ] {
        rig.event(event);
        pass_time(0.1).await;
        assert_eq!(rig.summary().events_lost, lost);
    }
}
