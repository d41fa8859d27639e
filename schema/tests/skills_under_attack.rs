//! An agent that swaps directories for links while its skills are deployed, updated, repaired, removed and read: nothing
//! outside its home is read or written.

// Helpers of tests may fail like tests.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::support::skills::{Deployer, LIMITS};
use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use schema::home::{FoundSkill, HomeError};
use schema::skill_store::digest_tree;

fn tries_wanted() -> u64 {
    match std::env::var_os("AGENTYARD_TEST_LONG") {
        Some(_) => 1_000_000,
        None => 10_000,
    }
}

/// Stops the other threads also when an assertion fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Everything that a change or a reading of a tree would leave: the time of access as well.
fn canary(top: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut todo = vec![top.to_owned()];
    while let Some(path) = todo.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            todo.extend(fs::read_dir(&path).unwrap().map(|it| it.unwrap().path()));
        }
        // Listing it, as above, is an access.
        let accessed = match meta.is_dir() {
            true => (0, 0),
            false => (meta.atime(), meta.atime_nsec()),
        };
        let look = (
            (
                meta.ino(),
                meta.mode(),
                meta.uid(),
                meta.gid(),
                meta.nlink(),
            ),
            (meta.size(), meta.ctime(), meta.ctime_nsec(), accessed),
        );
        found.insert(path, format!("{look:?}"));
    }
    found
}

/// A tree beside the home that looks like a part of one wherever it is entered, with what nobody may open.
fn outside(top: &Path) {
    for dir in ["", "workspace", "workspace/skills", "skills", "skills/pdf"] {
        for inner in ["pdf/sub/dir", "sub/dir", ".replaced", "dir"] {
            fs::create_dir_all(top.join(dir).join(inner)).unwrap();
        }
    }
    let mut todo = vec![top.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                todo.push(entry.path());
            }
        }
        fs::write(dir.join("SKILL.md"), "secret").unwrap();
        for fifo in ["file", "same"] {
            // Whoever opens it waits for ever.
            let mode = rustix::fs::Mode::RWXU;
            let _ = rustix::fs::mkfifoat(rustix::fs::CWD, dir.join(fifo), mode);
        }
        // A time of access that every reading changes.
        let file = fs::File::open(dir.join("SKILL.md")).unwrap();
        let times = fs::FileTimes::new().set_accessed(std::time::UNIX_EPOCH);
        file.set_times(times).unwrap();
    }
}

/// Swaps what is at `path` in the home for a link, looks away for a moment, and puts it back. Links that
/// are still there from before lead only the agent's own thread outside, so it follows none.
fn swap(home: &OwnedFd, path: &Path, target: &Path, linger: bool) {
    let Some((parent, name)) = open_parent(home, path) else {
        return;
    };
    if rustix::fs::renameat(&parent, name, home, "aside").is_err() {
        return;
    }
    let _ = rustix::fs::symlinkat(target, &parent, name);
    match linger {
        true => std::thread::sleep(std::time::Duration::from_micros(50)),
        false => std::thread::yield_now(),
    }
    // Whatever lies there by now makes room.
    if rustix::fs::unlinkat(&parent, name, AtFlags::empty()).is_err() {
        remove_all(&parent, name);
    }
    if rustix::fs::renameat(home, "aside", &parent, name).is_err() {
        let _ = rustix::fs::unlinkat(home, "aside", AtFlags::empty());
        remove_all(home, "aside".as_ref());
    }
}

/// The directory of an entry of the home, if no link is on the way, and the entry's name.
fn open_parent<'a>(home: &OwnedFd, path: &'a Path) -> Option<(OwnedFd, &'a OsStr)> {
    let (parent, name) = (path.parent()?, path.file_name()?);
    let flags = OFlags::DIRECTORY | OFlags::RDONLY;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let parent = match parent.as_os_str().is_empty() {
        true => Path::new("."),
        false => parent,
    };
    let parent = rustix::fs::openat2(home, parent, flags, Mode::empty(), resolve);
    Some((parent.ok()?, name))
}

fn remove_all(at: &OwnedFd, name: &OsStr) {
    // The library's own removal follows no link.
    let at = format!("/proc/self/fd/{}", at.as_raw_fd());
    let _ = fs::remove_dir_all(Path::new(&at).join(name));
}

#[test]
fn l25_swapping_directories_for_links_leads_no_skill_outside() {
    let data = tempfile::tempdir().unwrap();
    let outside_dir = tempfile::tempdir().unwrap();
    outside(outside_dir.path());
    let before = canary(outside_dir.path());
    let mut deployer = Deployer::open(data.path());
    deployer.ensure_home();
    deployer.converge(Some("one"), "pdf-20260101T000000Z");
    let home = data.path().join("users/alice");
    let secrets: BTreeSet<String> = before
        .keys()
        .filter(|path| path.is_dir())
        .filter_map(|path| {
            let tree = fs::File::open(path).unwrap();
            digest_tree(tree, LIMITS).unwrap()
        })
        .map(|tree| tree.digest.to_string())
        .collect();
    let (stop, tries) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    std::thread::scope(|scope| {
        let agent = || {
            let targets = [
                ".agent/workspace/skills/pdf",
                ".agent/workspace/skills",
                ".agent/workspace/skills/pdf/sub",
                ".agent/workspace/skills/pdf/SKILL.md",
                ".agent/workspace/skills/pdf/sub/dir",
                ".agent/workspace/skills/.replaced",
                ".agent/workspace",
                ".agent",
                ".agent/workspace/skills/pdf/sub/dir/file",
            ];
            let handle = OwnedFd::from(fs::File::open(&home).unwrap());
            let mut round = 0_usize;
            while !stop.load(Ordering::Relaxed) {
                let target = targets[round % targets.len()];
                // Sometimes to the part of the same name, sometimes to the whole.
                let link = match round % 3 {
                    0 => outside_dir
                        .path()
                        .join(target.strip_prefix(".agent/").unwrap_or("")),
                    1 => outside_dir.path().to_owned(),
                    _ => outside_dir.path().join("skills/pdf"),
                };
                let link = match link.exists() {
                    true => link,
                    false => outside_dir.path().to_owned(),
                };
                swap(&handle, Path::new(target), &link, round.is_multiple_of(5));
                tries.fetch_add(1, Ordering::Relaxed);
                round += 1;
                if round.is_multiple_of(64) {
                    // So that a whole deployment gets through now and then.
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    // What is taken for the user's own would stay so.
                    if let Some((skills, name)) = open_parent(&handle, Path::new(targets[0])) {
                        let _ = rustix::fs::unlinkat(&skills, name, AtFlags::empty());
                        remove_all(&skills, name);
                    }
                }
                if round % 400 < 40 {
                    // What is on its way, too.
                    let moving = fs::read_dir(home.join(".agent"));
                    for entry in moving.into_iter().flatten().flatten() {
                        if entry.file_name() != "workspace" {
                            let path = Path::new(".agent").join(entry.file_name());
                            swap(&handle, &path, &link, false);
                        }
                    }
                }
            }
        };
        scope.spawn(agent);
        let _stopping = StopOnDrop(&stop);
        let wanted = [Some("one"), Some("two"), None];
        let mut round = 0_usize;
        while tries.load(Ordering::Relaxed) < tries_wanted()
            || [("done", 100), ("acted", 100), ("changed", 20)]
                .iter()
                .any(|(kind, least)| seen.get(kind).copied().unwrap_or(0) < *least)
        {
            round += 1;
            let kept_as = format!("pdf-20260101T{:06}Z", round % 1_000_000);
            let outcome = deployer.pass(wanted[(round / 3) % 3], &kept_as);
            let kind = match &outcome {
                Ok(true) => "done",
                Ok(false) => "acted",
                Err(HomeError::Changed { .. }) => "changed",
                Err(HomeError::Conflict(_)) => "conflict",
                // What is swapped while it is removed or moved; the next pass begins anew.
                Err(HomeError::Io { action, source, .. }) => {
                    let expected = source.raw_os_error().is_none_or(|code| {
                        use rustix::io::Errno;
                        let errno = Errno::from_raw_os_error(code);
                        [
                            Errno::NOENT,
                            Errno::NOTDIR,
                            Errno::LOOP,
                            Errno::INVAL,
                            Errno::EXIST,
                            Errno::NOTEMPTY,
                            Errno::ISDIR,
                            Errno::XDEV,
                        ]
                        .contains(&errno)
                    });
                    assert!(expected, "{action} {source:?}");
                    "io"
                }
                Err(other) => panic!("{other:?}"),
            };
            *seen.entry(kind).or_default() += 1;
            let _ = deployer.look();
            if let Ok(found) = deployer.read()
                && let FoundSkill::Tree { digest, .. } = &found.skills[0]
            {
                assert!(
                    !secrets.contains(digest.as_str()),
                    "what is outside was read"
                );
            }
            if round.is_multiple_of(50) {
                deployer.edit("mine");
            }
            if round.is_multiple_of(200) {
                deployer.ensure_home_anew();
            }
        }
    });
    let after = canary(outside_dir.path());
    assert!(
        before == after,
        "{:?}",
        after
            .iter()
            .filter(|(path, look)| before.get(*path) != Some(*look))
            .collect::<Vec<_>>()
    );
    println!("{seen:?}, {} tries", tries.load(Ordering::Relaxed));
    // Left alone, it ends well.
    deployer.ensure_home_anew();
    fs::create_dir_all(deployer.workspace()).unwrap();
    let skills = deployer.workspace().join("skills");
    for path in [deployer.place(), skills.join(".replaced"), skills] {
        if fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_dir()) {
            fs::remove_file(path).unwrap();
        }
    }
    for _ in 0..3 {
        let _ = deployer.pass(None, "pdf-20270101T000000Z");
    }
    let _ = fs::remove_dir_all(deployer.place());
    deployer.converge(None, "pdf-20270101T000000Z");
    deployer.converge(Some("one"), "pdf-20270101T000000Z");
    let tree = digest_tree(fs::File::open(deployer.place()).unwrap(), LIMITS);
    assert_eq!(tree.unwrap().unwrap().digest, deployer.digest("one"));
    assert!(!deployer.read().unwrap().leftovers);
}
