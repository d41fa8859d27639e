//! Users' directories under running containers, on the real engine.

use crate::support::{Engine, Stage, seconds, until};

#[tokio::test]
async fn engine_l77_a_removed_home_is_made_again_and_the_agent_writes_into_it() {
    let engine = Engine::claim();
    let stage = Stage::new();
    let launch = stage.serve(&engine).args(&["--adapter", "echo"]);
    let service = launch.env("AGENTYARD_RESYNC", "2s").start().await;
    let admin = service.admin().await;
    admin.create_user("dave").await;
    admin.status("dave", "running", seconds(60)).await;
    let before = engine.the_running("dave").id;
    let home = stage.data().join("users/dave");
    // The agent may write into it meanwhile.
    until("it is removed", seconds(10), async || {
        let _ = std::fs::remove_dir_all(&home);
        !home.exists()
    })
    .await;
    until("another container runs", seconds(90), async || {
        let containers = engine.of("dave");
        containers.len() == 1 && containers[0].id != before && containers[0].state == "running"
    })
    .await;
    admin.status("dave", "running", seconds(60)).await;
    let id = engine.the_running("dave").id;
    engine.by_hand(&["exec", &id, "touch", "/root/written"]);
    assert!(home.join("written").exists(), "it writes where it is read");
    assert!(home.join(".agent/config.json").exists());
    let events = admin.events("container/dave").await;
    let why = "the user's directory was replaced";
    let says = |event: &serde_json::Value| event["message"].to_string().contains(why);
    assert!(events.iter().any(says), "{events:?}");
    for object in ["user/dave", "agent-config/dave", "container/dave"] {
        let shown = admin.object(object).await;
        assert_eq!(
            shown["conditions"][0]["status"], "True",
            "{object}: {shown}"
        );
    }
}
