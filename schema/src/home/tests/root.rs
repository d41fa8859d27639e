use super::*;

fn open(data: &Path) -> Result<Homes, HomeError> {
    Homes::open_with(data, INSTANCE, None)
}

fn assert_refused(outcome: Result<Homes, HomeError>, says: &str) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, HomeError::RefusedRoot { .. }), "{error:?}");
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn roots_are_made_private_and_marked_and_found_again() {
    let world = Yard::new();
    for root in ["users", "archive"] {
        let path = world.data.path().join(root);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o700);
        let marker = fs::read_to_string(path.join(".agentyard")).unwrap();
        assert_eq!(
            marker,
            format!(r#"{{"root":"{root}","instance":"{INSTANCE}"}}"#)
        );
    }
    let before = snapshot(world.data.path());
    open(world.data.path()).unwrap();
    assert_eq!(snapshot(world.data.path()), before);
}

#[test]
fn l02_roots_that_are_not_ours_are_refused_and_left_alone() {
    for root in ["users", "archive"] {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join(root)).unwrap();
        fs::write(data.path().join(root).join("precious"), b"x").unwrap();
        assert_refused(open(data.path()), "not created by Agentyard");
        assert_eq!(fs::read_dir(data.path().join(root)).unwrap().count(), 1);
    }
}

#[test]
fn an_empty_directory_may_become_a_root() {
    let data = tempfile::tempdir().unwrap();
    fs::create_dir(data.path().join("users")).unwrap();
    // What a loss of power in the middle of marking leaves.
    fs::write(data.path().join("users/..agentyard.tmp"), b"{").unwrap();
    open(data.path()).unwrap();
}

#[test]
fn roots_that_others_may_enter_or_own_are_refused() {
    let world = Yard::new();
    for name in ["users", "archive", "users/.owners"] {
        let path = world.data.path().join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert_refused(open(world.data.path()), "its mode is 0755");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(&path, Some(12_345), None)
            .expect("this test gives a directory away: run it as root");
        assert_refused(open(world.data.path()), "it belongs to user 12345");
        std::os::unix::fs::chown(&path, Some(rustix::process::geteuid().as_raw()), None).unwrap();
    }
    open(world.data.path()).unwrap();
}

#[test]
fn l02_the_roots_of_another_instance_are_refused() {
    let world = Yard::new();
    assert_refused(
        Homes::open_with(world.data.path(), "instance-2", None),
        "another instance",
    );
}

#[test]
fn an_archive_root_is_no_users_root() {
    let world = Yard::new();
    fs::remove_dir_all(world.data.path().join("users")).unwrap();
    fs::rename(
        world.data.path().join("archive"),
        world.data.path().join("users"),
    )
    .unwrap();
    assert_refused(open(world.data.path()), "another instance");
}

#[test]
fn a_damaged_marker_is_refused() {
    let world = Yard::new();
    fs::write(world.users(".agentyard"), b"").unwrap();
    assert_refused(open(world.data.path()), "cannot be parsed");
}

#[test]
fn a_root_that_is_a_link_or_a_file_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), data.path().join("users")).unwrap();
    assert_refused(open(data.path()), "not a directory");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    fs::remove_file(data.path().join("users")).unwrap();
    fs::write(data.path().join("users"), b"").unwrap();
    assert_refused(open(data.path()), "not a directory");
}

#[rstest::rstest]
#[case("/", "root of the file system")]
#[case("/home", "personal files")]
#[case("/root", "personal files")]
#[case("/home/alice", "home directory")]
fn l02_precious_directories_are_refused(#[case] path: &str, #[case] says: &str) {
    let error = crate::home::root::refuse_precious(Path::new(path), None).unwrap_err();
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn l02_ones_own_home_directory_is_refused_but_not_a_directory_in_it() {
    let home = tempfile::tempdir().unwrap();
    assert_refused(
        Homes::open_with(home.path(), INSTANCE, Some(home.path())),
        "home directory",
    );
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    let data = home.path().join("data");
    fs::create_dir(&data).unwrap();
    Homes::open_with(&data, INSTANCE, Some(home.path())).unwrap();
}

#[test]
fn a_missing_data_directory_is_an_error() {
    let data = tempfile::tempdir().unwrap();
    assert!(matches!(
        open(&data.path().join("missing")),
        Err(HomeError::Io { .. })
    ));
}
