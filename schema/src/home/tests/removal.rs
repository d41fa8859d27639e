use super::*;
use crate::fault::in_process;

/// A world with an archive of alice, in which links to a file and a directory outside lie.
fn archived() -> (World, TempDir) {
    let (world, outside) = (World::new(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("secret"), b"secret").unwrap();
    archive(&world, "alice", 'a', |home| {
        fill(home, &outside.path().join("secret"));
    });
    (world, outside)
}

fn archive(world: &World, user: &str, digit: char, fill: impl FnOnce(&Path)) {
    let (user, uid) = (name(user), uid(digit));
    world.homes.ensure(&user, &uid, None).unwrap();
    fill(&world.users(user.as_str()));
    world.homes.archive(&user, &uid, deleted_at()).unwrap();
}

fn listed(world: &World) -> Vec<(String, bool)> {
    let archives = world.homes.archives().unwrap().into_iter();
    archives
        .map(|archive| (archive.directory, archive.removing))
        .collect()
}

/// All entries of the archive but the root's own marker.
fn entries(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    for place in ["", ".owners"] {
        for entry in fs::read_dir(world.archive(place)).unwrap() {
            found.push(entry.unwrap().file_name().into_string().unwrap());
        }
    }
    found.retain(|name| name != ".agentyard" && name != ".owners");
    found
}

#[rstest::rstest]
#[case("alice-20260511T114640Z", Some("alice"))]
#[case("a-b-20260511T114640Z-aaaaaa", Some("a-b"))]
#[case(
    "alice-20260511T114640Z-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    Some("alice")
)]
#[case("bob-20200101T000000Z-20260511T114640Z", Some("bob-20200101T000000Z"))]
#[case("alice-20260511T114640Z-aaaaa", None)]
#[case("alice-20260511T114640Z-AAAAAA", None)]
#[case("alice-20261311T114640Z", None)]
#[case("alice-20260511t114640z0", None)]
#[case("alice-2026051\u{e9}T11464Z", None)]
#[case("20260511T114640Z", None)]
#[case("-20260511T114640Z", None)]
#[case(".alice-20260511T114640Z", None)]
#[case("alice", None)]
fn a_name_of_an_archive_says_whose_it_is_and_from_when(
    #[case] directory: &str,
    #[case] user: Option<&str>,
) {
    let archive = Archive::parse(directory);
    assert_eq!(archive.as_ref().map(|archive| archive.user.as_str()), user);
    if let Some(archive) = archive {
        assert_eq!(archive.archived_at, deleted_at());
        let names = archive_names(&archive.user, &uid('a'), deleted_at());
        assert!(names.iter().any(|name| name == directory));
    }
}

#[test]
fn archives_are_listed_and_removed_with_all_that_is_in_them() {
    let (world, outside) = archived();
    archive(&world, "bob", 'b', |_| ());
    let [alice, bob] = ["alice", "bob"].map(|user| format!("{user}-{STAMP}"));
    assert_eq!(
        listed(&world),
        [(alice.clone(), false), (bob.clone(), false)]
    );
    world.homes.remove_archive(&alice).unwrap();
    assert_eq!(listed(&world), [(bob.clone(), false)]);
    assert_eq!(entries(&world), [bob.clone(), bob]);
    world.homes.remove_archive(&alice).unwrap();
    assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"secret");
}

#[test]
fn a_removal_ended_at_any_step_is_listed_and_goes_on() {
    let directory = format!("alice-{STAMP}");
    let remove = |world: &World| world.homes.remove_archive(&directory).unwrap();
    let (whole, _outside) = archived();
    let (_, points) = in_process::record(|| remove(&whole));
    assert_eq!(points.len(), 3, "{points:?}");
    for nth in 1..=points.len() {
        for again in 1..=points.len() {
            let (world, _outside) = archived();
            assert!(in_process::crash_at(nth, || remove(&world)).is_none());
            assert_eq!(listed(&world), [(directory.clone(), true)], "{nth}");
            in_process::crash_at(again, || remove(&world));
            remove(&world);
            assert!(
                entries(&world).is_empty(),
                "{nth} {again}: {:?}",
                entries(&world)
            );
            assert!(listed(&world).is_empty());
        }
    }
}

#[test]
fn a_later_archive_of_the_same_name_is_not_taken_for_what_is_being_removed() {
    let directory = format!("alice-{STAMP}");
    for nth in 1..=3 {
        let (world, _outside) = archived();
        in_process::crash_at(nth, || world.homes.remove_archive(&directory).unwrap());
        archive(&world, "alice", 'a', |home| {
            fs::write(home.join("late"), b"late").unwrap()
        });
        world.homes.remove_archive(&directory).unwrap();
        let left = listed(&world);
        assert_eq!(left.len(), 1, "{nth}: {left:?}");
        assert!(!left[0].1);
        assert!(world.archive(&left[0].0).join("late").exists(), "{nth}");
    }
}

#[test]
fn what_is_not_an_archive_of_ours_is_neither_listed_nor_removed() {
    let (world, outside) = (World::new(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("kept"), b"").unwrap();
    let of = |user: &str| format!("{user}-{STAMP}");
    // Without a marker.
    fs::create_dir(world.archive(&of("carol"))).unwrap();
    let mark = |user: &str| {
        let marker = super::super::marker::Marker::of(&uid('d'));
        super::super::marker::write(&world.homes.archive.owners, user, &marker).unwrap();
    };
    // Marked, but a link, a file, a foreign name, or claimed only.
    symlink(outside.path(), world.archive(&of("dora"))).unwrap();
    fs::write(world.archive(&of("emil")), b"").unwrap();
    fs::create_dir(world.archive("backup")).unwrap();
    let names = [of("dora"), of("emil"), "backup".to_owned(), of("frida")];
    names.iter().for_each(|name| mark(name));
    assert_eq!(listed(&world), []);
    let before = entries(&world);
    for name in names.iter().chain([&of("carol"), &"../users".to_owned()]) {
        world.homes.remove_archive(name).unwrap();
    }
    assert_eq!(entries(&world), before);
    assert!(outside.path().join("kept").exists());
    // The marker of another account.
    let wrong = format!("gina-{STAMP}-aaaaaa");
    fs::create_dir(world.archive(&wrong)).unwrap();
    mark(&wrong);
    let refused = world.homes.remove_archive(&wrong).unwrap_err();
    assert!(matches!(refused, HomeError::Conflict(_)), "{refused}");
    assert!(world.archive(&wrong).exists());
}

#[test]
fn an_archive_that_cannot_be_listed_is_an_error() {
    let (mut world, _outside) = archived();
    let closed = fs::File::open("/dev/null").unwrap();
    world.homes.archive.fd = closed.into();
    assert!(matches!(world.homes.archives(), Err(HomeError::Io { .. })));
}
