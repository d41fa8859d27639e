//! The way back from the archive, beside a server that runs and without one.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kit::engine::FakeEngine;
use schema::clock::SystemClock;
use schema::container::Desired;
use schema::db::{Backend, Db};
use schema::home::{Archive, ArchiveBatch, Homes};
use schema::ids::{Timestamp, Uid};
use schema::user::{self, NewUser, Source};
use serde_json::Value;

use crate::in_process::InProcess;
use crate::support::client::Target;
use crate::support::disk::SmallDisk;
use crate::support::own_postgres::OwnPostgres;
use crate::support::service::{Finished, Launch};
use crate::support::{Client, Stage, eventually, seconds, until};

/// Runs a command line; its exit code must be this.
async fn ends(launch: &Launch, line: &str, code: i32) -> Finished {
    let words: Vec<&str> = line.split_whitespace().collect();
    let finished = launch.run(&words).await;
    let printed = format!("{line}\n{}{}", finished.stdout, finished.stderr);
    assert_eq!(finished.status.code(), Some(code), "{printed}");
    finished
}

fn workspace(data: &Path, user: &str) -> PathBuf {
    data.join("users").join(user).join(".agent/workspace")
}

/// The entries of the newest restore that the audit trail has.
async fn trail(admin: &Client) -> Vec<Value> {
    let path = "/api/admin/audit?action=archive_restore";
    let answer = admin.get(path).await.expect(200);
    answer["entries"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_users_workspace_comes_back_while_the_server_runs() {
    let stage = Stage::new();
    let data = stage.data();
    std::fs::create_dir(&data).unwrap();
    let fake = FakeEngine::new(Arc::new(SystemClock));
    fake.add_image("echo:1");
    let service = InProcess::start_in(&data, fake).await;
    let command = stage.command();
    let none = ends(&command, "archive list", 0).await;
    assert_eq!((&*none.stdout, &*none.stderr), ("", "no archives\n"));
    service.create_users(3, Desired::Stopped).await;
    for user in ["user0", "user1"] {
        until("the home is made", seconds(30), async || {
            workspace(&data, user).is_dir()
        })
        .await;
    }
    let lost = workspace(&data, "user0");
    std::fs::create_dir(lost.join("dir")).unwrap();
    std::fs::write(lost.join("dir/notes"), b"remember").unwrap();
    std::fs::write(lost.join("evil\x1b]0;title\x07"), b"").unwrap();
    symlink("/etc/passwd", lost.join("link")).unwrap();

    let admin = Client::new(Target::Unix(data.join("admin.sock")));
    for user in ["user0", "user2"] {
        let form = [("username", user), ("wait", "30")];
        let path = "/api/admin/users/delete";
        admin.post(path, &form).await.expect(200);
    }
    let archives = eventually("it is archived", seconds(30), async || {
        match ends(&command, "archive list -o json", 0).await.stdout {
            list if list.contains("user0@") => Ok(list),
            list => Err(list),
        }
    });
    let archives: Value = serde_json::from_str(&archives.await.0).unwrap();
    let archive = archives.as_array().unwrap().iter();
    let mut archive = archive.filter(|archive| archive["username"] == "user0");
    let archive = archive.next().unwrap();
    let handle = archive["archive"].as_str().unwrap();
    let deleted_at = archive["deleted_at"].as_str().unwrap();
    assert_eq!(handle, format!("user0@{deleted_at}"));
    let table = ends(&command, "archive list --search user0", 0)
        .await
        .stdout;
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 2, "{table}");
    assert!(lines[0].starts_with("ARCHIVE"), "{table}");
    assert!(lines[1].starts_with(handle), "{table}");
    let named = ends(&command, "archive list -o name", 0).await.stdout;
    assert!(named.contains(&format!("archive/{handle}\n")), "{named}");

    let show = ends(&command, &format!("archive show archive/{handle}"), 0).await;
    for part in [
        "dir/\n",
        "link (link)\n",
        "4 entries, 8 bytes",
        "/archive/user0-",
    ] {
        assert!(show.stdout.contains(part), "{part}: {}", show.stdout);
    }
    assert!(!show.stdout.contains(['\x1b', '\x07']), "{}", show.stdout);

    let line = format!("archive restore {handle} --to");
    for number in 1..=2 {
        let restored = ends(&command, &format!("{line} user1"), 0).await.stdout;
        let stamp = Timestamp::parse_rfc3339(deleted_at).unwrap().to_basic();
        let directory = match number {
            1 => format!("restored-{stamp}"),
            _ => format!("restored-{stamp}-2"),
        };
        let expected = format!("restored to {directory} in user1's workspace: 2 files, 8 bytes\n");
        assert_eq!(restored, expected);
        let copy = workspace(&data, "user1").join(directory);
        assert_eq!(std::fs::read(copy.join("dir/notes")).unwrap(), b"remember");
        let link = std::fs::read_link(copy.join("link")).unwrap();
        assert_eq!(link, Path::new("/etc/passwd"));
        let entries = trail(&admin).await;
        assert_eq!(entries.len(), number, "{entries:?}");
        assert_eq!(entries[0]["object"], "user/user1");
        assert_eq!(entries[0]["outcome"], "ok");
        let actor = format!("local:{}", rustix::process::getuid().as_raw());
        assert_eq!(entries[0]["actor"], *actor);
        assert!(entries[0]["detail"].as_str().unwrap().contains(handle));
    }
    let verified = admin.get("/api/admin/audit/verify").await.expect(200);
    assert_eq!(verified["valid"], true);

    let before = std::fs::read_dir(workspace(&data, "user1"))
        .unwrap()
        .count();
    for (line, code, said) in [
        (
            "archive show nobody@2026-05-11T11:46:40Z",
            1,
            "agentyard archive list",
        ),
        (
            "archive restore user0 --to user1",
            1,
            "agentyard archive list",
        ),
        (&*format!("{line} user9"), 1, "user user9 not found"),
        (&*format!("{line} admin"), 1, "admin is a superadmin"),
        (&*format!("{line} user2"), 1, "user user2"),
        (&*format!("{line} no/name"), 1, "user name"),
        (&*format!("archive restore {handle}"), 2, "--to"),
    ] {
        let refused = ends(&command, line, code).await;
        assert!(refused.stderr.contains(said), "{line}: {}", refused.stderr);
        assert_eq!(refused.stdout, "", "{line}");
    }
    let after = std::fs::read_dir(workspace(&data, "user1"))
        .unwrap()
        .count();
    assert_eq!(after, before);
    assert_eq!(trail(&admin).await.len(), 2);
    service.stop().await;
    // The server found nothing to mend, and without it the same works.
    ends(&command, &format!("{line} user1"), 0).await;
}

/// An installation without a server, in which alice was archived and bob has no directory yet.
async fn prepared(stage: &Stage, launch: &Launch, backend: Backend) -> String {
    ends(launch, "init --adapter echo", 0).await;
    let db = Db::open(backend).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let (instance, _) = schema::meta::ensure_instance_id(&mut tx).await.unwrap();
    let bob = NewUser {
        uid: Uid::random(),
        name: "Bob".parse().unwrap(),
        source: Source::Local,
        password_hash: None,
        image_ref: "echo:1".to_owned(),
        desired: Desired::Stopped,
    };
    let now = Timestamp::from_secs(1_778_500_000);
    user::create(&mut tx, &bob, now).await.unwrap();
    tx.commit().await.unwrap();
    db.close().await;
    let homes = Homes::open(&stage.data(), &instance).unwrap();
    let (alice, uid) = ("alice".parse().unwrap(), Uid::random());
    homes.ensure(&alice, &uid, None).unwrap();
    let lost = workspace(&stage.data(), "alice");
    std::fs::write(lost.join("big"), vec![7; 400_000]).unwrap();
    homes.archive(&alice, &uid, now, None, None).unwrap();
    let archives: Vec<Archive> = homes.archives().unwrap();
    assert_eq!(archives.len(), 1);
    "alice@2026-05-11T11:46:40Z".to_owned()
}

#[tokio::test]
async fn a_workspace_comes_back_without_a_server_to_a_user_without_a_directory() {
    let stage = Stage::new();
    let launch = stage.command();
    let backend = Backend::Sqlite(stage.data().join("agentyard.db"));
    let handle = prepared(&stage, &launch, backend).await;
    let restored = ends(&launch, &format!("archive restore {handle} --to bob"), 0).await;
    assert!(restored.stdout.contains("in Bob's workspace: 1 file"));
    let copy = workspace(&stage.data(), "Bob").join("restored-20260511T114640Z/big");
    assert_eq!(std::fs::read(copy).unwrap(), vec![7; 400_000]);
}

/// Entries of the audit trail, read without a server.
async fn entries(stage: &Stage, action: &str) -> Vec<(String, String)> {
    let backend = Backend::Sqlite(stage.data().join("agentyard.db"));
    let db = Db::open(backend).await.unwrap();
    let mut connection = db.read().await.unwrap();
    let filter = schema::audit::Filter {
        action: action.to_owned(),
        ..schema::audit::Filter::default()
    };
    let found = schema::audit::list(&mut connection, &filter, 10, 0).await;
    let found = found.unwrap().into_iter().map(|recorded| {
        assert!(recorded.entry.actor.starts_with("local:"), "{recorded:?}");
        (recorded.entry.object, recorded.entry.detail)
    });
    let found = found.collect();
    drop(connection);
    db.close().await;
    found
}

#[tokio::test]
async fn deleted_archive_is_gone_and_recorded() {
    let stage = Stage::new();
    let launch = stage.command();
    let backend = Backend::Sqlite(stage.data().join("agentyard.db"));
    let handle = prepared(&stage, &launch, backend).await;
    let unknown = ends(
        &launch,
        "archive delete alice@2026-05-11T11:46:41Z --yes",
        1,
    )
    .await;
    let guess = format!("did you mean {handle:?}");
    assert!(unknown.stderr.contains(&guess), "{}", unknown.stderr);
    let line = format!("archive delete {handle}");
    let asked = ends(&launch, &line, 2).await;
    assert!(asked.stderr.contains("--yes"), "{}", asked.stderr);
    let words: Vec<&str> = line.split(' ').collect();
    let wrong = launch.run_in_terminal(&words, &["alice"]).await;
    let printed = format!("{}{}", wrong.stdout, wrong.stderr);
    assert_eq!(wrong.status.code(), Some(1), "{printed}");
    assert!(printed.contains("nothing was deleted"), "{printed}");
    assert_eq!(stage.archives("alice").len(), 1);
    assert_eq!(entries(&stage, "archive_delete").await, []);

    let typed = launch.run_in_terminal(&words, &[&handle]).await;
    let printed = format!("{}{}", typed.stdout, typed.stderr);
    assert!(typed.status.success(), "{printed}");
    assert!(
        printed.contains(&format!("archive {handle} deleted")),
        "{printed}"
    );
    assert_eq!(stage.archives("alice"), [""; 0].map(PathBuf::from));
    let recorded = ("archive/alice-20260511T114640Z".to_owned(), handle.clone());
    assert_eq!(entries(&stage, "archive_delete").await, [recorded]);
    ends(&launch, &format!("{line} --yes"), 1).await;
}

#[tokio::test]
async fn mode_switch_archives_are_restored_once() {
    let stage = Stage::new();
    let launch = stage.command();
    let backend = Backend::Sqlite(stage.data().join("agentyard.db"));
    prepared(&stage, &launch, backend.clone()).await;
    let all = "archive restore --all --from-mode-switch";
    let none = ends(&launch, all, 1).await;
    assert!(none.stderr.contains("no archive was made by a mode switch"));

    let db = Db::open(backend).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let (instance, _) = schema::meta::ensure_instance_id(&mut tx).await.unwrap();
    drop(tx);
    db.close().await;
    let homes = Homes::open(&stage.data(), &instance).unwrap();
    let batch: ArchiveBatch = "20260512T100000Z-mode-local-to-ldap".parse().unwrap();
    let at = Timestamp::parse_rfc3339("2026-05-12T10:00:00Z").unwrap();
    for user in ["admin", "bob", "carol"] {
        let (name, uid) = (user.parse().unwrap(), Uid::random());
        homes.ensure(&name, &uid, None).unwrap();
        std::fs::write(workspace(&stage.data(), user).join("file"), user).unwrap();
        homes.archive(&name, &uid, at, Some(&batch), None).unwrap();
    }
    let [bob, carol] = ["bob", "carol"].map(|user| format!("{user}@2026-05-12T10:00:00Z"));
    let listed = ends(&launch, &format!("{all} --dry-run"), 0).await.stdout;
    for part in [
        &*format!("{bob}: would be restored for Bob\n"),
        &*format!("{carol}: left: user carol not found"),
        "admin is a superadmin",
        "\n1 archive would be restored, 2 without a user\n",
    ] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    let copy = workspace(&stage.data(), "Bob").join("restored-20260512T100000Z");
    assert!(!copy.exists());
    let restored = ends(&launch, all, 0).await.stdout;
    let line = format!("{bob}: restored to restored-20260512T100000Z in Bob's workspace: 1 file");
    assert!(restored.contains(&line), "{restored}");
    assert_eq!(std::fs::read(copy.join("file")).unwrap(), b"bob");
    let again = ends(&launch, all, 0).await.stdout;
    assert!(
        again.contains(&format!("{bob}: restored before")),
        "{again}"
    );
    assert!(again.contains("0 archives restored, 1 restored before, 2 without a user"));
    assert_eq!(entries(&stage, "archive_restore").await.len(), 1);
    ends(&launch, "archive restore --all", 2).await;
    ends(&launch, "archive restore --from-mode-switch", 2).await;
}

#[tokio::test]
async fn engine_a_workspace_comes_back_on_postgresql() {
    let postgres = OwnPostgres::start_new();
    let stage = Stage::new();
    let url = postgres.url();
    let launch = stage.command().args(&["--database-url", &url]);
    let handle = prepared(&stage, &launch, Backend::Postgres(url)).await;
    let list = ends(&launch, "archive list", 0).await.stdout;
    assert!(list.contains(&handle), "{list}");
    ends(&launch, &format!("archive restore {handle} --to bob"), 0).await;
    let copy = workspace(&stage.data(), "Bob").join("restored-20260511T114640Z/big");
    assert_eq!(std::fs::read(copy).unwrap().len(), 400_000);
    postgres.stop("fast");
    let away = ends(&launch, "archive list", 69).await;
    assert!(away.stderr.contains("cannot be reached"), "{}", away.stderr);
}

#[tokio::test]
async fn a_full_disk_is_said_and_nothing_is_left_of_the_restore() {
    let stage = Stage::new();
    let launch = stage.command();
    let users = stage.data().join("users");
    let backend = Backend::Sqlite(stage.data().join("agentyard.db"));
    let handle = prepared(&stage, &launch, backend).await;
    let marks = std::fs::read(users.join(".agentyard")).unwrap();
    // The archive is another file system then.
    let _disk = SmallDisk::mount(&users, "256k");
    std::fs::write(users.join(".agentyard"), marks).unwrap();
    let full = ends(&launch, &format!("archive restore {handle} --to bob"), 1).await;
    for part in [
        "No space left on device",
        "nothing was restored",
        "free some space",
    ] {
        assert!(full.stderr.contains(part), "{part}: {}", full.stderr);
    }
    let left = |path: PathBuf| std::fs::read_dir(path).unwrap().count();
    assert_eq!(left(users.join(".restoring")), 0);
    assert_eq!(left(workspace(&stage.data(), "Bob")), 0);
}

#[tokio::test]
async fn whoever_is_not_the_servers_user_is_told_so() {
    let stage = Stage::new();
    let nothing = ends(&stage.command(), "archive list", 1).await;
    let how = "run this command on the server's machine";
    assert!(nothing.stderr.contains(how), "{}", nothing.stderr);
    assert!(!stage.data().exists());
    ends(&stage.command(), "init --adapter echo", 0).await;
    let none = ends(&stage.command(), "archive list", 1).await;
    assert!(none.stderr.contains(how), "{}", none.stderr);
    let archive = stage.data().join("archive");
    std::fs::create_dir(&archive).unwrap();
    std::os::unix::fs::chown(&archive, Some(12_345), None).unwrap();
    let other = ends(&stage.command(), "archive list", 78).await;
    let who = "belongs to user 12345, and this command runs as user 0; run it as the user";
    assert!(other.stderr.contains(who), "{}", other.stderr);
}
