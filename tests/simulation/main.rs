//! A deterministic simulation of the reconcilers: the real runtime and the real reconcilers on an
//! engine, a database and a data directory in memory, in virtual time, driven by a seed.
//!
//! Users write desired state, people have their hands on the engine, calls are slow, fail, hang or
//! lose their answers, events are lost, late or doubled, the engine goes away, and the service crashes
//! at any await. [`checks`] judges every moment, [`end`] the end. A failing run prints its seed and
//! what happened; `AGENTYARD_SEED=<seed>` repeats it exactly.

// Test code, although not every function bears the test attribute.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::print_stderr)]

mod chance;
mod chaos;
mod checks;
mod creation;
mod directory;
mod driver;
mod end;
mod files;
mod hands;
mod model;
mod report;
mod run;
mod service;
mod skills;
mod world;

use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use report::Outcome;

/// Seeds of the long run, unless `AGENTYARD_SEEDS=<first>-<last>` names a part of them.
const MANY_SEEDS: RangeInclusive<u64> = 1..=10_000;
/// Seeds of an ordinary run: together they do all of [`EXERCISED`].
const CHOSEN: &[u64] = &[
    3, 4, 11, 19, 20, 24, 25, 33, 48, 50, 56, 72, 81, 84, 91, 93, 96, 104, 109, 110, 113, 127, 149,
    151, 152, 153, 157, 160, 167, 178, 179, 184, 186, 214, 216, 219, 233, 235, 246, 250, 263, 274,
    282, 293, 299, 301, 304, 305, 308, 323, 333, 335, 343, 344, 349, 367, 373, 375, 385, 387, 394,
    395, 423, 2041, 2094, 2129, 2157, 2172, 2182, 2185, 2189, 10762, 10948,
];
/// Failing runs after which no more are tried.
const ENOUGH: usize = 3;

/// What the seeds together must have done; a simulation that does nothing finds nothing.
const EXERCISED: &[&str] = &[
    "adapter installed",
    "binding",
    "delete skill",
    "group",
    "hand on skill",
    "member",
    "own directory",
    "skill being removed",
    "skill conflict",
    "skills ready",
    "upload",
    "upload tried",
    "change in steps",
    "change paused",
    "process hangs",
    "unresponsive",
    "cancel pull",
    "cancel rollout",
    "moved",
    "pause rollout",
    "pull",
    "remove image",
    "resume rollout",
    "roll back",
    "roll out",
    "source fails",
    "answer lost",
    "by hand",
    "configuration written",
    "configure",
    "crash",
    "crash loop",
    "create",
    "delete",
    "disable",
    "disk full",
    "engine fails",
    "engine hangs",
    "engine trouble",
    "event late",
    "event lost",
    "event twice",
    "file written",
    "files changed",
    "foreign",
    "limits",
    "name being removed",
    "name reused",
    "orphan",
    "pause",
    "pause reconciler",
    "process ends",
    "purge",
    "ready",
    "replacement failed",
    "restart",
    "save",
    "short-lived replacement",
    "start",
    "start refused",
    "stop",
    "stopped",
    "store fails",
    "store loses the answer",
    "takeover",
];

fn long() -> bool {
    std::env::var_os("AGENTYARD_TEST_LONG").is_some_and(|value| value != "0" && !value.is_empty())
}

/// Runs seeds on all cores until `run` breaks.
fn on_all_cores(
    seeds: impl IntoIterator<Item = u64, IntoIter: Send>,
    run: impl Fn(u64) -> ControlFlow<()> + Sync,
) {
    let seeds = Mutex::new(seeds.into_iter().fuse());
    let broken = AtomicBool::new(false);
    let next = || {
        let seed = seeds.lock().unwrap().next();
        seed.filter(|_| !broken.load(Ordering::Relaxed))
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(seed) = next() {
                    if run(seed).is_break() {
                        broken.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
}

/// Seeds that this run tries.
fn seeds_to_run() -> Vec<u64> {
    match std::env::var("AGENTYARD_SEEDS") {
        Ok(range) => {
            let bounds = range.split_once('-');
            let bounds = bounds.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
            let (first, last) = bounds.expect("AGENTYARD_SEEDS is <first>-<last>");
            (first..=last).collect()
        }
        Err(_) if long() => MANY_SEEDS.collect(),
        Err(_) => CHOSEN.to_vec(),
    }
}

/// Runs seeds; returns the failures, and how often each thing happened.
fn run_all(seeds: Vec<u64>) -> (Vec<Outcome>, BTreeMap<&'static str, u64>) {
    let failures = Mutex::new(Vec::new());
    let tally = Mutex::new(BTreeMap::new());
    on_all_cores(seeds, |seed| {
        let outcome = run::run(seed, false);
        for (what, times) in &outcome.trace.tally {
            *tally.lock().unwrap().entry(*what).or_default() += times;
        }
        let mut failures = failures.lock().unwrap();
        if outcome.violation.is_some() {
            failures.push(outcome);
        }
        match failures.len() < ENOUGH {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    (failures.into_inner().unwrap(), tally.into_inner().unwrap())
}

#[test]
fn seeds() {
    if let Ok(seed) = std::env::var("AGENTYARD_SEED") {
        let outcome = run::run(seed.parse().expect("AGENTYARD_SEED is a number"), true);
        eprintln!("{}", outcome.report());
        assert_eq!(outcome.violation, None);
        return;
    }
    let (failures, tally) = run_all(seeds_to_run());
    for failure in &failures {
        eprintln!("{}\n", failure.report());
    }
    let seeds: Vec<u64> = failures.iter().map(|failure| failure.seed).collect();
    assert!(failures.is_empty(), "broken by seeds {seeds:?}");
    eprintln!("{tally:?}");
    let idle: Vec<_> = EXERCISED
        .iter()
        .filter(|what| !tally.contains_key(*what))
        .collect();
    assert!(idle.is_empty(), "never happened: {idle:?}");
}

#[test]
fn a_seed_means_the_same_run_every_time() {
    for seed in 1..=if long() { 12 } else { 4 } {
        let (first, second) = (run::run(seed, true), run::run(seed, true));
        let pairs = first.trace.lines().zip(second.trace.lines());
        if let Some((number, (one, other))) =
            pairs.enumerate().find(|(_, (one, other))| one != other)
        {
            panic!("seed {seed} goes two ways at line {number}:\n{one}\n{other}");
        }
        assert_eq!(first.trace.hash(), second.trace.hash(), "seed {seed}");
    }
}

#[test]
fn different_seeds_are_different_runs() {
    let hashes: std::collections::BTreeSet<u64> = (1..=8)
        .map(|seed| run::run(seed, false).trace.hash())
        .collect();
    assert_eq!(hashes.len(), 8);
}
