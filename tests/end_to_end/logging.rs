//! What is logged follows `log.level`, while the service runs.

use serde_json::json;

use crate::support::{Client, Stage, seconds, until};

const LEVEL: [(&str, &str); 1] = [("config", r#"{"log":{"level":"debug"}}"#)];

/// How many debug lines there are after some requests.
async fn debug_lines(client: &Client, log: impl Fn() -> String) -> usize {
    for _ in 0..3 {
        client.get("/api/config").await.expect(200);
    }
    let log = log();
    log.lines().filter(|line| line.contains("DEBUG")).count()
}

#[tokio::test]
async fn log_level_changes_what_a_running_service_logs() {
    let stage = Stage::new();
    let service = stage.alone().start().await;
    let admin = service.admin().await;
    assert_eq!(debug_lines(&admin, || service.log()).await, 0);
    let saved = admin.post("/api/config", &LEVEL).await.expect(200);
    assert_eq!(saved["changed"], json!(["log.level"]));
    assert_eq!(saved.get("warnings"), None, "{saved}");
    until("debug lines are logged", seconds(5), async || {
        debug_lines(&admin, || service.log()).await > 0
    })
    .await;
    service.kill9().await;

    // What was saved is obeyed from the start on.
    let service = stage.alone().start().await;
    let admin = admin.at(&service.client());
    assert!(debug_lines(&admin, || service.log()).await > 0);
    let reset = stage.command().run(&["config", "unset", "log.level"]).await;
    assert!(reset.status.success(), "{}", reset.stderr);
    until("no more debug lines are logged", seconds(5), async || {
        let before = debug_lines(&admin, || service.log()).await;
        debug_lines(&admin, || service.log()).await == before
    })
    .await;
}

#[tokio::test]
async fn log_level_says_that_the_environment_decides() {
    let stage = Stage::new();
    let service = stage.alone().env("RUST_LOG", "warn").start().await;
    let admin = service.admin().await;
    let saved = admin.post("/api/config", &LEVEL).await.expect(200);
    let said =
        "log.level has no effect while the environment variable RUST_LOG of the server is set";
    assert_eq!(saved["warnings"], json!([said]), "{saved}");
    assert_eq!(saved["message"], format!("configuration saved; {said}"));
    assert_eq!(debug_lines(&admin, || service.log()).await, 0);
    let arguments = ["config", "set", "log.level=trace"];
    let set = stage.command().run(&arguments).await;
    assert!(set.status.success(), "{}", set.stderr);
    assert_eq!(set.stderr, format!("warning: {said}\n"));
    // Of other keys nothing is said.
    let form = [("config", r#"{"container":{"pids_limit":64}}"#)];
    let saved = admin.post("/api/config", &form).await.expect(200);
    assert_eq!(saved.get("warnings"), None, "{saved}");
}
