use super::*;
use crate::config::AuthMode;
use crate::fault::in_process;

/// A yard with an archive of alice, in which links to a file and a directory outside lie.
fn archived() -> (Yard, TempDir) {
    let (yard, outside) = (Yard::new(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("secret"), b"secret").unwrap();
    archive(&yard, "alice", 'a', |home| {
        fill(home, &outside.path().join("secret"));
    });
    (yard, outside)
}

fn archive(yard: &Yard, user: &str, digit: char, fill: impl FnOnce(&Path)) {
    let (user, uid) = (name(user), uid(digit));
    yard.homes.ensure(&user, &uid, None).unwrap();
    fill(&yard.users(user.as_str()));
    yard.homes
        .archive(&user, &uid, deleted_at(), None, None)
        .unwrap();
}

fn listed(yard: &Yard) -> Vec<(String, bool)> {
    let archives = yard.homes.archives().unwrap().into_iter();
    archives
        .map(|archive| (archive.directory, archive.removing))
        .collect()
}

/// All entries of the archive but the root's own marker.
fn entries(yard: &Yard) -> Vec<String> {
    let mut found = Vec::new();
    for place in ["", ".owners"] {
        for entry in fs::read_dir(yard.archive(place)).unwrap() {
            found.push(entry.unwrap().file_name().into_string().unwrap());
        }
    }
    found.retain(|name| name != ".agentyard" && name != ".owners");
    found
}

#[test]
fn size_of_an_archive_is_kept_beside_it() {
    let yard = Yard::new();
    let batch = ArchiveBatch::of_mode_switch(deleted_at(), AuthMode::Local, AuthMode::Ldap);
    for (user, digit, batch, bytes) in [
        ("alice", 'a', None, Some(4096)),
        ("bob", 'b', None, None),
        ("carol", 'c', Some(&batch), Some(u64::MAX)),
    ] {
        let (user, uid) = (name(user), uid(digit));
        yard.homes.ensure(&user, &uid, None).unwrap();
        let archived = yard.homes.archive(&user, &uid, deleted_at(), batch, bytes);
        let again = yard
            .homes
            .archive(&user, &uid, deleted_at(), batch, Some(1));
        assert_eq!(archived.unwrap(), again.unwrap());
    }
    let archives = yard.homes.archives().unwrap();
    let sizes = yard.homes.archive_sizes(&archives);
    let users = archives.iter().map(|archive| archive.user.as_str());
    let found: BTreeMap<&str, Option<u64>> = users.zip(sizes).collect();
    let expected = [
        ("alice", Some(4096)),
        ("bob", None),
        ("carol", Some(u64::MAX)),
    ];
    assert_eq!(found, BTreeMap::from(expected));
    fs::remove_dir_all(yard.archive("")).unwrap();
    assert_eq!(yard.homes.archive_sizes(&archives), [None, None, None]);
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
    let (yard, outside) = archived();
    archive(&yard, "bob", 'b', |_| ());
    let [alice, bob] = ["alice", "bob"].map(|user| format!("{user}-{STAMP}"));
    assert_eq!(
        listed(&yard),
        [(alice.clone(), false), (bob.clone(), false)]
    );
    yard.homes.remove_archive(&alice).unwrap();
    assert_eq!(listed(&yard), [(bob.clone(), false)]);
    assert_eq!(entries(&yard), [bob.clone(), bob]);
    yard.homes.remove_archive(&alice).unwrap();
    assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"secret");
}

#[test]
fn a_removal_ended_at_any_step_is_listed_and_goes_on() {
    let directory = format!("alice-{STAMP}");
    let remove = |yard: &Yard| yard.homes.remove_archive(&directory).unwrap();
    let (whole, _outside) = archived();
    let (_, points) = in_process::record(|| remove(&whole));
    assert_eq!(points.len(), 3, "{points:?}");
    for nth in 1..=points.len() {
        for again in 1..=points.len() {
            let (yard, _outside) = archived();
            assert!(in_process::crash_at(nth, || remove(&yard)).is_none());
            assert_eq!(listed(&yard), [(directory.clone(), true)], "{nth}");
            in_process::crash_at(again, || remove(&yard));
            remove(&yard);
            assert!(
                entries(&yard).is_empty(),
                "{nth} {again}: {:?}",
                entries(&yard)
            );
            assert!(listed(&yard).is_empty());
        }
    }
}

#[test]
fn a_later_archive_of_the_same_name_is_not_taken_for_what_is_being_removed() {
    let directory = format!("alice-{STAMP}");
    for nth in 1..=3 {
        let (yard, _outside) = archived();
        in_process::crash_at(nth, || yard.homes.remove_archive(&directory).unwrap());
        archive(&yard, "alice", 'a', |home| {
            fs::write(home.join("late"), b"late").unwrap()
        });
        yard.homes.remove_archive(&directory).unwrap();
        let left = listed(&yard);
        assert_eq!(left.len(), 1, "{nth}: {left:?}");
        assert!(!left[0].1);
        assert!(yard.archive(&left[0].0).join("late").exists(), "{nth}");
    }
}

#[test]
fn what_is_not_an_archive_of_ours_is_neither_listed_nor_removed() {
    let (yard, outside) = (Yard::new(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("kept"), b"").unwrap();
    let of = |user: &str| format!("{user}-{STAMP}");
    // Without a marker.
    fs::create_dir(yard.archive(&of("carol"))).unwrap();
    let mark = |user: &str| {
        let marker = super::super::marker::Marker::of(&uid('d'));
        super::super::marker::write(&yard.homes.archive.owners, user, &marker).unwrap();
    };
    // Marked, but a link, a file, a foreign name, or claimed only.
    symlink(outside.path(), yard.archive(&of("dora"))).unwrap();
    fs::write(yard.archive(&of("emil")), b"").unwrap();
    fs::create_dir(yard.archive("backup")).unwrap();
    let names = [of("dora"), of("emil"), "backup".to_owned(), of("frida")];
    names.iter().for_each(|name| mark(name));
    assert_eq!(listed(&yard), []);
    let before = entries(&yard);
    for name in names.iter().chain([&of("carol"), &"../users".to_owned()]) {
        yard.homes.remove_archive(name).unwrap();
    }
    assert_eq!(entries(&yard), before);
    assert!(outside.path().join("kept").exists());
    // The marker of another account.
    let wrong = format!("gina-{STAMP}-aaaaaa");
    fs::create_dir(yard.archive(&wrong)).unwrap();
    mark(&wrong);
    let refused = yard.homes.remove_archive(&wrong).unwrap_err();
    assert!(matches!(refused, HomeError::Conflict(_)), "{refused}");
    assert!(yard.archive(&wrong).exists());
}

#[test]
fn an_archive_that_cannot_be_listed_is_an_error() {
    let (mut yard, _outside) = archived();
    let closed = fs::File::open("/dev/null").unwrap();
    yard.homes.archive.fd = closed.into();
    assert!(matches!(yard.homes.archives(), Err(HomeError::Io { .. })));
}
