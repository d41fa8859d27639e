//! The engine sees another directory than the service does.

use crate::support::{Engine, Stage, seconds};

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
