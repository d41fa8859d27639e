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

    fn discard(&self, path: &str) -> Result<Option<String>, FileError> {
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
    assert_eq!(yard.discard("notes/b").unwrap().as_deref(), Some(ID));
    let second = yard.discard("notes").unwrap().unwrap();
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
fn what_lies_in_the_trash_is_removed_for_good() {
    let yard = yard();
    yard.put("a");
    yard.put("b");
    let id = yard.discard("a").unwrap().unwrap();
    assert_eq!(yard.discard(&format!(".trash/{id}")).unwrap(), None);
    assert_eq!(fs::read_dir(yard.at(".trash")).unwrap().count(), 0);
    yard.discard("b").unwrap().unwrap();
    assert_eq!(yard.discard(".trash").unwrap(), None);
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
    assert_eq!(yard.work.empty_trash(NOW).unwrap(), 0);
    assert_eq!(yard.work.empty_trash(later).unwrap(), 2);
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

    let id = yard.discard("a").unwrap().unwrap();
    for path in ["../../../../secret/x", "/etc/x", "", "a/../../x"] {
        fs::write(yard.at(&format!(".trash/{id}.path")), path).unwrap();
        assert_eq!(yard.trash(), [format!("{id}  file")], "{path}");
    }
    assert_eq!(
        yard.restore(&id, None).unwrap(),
        "a",
        "a place that is not known is the top"
    );

    let id = yard.discard("a").unwrap().unwrap();
    let place = yard.at(&format!(".trash/{id}"));
    fs::remove_dir_all(&place).unwrap();
    symlink(&secret, &place).unwrap();
    fs::write(secret.join("x"), "x").unwrap();
    assert_eq!(yard.trash(), [""; 0]);
    assert!(yard.restore(&id, None).is_err());
    yard.work.empty_trash(NOW.plus(TRASH_KEPT)).unwrap();
    assert!(secret.join("x").exists());
}
