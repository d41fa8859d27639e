use std::fs;

use super::{Checkouts, GIT_SCRATCH};
use crate::ids::Uid;
use crate::skill_store::{SkillStore, SkipReason, Skipped};

#[test]
fn a_skill_is_called_as_the_store_calls_it_and_one_with_others_in_it_is_not() {
    let data = tempfile::tempdir().unwrap();
    let checkouts = Checkouts::open(data.path()).unwrap();
    let uid = Uid::from("r1".to_owned());
    let new = checkouts.begin(&uid, None).unwrap();
    for (path, text) in [
        ("a/SKILL.md", "---\nname: a\n---\n"),
        ("a/sub/file", "x"),
        ("a/.DS_Store", "of the system"),
        ("b/SKILL.md", "b"),
        ("b/in/it/SKILL.md", "in b"),
        ("b-not-in/SKILL.md", "beside b"),
        ("broken/SKILL.md", "---\n: [\n---\n"),
    ] {
        let path = new.path.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    std::os::unix::fs::symlink("/etc/passwd", new.path.join("a/link")).unwrap();
    let offered = checkouts.publish(&uid, &new, "c0ffee", &[]).unwrap().skills;
    let called: Vec<_> = offered
        .iter()
        .map(|skill| (skill.path.as_str(), skill.digest.is_some()))
        .collect();
    let expected = [
        ("a", true),
        ("b", false),
        ("b-not-in", true),
        ("b/in/it", true),
        ("broken", false),
    ];
    assert_eq!(called, expected);
    let store = SkillStore::open(data.path()).unwrap();
    for skill in offered.iter().filter(|skill| skill.digest.is_some()) {
        let dir = checkouts.open_skill(&uid, "c0ffee", &skill.path).unwrap();
        let name = skill.name.as_ref().unwrap();
        let imported = store.import_dir(dir.unwrap(), name).unwrap();
        assert_eq!(Some(imported.digest), skill.digest, "{}", skill.path);
    }
}

#[test]
fn place_where_git_works_is_no_repository() {
    let data = tempfile::tempdir().unwrap();
    let checkouts = Checkouts::open(data.path()).unwrap();
    fs::create_dir(data.path().join(GIT_SCRATCH)).unwrap();
    let uid = Uid::from("r1".to_owned());
    checkouts.begin(&uid, None).unwrap();
    assert_eq!(checkouts.uids().unwrap(), [uid]);
}

#[test]
fn what_is_skipped_is_told_of_each_skill_that_it_is_in() {
    let data = tempfile::tempdir().unwrap();
    let checkouts = Checkouts::open(data.path()).unwrap();
    let uid = Uid::from("r1".to_owned());
    let new = checkouts.begin(&uid, None).unwrap();
    for path in ["a/SKILL.md", "a/b/SKILL.md", "c/SKILL.md", "c/x", "c/X"] {
        let path = new.path.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "---\nname: x\n---\n").unwrap();
    }
    let skipped = |path: &[u8], why| {
        let path = path.into();
        Skipped { path, why }
    };
    let offer = checkouts
        .publish(
            &uid,
            &new,
            "c0ffee",
            &[
                skipped(b"a/link", SkipReason::Link),
                skipped(b"a/b/link", SkipReason::Link),
                skipped(b"a/b/Icon\r", SkipReason::Path("has a control character")),
                skipped(b"module", SkipReason::Submodule),
                skipped(b"d/SKILL.md", SkipReason::Link),
                skipped(b"\xe9/skill.md", SkipReason::Path("is not UTF-8")),
            ],
        )
        .unwrap();
    let seen: Vec<_> = offer
        .skills
        .iter()
        .map(|it| {
            let said = it.problem.as_deref().unwrap_or_default();
            let said = said.split([';', ',']).next().unwrap_or_default();
            // Whichever of the two is met last.
            let said = said.replace("\"X\"", "\"x\"");
            (it.path.as_str(), said, it.warnings.len(), it.absent)
        })
        .collect();
    let expected = [
        ("\\xe9", "the path \"\\xe9/skill.md\" is not UTF-8", 0, true),
        ("a", "", 2, false),
        ("a/b", "", 2, false),
        (
            "c",
            "\"x\" is in the package twice (neither letter case nor the way accents are encoded counts)",
            0,
            false,
        ),
        ("d", "its SKILL.md is a symbolic link", 0, true),
    ];
    let expected =
        expected.map(|(path, said, warnings, absent)| (path, said.to_owned(), warnings, absent));
    assert_eq!(seen, expected);
    let warning = &offer.skills[2].warnings[1];
    assert!(
        warning.starts_with("symbolic links were left out: \"link\";"),
        "{warning}"
    );
    let begins = [
        "3 skills cannot be installed as they are: \"\\\\xe9\", \"c\", \"d\";",
        "files that macOS adds were left out: \"a/b/Icon\\r\"",
        "symbolic links were left out: \"a/link\", \"a/b/link\", \"d/SKILL.md\";",
        "submodules were left out: \"module\";",
        "files whose paths cannot be stored were left out: \"\\xe9/skill.md\" is not UTF-8;",
    ];
    assert_eq!(offer.warnings.len(), begins.len(), "{:?}", offer.warnings);
    for (warning, begin) in offer.warnings.iter().zip(begins) {
        assert!(warning.starts_with(begin), "{warning}");
    }
}
