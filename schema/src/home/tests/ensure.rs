use super::*;
use crate::fault::in_process;

fn assert_conflict(world: &Yard, who: &str, account: &Uid, says: &str) {
    let before = snapshot(world.data.path());
    let error = world.homes.ensure(&name(who), account, None).unwrap_err();
    let HomeError::Conflict(sentence) = error else {
        panic!("{error:?}");
    };
    assert!(sentence.contains(says), "{sentence}");
    assert_eq!(
        world.homes.state(&name(who), account, None).unwrap(),
        HomeState::Conflict(sentence)
    );
    assert_eq!(snapshot(world.data.path()), before, "nothing was touched");
}

#[test]
fn a_directory_is_made_once_and_then_nothing_is_written() {
    let world = Yard::new();
    let alice = name("alice");
    assert_eq!(
        world.homes.state(&alice, &uid('a'), None).unwrap(),
        HomeState::Missing
    );
    world.homes.ensure(&alice, &uid('a'), None).unwrap();
    for part in ["alice", "alice/.agent", "alice/.agent/workspace"] {
        let metadata = fs::symlink_metadata(world.users(part)).unwrap();
        assert!(metadata.is_dir());
        assert_eq!(metadata.mode() & 0o7777, 0o700, "{part}");
    }
    let marker = fs::read_to_string(world.users(".owners/alice")).unwrap();
    assert_eq!(marker, format!("{{\"uid\":\"{}\"}}\n", uid('a')));
    let changed = |path: &str| fs::metadata(world.users(path)).unwrap().ctime_nsec();
    let before = (
        snapshot(world.data.path()),
        changed("alice"),
        changed(".owners/alice"),
    );
    for _ in 0..10 {
        world.homes.ensure(&alice, &uid('a'), None).unwrap();
        assert_eq!(
            world.homes.state(&alice, &uid('a'), None).unwrap(),
            HomeState::Ready
        );
    }
    let after = (
        snapshot(world.data.path()),
        changed("alice"),
        changed(".owners/alice"),
    );
    assert_eq!(before, after);
}

#[test]
fn looking_writes_nothing() {
    let world = Yard::new();
    let before = snapshot(world.data.path());
    world.homes.state(&name("alice"), &uid('a'), None).unwrap();
    assert!(
        world
            .homes
            .open_existing(&name("alice"), &uid('a'))
            .unwrap()
            .is_none()
    );
    assert_eq!(snapshot(world.data.path()), before);
}

#[test]
fn missing_parts_are_made_again() {
    let world = Yard::new();
    let alice = name("alice");
    world.homes.ensure(&alice, &uid('a'), None).unwrap();
    for part in [WORKSPACE_DIR, AGENT_DIR, ""] {
        fs::remove_dir_all(world.users("alice").join(part)).unwrap();
        assert_eq!(
            world.homes.state(&alice, &uid('a'), None).unwrap(),
            HomeState::Missing
        );
        world.homes.ensure(&alice, &uid('a'), None).unwrap();
        assert_eq!(
            world.homes.state(&alice, &uid('a'), None).unwrap(),
            HomeState::Ready
        );
    }
}

#[test]
fn an_interrupted_ensure_is_finished_by_the_next() {
    let alice = name("alice");
    let (_, points) = in_process::record(|| {
        Yard::new().homes.ensure(&alice, &uid('a'), None).unwrap();
    });
    assert_eq!(points.len(), 4, "{points:?}");
    for nth in 1..=points.len() {
        let world = Yard::new();
        let crashed = in_process::crash_at(nth, || world.homes.ensure(&alice, &uid('a'), None));
        assert!(crashed.is_none(), "point {nth}");
        world.homes.ensure(&alice, &uid('a'), None).unwrap();
        assert_eq!(
            world.homes.state(&alice, &uid('a'), None).unwrap(),
            HomeState::Ready
        );
    }
}

#[test]
fn l06_the_directory_of_another_account_of_this_name_is_a_conflict() {
    let world = Yard::new();
    world.homes.ensure(&name("alice"), &uid('a'), None).unwrap();
    assert_conflict(&world, "alice", &uid('b'), "belongs to another account");
    fs::remove_dir_all(world.users("alice")).unwrap();
    assert_conflict(&world, "alice", &uid('b'), "belongs to another account");
}

#[test]
fn a_directory_of_nobodys_is_taken_only_when_it_is_empty() {
    let world = Yard::new();
    fs::create_dir(world.users("alice")).unwrap();
    fs::write(world.users("alice/file"), b"x").unwrap();
    assert_conflict(&world, "alice", &uid('a'), "not empty");
    fs::remove_file(world.users("alice/file")).unwrap();
    assert_eq!(
        world.homes.state(&name("alice"), &uid('a'), None).unwrap(),
        HomeState::Missing
    );
    world.homes.ensure(&name("alice"), &uid('a'), None).unwrap();
}

#[test]
fn l25_a_link_or_a_file_in_place_of_a_directory_is_a_conflict() {
    let outside = tempfile::tempdir().unwrap();
    for part in ["", AGENT_DIR, WORKSPACE_DIR] {
        for link in [true, false] {
            let world = Yard::new();
            world.homes.ensure(&name("alice"), &uid('a'), None).unwrap();
            let path = world.users("alice").join(part);
            let path = path.components().collect::<PathBuf>();
            fs::remove_dir_all(&path).unwrap();
            if link {
                symlink(outside.path(), &path).unwrap();
            } else {
                fs::write(&path, b"x").unwrap();
            }
            assert_conflict(&world, "alice", &uid('a'), "is a link or a file");
            assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        }
    }
}

#[test]
fn an_unreadable_owner_is_an_error_and_no_absence() {
    let world = Yard::new();
    world.homes.ensure(&name("alice"), &uid('a'), None).unwrap();
    fs::write(world.users(".owners/alice"), b"{").unwrap();
    assert!(matches!(
        world.homes.state(&name("alice"), &uid('a'), None),
        Err(HomeError::Io { .. })
    ));
    assert!(matches!(
        world.homes.ensure(&name("alice"), &uid('a'), None),
        Err(HomeError::Io { .. })
    ));
}

#[test]
fn both_sides_may_ensure_at_once() {
    let world = Yard::new();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for n in 0..20 {
                    let who = name(&format!("user{n}"));
                    world.homes.ensure(&who, &uid('a'), None).unwrap();
                }
            });
        }
    });
}

#[test]
fn directories_are_given_to_their_owner() {
    let world = Yard::new();
    let alice = name("alice");
    let me = fs::metadata(world.data.path()).unwrap();
    let myself = Some((me.uid(), me.gid()));
    world.homes.ensure(&alice, &uid('a'), myself).unwrap();
    assert_eq!(
        world.homes.state(&alice, &uid('a'), myself).unwrap(),
        HomeState::Ready
    );
    let other = Some((me.uid() + 4321, me.gid() + 4321));
    assert_eq!(
        world.homes.state(&alice, &uid('a'), other).unwrap(),
        HomeState::Missing
    );
    let given = world.homes.ensure(&alice, &uid('a'), other);
    if me.uid() == 0 {
        let home = given.unwrap();
        assert_eq!(
            world.homes.state(&alice, &uid('a'), other).unwrap(),
            HomeState::Ready
        );
        for part in ["alice", "alice/.agent", "alice/.agent/workspace"] {
            assert_eq!(fs::metadata(world.users(part)).unwrap().uid(), 4321);
        }
        home.write_atomic(".agent/config.json", b"{}", 0o600)
            .unwrap();
        let written = fs::metadata(world.users("alice/.agent/config.json")).unwrap();
        assert_eq!((written.uid(), written.gid()), (4321, me.gid() + 4321));
    } else {
        assert!(matches!(given, Err(HomeError::Io { .. })));
    }
}

#[test]
fn a_home_without_permissions_is_opened_again() {
    let world = Yard::new();
    let alice = name("alice");
    world.homes.ensure(&alice, &uid('a'), None).unwrap();
    beneath::make_usable(
        &world.homes.users.fd,
        Path::new("alice/.agent"),
        rustix::fs::Mode::RUSR,
    )
    .unwrap();
    assert_eq!(
        fs::metadata(world.users("alice/.agent")).unwrap().mode() & 0o777,
        0o400
    );
    world.homes.ensure(&alice, &uid('a'), None).unwrap();
}
