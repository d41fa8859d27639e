//! The same crash points as the unit tests, with a real SIGKILL of a real process.
// Helpers of tests may fail like tests.
#![allow(clippy::unwrap_used)]

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use schema::home::workspace::{Order, WorkspacePath};
use schema::home::{ArchiveOutcome, HomeState, Homes};
use schema::ids::{Timestamp, Uid, UserName};

const DATA_DIR: &str = "AGENTYARD_TEST_DATA_DIR";
const SIGKILL: i32 = 9;

fn alice() -> (UserName, Uid) {
    ("alice".parse().unwrap(), Uid::from("a".repeat(32)))
}

fn deleted_at() -> Timestamp {
    Timestamp::from_secs(1_778_500_000)
}

fn work(data: &Path) -> ArchiveOutcome {
    let homes = Homes::open(data, "instance").unwrap();
    let (name, uid) = alice();
    if !data.join("made").exists() {
        let home = homes.ensure(&name, &uid, None).unwrap();
        home.write_atomic("file", b"content", 0o600).unwrap();
        std::fs::write(data.join("made"), b"").unwrap();
    }
    homes
        .archive(&name, &uid, deleted_at(), None, None)
        .unwrap()
}

#[test]
#[ignore = "the child process of the tests below"]
fn child() {
    work(Path::new(&std::env::var_os(DATA_DIR).unwrap()));
}

fn run_child(data: &Path, fault: &str) -> ExitStatus {
    run("child", data, fault)
}

fn run(child: &str, data: &Path, fault: &str) -> ExitStatus {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            &format!("home_survives_kill::{child}"),
            "--ignored",
        ])
        .env(DATA_DIR, data)
        .env("AGENTYARD_FAULT", fault)
        .output()
        .unwrap()
        .status
}

#[test]
fn l02_killed_at_any_step_and_run_again_it_ends_the_same() {
    for fault in [
        "home.ensure.after_marker",
        "home.ensure.after_home",
        "home.ensure.after_part",
        "home.ensure.after_part:2",
        "home.write.before_rename",
        "home.temporary.linked",
        "home.write.after_rename",
        "home.archive.after_claim",
        "home.archive.after_rename",
        "home.archive.before_release",
        "home.archive.after_release",
    ] {
        let data = tempfile::tempdir().unwrap();
        let status = run_child(data.path(), fault);
        assert_eq!(status.signal(), Some(SIGKILL), "{fault}: {status}");
        let outcome = work(data.path());
        let ArchiveOutcome::Archived { directory, .. } = outcome else {
            panic!("{fault}: {outcome:?}");
        };
        assert_eq!(directory, "alice-20260511T114640Z");
        let archived = data.path().join("archive").join(directory);
        assert_eq!(std::fs::read(archived.join("file")).unwrap(), b"content");
        assert!(archived.join(".agent/workspace").is_dir());
        let homes = Homes::open(data.path(), "instance").unwrap();
        let (name, _) = alice();
        let next = Uid::from("b".repeat(32));
        assert_eq!(homes.state(&name, &next, None).unwrap(), HomeState::Missing);
    }
}

fn restore(data: &Path) -> String {
    let homes = Homes::open(data, "instance").unwrap();
    let archives = homes.archives().unwrap();
    let (name, uid) = alice();
    homes.ensure(&name, &uid, None).unwrap();
    let restored = homes.restore(&archives[0], &name, &uid).unwrap();
    assert_eq!((restored.files, restored.bytes), (1, 7));
    restored.directory
}

#[test]
#[ignore = "the child process of the test below"]
fn restoring_child() {
    restore(Path::new(&std::env::var_os(DATA_DIR).unwrap()));
}

#[test]
fn a_restore_that_is_killed_leaves_all_or_nothing_and_the_next_one_clears_up() {
    for fault in [
        "home.restore.begun",
        "home.restore.copied",
        "home.restore.placed",
    ] {
        let data = tempfile::tempdir().unwrap();
        let homes = Homes::open(data.path(), "instance").unwrap();
        let (name, uid) = alice();
        let home = homes.ensure(&name, &uid, None).unwrap();
        let file = home.write_atomic(".agent/workspace/file", b"content", 0o600);
        file.unwrap();
        homes
            .archive(&name, &uid, deleted_at(), None, None)
            .unwrap();
        let status = run("restoring_child", data.path(), fault);
        assert_eq!(status.signal(), Some(SIGKILL), "{fault}: {status}");
        let workspace = data.path().join("users/alice/.agent/workspace");
        let there = std::fs::read_dir(&workspace).unwrap().count();
        assert_eq!(there, usize::from(fault == "home.restore.placed"));
        let directory = restore(data.path());
        let directories = std::fs::read_dir(&workspace).unwrap();
        for directory in directories.map(|entry| entry.unwrap().path()) {
            let file = std::fs::read(directory.join("file")).unwrap();
            assert_eq!(file, b"content", "{fault}: {directory:?}");
        }
        assert!(workspace.join(directory).exists());
        let restoring = data.path().join("users/.restoring");
        assert_eq!(std::fs::read_dir(restoring).unwrap().count(), 0);
    }
}

/// Replaces one file as an upload, and another as a text.
fn replace(data: &Path) {
    let homes = Homes::open(data, "instance").unwrap();
    let (name, uid) = alice();
    let workspace = homes.workspace_to_change(&name, &uid).unwrap().unwrap();
    let path = |text: &str| text.parse::<WorkspacePath>().unwrap();
    let mut incoming = workspace.incoming().unwrap();
    incoming.write(b"new").unwrap();
    let received = incoming.finish().unwrap();
    let files = [(&path("upload"), &received)];
    workspace.place_all(&path(""), files, true).unwrap();
    workspace.write_text(&path("text"), "new", None).unwrap();
}

#[test]
#[ignore = "the child process of the test below"]
fn replacing_child() {
    replace(Path::new(&std::env::var_os(DATA_DIR).unwrap()));
}

#[test]
fn l44_files_of_a_workspace_are_old_or_new_wherever_their_writer_is_killed() {
    for (fault, uploaded, saved) in [
        ("home.temporary.linked", "old", "old"),
        ("workspace.edit.before_rename", "new", "old"),
        ("home.temporary.linked:2", "new", "old"),
    ] {
        let data = tempfile::tempdir().unwrap();
        let homes = Homes::open(data.path(), "instance").unwrap();
        let (name, uid) = alice();
        homes.ensure(&name, &uid, None).unwrap();
        let workspace = data.path().join("users/alice/.agent/workspace");
        for file in ["upload", "text"] {
            std::fs::write(workspace.join(file), "old").unwrap();
        }
        let status = run("replacing_child", data.path(), fault);
        assert_eq!(status.signal(), Some(SIGKILL), "{fault}: {status}");
        let read = |file| std::fs::read_to_string(workspace.join(file)).unwrap();
        assert_eq!([read("upload"), read("text")], [uploaded, saved], "{fault}");
        // What is left is none of the user's files.
        let open = homes.workspace(&name, &uid).unwrap().unwrap();
        let listing = open.list(
            &"".parse().unwrap(),
            Order::default(),
            "",
            || true,
            |all| 0..all,
        );
        assert_eq!(listing.unwrap().total, 2, "{fault}");
        replace(data.path());
        assert_eq!([read("upload"), read("text")], ["new", "new"], "{fault}");
    }
}

#[test]
fn without_a_fault_the_child_ends_by_itself() {
    let data = tempfile::tempdir().unwrap();
    assert!(run_child(data.path(), "no.such.point").success());
}
