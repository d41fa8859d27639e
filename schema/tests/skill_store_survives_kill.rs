//! A process that is killed at any point of taking a skill in, or of removing one, with a real SIGKILL.
// Helpers of tests may fail like tests.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use schema::ids::{SkillName, Timestamp};
use schema::skill_store::{Imported, SkillStore, TreeLimits, digest_tree};

const DATA_DIR: &str = "AGENTYARD_TEST_DATA_DIR";
const SIGKILL: i32 = 9;
const EVER: Timestamp = Timestamp::from_millis(i64::MAX);

fn name() -> SkillName {
    "pdf-forms".parse().unwrap()
}

fn import(data: &Path) -> Imported {
    let package = data.join("package");
    if !package.exists() {
        fs::create_dir_all(package.join("scripts")).unwrap();
        fs::write(package.join("SKILL.md"), "---\nname: pdf-forms\n---\n").unwrap();
        fs::write(package.join("scripts/run"), "x").unwrap();
    }
    let store = SkillStore::open(data).unwrap();
    let package = OwnedFd::from(File::open(package).unwrap());
    store.import_dir(package, &name()).unwrap()
}

/// Takes the same in twice by different ways, and removes it.
fn work(data: &Path) {
    let store = SkillStore::open(data).unwrap();
    let imported = import(data);
    let download = data.join("download");
    let file = File::create(&download).unwrap();
    assert!(
        store
            .write_zip(&imported.name, &imported.digest, file)
            .unwrap()
    );
    let file = File::open(&download).unwrap();
    assert!(store.import_zip(file, None).unwrap().already_there);
    assert!(
        store
            .remove_unused(&imported.name, &imported.digest, EVER)
            .unwrap()
    );
}

#[test]
#[ignore = "the child process of the tests below"]
fn child() {
    work(Path::new(&std::env::var_os(DATA_DIR).unwrap()));
}

fn run_child(data: &Path, fault: &str, log: Option<&Path>) -> ExitStatus {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "skill_store_survives_kill::child", "--ignored"])
        .env(DATA_DIR, data)
        .env("AGENTYARD_FAULT", fault);
    if let Some(log) = log {
        command.env("AGENTYARD_FAULT_LOG", log);
    }
    command.output().unwrap().status
}

/// Names of the store and what is left in it besides skills.
fn entries(data: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(data.join("skills")).unwrap();
    listed.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn l02_killed_at_any_point_nothing_is_half_there_and_the_next_time_it_works() {
    // Every point, as often as it is passed, is found by passing them all.
    let whole = tempfile::tempdir().unwrap();
    let log = whole.path().join("log");
    assert!(run_child(whole.path(), "no.such.point", Some(&log)).success());
    assert!(entries(whole.path()).is_empty());
    let mut hits: BTreeMap<String, u64> = BTreeMap::new();
    for point in fs::read_to_string(log).unwrap().lines() {
        if point.starts_with("skill_store.") {
            *hits.entry(point.to_owned()).or_default() += 1;
        }
    }
    assert!(hits.len() >= 12, "{hits:?}");
    for (point, times) in hits {
        for nth in 1..=times {
            let fault = format!("{point}:{nth}");
            let data = tempfile::tempdir().unwrap();
            let status = run_child(data.path(), &fault, None);
            assert_eq!(status.signal(), Some(SIGKILL), "{fault}: {status}");
            let store = SkillStore::open(data.path()).unwrap();
            store.clear_leftovers().unwrap();
            for name in store.names().unwrap() {
                assert!(!store.digests(&name).unwrap().is_empty(), "{fault}");
                for (digest, _) in store.digests(&name).unwrap() {
                    let dir = store.open_tree(&name, &digest).unwrap().unwrap();
                    let tree = digest_tree(dir, TreeLimits::LARGEST).unwrap().unwrap();
                    assert_eq!(tree.digest, digest, "{fault}: complete if it is there");
                }
            }
            let imported = import(data.path());
            assert_eq!(
                entries(data.path()),
                [data.path().join("skills/pdf-forms")],
                "{fault}"
            );
            assert_eq!(imported.files, 2);
            work(data.path());
            assert!(entries(data.path()).is_empty(), "{fault}");
        }
    }
}
