//! Many at once.

use std::sync::atomic::{AtomicBool, Ordering};

use super::raw_zip::zip;
use super::*;
use crate::clock::{Clock, SystemClock};

#[test]
fn what_was_taken_in_is_never_removed_for_its_age_before() {
    const ROUNDS: usize = 600;
    let yard = Yard::new();
    let packages: Vec<Vec<u8>> = (0..3)
        .map(|n| zip(&[Raw::file("a", format!("{n}")), Raw::file("b", "")]))
        .collect();
    let done = AtomicBool::new(false);
    let removed = std::thread::scope(|scope| {
        let collectors: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut removed = 0;
                    while !done.load(Ordering::SeqCst) {
                        for name in yard.store.names().unwrap() {
                            for (digest, when) in yard.store.digests(&name).unwrap() {
                                // As old as it was just now, so what is taken in from here on is younger.
                                let gone = yard.store.remove_unused(&name, &digest, when);
                                removed += usize::from(gone.unwrap());
                            }
                        }
                        yard.store.clear_leftovers().unwrap();
                    }
                    removed
                })
            })
            .collect();
        let importers: Vec<_> = (0..3)
            .map(|n: usize| {
                let (yard, packages) = (&yard, &packages);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        yard.import(&packages[(n + round) % packages.len()])
                            .unwrap();
                    }
                })
            })
            .collect();
        for importer in importers {
            importer.join().unwrap();
        }
        done.store(true, Ordering::SeqCst);
        collectors
            .into_iter()
            .map(|it| it.join().unwrap())
            .sum::<usize>()
    });
    assert!(removed > 0);
    yard.store.clear_leftovers().unwrap();
    let left = fs::read_dir(yard.skills()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|entry| entry == "skill"), "{left:?}");
}

#[test]
fn a_digest_is_there_as_long_as_it_is_young() {
    const ROUNDS: usize = 1000;
    let yard = Yard::new();
    let packages: Vec<Vec<u8>> = (0..2)
        .map(|n| zip(&[Raw::file("a", format!("{n}")), Raw::file("b", "")]))
        .collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    // What is older than the grace period, which is short here.
                    let limit = SystemClock.now().minus(std::time::Duration::from_secs(2));
                    for name in yard.store.names().unwrap() {
                        for (digest, _) in yard.store.digests(&name).unwrap() {
                            yard.store.remove_unused(&name, &digest, limit).unwrap();
                        }
                    }
                }
            });
        }
        let importers: Vec<_> = (0..2)
            .map(|n: usize| {
                let (yard, packages) = (&yard, &packages);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let begun = SystemClock.steady();
                        let imported = yard.import(&packages[(n + round) % 2]).unwrap();
                        let there = yard
                            .store
                            .contains(&imported.name, &imported.digest)
                            .unwrap();
                        let passed = SystemClock.steady() - begun;
                        assert!(there || passed.as_secs() >= 2, "{round}");
                    }
                })
            })
            .collect();
        for importer in importers {
            importer.join().unwrap();
        }
        done.store(true, Ordering::SeqCst);
    });
}
