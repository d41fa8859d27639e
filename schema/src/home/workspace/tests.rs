use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{Cursor, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

use proptest::prelude::*;
use rustix::fs::{FileType, Mode};
use tempfile::TempDir;

use super::*;

struct Yard {
    data: TempDir,
    work: Workspace,
}

impl Yard {
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let homes = Homes::open_with(data.path(), "instance-1", None).unwrap();
        let (name, uid) = ("alice".parse().unwrap(), Uid::from("a".repeat(32)));
        assert!(homes.workspace(&name, &uid).unwrap().is_none());
        homes.ensure(&name, &uid, None).unwrap();
        let work = homes.workspace(&name, &uid).unwrap().unwrap();
        Self { data, work }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.data
            .path()
            .join("users/alice/.agent/workspace")
            .join(path)
    }

    /// A file outside of the workspace that nothing may reach.
    fn secret(&self) -> PathBuf {
        let secret = self.data.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        secret
    }

    fn upload(&self, to: &str, content: &[u8], overwrite: bool) -> Result<(), FileError> {
        let mut incoming = self.work.incoming().unwrap();
        incoming.write(content).unwrap();
        let received = incoming.finish().unwrap();
        let at = to.rfind('/').unwrap_or(0);
        let (directory, to) = (path(&to[..at]), path(to));
        self.work
            .can_place_all(&directory, std::slice::from_ref(&to), overwrite)?;
        self.work
            .place_all(&directory, [(&to, &received)], overwrite)
    }

    fn listed(&self, order: Order, search: &str) -> Vec<String> {
        let listing = self
            .work
            .list(&path(""), order, search, || true, |total| 0..total);
        let entries = listing.unwrap().entries.into_iter();
        entries.map(|entry| entry.name).collect()
    }

    fn entries(&self) -> usize {
        fs::read_dir(self.at("")).unwrap().count()
    }
}

fn path(text: &str) -> WorkspacePath {
    text.parse().unwrap()
}

#[test]
fn a_path_is_relative_and_names_nothing_above() {
    for (text, expected) in [
        ("", ""),
        ("/", ""),
        (".", ""),
        ("a", "a"),
        ("a/", "a"),
        ("a//b/./c", "a/b/c"),
        ("C:\\x", "C:\\x"),
        ("..a/a..", "..a/a.."),
        ("\u{202e}\u{5d0}\n\"", "\u{202e}\u{5d0}\n\""),
    ] {
        assert_eq!(path(text).as_str(), expected, "{text:?}");
    }
    let long = "a".repeat(256);
    let deep = "a/".repeat(3000);
    for (text, error) in [
        ("/etc", PathError::Absolute),
        ("//etc", PathError::Absolute),
        ("..", PathError::Parent),
        ("a/../b", PathError::Parent),
        ("a\0", PathError::Nul),
        (long.as_str(), PathError::TooLong),
        (deep.as_str(), PathError::TooLong),
    ] {
        assert_eq!(text.parse::<WorkspacePath>(), Err(error), "{text:?}");
    }
    for name in ["", ".", "..", "a/b", "/"] {
        assert_eq!(path("d").join(name), Err(PathError::NotAName), "{name:?}");
    }
    let deep = path("a/b/c");
    let steps: Vec<_> = deep.steps().collect();
    assert_eq!(steps, [("a", "a"), ("b", "a/b"), ("c", "a/b/c")]);
    assert_eq!(path("").steps().count(), 0);
    assert!(path("a").contains(&path("a/b")) && !path("a").contains(&path("ab")));
}

proptest! {
    #[test]
    fn no_path_leads_out(text in "(\\.\\.|\\.|/|a|b|proc|\\PC){0,12}") {
        if let Ok(path) = text.parse::<WorkspacePath>() {
            let plain = path.is_top() || beneath::is_plain(path.as_ref());
            prop_assert!(plain, "{:?}", path);
            prop_assert_eq!(path.to_string().parse::<WorkspacePath>(), Ok(path));
        }
    }
}

#[test]
fn directories_come_first_and_case_means_nothing() {
    let yard = Yard::new();
    for name in ["b.txt", "A.txt", "a.txt", "\u{c4}rger", "zz"] {
        fs::write(yard.at(name), name.repeat(name.len())).unwrap();
    }
    for name in ["Z", "y"] {
        fs::create_dir(yard.at(name)).unwrap();
    }
    let order = Order::default();
    let expected = ["y", "Z", "A.txt", "a.txt", "b.txt", "zz", "\u{c4}rger"];
    assert_eq!(yard.listed(order, ""), expected);
    assert_eq!(yard.listed(order, "A.T"), ["A.txt", "a.txt"]);
    assert_eq!(yard.listed(order, "\u{e4}R"), ["\u{c4}rger"]);
    let last_first = Order {
        descending: true,
        ..order
    };
    let expected = ["Z", "y", "\u{c4}rger", "zz", "b.txt", "a.txt", "A.txt"];
    assert_eq!(yard.listed(last_first, ""), expected);
    let by_size = Order {
        sort: Sort::Size,
        descending: true,
    };
    assert_eq!(yard.listed(by_size, "").get(2).unwrap(), "\u{c4}rger");
    // A window of each size at each place is that part of the whole.
    let all = yard.listed(order, "");
    for begin in 0..9 {
        for end in begin..10 {
            let part = yard
                .work
                .list(&path(""), order, "", || true, |_| begin..end);
            let part: Vec<_> = part.unwrap().entries.into_iter().map(|e| e.name).collect();
            let (begin, end) = (begin.min(all.len()), end.min(all.len()));
            assert_eq!(part, all[begin..end]);
        }
    }
}

#[test]
fn l25_what_is_not_a_file_is_listed_and_never_opened() {
    let yard = Yard::new();
    let secret = yard.secret();
    let dev = fs::metadata("/dev/null").unwrap();
    let work = &yard.work;
    rustix::fs::mknodat(&work.top, "fifo", FileType::Fifo, Mode::RUSR, 0).unwrap();
    let device = rustix::fs::mknodat(
        &work.top,
        "device",
        FileType::CharacterDevice,
        Mode::RUSR,
        dev.rdev(),
    );
    let _socket = std::os::unix::net::UnixListener::bind(yard.at("socket")).unwrap();
    symlink(&secret, yard.at("link")).unwrap();
    symlink("/proc/self/root", yard.at("root")).unwrap();
    let sparse = fs::File::create(yard.at("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    fs::create_dir(yard.at("shut")).unwrap();
    fs::set_permissions(yard.at("shut"), fs::Permissions::from_mode(0o0)).unwrap();
    fs::write(yard.at("").join(OsStr::from_bytes(b"\xff")), "x").unwrap();

    let listing = work
        .list(&path(""), Order::default(), "", || true, |n| 0..n)
        .unwrap();
    let kinds: BTreeMap<_, _> = listing
        .entries
        .iter()
        .map(|entry| {
            (
                entry.name.as_str(),
                (entry.kind, entry.size, entry.in_path.as_str()),
            )
        })
        .collect();
    let of = |name: &str| kinds[name];
    assert_eq!(of("fifo"), (EntryType::Fifo, 0, "fifo"));
    assert_eq!(of("socket"), (EntryType::Socket, 0, "socket"));
    assert_eq!(of("link"), (EntryType::Symlink, 0, "link"));
    assert_eq!(of("sparse"), (EntryType::File, 1 << 40, "sparse"));
    assert_eq!(of("shut"), (EntryType::Directory, 0, "shut"));
    assert_eq!(of("\u{fffd}"), (EntryType::File, 1, "\u{efff}"));
    let mut special = vec!["fifo", "socket"];
    if device.is_ok() {
        assert!(
            fs::metadata(yard.at("device"))
                .unwrap()
                .file_type()
                .is_char_device()
        );
        assert_eq!(of("device"), (EntryType::Device, 0, "device"));
        special.push("device");
    }
    for name in special {
        let name = path(name);
        for failed in [
            work.open_file(&name).map(drop),
            work.read_text(&name).map(drop),
            work.write_text(&name, "x", None).map(drop),
        ] {
            let failed = failed.unwrap_err();
            assert!(matches!(failed, FileError::NotAFile { .. }), "{failed:?}");
        }
        let error = yard.upload(name.as_str(), b"x", true).unwrap_err();
        assert!(matches!(error, FileError::NotAFile { .. }), "{error:?}");
    }
    for name in ["link", "root/etc/passwd", "root/tmp", "link/x"] {
        let name = path(name);
        let read = work.open_file(&name).map(drop).unwrap_err();
        let listed = work.list(&name, Order::default(), "", || true, |n| 0..n);
        let written = work.write_text(&name, "x", None).unwrap_err();
        let zipped = work.can_zip(&name).unwrap_err();
        for error in [read, listed.map(drop).unwrap_err(), written, zipped] {
            let refused = matches!(
                error,
                FileError::Link { .. } | FileError::NotADirectory { .. }
            );
            assert!(refused, "{name}: {error:?}");
        }
    }
    // What can be done with them is to move and to remove them.
    work.rename(&path("link"), &path("link2")).unwrap();
    for name in ["fifo", "socket", "link2", "root", "shut", "sparse"] {
        work.remove(&path(name)).unwrap();
    }
    assert_eq!(fs::read_to_string(secret).unwrap(), "secret");
}

#[test]
fn an_upload_is_there_whole_or_not_at_all() {
    let yard = Yard::new();
    let mut broken = yard.work.incoming().unwrap();
    broken.write(b"half").unwrap();
    drop(broken);
    assert_eq!(yard.entries(), 0);
    yard.upload("a", b"one", false).unwrap();
    assert!(matches!(
        yard.upload("a", b"two", false),
        Err(FileError::Exists { .. })
    ));
    assert_eq!(fs::read(yard.at("a")).unwrap(), b"one");
    yard.upload("a", b"two", true).unwrap();
    assert_eq!(fs::read(yard.at("a")).unwrap(), b"two");
    fs::create_dir(yard.at("d")).unwrap();
    let secret = yard.secret();
    symlink(&secret, yard.at("l")).unwrap();
    for name in ["d", "l"] {
        let error = yard.upload(name, b"x", true).unwrap_err();
        assert!(matches!(error, FileError::NotAFile { .. }), "{error:?}");
    }
    let error = yard.upload("none/x", b"x", true).unwrap_err();
    assert!(matches!(error, FileError::NotFound { .. }), "{error:?}");
    assert_eq!(yard.entries(), 3, "nothing is left behind");
    assert_eq!(fs::read_to_string(secret).unwrap(), "secret");
    // It belongs to whom the workspace belongs to.
    let (made, home) = (
        fs::metadata(yard.at("a")).unwrap(),
        fs::metadata(yard.at("")).unwrap(),
    );
    assert_eq!((made.uid(), made.gid()), (home.uid(), home.gid()));
}

#[test]
fn what_was_done_before_a_failure_is_said() {
    let yard = Yard::new();
    let received = |content: &[u8]| {
        let mut incoming = yard.work.incoming().unwrap();
        incoming.write(content).unwrap();
        incoming.finish().unwrap()
    };
    // The agent takes a name between the check and the change: here the first file does.
    let (one, two, name) = (received(b"one"), received(b"two"), path("a"));
    let both = || [(&name, &one), (&name, &two)];
    let error = yard.work.place_all(&path(""), both(), false).unwrap_err();
    let FileError::Partly(cause) = error else {
        panic!("{error:?}");
    };
    assert!(matches!(*cause, FileError::Exists { .. }), "{cause:?}");
    assert_eq!(fs::read(yard.at("a")).unwrap(), b"one");
    let error = yard.work.place_all(&path(""), both(), false).unwrap_err();
    assert!(matches!(error, FileError::Exists { .. }), "{error:?}");
    assert_eq!(yard.entries(), 1);
}

#[test]
fn entries_are_made_moved_and_removed_and_nothing_is_replaced() {
    let yard = Yard::new();
    let work = &yard.work;
    work.make_directory(&path("a")).unwrap();
    work.make_directory(&path("a/b")).unwrap();
    fs::write(yard.at("a/b/f"), "x").unwrap();
    assert!(matches!(
        work.make_directory(&path("a")),
        Err(FileError::Exists { .. })
    ));
    assert!(matches!(
        work.make_directory(&path("x/y")),
        Err(FileError::NotFound { .. })
    ));
    assert!(matches!(
        work.rename(&path("a"), &path("a/b/c")),
        Err(FileError::IntoItself)
    ));
    work.make_directory(&path("c")).unwrap();
    assert!(matches!(
        work.rename(&path("a"), &path("c")),
        Err(FileError::Exists { .. })
    ));
    assert!(matches!(
        work.rename(&path("a"), &path("a")),
        Err(FileError::Exists { .. })
    ));
    assert!(matches!(
        work.rename(&path("none"), &path("n")),
        Err(FileError::NotFound { .. })
    ));
    work.rename(&path("a"), &path("c/d")).unwrap();
    assert_eq!(fs::read_to_string(yard.at("c/d/b/f")).unwrap(), "x");
    for top in [work.remove(&path("")), work.rename(&path("/"), &path("x"))] {
        assert!(matches!(top, Err(FileError::Top)));
    }
    work.remove(&path("c")).unwrap();
    assert!(matches!(
        work.remove(&path("c")),
        Err(FileError::NotFound { .. })
    ));
    assert_eq!(yard.entries(), 0);
}

#[test]
fn l24_text_is_saved_whole_and_only_over_what_was_read() {
    let yard = Yard::new();
    let work = &yard.work;
    let name = path("t.txt");
    let text = "line\r\n\u{1f600}e\u{301}\n";
    let first = work.write_text(&name, text, None).unwrap();
    let read = work.read_text(&name).unwrap();
    assert_eq!((read.content.as_str(), &read.etag), (text, &first));
    fs::set_permissions(yard.at("t.txt"), fs::Permissions::from_mode(0o750)).unwrap();
    let second = work.write_text(&name, "two", Some(&first)).unwrap();
    assert_eq!(
        fs::metadata(yard.at("t.txt")).unwrap().mode() & 0o777,
        0o750
    );
    assert_ne!(first, second);
    for (name, etag) in [("t.txt", first.as_str()), ("none", second.as_str())] {
        let stale = work.write_text(&path(name), "three", Some(etag));
        assert!(matches!(stale, Err(FileError::Changed { .. })), "{name}");
    }
    assert_eq!(fs::read_to_string(yard.at("t.txt")).unwrap(), "two");
    let longest = usize::try_from(EDITABLE).unwrap();
    for (content, is_text) in [
        (vec![b'a'; longest], true),
        (vec![b'a'; longest + 1], false),
        (b"a\0b".to_vec(), false),
        (b"\xff\xfe".to_vec(), false),
        (Vec::new(), true),
    ] {
        fs::write(yard.at("x.txt"), &content).unwrap();
        let read = work.read_text(&path("x.txt"));
        assert_eq!(read.is_ok(), is_text, "{}", content.len());
    }
    let long = "a".repeat(longest + 1);
    assert!(matches!(
        work.write_text(&name, &long, None),
        Err(FileError::NotText { .. })
    ));
    assert_eq!(yard.entries(), 2);
}

#[test]
fn a_directory_comes_as_a_zip_file_that_names_what_it_lacks() {
    let yard = Yard::new();
    let secret = yard.secret();
    fs::create_dir_all(yard.at("d/e/empty")).unwrap();
    fs::write(yard.at("d/a.txt"), "one").unwrap();
    fs::write(yard.at("d/e/\u{1f600}\".txt"), "two").unwrap();
    symlink(&secret, yard.at("d/link")).unwrap();
    let sparse = fs::File::create(yard.at("d/sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    rustix::fs::mknodat(&yard.work.top, "d/fifo", FileType::Fifo, Mode::RUSR, 0).unwrap();
    fs::write(yard.at("d/..\\..\\x.bat"), "x").unwrap();
    let mut packed = Vec::new();
    yard.work.can_zip(&path("d")).unwrap();
    yard.work.write_zip(&path("d"), &mut packed).unwrap();
    let mut zip = ::zip::ZipArchive::new(Cursor::new(packed)).unwrap();
    let mut found = BTreeMap::new();
    for at in 0..zip.len() {
        let mut entry = zip.by_index(at).unwrap();
        let mut content = String::new();
        entry.read_to_string(&mut content).unwrap();
        let name = entry.name().unwrap().into_owned();
        found.insert(name, content);
    }
    let names: Vec<_> = found.keys().map(String::as_str).collect();
    let expected = [
        "d/",
        "d/a.txt",
        "d/e/",
        "d/e/empty/",
        "d/e/\u{1f600}\".txt",
        "left-out.txt",
    ];
    assert_eq!(names, expected);
    assert_eq!(found["d/a.txt"], "one");
    let left_out = &found["left-out.txt"];
    for name in ["\"d/link\"", "\"d/sparse\"", "\"d/fifo\"", "x.bat\""] {
        assert!(left_out.contains(name), "{left_out}");
    }
    assert!(!left_out.contains("secret"));
    let error = yard.work.write_zip(&path("d/a.txt"), Vec::new());
    assert!(matches!(error, Err(FileError::NotADirectory { .. })));
}

#[test]
fn a_workspace_that_is_a_link_is_none() {
    let yard = Yard::new();
    let outside = tempfile::tempdir().unwrap();
    let place = yard.data.path().join("users/alice/.agent/workspace");
    fs::remove_dir(&place).unwrap();
    symlink(outside.path(), &place).unwrap();
    let homes = Homes::open_with(yard.data.path(), "instance-1", None).unwrap();
    let (name, uid) = ("alice".parse().unwrap(), Uid::from("a".repeat(32)));
    let opened = homes.workspace(&name, &uid);
    let refused = matches!(
        opened,
        Err(FileError::Link { .. } | FileError::NotADirectory { .. })
    );
    assert!(refused, "{opened:?}");
}

#[test]
fn a_workspace_that_the_agent_has_removed_is_made_for_what_comes_into_it() {
    let yard = Yard::new();
    let homes = Homes::open_with(yard.data.path(), "instance-1", None).unwrap();
    let (name, uid) = ("alice".parse().unwrap(), Uid::from("a".repeat(32)));
    let home = yard.data.path().join("users/alice");
    for removed in [".agent/workspace", ".agent"] {
        fs::remove_dir_all(home.join(removed)).unwrap();
        assert!(
            homes.workspace(&name, &uid).unwrap().is_none(),
            "to be seen it is not made"
        );
        let work = homes.workspace_to_change(&name, &uid).unwrap().unwrap();
        work.make_directory(&path("d")).unwrap();
        let made = fs::metadata(home.join(".agent/workspace")).unwrap();
        assert_eq!(made.permissions().mode() & 0o777, 0o700);
        assert!(home.join(".agent/workspace/d").is_dir());
    }
    let nobody = "bob".parse().unwrap();
    assert!(homes.workspace_to_change(&nobody, &uid).unwrap().is_none());
}

/// The service as another user than root, for whom an agent's permissions count: a thread of its own has that user.
#[test]
fn what_the_agent_has_locked_is_listed_and_refused_and_nothing_else_is_lost() {
    let nobody = rustix::fs::Uid::from_raw(65_534);
    let work = move || {
        if rustix::process::geteuid().is_root() {
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        let yard = Yard::new();
        fs::create_dir_all(yard.at("d/locked")).unwrap();
        for file in ["d/locked/x", "d/secret", "d/open"] {
            fs::write(yard.at(file), "x").unwrap();
        }
        let mode = |path: &str, mode| {
            fs::set_permissions(yard.at(path), fs::Permissions::from_mode(mode)).unwrap();
        };
        mode("d/locked", 0);
        mode("d/secret", 0);
        let listed = yard
            .work
            .list(&path("d"), Order::default(), "", || true, |all| 0..all);
        assert_eq!(listed.unwrap().total, 3);
        let forbidden = |error: FileError| matches!(error, FileError::Forbidden { .. });
        let inside = yard.work.list(
            &path("d/locked"),
            Order::default(),
            "",
            || true,
            |all| 0..all,
        );
        assert!(forbidden(inside.unwrap_err()));
        assert!(forbidden(
            yard.work.open_file(&path("d/secret")).unwrap_err()
        ));
        assert!(forbidden(
            yard.work.read_text(&path("d/secret")).unwrap_err()
        ));
        let mut packed = Vec::new();
        yard.work.write_zip(&path("d"), &mut packed).unwrap();
        let zip = ::zip::ZipArchive::new(Cursor::new(packed)).unwrap();
        let mut names: Vec<_> = zip
            .file_names()
            .map(|name| name.unwrap().into_owned())
            .collect();
        names.sort();
        assert_eq!(names, ["d/", "d/open", "left-out.txt"]);
        // What is removed needs no permission but that of the directory it lies in; the owner gets it back.
        yard.work.remove(&path("d/secret")).unwrap();
        let removed = yard.work.remove(&path("d"));
        if let Err(FileError::Partly(cause)) = removed {
            assert!(forbidden(*cause));
            mode("d/locked", 0o700);
        } else {
            removed.unwrap();
            assert!(!yard.at("d").exists());
        }
    };
    std::thread::spawn(work).join().unwrap();
}
