//! An agent that swaps directories and files of its workspace for links while its user works there: nothing outside of the
//! workspace is read, written, made or removed, and no request fails as if the service were at fault.

// Helpers of tests may fail like tests.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use schema::home::Homes;
use schema::home::workspace::{FileError, Order, Workspace, WorkspacePath};
use schema::ids::Uid;

fn tries_wanted() -> u64 {
    match std::env::var_os("AGENTYARD_TEST_LONG") {
        Some(_) => 200_000,
        None => 3_000,
    }
}

/// Stops the other thread also when an assertion fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

const SECRET: &str = "this is outside";

/// Everything that a change or a reading of the files outside would leave.
fn canary(top: &Path) -> Vec<(String, u64, i64, i64, i64)> {
    let mut found = Vec::new();
    for entry in [
        top.to_owned(),
        top.join("f"),
        top.join("sub"),
        top.join("sub/f"),
    ] {
        let stat = fs::symlink_metadata(&entry).unwrap();
        let content = match stat.is_file() {
            true => fs::read_to_string(&entry).unwrap(),
            false => {
                let mut names: Vec<_> = fs::read_dir(&entry)
                    .unwrap()
                    .map(|it| it.unwrap().file_name().to_string_lossy().into_owned())
                    .collect();
                names.sort();
                names.join(",")
            }
        };
        found.push((
            content,
            stat.ino(),
            stat.mtime(),
            stat.mtime_nsec(),
            stat.ctime(),
        ));
    }
    found
}

fn path(text: &str) -> WorkspacePath {
    text.parse().unwrap()
}

/// Names that are made: those that a swap has kept from being removed stay, and every listing reads them.
const NAMES: u64 = 100;

/// Does everything that a user can, with paths that are swapped meanwhile. Returns how often something was done.
fn work(workspace: &Workspace, number: u64) -> u64 {
    let (directory, file) = (path("d"), path("d/f"));
    let number = number % NAMES;
    let new = path(&format!("d/new-{number}"));
    let whole = |listing: schema::home::workspace::Listing| {
        for entry in listing.entries {
            assert_ne!(entry.name, "sub", "listed what is outside");
        }
    };
    let outcomes: [Result<(), FileError>; 10] = [
        workspace
            .list(&directory, Order::default(), "", || true, |n| 0..n)
            .map(whole),
        workspace.read_text(&file).map(|text| {
            assert_ne!(text.content, SECRET);
        }),
        workspace.open_file(&file).map(|file| {
            let mut piece = [0; 100];
            let read = file.read_at(0, &mut piece).unwrap();
            assert_ne!(&piece[..read], SECRET.as_bytes());
        }),
        {
            let mut packed = Vec::new();
            workspace.write_zip(&directory, &mut packed).map(|()| {
                let zip = zip::ZipArchive::new(std::io::Cursor::new(packed)).unwrap();
                assert!(zip.file_names().all(|name| !name.unwrap().contains("sub")));
            })
        },
        workspace.write_text(&file, "inside", None).map(drop),
        workspace.make_directory(&new),
        workspace.rename(&new, &path(&format!("d/moved-{number}"))),
        {
            let mut incoming = workspace.incoming().unwrap();
            incoming.write(b"inside").unwrap();
            let received = incoming.finish().unwrap();
            workspace.place_all(&path("d"), [(&path("d/up"), &received)], true)
        },
        workspace.remove(&path(&format!("d/moved-{number}"))),
        workspace.remove(&path("d/up")),
    ];
    let mut done = 0;
    for outcome in outcomes {
        match outcome {
            Ok(()) => done += 1,
            Err(
                FileError::NotFound { .. }
                | FileError::Exists { .. }
                | FileError::NotADirectory { .. }
                | FileError::NotAFile { .. }
                | FileError::Link { .. }
                | FileError::Meanwhile { .. }
                | FileError::Changed { .. },
            ) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    done
}

#[test]
fn l25_nothing_outside_is_reached_while_directories_and_files_are_swapped_for_links() {
    let data = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("sub")).unwrap();
    for file in ["f", "sub/f"] {
        fs::write(outside.path().join(file), SECRET).unwrap();
    }
    let homes = Homes::open(data.path(), "instance-1").unwrap();
    let (name, uid) = ("alice".parse().unwrap(), Uid::from("a".repeat(32)));
    homes.ensure(&name, &uid, None).unwrap();
    let workspace = homes.workspace(&name, &uid).unwrap().unwrap();
    let top = data.path().join("users/alice/.agent/workspace");
    fs::create_dir(top.join("d")).unwrap();
    fs::write(top.join("d/f"), "inside").unwrap();
    // What is swapped in: for the directory, and for the file in it.
    symlink(outside.path(), top.join("link")).unwrap();
    symlink(outside.path().join("f"), top.join("file-link")).unwrap();
    let before = canary(outside.path());

    let stop = AtomicBool::new(false);
    let (swaps, done) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for (a, b) in [
                    ("d", "link"),
                    ("link", "d"),
                    ("d/f", "file-link"),
                    ("d/f", "file-link"),
                ] {
                    let (a, b) = (top.join(a), top.join(b));
                    let swapped = renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE);
                    if swapped.is_ok() {
                        swaps.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
        for number in 0..tries_wanted() / 10 {
            done.fetch_add(work(&workspace, number), Ordering::Relaxed);
        }
    });
    assert_eq!(canary(outside.path()), before);
    let (swaps, done) = (swaps.into_inner(), done.into_inner());
    assert!(swaps > 100 && done > 100, "swaps: {swaps}, done: {done}");
}
