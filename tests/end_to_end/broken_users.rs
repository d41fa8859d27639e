//! Six broken users on the real engine: for each it is told what is wrong, since when, what is tried
//! next and how to force it, and a retry works once it is mended.

use schema::db::{Backend, Db};
use schema::ids::Uid;
use serde_json::Value;

use crate::support::client::ready;
use crate::support::disk::SmallDisk;
use crate::support::{Client, Engine, Service, Stage, eventually, seconds, until};

/// No resync comes to the rescue: what is mended is found by the retry.
async fn serve(stage: &Stage, engine: &Engine, tag: &str) -> Service {
    stage
        .serve_with(engine, tag)
        .env("AGENTYARD_RESYNC", "1h")
        .start()
        .await
}

/// Waits until an object is broken for this reason, and checks that everything is said of it.
async fn told(admin: &Client, object: &str, reason: &str) -> Value {
    let what = format!("{object} is Ready={reason}");
    let seen = eventually(&what, seconds(40), async || {
        let body = admin.object(object).await;
        // Until the newest generation was observed, that is what is said first.
        let observed = body["observed_generation"] == body["generation"];
        if observed && ready(&body)["reason"] == reason {
            Ok(body)
        } else {
            Err(body.to_string())
        }
    });
    let (body, _) = seen.await;
    let text = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
    assert!(text("problem").starts_with(reason), "what: {body}");
    assert!(text("since").starts_with("20"), "since when: {body}");
    assert!(!text("next").is_empty(), "what next: {body}");
    assert!(
        !ready(&body)["remedy"].as_str().unwrap().is_empty(),
        "what a person can do: {body}"
    );
    let force = &body["force"];
    assert_eq!(force["command"], format!("agentyard retry {object}"));
    assert_eq!(force["request"], "POST /api/admin/reconcile/retry");
    assert_eq!(force["body"], format!("object={object}"));
    assert!(body["plan"].is_object(), "a dry run: {body}");
    assert!(body["desired"].is_object(), "{body}");
    assert!(body["observed"].is_object(), "{body}");
    eprintln!(
        "{object}: {} | {} | {}",
        text("problem"),
        text("since"),
        text("next")
    );
    body
}

/// Waits until it says when the next look is: what somebody has just woken is looked at now.
async fn is_planned(admin: &Client, object: &str) {
    let what = format!("{object} has a time for its next look");
    until(&what, seconds(20), async || {
        let body = admin.object(object).await;
        let at = body["next_look_at"].as_str().unwrap_or_default();
        at.starts_with("20") && body["next"].as_str().unwrap().contains(at)
    })
    .await;
}

async fn create(admin: &Client, name: &str) {
    let form = [("username", name), ("wait", "0")];
    admin.post("/api/admin/users/create", &form).await.pending();
}

#[tokio::test]
async fn engine_user_without_image_is_told_and_retried() {
    const IMAGE: &str = "echo:later";
    let engine = Engine::claim();
    engine.ask(&["rmi", IMAGE]);
    let stage = Stage::new();
    let service = serve(&stage, &engine, "later").await;
    let admin = service.admin().await;
    let form = [("username", "ida"), ("wait", "30")];
    let created = admin.post("/api/admin/users/create", &form).await;
    let failed = created.expect(422);
    assert_eq!(failed["reason"], "ImageMissing", "{failed}");
    assert!(!failed["remedy"].as_str().unwrap().is_empty(), "{failed}");

    let body = told(&admin, "container/ida", "ImageMissing").await;
    is_planned(&admin, "container/ida").await;
    assert!(body["problem"].as_str().unwrap().contains(IMAGE), "{body}");
    let row = admin.user("ida").await.unwrap();
    assert!(ready(&row)["remedy"].is_string(), "{row}");

    engine.docker(&["tag", "echo:1", IMAGE]);
    admin.reason("ida", "ImageMissing", seconds(1)).await;
    admin.retry("container/ida").await;
    admin.status("ida", "running", seconds(40)).await;
    engine.the_running("ida");
    drop(service);
    engine.docker(&["rm", "-f", "agentyard-ida"]);
    engine.docker(&["rmi", IMAGE]);
}

#[tokio::test]
async fn engine_user_behind_a_foreign_container_is_told_and_retried() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let foreign = engine.docker(&["run", "-d", "--name", "agentyard-fay", "echo:1"]);
    let service = serve(&stage, &engine, "1").await;
    let admin = service.admin().await;
    create(&admin, "fay").await;
    let body = told(&admin, "container/fay", "NameConflict").await;
    is_planned(&admin, "container/fay").await;
    assert!(body["problem"].as_str().unwrap().contains("agentyard-fay"));
    let events = body["events"].as_array().unwrap();
    assert!(
        events.iter().any(|event| event["reason"] == "NameConflict"
            && !event["remedy"].as_str().unwrap().is_empty()),
        "{body}"
    );

    engine.docker(&["rm", "-f", &foreign]);
    admin.retry("container/fay").await;
    admin.status("fay", "running", seconds(40)).await;
    engine.the_running("fay");
}

#[tokio::test]
async fn engine_user_in_a_crash_loop_is_told_and_retried() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = serve(&stage, &engine, "1").await;
    let admin = service.admin().await;
    admin.create_user("cleo").await;
    // With this file in its home the test agent ends right after its start.
    let switch = stage.data().join("users/cleo/.agent/crash");
    std::fs::write(&switch, "").unwrap();
    let form = [("username", "cleo"), ("wait", "0")];
    let restart = admin.post("/api/admin/container/restart", &form).await;
    assert!(restart.status.is_success(), "{}", restart.text());

    // From the fifth on there are sixteen seconds between two starts.
    let looping = eventually("five crashes", seconds(60), async || {
        let body = admin.object("container/cleo").await;
        match body["observed"]["crash_count"].as_u64() {
            Some(count) if count >= 5 => Ok(()),
            _ => Err(body["observed"].to_string()),
        }
    });
    looping.await;
    let body = told(&admin, "container/cleo", "CrashLoop").await;
    is_planned(&admin, "container/cleo").await;
    assert!(
        body["problem"].as_str().unwrap().contains("exit code"),
        "{body}"
    );
    assert_eq!(body["desired"]["running"], true, "{body}");
    assert_eq!(body["observed"]["running"], false, "{body}");

    std::fs::remove_file(&switch).unwrap();
    let retried = admin.retry("container/cleo").await;
    assert!(retried["generation"].as_i64() > body["generation"].as_i64());
    admin.status("cleo", "running", seconds(40)).await;
    let body = admin.object("container/cleo").await;
    assert!(body["problem"].is_null(), "{body}");
    assert_eq!(
        body["desired"]["restart_token"],
        body["observed"]["restart_token"]
    );
}

#[tokio::test]
async fn engine_user_of_a_stopped_engine_is_told_and_retried() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = serve(&stage, &engine, "1").await;
    let admin = service.admin().await;
    admin.create_user("eve").await;

    engine.stop();
    let body = told(&admin, "container/eve", "EngineUnavailable").await;
    assert!(body["next"].as_str().unwrap().contains("engine"), "{body}");
    assert_eq!(body["waits_for"][0]["object"], "engine/local", "{body}");
    assert!(body["observed"]["engine_error"].is_string(), "{body}");
    told(&admin, "engine/local", "EngineUnavailable").await;
    let (status, text) = admin.readiness().await;
    assert_eq!(status, 503, "{text}");
    assert!(text.contains("engine events: degraded"), "{text}");
    admin.event("engine/local", "WatchLost", seconds(2)).await;
    let outage = admin
        .event("engine/local", "EngineUnavailable", seconds(2))
        .await;
    let message = outage["message"].as_str().unwrap();
    assert!(message.starts_with("since 20"), "{outage}");

    engine.start();
    admin.retry("engine/local").await;
    admin.retry("container/eve").await;
    admin.status("eve", "running", seconds(40)).await;
    engine.the_running("eve");
    admin
        .event("engine/local", "WatchRestored", seconds(5))
        .await;
    let back = admin.event("engine/local", "Recovered", seconds(5)).await;
    let message = back["message"].as_str().unwrap();
    assert!(message.contains("it was away for"), "{back}");
    let engine_now = admin.object("engine/local").await;
    let (desired, observed) = (&engine_now["desired"], &engine_now["observed"]);
    assert_eq!(observed["available"], true, "{engine_now}");
    assert_eq!(desired["network_subnet"], observed["network_subnet"]);
}

#[tokio::test]
async fn engine_user_on_a_full_disk_is_told_and_retried() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let disk = SmallDisk::mount(&stage.data().join("users"), "256k");
    let service = serve(&stage, &engine, "1").await;
    let admin = service.admin().await;
    let filler = disk.fill();
    create(&admin, "dora").await;

    let body = told(&admin, "user/dora", "StorageFull").await;
    is_planned(&admin, "user/dora").await;
    assert!(body["failures"].as_u64().unwrap() >= 1, "{body}");
    assert!(body["next_attempt_at"].is_string(), "{body}");
    // Her container says for whom it waits.
    let container = told(&admin, "container/dora", "HomeMissing").await;
    let awaited = &container["waits_for"][0];
    assert_eq!(awaited["object"], "user/dora", "{container}");
    assert!(
        awaited["problem"]
            .as_str()
            .unwrap()
            .starts_with("StorageFull"),
        "{container}"
    );

    std::fs::remove_file(filler).unwrap();
    admin.retry("user/dora").await;
    admin.status("dora", "running", seconds(40)).await;
    engine.the_running("dora");
}

#[tokio::test]
async fn engine_user_with_limits_that_the_engine_refuses_is_told_and_retried() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = serve(&stage, &engine, "1").await;
    let admin = service.admin().await;
    admin.create_user("lea").await;
    let before = engine.the_running("lea").id;
    let form = [("username", "lea"), ("cpu_limit", "1000"), ("wait", "40")];
    let limits = admin.post("/api/admin/container/limits", &form).await;
    let refused = limits.expect(400);
    assert_eq!(refused["field"], "cpu_limit", "{refused}");

    // The engine moved to a smaller host: its own refusal comes later.
    let backend = Backend::Sqlite(stage.data().join("agentyard.db"));
    let db = Db::open(backend).await.unwrap();
    let object = admin.object("container/lea").await;
    let uid: Uid = serde_json::from_value(object["uid"].clone()).unwrap();
    let mut tx = db.begin().await.unwrap();
    schema::container::set_limits(&mut tx, &uid, Some(1000.0), None, None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    db.close().await;
    admin.retry("container/lea").await;
    let body = told(&admin, "container/lea", "InvalidSettings").await;
    is_planned(&admin, "container/lea").await;
    assert!(body["problem"].as_str().unwrap().contains("CPUs"), "{body}");
    assert_eq!(body["desired"]["cpu_limit"], 1000.0, "{body}");
    assert_ne!(body["observed"]["cpu_limit"], 1000.0, "{body}");
    assert_eq!(engine.the_running("lea").id, before, "the old one goes on");

    // Nothing has changed, so a retry fails in the same way, at once.
    admin.retry("container/lea").await;
    told(&admin, "container/lea", "InvalidSettings").await;
    let form = [("username", "lea"), ("cpu_limit", "0.5"), ("wait", "0")];
    admin.post("/api/admin/container/limits", &form).await;
    admin.retry("container/lea").await;
    admin.status("lea", "running", seconds(40)).await;
    let body = admin.object("container/lea").await;
    assert_eq!(body["desired"]["cpu_limit"], body["observed"]["cpu_limit"]);
    assert_eq!(
        body["desired"]["restart_token"]
            .as_str()
            .unwrap_or_default(),
        body["observed"]["restart_token"]
            .as_str()
            .unwrap_or_default()
    );
    for field in ["running", "image_id", "memory_limit_mb", "network", "debug"] {
        assert_eq!(
            body["desired"][field], body["observed"][field],
            "{field}: {body}"
        );
    }
}
