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
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use report::Outcome;

/// Seeds of an ordinary run.
const SEEDS: u64 = 300;
/// Seeds of the long run.
const MANY_SEEDS: u64 = 10_000;
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

/// Runs seeds on all cores, until one says that it is enough.
fn on_all_cores(count: u64, run: impl Fn(u64) -> ControlFlow<()> + Sync) {
    let next = AtomicU64::new(1);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > count || run(seed).is_break() {
                        next.store(count + 1, Ordering::Relaxed);
                        return;
                    }
                }
            });
        }
    });
}

/// Runs seeds; gives back the failures, and how often what happened.
fn run_all(count: u64) -> (Vec<Outcome>, BTreeMap<&'static str, u64>) {
    let failures = Mutex::new(Vec::new());
    let tally = Mutex::new(BTreeMap::new());
    on_all_cores(count, |seed| {
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
    let (failures, tally) = run_all(if long() { MANY_SEEDS } else { SEEDS });
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
    for seed in 1..=12 {
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
