//! L30: what bears our name but is not ours.

use crate::support::client::ready;
use crate::support::{Engine, Stage, seconds};

const ENGINE: &str = "/api/admin/reconcile/objects/engine/local";

#[tokio::test]
async fn engine_l30_foreign_container_of_our_name_is_told_and_never_touched() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    let foreign = engine.docker(&["run", "-d", "--name", "agentyard-bob", "echo:1"]);
    let before = engine.inspect(&foreign);

    let form = [("username", "bob"), ("wait", "30")];
    let created = admin.post("/api/admin/users/create", &form).await;
    let body = created.expect(409);
    assert_eq!(body["state"], "failed", "{body}");
    assert_eq!(body["success"], false, "{body}");
    let sentence = body["error"].as_str().unwrap();
    assert!(sentence.contains("agentyard-bob"), "{body}");
    let bob = admin.reason("bob", "NameConflict", seconds(10)).await;
    assert_eq!(ready(&bob)["status"], "False");
    assert_eq!(bob["status"], "failed", "{bob}");

    service.passes(&admin, "container", 2).await;
    for path in ["container/restart", "container/stop", "container/start"] {
        let form = [("username", "bob"), ("wait", "10")];
        admin.post(&format!("/api/admin/{path}"), &form).await;
    }
    admin.reason("bob", "NameConflict", seconds(10)).await;
    let after = engine.inspect(&foreign);
    assert_eq!(after["State"], before["State"]);
    assert_eq!(after["Name"], "/agentyard-bob");
    assert_eq!(engine.of("bob").len(), 1);

    // A user can be deleted all the same, and the foreigner stays.
    let form = [("username", "bob"), ("wait", "60")];
    let deleted = admin.post("/api/admin/users/delete", &form).await;
    deleted.expect(200);
    assert_eq!(engine.inspect(&foreign)["State"], before["State"]);

    // Gone by its owner's hand, the name is free.
    let form = [("username", "bob"), ("wait", "20")];
    let created = admin.post("/api/admin/users/create", &form).await;
    created.expect(409);
    engine.docker(&["rm", "-f", &foreign]);
    // Foreign things send us no events: it is found at the next full pass, or when told to look.
    let form = [("object", "container/bob")];
    admin
        .post("/api/admin/reconcile/retry", &form)
        .await
        .expect(200);
    admin.status("bob", "running", seconds(30)).await;
    engine.the_running("bob");
}

#[tokio::test]
async fn engine_l30_foreign_network_of_our_name_is_told_and_never_touched() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let network = engine.docker(&["network", "create", "agentyard"]);
    let service = stage.serve(&engine).start().await;
    let admin = service.admin().await;
    let form = [("username", "bob"), ("wait", "2")];
    let created = admin.post("/api/admin/users/create", &form).await;
    assert_ne!(created.status, 200, "{}", created.text());
    service.passes(&admin, "engine", 2).await;
    let object = admin.get(ENGINE).await.expect(200);
    assert!(object.to_string().contains("NameConflict"), "{object}");
    assert_eq!(engine.of("bob"), []);
    let still = engine.docker(&["network", "inspect", "-f", "{{.Id}}", "agentyard"]);
    assert_eq!(still, network);
    engine.docker(&["network", "rm", "agentyard"]);
    // Only the engine is told to look; who waits for the network hears of it.
    let form = [("object", "engine/local")];
    let retry = admin.post("/api/admin/reconcile/retry", &form).await;
    retry.expect(200);
    admin.status("bob", "running", seconds(30)).await;
}
