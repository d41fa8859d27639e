//! Restores of backups that were tampered with.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::tests::{Fixture, keys_in, open};
use super::*;

/// Changes a backup as a writer to its directory does, who has no key.
fn tamper(folder: &Path, change: impl FnOnce(&mut Value, &mut Vec<Value>)) {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let mut head: Value = serde_json::from_str(&read(HEAD)).unwrap();
    let mut lines: Vec<Value> = read(LINES)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    head["sections"] = json!([]);
    change(&mut head, &mut lines);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    head["lines_sha256"] = json!(hex::encode(Sha256::digest(&text)));
    if head["entries"].as_u64() < Some(u64::MAX) {
        head["entries"] = json!(lines.len());
    }
    std::fs::write(folder.join(LINES), text).unwrap();
    std::fs::write(folder.join(HEAD), head.to_string()).unwrap();
}

fn line(path: &str, kind: &str, more: Value) -> Value {
    let mut line = json!({
        "path": path, "kind": kind, "mode": "0644", "uid": rustix::process::geteuid().as_raw(),
        "gid": rustix::process::getegid().as_raw(), "mtime": [1, 1],
    });
    line.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    line
}

fn file(path: &str) -> Value {
    let digest = hex::encode(Sha256::digest("planted"));
    line(path, "file", json!({"size": 7, "sha256": digest}))
}

fn same(path: &str, as_path: &str) -> Value {
    let mut line = file(path);
    line["same_as"] = json!(as_path);
    line
}

fn link(path: &str, target: &Path) -> Value {
    line(path, "link", json!({"target": target}))
}

/// Everything but backups and target: paths, kinds, modes, owners, inodes, numbers of links and contents.
fn surroundings(root: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("backups") || path.ends_with("target") {
                continue;
            }
            let meta = path.symlink_metadata().unwrap();
            let content = match meta.is_file() {
                true => std::fs::read(&path).unwrap(),
                false => Vec::new(),
            };
            let (ino, nlink) = (meta.ino(), meta.nlink());
            all.push(format!(
                "{path:?} {:o} {ino} {nlink} {content:?}",
                meta.mode()
            ));
            if meta.is_dir() {
                open.push(path);
            }
        }
    }
    all.sort();
    all
}

/// Lines that are added, and the paths that a restore must name.
type Case = (&'static str, Vec<Value>, Vec<&'static str>);

fn cases(outside: &Path) -> Vec<Case> {
    let secret = outside.join("secret");
    let absolute = secret.to_str().unwrap();
    let l = "users/alice/l";
    vec![
        (
            "parent",
            vec![file("users/../../outside/x")],
            vec!["users/../../outside/x"],
        ),
        ("top", vec![file("../outside/x")], vec!["../outside/x"]),
        (
            "escaped",
            vec![file("%2e%2e/outside/x")],
            vec!["../outside/x"],
        ),
        ("absolute", vec![file(absolute)], vec!["outside/secret"]),
        (
            "absolute directory",
            vec![line(outside.to_str().unwrap(), "dir", json!({}))],
            vec!["outside"],
        ),
        ("empty", vec![file("")], vec![]),
        (
            "nul",
            vec![file("users/alice/a%00b")],
            vec!["users/alice/a%00b"],
        ),
        ("key", vec![file("master.key")], vec!["master.key"]),
        (
            "log of a database",
            vec![file("agentyard.db-wal")],
            vec!["agentyard.db-wal"],
        ),
        (
            "root as a link",
            vec![link("users", outside)],
            vec!["users: "],
        ),
        (
            "link as a parent",
            vec![link(l, outside), file("users/alice/l/x")],
            vec!["users/alice/l/x"],
        ),
        (
            "link as a directory",
            vec![link(l, outside), line(l, "dir", json!({}))],
            vec!["users/alice/l: "],
        ),
        (
            "file as a parent",
            vec![file("users/alice/f"), file("users/alice/f/x")],
            vec!["users/alice/f/x"],
        ),
        (
            "link over a link",
            vec![link(l, outside), link(l, Path::new("/"))],
            vec!["users/alice/l: "],
        ),
        (
            "file over a link",
            vec![link(l, &secret), file(l)],
            vec!["users/alice/l: "],
        ),
        (
            "hard link through a link",
            vec![
                link(l, outside),
                same("users/alice/h", "users/alice/l/secret"),
            ],
            vec!["users/alice/h"],
        ),
        (
            "hard link onto a link",
            vec![link(l, &secret), same("users/alice/h", l)],
            vec!["users/alice/h"],
        ),
        (
            "hard link outside",
            vec![same("users/alice/h", "../outside/secret")],
            vec!["users/alice/h"],
        ),
        (
            "hard link outside, absolute",
            vec![same("users/alice/h", absolute)],
            vec!["users/alice/h"],
        ),
        (
            "hard link onto a directory",
            vec![same("users/alice/h", "users/alice/.agent")],
            vec!["users/alice/h"],
        ),
        (
            "hard link onto a later line",
            vec![
                same("users/alice/h", "users/alice/f"),
                file("users/alice/f"),
            ],
            vec!["users/alice/h"],
        ),
        (
            "hard link into another home",
            vec![file("users/bob/f"), same("users/alice/h", "users/bob/f")],
            vec!["users/alice/h"],
        ),
        (
            "fifo",
            vec![file("users/alice/fifo")],
            vec!["users/alice/fifo"],
        ),
        (
            "directory as a file",
            vec![file("users/alice/.agent/workspace")],
            vec!["users/alice/.agent/workspace"],
        ),
        (
            "listed twice",
            vec![file("users/alice/f"), file("users/alice/f")],
            vec!["users/alice/f"],
        ),
        (
            "no target",
            vec![line(l, "link", json!({}))],
            vec!["users/alice/l: "],
        ),
        (
            "giant hole",
            vec![line(
                "users/alice/hole",
                "file",
                json!({"size": 1_u64 << 43, "sha256": "00"}),
            )],
            vec!["users/alice/hole"],
        ),
        (
            "another size",
            vec![line(
                "users/alice/f",
                "file",
                json!({"size": u64::MAX, "sparse": true}),
            )],
            vec!["users/alice/f"],
        ),
        (
            "no owner",
            vec![line("users/alice/d", "dir", json!({"uid": u32::MAX}))],
            vec!["users/alice/d"],
        ),
        (
            "changed bytes",
            vec![line(
                "users/alice/f",
                "file",
                json!({"size": 7, "sha256": "00"}),
            )],
            vec!["users/alice/f"],
        ),
        (
            "sealed elsewhere",
            vec![{
                let mut line = file("users/alice/f");
                line["sealed"] = json!(true);
                line
            }],
            vec!["users/alice/f"],
        ),
        // What is odd and does no harm.
        (
            "odd times and modes",
            vec![line(
                "users/alice/d",
                "dir",
                json!({"mtime": [i64::MAX, i64::MAX], "mode": "7777777777777"}),
            )],
            vec![],
        ),
        (
            "bits",
            vec![line("users/alice/d", "dir", json!({"mode": "7755"}))],
            vec![],
        ),
    ]
}

#[test]
fn tampered_lines_change_nothing_outside_the_target() {
    let fixture = Fixture::new();
    let root = fixture.root.path();
    let outside = root.join("outside");
    std::fs::create_dir_all(outside.join("inner")).unwrap();
    std::fs::write(outside.join("secret"), "of the host").unwrap();
    std::fs::set_permissions(outside.join("secret"), PermissionsExt::from_mode(0o600)).unwrap();
    let backup = fixture.back_up(0);
    let folder = backup.path().to_owned();
    let planted = |path: &str, content: &str| {
        std::fs::create_dir_all(folder.join(path).parent().unwrap()).unwrap();
        std::fs::write(folder.join(path), content).unwrap();
    };
    planted("users/alice/l/x", "planted");
    planted("users/alice/f", "planted");
    planted("users/bob/f", "planted");
    planted("master.key", "planted");
    planted("agentyard.db-wal", "planted");
    symlink(outside.join("secret"), folder.join("users/alice/h")).unwrap();
    rustix::fs::mknodat(
        CWD,
        folder.join("users/alice/fifo"),
        FileType::Fifo,
        Mode::RWXU,
        0,
    )
    .unwrap();
    let hole = std::fs::File::create(folder.join("users/alice/hole")).unwrap();
    hole.set_len(1 << 43).unwrap();
    let (head, lines) = (
        std::fs::read(folder.join(HEAD)).unwrap(),
        std::fs::read(folder.join(LINES)).unwrap(),
    );
    let before = surroundings(root);
    let target = root.join("target");
    for (name, added, named) in cases(&outside) {
        std::fs::write(folder.join(HEAD), &head).unwrap();
        std::fs::write(folder.join(LINES), &lines).unwrap();
        tamper(&folder, |_, lines| lines.extend(added));
        let backup = Backup::open(&folder).unwrap();
        assert_eq!(
            backup.trust(Some(&fixture.keys)).unwrap(),
            Trust::Changed,
            "{name}"
        );
        std::fs::create_dir(&target).unwrap();
        let placed = backup.place(
            &Selection::all(),
            &open(&target),
            Owners::Originals,
            SealedFiles::Open(&fixture.keys),
            &mut |_| true,
        );
        let placed = placed.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(surroundings(root), before, "{name}");
        let names = placed.damaged_names.join("\n");
        assert_eq!(placed.damaged, named.len() as u64, "{name}: {names}");
        for path in named {
            assert!(names.contains(path), "{name}: {names}");
        }
        let kept = std::fs::read(target.join("users/alice/.agent/workspace/notes.txt")).unwrap();
        assert_eq!(kept, b"remember", "{name}");
        if let Ok(made) = std::fs::metadata(target.join("users/alice/d")) {
            assert_eq!(made.mode() & 0o7000, 0, "{name}");
        }
        std::fs::remove_dir_all(&target).unwrap();
    }
    // Parents after what is in them, and the other way round.
    std::fs::write(folder.join(HEAD), &head).unwrap();
    std::fs::write(folder.join(LINES), &lines).unwrap();
    tamper(&folder, |_, lines| lines.reverse());
    let backup = Backup::open(&folder).unwrap();
    assert_eq!(super::tests::restore(&backup, &target).damaged, 0);
    assert_eq!(surroundings(root), before);
}

#[test]
fn tampered_head_is_refused_or_harmless() {
    let fixture = Fixture::new();
    let backup = fixture.back_up(0);
    let folder = backup.path().to_owned();
    let was = std::fs::read(folder.join(HEAD)).unwrap();
    let lines = std::fs::read(folder.join(LINES)).unwrap();
    let refused: [(&str, Value, &str); 7] = [
        (
            "/database/file",
            json!("../outside/secret"),
            "unknown kind or name",
        ),
        ("/database/kind", json!("mysql"), "unknown kind or name"),
        ("/service_user", json!([u32::MAX, 0]), "no user"),
        ("/format", json!(u32::MAX), "newer release"),
        ("/instance", json!("\u{1b}[2J"), "control characters"),
        ("/agentyard", json!("x".repeat(10_000)), "too long"),
        ("/entries", json!(u64::MAX), "damaged in line"),
    ];
    for (at, value, said) in refused {
        std::fs::write(folder.join(HEAD), &was).unwrap();
        tamper(&folder, |head, _| *head.pointer_mut(at).unwrap() = value);
        let to = tempfile::tempdir().unwrap();
        let placed = Backup::open(&folder).and_then(|backup| {
            let (owners, sealed) = (Owners::Caller, SealedFiles::LeaveOut);
            backup.place(
                &Selection::all(),
                &open(to.path()),
                owners,
                sealed,
                &mut |_| true,
            )
        });
        let error = placed.unwrap_err().to_string();
        assert!(error.contains(said), "{at}: {error}");
        let head = std::fs::read(folder.join(HEAD)).unwrap();
        let parsed = parse_manifest(&head, &lines).unwrap_err().to_string();
        assert!(parsed.contains(said), "{at}: {parsed}");
    }
    std::fs::write(folder.join(HEAD), &was).unwrap();
    tamper(&folder, |head, _| {
        head["left_out"]["counts"] = json!({"a": u64::MAX, "b": u64::MAX});
        head["sections"] = json!([{"path": "users/alice", "offset": u64::MAX, "lines": u64::MAX}]);
        head["bytes"] = json!(u64::MAX);
    });
    let backup = Backup::open(&folder).unwrap();
    assert_eq!(backup.head.left_out.total(), u64::MAX);
    assert!(backup.has(Path::new("users/alice/x")).is_err());
    assert_eq!(parse_manifest(&was, &lines).unwrap().1, backup.head.entries);
}

#[test]
fn fault_of_a_line_is_short_and_plain() {
    let fixture = Fixture::new();
    let backup = fixture.back_up(0);
    let folder = backup.path().to_owned();
    for kind in ["\u{1b}[2J".to_owned(), "x".repeat(10_000)] {
        tamper(&folder, |_, lines| lines[0]["kind"] = json!(kind));
        let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
        let fault = parse_manifest(&read(HEAD), &read(LINES)).unwrap_err();
        let BackupError::NotABackup { detail, .. } = fault else {
            panic!("{fault}");
        };
        assert!(detail.contains("damaged in line 1"), "{detail}");
        assert!(detail.chars().count() <= 300 && !detail.contains(char::is_control));
    }
}

#[test]
fn manifest_is_trusted_by_its_mac_only() {
    let fixture = Fixture::new();
    let backup = fixture.back_up(0);
    let folder = backup.path().to_owned();
    let others = keys_in(&fixture.root.path().join("other"));
    let trust = |keys: Option<&Keys>| Backup::open(&folder).unwrap().trust(keys).unwrap();
    assert_eq!(trust(Some(&fixture.keys)), Trust::Authentic);
    assert_eq!(trust(None), Trust::NoKey);
    assert_eq!(trust(Some(&others)), Trust::OtherKey);
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let (head, mac) = (read(HEAD), read(MAC));
    tamper(&folder, |_, lines| lines[0]["mode"] = json!("0777"));
    assert_eq!(trust(Some(&fixture.keys)), Trust::Changed);
    tamper(&folder, |head, _| {
        head["key"]["fingerprint"] = json!(others.fingerprint());
    });
    assert_eq!(trust(Some(&fixture.keys)), Trust::OtherKey);
    assert_eq!(trust(Some(&others)), Trust::Changed);
    std::fs::write(folder.join(HEAD), [&head[..], b" "].concat()).unwrap();
    assert_eq!(trust(Some(&fixture.keys)), Trust::Changed);
    std::fs::write(folder.join(HEAD), &head).unwrap();
    for wrong in [&b""[..], b"00", &[b'0'; 64], &[b'0'; 5000], &[0xff; 64]] {
        std::fs::write(folder.join(MAC), wrong).unwrap();
        assert_eq!(trust(Some(&fixture.keys)), Trust::Changed, "{wrong:?}");
    }
    std::fs::write(folder.join(MAC), mac).unwrap();
    assert_eq!(trust(Some(&fixture.keys)), Trust::Authentic);
    std::fs::remove_file(folder.join(MAC)).unwrap();
    assert_eq!(trust(Some(&fixture.keys)), Trust::NoMac);
}

#[test]
fn manifest_without_a_mac_shares_nothing() {
    let fixture = Fixture::new();
    let first = fixture.back_up(10);
    std::fs::remove_file(first.path().join(MAC)).unwrap();
    let second = fixture.back_up(20);
    assert_eq!(second.head.shared, 0);
    assert_eq!(fixture.back_up(30).head.shared, 3);
}
