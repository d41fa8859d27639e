use super::super::archive::Method;
use super::*;
use crate::fault::in_process;

/// A world with a filled home of alice, and a file outside that planted links point to.
struct Filled {
    world: Yard,
    outside: TempDir,
    before: BTreeMap<PathBuf, Entry>,
}

impl Filled {
    fn new() -> Self {
        Self::with(Yard::new())
    }

    fn with(world: Yard) -> Self {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), b"secret").unwrap();
        world.homes.ensure(&name("alice"), &uid('a'), None).unwrap();
        let home = world.users("alice");
        fill(&home, &outside.path().join("secret"));
        let before = snapshot(&home);
        Self {
            world,
            outside,
            before,
        }
    }

    fn archive(&self) -> ArchiveOutcome {
        self.world
            .homes
            .archive(&name("alice"), &uid('a'), deleted_at(), None, None)
            .unwrap()
    }

    fn archive_root(&self) -> &Path {
        &self.world.homes.archive.path
    }

    /// The end that every way must lead to.
    fn assert_archived(&self, directory: &str) {
        assert_eq!(snapshot(&self.archive_root().join(directory)), self.before);
        let list = |path: &Path| {
            let mut names: Vec<_> = fs::read_dir(path)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        assert_eq!(list(&self.world.users("")), [".agentyard", ".owners"]);
        assert!(list(&self.world.users(".owners")).is_empty());
        assert_eq!(
            list(self.archive_root()),
            [".agentyard", ".owners", directory]
        );
        assert_eq!(list(&self.archive_root().join(".owners")), [directory]);
        assert_eq!(
            fs::read(self.outside.path().join("secret")).unwrap(),
            b"secret"
        );
        assert_eq!(fs::read_dir(self.outside.path()).unwrap().count(), 1);
    }
}

/// Without write permission on every directory nobody but root could remove the world again.
impl Drop for Filled {
    fn drop(&mut self) {
        fn unlock(directory: &Path) {
            let _ = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    unlock(&entry.path());
                }
            }
        }
        unlock(self.world.data.path());
        unlock(self.archive_root());
    }
}

fn archived(directory: &str) -> ArchiveOutcome {
    ArchiveOutcome::Archived {
        directory: directory.to_owned(),
        skipped: Skipped::default(),
    }
}

fn alices() -> String {
    format!("alice-{STAMP}")
}

#[test]
fn l02_the_archive_holds_what_the_directory_held_and_the_place_is_free() {
    let filled = Filled::new();
    assert_eq!(filled.archive(), archived(&alices()));
    filled.assert_archived(&alices());
    // Again says the same and does nothing.
    assert_eq!(filled.archive(), archived(&alices()));
    filled.assert_archived(&alices());
}

#[test]
fn l06_the_next_account_of_the_name_starts_empty() {
    let filled = Filled::new();
    filled.archive();
    let homes = &filled.world.homes;
    homes.ensure(&name("alice"), &uid('b'), None).unwrap();
    assert_eq!(
        fs::read_dir(filled.world.users("alice/.agent/workspace"))
            .unwrap()
            .count(),
        0
    );
    // The first account's late call does not touch it.
    assert_eq!(filled.archive(), archived(&alices()));
    assert_eq!(
        homes.state(&name("alice"), &uid('b'), None).unwrap(),
        HomeState::Ready
    );
}

#[test]
fn an_archive_name_of_another_account_is_not_reused() {
    let filled = Filled::new();
    filled.archive();
    let homes = &filled.world.homes;
    homes.ensure(&name("alice"), &uid('b'), None).unwrap();
    fs::write(filled.world.users("alice/second"), b"2").unwrap();
    let second = format!("alice-{STAMP}-bbbbbb");
    let outcome = || {
        homes
            .archive(&name("alice"), &uid('b'), deleted_at(), None, None)
            .unwrap()
    };
    assert_eq!(outcome(), archived(&second));
    assert_eq!(outcome(), archived(&second));
    assert_eq!(
        fs::read(filled.world.archive(&second).join("second")).unwrap(),
        b"2"
    );
    assert_eq!(snapshot(&filled.world.archive(&alices())), filled.before);
}

#[test]
fn an_unmarked_directory_in_the_archive_is_not_ours() {
    let filled = Filled::new();
    fs::create_dir(filled.world.archive(&alices())).unwrap();
    assert_eq!(filled.archive(), archived(&format!("alice-{STAMP}-aaaaaa")));
    assert_eq!(
        fs::read_dir(filled.world.archive(&alices()))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn an_account_without_a_directory_has_nothing_to_archive() {
    let world = Yard::new();
    let before = snapshot(world.data.path());
    let outcome = world
        .homes
        .archive(&name("alice"), &uid('a'), deleted_at(), None, None);
    assert_eq!(outcome.unwrap(), ArchiveOutcome::NothingToArchive);
    assert_eq!(snapshot(world.data.path()), before);
}

#[test]
fn a_place_that_was_only_reserved_is_released() {
    let world = Yard::new();
    let crashed = in_process::crash_at(1, || {
        world.homes.ensure(&name("alice"), &uid('a'), None).unwrap()
    });
    assert!(crashed.is_none());
    let outcome = world
        .homes
        .archive(&name("alice"), &uid('a'), deleted_at(), None, None);
    assert_eq!(outcome.unwrap(), ArchiveOutcome::NothingToArchive);
    world.homes.ensure(&name("alice"), &uid('b'), None).unwrap();
}

#[test]
fn l02_what_is_not_the_accounts_is_never_archived() {
    let filled = Filled::new();
    let homes = &filled.world.homes;
    let outcome = homes
        .archive(&name("alice"), &uid('b'), deleted_at(), None, None)
        .unwrap();
    assert_eq!(outcome, ArchiveOutcome::NothingToArchive);
    fs::create_dir(filled.world.users("bob")).unwrap();
    fs::write(filled.world.users("bob/file"), b"x").unwrap();
    let outcome = homes
        .archive(&name("bob"), &uid('b'), deleted_at(), None, None)
        .unwrap();
    assert_eq!(outcome, ArchiveOutcome::NothingToArchive);
    assert_eq!(fs::read(filled.world.users("bob/file")).unwrap(), b"x");
    assert_eq!(snapshot(&filled.world.users("alice")), filled.before);
}

#[test]
fn l25_a_link_at_the_accounts_place_is_a_conflict() {
    let filled = Filled::new();
    let place = filled.world.users("alice");
    fs::rename(&place, filled.world.data.path().join("elsewhere")).unwrap();
    symlink(filled.outside.path(), &place).unwrap();
    let outcome = filled
        .world
        .homes
        .archive(&name("alice"), &uid('a'), deleted_at(), None, None);
    assert!(
        matches!(outcome, Err(HomeError::Conflict(_))),
        "{outcome:?}"
    );
    assert!(place.is_symlink());
}

#[test]
fn what_appears_after_the_move_gets_an_archive_of_its_own() {
    let filled = Filled::new();
    let whole = Filled::new();
    let (_, points) = in_process::record(|| whole.archive());
    let after_rename = points
        .iter()
        .position(|point| *point == "home.archive.after_rename")
        .unwrap();
    assert!(in_process::crash_at(after_rename + 1, || filled.archive()).is_none());
    // An engine that starts a container late makes the mount's source anew.
    fs::create_dir(filled.world.users("alice")).unwrap();
    fs::write(filled.world.users("alice/late"), b"late").unwrap();
    let second = format!("alice-{STAMP}-aaaaaa");
    assert_eq!(filled.archive(), archived(&second));
    assert_eq!(filled.archive(), archived(&second));
    assert_eq!(snapshot(&filled.world.archive(&alices())), filled.before);
    assert_eq!(
        fs::read(filled.world.archive(&second).join("late")).unwrap(),
        b"late"
    );
}

#[rstest::rstest]
#[case::rename(Method::Automatic, 4)]
#[case::copy(Method::Copy, 8)]
fn l02_ended_at_any_step_and_called_again_it_ends_the_same(
    #[case] method: Method,
    #[case] expected_points: usize,
) {
    let archive = |filled: &Filled| {
        let homes = &filled.world.homes;
        homes
            .archive_by(&name("alice"), &uid('a'), deleted_at(), None, None, method)
            .unwrap()
    };
    let whole = Filled::new();
    let (_, points) = in_process::record(|| archive(&whole));
    assert_eq!(points.len(), expected_points, "{points:?}");
    for nth in 1..=points.len() {
        // Ended again at each later step of the second run, too.
        for again in 1..=points.len() {
            let filled = Filled::new();
            assert!(in_process::crash_at(nth, || archive(&filled)).is_none());
            in_process::crash_at(again, || archive(&filled));
            assert_eq!(
                archive(&filled),
                archived(&alices()),
                "points {nth} and {again}"
            );
            filled.assert_archived(&alices());
            assert_eq!(archive(&filled), archived(&alices()));
        }
    }
}

/// A world whose archive really is another file system.
fn two_file_systems() -> (TempDir, Yard) {
    let other = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut world = Yard::new();
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    assert_ne!(
        device(world.data.path()),
        device(other.path()),
        "this test needs /dev/shm on another file system than the temporary directory"
    );
    fs::remove_dir_all(world.archive("")).unwrap();
    world.homes.archive = Root::open(other.path(), "archive", INSTANCE).unwrap();
    (other, world)
}

#[test]
fn l26_an_archive_on_another_file_system_gets_a_verified_copy() {
    let (_other, world) = two_file_systems();
    let filled = Filled::with(world);
    assert_eq!(filled.archive(), archived(&alices()));
    filled.assert_archived(&alices());
    assert_eq!(filled.archive(), archived(&alices()));
}

#[test]
fn l26_a_file_with_several_names_takes_its_space_in_the_archive_once() {
    let (_other, world) = two_file_systems();
    let filled = Filled::with(world);
    let home = filled.world.users("alice");
    fs::write(home.join("many"), b"names").unwrap();
    for number in 1..20 {
        fs::hard_link(home.join("many"), home.join(format!("name-{number}"))).unwrap();
    }
    let before = snapshot(&home);
    assert_eq!(filled.archive(), archived(&alices()));
    let copy = filled.world.homes.archive.path.join(alices());
    assert_eq!(snapshot(&copy), before);
    let links = fs::metadata(copy.join("name-7")).unwrap().nlink();
    assert_eq!(
        links, 20,
        "and nothing is left that was only there for the copy"
    );
}

#[test]
fn what_has_no_content_is_skipped_and_reported_even_after_a_crash() {
    let (_other, world) = two_file_systems();
    let filled = Filled::with(world);
    let homes = &filled.world.homes;
    let home = homes
        .open_existing(&name("alice"), &uid('a'))
        .unwrap()
        .unwrap();
    rustix::fs::mkfifoat(home.dir(), "fifo", rustix::fs::Mode::RWXU).unwrap();
    let _socket =
        std::os::unix::net::UnixListener::bind(filled.world.users("alice/.agent/socket")).unwrap();
    let expected = ArchiveOutcome::Archived {
        directory: alices(),
        skipped: Skipped {
            count: 2,
            paths: vec!["fifo".to_owned(), ".agent/socket".to_owned()],
        },
    };
    assert!(in_process::crash_at(6, || filled.archive()).is_none());
    assert_eq!(filled.archive(), expected);
    assert_eq!(filled.archive(), expected);
    assert!(!filled.world.users("alice").exists());
}

#[test]
fn holes_and_depth_do_not_stop_a_copy() {
    let (_other, world) = two_file_systems();
    world.homes.ensure(&name("alice"), &uid('a'), None).unwrap();
    let home = world.users("alice");
    let sparse = fs::File::create(home.join("sparse")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"end", 1 << 38).unwrap();
    let mut deep = home.clone();
    for level in 0..400 {
        deep.push(format!("d{level}"));
        fs::create_dir(&deep).unwrap();
    }
    fs::write(deep.join("bottom"), b"here").unwrap();
    let homes = &world.homes;
    let outcome = homes
        .archive(&name("alice"), &uid('a'), deleted_at(), None, None)
        .unwrap();
    assert_eq!(outcome, archived(&alices()));
    let copy = homes.archive.path.join(alices());
    let metadata = fs::metadata(copy.join("sparse")).unwrap();
    assert_eq!(metadata.len(), (1 << 38) + 3);
    assert!(metadata.blocks() < 1000, "{} blocks", metadata.blocks());
    let bottom = copy.join(deep.strip_prefix(&home).unwrap()).join("bottom");
    assert_eq!(fs::read(bottom).unwrap(), b"here");
    assert!(!home.exists());
}

/// Only a service that is not root is stopped by permissions; root passes here in any case.
#[rstest::rstest]
#[case::rename(Method::Automatic, 0o000)]
#[case::rename_read_only(Method::Automatic, 0o555)]
#[case::copy(Method::Copy, 0o000)]
fn what_the_agent_made_unreadable_is_archived_too(#[case] method: Method, #[case] home_mode: u32) {
    let world = Yard::new();
    world.homes.ensure(&name("alice"), &uid('a'), None).unwrap();
    let home = world.users("alice");
    fs::create_dir(home.join("locked")).unwrap();
    fs::write(home.join("locked/file"), b"kept").unwrap();
    fs::create_dir(home.join("listed-only")).unwrap();
    fs::write(home.join("listed-only/file"), b"too").unwrap();
    for (path, mode) in [
        ("locked/file", 0o000),
        ("locked", 0o000),
        ("listed-only", 0o400),
        (".agent", 0o000),
        ("", home_mode),
    ] {
        fs::set_permissions(home.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    let homes = &world.homes;
    let outcome = homes.archive_by(&name("alice"), &uid('a'), deleted_at(), None, None, method);
    assert_eq!(outcome.unwrap(), archived(&alices()));
    assert!(!home.exists());
    let copy = world.archive(&alices());
    for path in ["", "locked", "locked/file", "listed-only"] {
        fs::set_permissions(copy.join(path), fs::Permissions::from_mode(0o700)).unwrap();
    }
    assert_eq!(fs::read(copy.join("locked/file")).unwrap(), b"kept");
    assert_eq!(fs::read(copy.join("listed-only/file")).unwrap(), b"too");
    // So that the temporary directory can be removed.
    fs::set_permissions(copy.join(".agent"), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_copy_that_differs_is_noticed_and_the_original_kept() {
    use super::super::copy;
    let world = Yard::new();
    let outside = tempfile::tempdir().unwrap();
    world.homes.ensure(&name("alice"), &uid('a'), None).unwrap();
    let home = world.users("alice");
    fill(&home, outside.path());
    let target = tempfile::tempdir().unwrap();
    let open = |path: &Path| {
        rustix::fs::open(
            path,
            rustix::fs::OFlags::DIRECTORY,
            rustix::fs::Mode::empty(),
        )
        .unwrap()
    };
    let (from, to) = (open(&home), open(target.path()));
    copy::copy_verified(&from, &home, &to, Path::new("copy")).unwrap();
    let both = || [open(&home), open(&target.path().join("copy"))];
    let verify = || copy::differs(both(), &home).unwrap();
    assert_eq!(verify(), None);
    let workspace = target.path().join("copy").join(WORKSPACE_DIR);
    // Same length, one byte changed.
    let mut content = fs::read(workspace.join("big")).unwrap();
    content[150_000] ^= 1;
    fs::write(workspace.join("big"), &content).unwrap();
    assert!(verify().unwrap().contains("big"));
    content[150_000] ^= 1;
    fs::write(workspace.join("big"), &content).unwrap();
    assert_eq!(verify(), None);
    fs::remove_file(workspace.join("dangling")).unwrap();
    assert!(verify().unwrap().contains("other entries"));
    symlink("elsewhere", workspace.join("dangling")).unwrap();
    assert!(verify().unwrap().contains("dangling"));
}
