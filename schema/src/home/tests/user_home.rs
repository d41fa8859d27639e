use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::*;

fn home(world: &Yard) -> UserHome {
    world.homes.ensure(&name("alice"), &uid('a'), None).unwrap()
}

#[test]
fn a_file_is_replaced_whole_and_read_back() {
    let world = Yard::new();
    let home = home(&world);
    let file = ".agent/config.json";
    assert!(!home.file_exists(file).unwrap());
    assert_eq!(home.file_modified(file).unwrap(), None);
    assert_eq!(home.read(file, 10).unwrap(), None);
    home.write_atomic(file, b"old", 0o600).unwrap();
    home.write_atomic(file, b"newer", 0o640).unwrap();
    assert!(home.file_exists(file).unwrap());
    assert!(home.file_modified(file).unwrap().unwrap() > Timestamp::default());
    assert_eq!(home.read(file, 5).unwrap().as_deref(), Some(&b"newer"[..]));
    let metadata = fs::metadata(world.users("alice").join(file)).unwrap();
    assert_eq!(metadata.mode() & 0o7777, 0o640);
    home.write_atomic("top", b"x", 0o600).unwrap();
    let names: Vec<_> = fs::read_dir(world.users("alice/.agent"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "no temporary file stays: {names:?}");
}

#[test]
fn more_than_the_limit_is_not_read() {
    let world = Yard::new();
    let home = home(&world);
    home.write_atomic("file", b"123456", 0o600).unwrap();
    assert!(matches!(
        home.read("file", 5),
        Err(HomeError::TooLarge { limit: 5, .. })
    ));
    // Endless, but only as long as the limit.
    symlink("/dev/zero", world.users("alice/endless")).unwrap();
    assert!(matches!(
        home.read("endless", 5),
        Err(HomeError::NotRegular { .. })
    ));
}

#[rstest::rstest]
#[case("")]
#[case("/etc/passwd")]
#[case("..")]
#[case("../bob/file")]
#[case(".agent/../../bob")]
#[case("a\0b")]
fn unsafe_paths_are_refused(#[case] path: &str) {
    let world = Yard::new();
    let home = home(&world);
    assert!(matches!(
        home.file_exists(path),
        Err(HomeError::UnsafePath { .. })
    ));
    assert!(matches!(
        home.read(path, 9),
        Err(HomeError::UnsafePath { .. })
    ));
    assert!(matches!(
        home.write_atomic(path, b"x", 0o600),
        Err(HomeError::UnsafePath { .. })
    ));
}

#[test]
fn l25_nothing_is_read_or_written_through_planted_links() {
    let world = Yard::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), b"secret").unwrap();
    let home = home(&world);
    let inside = world.users("alice");
    symlink(outside.path(), inside.join("dir")).unwrap();
    symlink(outside.path().join("secret"), inside.join("file")).unwrap();
    // Inside the home, but a link all the same.
    symlink(".agent", inside.join("inner")).unwrap();
    fs::write(inside.join(".agent/own"), b"own").unwrap();
    symlink("/proc/self/root/etc/passwd", inside.join("proc")).unwrap();
    for path in ["dir/secret", "file", "inner/own", "proc"] {
        assert!(!home.file_exists(path).unwrap(), "{path}");
        assert!(
            matches!(home.read(path, 100), Err(HomeError::NotRegular { .. })),
            "{path}"
        );
    }
    for path in ["dir/new", "inner/new"] {
        assert!(matches!(
            home.write_atomic(path, b"x", 0o600),
            Err(HomeError::NotRegular { .. })
        ));
    }
    // A link at the end is replaced, not written through.
    home.write_atomic("file", b"mine", 0o600).unwrap();
    assert!(fs::symlink_metadata(inside.join("file")).unwrap().is_file());
    assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"secret");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn fifos_and_directories_are_no_files_and_never_block() {
    let world = Yard::new();
    let home = home(&world);
    rustix::fs::mkfifoat(home.dir(), "fifo", rustix::fs::Mode::RWXU).unwrap();
    for path in ["fifo", ".agent"] {
        assert!(!home.file_exists(path).unwrap());
        assert!(matches!(
            home.read(path, 9),
            Err(HomeError::NotRegular { .. })
        ));
    }
    assert!(matches!(
        home.write_atomic(".agent", b"x", 0o600),
        Err(HomeError::NotRegular { .. })
    ));
    assert!(matches!(
        home.write_atomic("missing/file", b"x", 0o600),
        Err(HomeError::Io { .. })
    ));
    assert_eq!(fs::read_dir(world.users("alice")).unwrap().count(), 2);
}

/// Ends the swapping thread also when an assertion fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Swaps a directory for a link to a secret place and back while `attempt` runs in a loop, until it
/// has met the real directory often enough (it says so by `true`).
fn race(world: &Yard, outside: &Path, attempt: impl Fn(u32) -> bool) {
    let inside = world.users("alice");
    let stop = AtomicBool::new(false);
    let swaps = AtomicU32::new(0);
    fs::create_dir(inside.join("real")).unwrap();
    fs::write(inside.join("real/file"), b"harmless").unwrap();
    symlink(outside, inside.join("evil")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for target in ["real", "evil"] {
                    fs::rename(inside.join(target), inside.join("dir")).unwrap();
                    std::thread::yield_now();
                    fs::rename(inside.join("dir"), inside.join(target)).unwrap();
                }
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let _stopping = StopOnDrop(&stop);
        let mut met = 0;
        for round in 0..2_000_000 {
            met += u32::from(attempt(round));
            if round >= 5_000 && met >= 50 && swaps.load(Ordering::Relaxed) >= 100 {
                return;
            }
        }
        panic!("the race did not take place");
    });
}

#[test]
fn l25_swapping_a_directory_for_a_link_never_leads_outside() {
    let world = Yard::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), b"secret").unwrap();
    let home = home(&world);
    race(&world, outside.path(), |round| {
        // Fewer writes, since each waits for the disk.
        if round % 50 == 0 {
            return home.write_atomic("dir/file", b"harmless", 0o600).is_ok();
        }
        match home.read("dir/file", 100) {
            Ok(Some(content)) => {
                assert_eq!(content, b"harmless");
                true
            }
            _ => false,
        }
    });
    assert_eq!(fs::read(outside.path().join("file")).unwrap(), b"secret");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[test]
fn l25_the_way_without_openat2_is_as_strict() {
    use std::io::Read;
    use std::os::fd::AsFd;
    let world = Yard::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), b"secret").unwrap();
    let home = home(&world);
    let open = |path: &str| {
        beneath::open_by_component(
            home.dir().as_fd(),
            Path::new(path),
            rustix::fs::OFlags::RDONLY,
            rustix::fs::Mode::empty(),
        )
    };
    race(&world, outside.path(), |_| {
        let Ok(fd) = open("dir/file") else {
            return false;
        };
        let mut content = String::new();
        fs::File::from(fd).read_to_string(&mut content).unwrap();
        assert_eq!(content, "harmless");
        true
    });
    for path in ["..", "/etc/passwd", "../x", "evil/file", "evil", ""] {
        assert!(open(path).is_err(), "{path}");
    }
}
