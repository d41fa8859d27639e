use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::*;
use crate::home::Homes;
use crate::ids::Uid;

const NOW: Timestamp = Timestamp::from_secs(1_778_500_000);
const ID: &str = "20260511T114640Z";

struct Yard {
    data: tempfile::TempDir,
    work: Workspace,
}

fn yard() -> Yard {
    let data = tempfile::tempdir().unwrap();
    let homes = Homes::open_with(data.path(), "instance-1", None).unwrap();
    let (name, uid) = ("alice".parse().unwrap(), Uid::from("a".repeat(32)));
    homes.ensure(&name, &uid, None).unwrap();
    let work = homes.workspace(&name, &uid).unwrap().unwrap();
    Yard { data, work }
}

impl Yard {
    fn at(&self, path: &str) -> PathBuf {
        let workspace = self.data.path().join("users/alice/.agent/workspace");
        workspace.join(path)
    }

    fn put(&self, path: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), path).unwrap();
    }

    fn discard(&self, path: &str) -> Result<String, FileError> {
        self.work.discard(&(path.parse().unwrap(), NOW))
    }

    fn restore(&self, id: &str, to: Option<&str>) -> Result<String, FileError> {
        let restoration = Restoration {
            id: id.to_owned(),
            to: to.map(|to| to.parse().unwrap()),
        };
        self.work.can_restore(&restoration)?;
        let path = self.work.restore(&restoration)?;
        Ok(path.to_string())
    }

    fn trash(&self) -> Vec<String> {
        let found = self.work.list_trash().unwrap().into_iter();
        let shown = found.map(|one| {
            let path = one.path.map(|path| path.to_string()).unwrap_or_default();
            format!("{} {path} {}", one.id, one.entry.kind)
        });
        shown.collect()
    }
}

#[test]
fn what_was_deleted_comes_back_to_its_place() {
    let yard = yard();
    assert_eq!(yard.trash(), [""; 0]);
    yard.put("notes/2026/todo.txt");
    yard.put("notes/b");
    assert_eq!(yard.discard("notes/b").unwrap(), ID);
    let second = yard.discard("notes").unwrap();
    assert_eq!(second, format!("{ID}-1"));
    assert!(!yard.at("notes").exists());
    let shown = [
        format!("{ID}-1 notes directory"),
        format!("{ID} notes/b file"),
    ];
    assert_eq!(yard.trash(), shown);
    // The directories on the way are made.
    assert_eq!(yard.restore(ID, None).unwrap(), "notes/b");
    let taken = yard.restore(&second, None).unwrap_err();
    assert!(matches!(taken, FileError::Exists { .. }), "{taken}");
    assert_eq!(
        yard.restore(&second, Some("other/old")).unwrap(),
        "other/old"
    );
    assert_eq!(
        fs::read(yard.at("other/old/2026/todo.txt")).unwrap(),
        b"notes/2026/todo.txt"
    );
    assert_eq!(yard.trash(), [""; 0]);
    assert_eq!(fs::read_dir(yard.at(".trash")).unwrap().count(), 0);
    for id in [ID, "", "..", "x", "20260511T114640Z-0", "../../secret"] {
        let error = yard.restore(id, None).unwrap_err();
        assert!(matches!(error, FileError::NotFound { .. }), "{id}: {error}");
    }
}

#[test]
fn trash_and_its_entries_are_removed_only_for_good() {
    let yard = yard();
    yard.put("a");
    yard.put("b");
    let id = yard.discard("a").unwrap();
    for path in [".trash", &format!(".trash/{id}"), &format!(".trash/{id}/a")] {
        let refused = yard.discard(path).unwrap_err();
        assert!(matches!(refused, FileError::InTrash { .. }), "{refused}");
    }
    let remove = |path: &str| yard.work.remove_for_good(&path.parse().unwrap());
    remove(&format!(".trash/{id}")).unwrap();
    assert_eq!(fs::read_dir(yard.at(".trash")).unwrap().count(), 0);
    yard.discard("b").unwrap();
    remove(".trash").unwrap();
    assert!(!yard.at(".trash").exists());
    let missing = yard.discard("c").unwrap_err();
    assert!(matches!(missing, FileError::NotFound { .. }), "{missing}");
    assert!(!yard.at(".trash").exists());
    assert!(matches!(yard.discard(""), Err(FileError::Top)));
}

#[test]
fn only_old_entries_are_emptied() {
    let yard = yard();
    for name in ["a", "b"] {
        yard.put(name);
        yard.discard(name).unwrap();
    }
    yard.put("c");
    let later = NOW.plus(TRASH_KEPT);
    yard.work.discard(&("c".parse().unwrap(), later)).unwrap();
    // The agent's own are left alone.
    fs::create_dir(yard.at(".trash/0-mine")).unwrap();
    let empty = |before, goes_on: bool| yard.work.empty_trash(before, || goes_on).unwrap().removed;
    assert_eq!(empty(NOW, true), 0);
    assert_eq!(empty(later, false), 0);
    assert_eq!(empty(later, true), 2);
    assert_eq!(yard.trash().len(), 1);
    assert_eq!(fs::read_dir(yard.at(".trash")).unwrap().count(), 3);
}

#[test]
fn an_agent_that_changes_the_trash_reaches_nothing_else() {
    let yard = yard();
    let secret = yard.data.path().join("secret");
    fs::create_dir(&secret).unwrap();
    symlink(&secret, yard.at(".trash")).unwrap();
    yard.put("a");
    assert!(yard.discard("a").is_err());
    assert!(yard.at("a").exists());
    assert!(yard.work.list_trash().is_err());
    fs::remove_file(yard.at(".trash")).unwrap();

    let id = yard.discard("a").unwrap();
    for path in ["../../../../secret/x", "/etc/x", "", "a/../../x"] {
        fs::write(yard.at(&format!(".trash/{id}.path")), path).unwrap();
        assert_eq!(yard.trash(), [format!("{id}  file")], "{path}");
    }
    assert_eq!(
        yard.restore(&id, None).unwrap(),
        "a",
        "a place that is not known is the top"
    );

    let id = yard.discard("a").unwrap();
    let place = yard.at(&format!(".trash/{id}"));
    fs::remove_dir_all(&place).unwrap();
    symlink(&secret, &place).unwrap();
    fs::write(secret.join("x"), "x").unwrap();
    assert_eq!(yard.trash(), [""; 0]);
    assert!(yard.restore(&id, None).is_err());
    yard.work
        .empty_trash(NOW.plus(TRASH_KEPT), || true)
        .unwrap();
    assert!(secret.join("x").exists());
}

#[test]
fn entry_that_cannot_be_removed_does_not_stop_the_others() {
    let yard = yard();
    for name in ["many", "b"] {
        yard.put(&format!("{name}/file"));
        yard.discard(name).unwrap();
    }
    let many = yard.at(&format!(".trash/{ID}/many"));
    for number in 0..MOST_EMPTIED {
        fs::write(many.join(number.to_string()), "").unwrap();
    }
    let before = NOW.plus(TRASH_KEPT);
    let emptied = yard.work.empty_trash(before, || true).unwrap();
    assert_eq!(emptied.removed, 1);
    assert!(emptied.problem.is_some());
    assert_eq!(yard.trash().len(), 1);
    let emptied = yard.work.empty_trash(before, || true).unwrap();
    assert_eq!(emptied.removed, 1);
    assert!(emptied.problem.is_none());
    assert_eq!(yard.trash(), [""; 0]);
}
