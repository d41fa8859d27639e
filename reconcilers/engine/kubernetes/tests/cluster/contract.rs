//! The contract of engines, as far as it speaks of containers, and settings.

use engine::{
    Container, ContainerDetails, ContainerState, Containers, EngineError, Limits, LogOptions,
};
use futures::StreamExt;
use kit::contract::engine::{Hand, Stage};
use std::time::Duration;

use crate::stage::{stage, stage_with};

kit::contract!(
    stage(),
    tokio::test,
    [
        a_container_lives_from_creation_to_removal,
        a_listing_shows_only_the_owners_containers_stopped_ones_included,
        l30_a_taken_name_is_reported_and_its_bearer_left_alone,
        of_many_creations_under_one_name_one_wins,
        renaming_swaps_names_and_may_be_repeated,
        an_exit_code_is_seen,
        a_process_that_ignores_the_request_is_killed,
        two_removals_at_once_both_succeed,
        events_tell_the_life_of_owned_containers,
        a_log_is_read_whole_in_part_and_followed,
    ]
);

#[tokio::test]
async fn version_is_told_and_pids_are_not_limited() {
    let stage = stage().await;
    stage.engine.ping().await.unwrap();
    let info = stage.engine.info().await.unwrap();
    assert!(info.version.starts_with("v1."), "{info:?}");
    assert_eq!(info.too_old, None);
    assert_eq!(
        info.limits,
        Limits {
            pids: false,
            ..Limits::ALL
        }
    );
    stage.strike().await;
}

#[tokio::test]
async fn settings_are_read_back_in_each_state() {
    let stage = stage().await;
    let mut wanted = stage.settings("u1");
    wanted
        .environment
        .insert("TOKEN".to_owned(), "a=b c\"d $(HOME) $$".to_owned());
    wanted.hostname = Some("Alice".to_owned());
    wanted.nano_cpus = 333_333_333;
    wanted.capabilities = vec!["NET_BIND_SERVICE".to_owned()];
    wanted.labels.insert("long".to_owned(), "f".repeat(64));
    let mut read_only = wanted.binds[0].clone();
    read_only.target = "/a-read-only-one".to_owned();
    read_only.read_only = true;
    wanted.binds.insert(0, read_only);
    let script = "echo \"$TOKEN\"; hostname; exec echo-agent";
    wanted.command = Some(["/bin/sh", "-c", script].map(str::to_owned).to_vec());
    let id = stage
        .engine
        .create(&stage.name("settings"), &wanted)
        .await
        .unwrap();
    for round in ["created", "running", "stopped"] {
        match round {
            "running" => stage.start(&id).await,
            "stopped" => stage.engine.stop(&id, Duration::ZERO).await.unwrap(),
            _ => {}
        }
        let seen = stage.see(&id).await;
        assert_eq!(seen.settings, wanted, "{round}");
        assert_eq!(drift(stage.engine(), &seen, &wanted), None, "{round}");
        if round == "running" {
            let log = read_log(stage.engine(), &id).await;
            assert!(log.starts_with("a=b c\"d $(HOME) $$\nalice\n"), "{log}");
        }
    }
    stage.strike().await;
}

fn drift(
    engine: &impl Containers,
    seen: &ContainerDetails,
    wanted: &engine::ContainerSettings,
) -> Option<&'static str> {
    engine.drift(&seen.container, Some(seen), wanted, Limits::ALL)
}

async fn read_log(engine: &impl Containers, id: &str) -> String {
    let mut text = Vec::new();
    for _ in 0..100 {
        let log = engine.logs(id, &LogOptions::default()).await.unwrap();
        let chunks: Vec<_> = log.collect().await;
        text = chunks
            .into_iter()
            .flat_map(|chunk| chunk.unwrap().bytes.to_vec())
            .collect();
        if text.len() > 20 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn settings_left_out_run_as_the_image_says() {
    let stage = stage_with("privileged").await;
    let mut wanted = stage.settings("u1");
    wanted.user = None;
    wanted.binds.clear();
    wanted.memory_bytes = 0;
    let id = stage
        .engine
        .create(&stage.name("minimal"), &wanted)
        .await
        .unwrap();
    stage.start(&id).await;
    let seen = stage
        .until(&id, |seen| seen.container.state == ContainerState::Running)
        .await;
    assert_eq!(seen.settings, wanted);
    assert_eq!((seen.settings.command, seen.settings.user), (None, None));
    stage.strike().await;
}

#[tokio::test]
async fn limits_of_the_namespace_are_no_drift() {
    let stage = stage().await;
    let limits = serde_json::json!({ "metadata": { "name": "limits" }, "spec": { "limits": [{
        "type": "Container", "default": { "cpu": "500m", "memory": "256Mi" },
    }]}});
    let limits: k8s_openapi::api::core::v1::LimitRange = serde_json::from_value(limits).unwrap();
    stage
        .api()
        .create(&Default::default(), &limits)
        .await
        .unwrap();
    let mut wanted = stage.settings("u1");
    wanted.memory_bytes = 0;
    let id = stage
        .engine
        .create(&stage.name("limits"), &wanted)
        .await
        .unwrap();
    stage.start(&id).await;
    let resources = stage.pods().await[0].spec.clone().unwrap().containers[0]
        .resources
        .clone();
    assert_eq!(resources.unwrap().limits.unwrap()["memory"].0, "256Mi");
    let seen = stage.see(&id).await;
    assert_eq!(drift(stage.engine(), &seen, &wanted), None);
    stage.strike().await;
}

#[tokio::test]
async fn template_changed_by_hand_is_drift() {
    let stage = stage().await;
    let wanted = stage.settings("u1");
    let id = stage.run("hands", "u1").await;
    stage
        .hand(Hand::LimitMemory(&stage.name("hands"), 48 << 20))
        .await;
    let seen = stage.see(&id).await;
    assert_eq!(
        seen.settings.memory_bytes,
        64 << 20,
        "the Pod has what it was made with"
    );
    stage.engine.stop(&id, Duration::ZERO).await.unwrap();
    let seen = stage.see(&id).await;
    assert_eq!(drift(stage.engine(), &seen, &wanted), Some("memory limit"));
    stage.hand(Hand::AlwaysRestart(&stage.name("hands"))).await;
    let seen = stage.see(&id).await;
    assert_eq!(seen.deviations, ["restart_policy"]);
    stage.hand(Hand::Remove(&stage.name("hands"))).await;
    stage.expect_listed(&[]).await;
    stage.strike().await;
}

#[tokio::test]
async fn verbs_on_a_container_that_is_gone_are_done_or_not_found() {
    let stage = stage().await;
    let engine = &stage.engine;
    let never = "agent-u1-01234567.6c2e3b5a-0000-4000-8000-000000000001";
    for gone in [never, &"f".repeat(64)] {
        engine.stop(gone, Duration::ZERO).await.unwrap();
        engine.remove(gone).await.unwrap();
        assert_eq!(engine.inspect(gone).await.unwrap(), None);
        let lost = |outcome: Result<(), EngineError>| {
            assert!(
                matches!(outcome, Err(EngineError::NotFound(_))),
                "{outcome:?}"
            );
        };
        lost(engine.start(gone).await);
        lost(engine.rename(gone, &stage.name("new")).await);
        lost(engine.logs(gone, &Default::default()).await.map(|_| ()));
        lost(engine.stats(gone).await.map(|_| ()));
    }
    stage.strike().await;
}

#[tokio::test]
async fn container_made_again_by_an_equal_request_is_another_one() {
    let stage = stage().await;
    let first = stage.create("again", "u1").await;
    stage
        .engine
        .rename(&first, &stage.name("aside"))
        .await
        .unwrap();
    let second = stage.create("again", "u1").await;
    assert_ne!(first, second);
    stage.engine.remove(&second).await.unwrap();
    let third = stage.create("again", "u1").await;
    assert_ne!(second, third);
    assert_eq!(stage.engine.inspect(&second).await.unwrap(), None);
    stage.strike().await;
}

#[tokio::test]
async fn listing_of_one_user_is_never_behind() {
    let stage = stage().await;
    let list =
        async || -> Vec<Container> { stage.engine.list(stage.owner(), Some("u1")).await.unwrap() };
    let id = stage.create("now", "u1").await;
    assert_eq!(list().await[0].state, ContainerState::Created);
    stage.engine.start(&id).await.unwrap();
    assert!(list().await[0].state.is_up());
    stage.engine.stop(&id, Duration::ZERO).await.unwrap();
    assert_eq!(list().await[0].state, ContainerState::Exited);
    stage.engine.remove(&id).await.unwrap();
    assert_eq!(list().await, []);
    stage.strike().await;
}
