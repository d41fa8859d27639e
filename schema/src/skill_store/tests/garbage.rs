//! What is removed and what is kept.

use super::raw_zip::zip;
use super::*;
use crate::ids::Timestamp;

const EVER: Timestamp = Timestamp::from_millis(i64::MAX);

#[test]
fn what_is_old_enough_is_removed_with_its_name() {
    let yard = Yard::new();
    let one = yard.import_files(&[("a", b"1"), ("b", b"")]);
    let other = yard.import_files(&[("a", b"2"), ("b", b"")]);
    let skill = one.name.clone();
    let found = yard.store.digests(&skill).unwrap();
    assert_eq!(found.len(), 2);
    let (_, when) = found
        .iter()
        .find(|(digest, _)| *digest == one.digest)
        .unwrap();
    let before = Timestamp::from_millis(when.as_millis() - 1);
    assert!(
        !yard
            .store
            .remove_unused(&skill, &one.digest, before)
            .unwrap()
    );
    assert!(yard.store.contains(&skill, &one.digest).unwrap());
    assert!(
        yard.store
            .remove_unused(&skill, &one.digest, *when)
            .unwrap()
    );
    assert!(!yard.store.contains(&skill, &one.digest).unwrap());
    assert_eq!(yard.store.names().unwrap(), std::slice::from_ref(&skill));
    assert!(
        yard.store
            .remove_unused(&skill, &one.digest, *when)
            .unwrap(),
        "gone already"
    );
    assert!(
        yard.store
            .remove_unused(&skill, &other.digest, EVER)
            .unwrap()
    );
    assert_eq!(yard.store.names().unwrap(), []);
    assert_eq!(yard.store.digests(&skill).unwrap(), []);
    assert!(
        yard.store
            .remove_unused(&skill, &other.digest, EVER)
            .unwrap()
    );
    assert!(yard.left().is_empty());
}

#[test]
fn what_is_taken_in_again_is_young_again() {
    let yard = Yard::new();
    let files: [(&str, &[u8]); 2] = [("a", b"1"), ("b", b"")];
    let first = yard.import_files(&files);
    let when = |yard: &Yard| yard.store.digests(&first.name).unwrap()[0].1;
    let then = when(&yard);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert!(yard.import_files(&files).already_there);
    assert!(when(&yard) > then);
    assert!(
        !yard
            .store
            .remove_unused(&first.name, &first.digest, then)
            .unwrap()
    );
}

#[test]
fn a_tree_is_readable_while_it_is_removed() {
    let yard = Yard::new();
    let one = yard.import_files(&[("a", b"1"), ("b", b"")]);
    let dir = yard
        .store
        .open_tree(&one.name, &one.digest)
        .unwrap()
        .unwrap();
    assert!(
        yard.store
            .remove_unused(&one.name, &one.digest, EVER)
            .unwrap()
    );
    assert_eq!(
        digest_tree(dir, TreeLimits::LARGEST)
            .unwrap()
            .map(|tree| tree.files),
        Some(0)
    );
}

#[test]
fn leftovers_are_removed_and_what_is_in_work_is_not() {
    let yard = Yard::new();
    let kept = yard.import_files(&[("a", b"1"), ("b", b"")]);
    for leftover in [".import-1", ".removing-2"] {
        fs::create_dir_all(yard.skills().join(leftover).join("deep/er")).unwrap();
        fs::write(yard.skills().join(leftover).join("file"), "").unwrap();
    }
    let in_work = temporary::Temporary::create(&yard.store).unwrap();
    yard.store.clear_leftovers().unwrap();
    let left: Vec<_> = yard
        .left()
        .into_iter()
        .filter(|path| path.parent() == Some(&yard.skills()))
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.contains(&yard.skills().join(&in_work.name)));
    drop(in_work);
    yard.store.clear_leftovers().unwrap();
    assert_eq!(yard.left().len(), 4);
    assert_eq!(yard.store.names().unwrap(), [kept.name]);
}

#[test]
fn what_was_cancelled_at_any_point_leaves_nothing_and_is_there_the_next_time() {
    use crate::fault::in_process::{crash_at, record};
    let bytes = zip(&[Raw::file("a", "1"), Raw::file("b/c", "")]);
    let yard = Yard::new();
    let (_, points) = record(|| yard.import(&bytes).unwrap());
    assert!(points.len() >= 8, "{points:?}");
    for nth in 1..=points.len() {
        let yard = Yard::new();
        assert!(crash_at(nth, || yard.import(&bytes)).is_none());
        for name in yard.store.names().unwrap() {
            for (digest, _) in yard.store.digests(&name).unwrap() {
                let dir = yard.store.open_tree(&name, &digest).unwrap().unwrap();
                let found = digest_tree(dir, TreeLimits::LARGEST).unwrap().unwrap();
                assert_eq!(found.digest, digest, "complete if it is there");
            }
        }
        let imported = yard.import(&bytes).unwrap();
        assert_eq!(yard.left().len(), 5, "{nth}: {:?}", yard.left());
        let removal = || {
            yard.store
                .remove_unused(&imported.name, &imported.digest, EVER)
                .unwrap()
        };
        if crash_at(nth.min(4), removal).is_none() {
            assert!(removal());
        }
        yard.store.clear_leftovers().unwrap();
        assert!(yard.left().is_empty(), "{nth}");
    }
}
