//! Ends of agents, and what is told of them.

use std::time::Duration;

use engine::{ContainerState, Containers};
use k8s_openapi::api::core::v1::Pod;
use kit::contract::engine::{Hand, Stage};
use kube::Api;
use kube::api::EvictParams;
use schema::live::Loss;

use crate::stage::stage;

#[tokio::test]
async fn missing_program_is_an_exit_with_an_error() {
    let stage = stage().await;
    let mut settings = stage.settings("u1");
    settings.command = Some(vec!["/no-such-program".to_owned()]);
    let id = stage
        .engine
        .create(&stage.name("missing"), &settings)
        .await
        .unwrap();
    stage.engine.start(&id).await.unwrap();
    let ended = stage
        .until(&id, |seen| seen.container.state == ContainerState::Exited)
        .await;
    assert_eq!(ended.exit_code, Some(128));
    assert!(ended.error.contains("/no-such-program"), "{ended:?}");
    stage.strike().await;
}

#[tokio::test]
async fn agent_that_ends_is_started_again_by_the_same_verb() {
    let stage = stage().await;
    let ended = stage.run_script("again", "exit 3").await;
    assert_eq!((ended.exit_code, ended.loss), (Some(3), None));
    let id = ended.container.id;
    stage.engine.start(&id).await.unwrap();
    let again = stage
        .until(&id, |seen| {
            seen.container.state == ContainerState::Exited && seen.started_at != ended.started_at
        })
        .await;
    assert_eq!(again.exit_code, Some(3));
    stage.strike().await;
}

#[tokio::test]
async fn memory_over_the_limit_is_told() {
    let stage = stage().await;
    let ended = stage.run_script("eater", "exec tail /dev/zero").await;
    assert_eq!(
        (ended.exit_code, ended.oom_killed),
        (Some(137), true),
        "{ended:?}"
    );
    stage.strike().await;
}

#[tokio::test]
async fn pod_deleted_by_hand_is_a_removal() {
    let stage = stage().await;
    let id = stage.run("deleted", "u1").await;
    // The agent installs its handler a moment after it was started.
    tokio::time::sleep(Duration::from_secs(1)).await;
    stage.hand(Hand::Stop(&stage.name("deleted"))).await;
    let ended = stage
        .until(&id, |seen| seen.container.state == ContainerState::Exited)
        .await;
    assert_eq!(ended.loss, Some(Loss::Removed));
    // It is written on the template, for later reads.
    stage
        .wait_for("the end is noted", async || {
            stage.see(&id).await.exit_code.is_some()
        })
        .await;
    let noted = stage.see(&id).await;
    assert_eq!(
        (noted.loss, noted.exit_code),
        (Some(Loss::Removed), Some(0))
    );
    assert!(noted.started_at.is_some() && noted.finished_at >= noted.started_at);
    stage.strike().await;
}

#[tokio::test]
async fn eviction_is_told_and_the_agent_starts_again() {
    let stage = stage().await;
    let id = stage.run("evicted", "u1").await;
    let pods: Api<Pod> = stage.api();
    pods.evict("agent-u1", &EvictParams::default())
        .await
        .unwrap();
    stage
        .wait_for("the eviction is noted", async || {
            stage.see(&id).await.loss == Some(Loss::Evicted)
        })
        .await;
    assert_eq!(stage.see(&id).await.container.state, ContainerState::Exited);
    stage.start(&id).await;
    let seen = stage.see(&id).await;
    assert_eq!(
        (seen.container.state, seen.loss),
        (ContainerState::Running, None)
    );
    stage.strike().await;
}

#[tokio::test]
async fn stop_leaves_code_and_times() {
    let stage = stage().await;
    let id = stage.run("stopped", "u1").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let running = stage.see(&id).await;
    stage
        .engine
        .stop(&id, Duration::from_secs(5))
        .await
        .unwrap();
    let stopped = stage.see(&id).await;
    assert_eq!((stopped.exit_code, stopped.loss), (Some(0), None));
    assert_eq!(stopped.started_at, running.started_at);
    assert!(stopped.finished_at >= running.started_at);
    assert_eq!(stage.pods().await.len(), 0);
    stage.strike().await;
}

#[tokio::test]
async fn pod_goes_with_its_template() {
    let stage = stage().await;
    stage.run("collected", "u1").await;
    stage.hand(Hand::Remove(&stage.name("collected"))).await;
    stage
        .wait_for("the Pod is collected", async || {
            stage.pods().await.is_empty()
        })
        .await;
    stage.expect_listed(&[]).await;
    stage.strike().await;
}
