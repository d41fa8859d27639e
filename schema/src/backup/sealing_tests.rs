//! Settings files of agents in backups.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::tests::{Fixture, keys_in, open, restore, verify};
use super::*;
use crate::ids::Timestamp;

const SECRET: &str = "sk-provider-key";

fn with_settings() -> Fixture {
    let fixture = Fixture::new();
    std::fs::create_dir_all(fixture.data().join("archive/bob-1/.agent")).unwrap();
    for path in [
        "users/alice/.agent/.security.yml",
        "users/alice/.agent/config.json",
        "archive/bob-1/.agent/config.json",
        "users/alice/.agent/config.json.20261127.bak",
    ] {
        fixture.write(path, format!("{SECRET} {path}").as_bytes());
    }
    let other_name = fixture.home().join(".agent/security-again");
    std::fs::hard_link(fixture.home().join(".agent/.security.yml"), other_name).unwrap();
    let config = fixture.home().join(".agent/config.json");
    std::fs::set_permissions(config, PermissionsExt::from_mode(0o640)).unwrap();
    fixture
}

fn place(backup: &Backup, sealed: SealedFiles<'_>) -> (tempfile::TempDir, Placed) {
    let to = tempfile::tempdir().unwrap();
    let placed = backup.place(
        &Selection::all(),
        &open(to.path()),
        Owners::Originals,
        sealed,
        &mut |_| true,
    );
    (to, placed.unwrap())
}

#[test]
fn settings_files_are_sealed_and_opened_again() {
    let fixture = with_settings();
    let backup = fixture.back_up(10);
    let in_backup = |path: &str| std::fs::read(backup.path().join(path)).unwrap();
    let paths = [
        "users/alice/.agent/.security.yml",
        "users/alice/.agent/config.json",
        "archive/bob-1/.agent/config.json",
        "users/alice/.agent/config.json.20261127.bak",
    ];
    for path in paths {
        let sealed = in_backup(path);
        assert!(!sealed.windows(5).any(|part| part == b"sk-pr"), "{path}");
    }
    let (copy, placed) = place(&backup, SealedFiles::Open(&fixture.keys));
    assert_eq!((placed.damaged, placed.sealed), (0, 0));
    for path in paths {
        let is = std::fs::read(copy.path().join(path)).unwrap();
        assert_eq!(is, std::fs::read(fixture.data().join(path)).unwrap());
    }
    let config = std::fs::metadata(copy.path().join(paths[1])).unwrap();
    assert_eq!(config.mode() & 0o7777, 0o640);

    let (copy, placed) = place(&backup, SealedFiles::LeaveOut);
    assert_eq!((placed.damaged, placed.sealed), (0, 4));
    let mut named = placed.sealed_names;
    named.sort();
    let mut all = paths.map(str::to_owned);
    all.sort();
    assert_eq!(named, all);
    assert!(!copy.path().join(paths[0]).exists());

    // They are shared as other files are.
    let second = fixture.back_up(20);
    let id = |backup: &Backup| {
        std::fs::metadata(backup.path().join(paths[0]))
            .unwrap()
            .ino()
    };
    assert_eq!(id(&backup), id(&second));
    assert_eq!(verify(&fixture, &second), []);
}

#[test]
fn sealed_files_are_verified_with_and_without_the_key() {
    let fixture = with_settings();
    let backup = fixture.back_up(0);
    let others = keys_in(&fixture.root.path().join("other"));
    let differences = |keys: Option<&Keys>| {
        let (directory, now) = (fixture.directory(), Timestamp::from_secs(0));
        let verified = backup.verify(&directory, now, keys, |_| Ok(()), &mut |_| true);
        verified.unwrap().1
    };
    assert_eq!(differences(None), []);
    assert_eq!(differences(Some(&fixture.keys)), []);
    let others = differences(Some(&others));
    assert_eq!(others.len(), 4, "{others:?}");
    assert!(others[0].detail.contains("another key"), "{others:?}");
    // The sealed file of another path.
    let at = |path: &str| backup.path().join(path);
    let (own, foreign) = (
        "users/alice/.agent/config.json",
        "archive/bob-1/.agent/config.json",
    );
    std::fs::copy(at(foreign), at(own)).unwrap();
    assert_eq!(differences(None)[0].path, own);
}

#[test]
fn giant_settings_file_is_left_out_and_named() {
    let fixture = Fixture::new();
    let config = std::fs::File::create(fixture.home().join(".agent/config.json")).unwrap();
    config.set_len(1 << 40).unwrap();
    let backup = fixture.back_up(0);
    assert_eq!(backup.head.left_out.total(), 1);
    // It keeps no earlier backup: an agent could make such a file for ever.
    assert_eq!(backup.head.left_out.unread(), 0);
    assert!(backup.head.left_out.names[0].contains("config.json: larger than"));
}

#[test]
fn backup_of_an_earlier_release_is_restored() {
    let fixture = Fixture::new();
    let config = Path::new("users/alice/.agent/config.json");
    fixture.write("users/alice/.agent/config.json", b"{}");
    // An earlier release knows no settings files: it copies them as others.
    let backup = fixture.back_up_with(0, SettingsFiles::none());
    assert_eq!(std::fs::read(backup.path().join(config)).unwrap(), b"{}");
    let head = backup.path().join(HEAD);
    let text = std::fs::read_to_string(&head).unwrap();
    assert!(text.contains("\"format\": 2"));
    std::fs::write(&head, text.replace("\"format\": 2", "\"format\": 1")).unwrap();
    std::fs::remove_file(backup.path().join(MAC)).unwrap();
    let backup = Backup::open(backup.path()).unwrap();
    let to = fixture.root.path().join("copy");
    let placed = restore(&backup, &to);
    assert_eq!((placed.damaged, placed.sealed), (0, 0));
    assert_eq!(std::fs::read(to.join(config)).unwrap(), b"{}");
    assert!(
        to.join(Path::new("users/alice/.agent/workspace/notes.txt"))
            .exists()
    );
}
