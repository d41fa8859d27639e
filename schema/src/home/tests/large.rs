//! Trees that are larger than memory, and paths that are longer than any path may be.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};

use super::super::archive::Method;
use super::*;

/// Most bytes that memory may grow by, whatever the tree is like.
const GROWTH: u64 = 2 << 20;

fn long() -> bool {
    std::env::var_os("AGENTYARD_TEST_LONG").is_some()
}

/// A field of this process's memory, in bytes.
fn memory(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    let kilobytes = line.split_whitespace().nth(1).unwrap();
    kilobytes.parse::<u64>().unwrap() * 1024
}

/// How much more memory was in use at any moment of `work` than before.
pub(super) fn growth(work: impl FnOnce()) -> u64 {
    // Forgets the most that was ever used.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = memory("VmRSS");
    work();
    memory("VmHWM").saturating_sub(before)
}

fn open(path: &Path) -> OwnedFd {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap()
}

/// Goes so many levels down, each of this name; gives the deepest. `make`: each is made first.
fn deep(top: &Path, name: &str, levels: usize, make: bool) -> OwnedFd {
    let mut at = open(top);
    for _ in 0..levels {
        if make {
            rustix::fs::mkdirat(&at, name, Mode::RWXU).unwrap();
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        at = rustix::fs::openat(&at, name, flags, Mode::empty()).unwrap();
    }
    at
}

fn write(at: &OwnedFd, name: &str, text: &[u8]) {
    let flags = OFlags::CREATE | OFlags::WRONLY;
    let file = rustix::fs::openat(at, name, flags, Mode::RUSR | Mode::WUSR).unwrap();
    rustix::io::write(&file, text).unwrap();
}

#[test]
fn a_tree_that_is_deeper_than_a_path_is_long_is_copied_and_removed() {
    let levels = if long() { 50_000 } else { 3_000 };
    let (yard, level) = (Yard::new(), "d".repeat(100));
    let alice = name("alice");
    yard.homes.ensure(&alice, &uid('a'), None).unwrap();
    let home = yard.users("alice");
    write(&deep(&home, &level, levels, true), "bottom", b"reached");
    let archived = yard
        .homes
        .archive_by(&alice, &uid('a'), deleted_at(), None, None, Method::Copy);
    archived.unwrap();
    assert!(!home.exists());
    let archive = yard.archive(&format!("alice-{STAMP}"));
    let bottom = deep(&archive, &level, levels, false);
    let file = rustix::fs::openat(&bottom, "bottom", OFlags::RDONLY, Mode::empty()).unwrap();
    let mut text = [0; 16];
    let read = rustix::io::read(&file, &mut text).unwrap();
    assert_eq!(&text[..read], b"reached");
    drop((bottom, file));
    yard.homes
        .remove_archive(&format!("alice-{STAMP}"))
        .unwrap();
    assert!(!archive.exists());
}

#[test]
fn a_home_with_very_many_entries_is_archived_and_removed_in_bounded_memory() {
    let yard = Yard::new();
    let counts = if long() {
        [1_000_000, 100_000]
    } else {
        [20_000, 10_000]
    };
    // The first of each loads the code, which is memory, too.
    for (method, count) in [
        (Method::Automatic, 2),
        (Method::Copy, 2),
        (Method::Automatic, counts[0]),
        (Method::Copy, counts[1]),
    ] {
        let alice = name("alice");
        yard.homes.ensure(&alice, &uid('a'), None).unwrap();
        let home = yard.users("alice");
        fs::create_dir(home.join("files")).unwrap();
        fs::create_dir(home.join("directories")).unwrap();
        let (files, directories) = (open(&home.join("files")), open(&home.join("directories")));
        for number in 0..count / 2 {
            let entry = format!("{number:0100}");
            write(&files, &entry, b"");
            rustix::fs::mkdirat(&directories, &entry, Mode::RWXU).unwrap();
        }
        let inside = rustix::fs::openat(
            &directories,
            format!("{:0100}", 0),
            OFlags::DIRECTORY,
            Mode::empty(),
        );
        write(&inside.unwrap(), "file", b"");
        drop((files, directories));
        let archived = growth(|| {
            let archived =
                yard.homes
                    .archive_by(&alice, &uid('a'), deleted_at(), None, None, method);
            archived.unwrap();
        });
        let archive = yard.archive(&format!("alice-{STAMP}"));
        assert_eq!(
            fs::read_dir(archive.join("files")).unwrap().count(),
            count / 2
        );
        let removed = growth(|| {
            yard.homes
                .remove_archive(&format!("alice-{STAMP}"))
                .unwrap()
        });
        assert!(!archive.exists());
        assert!(
            count == 2 || archived < GROWTH && removed < GROWTH,
            "{method:?}: {archived} {removed}"
        );
    }
}
