//! The queue by itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use schema::ids::{Generation, Timestamp};
use tokio::time::{Instant, timeout};

use crate::runtime::backoff::{Jitter, Policy};
use crate::runtime::queue::{Depth, Job, Queue, Verdict, Wake};

const NOW: Timestamp = Timestamp::from_secs(500);

fn queue() -> Queue<&'static str> {
    Queue::new(Policy::default(), Jitter::fixed(1.0))
}

fn dirty(generation: i64) -> Wake {
    Wake::Generation {
        generation: Generation(generation),
        bulk: false,
    }
}

fn bulk(generation: i64) -> Wake {
    Wake::Generation {
        generation: Generation(generation),
        bulk: true,
    }
}

async fn none(queue: &Queue<&'static str>, seconds: u64) -> bool {
    timeout(Duration::from_secs(seconds), queue.take())
        .await
        .is_err()
}

/// Fails instead of waiting for ever.
async fn job(queue: &Queue<&'static str>) -> Job<&'static str> {
    let job = timeout(Duration::from_secs(86_400), queue.take()).await;
    job.expect("a key within a day")
}

async fn take(queue: &Queue<&'static str>) -> &'static str {
    job(queue).await.key
}

/// Lets the key fail once, and returns the delay in seconds.
async fn fail(queue: &Queue<&'static str>, key: &'static str) -> u64 {
    assert_eq!(take(queue).await, key);
    let attempt = queue.fail(&key, NOW);
    queue.done(&key, Verdict::BackOff(attempt), None);
    (attempt.delay.as_secs_f64() + 0.001) as u64
}

#[tokio::test(start_paused = true)]
async fn wakeups_of_one_key_are_one_pass() {
    let queue = queue();
    queue.add(&"a", Wake::Event);
    queue.add(&"a", Wake::Resync);
    queue.add(&"a", dirty(1));
    assert_eq!(queue.depth().ready, 1);
    assert_eq!(take(&queue).await, "a");
    assert!(none(&queue, 10).await);
    queue.done(&"a", Verdict::Settled, None);
    assert!(none(&queue, 10).await);
    assert_eq!(queue.slots(), 0, "an idle key has no slot");
}

#[tokio::test(start_paused = true)]
async fn oldest_wait_is_that_of_a_key_that_could_run() {
    let queue = queue();
    assert_eq!(queue.oldest_wait(), None);
    let second = Duration::from_secs(1);
    queue.add(&"a", Wake::Resync);
    tokio::time::advance(second).await;
    queue.add(&"a", dirty(1));
    queue.add(&"b", Wake::Event);
    tokio::time::advance(second).await;
    assert_eq!(queue.oldest_wait(), Some(second * 2));
    assert_eq!(take(&queue).await, "a");
    assert_eq!(queue.oldest_wait(), Some(second));
    queue.done(&"a", Verdict::After(second * 9), None);
    assert_eq!(take(&queue).await, "b");
    assert_eq!(queue.oldest_wait(), None, "a timer is no wait");
}

#[tokio::test(start_paused = true)]
async fn l35_a_key_woken_in_flight_runs_again_after_and_never_beside() {
    let queue = queue();
    queue.add(&"a", Wake::Event);
    assert_eq!(take(&queue).await, "a");
    queue.add(&"a", Wake::Event);
    assert!(none(&queue, 10).await, "not beside");
    queue.done(&"a", Verdict::Settled, None);
    assert_eq!(take(&queue).await, "a");
    queue.done(&"a", Verdict::Settled, None);
    assert!(none(&queue, 10).await);
}

#[tokio::test(start_paused = true)]
async fn a_generation_that_is_being_tried_does_not_run_again() {
    let queue = queue();
    queue.add(&"a", dirty(4));
    let first = job(&queue).await;
    assert_eq!(first.generation, Generation(4));
    assert!(!queue.add(&"a", dirty(4)), "the poll says what is known");
    assert!(queue.add(&"a", dirty(5)));
    queue.done(&"a", Verdict::Settled, Some(Generation(4)));
    assert_eq!(job(&queue).await.generation, Generation(5));
}

#[tokio::test(start_paused = true)]
async fn of_two_times_the_earlier_wins() {
    let queue = queue();
    queue.add(&"a", Wake::Event);
    take(&queue).await;
    queue.done(&"a", Verdict::After(Duration::from_secs(60)), None);
    assert!(none(&queue, 20).await);
    queue.add(&"a", Wake::Resync);
    let started = Instant::now();
    assert_eq!(take(&queue).await, "a");
    assert_eq!(started.elapsed(), Duration::ZERO);
    queue.done(&"a", Verdict::Settled, None);
    assert!(none(&queue, 100).await, "the later time is forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_planned_look_comes_at_its_time_and_never_spins() {
    let queue = queue();
    queue.add(&"a", Wake::Event);
    for (wanted, waited) in [(5_000, 5_000), (0, 100)] {
        take(&queue).await;
        queue.done(&"a", Verdict::After(Duration::from_millis(wanted)), None);
        let started = Instant::now();
        assert_eq!(take(&queue).await, "a");
        assert_eq!(started.elapsed().as_millis(), waited);
        queue.done(&"a", Verdict::Again, None);
    }
}

#[tokio::test(start_paused = true)]
async fn an_endless_delay_does_not_overflow() {
    let queue = queue();
    queue.add(&"a", Wake::Event);
    take(&queue).await;
    queue.done(&"a", Verdict::After(Duration::MAX), None);
    assert_eq!(
        queue.depth(),
        Depth {
            ready: 0,
            delayed: 1,
            in_flight: 0
        }
    );
}

#[tokio::test(start_paused = true)]
async fn changes_come_before_the_resync_in_order() {
    let queue = queue();
    for key in ["r1", "r2", "c2"] {
        queue.add(&key, Wake::Resync);
    }
    queue.add(&"c1", dirty(1));
    queue.add(&"c2", dirty(1));
    let mut order = Vec::new();
    for _ in 0..4 {
        order.push(take(&queue).await);
    }
    assert_eq!(order, ["c1", "c2", "r1", "r2"]);
}

#[tokio::test(start_paused = true)]
async fn many_changes_do_not_starve_the_resync() {
    let queue = queue();
    queue.add(&"resync", Wake::Resync);
    let mut position = None;
    for turn in 0..50 {
        queue.add(&"busy", Wake::Event);
        let key = take(&queue).await;
        queue.done(&key, Verdict::Settled, None);
        if key == "resync" {
            position = Some(turn);
        }
    }
    assert!(position.is_some_and(|turn| turn < 10), "{position:?}");
}

#[tokio::test(start_paused = true)]
async fn first_of_a_burst_is_done_first() {
    const KEYS: usize = 40;
    const PASSES: usize = 6;
    let queue = Queue::new(Policy::default(), Jitter::fixed(1.0));
    for key in 0..KEYS {
        queue.add(&key, dirty(1));
    }
    let mut done = [0; KEYS];
    let mut ended = Vec::new();
    for pass in 1..=KEYS * PASSES {
        tokio::time::advance(Duration::from_millis(10)).await;
        let job = timeout(Duration::from_secs(60), queue.take())
            .await
            .unwrap();
        done[job.key] += 1;
        let verdict = match done[job.key] {
            PASSES => {
                ended.push((job.key, pass));
                Verdict::Settled
            }
            // A start is waited for.
            3 => Verdict::After(Duration::from_millis(100)),
            _ => Verdict::Progressed,
        };
        queue.done(&job.key, verdict, None);
    }
    let keys: Vec<usize> = ended.iter().map(|(key, _)| *key).collect();
    assert!(
        keys[..KEYS / 2].iter().all(|key| *key < KEYS * 6 / 10),
        "{ended:?}"
    );
    let (first, median) = (ended[0].1, ended[KEYS / 2].1);
    assert!(
        first <= PASSES * PASSES && median * 10 <= KEYS * PASSES * 6,
        "{ended:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn key_that_goes_on_for_ever_starves_no_other() {
    let queue = queue();
    queue.add(&"endless", dirty(1));
    for _ in 0..1000 {
        let key = take(&queue).await;
        queue.done(&key, Verdict::Progressed, None);
    }
    queue.add(&"new", dirty(1));
    let mut passes = 0;
    while take(&queue).await != "new" {
        queue.done(&"endless", Verdict::Progressed, None);
        passes += 1;
    }
    assert!(passes <= 1, "{passes}");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_many_comes_after_what_somebody_waits_for_and_before_the_resync() {
    let queue = queue();
    queue.add(&"resync", Wake::Resync);
    for key in ["b1", "b2"] {
        queue.add(&key, bulk(2));
    }
    queue.add(&"user", dirty(1));
    let mut order = Vec::new();
    for _ in 0..4 {
        order.push(take(&queue).await);
    }
    assert_eq!(order, ["user", "b1", "b2", "resync"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_change_of_many_brings_with_it_stays_in_its_lane() {
    let queue = queue();
    queue.add(&"a", bulk(2));
    assert_eq!(take(&queue).await, "a");
    queue.add(&"a", Wake::Event);
    queue.done(&"a", Verdict::Progressed, Some(Generation(2)));
    queue.add(&"user", Wake::Event);
    assert_eq!(take(&queue).await, "user");
    assert_eq!(take(&queue).await, "a");
    queue.done(&"a", Verdict::After(Duration::from_secs(1)), None);
    queue.add(&"a", Wake::Event);
    queue.add(&"other", Wake::Event);
    assert_eq!(take(&queue).await, "other");
    assert_eq!(take(&queue).await, "a");
    // Settled, it is a key like any other.
    queue.done(&"a", Verdict::Settled, None);
    queue.add(&"b", bulk(1));
    queue.add(&"a", Wake::Event);
    assert_eq!(take(&queue).await, "a");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_one_by_itself_takes_it_out_of_the_change_of_many() {
    for wake in [dirty(3), Wake::Operator] {
        let queue = queue();
        for key in ["a", "b"] {
            queue.add(&key, bulk(2));
        }
        queue.add(&"b", wake);
        assert_eq!(take(&queue).await, "b", "{wake:?}");
        assert_eq!(take(&queue).await, "a", "{wake:?}");
        assert_eq!(queue.depth().ready, 0);
        // And it stays there, whatever follows.
        queue.done(&"b", Verdict::Progressed, None);
        queue.add(&"c", bulk(1));
        queue.add(&"b", bulk(9));
        assert_eq!(take(&queue).await, "b", "{wake:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_worker_is_kept_for_what_somebody_waits_for() {
    let queue = queue().with_workers(3);
    for key in ["b1", "b2", "b3"] {
        queue.add(&key, bulk(1));
    }
    queue.add(&"r1", Wake::Resync);
    assert_eq!(take(&queue).await, "b1");
    assert_eq!(take(&queue).await, "b2");
    assert!(none(&queue, 100).await, "the third worker is kept");
    queue.add(&"user", dirty(1));
    assert_eq!(take(&queue).await, "user");
    assert!(none(&queue, 100).await);
    // A worker that waits hears of the place that became free.
    let (next, ()) = tokio::join!(take(&queue), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        queue.done(&"b1", Verdict::Settled, None);
    });
    assert_eq!(next, "b3");
    queue.done(&"b2", Verdict::Settled, None);
    assert_eq!(take(&queue).await, "r1");
    // A key that was raised in flight gives its place back all the same.
    queue.add(&"b3", dirty(5));
    for key in ["b3", "r1", "user"] {
        queue.done(&key, Verdict::Settled, None);
    }
    assert_eq!(take(&queue).await, "b3");
    for key in ["x", "y", "z"] {
        queue.add(&key, bulk(1));
    }
    assert_eq!((take(&queue).await, take(&queue).await), ("x", "y"));
    assert!(none(&queue, 100).await);
}

#[tokio::test(start_paused = true)]
async fn a_single_worker_does_everything() {
    let queue = queue().with_workers(1);
    queue.add(&"a", bulk(1));
    assert_eq!(take(&queue).await, "a");
}

#[tokio::test(start_paused = true)]
async fn neither_of_the_lower_lanes_is_starved() {
    let queue = queue().with_workers(4);
    queue.add(&"resync", Wake::Resync);
    let mut positions = HashMap::new();
    let mut generation = 0;
    for turn in 0..200 {
        generation += 1;
        queue.add(&"busy", Wake::Event);
        queue.add(&"many", bulk(generation));
        let key = take(&queue).await;
        queue.done(&key, Verdict::Settled, None);
        positions.entry(key).or_insert(turn);
    }
    assert!(positions["many"] < 10, "{positions:?}");
    assert!(positions["resync"] < 80, "{positions:?}");
}

#[tokio::test(start_paused = true)]
async fn backoff_grows_to_its_cap_and_success_resets_it() {
    let queue = queue();
    queue.add(&"a", Wake::Event);
    let mut delays = Vec::new();
    for _ in 0..10 {
        delays.push(fail(&queue, "a").await);
    }
    assert_eq!(delays, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]);
    take(&queue).await;
    queue.done(&"a", Verdict::Progressed, None);
    assert_eq!(fail(&queue, "a").await, 1);
    take(&queue).await;
    queue.done(&"a", Verdict::Settled, None);
    assert_eq!(queue.slots(), 0);
}

#[tokio::test(start_paused = true)]
async fn looking_again_at_once_does_not_reset_the_backoff() {
    let queue = queue();
    queue.add(&"a", Wake::Event);
    assert_eq!(fail(&queue, "a").await, 1);
    take(&queue).await;
    queue.done(&"a", Verdict::Again, None);
    assert_eq!(fail(&queue, "a").await, 2);
}

#[tokio::test(start_paused = true)]
async fn only_a_new_generation_or_an_operator_cuts_a_backoff_short() {
    let queue = queue();
    queue.add(&"a", dirty(3));
    fail(&queue, "a").await;
    for wake in [Wake::Event, Wake::Resync, dirty(3), dirty(2)] {
        assert!(!queue.add(&"a", wake), "{wake:?}");
        assert_eq!(queue.depth().ready, 0, "{wake:?}");
    }
    assert_eq!(
        queue.next_attempt_at(&"a"),
        Some(NOW.plus(Duration::from_secs(1)))
    );
    assert!(queue.add(&"a", dirty(4)));
    assert_eq!(queue.next_attempt_at(&"a"), None);
    let started = Instant::now();
    assert_eq!(fail(&queue, "a").await, 2, "the counter goes on");
    assert!(queue.add(&"a", Wake::Operator));
    assert_eq!(fail(&queue, "a").await, 4);
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn what_happens_during_a_failing_pass_is_judged_the_same() {
    for (wake, cuts) in [
        (Wake::Event, false),
        (Wake::Resync, false),
        (dirty(1), false),
        (dirty(2), true),
        (Wake::Operator, true),
    ] {
        let queue = queue();
        queue.add(&"a", dirty(1));
        take(&queue).await;
        queue.add(&"a", wake);
        let attempt = queue.fail(&"a", NOW);
        queue.done(&"a", Verdict::BackOff(attempt), Some(Generation(1)));
        assert_eq!(queue.depth().ready == 1, cuts, "{wake:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_parked_key_waits_for_generation_resync_or_operator() {
    for (wake, opens) in [
        (Wake::Event, false),
        (dirty(1), false),
        (dirty(2), true),
        (Wake::Resync, true),
        (Wake::Operator, true),
    ] {
        let queue = queue();
        queue.add(&"a", dirty(1));
        take(&queue).await;
        queue.done(&"a", Verdict::Park, Some(Generation(1)));
        assert!(none(&queue, 1000).await);
        assert_eq!(queue.add(&"a", wake), opens, "{wake:?}");
        assert_eq!(none(&queue, 10).await, !opens, "{wake:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_timer_is_watched_while_other_workers_are_busy() {
    // Two wait for a far timer; one of them hears of a nearer one and then takes a long job.
    let queue = Arc::new(queue());
    queue.add(&"far", Wake::Event);
    take(&queue).await;
    queue.done(&"far", Verdict::After(Duration::from_secs(1000)), None);
    let worker = || {
        let queue = queue.clone();
        async move { job(&queue).await }
    };
    let near = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        queue.add(&"near", Wake::Event);
        let key = queue.take().await.key;
        queue.done(&key, Verdict::After(Duration::from_secs(5)), None);
        queue.add(&"long", Wake::Event);
    };
    let started = Instant::now();
    let (first, second, ()) = tokio::join!(worker(), worker(), near);
    let mut keys = [first.key, second.key];
    keys.sort_unstable();
    assert_eq!(keys, ["long", "near"]);
    assert_eq!(started.elapsed().as_secs(), 6);
}

#[tokio::test(start_paused = true)]
async fn l60_ten_thousand_keys_go_through_in_no_time() {
    let queue: Queue<String> = Queue::new(Policy::default(), Jitter::seeded(1));
    let keys: Vec<String> = (0..10_000).map(|n| format!("key-{n}")).collect();
    for key in &keys {
        queue.add(key, Wake::Resync);
        queue.add(key, Wake::Event);
    }
    assert_eq!(queue.depth().ready, 10_000);
    for _ in &keys {
        let Job { key, .. } = queue.take().await;
        queue.done(&key, Verdict::Settled, None);
    }
    assert_eq!((queue.slots(), queue.depth()), (0, Depth::default()));
}

#[derive(Debug, Clone)]
struct Plan {
    key: usize,
    at: u64,
    wake: Wake,
}

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let wake = prop_oneof![
        Just(Wake::Event),
        Just(Wake::Resync),
        Just(Wake::Operator),
        (1..6i64).prop_map(dirty),
        (1..6i64).prop_map(bulk),
    ];
    let plan = (0..4usize, 0..3_000u64, wake).prop_map(|(key, at, wake)| Plan { key, at, wake });
    prop::collection::vec(plan, 1..60)
}

#[derive(Default)]
struct Seen {
    running: HashMap<usize, u32>,
    started: HashMap<usize, Vec<Instant>>,
    most: u32,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever wakes when, and however passes end: no key runs twice at once, every wakeup that was
    /// accepted is followed by a pass that began after it, and nothing is left over.
    #[test]
    fn no_key_runs_twice_at_once_and_no_wakeup_is_lost(
        mut plans in plans(),
        verdicts in prop::collection::vec((0..6u8, 0..400u64), 1..20),
    ) {
        plans.sort_by_key(|plan| plan.at);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time().start_paused(true).build().unwrap();
        let (seen, accepted) = runtime.block_on(run(plans, verdicts));
        prop_assert_eq!(seen.most, 1);
        for (key, at) in accepted {
            let passes = &seen.started[&key];
            prop_assert!(passes.iter().any(|started| *started >= at), "a wakeup of {} was lost", key);
        }
    }
}

async fn run(plans: Vec<Plan>, verdicts: Vec<(u8, u64)>) -> (Seen, Vec<(usize, Instant)>) {
    let queue = Queue::new(
        Policy {
            initial: Duration::from_millis(50),
            cap: Duration::from_secs(2),
        },
        Jitter::seeded(3),
    )
    .with_workers(3);
    let seen = std::sync::Mutex::new(Seen::default());
    let turn = std::sync::atomic::AtomicUsize::new(0);
    let work = || async {
        loop {
            let job = queue.take().await;
            {
                let mut seen = seen.lock().unwrap();
                seen.started
                    .entry(job.key)
                    .or_default()
                    .push(Instant::now());
                let running = seen.running.entry(job.key).or_default();
                *running += 1;
                seen.most = seen
                    .most
                    .max(seen.running.values().copied().max().unwrap_or(0));
            }
            let turn = turn.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            // Late passes all settle, so that the run ends.
            let (verdict, millis) = verdicts.get(turn).copied().unwrap_or((0, 1));
            tokio::time::sleep(Duration::from_millis(millis)).await;
            *seen.lock().unwrap().running.entry(job.key).or_default() -= 1;
            let verdict = match verdict {
                0 => Verdict::Settled,
                1 => Verdict::After(Duration::from_millis(millis)),
                2 => Verdict::Progressed,
                3 => Verdict::Again,
                4 => Verdict::BackOff(queue.fail(&job.key, NOW)),
                _ => Verdict::Park,
            };
            queue.done(&job.key, verdict, None);
        }
    };
    let feed = async {
        let began = Instant::now();
        let mut accepted = Vec::new();
        for plan in plans {
            tokio::time::sleep_until(began + Duration::from_millis(plan.at)).await;
            // An event during a pass that then fails or parks is covered by the retry or dropped with
            // the park; only wakeups that open everything are promised a pass of their own.
            let promised = matches!(plan.wake, Wake::Operator);
            if queue.add(&plan.key, plan.wake) && promised {
                accepted.push((plan.key, Instant::now()));
            }
        }
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(queue.depth(), Depth::default(), "something is left over");
        accepted
    };
    let accepted = tokio::select! {
        accepted = feed => accepted,
        () = async { tokio::join!(work(), work(), work()); } => unreachable!(),
    };
    (seen.into_inner().unwrap(), accepted)
}
