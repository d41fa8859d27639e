//! Directories of backups.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use super::Directory;
use super::tests::Fixture;

#[test]
fn old_backups_are_removed_but_never_the_newest() {
    let fixture = Fixture::new();
    let names = |fixture: &Fixture| fixture.directory().list().unwrap().len();
    for at in [-400, -300, -200, -100] {
        fixture.back_up(at);
    }
    let now = crate::clock::Clock::now(&crate::clock::SystemClock);
    let directory = fixture.directory();
    let foreign = fixture.backups().join("letters");
    std::fs::create_dir(&foreign).unwrap();
    let prune = |instance: &str, count, age: Option<u64>| {
        let age = age.map(Duration::from_secs);
        directory.prune(instance, count, age, now).unwrap().len()
    };
    assert_eq!(prune("another", 1, Some(1)), 0);
    assert_eq!(prune("here", 0, None), 0);
    assert_eq!(prune("here", 3, None), 1);
    assert_eq!(prune("here", 0, Some(250)), 1);
    assert_eq!(names(&fixture), 2);
    assert_eq!(prune("here", 1, Some(1)), 1);
    assert_eq!(prune("here", 1, Some(1)), 0);
    assert_eq!(names(&fixture), 1);
    assert!(foreign.exists());
    // One of a day with a wrong clock neither counts as the newest nor goes.
    fixture.back_up(1_000_000);
    assert_eq!(prune("here", 1, Some(1)), 0);
    assert_eq!(names(&fixture), 2);
}

#[test]
fn directories_that_are_not_safe_for_backups_are_refused() {
    let fixture = Fixture::new();
    let open = |path: &Path| Directory::make(path, &fixture.data()).map(drop);
    let inside = open(&fixture.data().join("users/backups"))
        .unwrap_err()
        .to_string();
    assert!(inside.contains("lies in the data directory"), "{inside}");
    std::fs::create_dir(fixture.backups()).unwrap();
    std::fs::set_permissions(fixture.backups(), PermissionsExt::from_mode(0o777)).unwrap();
    let open_to_all = open(&fixture.backups()).unwrap_err().to_string();
    assert!(open_to_all.contains("make it 0700"), "{open_to_all}");
}
