//! A process that is killed at any point of deploying a skill, with a real SIGKILL, and then begins with an observation.
// Helpers of tests may fail like tests.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use crate::support::skills::{Deployer, LIMITS};
use schema::skill_store::digest_tree;

const DATA_DIR: &str = "AGENTYARD_TEST_DATA_DIR";
const SIGKILL: i32 = 9;
const KEPT: [&str; 3] = [
    "pdf-20260101T000000Z",
    "pdf-20260102T000000Z",
    "pdf-20260103T000000Z",
];

/// The user writes into the skill, once.
fn edit(deployer: &Deployer, data: &Path, text: &str) {
    let done = data.join(format!("edited-{text}"));
    if !done.exists() {
        fs::write(deployer.place().join("SKILL.md"), text).unwrap();
        fs::write(done, "").unwrap();
    }
}

/// Deployed, updated, changed by the user and repaired, changed between an observation and its swap, removed.
fn work(data: &Path) {
    let mut deployer = Deployer::open(data);
    deployer.ensure_home();
    let step = |name: &str| !data.join(name).exists();
    let done = |name: &str| fs::write(data.join(name), "").unwrap();
    if step("deployed") {
        deployer.converge(Some("one"), KEPT[0]);
        done("deployed");
    }
    if step("updated") {
        deployer.converge(Some("two"), KEPT[0]);
        done("updated");
    }
    if step("repaired") {
        edit(&deployer, data, "mine");
        deployer.converge(Some("two"), KEPT[0]);
        done("repaired");
    }
    if step("repaired again") {
        edit(&deployer, data, "yours");
        deployer.converge(Some("one"), KEPT[1]);
        done("repaired again");
    }
    if step("outrun") {
        // It is as it was when it was looked at last, for all that is known.
        let known = data.join("edited-late");
        if !known.exists() {
            deployer.late_edit("two", KEPT[2], "late");
            fs::write(known, "").unwrap();
        }
        deployer.converge(Some("two"), KEPT[2]);
        done("outrun");
    }
    deployer.converge(None, KEPT[2]);
}

#[test]
#[ignore = "the child process of the tests below"]
fn child() {
    work(Path::new(&std::env::var_os(DATA_DIR).unwrap()));
}

fn run_child(data: &Path, fault: &str, log: Option<&Path>) -> ExitStatus {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "skills_survive_kill::child", "--ignored"])
        .env(DATA_DIR, data)
        .env("AGENTYARD_FAULT", fault);
    if let Some(log) = log {
        command.env("AGENTYARD_FAULT_LOG", log);
    }
    command.output().unwrap().status
}

/// What lies under the skill's name is a whole version, the user's included, or nothing.
fn assert_whole(data: &Path, fault: &str) {
    let deployer = Deployer::open(data);
    let Ok(tree) = File::open(deployer.place()) else {
        assert!(fs::symlink_metadata(deployer.place()).is_err(), "{fault}");
        return;
    };
    let tree = digest_tree(tree, LIMITS).unwrap().unwrap();
    let text = fs::read_to_string(deployer.place().join("SKILL.md")).unwrap();
    let whole = tree.files == 3
        && match text.as_str() {
            "1" => tree.digest == deployer.digest("one"),
            "22" => tree.digest == deployer.digest("two"),
            theirs => ["mine", "yours", "late"].contains(&theirs),
        };
    assert!(whole, "{fault}: {text}");
}

/// Every path in the user's directory and in staging, with the content of files.
fn end(data: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut todo = vec![data.join("users/alice"), data.join("users/.staging")];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let shown = path.strip_prefix(data).unwrap().display().to_string();
            if path.is_dir() {
                todo.push(path);
                found.insert(shown, String::new());
            } else {
                found.insert(shown, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn l02_killed_at_any_point_of_a_deployment_and_begun_again_it_ends_the_same() {
    // Every point, as often as it is passed, is found by passing them all.
    let whole = tempfile::tempdir().unwrap();
    let log = whole.path().join("log");
    assert!(run_child(whole.path(), "no.such.point", Some(&log)).success());
    let expected = end(whole.path());
    let replaced = "users/alice/.agent/workspace/skills/.replaced";
    for (kept, text) in KEPT.iter().zip(["mine", "yours", "late"]) {
        assert_eq!(expected[&format!("{replaced}/{kept}/SKILL.md")], text);
        assert_eq!(expected[&format!("{replaced}/{kept}/sub/same")], "same");
    }
    assert_eq!(expected.len(), 4 + 3 * 6, "{expected:?}");
    let mut hits: BTreeMap<String, u64> = BTreeMap::new();
    for point in fs::read_to_string(log).unwrap().lines() {
        if point.starts_with("home.skill.") {
            *hits.entry(point.to_owned()).or_default() += 1;
        }
    }
    assert!(hits.len() >= 11, "{hits:?}");
    for (point, times) in hits {
        for nth in 1..=times {
            let fault = format!("{point}:{nth}");
            let data = tempfile::tempdir().unwrap();
            let status = run_child(data.path(), &fault, None);
            assert_eq!(status.signal(), Some(SIGKILL), "{fault}: {status}");
            assert_whole(data.path(), &fault);
            // And once more at the same point.
            let status = run_child(data.path(), &point, None);
            assert!(status.success() || status.signal() == Some(SIGKILL));
            assert_whole(data.path(), &fault);
            work(data.path());
            assert_eq!(end(data.path()), expected, "{fault}");
        }
    }
}
