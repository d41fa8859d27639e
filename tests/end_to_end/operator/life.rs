//! Accounts by command line, from a file to their deletion.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use super::following::Following;
use super::{ends, run};
use crate::support::{Engine, Stage, seconds, until};

const PASSWORD: &str = "correct horse battery";

/// The generated passwords of a file or of standard output, by name.
fn passwords(text: &str) -> Vec<(&str, &str)> {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("username,password"), "{text}");
    lines.map(|line| line.split_once(',').unwrap()).collect()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn engine_users_live_from_a_file_to_their_deletion() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    ends(&stage, "group create dev", 0).await;
    let (file, secrets) = (stage.path().join("team.csv"), stage.path().join("new.csv"));
    let team = format!("username,password,groups\nalice,{PASSWORD},dev\nbob,,\n");
    std::fs::write(&file, team).unwrap();
    let line = format!(
        "user create -f {} --passwords {}",
        file.display(),
        secrets.display()
    );
    let created = ends(&stage, &line, 0).await;
    assert_eq!(created.stdout, "");
    assert!(
        created.stderr.contains("2 of 2 users created"),
        "{}",
        created.stderr
    );
    assert_eq!(mode(&secrets), 0o600);
    let text = std::fs::read_to_string(&secrets).unwrap();
    let [("bob", password)] = passwords(&text)[..] else {
        panic!("{text}");
    };
    service.client().signed_in("bob", password).await;
    let alice = service.client().signed_in("alice", PASSWORD).await;
    let members = ends(&stage, "group members dev -o name", 0).await;
    assert_eq!(members.stdout, "user/alice\n");

    let sessions = ends(&stage, "user sessions alice -o json", 0).await;
    let sessions: Vec<Value> = serde_json::from_str(&sessions.stdout).unwrap();
    assert_eq!(sessions.len(), 1);
    let ended = ends(&stage, "user sessions alice --end", 0).await;
    assert_eq!(ended.stdout, "1 session of alice ended\n");
    alice
        .get("/api/user/info")
        .await
        .refused(401, "not_signed_in");

    let log = ends(&stage, "logs alice", 0).await;
    assert!(log.stdout.starts_with("echo 1 start "), "{}", log.stdout);
    let timed = ends(
        &stage,
        "logs container/alice --timestamps --tail 1 --since 1h",
        0,
    )
    .await;
    assert_eq!(timed.stdout.lines().count(), 1);
    assert!(timed.stdout.starts_with("20"), "{}", timed.stdout);
    let mut following = Following::begin(&stage, "logs alice -f");
    following.line_with(&["echo 1 start"]).await;
    assert_eq!(following.interrupt().await.code(), Some(130));

    let top = ends(&stage, "top containers --sort-by memory --limit 1", 0).await;
    let lines: Vec<Vec<&str>> = top
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0][..3], ["NAME", "CPU", "MEMORY"]);
    assert_eq!((lines.len(), lines[1][0]), (2, "alice"), "{}", top.stdout);
    assert!(lines[1][1].ends_with('%'), "{}", top.stdout);
    assert!(
        top.stderr.contains("1 of 2 running agents"),
        "{}",
        top.stderr
    );

    ends(&stage, "debug container/alice", 0).await;
    ends(&stage, "wait container/alice", 0).await;
    let log = ends(&stage, "logs alice", 0).await;
    assert!(log.stdout.contains("debug on"), "{}", log.stdout);
    let stopped = ends(&stage, "stop container/alice container/bob", 0).await;
    let requested = "container/alice stop requested\ncontainer/bob stop requested\n";
    assert_eq!(stopped.stdout, requested);
    until("both are stopped", seconds(60), async || {
        engine.ours().is_empty()
    })
    .await;
    let again = ends(&stage, "stop container/bob", 0).await;
    assert!(again.stderr.contains("stopped already"), "{}", again.stderr);
    let none = ends(&stage, "logs alice", 1).await;
    assert!(none.stderr.contains("--previous"), "{}", none.stderr);
    let started = ends(
        &stage,
        "start container/alice container/bop container/bob",
        1,
    )
    .await;
    assert_eq!(started.stdout, requested.replace("stop", "start"));
    assert!(
        started.stderr.contains("\"container/bob\""),
        "{}",
        started.stderr
    );
    ends(&stage, "wait container/alice container/bob", 0).await;
    let log = ends(&stage, "logs alice", 0).await;
    assert!(!log.stdout.contains("debug on"), "{}", log.stdout);

    ends(&stage, "user limits alice --memory 256MiB", 0).await;
    let limits = ends(&stage, "user limits alice", 0).await;
    assert!(
        limits.stdout.contains("256 MiB (of this user)"),
        "{}",
        limits.stdout
    );
    assert!(
        limits.stdout.contains("no limit (as configured)"),
        "{}",
        limits.stdout
    );
    let inspected = engine.inspect(&engine.the_running("alice").id);
    assert_eq!(inspected["HostConfig"]["Memory"], 256 << 20);
    let none = ends(&stage, "logs alice --previous", 1).await;
    assert!(none.stderr.contains("no unexpected end"), "{}", none.stderr);
    engine.docker(&["kill", &engine.the_running("alice").id]);
    until("the end is noticed", seconds(60), async || {
        run(&stage, "logs alice --previous").await.status.success()
    })
    .await;
    let previous = ends(&stage, "logs alice --previous", 0).await;
    assert!(
        previous.stdout.contains("echo 1 start"),
        "{}",
        previous.stdout
    );
    assert!(
        previous.stderr.contains("exit code 137"),
        "{}",
        previous.stderr
    );

    let disabled = ends(&stage, "user disable bob", 0).await;
    assert_eq!(disabled.stdout, "user/bob disabled\n");
    assert!(engine.of("bob").is_empty());
    ends(&stage, "user enable user/bob", 0).await;
    let preview = ends(&stage, "user delete alice bob --dry-run", 0).await;
    assert!(
        preview.stdout.contains("archive/<user>-<time>"),
        "{}",
        preview.stdout
    );
    let unasked = ends(&stage, "user delete alice bob", 2).await;
    assert!(
        unasked.stderr.contains("nothing was deleted"),
        "{}",
        unasked.stderr
    );
    let deleted = ends(&stage, "user delete alice bob --yes", 0).await;
    assert_eq!(deleted.stdout, "user/alice deleted\nuser/bob deleted\n");
    assert_eq!(
        (stage.archives("alice").len(), stage.archives("bob").len()),
        (1, 1)
    );
    assert!(engine.ours().is_empty());
    assert_eq!(ends(&stage, "get users -o name", 0).await.stdout, "");
}

#[tokio::test]
async fn bad_lines_are_named_and_nothing_is_created() {
    let stage = Stage::new();
    let service = stage.alone().start().await;
    let command = stage.command();
    let secrets = stage.path().join("new.csv");
    let secrets_name = secrets.display().to_string();
    let create = [
        "user",
        "create",
        "-f",
        "-",
        "--detach",
        "--passwords",
        &secrets_name,
    ];
    let bad = "username,password,groups\nalice,,nowhere\nb ob,hunter22,\ncarol,short,\nCarol,,\n";
    let refused = command.run_with_input(&create, bad).await;
    assert_eq!(refused.status.code(), Some(1));
    for part in [
        "standard input: nothing was created",
        "line 2: group nowhere not found",
        "line 3: a user name",
        "line 4: a password has at least",
        "line 5: Carol is on line 4",
    ] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    assert!(!refused.stderr.contains("hunter22"), "{}", refused.stderr);
    assert!(!secrets.exists());
    assert_eq!(ends(&stage, "get users -o name", 0).await.stdout, "");

    let created = command.run_with_input(&create, "alice\nbob\n").await;
    assert_eq!(created.status.code(), Some(0), "{}", created.stderr);
    let text = std::fs::read_to_string(&secrets).unwrap();
    for (name, password) in passwords(&text) {
        service.client().signed_in(name, password).await;
    }
    let taken = command.run_with_input(&create, "carol\n").await;
    assert_eq!(taken.status.code(), Some(1));
    assert!(
        taken.stderr.contains("never overwritten"),
        "{}",
        taken.stderr
    );
    // One that is there does not keep the other from being created.
    let partly = ends(&stage, "user create alice carol --detach", 1).await;
    assert!(
        partly.stderr.contains("error: user/alice: "),
        "{}",
        partly.stderr
    );
    let [("carol", password)] = passwords(&partly.stdout)[..] else {
        panic!("{}", partly.stdout);
    };
    service.client().signed_in("carol", password).await;
}

#[tokio::test]
async fn passwords_come_from_standard_input() {
    let stage = Stage::new();
    let service = stage.alone().start().await;
    let command = stage.command();
    let create = ["user", "create", "alice", "--detach", "--password", "-"];
    let created = command.run_with_input(&create, "correct horse\n").await;
    assert_eq!(
        (created.status.code(), created.stdout.as_str()),
        (Some(0), "")
    );
    service.client().signed_in("alice", "correct horse").await;
    let reset = ["user", "reset-password", "alice", "--password", "-"];
    let changed = command.run_with_input(&reset, "battery staple\n").await;
    assert!(
        changed.stdout.contains("its sessions have ended"),
        "{}",
        changed.stderr
    );
    service.client().signed_in("alice", "battery staple").await;
    ends(&stage, "user create bob carol --password -", 2).await;
    let shown = ends(&stage, "user create bob --password hunter22", 2).await;
    assert!(!shown.stderr.contains("hunter22"), "{}", shown.stderr);

    let made = ends(&stage, "superadmin create dora", 0).await;
    let [("dora", password)] = passwords(&made.stdout)[..] else {
        panic!("{}", made.stdout);
    };
    service.client().signed_in("dora", password).await;
    let wrong = ends(&stage, "superadmin reset-password alice --random", 1).await;
    assert_eq!(wrong.stdout, "");
    ends(&stage, "superadmin reset-password dora --random", 0).await;
    let deleted = ends(&stage, "superadmin delete admin dora --yes", 1).await;
    assert!(
        deleted.stdout.contains("superadmin admin deleted"),
        "{}",
        deleted.stdout
    );
    assert!(
        deleted.stderr.contains("superadmin/dora: "),
        "{}",
        deleted.stderr
    );
    let left = ends(&stage, "superadmin list -o name", 0).await;
    assert_eq!(left.stdout, "superadmin/dora\n");
}
