//! Several files at a time, and only where they are still what was read.

use super::*;
use crate::fault::in_process;

const PATHS: [&str; 2] = ["security.json", "config.json"];

fn home(world: &Yard) -> UserHome {
    world.homes.ensure(&name("alice"), &uid('a'), None).unwrap()
}

fn new_files(home: &UserHome, text: &str) -> Vec<NewFile> {
    let found = PATHS.map(|path| home.read_stamped(format!(".agent/{path}"), 99).unwrap());
    PATHS
        .iter()
        .zip(found)
        .map(|(path, found)| NewFile {
            path: (*path).to_owned(),
            bytes: text.as_bytes().to_vec(),
            mode: 0o600,
            expected: found.map(|found| found.stamp),
        })
        .collect()
}

fn texts(world: &Yard) -> [Option<String>; 2] {
    PATHS.map(|path| fs::read_to_string(world.users("alice/.agent").join(path)).ok())
}

fn both(text: &str) -> [Option<String>; 2] {
    [Some(text.to_owned()), Some(text.to_owned())]
}

fn entries(world: &Yard) -> usize {
    fs::read_dir(world.users("alice/.agent")).unwrap().count()
}

#[test]
fn files_are_replaced_together() {
    let world = Yard::new();
    let home = home(&world);
    for text in ["old", "new"] {
        home.write_files(AGENT_DIR, &new_files(&home, text))
            .unwrap();
        assert_eq!(texts(&world), both(text));
        assert_eq!(entries(&world), 3, "no temporary file stays");
    }
    let found = home
        .read_stamped(".agent/config.json", 99)
        .unwrap()
        .unwrap();
    assert_eq!((found.bytes.as_slice(), found.mode), (&b"new"[..], 0o600));
    assert!(
        !format!("{found:?}").contains("110, 101, 119"),
        "no content: {found:?}"
    );
}

#[test]
fn l44_nothing_is_replaced_when_one_of_them_has_changed() {
    let world = Yard::new();
    let home = home(&world);
    home.write_files(AGENT_DIR, &new_files(&home, "old"))
        .unwrap();
    let place = |path: &str| world.users("alice/.agent").join(path);
    type Change = fn(&Path);
    let changes: [Change; 3] = [
        // As long as before.
        |path| fs::write(path, "OLD").unwrap(),
        |path| fs::remove_file(path).unwrap(),
        |path| {
            fs::write(path.with_extension("other"), "old").unwrap();
            fs::rename(path.with_extension("other"), path).unwrap();
        },
    ];
    for path in PATHS {
        for change in changes {
            let new = new_files(&home, "new");
            change(&place(path));
            let before = texts(&world);
            let result = home.write_files(AGENT_DIR, &new);
            assert!(
                matches!(result, Err(HomeError::Changed { .. })),
                "{result:?}"
            );
            assert_eq!(texts(&world), before);
            home.write_files(AGENT_DIR, &new_files(&home, "old"))
                .unwrap();
        }
        // One that was not there.
        fs::remove_file(place(path)).unwrap();
        let new = new_files(&home, "new");
        fs::write(place(path), "surprise").unwrap();
        let result = home.write_files(AGENT_DIR, &new);
        assert!(
            matches!(result, Err(HomeError::Changed { .. })),
            "{result:?}"
        );
        assert_eq!(entries(&world), 3);
    }
}

#[test]
fn l44_killed_anywhere_each_file_is_whole_and_the_next_write_ends_it() {
    let count = {
        let world = Yard::new();
        let home = home(&world);
        let new = new_files(&home, "new");
        let (result, points) = in_process::record(|| home.write_files(AGENT_DIR, &new));
        result.unwrap();
        points.len()
    };
    assert_eq!(count, 5, "before the first file, and in and after each");
    for nth in 1..=count {
        let world = Yard::new();
        let home = home(&world);
        home.write_files(AGENT_DIR, &new_files(&home, "old"))
            .unwrap();
        let new = new_files(&home, "new");
        assert!(in_process::crash_at(nth, || home.write_files(AGENT_DIR, &new)).is_none());
        let expected = match nth {
            1 | 2 => both("old"),
            3 | 4 => [Some("new".to_owned()), Some("old".to_owned())],
            _ => both("new"),
        };
        assert_eq!(texts(&world), expected);
        home.write_files(AGENT_DIR, &new_files(&home, "new"))
            .unwrap();
        assert_eq!(texts(&world), both("new"));
        assert_eq!(entries(&world), 3, "nothing is left");
    }
}

#[test]
fn l25_files_are_not_written_through_links_or_over_what_is_no_file() {
    let world = Yard::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("config.json"), "host").unwrap();
    let home = home(&world);
    let new = new_files(&home, "new");
    let place = world.users("alice/.agent/config.json");
    symlink(outside.path().join("config.json"), &place).unwrap();
    let refused = |result| matches!(result, Err(HomeError::NotRegular { .. }));
    assert!(refused(home.write_files(AGENT_DIR, &new)));
    fs::remove_file(&place).unwrap();
    fs::create_dir(&place).unwrap();
    assert!(refused(home.write_files(AGENT_DIR, &new)));
    fs::remove_dir_all(world.users("alice/.agent")).unwrap();
    symlink(outside.path(), world.users("alice/.agent")).unwrap();
    assert!(refused(home.write_files(AGENT_DIR, &new)));
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    let host = fs::read_to_string(outside.path().join("config.json")).unwrap();
    assert_eq!(host, "host");
    for path in ["../x", "/x", "a/../../x"] {
        let new = [NewFile {
            path: path.to_owned(),
            bytes: Vec::new(),
            mode: 0o600,
            expected: None,
        }];
        let result = home.write_files(AGENT_DIR, &new);
        assert!(result.is_err(), "{path}");
    }
}

/// Root may read everything; without these capabilities it is as anybody else.
fn without_privileges<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective -= CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
            set_capabilities(None, sets).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

#[test]
fn l25_a_file_that_nobody_may_read_is_told_from_a_broken_disk() {
    let world = Yard::new();
    let home = home(&world);
    home.write_files(AGENT_DIR, &new_files(&home, "kept"))
        .unwrap();
    let path = world.users("alice/.agent/config.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let result = without_privileges(|| home.read_stamped(".agent/config.json", 99));
    let Err(HomeError::Forbidden { path: named }) = &result else {
        panic!("{result:?}");
    };
    assert_eq!(named, ".agent/config.json");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0, "left alone");
}

#[test]
fn what_a_killed_writer_left_goes_with_the_next_write_and_nothing_else() {
    let world = Yard::new();
    let home = home(&world);
    let agent = world.users("alice/.agent");
    let hex = "0123456789abcdef0123456789abcdef";
    let left = format!(".agentyard-{hex}.tmp");
    let others = [
        format!(".agentyard-{hex}0.tmp"),
        format!(".agentyard-{}.tmp", hex.to_uppercase()),
        format!("agentyard-{hex}.tmp"),
        format!(".agentyard-{hex}.tmp.kept"),
        format!("folder/{left}"),
    ];
    fs::create_dir(agent.join("folder")).unwrap();
    for name in others.iter().chain([&left]) {
        fs::write(agent.join(name), "text").unwrap();
    }
    let linked = format!(".agentyard-{}.tmp", hex.replace('0', "1"));
    std::os::unix::fs::symlink(agent.join(&others[0]), agent.join(&linked)).unwrap();
    let folder = format!(".agentyard-{}.tmp", hex.replace('0', "2"));
    fs::create_dir(agent.join(&folder)).unwrap();
    fs::write(world.users("alice").join(&left), "text").unwrap();

    home.write_files(AGENT_DIR, &new_files(&home, "new"))
        .unwrap();
    assert_eq!(texts(&world), both("new"));
    assert!(!agent.join(&left).exists());
    for name in others.iter().chain([&linked, &folder]) {
        assert!(agent.join(name).exists(), "{name}");
    }
    assert!(world.users("alice").join(&left).exists());
}

#[test]
fn a_directory_that_is_gone_is_made_again() {
    let world = Yard::new();
    let home = home(&world);
    fs::remove_dir_all(world.users("alice/.agent")).unwrap();
    home.write_files(AGENT_DIR, &new_files(&home, "new"))
        .unwrap();
    assert_eq!(texts(&world), both("new"));
    let mode = fs::metadata(world.users("alice/.agent")).unwrap().mode();
    assert_eq!(mode & 0o7777, 0o700);
}
