use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::super::rename::{rename_beside_agent, rename_in_steps, rename_to_free};
use super::*;

/// A directory with one entry of each type that can be renamed.
fn entries() -> (TempDir, OwnedFd) {
    let top = tempfile::tempdir().unwrap();
    fs::write(top.path().join("file"), "file").unwrap();
    symlink("nowhere", top.path().join("link")).unwrap();
    fs::create_dir_all(top.path().join("dir/sub")).unwrap();
    let opened = OwnedFd::from(fs::File::open(top.path()).unwrap());
    (top, opened)
}

#[rstest::rstest]
#[case::where_nobody_else_gives_names(0)]
#[case::beside_an_agent(1)]
#[case::on_a_file_system_that_cannot_do_it_at_once(2)]
fn what_is_renamed_replaces_nothing(#[case] how: u8) {
    let rename = |from: &OwnedFd, old: &str, to: &OwnedFd, new: &str| match how {
        0 => rename_to_free(from, old, to, new),
        1 => rename_beside_agent(from, old, to, new),
        _ => rename_in_steps(from, old, to, new),
    };
    let (top, dir) = entries();
    let before = snapshot(top.path());
    for from in ["file", "link", "dir"] {
        for to in ["file", "link", "dir", "dir/sub"] {
            let outcome = rename(&dir, from, &dir, to);
            // A directory that is moved into itself is refused for that, or for what is there.
            let refused = matches!(outcome, Err(Errno::EXIST | Errno::INVAL))
                // Two names of one file are the same to the system.
                || (from == to && outcome.is_ok());
            assert!(refused, "{from} to {to}: {outcome:?}");
        }
    }
    assert_eq!(snapshot(top.path()), before);
    assert_eq!(rename(&dir, "dir", &dir, "dir/sub/dir"), Err(Errno::INVAL));
    assert_eq!(rename(&dir, "none", &dir, "new"), Err(Errno::NOENT));
    for from in ["file", "link", "dir"] {
        rename(&dir, from, &dir, &format!("new-{from}")).unwrap();
        assert!(fs::symlink_metadata(top.path().join(from)).is_err());
    }
    let renamed = snapshot(top.path());
    for from in ["file", "link", "dir"] {
        let new = &renamed[Path::new(&format!("new-{from}"))];
        assert_eq!(new.content, before[Path::new(from)].content);
    }
    assert!(renamed.contains_key(Path::new("new-dir/sub")));
}
