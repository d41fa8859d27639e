use std::cell::Cell;
use std::os::unix::net::UnixListener;

use super::super::measure::Bounds;
use super::super::temporary::now;
use super::*;

/// A user's home, and the path of the workspace.
fn workspace(yard: &Yard) -> (UserHome, PathBuf) {
    let home = yard.homes.ensure(&name("alice"), &uid('a'), None).unwrap();
    (home, yard.users("alice").join(WORKSPACE_DIR))
}

fn measured(home: &UserHome) -> Measured {
    done(home.measure(|| true).unwrap())
}

/// Entries of a home in which nothing is: `.agent` and the workspace.
fn empty(yard: &Yard) -> u64 {
    let agent = yard.users("alice").join(".agent");
    taken(&[agent.join("workspace"), agent])
}

fn done(walked: Walked) -> Measured {
    match walked {
        Walked::Done(measured) => measured,
        walked => panic!("{walked:?}"),
    }
}

/// What the system says that these take.
fn taken(paths: &[PathBuf]) -> u64 {
    let blocks = paths
        .iter()
        .map(|path| fs::symlink_metadata(path).unwrap().blocks());
    blocks.sum::<u64>() * 512
}

#[test]
fn everything_that_an_agent_writes_in_its_home_counts() {
    let yard = Yard::new();
    let (home, root) = workspace(&yard);
    let nothing = measured(&home);
    assert_eq!((nothing.bytes, nothing.entries), (empty(&yard), 2));
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/b/large"), vec![b'x'; 300_000]).unwrap();
    fs::write(root.join("small"), b"x").unwrap();
    // Beside the workspace.
    let mut paths = ["a", "a/b", "a/b/large", "small"]
        .map(|path| root.join(path))
        .to_vec();
    for path in [".agent/log", "cache"] {
        let path = yard.users("alice").join(path);
        fs::write(&path, vec![b'x'; 100_000]).unwrap();
        paths.push(path);
    }
    let found = measured(&home);
    assert_eq!(
        (found.bytes, found.files),
        (empty(&yard) + taken(&paths), 4)
    );
    assert_eq!((found.entries, found.is_complete()), (8, true));
}

#[test]
fn a_sparse_file_takes_what_is_allocated_and_one_of_several_names_counts_once() {
    let yard = Yard::new();
    let (home, root) = workspace(&yard);
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    fs::write(root.join("one"), vec![b'x'; 50_000]).unwrap();
    fs::create_dir(root.join("names")).unwrap();
    for number in 0..10 {
        fs::hard_link(root.join("one"), root.join(format!("names/{number}"))).unwrap();
    }
    let found = measured(&home);
    let paths = ["sparse", "one", "names"].map(|path| root.join(path));
    assert_eq!(
        (found.bytes, found.files),
        (empty(&yard) + taken(&paths), 2)
    );
    assert!(found.bytes < 1 << 20, "{found:?}");
}

#[test]
fn l25_what_links_lead_to_is_not_counted() {
    let yard = Yard::new();
    let (home, root) = workspace(&yard);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("large"), vec![b'x'; 900_000]).unwrap();
    symlink(outside.path(), root.join("directory")).unwrap();
    symlink(outside.path().join("large"), root.join("file")).unwrap();
    symlink(&root, root.join("circle")).unwrap();
    let _socket = UnixListener::bind(root.join("socket")).unwrap();
    let found = measured(&home);
    assert!(found.bytes < 100_000 && found.is_complete(), "{found:?}");
    assert_eq!(found.files, 0);
    // A link in place of the workspace is not followed, either.
    fs::rename(&root, yard.users("alice").join("elsewhere")).unwrap();
    symlink(outside.path(), &root).unwrap();
    let found = measured(&home);
    assert!(found.bytes < 100_000 && found.is_complete(), "{found:?}");
}

#[test]
fn a_walk_ends_after_so_many_entries() {
    let yard = Yard::new();
    let (home, root) = workspace(&yard);
    for number in 0..20 {
        fs::write(root.join(number.to_string()), b"x").unwrap();
    }
    for (most, files, stopped) in [(21, 19, true), (22, 20, false)] {
        let found = done(
            home.measure_within(
                Bounds {
                    entries: most,
                    ..Bounds::default()
                },
                || true,
            )
            .unwrap(),
        );
        assert_eq!((found.files, found.stopped), (files, stopped));
        assert_eq!(found.is_complete(), !stopped);
    }
}

#[test]
fn a_walk_goes_so_deep_and_no_deeper() {
    let yard = Yard::new();
    let (home, root) = workspace(&yard);
    for directory in ["a/b/c/d", "e/f"] {
        fs::create_dir_all(root.join(directory)).unwrap();
        fs::write(root.join(directory).join("file"), b"x").unwrap();
    }
    for (depth, files, unreadable) in [(6, 2, 0), (5, 1, 1), (4, 1, 1), (3, 0, 2)] {
        let bounds = Bounds {
            depth,
            ..Bounds::default()
        };
        let found = done(home.measure_within(bounds, || true).unwrap());
        assert_eq!(
            (found.files, found.unreadable),
            (files, unreadable),
            "{depth}"
        );
    }
}

#[test]
fn what_a_killed_service_has_left_is_removed_a_day_later_and_nothing_else() {
    let yard = Yard::new();
    let (home, root) = workspace(&yard);
    let left = format!(".agentyard-{}.tmp", "0".repeat(32));
    fs::create_dir_all(root.join("d").join(left.replace('0', "1"))).unwrap();
    let own = [".agentyard-notes.tmp", "file"];
    for name in [left.as_str()].iter().chain(&own) {
        fs::write(root.join("d").join(name), b"x").unwrap();
    }
    let files_after = |seconds| {
        let bounds = Bounds {
            now: now() + seconds,
            ..Bounds::default()
        };
        done(home.measure_within(bounds, || true).unwrap()).files
    };
    let day = 24 * 60 * 60;
    assert_eq!(files_after(day - 60), 3);
    assert_eq!(files_after(day + 60), 2);
    let names: Vec<_> = fs::read_dir(root.join("d")).unwrap().collect();
    assert_eq!(names.len(), 3, "the directory of such a name stays");
    assert!(!root.join("d").join(left).exists());
}

#[test]
fn a_walk_that_is_interrupted_anywhere_goes_on_and_counts_the_same() {
    let yard = Yard::new();
    let (home, root) = workspace(&yard);
    for directory in ["a/b/c", "a/d", "e", "empty"] {
        fs::create_dir_all(root.join(directory)).unwrap();
        for number in 0..7 {
            let file = root.join(directory).join(number.to_string());
            fs::write(&file, vec![b'x'; 5000]).unwrap();
            fs::hard_link(&file, root.join(directory).join(format!("other-{number}"))).unwrap();
        }
    }
    let whole = measured(&home);
    assert_eq!((whole.files, whole.entries), (28, 28 * 2 + 8));
    for piece in 1..70 {
        let asked = Cell::new(0);
        let goes_on = || asked.replace(asked.get() + 1) < piece;
        let mut walked = home.measure(goes_on).unwrap();
        let mut pieces = 1;
        while let Walked::Paused(measurement) = walked {
            asked.set(0);
            pieces += 1;
            walked = measurement.go_on(goes_on).unwrap();
        }
        assert_eq!(done(walked), whole, "{piece}");
        assert!(pieces >= 62 / piece, "{piece}: {pieces}");
    }
}

#[test]
fn what_vanishes_or_becomes_a_link_meanwhile_is_not_counted() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("large"), vec![b'x'; 900_000]).unwrap();
    for moment in 0..12 {
        let yard = Yard::new();
        let (home, root) = workspace(&yard);
        for directory in ["a", "b"] {
            fs::create_dir(root.join(directory)).unwrap();
            fs::write(root.join(directory).join("file"), b"x").unwrap();
        }
        let asked = Cell::new(0);
        let found = home.measure(|| {
            if asked.replace(asked.get() + 1) == moment {
                for directory in ["a", "b"] {
                    fs::remove_dir_all(root.join(directory)).unwrap();
                }
                symlink(outside.path(), root.join("b")).unwrap();
            }
            true
        });
        let found = done(found.unwrap());
        assert!(found.is_complete() && found.bytes < 100_000, "{found:?}");
        assert!(found.files <= moment, "{moment}: {found:?}");
    }
}

#[test]
fn l25_a_directory_that_is_moved_away_leads_the_walk_nowhere() {
    let yard = Yard::new();
    let (home, root) = workspace(&yard);
    fs::create_dir_all(root.join("a/b")).unwrap();
    for number in 0..20 {
        fs::write(root.join("a/b").join(number.to_string()), b"x").unwrap();
    }
    let elsewhere = yard.users("elsewhere");
    let asked = Cell::new(0);
    let moved = home.measure(|| {
        // It is asked at "." and "..", too: by then the walk is in b, and has not seen all of it.
        if asked.replace(asked.get() + 1) == 18 {
            fs::rename(root.join("a/b"), &elsewhere).unwrap();
        }
        true
    });
    let Err(HomeError::Io { source, .. }) = moved else {
        panic!("{moved:?}");
    };
    assert_eq!(source.to_string(), "a directory was moved meanwhile");
    assert_eq!(measured(&home).files, 0);
}

/// The service as another user than root, for whom an agent's permissions count: a thread of its own has that user.
#[test]
fn an_unreadable_directory_is_left_out_and_the_rest_is_counted() {
    let nobody = rustix::fs::Uid::from_raw(65_534);
    let work = move || {
        if rustix::process::geteuid().is_root() {
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        let yard = Yard::new();
        let (home, root) = workspace(&yard);
        fs::write(root.join("file"), b"x").unwrap();
        let modes = [("locked", 0o000), ("listed", 0o400), ("passed", 0o100)];
        for (directory, mode) in modes {
            let directory = root.join(directory);
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("hidden"), b"x").unwrap();
            fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
        }
        let found = measured(&home);
        assert_eq!((found.files, found.unreadable), (1, 3));
        assert!(!found.is_complete());
        for (directory, _) in modes {
            let usable = fs::Permissions::from_mode(0o700);
            fs::set_permissions(root.join(directory), usable).unwrap();
        }
    };
    std::thread::spawn(work).join().unwrap();
}

#[test]
fn a_tree_deeper_than_a_path_is_long_is_measured() {
    let yard = Yard::new();
    let (home, root) = workspace(&yard);
    let mut at = fs::File::open(&root).unwrap().into();
    for _ in 0..3000 {
        rustix::fs::mkdirat(&at, "deep", rustix::fs::Mode::RWXU).unwrap();
        at = beneath::open_dir(&at, Path::new("deep")).unwrap();
    }
    let found = measured(&home);
    assert_eq!((found.files, found.is_complete()), (0, true));
    remove::remove_tree(
        &fs::File::open(&root).unwrap().into(),
        Path::new("deep"),
        &root,
    )
    .unwrap();
}
