//! The main job: a user is created, and the container runs, heals, stops and goes.

use crate::support::client::is_settled;
use crate::support::engine::LABEL_UID;
use crate::support::{Client, Engine, Stage, eventually, seconds, until};

/// From the hand's deed to a new running container.
const HEALED: std::time::Duration = seconds(5);

/// Waits until the one container of a user runs, is another one than `old`, and all is settled.
async fn another_one(engine: &Engine, admin: &Client, user: &str, old: &str) -> String {
    admin.status(user, "running", seconds(30)).await;
    let what = format!("{user} has another container than {old}");
    let found = eventually(&what, seconds(30), async || {
        let all = engine.of(user);
        match all.as_slice() {
            [one] if one.id != old && one.state == "running" => Ok(one.id.clone()),
            _ => Err(format!("{all:?}")),
        }
    });
    let id = found.await.0;
    admin.status(user, "running", seconds(30)).await;
    assert_eq!(engine.the_running(user).id, id);
    id
}

fn log_of(body: &serde_json::Value) -> &str {
    body["logs"].as_str().unwrap()
}

#[tokio::test]
async fn engine_main_job() {
    let engine = Engine::claim();
    let stage = Stage::new();

    // From an empty data directory.
    let service = stage.serve(&engine).start().await;
    assert_eq!(service.printed("username").as_deref(), Some("admin"));
    let admin = service.admin().await;
    let password = admin.create_user("bob").await;
    let container = engine.the_running("bob");
    let bob = admin.status("bob", "running", seconds(5)).await;
    assert!(is_settled(&bob), "{bob}");
    assert!(
        bob["ip"].as_str().unwrap().starts_with(engine.network()),
        "{bob}"
    );
    assert!(stage.data().join("users/bob/.agent/heartbeat").exists());
    let labels = engine.inspect(&container.id)["Config"]["Labels"].clone();
    assert!(labels[LABEL_UID].is_string(), "{labels}");
    let mut own = service.client();
    own.sign_in("bob", &password).await.expect(200);
    let status = own.get("/api/user/init-status").await.expect(200);
    assert_eq!(status["ready"], true, "{status}");

    // A hand takes the container away; nobody calls for another one.
    engine.by_hand(&["rm", "-f", "agentyard-bob"]);
    let took = until("another container runs", HEALED, async || {
        matches!(engine.of("bob").as_slice(), [one] if one.id != container.id && one.state == "running")
    })
    .await;
    eprintln!("removed by hand: runs again after {took:?}");
    let healed = another_one(&engine, &admin, "bob", &container.id).await;

    // A hand stops it.
    engine.by_hand(&["stop", "agentyard-bob"]);
    admin.status("bob", "running", seconds(15)).await;
    until(
        "it runs again",
        seconds(15),
        async || matches!(engine.of("bob").as_slice(), [one] if one.state == "running"),
    )
    .await;
    admin.status("bob", "running", seconds(15)).await;
    assert_eq!(
        engine.the_running("bob").id,
        healed,
        "the same one, started"
    );

    // The log.
    let path = "/api/admin/container/logs?username=bob&tail=100";
    let log = admin.get(path).await.expect(200);
    assert_eq!(log["username"], "bob");
    assert!(log_of(&log).contains("echo 1 start"), "{log}");
    assert!(!log_of(&log).contains("debug on"), "{log}");
    let last = admin
        .get("/api/admin/container/logs?username=bob&tail=1")
        .await
        .expect(200);
    assert_eq!(log_of(&last).lines().count(), 1, "{last}");

    // A restart is one other container, once.
    let since = engine.now();
    let form = [("username", "bob"), ("wait", "60")];
    let restart = admin.post("/api/admin/container/restart", &form).await;
    restart.converged();
    let restarted = another_one(&engine, &admin, "bob", &healed).await;
    service.passes(&admin, "container", 2).await;
    assert_eq!(engine.the_running("bob").id, restarted);
    let happened = engine.happened("bob", &since);
    for action in ["create", "start"] {
        let count = happened.iter().filter(|e| e.action == action).count();
        assert_eq!(count, 1, "{action}: {happened:?}");
    }

    // Debug, until the next restart.
    let debug = admin.post("/api/admin/container/debug", &form).await;
    debug.converged();
    let debugged = another_one(&engine, &admin, "bob", &restarted).await;
    let seen = eventually("the agent says it", seconds(10), async || {
        let log = admin.get(path).await.expect(200);
        if log_of(&log).contains("debug on") {
            Ok(())
        } else {
            Err(log.to_string())
        }
    });
    seen.await;
    let restart = admin.post("/api/admin/container/restart", &form).await;
    restart.converged();
    let plain = another_one(&engine, &admin, "bob", &debugged).await;
    let log = admin.get(path).await.expect(200);
    assert!(!log_of(&log).contains("debug on"), "{log}");

    // Limits replace it.
    let limits = [
        ("username", "bob"),
        ("cpu_limit", "0.5"),
        ("memory_limit_mb", "96"),
        ("wait", "60"),
    ];
    let limited = admin.post("/api/admin/container/limits", &limits).await;
    limited.converged();
    another_one(&engine, &admin, "bob", &plain).await;
    let host = engine.inspect("agentyard-bob")["HostConfig"].clone();
    assert_eq!(host["Memory"], 96 * 1024 * 1024, "{host}");
    assert_eq!(host["NanoCpus"], 500_000_000, "{host}");

    // L32: stopped on purpose stays stopped, whatever happens to the service.
    let stopped = admin.post("/api/admin/container/stop", &form).await;
    stopped.converged();
    assert_eq!(engine.of("bob"), []);
    admin.status("bob", "stopped", seconds(5)).await;
    service.passes(&admin, "container", 2).await;
    assert_eq!(engine.of("bob"), []);
    service.kill9().await;
    let service = stage.serve(&engine).start().await;
    assert_eq!(service.printed("password"), None, "printed once");
    let admin = admin.at(&service.client());
    service.passes(&admin, "container", 2).await;
    assert_eq!(engine.of("bob"), []);
    admin.status("bob", "stopped", seconds(5)).await;
    let started = admin.post("/api/admin/container/start", &form).await;
    started.converged();
    let host = engine.inspect(&engine.the_running("bob").id)["HostConfig"].clone();
    assert_eq!(host["Memory"], 96 * 1024 * 1024, "limits stay: {host}");

    // L6: a deleted user leaves nothing to the next of that name.
    let home = stage.data().join("users/bob");
    std::fs::create_dir_all(home.join(".agent/workspace")).unwrap();
    std::fs::write(home.join(".agent/workspace/note.txt"), "from the first bob").unwrap();
    let own = own.at(&service.client());
    own.get("/api/user/info").await.expect(200);
    let deleted = admin.post("/api/admin/users/delete", &form).await;
    let body = deleted.expect(200);
    assert_eq!(body["success"], true, "{body}");
    assert_eq!(engine.of("bob"), []);
    assert!(!home.exists());
    let archives = stage.archives("bob");
    assert_eq!(archives.len(), 1, "{archives:?}");
    let note = std::fs::read_to_string(archives[0].join(".agent/workspace/note.txt")).unwrap();
    assert_eq!(note, "from the first bob");
    own.get("/api/user/info")
        .await
        .refused(401, "not_signed_in");

    let second = admin.create_user("bob").await;
    assert_ne!(second, password);
    own.get("/api/user/info")
        .await
        .refused(401, "not_signed_in");
    service.client().sign_in("bob", &password).await.expect(401);
    assert!(!home.join(".agent/workspace/note.txt").exists());
    let host = engine.inspect(&engine.the_running("bob").id)["HostConfig"].clone();
    assert_eq!(
        host["Memory"],
        1024 * 1024 * 1024,
        "no limits inherited: {host}"
    );
    service.client().signed_in("bob", &second).await;
    assert_eq!(stage.archives("bob"), archives);
}

#[tokio::test]
async fn engine_l57_an_end_is_repaired_without_waiting_for_a_resync() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    admin.create_user("bob").await;
    let id = engine.the_running("bob").id;
    // The engine tells of the end before its listing shows it.
    for (deed, limit) in [("stop", HEALED), ("kill", seconds(15))] {
        let started = engine.inspect(&id)["State"]["StartedAt"].clone();
        engine.by_hand(&[deed, "agentyard-bob"]);
        until(&format!("it runs again after {deed}"), limit, async || {
            let state = engine.inspect(&id)["State"].clone();
            state["Running"] == true && state["StartedAt"] != started
        })
        .await;
        admin.status("bob", "running", seconds(15)).await;
    }
}
