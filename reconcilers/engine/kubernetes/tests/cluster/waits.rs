//! Starts that wait, and why.

use std::time::Duration;

use engine::{ContainerSettings, ContainerState, Containers, EngineError};
use kit::contract::engine::Stage;
use schema::condition::Reason;

use crate::stage::{ClusterStage, stage};

async fn waits(
    stage: &ClusterStage,
    settings: &ContainerSettings,
    reason: Reason,
) -> (String, String) {
    let id = stage
        .engine
        .create(&stage.name("waits"), settings)
        .await
        .unwrap();
    stage.engine.start(&id).await.unwrap();
    let is_told = |seen: &engine::ContainerDetails| {
        let waiting = seen.container.waiting.as_ref();
        seen.container.state == ContainerState::Starting
            && waiting.is_some_and(|it| it.reason == reason)
    };
    let seen = stage.until(&id, is_told).await;
    (id, seen.container.waiting.unwrap().message)
}

#[tokio::test]
async fn agent_too_large_for_every_node_is_unschedulable() {
    let stage = stage().await;
    let mut settings = stage.settings("u1");
    settings.memory_bytes = 1 << 50;
    let (id, message) = waits(&stage, &settings, Reason::Unschedulable).await;
    assert!(message.contains("Insufficient memory"), "{message}");
    // One that never ran is stopped at once.
    let begun = tokio::time::Instant::now();
    stage
        .engine
        .stop(&id, Duration::from_secs(60))
        .await
        .unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(stage.see(&id).await.container.state, ContainerState::Exited);
    stage.strike().await;
}

#[tokio::test]
async fn image_that_no_registry_has_is_told() {
    let stage = stage().await;
    let mut settings = stage.settings("u1");
    settings.image = "10.90.0.1:1/none:1".to_owned();
    let (_, message) = waits(&stage, &settings, Reason::ImagePullFailed).await;
    assert!(message.contains("10.90.0.1:1/none"), "{message}");
    stage.strike().await;
}

#[tokio::test]
async fn claim_that_does_not_exist_is_told() {
    let stage = stage().await;
    let mut settings = stage.settings("u1");
    settings.binds[0].source = "missing:users/alice".to_owned();
    let (_, message) = waits(&stage, &settings, Reason::VolumePending).await;
    assert!(message.contains("missing"), "{message}");
    stage.strike().await;
}

#[tokio::test]
async fn path_that_is_a_file_is_no_start() {
    let stage = stage().await;
    std::fs::write(stage.home().join("file"), "").unwrap();
    let mut settings = stage.settings("u1");
    settings.binds[0].source = "data:users/alice/file".to_owned();
    settings.binds[0].target = "/srv".to_owned();
    let id = stage
        .engine
        .create(&stage.name("broken"), &settings)
        .await
        .unwrap();
    stage.engine.start(&id).await.unwrap();
    let broken = stage.until(&id, |seen| !seen.error.is_empty()).await;
    assert_ne!(broken.container.state, ContainerState::Running);
    if broken.container.state == ContainerState::Created {
        let again = stage.engine.start(&id).await;
        assert!(matches!(again, Err(EngineError::Internal(_))), "{again:?}");
    }
    stage.engine.remove(&id).await.unwrap();
    stage.strike().await;
}
