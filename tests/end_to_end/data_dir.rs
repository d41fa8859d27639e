//! The engine sees another directory than the service does; the directory is removed under the service.

use crate::support::{Engine, Stage, eventually, seconds};

#[tokio::test]
async fn engine_other_data_directory_is_told_and_nothing_is_made_in_it() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let elsewhere = stage.path().join("elsewhere");
    let launch = |elsewhere: &std::path::Path| {
        stage
            .serve(&engine)
            .arg("--engine-data-dir")
            .arg(elsewhere.display().to_string())
    };
    let service = launch(&elsewhere).start().await;
    let admin = service.admin().await;
    let form = [("username", "bob"), ("wait", "30")];
    let created = admin.post("/api/admin/users/create", &form).await;
    let body = created.json();
    assert!(!created.status.is_success(), "{body}");
    assert_eq!(body["state"], "failed", "{body}");
    assert!(
        body["error"].as_str().unwrap().contains("elsewhere"),
        "names the directory: {body}"
    );
    admin.reason("bob", "DataDirMismatch", seconds(10)).await;
    service.passes(&admin, "container", 1).await;
    assert_eq!(engine.ours(), [], "no container, no probe");
    assert!(!elsewhere.join("users").exists());
    service.kill9().await;

    // Corrected, it goes on by itself.
    let service = launch(&stage.data()).start().await;
    let admin = admin.at(&service.client());
    admin.status("bob", "running", seconds(30)).await;
    engine.the_running("bob");
}

#[tokio::test]
async fn removed_data_directory_ends_the_service() {
    let stage = Stage::new();
    let mut service = stage.alone().start().await;
    let admin = service.admin().await;
    let moved = stage.path().join("moved");
    std::fs::rename(stage.data(), &moved).unwrap();
    eventually("requests are refused", seconds(10), async || {
        let form = [("username", "bob"), ("wait", "0")];
        let created = admin.post("/api/admin/users/create", &form).await;
        match created.status.as_u16() {
            503 => Ok(()),
            // Accepted by a file without a name, as long as it is not known to be lost.
            _ => Err(created.text()),
        }
    })
    .await;
    for path in ["/api/openapi.json", "/api/login"] {
        admin.get(path).await.refused(503, "storage_failed");
    }
    let readiness = admin.get("/readyz").await;
    assert_eq!(readiness.status.as_u16(), 503, "{}", readiness.text());
    assert!(readiness.text().contains("storage: failed"));
    let ended = service.ended_within(seconds(15)).await;
    assert_eq!(ended.code(), Some(78));
    let said = service.log();
    let place = stage.data().display().to_string();
    assert!(
        said.contains(&format!("{place} was removed")) && said.contains("restore it"),
        "{said}"
    );
    assert!(!stage.data().exists(), "nothing was made in its place");
}
