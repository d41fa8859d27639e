use std::ffi::OsStr;
use std::io::Write;
use std::os::fd::OwnedFd;

use rustix::fs::Stat;

use super::super::temporary::{TemporaryFile, is_left, is_temporary};
use super::*;

type Create = fn(OwnedFd) -> rustix::io::Result<TemporaryFile<OwnedFd>>;

fn opened(path: &Path) -> OwnedFd {
    OwnedFd::from(fs::File::open(path).unwrap())
}

#[rstest::rstest]
#[case::without_a_name(TemporaryFile::create, 0)]
#[case::where_every_file_has_a_name(TemporaryFile::create_named, 1)]
fn a_file_is_seen_once_it_is_complete_and_nothing_is_left(
    #[case] create: Create,
    #[case] names: usize,
) {
    let (top, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [dir, goal] = [opened(top.path()), opened(other.path())];
    let count = |path: &Path| fs::read_dir(path).unwrap().count();
    let make = |content: &str| {
        let file = create(rustix::io::fcntl_dupfd_cloexec(&dir, 0).unwrap()).unwrap();
        file.file().write_all(content.as_bytes()).unwrap();
        file
    };
    let first = make("first");
    assert_eq!(count(top.path()), names);
    first.link_new(&goal, OsStr::new("a")).unwrap();
    drop(first);
    let second = make("second");
    let taken = second.link_new(&goal, OsStr::new("a"));
    assert_eq!(taken, Err(rustix::io::Errno::EXIST));
    assert_eq!(fs::read_to_string(other.path().join("a")).unwrap(), "first");
    second.replace(&goal, OsStr::new("a")).unwrap();
    drop(second);
    assert_eq!(
        fs::read_to_string(other.path().join("a")).unwrap(),
        "second"
    );
    fs::create_dir(other.path().join("d")).unwrap();
    let third = make("third");
    let refused = third.replace(&goal, OsStr::new("d"));
    assert_eq!(refused, Err(rustix::io::Errno::ISDIR));
    drop(third);
    assert_eq!((count(top.path()), count(other.path())), (0, 2));
}

#[test]
fn what_was_left_is_known_by_its_name_and_age() {
    let top = tempfile::tempdir().unwrap();
    let file = TemporaryFile::create_named(opened(top.path())).unwrap();
    let name = fs::read_dir(top.path()).unwrap().next().unwrap().unwrap();
    let name = name.file_name();
    let name = name.as_encoded_bytes();
    assert!(is_temporary(name));
    let now = file.stat().unwrap();
    let at = now.st_ctime;
    assert!(!is_left(name, &now, at), "it may still be written");
    let day = 24 * 60 * 60;
    let changed = |seconds| {
        let mut stat: Stat = now;
        stat.st_ctime -= seconds;
        stat
    };
    assert!(is_left(name, &changed(day + 60), at));
    assert!(!is_left(name, &changed(day - 60), at));
    assert!(!is_left(name, &changed(-day), at), "the clock was set back");
    assert!(!is_left(b"report.tmp", &changed(2 * day), at));
}
