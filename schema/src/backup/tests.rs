use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, FileType, Mode, OFlags};

use super::manifest::{NOT_READ_TO_ITS_END, NOT_READABLE};
use super::*;
use crate::ids::Timestamp;
use crate::secrets::MasterKey;

/// An installation to be backed up, and a directory for backups.
pub(super) struct Fixture {
    pub(super) root: tempfile::TempDir,
    pub(super) keys: Arc<Keys>,
}

/// Keys of an installation in this directory.
pub(super) fn keys_in(dir: &Path) -> Arc<Keys> {
    std::fs::create_dir_all(dir).unwrap();
    Arc::new(Keys::new(&MasterKey::load_or_create(dir).unwrap()))
}

impl Fixture {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let keys = keys_in(&root.path().join("key"));
        let fixture = Self { root, keys };
        for path in [
            "users/.owners",
            "users/alice/.agent/workspace",
            "archive",
            "skills/abc",
        ] {
            std::fs::create_dir_all(fixture.data().join(path)).unwrap();
        }
        fixture.write("users/.owners/alice", b"{}");
        fixture.write("users/alice/.agent/workspace/notes.txt", b"remember");
        fixture.write("skills/abc/SKILL.md", b"# skill");
        fixture
    }

    pub(super) fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    pub(super) fn backups(&self) -> PathBuf {
        self.root.path().join("backups")
    }

    pub(super) fn write(&self, path: &str, content: &[u8]) {
        std::fs::write(self.data().join(path), content).unwrap();
    }

    pub(super) fn home(&self) -> PathBuf {
        self.data().join("users/alice")
    }

    pub(super) fn directory(&self) -> Directory {
        Directory::make(&self.backups(), &self.data()).unwrap()
    }

    fn origin(&self, settings: SettingsFiles) -> Origin {
        Origin {
            data_dir: self.data(),
            instance: "here".to_owned(),
            database: DatabaseHead {
                kind: "sqlite".to_owned(),
                schema: 24,
                file: "database.sqlite".to_owned(),
            },
            key_file: "/data/master.key".to_owned(),
            keys: Arc::clone(&self.keys),
            settings,
            release: "0.1.0".to_owned(),
        }
    }

    /// Makes a backup as of `at`, in seconds from now.
    pub(super) fn back_up(&self, at: i64) -> Backup {
        self.back_up_with(at, SettingsFiles::new([]))
    }

    pub(super) fn back_up_with(&self, at: i64, settings: SettingsFiles) -> Backup {
        let now = Timestamp::from_secs(
            crate::clock::Clock::now(&crate::clock::SystemClock).as_secs() + at,
        );
        let making = Making::in_folder(self.directory(), "here", &self.keys, now).unwrap();
        let database = making.database_dir().join("database.sqlite");
        std::fs::write(&database, b"rows").unwrap();
        std::fs::set_permissions(database, PermissionsExt::from_mode(0o600)).unwrap();
        let made = making
            .finish(&self.origin(settings), || now, &mut |_| true)
            .unwrap();
        Backup::open(&made.path.unwrap()).unwrap()
    }
}

pub(super) fn open(path: &Path) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, path, flags, Mode::empty()).unwrap()
}

pub(super) fn restore(backup: &Backup, to: &Path) -> Placed {
    std::fs::create_dir(to).unwrap();
    backup
        .place(
            &Selection::all(),
            &open(to),
            Owners::Originals,
            SealedFiles::LeaveOut,
            &mut |_| true,
        )
        .unwrap()
}

pub(super) fn verify(fixture: &Fixture, backup: &Backup) -> Vec<Difference> {
    let now = Timestamp::from_secs(0);
    backup
        .verify(
            &fixture.directory(),
            now,
            Some(&fixture.keys),
            |_| Ok(()),
            &mut |_| true,
        )
        .unwrap()
        .1
}

/// Output of `find -printf` for a tree: kinds, modes, times, contents.
pub(super) fn listing(top: &Path) -> BTreeSet<(PathBuf, String)> {
    let mut all = BTreeSet::new();
    let mut open = vec![top.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let what = if meta.is_dir() {
                open.push(path.clone());
                format!(
                    "dir {:o} {} {}",
                    meta.mode() & !0o7000,
                    meta.mtime(),
                    meta.mtime_nsec()
                )
            } else if meta.is_symlink() {
                format!("link {:?}", std::fs::read_link(&path).unwrap())
            } else if meta.is_file() {
                let content = std::fs::read(&path).unwrap();
                format!(
                    "file {:o} {} {} {content:?}",
                    meta.mode() & !0o7000,
                    meta.uid(),
                    meta.mtime_nsec()
                )
            } else {
                continue;
            };
            all.insert((path.strip_prefix(top).unwrap().to_owned(), what));
        }
    }
    all
}

#[test]
fn hostile_home_is_restored_as_it_was() {
    let fixture = Fixture::new();
    let home = fixture.home();
    symlink("/etc/passwd", home.join("passwd")).unwrap();
    symlink("/", home.join("everything")).unwrap();
    symlink("..", home.join(".agent/up")).unwrap();
    rustix::fs::mknodat(CWD, home.join("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(home.join("socket")).unwrap();
    let raw = home.join(OsStr::from_bytes(b"\xff\xfe not text\n"));
    std::fs::create_dir(&raw).unwrap();
    std::fs::write(raw.join(OsStr::from_bytes(b"\x80%41")), b"raw").unwrap();
    std::fs::write(home.join("x".repeat(255)), b"long").unwrap();
    std::fs::write(home.join("script"), b"#!/bin/sh").unwrap();
    std::fs::set_permissions(home.join("script"), PermissionsExt::from_mode(0o4755)).unwrap();
    std::fs::hard_link(home.join("script"), home.join("again")).unwrap();
    std::fs::create_dir(home.join("empty")).unwrap();
    std::fs::set_permissions(home.join("empty"), PermissionsExt::from_mode(0o1500)).unwrap();
    // A hole of an exabyte, and one that is written in the middle.
    let huge = std::fs::File::create(home.join("huge")).unwrap();
    huge.set_len(1 << 40).unwrap();
    let holes = std::fs::File::create(home.join("holes")).unwrap();
    std::os::unix::fs::FileExt::write_at(&holes, b"end", 10 << 20).unwrap();
    let backup = fixture.back_up(0);
    let counts = &backup.head.left_out.counts;
    assert_eq!((counts["a fifo"], counts["a socket"]), (1, 1), "{counts:?}");
    assert_eq!(backup.head.left_out.total(), 2);

    // Nothing that an agent has planted is in the backup but plain private files and directories.
    let mut shown = vec![backup.path().to_owned()];
    while let Some(dir) = shown.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            assert!(meta.is_dir() || meta.is_file(), "{path:?}");
            assert_eq!(meta.mode() & 0o7077, 0, "{path:?}");
            if meta.is_dir() {
                shown.push(path);
            }
        }
    }
    std::fs::remove_file(home.join("huge")).unwrap();
    let copy = fixture.root.path().join("copy");
    let placed = restore(&backup, &copy);
    assert_eq!(
        (placed.damaged, placed.entries),
        (0, backup.head.entries - 1)
    );
    assert_eq!(
        std::fs::metadata(copy.join("users/alice/huge"))
            .unwrap()
            .len(),
        1 << 40
    );
    std::fs::remove_file(copy.join("users/alice/huge")).unwrap();
    for root in ["users", "archive", "skills"] {
        let (was, is) = (
            listing(&fixture.data().join(root)),
            listing(&copy.join(root)),
        );
        let changed: Vec<_> = was.symmetric_difference(&is).collect();
        // The directory has lost `huge` since.
        assert!(
            changed.iter().all(|(path, _)| path == Path::new("alice")),
            "{changed:?}"
        );
    }
    for (path, mode) in [("script", 0o755), ("empty", 0o500)] {
        let found = std::fs::metadata(copy.join("users/alice").join(path)).unwrap();
        assert_eq!(found.mode() & 0o7777, mode, "{path}");
    }
    let again = std::fs::metadata(copy.join("users/alice/again")).unwrap();
    assert_eq!(again.nlink(), 2);
    assert_eq!(verify(&fixture, &backup), []);
}

#[test]
fn unchanged_files_are_shared_with_the_backup_before() {
    let fixture = Fixture::new();
    let notes = fixture.home().join(".agent/workspace/notes.txt");
    fixture.write("users/alice/same", b"same");
    fixture.write("users/alice/moved", b"1111");
    // Times are coarse: the backup counts as a later one.
    let first = fixture.back_up(10);
    let times = std::fs::metadata(&notes).unwrap();
    std::fs::write(&notes, b"REMEMBER").unwrap();
    let file = std::fs::File::options().write(true).open(&notes).unwrap();
    file.set_modified(times.modified().unwrap()).unwrap();
    // Of the same size and time, under the name of another file.
    let moved = std::fs::metadata(fixture.home().join("moved")).unwrap();
    fixture.write("users/alice/other", b"2222");
    let other = std::fs::File::options()
        .write(true)
        .open(fixture.home().join("other"))
        .unwrap();
    other.set_modified(moved.modified().unwrap()).unwrap();
    std::fs::rename(fixture.home().join("other"), fixture.home().join("moved")).unwrap();
    let second = fixture.back_up(20);
    let id = |backup: &Backup, path: &str| {
        let meta = std::fs::metadata(backup.path().join("users/alice").join(path)).unwrap();
        (meta.ino(), meta.nlink())
    };
    assert_eq!(id(&first, "same"), id(&second, "same"));
    assert_eq!(id(&second, "same").1, 2);
    let live = std::fs::metadata(fixture.home().join("same")).unwrap();
    assert_ne!(live.ino(), id(&second, "same").0);
    assert_eq!(live.nlink(), 1);
    let read = |backup: &Backup, path: &str| {
        std::fs::read(backup.path().join("users/alice").join(path)).unwrap()
    };
    assert_eq!(read(&first, ".agent/workspace/notes.txt"), b"remember");
    assert_eq!(read(&second, ".agent/workspace/notes.txt"), b"REMEMBER");
    assert_eq!(read(&second, "moved"), b"2222");
    // SKILL.md, the marker and `same`.
    assert_eq!((first.head.shared, second.head.shared), (0, 3));
    assert_eq!(verify(&fixture, &second), []);
}

#[test]
fn flipped_byte_is_found_and_the_rest_is_restored() {
    let fixture = Fixture::new();
    fixture.write("users/alice/good", b"good");
    let backup = fixture.back_up(0);
    let notes = backup.path().join("users/alice/.agent/workspace/notes.txt");
    std::fs::write(&notes, b"rememBer").unwrap();
    let differences = verify(&fixture, &backup);
    assert_eq!(differences.len(), 1, "{differences:?}");
    assert_eq!(
        differences[0].path,
        "users/alice/.agent/workspace/notes.txt"
    );
    let copy = fixture.root.path().join("copy");
    let placed = restore(&backup, &copy);
    assert_eq!(placed.damaged, 1);
    assert!(placed.damaged_names[0].starts_with("users/alice/.agent/workspace/notes.txt: "));
    assert!(copy.join("users/alice/good").exists());
    assert!(!copy.join("users/alice/.agent/workspace/notes.txt").exists());
    // The database.
    std::fs::write(backup.database_path(), b"Rows").unwrap();
    assert_eq!(verify(&fixture, &backup)[0].path, "database.sqlite");
    // The manifest.
    let lines = backup.path().join(LINES);
    let text = std::fs::read_to_string(&lines).unwrap();
    std::fs::write(
        &lines,
        text.replace("\"0600\"", "\"0666\"")
            .replace("\"0644\"", "\"0666\""),
    )
    .unwrap();
    let refused = backup.check_lines().unwrap_err();
    assert!(
        refused.to_string().contains("was changed or is damaged"),
        "{refused}"
    );
    // The rest of a verification is removed.
    let left: Vec<_> = std::fs::read_dir(fixture.backups()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn interrupted_backup_looks_like_none() {
    let fixture = Fixture::new();
    let now = Timestamp::from_secs(1_000);
    let making = Making::in_folder(fixture.directory(), "here", &fixture.keys, now).unwrap();
    assert!(matches!(
        Making::in_folder(fixture.directory(), "here", &fixture.keys, now),
        Err(BackupError::Busy(_))
    ));
    std::fs::write(making.database_dir().join("database.sqlite"), b"rows").unwrap();
    let stopped = making
        .finish(&fixture.origin(SettingsFiles::new([])), || now, &mut |_| {
            false
        })
        .unwrap_err();
    assert!(matches!(stopped, BackupError::Stopped), "{stopped}");
    assert_eq!(std::fs::read_dir(fixture.backups()).unwrap().count(), 0);
    // One that was killed.
    let partial = fixture.backups().join(".partial-20260101T000000Z/users");
    std::fs::create_dir_all(&partial).unwrap();
    let foreign = fixture.backups().join("20260101T000000Z");
    std::fs::create_dir(&foreign).unwrap();
    assert!(fixture.directory().list().unwrap().is_empty());
    let error = Backup::open(&foreign).unwrap_err().to_string();
    assert!(error.contains("it was not completed"), "{error}");
    fixture.back_up(0);
    assert!(!partial.exists());
    assert!(foreign.exists());
    assert_eq!(fixture.directory().list().unwrap().len(), 1);
}

#[test]
fn entries_that_cannot_be_read_are_counted_apart() {
    let mut left_out = LeftOut::default();
    for reason in [NOT_READABLE, "a fifo", NOT_READ_TO_ITS_END, "a socket"] {
        left_out.push(reason, Path::new("users/alice/file"));
    }
    assert_eq!((left_out.unread(), left_out.total()), (2, 4));
}

#[test]
fn stream_holds_a_backup() {
    let fixture = Fixture::new();
    std::fs::hard_link(
        fixture.home().join(".agent/workspace/notes.txt"),
        fixture.home().join("again"),
    )
    .unwrap();
    fixture.write(&format!("users/alice/{}", "y".repeat(200)), b"long");
    let (scratch, out) = (
        fixture.root.path().join("scratch"),
        fixture.root.path().join("out.tar"),
    );
    std::fs::create_dir(&scratch).unwrap();
    std::fs::write(scratch.join("database.sqlite"), b"rows").unwrap();
    let now = Timestamp::from_secs(1_000_000_000);
    let file = std::fs::File::create(&out).unwrap();
    let making = Making::in_stream(Box::new(file), &scratch, now);
    let made = making
        .finish(&fixture.origin(SettingsFiles::new([])), || now, &mut |_| {
            true
        })
        .unwrap();
    assert_eq!(made.path, None);
    let unpacked = fixture.root.path().join("unpacked");
    tar::Archive::new(std::fs::File::open(&out).unwrap())
        .unpack(&unpacked)
        .unwrap();
    let backup = Backup::open(&unpacked).unwrap();
    assert_eq!(backup.head, made.head);
    assert_eq!(backup.trust(Some(&fixture.keys)).unwrap(), Trust::Authentic);
    assert_eq!(verify(&fixture, &backup), []);
}

#[test]
fn one_folder_is_selected() {
    let fixture = Fixture::new();
    let backup = fixture.back_up(0);
    let to = tempfile::tempdir().unwrap();
    let place = |under: &str| {
        let selection = Selection {
            under: under.into(),
            to: "entry".into(),
        };
        backup.place(
            &selection,
            &open(to.path()),
            Owners::Caller,
            SealedFiles::LeaveOut,
            &mut |_| true,
        )
    };
    let placed = place("users/alice/.agent").unwrap();
    assert_eq!((placed.kind, placed.entries), (Some(EntryKind::Dir), 3));
    assert!(to.path().join("entry/workspace/notes.txt").exists());
    for (path, is_there) in [("users/alice/", true), ("users/alice/.agen", false)] {
        assert_eq!(backup.has(Path::new(path)).unwrap(), is_there, "{path}");
    }
    for missing in ["users/alice/.agen", "users/bob", "database.sqlite"] {
        assert!(
            matches!(place(missing), Err(BackupError::NoEntry(_))),
            "{missing}"
        );
    }
}
