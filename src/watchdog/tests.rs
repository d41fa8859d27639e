use std::sync::Mutex;
use std::thread::sleep;

use super::*;

fn worker(parks: u64, busy: u64) -> Worker {
    Worker {
        parks,
        busy: Duration::from_millis(busy),
    }
}

fn sample(answers: u64, workers: &[Worker]) -> Sample {
    let workers = workers.to_vec();
    Sample { answers, workers }
}

#[test]
fn runtime_that_answers_is_never_stalled() {
    let mut judge = Judge::new(3);
    for tick in 0..100 {
        // One is idle, one goes on without ever waiting.
        let seen = sample(tick, &[worker(1, 0), worker(8, tick)]);
        assert_eq!(judge.judge(&seen), Verdict::Answers);
    }
}

#[test]
fn runtime_without_an_answer_is_stalled_at_the_limit() {
    let mut judge = Judge::new(60);
    let seen = sample(7, &[worker(1, 0)]);
    for tick in 0..60 {
        let expected = match tick {
            10 => Verdict::Late,
            _ => Verdict::Answers,
        };
        assert_eq!(judge.judge(&seen), expected, "{tick}");
    }
    let stall = Stall {
        ticks: 60,
        runtime: true,
        workers: Vec::new(),
    };
    assert_eq!(judge.judge(&seen), Verdict::Stalled(stall));
}

#[test]
fn one_worker_that_does_not_return_is_a_stall() {
    let mut judge = Judge::new(3);
    for tick in 0..3 {
        let seen = sample(tick, &[worker(9, 1), worker(8, 5)]);
        assert_eq!(judge.judge(&seen), Verdict::Answers);
    }
    let stall = Stall {
        ticks: 3,
        runtime: false,
        workers: vec![1],
    };
    let seen = sample(3, &[worker(11, 1), worker(8, 5)]);
    assert_eq!(judge.judge(&seen), Verdict::Stalled(stall));
}

#[test]
fn late_answer_starts_the_count_again() {
    let mut judge = Judge::new(60);
    judge.judge(&sample(0, &[]));
    for round in 0..5 {
        let stuck = sample(round, &[]);
        let late = (0..50).filter(|_| judge.judge(&stuck) == Verdict::Late);
        assert_eq!(late.count(), 1);
        let answer = judge.judge(&sample(round + 1, &[]));
        assert_eq!(answer, Verdict::Recovered(50));
    }
}

#[test]
fn counters_tell_a_blocked_worker_from_an_idle_one() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let mut probes = Probes::new(runtime.handle().clone());
    let mut judge = Judge::new(u32::MAX);
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    let mut tick = || {
        sleep(Duration::from_millis(50));
        judge.judge(&probes.sample());
        let stuck = judge.workers.iter().filter(|ticks| **ticks >= 2);
        (stuck.count(), judge.runtime >= 2)
    };
    let mut ticks = |expected| {
        let seen = (0..40).map(|_| tick()).find(|seen| *seen == expected);
        assert_eq!(seen, Some(expected));
    };
    ticks((0, false));
    for stuck in 1..=2 {
        let gate = Arc::clone(&gate);
        drop(runtime.handle().spawn(async move { drop(gate.lock()) }));
        ticks((stuck, stuck == 2));
    }
    drop(closed);
    ticks((0, false));
}

#[test]
fn hanging_log_does_not_hold_up_the_watchdog() {
    let (reader, full) = channel::<()>();
    log(move || {
        let _ = full.recv();
    });
    drop(reader);
}
