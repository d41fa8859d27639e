//! Trees of agents: their content, their looks, and what they may do to whoever looks.

use std::os::unix::fs::symlink;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode};

use super::*;
use crate::clock::{Clock, SystemClock};

const LIMITS: TreeLimits = TreeLimits {
    files: 100,
    bytes: 1 << 20,
};

/// What is done, how, and whether the content is another then.
type Edit = (&'static str, fn(&Path), bool);

/// What is planted, and how; `false` when that is not possible here.
type Hostile = (&'static str, Box<dyn Fn(&Path) -> bool>);

fn tree() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for path in ["a/b/c", "d"] {
        fs::create_dir_all(dir.path().join(path)).unwrap();
        fs::write(dir.path().join(path).join("file"), path).unwrap();
    }
    dir
}

fn both(dir: &Path) -> (Option<Tree>, Option<TreeStamp>) {
    let dir = open(dir);
    (
        digest_tree(&dir, LIMITS).unwrap(),
        stamp_tree(&dir, LIMITS).unwrap(),
    )
}

#[test]
fn a_stamp_changes_with_every_edit_and_else_stays() {
    let edits: [Edit; 10] = [
        (
            "content of the same length",
            |top| fs::write(top.join("d/file"), "e").unwrap(),
            true,
        ),
        (
            "other content",
            |top| fs::write(top.join("d/file"), "longer").unwrap(),
            true,
        ),
        (
            "executable",
            |top| {
                fs::set_permissions(top.join("d/file"), fs::Permissions::from_mode(0o755)).unwrap()
            },
            true,
        ),
        (
            "renamed",
            |top| fs::rename(top.join("d/file"), top.join("d/other")).unwrap(),
            true,
        ),
        (
            "a directory renamed",
            |top| fs::rename(top.join("d"), top.join("e")).unwrap(),
            true,
        ),
        (
            "a new file",
            |top| fs::write(top.join("a/new"), "").unwrap(),
            true,
        ),
        (
            "gone",
            |top| fs::remove_file(top.join("a/b/c/file")).unwrap(),
            true,
        ),
        (
            "an empty directory",
            |top| fs::create_dir(top.join("a/new")).unwrap(),
            false,
        ),
        (
            "the same written again",
            |top| {
                fs::write(top.join("copy"), "d").unwrap();
                fs::rename(top.join("copy"), top.join("d/file")).unwrap();
            },
            false,
        ),
        (
            "permissions of a directory",
            |top| fs::set_permissions(top.join("d"), fs::Permissions::from_mode(0o700)).unwrap(),
            false,
        ),
    ];
    for (what, edit, content_differs) in edits {
        let dir = tree();
        let (content, stamp) = both(dir.path());
        assert!(content.is_some() && stamp.is_some());
        assert_eq!(both(dir.path()), (content.clone(), stamp.clone()), "{what}");
        // Times are no finer than the clock of the kernel.
        std::thread::sleep(Duration::from_millis(10));
        edit(dir.path());
        let (content_now, stamp_now) = both(dir.path());
        assert_eq!(content_now != content, content_differs, "{what}");
        assert!(stamp_now.is_some() && stamp_now != stamp, "{what}");
    }
    let (content, stamp) = both(tree().path());
    let (other_content, other_stamp) = both(tree().path());
    assert_eq!(content, other_content);
    assert_ne!(stamp, other_stamp, "a copy is another");
}

#[test]
fn l25_hostile_trees_are_no_trees_at_once() {
    let node = |top: &Path, kind, device| {
        let made = rustix::fs::mknodat(CWD, top.join("a/node"), kind, Mode::RUSR, device);
        // A device only if this is root.
        made.is_ok()
    };
    let limit = |n: u64| {
        move |top: &Path| {
            for n in 0..n {
                fs::write(top.join(format!("a/{n}")), "").unwrap();
            }
            true
        }
    };
    let cases: Vec<Hostile> = vec![
        (
            "a link",
            Box::new(|top| symlink("file", top.join("a/link")).is_ok()),
        ),
        (
            "a link to a directory above",
            Box::new(|top| symlink("..", top.join("a/link")).is_ok()),
        ),
        (
            "a link to itself",
            Box::new(|top| symlink("link", top.join("a/link")).is_ok()),
        ),
        (
            "a link out",
            Box::new(|top| symlink("/", top.join("a/link")).is_ok()),
        ),
        ("a fifo", Box::new(move |top| node(top, FileType::Fifo, 0))),
        (
            "a socket",
            Box::new(move |top| node(top, FileType::Socket, 0)),
        ),
        (
            "a device",
            Box::new(move |top| node(top, FileType::CharacterDevice, rustix::fs::makedev(1, 5))),
        ),
        (
            "1 TiB of nothing",
            Box::new(|top| {
                File::create(top.join("a/sparse"))
                    .unwrap()
                    .set_len(1 << 40)
                    .is_ok()
            }),
        ),
        (
            "one byte too many",
            Box::new(|top| fs::write(top.join("a/more"), vec![0; (1 << 20) - 5]).is_ok()),
        ),
        ("too many files", Box::new(limit(99))),
        ("far too many files", Box::new(limit(20_000))),
        (
            "too many directories",
            Box::new(|top| (0..3_201).all(|n| fs::create_dir(top.join(format!("a/{n}"))).is_ok())),
        ),
        (
            "33 levels",
            Box::new(|top| fs::create_dir_all(top.join("x/".repeat(33))).is_ok()),
        ),
        (
            "a long path",
            Box::new(|top| {
                let name = "x".repeat(250);
                fs::create_dir_all(top.join(format!("{name}/{name}/{name}/{name}/{name}"))).is_ok()
            }),
        ),
    ];
    for (what, make) in cases {
        let dir = tree();
        if !make(dir.path()) {
            continue;
        }
        let begun = SystemClock.steady();
        assert_eq!(both(dir.path()), (None, None), "{what}");
        let passed = SystemClock.steady() - begun;
        assert!(passed < Duration::from_secs(1), "{what}: {passed:?}");
    }
    let dir = tree();
    limit(98)(dir.path());
    let (content, stamp) = both(dir.path());
    assert!(
        content.is_some() && stamp.is_some(),
        "just as many as may be"
    );
    assert_eq!(content.unwrap().files, 100);
}

#[test]
fn a_name_that_is_no_text_is_another_tree() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tree();
    let (content, _) = both(dir.path());
    fs::write(dir.path().join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
    let (other, stamp) = both(dir.path());
    assert!(other.is_some() && other != content && stamp.is_some());
}

#[test]
fn l25_a_tree_that_changes_all_the_time_leads_nowhere() {
    let dir = tree();
    let top = dir.path().to_owned();
    let secret = tempfile::tempdir().unwrap();
    fs::write(secret.path().join("file"), "secret").unwrap();
    let original = both(&top).0.unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let outside = secret.path();
        let (top, stop) = (&top, &stop);
        scope.spawn(move || {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                fs::rename(top.join("d"), top.join("moved")).unwrap();
                symlink(outside, top.join("d")).unwrap();
                fs::remove_file(top.join("d")).unwrap();
                rustix::fs::mknodat(CWD, top.join("d"), FileType::Fifo, Mode::RUSR, 0).unwrap();
                fs::remove_file(top.join("d")).unwrap();
                fs::rename(top.join("moved"), top.join("d")).unwrap();
            }
        });
        let seen: Vec<_> = (0..3000).map(|_| digest_tree(open(top), LIMITS)).collect();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        seen
    });
    let found: Vec<Tree> = seen.into_iter().filter_map(Result::unwrap).collect();
    assert_eq!(both(&top).0.as_ref(), Some(&original));
    // Other than the original are trees without `d`, or with it elsewhere.
    assert!(found.iter().all(|tree| tree.bytes <= original.bytes * 2));
}
