use std::fs;

use super::Checkouts;
use crate::ids::Uid;
use crate::skill_store::SkillStore;

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
    let offered = checkouts.publish(&uid, &new, "c0ffee").unwrap();
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
