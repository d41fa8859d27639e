//! L33: the engine is away, was never there, comes back, crashes.

use crate::support::client::ready;
use crate::support::engine::FOUND_AGAIN;
use crate::support::{Client, Engine, Service, Stage, eventually, seconds};

async fn readiness(service: &Service) -> (u16, String) {
    let answer = service.client().get("/readyz").await;
    (answer.status.as_u16(), answer.text())
}

/// Waits until `/readyz` has this status; gives its line about the engine.
async fn is_ready(service: &Service, status: u16) -> String {
    let what = format!("/readyz is {status}");
    let (text, _) = eventually(&what, FOUND_AGAIN, async || {
        let (now, text) = readiness(service).await;
        if now == status {
            Ok(text)
        } else {
            Err(format!("{now}: {text}"))
        }
    })
    .await;
    let line = text.lines().find(|line| line.contains("engine"));
    line.unwrap_or_else(|| panic!("a line about the engine: {text}"))
        .to_owned()
}

async fn create_while_away(admin: &Client, name: &str) {
    let form = [("username", name), ("wait", "2")];
    let answer = admin.post("/api/admin/users/create", &form).await;
    let body = answer.pending();
    assert!(body["password"].is_string(), "{body}");
    // The answer does not wait for the engine, and the first reason may be of an earlier generation.
    let unknown = eventually("bob is unknown", seconds(20), async || {
        let row = admin.user(name).await.unwrap_or_default();
        match row["status"] == "unknown" {
            true => Ok(row),
            false => Err(row.to_string()),
        }
    });
    let row = unknown.await.0;
    assert_eq!(ready(&row)["status"], "Unknown", "{row}");
    assert_eq!(ready(&row)["reason"], "EngineUnavailable", "{row}");
}

#[tokio::test]
async fn engine_l33_stopped_engine_leaves_the_interface_up_and_is_found_again() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    admin.create_user("ann").await;
    is_ready(&service, 200).await;

    engine.stop();
    let line = is_ready(&service, 503).await;
    eprintln!("away: {line}");
    service.client().get("/api/health").await.expect(200);
    assert_eq!(service.client().get("/healthz").await.status, 200);
    let ann = admin.reason("ann", "EngineUnavailable", seconds(20)).await;
    assert_eq!(ann["status"], "unknown", "not what it once was: {ann}");
    create_while_away(&admin, "bob").await;
    let logs = admin
        .get("/api/admin/container/logs?username=ann&tail=10")
        .await;
    logs.refused(503, "engine_unavailable");
    let form = [("username", "ann"), ("wait", "1")];
    let restart = admin.post("/api/admin/container/restart", &form).await;
    restart.pending();

    engine.start();
    for name in ["ann", "bob"] {
        admin.status(name, "running", FOUND_AGAIN).await;
        engine.the_running(name);
    }
    is_ready(&service, 200).await;
}

#[tokio::test]
async fn engine_l33_service_started_without_an_engine_finds_it_later() {
    let engine = Engine::claim();
    engine.stop();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    is_ready(&service, 503).await;
    create_while_away(&admin, "bob").await;

    engine.start();
    admin.status("bob", "running", FOUND_AGAIN).await;
    engine.the_running("bob");
    is_ready(&service, 200).await;
}

#[tokio::test]
async fn engine_l33_crashed_engine_is_found_again_and_everything_runs() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    admin.create_user("ann").await;
    admin.create_user("bob").await;
    let form = [("username", "bob"), ("wait", "60")];
    let stopped = admin.post("/api/admin/container/stop", &form).await;
    stopped.converged();

    engine.kill9();
    admin.reason("ann", "EngineUnavailable", seconds(20)).await;
    // Asked for while nobody can do it.
    let deleted = admin
        .post(
            "/api/admin/users/delete",
            &[("username", "ann"), ("wait", "1")],
        )
        .await;
    deleted.pending();
    create_while_away(&admin, "cat").await;

    engine.start();
    admin.status("cat", "running", FOUND_AGAIN).await;
    engine.the_running("cat");
    let gone = eventually("ann is gone", seconds(30), async || {
        match admin.user("ann").await {
            None => Ok(()),
            Some(row) => Err(row.to_string()),
        }
    });
    gone.await;
    assert_eq!(engine.of("ann"), []);
    assert_eq!(engine.of("bob"), [], "stopped on purpose");
    admin.status("bob", "stopped", seconds(10)).await;
}

#[tokio::test]
async fn engine_l66_an_engine_that_hangs_holds_up_nobody_and_its_return_is_noticed() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    admin.create_user("ann").await;
    admin.status("ann", "running", FOUND_AGAIN).await;
    is_ready(&service, 200).await;

    engine.freeze();
    // Before anybody knows.
    for path in [
        "/api/admin/container/logs?username=ann&tail=10",
        "/api/admin/container/inspect?username=ann",
        "/api/admin/container/stats?username=ann",
        "/api/admin/images",
        "/api/admin/images/local-tags",
    ] {
        let asked = tokio::time::Instant::now();
        admin.get(path).await.refused(503, "engine_unavailable");
        let took = asked.elapsed();
        eprintln!("{path}: {took:?}");
        assert!(took < seconds(6), "{path}: {took:?}");
    }
    is_ready(&service, 503).await;
    let ann = admin.reason("ann", "EngineUnavailable", seconds(20)).await;
    assert_eq!(ann["status"], "unknown", "{ann}");
    // Now it is known: nobody waits for it again.
    let asked = tokio::time::Instant::now();
    admin
        .get("/api/admin/images")
        .await
        .refused(503, "engine_unavailable");
    assert!(asked.elapsed() < seconds(1), "{:?}", asked.elapsed());
    create_while_away(&admin, "bob").await;

    engine.thaw();
    is_ready(&service, 200).await;
    for name in ["ann", "bob"] {
        admin.status(name, "running", FOUND_AGAIN).await;
        engine.the_running(name);
    }
}
