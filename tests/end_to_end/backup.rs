//! Backups beside a service that works, and the ways back from them.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agentyard::prepare::First;
use kit::engine::FakeEngine;
use schema::backup::DIRECTORY_BEFORE;
use schema::clock::{Clock, SystemClock};
use schema::container::Desired;
use schema::db::{Backend, Db};
use schema::ids::Uid;
use schema::meta;
use schema::transfer::{self, Copied};
use schema::user::{self, NewUser, Source};
use serde_json::Value;
use sqlx::Connection as _;
use tokio::task::JoinSet;

use crate::in_process::InProcess;
use crate::support::client::Target;
use crate::support::own_postgres::OwnPostgres;
use crate::support::service::{Finished, Launch};
use crate::support::{Client, Stage, seconds, until};

const USERS: usize = 20;

/// Runs a command; its exit code must be this.
async fn ends(launch: &Launch, words: &[&str], code: i32) -> Finished {
    let finished = launch.run(words).await;
    let printed = format!("{words:?}\n{}{}", finished.stdout, finished.stderr);
    assert_eq!(finished.status.code(), Some(code), "{printed}");
    finished
}

fn engine() -> FakeEngine {
    let engine = FakeEngine::new(Arc::new(SystemClock));
    engine.add_image("echo:1");
    engine
}

fn workspace(data: &Path, user: usize) -> PathBuf {
    data.join(format!("users/user{user}/.agent/workspace"))
}

/// Prepares an installation as a first start does, without an engine.
async fn prepare(launch: &Launch, data: &Path) {
    ends(launch, &["init", "--adapter", "echo"], 0).await;
    let mut builder = std::fs::DirBuilder::new();
    builder.mode(0o700).create(data.join("archive")).unwrap();
}

/// The folder of the only or newest backup.
fn newest(backups: &Path) -> PathBuf {
    let entries = std::fs::read_dir(backups).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let shown = |path: &PathBuf| !path.file_name().unwrap().to_string_lossy().starts_with('.');
    paths.filter(shown).max().expect("there is a backup")
}

/// Writes, replaces and removes files until it is told to stop.
fn write_files(workspace: PathBuf, stop: Arc<AtomicBool>) {
    let mut round = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        let name = workspace.join(format!("file{}", round % 50));
        let content = format!("{round}\n").repeat(2_000);
        std::fs::write(workspace.join("new"), &content).unwrap();
        std::fs::rename(workspace.join("new"), &name).unwrap();
        let folder = workspace.join(format!("folder{}", round % 5));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("inner"), &content).unwrap();
        round += 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_beside_writers_is_restored_and_served() {
    let stage = Stage::new();
    let data = stage.data();
    std::fs::create_dir(&data).unwrap();
    let service = InProcess::start_in(&data, engine()).await;
    service.create_users(USERS, Desired::Stopped).await;
    for user in 0..USERS {
        until("the home is made", seconds(30), async || {
            workspace(&data, user).is_dir()
        })
        .await;
        std::fs::write(workspace(&data, user).join("kept"), format!("of {user}")).unwrap();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..USERS)
        .map(|user| {
            let (workspace, stop) = (workspace(&data, user), Arc::clone(&stop));
            std::thread::spawn(move || write_files(workspace, stop))
        })
        .collect();
    let admin = Client::new(Target::Unix(data.join("admin.sock")));
    let mut groups = JoinSet::new();
    {
        let (admin, stop) = (admin.clone(), Arc::clone(&stop));
        groups.spawn(async move {
            let mut made = 0;
            while !stop.load(Ordering::Relaxed) {
                let name = format!("group{made}");
                admin
                    .post("/api/admin/groups/create", &[("name", &name)])
                    .await
                    .expect(200);
                made += 1;
            }
        });
    }
    let (backups, key) = (stage.path().join("backups"), stage.path().join("kept.key"));
    let (to, key_file) = (backups.to_str().unwrap(), key.to_str().unwrap());
    let command = stage.command();
    for _ in 0..2 {
        let made = ends(&command, &["backup", to, "--key-file", key_file], 0).await;
        assert!(made.stdout.contains("backed up "), "{}", made.stdout);
        assert!(made.stderr.contains("keep it apart"), "{}", made.stderr);
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.join().unwrap();
    }
    while let Some(ended) = groups.join_next().await {
        ended.unwrap();
    }
    let listed = ends(&command, &["backup", "list", to, "-o", "json"], 0).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    let backup = newest(&backups);
    let from = backup.to_str().unwrap();
    // The key is not in it.
    let secret = std::fs::read_to_string(&key).unwrap();
    let found = std::process::Command::new("grep")
        .args(["-rlF", secret.trim(), to])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    let verified = ends(&command, &["backup", "verify", from], 0).await;
    assert!(
        verified.stdout.contains("this installation made it"),
        "{}",
        verified.stdout
    );
    let actions = admin
        .get("/api/admin/audit?action=backup")
        .await
        .expect(200);
    assert_eq!(actions["entries"].as_array().unwrap().len(), 2, "{actions}");

    let other = stage.path().join("other");
    let restore = Launch::new(&other, stage.path(), &Arc::default());
    for (arguments, said) in [
        (vec!["restore", from], "give its file with --key-file"),
        (
            vec!["restore", from, "--key-file", "/nowhere/key"],
            "does not exist",
        ),
    ] {
        let refused = ends(&restore, &arguments, 78).await;
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
        let still = "Without the key, the files of users and archives can still be restored";
        assert!(refused.stderr.contains(still), "{}", refused.stderr);
        assert!(!other.exists());
    }
    let restored = ends(&restore, &["restore", from, "--key-file", key_file], 0).await;
    assert!(
        restored.stdout.contains("start the server with"),
        "{}",
        restored.stdout
    );
    let again = ends(&restore, &["restore", from, "--key-file", key_file], 78).await;
    assert!(again.stderr.contains("error: "), "{}", again.stderr);
    service.shutdown.cancel();
    let second = InProcess::start_in(&other, engine()).await;
    second.all_ready(USERS).await;
    assert!(matches!(second.prepared.first, First::Existing));
    let admin = Client::new(Target::Unix(other.join("admin.sock")));
    for user in 0..USERS {
        let name = format!("user{user}");
        assert!(admin.user(&name).await.is_some(), "{name}");
        let kept = std::fs::read_to_string(workspace(&other, user).join("kept")).unwrap();
        assert_eq!(kept, format!("of {user}"));
    }
    let verified = admin.get("/api/admin/audit/verify").await.expect(200);
    assert_eq!(verified["valid"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn file_of_a_user_comes_back_from_a_backup() {
    let stage = Stage::new();
    let data = stage.data();
    std::fs::create_dir(&data).unwrap();
    let service = InProcess::start_in(&data, engine()).await;
    service.create_users(1, Desired::Stopped).await;
    let workspace = workspace(&data, 0);
    until("the home is made", seconds(30), async || workspace.is_dir()).await;
    std::fs::create_dir(workspace.join("project")).unwrap();
    std::fs::write(workspace.join("project/notes"), "remember").unwrap();
    let config = data.join("users/user0/.agent/config.json");
    until("settings are written", seconds(30), async || {
        config.exists()
    })
    .await;
    let backups = stage.path().join("backups");
    let command = stage.command();
    ends(&command, &["backup", backups.to_str().unwrap()], 0).await;
    let backup = newest(&backups);
    let from = backup.to_str().unwrap();
    let restore = async |path: &str, more: &[&str], code: i32| {
        let words = [&["restore", from, "--user", "user0", "--path", path], more].concat();
        ends(&command, &words, code).await
    };
    let notes = workspace.join("project/notes");
    std::fs::remove_file(&notes).unwrap();
    let back = restore("project/notes", &[], 0).await;
    assert!(
        back.stdout
            .contains("to .agent/workspace/project/notes in user0's home"),
        "{}",
        back.stdout
    );
    assert_eq!(std::fs::read(&notes).unwrap(), b"remember");

    std::fs::write(&notes, "changed").unwrap();
    let beside = restore(".agent/workspace/project/notes", &[], 0).await;
    assert!(
        beside.stdout.contains("notes.restored-"),
        "{}",
        beside.stdout
    );
    assert_eq!(std::fs::read(&notes).unwrap(), b"changed");
    restore("project/notes", &["--force"], 0).await;
    assert_eq!(std::fs::read(&notes).unwrap(), b"remember");

    // A folder, whose parent the agent has replaced by a link.
    std::fs::remove_dir_all(workspace.join("project")).unwrap();
    std::os::unix::fs::symlink("/tmp", workspace.join("project")).unwrap();
    let refused = restore("project/notes", &[], 1).await;
    assert!(
        refused.stderr.contains("not a regular file"),
        "{}",
        refused.stderr
    );
    std::fs::remove_file(workspace.join("project")).unwrap();
    restore("project", &[], 0).await;
    assert_eq!(std::fs::read(&notes).unwrap(), b"remember");

    let missing = restore("project/nothing", &[], 1).await;
    assert!(
        missing.stderr.contains("manifest.jsonl"),
        "{}",
        missing.stderr
    );
    restore("../user1", &[], 2).await;
    let elsewhere = stage.path().join("elsewhere");
    let key_file = data.join("master.key");
    // With the key of the data directory, or that of a file.
    restore("project", &["--to", elsewhere.to_str().unwrap()], 0).await;
    std::fs::remove_dir_all(&elsewhere).unwrap();
    let with_key = ["--to", elsewhere.to_str().unwrap(), "--key-file"];
    let with_key = [&with_key[..], &[key_file.to_str().unwrap()]].concat();
    restore("project", &with_key, 0).await;
    assert_eq!(
        std::fs::read(elsewhere.join("project/notes")).unwrap(),
        b"remember"
    );
    let admin = Client::new(Target::Unix(data.join("admin.sock")));
    let trail = admin
        .get("/api/admin/audit?action=backup_restore")
        .await
        .expect(200);
    assert_eq!(trail["entries"].as_array().unwrap().len(), 4, "{trail}");
    assert!(
        std::fs::read_dir(data.join("users/.restoring"))
            .unwrap()
            .next()
            .is_none()
    );

    // Without the key, the files of all but sealed ones, and only of a backup that the caller trusts.
    let all = stage.path().join("all");
    let words = ["restore", from, "--to", all.to_str().unwrap()];
    let other = stage.path().join("other");
    let command = Launch::new(&other, stage.path(), &Arc::default());
    let refused = ends(&command, &words, 78).await;
    assert!(refused.stderr.contains("--trust"), "{}", refused.stderr);
    assert!(!all.exists());
    let words = [&words[..], &["--trust"]].concat();
    let restored = ends(&command, &words, 0).await;
    assert!(
        restored.stderr.contains("warning: ") && restored.stderr.contains("it is sealed"),
        "{}",
        restored.stderr
    );
    assert!(
        all.join("users/user0/.agent/workspace/project/notes")
            .exists()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_backup_is_restored_only_if_it_is_trusted() {
    let stage = Stage::new();
    let command = stage.command();
    prepare(&command, &stage.data()).await;
    let sqlite = |data: &Path| Backend::Sqlite(data.join("agentyard.db"));
    let db = Db::join(sqlite(&stage.data())).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    let planted = meta::ensure(&mut tx, DIRECTORY_BEFORE, "\"/mnt/agents\"");
    planted.await.unwrap();
    tx.commit().await.unwrap();
    db.close().await;
    let backups = stage.path().join("backups");
    ends(&command, &["backup", backups.to_str().unwrap()], 0).await;
    let backup = backups.join("20991231T000000Z");
    std::fs::rename(newest(&backups), &backup).unwrap();
    let from = backup.to_str().unwrap();
    let verified = ends(&command, &["backup", "verify", from], 0).await;
    let warning = "it may be an older backup in the place of a newer one";
    assert!(verified.stderr.contains(warning), "{}", verified.stderr);
    assert!(verified.stdout.contains("made at "), "{}", verified.stdout);

    let head = backup.join("manifest.json");
    let mut changed: Value = serde_json::from_slice(&std::fs::read(&head).unwrap()).unwrap();
    changed["service_user"] = serde_json::json!([12345, 12345]);
    std::fs::write(&head, changed.to_string()).unwrap();
    let other = stage.path().join("other");
    let restore = Launch::new(&other, stage.path(), &Arc::default());
    let key = stage.data().join("master.key");
    let words = ["restore", from, "--key-file", key.to_str().unwrap()];
    let one = [
        "restore",
        from,
        "--user",
        "admin",
        "--path",
        ".agent/notes.txt",
    ];
    for (launch, words) in [(&restore, &words[..]), (&command, &one)] {
        let refused = ends(launch, words, 78).await;
        let said = "its manifest was changed since it was made";
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
    assert!(!other.exists());
    let trusted = ends(&restore, &[&words[..], &["--trust"]].concat(), 0).await;
    assert!(trusted.stderr.contains(warning), "{}", trusted.stderr);
    // Whoever has changed it gets no key, and says of no directory that it may be used.
    let us = rustix::process::geteuid().as_raw();
    for name in ["", "master.key", "agentyard.db"] {
        assert_eq!(std::fs::metadata(other.join(name)).unwrap().uid(), us);
    }
    let db = Db::join(sqlite(&other)).await.unwrap();
    let mut connection = db.read().await.unwrap();
    let before = meta::get(&mut connection, DIRECTORY_BEFORE).await.unwrap();
    assert_eq!(before, None);
    drop(connection);
    db.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scheduled_backup_keeps_out_of_the_root_of_the_engine() {
    let stage = Stage::new();
    let data = stage.data();
    let backups = stage.path().join("backups");
    for directory in [&data, &backups] {
        std::fs::create_dir(directory).unwrap();
    }
    let engine = engine();
    engine.set_unavailable(true);
    engine.set_root_dir(stage.path());
    let set = format!("backup.directory={}", backups.display());
    let _service = InProcess::start_with_in(&data, engine.clone(), &[&set]).await;
    let admin = Client::new(Target::Unix(data.join("admin.sock")));
    let state = async || admin.get("/api/admin/reconcile").await.expect(200);
    until(
        "the schedule waits for the engine",
        seconds(60),
        async || {
            let warnings = state().await["warnings"].to_string();
            warnings.contains("until the container engine has said")
        },
    )
    .await;
    engine.set_unavailable(false);
    until("the directory is refused", seconds(60), async || {
        let why = state().await["backup"]["why"].to_string();
        why.contains("where the container engine keeps files")
    })
    .await;
    assert!(std::fs::read_dir(&backups).unwrap().next().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_backup_leaves_none_that_looks_complete() {
    let stage = Stage::new();
    prepare(&stage.command(), &stage.data()).await;
    let backups = stage.path().join("backups");
    let to = backups.to_str().unwrap();
    for point in ["backup.before_head", "backup.before_rename"] {
        let killed = stage
            .command()
            .env("AGENTYARD_FAULT", point)
            .run(&["backup", to])
            .await;
        assert!(!killed.status.success(), "{point}");
        let listed = ends(&stage.command(), &["backup", "list", to], 0).await;
        assert_eq!(listed.stderr, "no backups\n", "{point}");
    }
    ends(&stage.command(), &["backup", to], 0).await;
    let left: Vec<_> = std::fs::read_dir(&backups).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn scheduled_backup_is_made_and_its_failure_is_told() {
    let stage = Stage::new();
    let data = stage.data();
    std::fs::create_dir(&data).unwrap();
    let backups = stage.path().join("backups");
    std::fs::create_dir(&backups).unwrap();
    let gone = backups.join("gone");
    let set = format!("backup.directory={}", gone.display());
    let _service = InProcess::start_with_in(&data, engine(), &[&set]).await;
    let admin = Client::new(Target::Unix(data.join("admin.sock")));
    let state = async || admin.get("/api/admin/reconcile").await.expect(200)["backup"].clone();
    let (status, line) = admin.readiness_line("backup: degraded", seconds(60)).await;
    assert_eq!(status, 200);
    assert!(
        line.contains("agentyard backup DIR") && !line.contains("/gone"),
        "{line}"
    );
    assert!(
        state().await["why"]
            .as_str()
            .unwrap()
            .contains("/backups/gone")
    );
    admin
        .event("service/agentyard", "BackupFailed", seconds(30))
        .await;
    let save = async |directory: &Path, expected| {
        let patch = format!(r#"{{"backup.directory":"{}"}}"#, directory.display());
        let saved = admin.post("/api/config", &[("config", &*patch)]).await;
        saved.expect(expected).to_string()
    };
    save(&backups, 200).await;
    until("a backup is made", seconds(60), async || {
        state().await["last_success"].is_string()
    })
    .await;
    let status = stage.command().run(&["status"]).await;
    assert!(status.stdout.contains("\nbackup: "), "{}", status.stdout);
    let trail = admin
        .get("/api/admin/audit?action=backup")
        .await
        .expect(200);
    assert_eq!(trail["entries"][0]["actor"], "system:backup", "{trail}");
    let name = newest(&backups);
    ends(
        &stage.command(),
        &["backup", "verify", name.to_str().unwrap()],
        0,
    )
    .await;

    // Only a directory that a flag names, or one below it, and that can be used.
    let refused = save(Path::new("/nowhere/backups"), 422).await;
    let rule = "add the line `backup-directory: /nowhere/backups`";
    assert!(refused.contains(rule), "{refused}");
    let refused = save(&gone, 422).await;
    assert!(refused.contains("No such file"), "{refused}");
}

/// A database with users in it.
async fn with_users(backend: &Backend) {
    let db = Db::join(backend.clone()).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    for number in 0..250 {
        let new = NewUser {
            uid: Uid::random(),
            name: format!("user{number}").parse().unwrap(),
            source: Source::Local,
            password_hash: Some(secrecy::SecretString::from("x")),
            image_ref: "échö:1".to_owned(),
            desired: Desired::Running,
        };
        user::create(&mut tx, &new, SystemClock.now())
            .await
            .unwrap();
    }
    tx.commit().await.unwrap();
    db.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn database_moves_to_postgresql_and_back_on_postgres() {
    let stage = Stage::new();
    let postgres = OwnPostgres::start_new();
    let command = stage.command().arg("--adapter").arg("echo");
    ends(&command, &["init"], 0).await;
    let first = stage.data().join("agentyard.db");
    let sqlite = Backend::Sqlite(first.clone());
    with_users(&sqlite).await;
    let before = transfer::digests(&sqlite, &first).await.unwrap();
    let url = postgres.url();
    let command = stage.command();
    let moved = ends(&command, &["migrate-database", &url], 0).await;
    for Copied { table, digest, .. } in &before {
        let line = moved
            .stdout
            .lines()
            .find(|line| line.split_whitespace().next() == Some(table));
        let line = line.unwrap_or_else(|| panic!("{table}: {}", moved.stdout));
        assert!(line.ends_with(&digest[..16]), "{line}");
    }
    assert!(moved.stdout.contains("--database-url"), "{}", moved.stdout);
    let refused = ends(&command, &["migrate-database", &url], 78).await;
    assert!(
        refused.stderr.contains("is not empty"),
        "{}",
        refused.stderr
    );
    let password = url.replace("app@", "app:secret@");
    let refused = ends(&command, &["migrate-database", &password], 2).await;
    assert!(!refused.stderr.contains("secret"), "{}", refused.stderr);
    let there = transfer::digests(&Backend::Postgres(url.clone()), &first)
        .await
        .unwrap();
    assert_eq!(there, before);

    let second = stage.path().join("second.db");
    let back = format!("sqlite:{}", second.display());
    let from_postgres = stage.command().arg("--database-url").arg(&url);
    ends(&from_postgres, &["migrate-database", &back], 0).await;
    let after = transfer::digests(&Backend::Sqlite(second.clone()), &second)
        .await
        .unwrap();
    assert_eq!(after, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_of_a_server_database_is_restored_on_postgres() {
    let stage = Stage::new();
    let postgres = OwnPostgres::start_new();
    let url = postgres.url();
    let at = |url: &str| stage.command().arg("--database-url").arg(url);
    prepare(&at(&url), &stage.data()).await;
    with_users(&Backend::Postgres(url.clone())).await;
    let (backups, key) = (stage.path().join("backups"), stage.path().join("kept.key"));
    let (to, key_file) = (backups.to_str().unwrap(), key.to_str().unwrap());
    ends(&at(&url), &["backup", to, "--key-file", key_file], 0).await;
    let backup = newest(&backups);
    let from = backup.to_str().unwrap();
    ends(&stage.command(), &["backup", "verify", from], 0).await;
    let other = Launch::new(&stage.path().join("other"), stage.path(), &Arc::default());
    let kind = ends(&other, &["restore", from, "--key-file", key_file], 2).await;
    assert!(kind.stderr.contains("--database-url"), "{}", kind.stderr);
    let mut server = sqlx::PgConnection::connect(&url).await.unwrap();
    sqlx::query("CREATE DATABASE second")
        .execute(&mut server)
        .await
        .unwrap();
    let second = url.replace("/postgres", "/second");
    let other = other.arg("--database-url").arg(&second);
    ends(&other, &["restore", from, "--key-file", key_file], 0).await;
    let (was, is) = (Backend::Postgres(url), Backend::Postgres(second));
    let like = stage.path().join("like.db");
    Db::open(Backend::Sqlite(like.clone()))
        .await
        .unwrap()
        .close()
        .await;
    let was = transfer::digests(&was, &like).await.unwrap();
    assert!(
        was.iter()
            .any(|table| table.table == "users" && table.rows == 251)
    );
    // The entry of the backup itself came later.
    let later = |table: &Copied| table.table.starts_with("audit");
    let is = transfer::digests(&is, &like).await.unwrap();
    for (was, is) in was.iter().zip(&is).filter(|(was, _)| !later(was)) {
        assert_eq!(was, is);
    }
    ends(&other, &["init"], 0).await;
}
