//! Zip files as people's programs pack them.

use super::*;

fn case(name: &str) -> File {
    let cases = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/skill_store/tests/cases/zips"
    );
    File::open(Path::new(cases).join(name)).unwrap()
}

/// The paths of a skill and the beginnings of its warnings; or parts of the refusal.
type Expected = Result<(&'static [&'static str], &'static [&'static str]), &'static [&'static str]>;

fn check(yard: &Yard, what: &str, file: File, expected: &Expected) -> Result<(), String> {
    match (yard.store.import_zip(file, None), expected) {
        (Ok(found), Ok((paths, warnings))) => {
            let tree = yard.tree(&found);
            let as_expected = tree.keys().eq(paths.iter())
                && found.name.as_str() == "notes"
                && found.warnings.len() == warnings.len()
                && found
                    .warnings
                    .iter()
                    .zip(*warnings)
                    .all(|(said, begin)| said.starts_with(begin));
            let paths: Vec<_> = tree.into_keys().collect();
            match as_expected {
                true => Ok(()),
                false => Err(format!("{what}: {paths:?} {:?}", found.warnings)),
            }
        }
        (Err(error), Err(parts)) => {
            let said = error.to_string();
            match parts.iter().all(|part| said.contains(part)) {
                true => Ok(()),
                false => Err(format!("{what}: {said}")),
            }
        }
        (outcome, _) => Err(format!("{what}: {outcome:?}")),
    }
}

#[test]
fn real_archive_is_read_as_meant_or_says_why_not() {
    const PACK: &str = "pack the folder with `agentyard skill upload FOLDER`";
    let table: &[(&str, Expected)] = &[
        (
            "backslash-powershell51.zip",
            Ok((
                &["SKILL.md", "scripts/run.ps1"],
                &["the paths have \\ in place of /"],
            )),
        ),
        (
            "ascii-escape-with-unicode-path.zip",
            Ok((&["SKILL.md", "café.md"], &[])),
        ),
        (
            "cp437-name-with-unicode-path.zip",
            Ok((&["SKILL.md", "café.md"], &[])),
        ),
        (
            "cp437-name.zip",
            Err(&[
                "names that are not UTF-8: \"notes/caf\\x82.md\" (",
                "CP437",
                PACK,
            ]),
        ),
        (
            "gbk-name.zip",
            Err(&["names that are not UTF-8: \"notes/", ".md\" (", "GBK", PACK]),
        ),
        (
            "finder-icon-cr.zip",
            Ok((
                &["SKILL.md"],
                &[
                    "files that macOS adds were left out: \"notes/Icon\\r\", \"__MACOSX/notes/._Icon\\r\"",
                ],
            )),
        ),
        (
            "zip-as-macos-root-dot-underscore.zip",
            Ok((
                &["SKILL.md"],
                &["files that macOS adds were left out: \"._SKILL.md\""],
            )),
        ),
        (
            "github-archive-with-link.zip",
            Ok((
                &["AGENTS.md", "SKILL.md"],
                &[
                    "symbolic links were left out: \"notes-main/CLAUDE.md\"; a skill has regular files only",
                ],
            )),
        ),
        ("notes.skill", Ok((&["LICENSE.txt", "SKILL.md"], &[]))),
        (
            "skill-md-utf16.zip",
            Err(&["\"SKILL.md\": the file is UTF-16LE", "save it as UTF-8"]),
        ),
        (
            "whole-repository-of-two-skills.zip",
            Err(&[
                "no SKILL.md at its top, and 2 skills below it: \"skills/notes\", \"skills/todo\"",
                "upload the directory of each by itself",
                "agentyard skill repo add",
            ]),
        ),
    ];
    let mut names: Vec<&str> = table.iter().map(|row| row.0).collect();
    names.push("parent-with-nested-skill.zip");
    let cases = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/skill_store/tests/cases/zips"
    );
    for file in fs::read_dir(cases).unwrap() {
        let file = file.unwrap().file_name().into_string().unwrap();
        assert!(names.contains(&file.as_str()), "{file} has no row");
    }
    let failures: Vec<String> = table
        .iter()
        .filter_map(|(name, expected)| check(&Yard::new(), name, case(name), expected).err())
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn skill_within_a_skill_is_named_in_a_warning() {
    let yard = Yard::new();
    let file = case("parent-with-nested-skill.zip");
    let found = yard.store.import_zip(file, None).unwrap();
    assert_eq!(yard.tree(&found).len(), 2);
    let [warning] = found.warnings.as_slice() else {
        panic!("{:?}", found.warnings);
    };
    let begin = "other skills are inside, and come as files of this one: \"web-games\"; ";
    assert!(warning.starts_with(begin), "{warning}");
}

#[test]
fn outdated_unicode_name_is_ignored_with_a_warning() {
    let stale = [&[0x75, 0x70, 8, 0, 1, 0, 0, 0, 0][..], b"old"].concat();
    let entry = Raw {
        extra: stale,
        ..Raw::file("notes/new.md", "x")
    };
    let text = "---\nname: notes\ndescription: Takes notes.\n---\n";
    let bytes = zip(&[Raw::file("notes/SKILL.md", text), entry]);
    let expected: Expected = Ok((
        &["SKILL.md", "new.md"],
        &["Unicode names that do not belong to the names of their entries were ignored: 1"],
    ));
    check(&Yard::new(), "stale", file_of(&bytes), &expected).unwrap();
}

#[test]
fn title_names_a_skill_without_name_and_directory() {
    let yard = Yard::new();
    let text = "---\ntitle: Therapy Mode\ndescription: Helps.\n---\n";
    for (top, expected) in [("", "Therapy Mode"), ("therapy/", "therapy")] {
        let bytes = zip(&[Raw::file(format!("{top}SKILL.md"), text)]);
        let found = yard.store.import_zip(file_of(&bytes), None).unwrap();
        assert_eq!(found.name.as_str(), expected);
        let [warning] = found.warnings.as_slice() else {
            panic!("{:?}", found.warnings);
        };
        let begin = "SKILL.md has the title \"Therapy Mode\" and no name; ";
        assert!(warning.starts_with(begin), "{warning}");
    }
    let text = "---\nname: Managing SSL/TLS\ndescription: Helps.\n---\n";
    let bytes = zip(&[Raw::file("adapter/SKILL.md", text)]);
    let said = yard.store.import_zip(file_of(&bytes), None).unwrap_err();
    let said = said.to_string();
    assert!(
        said.starts_with("\"Managing SSL/TLS\" cannot be the name of a skill: "),
        "{said}"
    );
    assert!(said.contains("`--name`"), "{said}");
}

#[test]
fn every_name_in_another_encoding_is_named() {
    let names: [&[u8]; 8] = [
        b"\x82a", b"\x82b", b"\x82c", b"\x82d", b"\x82e", b"\x82f", b"\x82g", b"h",
    ];
    let bytes = zip(&names.map(|name| Raw::file(name, "")));
    let said = Yard::new().import(&bytes).unwrap_err().to_string();
    let expected = "names that are not UTF-8: \"\\x82a\", \"\\x82b\", \"\\x82c\", \"\\x82d\", \"\\x82e\", and 2 more (";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn directory_around_the_directory_of_a_skill_is_removed() {
    let text = "---\nname: notes\ndescription: Takes notes.\n---\n";
    let bytes = zip(&[
        Raw::directory("down/"),
        Raw::file("down/in/notes/SKILL.md", text),
        Raw::file("down/in/notes/scripts/run", ""),
    ]);
    let expected: Expected = Ok((
        &["SKILL.md", "scripts/run"],
        &["everything is in \"down/in/notes\", which is no part of the skill"],
    ));
    check(&Yard::new(), "nested", file_of(&bytes), &expected).unwrap();
    let plain = zip(&[Raw::file("a/b/c", "")]);
    let imported = Yard::new();
    let found = imported.import(&plain).unwrap();
    assert!(
        imported.tree(&found).contains_key("b/c"),
        "no skill is in it"
    );
}
