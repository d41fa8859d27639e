//! The skills of repositories.

use std::os::unix::fs::symlink;

use super::*;

fn repository(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    dir
}

fn list(dir: &TempDir) -> Vec<(String, Option<String>, bool)> {
    let found = list_skills(open(dir.path())).unwrap();
    assert_eq!(found.others, 0);
    let one = |skill: FoundSkill| {
        (
            skill.path,
            skill.name.map(|name| name.to_string()),
            skill.problem.is_some(),
        )
    };
    found.skills.into_iter().map(one).collect()
}

fn found(path: &str, name: Option<&str>, problem: bool) -> (String, Option<String>, bool) {
    (path.to_owned(), name.map(str::to_owned), problem)
}

#[test]
fn every_directory_with_a_manifest_is_a_skill() {
    let long = format!("---\nname: odd\ndescription: {}\n---\n", "ä".repeat(501));
    let dir = repository(&[
        ("SKILL.md", "# The whole"),
        (
            "skills/pdf/SKILL.md",
            "---\nname: pdf-forms\ndescription: Fills.\n---\n",
        ),
        ("skills/pdf/more/skill.md", "# Within another"),
        ("skills/broken/SKILL.md", "---\nname: [\n---\n"),
        ("skills/odd/SKILL.md", "---\nname: a/b\n---\n"),
        (".claude/skills/hidden/SKILL.md", ""),
        (".git/skills/x/SKILL.md", ""),
        ("docs/readme.md", ""),
        ("z/SKILL.md", long.as_str()),
    ]);
    symlink("../pdf", dir.path().join("skills/link")).unwrap();
    symlink("/etc/passwd", dir.path().join("docs/SKILL.md")).unwrap();
    assert_eq!(
        list(&dir),
        [
            found("", None, false),
            found(".claude/skills/hidden", Some("hidden"), false),
            found("skills/broken", Some("broken"), true),
            found("skills/odd", None, true),
            found("skills/pdf", Some("pdf-forms"), false),
            found("skills/pdf/more", Some("more"), false),
            found("z", Some("odd"), false),
        ]
    );
    let skills = list_skills(open(dir.path())).unwrap().skills;
    assert_eq!(skills[4].description.as_deref(), Some("Fills."));
    let cut = skills[6].description.as_deref().unwrap_or_default();
    assert_eq!(cut, "ä".repeat(500));
}

#[test]
fn a_repository_without_any_offers_its_directories() {
    let dir = repository(&[
        ("b/x/readme", ""),
        ("a/readme", ""),
        (".github/x", ""),
        (".git/x", ""),
        ("readme", ""),
    ]);
    symlink("a", dir.path().join("link")).unwrap();
    assert_eq!(
        list(&dir),
        [found("a", Some("a"), false), found("b", Some("b"), false)]
    );
    assert_eq!(list(&repository(&[])), []);
}

#[test]
fn skills_beyond_the_limit_are_the_last_and_counted() {
    let names = ["e", "a", "d", "b", "c"];
    let files: Vec<String> = names.map(|name| format!("{name}/SKILL.md")).into();
    let files: Vec<_> = files.iter().map(|path| (path.as_str(), "")).collect();
    let dir = repository(&files);
    let found = found::list_first(open(dir.path()), 3).unwrap();
    let paths: Vec<_> = found.skills.iter().map(|it| it.path.as_str()).collect();
    assert_eq!((paths, found.others), (vec!["a", "b", "c"], 2));
    let deep = tempfile::tempdir().unwrap();
    let mut path = deep.path().to_owned();
    for _ in 0..200 {
        path.push("d");
    }
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("SKILL.md"), "").unwrap();
    assert_eq!(list(&deep), [found_one("d")]);
}

fn found_one(name: &str) -> (String, Option<String>, bool) {
    (name.to_owned(), Some(name.to_owned()), false)
}
