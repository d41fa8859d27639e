//! On PostgreSQL: of two servers one reconciles, both answer, and the second takes over; and what
//! PostgreSQL cannot hold is refused.

mod passed_on;

use std::time::Duration;

use serde_json::Value;

use crate::support::own_postgres::OwnPostgres;
use crate::support::postgres::Database;
use crate::support::{Client, Engine, Stage, eventually, long, seconds, until};

/// A lease of 15 seconds has to run out, and what comes after takes its time.
const TAKEN_OVER: Duration = seconds(40);

async fn leads(admin: &Client) -> bool {
    let body: Value = admin.get("/api/admin/reconcile").await.expect(200);
    let reconcilers = body["reconcilers"].as_array().unwrap();
    reconcilers.iter().all(|one| one["leader"] == true)
}

#[tokio::test]
async fn engine_second_server_takes_over_from_a_frozen_leader() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let database = OwnPostgres::start_new();
    let launch = |name: &str| {
        let socket = stage.path().join(format!("{name}.sock"));
        stage
            .serve(&engine)
            .arg("--database-url")
            .arg(database.url())
            .arg("--admin-socket")
            .arg(socket.display().to_string())
    };
    let first = launch("first").start().await;
    let admin = first.admin().await;
    admin.create_user("ann").await;
    assert!(leads(&admin).await);
    assert!(!stage.data().join("agentyard.db").exists());

    // The session of one is a session of the other; what is asked of the second, the first does.
    let second = launch("second").start().await;
    assert_eq!(second.printed("password"), None);
    let at_second = admin.at(&second.client());
    assert!(!leads(&at_second).await);
    at_second.create_user("bob").await;
    let bob = engine.the_running("bob");
    let form = [("username", "ann"), ("wait", "60")];
    let stopped = at_second.post("/api/admin/container/stop", &form).await;
    stopped.converged();
    assert_eq!(engine.of("ann"), []);
    assert!(leads(&admin).await);

    // The leader stands still in the middle of a stop, for longer than its lease.
    let form = [("username", "bob"), ("wait", "0")];
    let stopping = at_second.post("/api/admin/container/stop", &form).await;
    assert!(stopping.status.is_success());
    tokio::time::sleep(Duration::from_millis(300)).await;
    first.freeze();
    let frozen = tokio::time::Instant::now();
    let starting = at_second.post("/api/admin/container/start", &form).await;
    assert!(starting.status.is_success());
    until("the second leads", TAKEN_OVER, async || {
        leads(&at_second).await
    })
    .await;
    at_second.status("bob", "running", seconds(40)).await;
    engine.by_hand(&["rm", "-f", "agentyard-bob"]);
    let healed = eventually("bob runs again", seconds(20), async || {
        match engine.of("bob").as_slice() {
            [one] if one.id != bob.id && one.state == "running" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    healed.await;
    at_second.status("bob", "running", seconds(20)).await;
    at_second.status("ann", "stopped", seconds(20)).await;
    assert_eq!(engine.of("ann"), [], "stopped on purpose");

    // It goes on, and changes nothing any more.
    if long() {
        tokio::time::sleep_until(frozen + seconds(60)).await;
    }
    let since = engine.now();
    first.thaw();
    until("the first does not lead", TAKEN_OVER, async || {
        !leads(&admin).await
    })
    .await;
    tokio::time::sleep(seconds(3)).await;
    let mut happened = engine.happened("bob", &since);
    happened
        .retain(|event| ["create", "start", "kill", "die", "destroy"].contains(&&*event.action));
    assert!(happened.is_empty(), "{happened:?}");
    at_second.status("bob", "running", seconds(5)).await;

    let form = [("username", "bob"), ("wait", "60")];
    let deleted = at_second.post("/api/admin/users/delete", &form).await;
    deleted.expect(200);
    assert_eq!(engine.of("bob"), []);
    assert_eq!(stage.archives("bob").len(), 1);

    drop((first, second));
}

#[tokio::test]
async fn engine_postgres_replicas_with_other_flags_are_listed() {
    let stage = Stage::new();
    let database = Database::create().await;
    let launch = |name: &str, agent_listen: &str| {
        let socket = stage.path().join(format!("{name}.sock"));
        let launch = stage.alone().arg("--database-url").arg(database.url());
        let launch = launch
            .arg("--admin-socket")
            .arg(socket.display().to_string());
        launch.arg("--agent-listen").arg(agent_listen)
    };
    let first = launch("first", "off").start().await;
    let admin = first.admin().await;
    let same = launch("same", "off").start().await;
    let other = launch("other", "auto").start().await;
    let body = admin.get("/api/admin/replicas").await.expect(200);
    let replicas = body["replicas"].as_array().unwrap();
    let told = replicas.iter().map(|one| {
        let flag = one["flags"]["agent-listen"].as_str().unwrap();
        (
            one["leads"] == true,
            flag,
            one["differences"].as_array().unwrap().len(),
        )
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [(true, "off", 0), (false, "off", 0), (false, "auto", 1)]
    );
    let overview = admin.get("/api/admin/reconcile").await.expect(200);
    let warnings = overview["warnings"].to_string();
    assert!(
        warnings.contains("--agent-listen is auto, agents have off"),
        "{warnings}"
    );
    other.terminate();
    until(
        "one that ends is listed no longer",
        seconds(10),
        async || {
            let body = admin.get("/api/admin/replicas").await.expect(200);
            body["replicas"].as_array().unwrap().len() == 2
        },
    )
    .await;
    drop((first, same));
}

#[tokio::test]
async fn engine_postgres_l64_nul_in_a_text_is_a_bad_request() {
    let stage = Stage::new();
    let database = Database::create().await;
    let launch = stage.alone().arg("--database-url").arg(database.url());
    let service = launch.start().await;
    let admin = service.admin().await;
    let refused = |body: Value, field: &str| {
        assert_eq!(body["field"], field, "{body}");
        let rule = format!("{field} must not contain NUL characters");
        assert_eq!(body["error"], rule, "{body}");
    };
    for (path, field) in [
        ("/api/admin/reconcile/objects/container/%00", "name"),
        ("/api/admin/audit?object=%00", "object"),
        ("/api/admin/audit/export?actor=%00", "actor"),
        ("/api/admin/users?search=%00", "search"),
        ("/api/admin/events?search=%00", "search"),
        ("/api/admin/task/status?task_id=%00", "task_id"),
        ("/api/admin/watch?object=user/%00", "object"),
    ] {
        let answer = admin.get(path).await;
        refused(answer.refused(400, "invalid_parameter"), field);
    }
    for (path, field, text) in [
        ("/api/admin/reconcile/retry", "object", "user/\0"),
        ("/api/admin/container/stop", "username", "a\0"),
        ("/api/admin/users/batch-create", "usernames", "a,b\0"),
        ("/api/login", "username", "a\0"),
        ("/api/config", "config", "{\"log.level\": \"\0\"}"),
    ] {
        let answer = admin.post(path, &[(field, text)]).await;
        refused(answer.refused(400, "invalid_parameter"), field);
    }
    // What the JSON text of a configuration holds is stored as JSON again.
    let config = r#"{"agent": {"a\u0000": "b\u0000"}}"#;
    let saved = admin.post("/api/config", &[("config", config)]).await;
    saved.expect(200);
    let document = admin.get("/api/config").await.expect(200);
    assert_eq!(document["agent"]["a\0"], "b\0", "{document}");
    let answer = admin.post(
        "/api/config",
        &[("config", r#"{"skills.defaults": ["\u0000"]}"#)],
    );
    let body = answer.await.refused(422, "invalid_config");
    assert_eq!(body["problems"][0]["key"], "skills.defaults", "{body}");

    drop(service);
    database.drop().await;
}
