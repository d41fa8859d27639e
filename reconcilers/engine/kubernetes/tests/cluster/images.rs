//! Images of a registry, and pulls to nodes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::{ContainerState, Containers, Digests, EngineError, Images, Meaning, PullEvent};
use futures::{StreamExt, TryStreamExt};
use kit::contract::engine::Stage;
use reconcilers::drivers::registry::{Limits, OciRegistry, Registry};
use schema::image::ImageReference;

use crate::stage::{ClusterStage, stage_of_registry};

/// An image that `tests/cluster/registry` has pushed.
const ECHO: &str = "10.90.0.1:5000/agents/echo:2";

/// The registry of the test cluster, which speaks no TLS.
struct Plain(OciRegistry);

#[async_trait]
impl Digests for Plain {
    async fn digest(&self, image: &ImageReference) -> Result<Meaning, EngineError> {
        let asked = self.0.digest(image, None, true).await;
        let found = asked.map_err(|error| EngineError::RegistryFailed(error.to_string()))?;
        Ok(found.map_or(Meaning::Nothing, Meaning::Digest))
    }
}

/// A registry that promises every image.
struct Promises;

#[async_trait]
impl Digests for Promises {
    async fn digest(&self, _: &ImageReference) -> Result<Meaning, EngineError> {
        Ok(Meaning::Digest(format!("sha256:{}", "a".repeat(64))))
    }
}

async fn stage() -> ClusterStage {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let registry = OciRegistry::new(Limits::default()).unwrap();
    stage_of_registry(Arc::new(Plain(registry))).await
}

/// Names of the Pods that pull.
async fn pullers(stage: &ClusterStage) -> Vec<String> {
    let pods = stage.pods().await.into_iter();
    let names = pods.filter_map(|pod| pod.metadata.name);
    names
        .filter(|name| name.starts_with("agentyard-pull-"))
        .collect()
}

async fn pull_image(stage: &ClusterStage, reference: &str) -> Result<Vec<PullEvent>, EngineError> {
    let events = stage.engine.pull(reference, None).await?;
    events.try_collect().await
}

/// Runs an agent, and waits until listings show its node.
async fn run_agent(stage: &ClusterStage) {
    let id = stage.run("alice", "u1").await;
    stage
        .wait_for("the agent is listed", async || {
            let listed = stage.engine.list(stage.owner(), None).await.unwrap();
            let mut listed = listed.iter();
            listed.any(|it| it.id == id && it.state == ContainerState::Running)
        })
        .await;
}

#[tokio::test]
async fn image_of_a_tag_is_pulled_to_the_node_of_an_agent() {
    let stage = stage().await;
    run_agent(&stage).await;
    let image = stage.engine.image(ECHO).await.unwrap().unwrap();
    assert!(
        image.id.starts_with("10.90.0.1:5000/agents/echo@sha256:"),
        "{image:?}"
    );
    assert!(!image.is_local, "no agent has it");
    let events = pull_image(&stage, ECHO).await.unwrap();
    let last = events.last().unwrap();
    assert_eq!(last.status, "1 of 1 node has the image", "{events:?}");
    assert!(
        events.iter().any(|event| event.status == "Pull complete"),
        "{events:?}"
    );
    assert_eq!(pullers(&stage).await, [""; 0]);
    assert!(stage.engine.image(ECHO).await.unwrap().unwrap().is_local);
    assert_eq!(
        stage.engine.list(stage.owner(), None).await.unwrap().len(),
        1
    );

    // An agent of it is what was asked for, and shows in the inventory.
    let mut settings = stage.settings("u2");
    settings.image.clone_from(&image.id);
    let id = stage
        .engine
        .create(&stage.name("bob"), &settings)
        .await
        .unwrap();
    stage.engine.start(&id).await.unwrap();
    let seen = stage
        .until(&id, |seen| seen.container.state == ContainerState::Running)
        .await;
    assert_eq!(
        (&seen.settings.image, &seen.container.image_id),
        (&image.id, &image.id)
    );
    let images = stage.engine.images().await.unwrap();
    let known = images.iter().find(|known| known.id == image.id).unwrap();
    assert_eq!(known.repo_tags, [ECHO]);
    stage.strike().await;
}

#[tokio::test]
async fn missing_tag_is_none_and_a_registry_that_is_away_a_failure() {
    let stage = stage().await;
    for missing in ["10.90.0.1:5000/agents/echo:none", "10.90.0.1:5000/none:1"] {
        assert_eq!(stage.engine.image(missing).await.unwrap(), None);
        let outcome = pull_image(&stage, missing).await;
        let Err(EngineError::PullRefused(why)) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(why.contains(missing), "{why}");
    }
    for away in ["10.90.0.1:1/none:1", "nowhere.invalid/none:1"] {
        for outcome in [
            stage.engine.image(away).await.map(drop),
            pull_image(&stage, away).await.map(drop),
        ] {
            assert!(
                matches!(outcome, Err(EngineError::RegistryFailed(_))),
                "{outcome:?}"
            );
        }
    }
    stage.strike().await;
}

#[tokio::test]
async fn node_that_cannot_pull_says_why() {
    let stage = stage_of_registry(Arc::new(Promises)).await;
    run_agent(&stage).await;
    let outcome = pull_image(&stage, ECHO).await;
    let Err(EngineError::PullRefused(why)) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        why.contains("the node kube-node cannot pull it: ErrImagePull"),
        "{why}"
    );
    assert!(why.contains("not found"), "{why}");
    stage
        .wait_for("no Pod is left", async || pullers(&stage).await.is_empty())
        .await;
    stage.strike().await;
}

#[tokio::test]
async fn cancelled_pull_leaves_no_pod() {
    let stage = stage_of_registry(Arc::new(Promises)).await;
    run_agent(&stage).await;
    let mut events = stage.engine.pull("10.90.0.1:1/none:1", None).await.unwrap();
    while let Some(event) = events.next().await {
        if event.unwrap().status == "Pulling" {
            break;
        }
    }
    assert_eq!(pullers(&stage).await.len(), 1);
    // The node has tried it by then.
    let more = tokio::time::timeout(Duration::from_secs(3), events.next()).await;
    assert!(more.is_err(), "{more:?}");
    drop(events);
    stage
        .wait_for("no Pod is left", async || pullers(&stage).await.is_empty())
        .await;
    stage.strike().await;
}
