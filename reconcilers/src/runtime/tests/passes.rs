//! Passes that succeed: progress, verification, silence, pauses, dry runs.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::ThreadId;
use std::time::Duration;

use schema::condition::{Condition, ConditionStatus, ConditionType, Reason, find};
use schema::ids::Generation;

use super::support::{Fault, MemoryStore, Thing, World, Yard, key, pass_time, settings};
use crate::runtime::controller::{Settings, WorldEvent};
use crate::runtime::{ErrorClass, Requeue};

#[tokio::test(start_paused = true)]
async fn progress_is_verified_by_an_empty_plan_before_it_is_ready() {
    let yard = Yard::new(World::with(&[("a", Thing::new(3, 0))]));
    yard.until_ready("a").await;
    assert_eq!(yard.world.actual("a"), 3);
    assert_eq!(yard.world.passes("a"), 2, "one that did, one that verified");
    let status = yard.store.status("a");
    assert_eq!(status.observed_generation, Generation(1));
    assert_eq!(status.conditions[0].observed_generation, Generation(1));
    let actions: Vec<String> = yard
        .store
        .state()
        .events
        .iter()
        .map(|e| e.2.clone())
        .collect();
    assert_eq!(actions, ["Advance", "Advance", "Advance"]);
}

#[tokio::test(start_paused = true)]
async fn l65_what_takes_long_to_plan_is_planned_beside_the_async_threads() {
    let threads = Arc::default();
    let mut thing = Thing::new(3, 0);
    thing.long = Some(Arc::clone(&threads));
    let yard = Yard::new(World::with(&[("a", thing)]));
    yard.until_ready("a").await;
    yard.handle.dry_run("a").await.unwrap();
    let threads: HashSet<ThreadId> = threads.lock().unwrap().clone();
    assert!(!threads.is_empty());
    assert!(!threads.contains(&std::thread::current().id()));
}

#[tokio::test(start_paused = true)]
async fn l59_ready_is_not_believed_while_something_is_to_do() {
    let mut thing = Thing::new(1, 0);
    thing.claims = vec![Condition::ready(Reason::Running, "so I say")];
    let yard = Yard::new(World::with(&[("a", thing)]));
    yard.until_ready("a").await;
    let said: Vec<(ConditionStatus, Reason)> = yard
        .store
        .state()
        .history
        .iter()
        .map(|status| (status.conditions[0].status, status.conditions[0].reason))
        .collect();
    assert_eq!(
        said,
        [
            (ConditionStatus::False, Reason::Progressing),
            (ConditionStatus::True, Reason::Running),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn l58_a_hundred_passes_over_what_is_as_desired_write_nothing() {
    let yard = Yard::new(World::with(&[
        ("a", Thing::new(3, 0)),
        ("b", Thing::new(1, 1)),
    ]));
    yard.until_ready("a").await;
    yard.until_ready("b").await;
    let before = (
        yard.store.saves.load(SeqCst),
        yard.store.state().events.len(),
        yard.world.state().applied.len(),
    );
    let passes = yard.world.passes("a");
    while yard.world.passes("a") < passes + 100 {
        yard.event(WorldEvent::Key(key("a")));
        yard.event(WorldEvent::Key(key("b")));
        pass_time(1.0).await;
    }
    let after = (
        yard.store.saves.load(SeqCst),
        yard.store.state().events.len(),
        yard.world.state().applied.len(),
    );
    assert_eq!(before, after);
    assert_eq!(yard.store.loads.load(SeqCst), 0, "and ask nothing");
    assert_eq!(yard.store.bulk_loads.load(SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn l60_a_full_pass_over_ten_thousand_objects_asks_the_store_nothing_per_object() {
    let world = World::default();
    for n in 0..10_000 {
        world
            .state()
            .things
            .insert(key(&format!("k{n}")), Thing::new(1, 1));
    }
    let store = MemoryStore::new(&world);
    // A first leader brings everything to rest; a second one takes over and finds nothing to do.
    let first = Yard::on(world.clone(), store.clone(), settings());
    first
        .until("all ready", |yard| yard.summary().ready == 10_000)
        .await;
    drop(first);
    let saves = store.saves.load(SeqCst);
    let observed = world.state().observed.len();
    let second = Yard::on(world, store, settings());
    second
        .until("a full pass", |yard| {
            yard.world.state().observed.len() >= observed + 10_000
        })
        .await;
    pass_time(1.0).await;
    assert_eq!(second.store.saves.load(SeqCst), saves);
    assert_eq!(second.store.loads.load(SeqCst), 0);
    assert_eq!(
        second.store.bulk_loads.load(SeqCst),
        2,
        "one per leadership"
    );
    let summary = second.summary();
    assert_eq!(
        (summary.objects, summary.ready, summary.not_ready),
        (10_000, 10_000, 0)
    );
    assert_eq!(
        (
            summary.live.queue_depth,
            summary.live.delayed,
            summary.live.in_flight
        ),
        (0, 0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn l58_steps_that_never_last_stall_the_object() {
    let mut thing = Thing::new(1, 0);
    thing.contested = true;
    let yard = Yard::new(World::with(&[("a", thing)]));
    yard.until("stalled", |yard| {
        find(&yard.store.status("a").conditions, ConditionType::Stalled).is_some()
    })
    .await;
    assert_eq!(yard.world.state().applied.len(), 6);
    let status = yard.store.status("a");
    let stalled = find(&status.conditions, ConditionType::Stalled).unwrap();
    assert_eq!(
        (stalled.status, stalled.reason),
        (ConditionStatus::True, Reason::NoProgress)
    );
    assert_eq!(yard.store.ready_reason("a"), Some(Reason::NoProgress));
    assert_eq!(status.failures, 1);
    assert!(status.next_attempt_at.is_some());
    // From now on with growing delays, whatever happens in the world meanwhile.
    for _ in 0..600 {
        yard.event(WorldEvent::Key(key("a")));
        pass_time(1.0).await;
    }
    assert!(yard.world.state().applied.len() < 20);
    // Once the other party gives up, it recovers by itself.
    yard.world
        .state()
        .things
        .get_mut(&key("a"))
        .unwrap()
        .contested = false;
    yard.until_ready("a").await;
    let status = yard.store.status("a");
    assert!(find(&status.conditions, ConditionType::Stalled).is_none());
    assert_eq!((status.failures, status.next_attempt_at), (0, None));
}

#[tokio::test(start_paused = true)]
async fn a_change_is_seen_at_once_and_passes_by_the_resync() {
    let world = World::with(&[("a", Thing::new(1, 1))]);
    let yard = Yard::new(world);
    yard.until_ready("a").await;
    let started = tokio::time::Instant::now();
    yard.change("a", 2);
    yard.until_ready("a").await;
    assert!(started.elapsed() < Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn a_planned_second_look_comes_without_any_event() {
    let mut thing = Thing::new(1, 1);
    thing.requeue = Requeue::After(Duration::from_secs(5));
    let yard = Yard::with(
        World::with(&[("a", thing)]),
        Settings {
            resync: Some(Duration::from_secs(3600)),
            ..settings()
        },
    );
    pass_time(51.0).await;
    assert_eq!(yard.world.passes("a"), 11);
    assert_eq!(yard.summary().live.delayed, 1);
}

#[tokio::test(start_paused = true)]
async fn a_retry_of_all_observes_afresh_as_one_of_an_object_does() {
    let yard = Yard::new(World::with(&[("a", Thing::new(1, 1))]));
    yard.until_ready("a").await;
    let before = yard.world.passes("a");
    yard.handle.retry("a");
    yard.handle.retry_all();
    assert_eq!(yard.world.state().refreshed, [Some(key("a")), None]);
    yard.until("observed again", |yard| yard.world.passes("a") > before)
        .await;
    // A full pass of its own accord trusts what is known.
    yard.handle.wake();
    assert_eq!(yard.world.state().refreshed.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_retry_of_all_does_not_wait_for_the_back_off_of_what_fails() {
    let world = World::with(&[("a", Thing::new(1, 0))]);
    world.observe_fault("a", Fault::Fail(ErrorClass::Transient), 50);
    let yard = Yard::new(world);
    pass_time(400.0).await;
    let failures = yard.store.status("a").failures;
    assert!(failures > 3, "{failures}");
    yard.handle.retry_all();
    pass_time(0.5).await;
    assert!(yard.store.status("a").failures > failures);
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_waits_after_a_failure_says_when_it_tries_again() {
    let mut thing = Thing::new(1, 1);
    thing.requeue = Requeue::After(Duration::from_secs(40));
    thing.claims = vec![Condition::not_ready(Reason::CrashLoop, "3 times in a row")];
    let yard = Yard::new(World::with(&[("a", thing)]));
    yard.until("a status", |yard| {
        yard.store.ready_reason("a") == Some(Reason::CrashLoop)
    })
    .await;
    let status = yard.store.status("a");
    let said_at = status.conditions[0].last_transition_at;
    let left = status.next_attempt_at.unwrap().since(said_at);
    assert_eq!(left, Duration::from_secs(40));
    assert_eq!(status.failures, 0, "no pass has failed");
    // Looked at again before that, it is the same attempt; who waits for something else tries nothing.
    let said = Condition::not_ready(Reason::NotReady, "not yet");
    yard.world.state().things.get_mut(&key("a")).unwrap().claims = vec![said];
    yard.handle.retry("a");
    yard.until("nothing is tried", |yard| {
        yard.store.status("a").next_attempt_at.is_none()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn standstill_is_one_event_until_the_object_is_ready() {
    let mut thing = Thing::new(1, 1);
    thing.claims = vec![Condition::not_ready(Reason::ImageMissing, "no image")];
    let yard = Yard::new(World::with(&[("a", thing)]));
    let say = async |condition: Condition| {
        let reason = condition.reason;
        yard.world.state().things.get_mut(&key("a")).unwrap().claims = vec![condition];
        yard.handle.retry("a");
        yard.until("a status", |yard| {
            yard.store.ready_reason("a") == Some(reason)
        })
        .await;
    };
    let not_ready = |reason| Condition::not_ready(reason, "why");
    say(not_ready(Reason::ImageMissing)).await;
    for _ in 0..3 {
        say(not_ready(Reason::ImagePulling)).await;
        say(not_ready(Reason::ImagePullFailed)).await;
    }
    say(Condition::ready(Reason::Running, "")).await;
    say(not_ready(Reason::ImagePullFailed)).await;
    let events = yard.store.state().events.clone();
    let reasons: Vec<Reason> = events.iter().map(|event| event.1).collect();
    let failed = Reason::ImagePullFailed;
    assert_eq!(reasons, [Reason::ImageMissing, failed, failed]);
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_is_forgotten() {
    let yard = Yard::new(World::with(&[
        ("a", Thing::new(1, 1)),
        ("b", Thing::new(1, 1)),
    ]));
    yard.until_ready("a").await;
    yard.until_ready("b").await;
    assert_eq!(yard.summary().objects, 2);
    yard.world.state().things.remove(&key("a"));
    yard.until("forgotten", |yard| yard.summary().objects == 1)
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_status_that_was_not_accepted_is_asked_for_before_the_next_save() {
    let yard = Yard::new(World::with(&[("a", Thing::new(1, 1))]));
    yard.store.refusing.store(true, SeqCst);
    yard.until("refused", |yard| yard.store.saves.load(SeqCst) > 0)
        .await;
    yard.store.refusing.store(false, SeqCst);
    yard.until_ready("a").await;
    assert!(yard.store.loads.load(SeqCst) > 0);
    assert_eq!(yard.store.status("a").failures, 0, "not a failure");
}

#[tokio::test(start_paused = true)]
async fn a_paused_object_is_left_alone_until_it_is_resumed() {
    let yard = Yard::new(World::with(&[
        ("a", Thing::new(1, 1)),
        ("b", Thing::new(1, 1)),
    ]));
    yard.until_ready("a").await;
    yard.store.state().pauses.keys.insert(key("a"));
    yard.ringer.as_ref().unwrap().ring();
    yard.until("told", |yard| {
        find(&yard.store.status("a").conditions, ConditionType::Paused).is_some()
    })
    .await;
    let paused = yard.store.status("a");
    assert_eq!(paused.conditions.len(), 2);
    let ready = find(&paused.conditions, ConditionType::Ready).unwrap();
    assert_eq!(ready.status, ConditionStatus::Unknown, "nobody observes it");
    assert_eq!(ready.reason, Reason::PausedByOperator);
    let last = "not observed while paused; last observed: ";
    assert!(ready.message.starts_with(last), "{}", ready.message);
    let passes = yard.world.passes("a");
    let saves = yard.store.saves.load(SeqCst);
    yard.change("a", 5);
    yard.change("b", 5);
    yard.until_ready("b").await;
    pass_time(600.0).await;
    yard.event(WorldEvent::Key(key("a")));
    pass_time(1.0).await;
    assert_eq!(yard.world.passes("a"), passes);
    assert_eq!(
        yard.store.status("a").observed_generation,
        Generation(1),
        "not seen"
    );
    assert_eq!(yard.summary().live.paused_objects, 1);
    assert!(
        yard.store.saves.load(SeqCst) <= saves + 2,
        "only what b said"
    );
    yard.store.state().pauses.keys.clear();
    yard.ringer.as_ref().unwrap().ring();
    let started = tokio::time::Instant::now();
    yard.until_ready("a").await;
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(yard.store.status("a").conditions.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_paused_reconciler_does_nothing_until_it_is_resumed() {
    let yard = Yard::new(World::with(&[("a", Thing::new(1, 1))]));
    yard.until_ready("a").await;
    yard.store.state().pauses.all = true;
    pass_time(3.0).await;
    assert!(yard.summary().paused);
    let passes = yard.world.passes("a");
    yard.change("a", 2);
    yard.event(WorldEvent::Key(key("a")));
    pass_time(1000.0).await;
    assert_eq!(yard.world.passes("a"), passes);
    yard.store.state().pauses.all = false;
    yard.until_ready("a").await;
    assert_eq!(yard.world.actual("a"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_tells_the_plan_and_does_nothing() {
    let world = World::with(&[("a", Thing::new(2, 0))]);
    world.observe_fault("a", Fault::Fail(ErrorClass::Terminal), 1);
    let yard = Yard::new(world);
    yard.until("parked", |yard| yard.store.status("a").failures == 1)
        .await;
    let dry_run = yard.handle.dry_run("a").await.unwrap().unwrap();
    assert_eq!(dry_run.actions, ["Advance { to: 1 }", "Advance { to: 2 }"]);
    assert_eq!(dry_run.generation, Generation(1));
    assert_eq!(dry_run.conditions[0].reason, Reason::Progressing);
    assert_eq!(yard.world.actual("a"), 0);
    assert_eq!(yard.handle.dry_run("nobody").await, Ok(None));
    for (fault, reason) in [
        (
            Fault::Fail(ErrorClass::Transient),
            Reason::EngineUnavailable,
        ),
        (Fault::Panic, Reason::Panicked),
        (Fault::Hang, Reason::Retrying),
    ] {
        yard.world.observe_fault("a", fault, 1);
        let error = yard.handle.dry_run("a").await.unwrap_err();
        assert_eq!(error.reason, reason);
    }
}

#[tokio::test(start_paused = true)]
async fn each_save_is_told_to_those_who_wait() {
    let yard = Yard::new(World::with(&[("a", Thing::new(1, 1))]));
    let mut tick = yard.tick.subscribe();
    tick.changed().await.unwrap();
    assert_eq!(yard.store.status("a").observed_generation, Generation(1));
}

#[tokio::test(start_paused = true)]
async fn observed_generation_never_moves_back() {
    let yard = Yard::new(World::with(&[("a", Thing::new(1, 1))]));
    yard.change("a", 2);
    yard.change("a", 3);
    yard.until_ready("a").await;
    // A stale read of the desired state; the store asserts that it is not written.
    yard.world
        .state()
        .things
        .get_mut(&key("a"))
        .unwrap()
        .generation = 1;
    yard.event(WorldEvent::Key(key("a")));
    pass_time(5.0).await;
    assert_eq!(yard.store.status("a").observed_generation, Generation(3));
}

#[tokio::test(start_paused = true)]
async fn a_change_somebody_waits_for_never_waits_for_a_change_of_many() {
    let names: Vec<String> = (0..8).map(|n| format!("many-{n}")).collect();
    let things: Vec<(&str, Thing)> = names
        .iter()
        .map(|name| (&**name, Thing::new(1, 1)))
        .chain([("user", Thing::new(1, 1))])
        .collect();
    let yard = Yard::new(World::with(&things));
    for (name, _) in &things {
        yard.until_ready(name).await;
    }
    for name in &names {
        yard.world.state().things.get_mut(&key(name)).unwrap().bulk = true;
        let slow = Fault::Slow(Duration::from_secs(60));
        yard.world.apply_fault(name, slow, 1);
        yard.change(name, 2);
    }
    pass_time(5.0).await;
    assert_eq!(yard.summary().live.in_flight, settings().workers - 1);
    yard.change("user", 2);
    pass_time(0.1).await;
    yard.until_ready("user").await;
    assert_eq!(yard.summary().live.in_flight, settings().workers - 1);
    assert_eq!(
        yard.world.actual("many-0"),
        1,
        "its step still takes its time"
    );
    for name in &names {
        yard.until_ready(name).await;
    }
}
