//! What becomes of packages that are as they should be.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use super::raw_zip::zip;
use super::*;

const MANIFEST: &str =
    "---\nname: pdf-forms\ndescription: Fills forms.\nversion: 1.10\n---\n# Forms\n";

/// A skill as files of a directory.
fn directory() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("SKILL.md"), MANIFEST).unwrap();
    fs::create_dir_all(dir.path().join("scripts/empty")).unwrap();
    let script = dir.path().join("scripts/fill.sh");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o4710)).unwrap();
    fs::set_permissions(
        dir.path().join("SKILL.md"),
        fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    dir
}

fn entries(top: &str) -> Vec<Raw> {
    vec![
        Raw::file(format!("{top}SKILL.md"), MANIFEST),
        Raw::file(format!("{top}scripts/fill.sh"), "#!/bin/sh\n").mode(0o100_700),
    ]
}

#[test]
fn the_same_content_is_one_digest_wherever_it_comes_from() {
    let yard = Yard::new();
    let first = yard.import(&zip(&entries(""))).unwrap();
    assert!(!first.already_there);
    assert_eq!((first.files, first.bytes), (2, MANIFEST.len() as u64 + 10));
    assert_eq!(
        first.manifest.as_ref().unwrap().version.as_deref(),
        Some("1.10")
    );
    let tree = yard.tree(&first);
    assert_eq!(tree["SKILL.md"], (0o644, MANIFEST.as_bytes().to_vec()));
    assert_eq!(tree["scripts/fill.sh"], (0o755, b"#!/bin/sh\n".to_vec()));
    let mut turned = entries("some-top/");
    turned.reverse();
    turned[0].stored = true;
    turned[1].descriptor = true;
    turned.push(Raw::directory("some-top/nothing/"));
    let dir = directory();
    for again in [
        yard.import(&zip(&turned)).unwrap(),
        yard.store
            .import_dir(open(dir.path()), &name("skill"))
            .unwrap(),
    ] {
        assert_eq!(again.digest, first.digest);
        assert!(again.already_there);
        assert_eq!(again.manifest, first.manifest);
    }
    let found = digest_tree(open(dir.path()), TreeLimits::LARGEST)
        .unwrap()
        .unwrap();
    assert_eq!(found.digest, first.digest);
    assert_eq!(yard.left().len(), 5, "{:?}", yard.left());
    assert!(yard.store.contains(&first.name, &first.digest).unwrap());
    assert!(!yard.store.contains(&name("other"), &first.digest).unwrap());
}

#[test]
fn every_difference_is_another_digest() {
    let yard = Yard::new();
    let with = |files: &[(&str, &str, u32)]| {
        let files: Vec<Raw> = files
            .iter()
            .map(|(path, content, mode)| Raw::file(*path, *content).mode(0o100_000 | mode))
            .collect();
        yard.import(&zip(&files)).unwrap().digest
    };
    let beside = ("z", "", 0o644);
    let digests = [
        with(&[beside, ("a", "x", 0o644)]),
        with(&[beside, ("a", "y", 0o644)]),
        with(&[beside, ("a", "x", 0o755)]),
        with(&[beside, ("b", "x", 0o644)]),
        with(&[beside, ("a/x", "", 0o644)]),
        with(&[beside, ("ax", "", 0o644)]),
        with(&[beside, ("a", "", 0o644), ("x", "", 0o644)]),
        with(&[beside, ("a", "x", 0o644), ("x", "", 0o644)]),
    ];
    let different: std::collections::BTreeSet<_> = digests.iter().collect();
    assert_eq!(different.len(), digests.len());
    // What installations have on their disks may never change. Computed by another program.
    let known = with(&[
        ("SKILL.md", "# A skill\n", 0o644),
        ("scripts.txt", "", 0o644),
        ("scripts/run", "#!/bin/sh\n", 0o755),
    ]);
    assert_eq!(
        known.as_str(),
        "46ef0b0e3aa1d3ea6c070fdcf45bbc35a383843f6e1cfca80542ac38ab50eb35"
    );
}

#[test]
fn a_name_is_given_or_found() {
    let yard = Yard::new();
    let import =
        |files: &[Raw], name: Option<&SkillName>| yard.store.import_zip(file_of(&zip(files)), name);
    let plain = |top: &str| vec![Raw::file(format!("{top}a"), "")];
    let given = name("given");
    assert_eq!(import(&entries("top/"), Some(&given)).unwrap().name, given);
    assert_eq!(
        import(&entries("top/"), None).unwrap().name,
        name("pdf-forms")
    );
    assert_eq!(import(&plain("top/"), None).unwrap().name, name("top"));
    let refused = |files: &[Raw], expected: &str| {
        assert_eq!(rule(&import(files, None).unwrap_err()), expected);
    };
    refused(&[Raw::file("a", ""), Raw::file("b/c", "")], "NoName");
    refused(
        &[Raw::file("top/SKILL.md", "---\nname: a/b\n---\n")],
        "InvalidName",
    );
    refused(
        &[Raw::file("top/SKILL.md", "---\nname: .hidden\n---\n")],
        "InvalidName",
    );
    refused(
        &[Raw::file("top/SKILL.md", "---\nname: ''\n---\n")],
        "InvalidName",
    );
    refused(
        &[Raw::file("top/SKILL.md", "---\nname: __MACOSX\n---\n")],
        "InvalidName",
    );
    refused(&[Raw::file(".top/a", "")], "InvalidName");
    refused(
        &[Raw::file("top/SKILL.md", "---\nname: [\n---\n")],
        "FrontMatter",
    );
    let odd = import(
        &[Raw::file("top/SKILL.md", "---\nname: a/b\n---\n")],
        Some(&given),
    )
    .unwrap();
    assert_eq!(
        odd.manifest.unwrap().name.as_deref(),
        Some("a/b"),
        "which is only shown"
    );
    assert!(yard.store.names().unwrap().contains(&given));
}

#[test]
fn a_package_may_have_no_manifest_and_its_manifest_no_front_matter() {
    let yard = Yard::new();
    assert_eq!(yard.import_files(&[("a", b""), ("b", b"")]).manifest, None);
    let bare = yard.import_files(&[("skill.MD", b"# A skill"), ("b", b"")]);
    assert_eq!(bare.manifest, Some(FrontMatter::default()));
    let mut long = b"---\nname: x\n---\n".to_vec();
    long.extend((0..1_000_000_u32).flat_map(u32::to_le_bytes));
    let long = yard.import_files(&[("SKILL.md", &long), ("b", b"")]);
    assert_eq!(long.manifest.unwrap().name.as_deref(), Some("x"));
}

#[test]
fn a_directory_is_taken_in_without_links_and_data_of_version_control() {
    let yard = Yard::new();
    let dir = directory();
    let plain = yard
        .store
        .import_dir(open(dir.path()), &name("skill"))
        .unwrap();
    assert_eq!(plain.skipped_links, 0);
    for git in [".git/hooks", "scripts/.git"] {
        fs::create_dir_all(dir.path().join(git)).unwrap();
        fs::write(dir.path().join(git).join("config"), "x").unwrap();
    }
    fs::write(dir.path().join(".DS_Store"), "x").unwrap();
    symlink("/etc/passwd", dir.path().join("passwd")).unwrap();
    symlink("/etc", dir.path().join("scripts/etc")).unwrap();
    symlink("..", dir.path().join("scripts/loop")).unwrap();
    symlink("nowhere", dir.path().join("nowhere")).unwrap();
    let again = yard
        .store
        .import_dir(open(dir.path()), &name("skill"))
        .unwrap();
    assert_eq!((again.digest, again.skipped_links), (plain.digest, 4));
    let refused = |expected: &str| {
        let before = yard.left().len();
        let error = yard
            .store
            .import_dir(open(dir.path()), &name("skill"))
            .unwrap_err();
        assert_eq!(rule(&error), expected, "{error}");
        assert_eq!(yard.left().len(), before);
    };
    let socket = dir.path().join("socket");
    drop(UnixListener::bind(&socket).unwrap());
    refused("NotRegular");
    fs::remove_file(socket).unwrap();
    let odd = dir.path().join(std::ffi::OsStr::from_bytes(b"a\xe9"));
    fs::write(&odd, "").unwrap();
    refused("NotUtf8");
    fs::remove_file(odd).unwrap();
    for (path, expected) in [
        ("a\\b", "UnsafePath"),
        ("a\nb", "UnsafePath"),
        ("skill.md", "Duplicate"),
    ] {
        fs::write(dir.path().join(path), "").unwrap();
        refused(expected);
        fs::remove_file(dir.path().join(path)).unwrap();
    }
    let deep = dir.path().join("a/".repeat(33));
    fs::create_dir_all(&deep).unwrap();
    refused("TooDeep");
    fs::remove_dir_all(dir.path().join("a")).unwrap();
    File::create(dir.path().join("sparse"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    refused("Unpacked");
    fs::remove_file(dir.path().join("sparse")).unwrap();
    for n in 0..10_000 {
        fs::write(dir.path().join(format!("{n}")), "").unwrap();
    }
    refused("TooManyEntries");
    for n in 0..10_000 {
        fs::remove_file(dir.path().join(format!("{n}"))).unwrap();
        symlink("x", dir.path().join(format!("{n}"))).unwrap();
    }
    refused("TooManyEntries");
    let empty = tempfile::tempdir().unwrap();
    fs::create_dir(empty.path().join("d")).unwrap();
    let error = yard
        .store
        .import_dir(open(empty.path()), &name("skill"))
        .unwrap_err();
    assert_eq!(rule(&error), "Empty");
}

#[test]
fn a_root_that_is_not_ours_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let skills = data.path().join("skills");
    let refused = || {
        matches!(
            SkillStore::open(data.path()),
            Err(SkillStoreError::RefusedRoot { .. })
        )
    };
    symlink("/tmp", &skills).unwrap();
    assert!(refused());
    fs::remove_file(&skills).unwrap();
    fs::write(&skills, "").unwrap();
    assert!(refused());
    fs::remove_file(&skills).unwrap();
    fs::create_dir(&skills).unwrap();
    fs::set_permissions(&skills, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(refused());
    fs::remove_dir(&skills).unwrap();
    SkillStore::open(data.path()).unwrap();
    let mode = fs::metadata(&skills).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o700);
    SkillStore::open(data.path()).unwrap();
}

#[test]
fn no_room_is_our_trouble_and_leaves_nothing() {
    let yard = Yard::new();
    let too_long = std::io::Error::from(std::io::ErrorKind::StorageFull);
    assert!(SkillStoreError::io("writing", "x")(too_long).is_storage_full());
    // The handle of the package cannot be read.
    let write_only = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(yard.data.path().join("package"))
        .unwrap();
    (&write_only).write_all(&zip(&entries(""))).unwrap();
    let error = yard.store.import_zip(write_only, None).unwrap_err();
    assert!(
        matches!(error, ImportError::Store(SkillStoreError::Io { .. })),
        "{error:?}"
    );
    assert!(yard.left().is_empty());
}
