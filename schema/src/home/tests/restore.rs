use super::super::restore::Recipient;
use super::*;
use crate::fault::in_process;

/// A yard with an archive of alice, in which links to a file and a directory outside lie, and with a home of bob.
struct Archived {
    yard: Yard,
    outside: TempDir,
    before: BTreeMap<PathBuf, Entry>,
}

fn alices() -> Archive {
    Archive::parse(&format!("alice-{STAMP}")).unwrap()
}

fn restored() -> String {
    format!("restored-{STAMP}")
}

impl Archived {
    fn new() -> Self {
        Self::with(|_| ())
    }

    fn with(more: impl FnOnce(&Path)) -> Self {
        let (yard, outside) = (Yard::new(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("secret"), b"secret").unwrap();
        let homes = &yard.homes;
        homes.ensure(&name("alice"), &uid('a'), None).unwrap();
        fill(&yard.users("alice"), &outside.path().join("secret"));
        more(&yard.users("alice").join(WORKSPACE_DIR));
        let archived = homes.archive(&name("alice"), &uid('a'), deleted_at(), None, None);
        archived.unwrap();
        homes.ensure(&name("bob"), &uid('b'), None).unwrap();
        let before = snapshot(&yard.archive(&alices().directory));
        Self {
            yard,
            outside,
            before,
        }
    }

    fn restore(&self) -> Result<Restored, RestoreError> {
        self.yard.homes.restore(&alices(), &name("bob"), &uid('b'))
    }

    fn workspace(&self, path: &str) -> PathBuf {
        self.yard.users("bob").join(WORKSPACE_DIR).join(path)
    }

    fn in_workspace(&self) -> Vec<String> {
        let entries = fs::read_dir(self.workspace("")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// What a restore makes of the archive.
    fn expected(&self) -> BTreeMap<PathBuf, Entry> {
        let workspace = self.before.iter().filter_map(|(path, entry)| {
            let path = path.strip_prefix(WORKSPACE_DIR).ok()?;
            let mut entry = entry.clone();
            entry.mode &= !0o7000;
            Some((path.to_owned(), entry))
        });
        workspace.collect()
    }

    fn assert_untouched(&self) {
        assert_eq!(
            snapshot(&self.yard.archive(&alices().directory)),
            self.before
        );
        assert_eq!(fs::read_dir(self.outside.path()).unwrap().count(), 1);
        let left = fs::read_dir(self.yard.users(".restoring"));
        assert_eq!(left.map_or(0, Iterator::count), 0);
    }
}

#[test]
fn the_workspace_comes_back_with_content_permissions_and_times_and_the_archive_stays() {
    let archived = Archived::new();
    let outcome = archived.restore().unwrap();
    let expected = Restored {
        directory: restored(),
        files: 4,
        bytes: 8 + 200_000 + 10,
        skipped: Skipped::default(),
        conversations_left_out: false,
    };
    assert_eq!(outcome, expected);
    let copy = snapshot(&archived.workspace(&restored()));
    assert_eq!(copy, archived.expected());
    let script = &copy[Path::new("run.sh")];
    assert_eq!(script.mode & 0o7777, 0o755, "set-uid is taken away");
    let secret = archived.outside.path().join("secret");
    assert_eq!(
        copy[Path::new("outside-link")].content,
        Content::Link(secret)
    );
    archived.assert_untouched();
}

#[test]
fn everything_belongs_to_whom_the_workspace_belongs_to() {
    let archived = Archived::new();
    let workspace = archived.workspace("");
    std::os::unix::fs::chown(&workspace, Some(12_345), Some(54_321))
        .expect("this test gives a directory away: run it as root");
    archived.restore().unwrap();
    for (path, entry) in snapshot(&archived.workspace(&restored())) {
        assert_eq!(entry.owner, (12_345, 54_321), "{path:?}");
    }
    archived.assert_untouched();
}

#[test]
fn l25_whatever_has_the_name_stays_and_another_is_taken() {
    let archived = Archived::new();
    let first = archived.workspace(&restored());
    symlink(archived.outside.path(), &first).unwrap();
    let second = archived.workspace(&format!("{}-2", restored()));
    fs::write(&second, b"mine").unwrap();
    let third = format!("{}-3", restored());
    fs::create_dir(archived.workspace(&third)).unwrap();
    let outcome = archived.restore().unwrap();
    assert_eq!(outcome.directory, format!("{}-4", restored()));
    assert_eq!(fs::read_link(first).unwrap(), archived.outside.path());
    assert_eq!(fs::read(second).unwrap(), b"mine");
    let third = archived.workspace(&third);
    assert_eq!(fs::read_dir(third).unwrap().count(), 0);
    archived.assert_untouched();
}

#[test]
fn l25_a_workspace_that_is_a_link_is_refused_on_both_sides() {
    let archived = Archived::new();
    let workspace = archived.yard.users("bob").join(WORKSPACE_DIR);
    fs::remove_dir(&workspace).unwrap();
    symlink(archived.outside.path(), &workspace).unwrap();
    let refused = archived.restore().unwrap_err();
    let conflict = matches!(refused, RestoreError::Home(HomeError::Conflict(_)));
    assert!(conflict, "{refused}");
    archived.assert_untouched();

    let archived = Archived::with(|workspace| {
        fs::rename(workspace, workspace.with_extension("away")).unwrap();
        symlink("/etc", workspace).unwrap();
    });
    let refused = archived.restore().unwrap_err();
    assert!(matches!(refused, RestoreError::NoWorkspace), "{refused}");
    let refused = archived.yard.homes.archive_contents(&alices());
    let refused = refused.unwrap_err();
    assert!(matches!(refused, RestoreError::NoWorkspace), "{refused}");
    assert!(archived.in_workspace().is_empty());
}

#[test]
fn what_has_no_content_is_skipped_and_named() {
    let archived = Archived::with(|workspace| {
        let dir = fs::File::open(workspace.join("a/b/c")).unwrap();
        rustix::fs::mkfifoat(&dir, "fifo\x1b[2J", rustix::fs::Mode::RWXU).unwrap();
        let socket = workspace.join("socket");
        drop(std::os::unix::net::UnixListener::bind(socket).unwrap());
    });
    let outcome = archived.restore().unwrap();
    assert_eq!(outcome.skipped.count, 2);
    let mut paths = outcome.skipped.paths;
    paths.sort();
    assert_eq!(paths, ["a/b/c/fifo\x1b[2J", "socket"]);
    assert!(!archived.workspace(&restored()).join("socket").exists());
    archived.assert_untouched();
}

/// Only a service that is not root is stopped by permissions; root passes here in any case.
#[test]
fn what_the_agent_made_unreadable_comes_back_and_stays_so() {
    let archived = Archived::with(|workspace| {
        fs::create_dir_all(workspace.join("locked/listed-only")).unwrap();
        fs::write(workspace.join("locked/listed-only/file"), b"kept").unwrap();
    });
    let archive = archived.yard.archive(&alices().directory);
    for (path, mode) in [
        ("locked/listed-only/file", 0o000),
        ("locked/listed-only", 0o400),
        ("locked", 0o000),
        ("", 0o000),
    ] {
        let path = archive.join(WORKSPACE_DIR).join(path);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let modes = |root: &Path| {
        let mut modes = Vec::new();
        for path in [
            "",
            "locked",
            "locked/listed-only",
            "locked/listed-only/file",
        ] {
            let path = root.join(path);
            modes.push(fs::symlink_metadata(&path).unwrap().mode() & 0o7777);
            let open = fs::Permissions::from_mode(0o700);
            fs::set_permissions(&path, open).unwrap();
        }
        modes
    };
    let restored_to = archived.restore().unwrap().directory;
    assert_eq!(modes(&archive.join(WORKSPACE_DIR)), [0, 0, 0o400, 0]);
    let copy = archived.workspace(&restored_to);
    // Its owner may enter what was restored.
    assert_eq!(modes(&copy), [0o700, 0, 0o400, 0]);
    let file = copy.join("locked/listed-only/file");
    assert_eq!(fs::read(file).unwrap(), b"kept");
}

#[test]
fn ended_at_any_step_there_is_all_or_nothing_and_the_next_one_clears_up() {
    let (outcome, points) = in_process::record(|| Archived::new().restore());
    outcome.unwrap();
    let points: Vec<_> = points
        .into_iter()
        .filter(|point| point.starts_with("home.restore."))
        .collect();
    assert_eq!(points.len(), 3, "{points:?}");
    for nth in 1..=points.len() {
        let archived = Archived::new();
        assert!(in_process::crash_at(nth, || archived.restore()).is_none());
        let there = archived.in_workspace();
        match there.first() {
            None => assert!(nth < points.len(), "{nth}"),
            Some(directory) => {
                let copy = snapshot(&archived.workspace(directory));
                assert_eq!(copy, archived.expected(), "{nth}");
            }
        }
        let outcome = archived.restore().unwrap();
        let copy = snapshot(&archived.workspace(&outcome.directory));
        assert_eq!(copy, archived.expected(), "{nth}");
        assert_eq!(archived.in_workspace().len(), there.len() + 1);
        archived.assert_untouched();
    }
}

#[test]
fn one_restore_works_at_a_time() {
    let archived = Archived::new();
    archived.restore().unwrap();
    let other = fs::File::open(archived.yard.users(".restoring")).unwrap();
    let exclusive = rustix::fs::FlockOperation::NonBlockingLockExclusive;
    rustix::fs::flock(&other, exclusive).unwrap();
    let refused = archived.restore().unwrap_err();
    assert!(matches!(refused, RestoreError::Busy), "{refused}");
    drop(other);
    archived.restore().unwrap();
}

#[test]
fn an_archive_that_is_being_removed_is_not_restored() {
    for nth in 1..=3 {
        let archived = Archived::new();
        let homes = &archived.yard.homes;
        let remove = || homes.remove_archive(&alices().directory).unwrap();
        assert!(in_process::crash_at(nth, remove).is_none());
        let refused = archived.restore().unwrap_err();
        assert!(matches!(refused, RestoreError::ArchiveGone), "{refused}");
        let found = homes.archives().unwrap();
        let contents = homes.archive_contents(&found[0]);
        assert!(matches!(contents, Err(RestoreError::ArchiveGone)));
        remove();
        let refused = archived.restore().unwrap_err();
        assert!(matches!(refused, RestoreError::ArchiveGone), "{refused}");
        assert!(archived.in_workspace().is_empty());
    }
}

#[test]
fn an_archive_whose_removal_begins_while_it_is_copied_is_not_restored_in_part() {
    let archived = Archived::new();
    let homes = &archived.yard.homes;
    let source = homes.open_archived(&alices()).unwrap();
    let home = homes.open_existing(&name("bob"), &uid('b')).unwrap();
    let restoring = homes.restoring().unwrap();
    in_process::crash_at(1, || homes.remove_archive(&alices().directory).unwrap());
    let home = home.unwrap();
    let bob = uid('b');
    let recipient = Recipient {
        uid: &bob,
        owner: home.workspace_owner().unwrap(),
        is_same_user: false,
    };
    let refused = homes.copy_and_place(&alices(), &source, &home, &restoring, &recipient);
    let refused = refused.unwrap_err();
    assert!(matches!(refused, RestoreError::ArchiveGone), "{refused}");
    assert!(archived.in_workspace().is_empty());
}

#[test]
fn nobody_else_and_nobody_without_a_directory_gets_anything() {
    let archived = Archived::new();
    let homes = &archived.yard.homes;
    let other = homes.restore(&alices(), &name("bob"), &uid('c'));
    let other = other.unwrap_err();
    let conflict = matches!(other, RestoreError::Home(HomeError::Conflict(_)));
    assert!(conflict, "{other}");
    let none = homes.restore(&alices(), &name("carol"), &uid('c'));
    let none = none.unwrap_err();
    assert!(matches!(none, RestoreError::NoHome), "{none}");
    assert!(!archived.yard.users("carol").exists());
}

#[test]
fn an_archive_of_a_batch_is_found_in_it() {
    let yard = Yard::new();
    let modes = ["local", "ldap"].map(|mode| mode.parse().unwrap());
    let batch = ArchiveBatch::of_mode_switch(deleted_at(), modes[0], modes[1]);
    let homes = &yard.homes;
    homes.ensure(&name("alice"), &uid('a'), None).unwrap();
    fs::write(yard.users("alice/.agent/workspace/file"), b"x").unwrap();
    let archive = homes.archive(&name("alice"), &uid('a'), deleted_at(), Some(&batch), None);
    archive.unwrap();
    homes.ensure(&name("alice"), &uid('b'), None).unwrap();
    let found = homes.archives().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].mode_switch(), Some("local-to-ldap"));
    let outcome = homes.restore(&found[0], &name("alice"), &uid('b'));
    let directory = outcome.unwrap().directory;
    let file = yard.users("alice/.agent/workspace").join(directory);
    assert_eq!(fs::read(file.join("file")).unwrap(), b"x");
    let contents = homes.archive_contents(&found[0]).unwrap();
    assert_eq!(contents.path, yard.archive(&found[0].directory));
    assert_eq!((contents.entries, contents.bytes), (1, 1));
}

#[test]
fn contents_are_counted_and_the_first_are_named() {
    let archived = Archived::with(|workspace| {
        for number in 0..60 {
            fs::create_dir(workspace.join(format!("d{number:02}"))).unwrap();
        }
    });
    let homes = &archived.yard.homes;
    let contents = homes.archive_contents(&alices()).unwrap();
    // a, a/b, a/b/c and the file in it; three files and four links; sixty directories.
    assert_eq!(contents.entries, 4 + 3 + 4 + 60);
    assert_eq!(contents.top_count, 1 + 3 + 4 + 60);
    assert_eq!(contents.bytes, 8 + 200_000 + 10);
    assert!(contents.complete);
    assert_eq!(contents.unreadable, 0);
    assert_eq!(contents.top.len(), 50);
    let first: Vec<_> = contents.top.iter().take(3).collect();
    let entry = |name: &str, kind| TopEntry {
        name: name.to_owned(),
        kind,
    };
    let expected = [
        entry("a", "directory"),
        entry("big", "file"),
        entry("d00", "directory"),
    ];
    assert_eq!(first, expected.iter().collect::<Vec<_>>());
    archived.assert_untouched();
}

#[test]
fn a_file_with_several_names_is_copied_once() {
    let archived = Archived::with(|workspace| {
        fs::create_dir_all(workspace.join("many/deep")).unwrap();
        fs::write(workspace.join("many/0"), vec![b'x'; 100_000]).unwrap();
        for number in 1..50 {
            let name = workspace.join(format!("many/deep/{number}"));
            fs::hard_link(workspace.join("many/0"), name).unwrap();
        }
    });
    let outcome = archived.restore().unwrap();
    assert_eq!(
        (outcome.files, outcome.bytes),
        (5, 8 + 200_000 + 10 + 100_000)
    );
    let copy = archived.workspace(&restored());
    assert_eq!(snapshot(&copy), archived.expected());
    let inode = |path: &str| fs::metadata(copy.join(path)).unwrap().ino();
    for number in 1..50 {
        assert_eq!(inode(&format!("many/deep/{number}")), inode("many/0"));
    }
    assert_eq!(fs::metadata(copy.join("many/0")).unwrap().nlink(), 50);
    archived.assert_untouched();
}

const CONVERSATION: &str = "conversations/019ac4d27f6e7c13a3d5c0a7b1c2d3e4";

/// Conversations and sessions of the agent wherever they may lie, and directories that only look like them.
fn with_conversations() -> Archived {
    Archived::with(|workspace| {
        let write = |folder: &str| {
            let folder = workspace.join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("entries.jsonl"), "said\n").unwrap();
        };
        let earlier = format!("restored-{STAMP}-2/");
        for parent in ["", &earlier, &format!(".trash/{STAMP}/")] {
            write(&format!("{parent}{CONVERSATION}"));
            write(&format!("{parent}sessions"));
        }
        write(&format!(
            ".trash/{STAMP}-1/019ac4d27f6e7c13a3d5c0a7b1c2d3e4"
        ));
        write("project/conversations/notes");
        write("project/sessions");
    })
}

fn paths_with(copy: &BTreeMap<PathBuf, Entry>, content: &[u8]) -> Vec<PathBuf> {
    let has = |entry: &Entry| entry.content == Content::File(content.to_vec());
    let found = copy.iter().filter(|(_, entry)| has(entry));
    found.map(|(path, _)| path.clone()).collect()
}

#[test]
fn another_user_gets_no_conversations_or_sessions() {
    let archived = with_conversations();
    let outcome = archived.restore().unwrap();
    assert!(outcome.conversations_left_out);
    assert_eq!(outcome.files, 4 + 2);
    let copy = snapshot(&archived.workspace(&restored()));
    let own = ["conversations/notes", "sessions"]
        .map(|folder| Path::new("project").join(folder).join("entries.jsonl"));
    assert_eq!(paths_with(&copy, b"said\n"), own);
    assert_eq!(paths_with(&copy, b"remember").len(), 1);
    archived.assert_untouched();
}

#[test]
fn next_bearer_of_the_name_gets_no_conversations() {
    let archived = with_conversations();
    let homes = &archived.yard.homes;
    homes.ensure(&name("alice"), &uid('c'), None).unwrap();
    let outcome = homes.restore(&alices(), &name("alice"), &uid('c'));
    assert!(outcome.unwrap().conversations_left_out);
}

#[test]
fn same_account_gets_its_conversations() {
    let archived = with_conversations();
    let homes = &archived.yard.homes;
    homes.ensure(&name("alice"), &uid('a'), None).unwrap();
    let outcome = homes.restore(&alices(), &name("alice"), &uid('a'));
    assert!(!outcome.unwrap().conversations_left_out);
    let workspace = archived.yard.users("alice").join(WORKSPACE_DIR);
    let copy = snapshot(&workspace.join(restored()));
    assert_eq!(copy, archived.expected());
    archived.assert_untouched();
}

#[test]
fn mode_switch_keeps_conversations_of_the_name() {
    let yard = Yard::new();
    let modes = ["local", "ldap"].map(|mode| mode.parse().unwrap());
    let batch = ArchiveBatch::of_mode_switch(deleted_at(), modes[0], modes[1]);
    let homes = &yard.homes;
    homes.ensure(&name("alice"), &uid('a'), None).unwrap();
    let folder = yard.users("alice/.agent/workspace").join(CONVERSATION);
    fs::create_dir_all(&folder).unwrap();
    let archive = homes.archive(&name("alice"), &uid('a'), deleted_at(), Some(&batch), None);
    archive.unwrap();
    let found = homes.archives().unwrap();
    for (user, digit, left_out) in [("alice", 'b', false), ("bob", 'c', true)] {
        homes.ensure(&name(user), &uid(digit), None).unwrap();
        let outcome = homes.restore(&found[0], &name(user), &uid(digit));
        let outcome = outcome.unwrap();
        assert_eq!(outcome.conversations_left_out, left_out, "{user}");
        let workspace = yard.users(user).join(WORKSPACE_DIR);
        let copy = workspace.join(outcome.directory).join(CONVERSATION);
        assert_eq!(copy.exists(), !left_out, "{user}");
    }
}
