//! Measuring a user's directory, against a bare walk through the same tree.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use schema::home::{Homes, WORKSPACE_DIR, Walked};
use schema::ids::Uid;

use crate::seconds;

const DIRECTORIES: usize = 100;
const FILES: usize = 500;

pub fn run() {
    let dir = tempfile::tempdir().unwrap();
    let homes = Homes::open(dir.path(), "bench").unwrap();
    let name = "ada".parse().unwrap();
    let home = homes.ensure(&name, &Uid::random(), None).unwrap();
    let top = dir.path().join("users/ada");
    for directory in 0..DIRECTORIES {
        let directory = top.join(WORKSPACE_DIR).join(directory.to_string());
        fs::create_dir(&directory).unwrap();
        for file in 0..FILES {
            fs::write(directory.join(file.to_string()), b"x").unwrap();
        }
    }
    println!(
        "usage: a directory of {} entries",
        DIRECTORIES * (FILES + 1) + 2
    );
    let bare = best(|| walk(&top));
    let ours = best(|| match home.measure(|| true).unwrap() {
        Walked::Done(measured) => measured.entries,
        walked => panic!("{walked:?}"),
    });
    let entries = (DIRECTORIES * (FILES + 1) + 2) as f64;
    println!(
        "  bare walk {}, measured {}   ratio {:.2}, {:.1} µs an entry",
        seconds(bare),
        seconds(ours),
        ours.as_secs_f64() / bare.as_secs_f64(),
        ours.as_secs_f64() * 1e6 / entries
    );
}

fn best(work: impl Fn() -> u64) -> Duration {
    let times = (0..5).map(|_| {
        let begin = Instant::now();
        assert_eq!(work(), (DIRECTORIES * (FILES + 1) + 2) as u64);
        begin.elapsed()
    });
    times.min().unwrap()
}

fn walk(top: &Path) -> u64 {
    let entries = fs::read_dir(top).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let is_dir = fs::symlink_metadata(&path).unwrap().is_dir();
        1 + if is_dir { walk(&path) } else { 0 }
    });
    entries.sum()
}
