//! The contract of engines on the double of the API server, and what a real server cannot be made to do.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::{ContainerState, Containers};
use kit::cluster::{ClusterDouble, Manner, Refusals};
use kit::contract::engine::{Hand, Stage};
use schema::clock::SystemClock;
use schema::live::Loss;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::{KubernetesEngine, names};

const NAMESPACE: &str = "agents";

struct DoubleStage {
    double: ClusterDouble,
    engine: Arc<KubernetesEngine>,
    following: JoinHandle<()>,
    _place: tempfile::TempDir,
}

async fn stage() -> DoubleStage {
    stage_of(Manner::default()).await
}

async fn stage_of(manner: Manner) -> DoubleStage {
    let double = ClusterDouble::start(manner).await;
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("kubeconfig");
    std::fs::write(&path, double.kubeconfig(NAMESPACE).to_string()).unwrap();
    let mut options = super::options();
    options.kubeconfig = Some(path);
    let engine = KubernetesEngine::new(options, "instance", Arc::new(SystemClock)).await;
    let engine = Arc::new(engine.unwrap());
    let followed = Arc::clone(&engine);
    #[allow(clippy::disallowed_methods)]
    let following = tokio::spawn(async move { followed.follow().await });
    DoubleStage {
        double,
        engine,
        following,
        _place: place,
    }
}

impl DoubleStage {
    async fn strike(self) {
        self.following.abort();
    }

    async fn edit_template(&self, name: &str, edit: impl FnOnce(&mut serde_json::Value)) {
        let details = self.see(name).await;
        let (template, _) = details.container.id.split_once('.').unwrap();
        let place = ["podtemplates", NAMESPACE, template];
        self.double.edit(place, edit);
    }
}

impl Stage for DoubleStage {
    type Engine = KubernetesEngine;

    fn engine(&self) -> &KubernetesEngine {
        &self.engine
    }

    fn owner(&self) -> &str {
        "instance"
    }

    fn name(&self, name: &str) -> String {
        format!("agentyard-{name}")
    }

    fn network(&self) -> &str {
        engine::NETWORK
    }

    fn tiny_subnet(&self) -> String {
        panic!("networks have no subnets here")
    }

    fn home(&self) -> &Path {
        Path::new("/nowhere")
    }

    fn home_source(&self) -> String {
        "data:users/alice".to_owned()
    }

    fn user(&self) -> &str {
        "1000:1000"
    }

    async fn hand(&self, hand: Hand<'_>) {
        let Hand::LimitMemory(name, limit) = hand else {
            panic!("{hand:?} has no meaning here")
        };
        self.edit_template(name, |template| {
            let agent = &mut template["template"]["spec"]["containers"][0];
            agent["resources"]["limits"]["memory"] = json!(limit.to_string());
        })
        .await;
    }

    async fn let_speak(&self, _name: &str) {}
}

kit::contract!(
    stage(),
    tokio::test,
    [
        a_listing_shows_only_the_owners_containers_stopped_ones_included,
        l30_a_taken_name_is_reported_and_its_bearer_left_alone,
        of_many_creations_under_one_name_one_wins,
        renaming_swaps_names_and_may_be_repeated,
        two_removals_at_once_both_succeed,
        events_tell_the_life_of_owned_containers,
    ]
);

#[tokio::test]
async fn expired_watch_lists_again_and_misses_nothing() {
    let stage = stage().await;
    let id = stage.create("expired", "u1").await;
    stage.double.forget_changes();
    stage
        .edit_template(&id, |it| it["metadata"]["annotations"]["x"] = json!("y"))
        .await;
    stage.engine.start(&id).await.unwrap();
    let up = |seen: &engine::ContainerDetails| seen.container.state == ContainerState::Running;
    stage.until(&id, up).await;
    let listed = stage.engine.list("instance", None).await.unwrap();
    assert_eq!(listed[0].state, ContainerState::Running);
    stage.strike().await;
}

#[tokio::test]
async fn evicted_agent_is_never_seen_as_removed() {
    let latency = Duration::from_millis(50);
    let stage = stage_of(Manner {
        latency,
        ..Manner::default()
    })
    .await;
    let id = stage.run("evicted", "u1").await;
    // An earlier run, as a start leaves it that ended in the middle.
    let earlier = json!({ "pod": "another", "exit_code": 0 }).to_string();
    stage
        .edit_template(&id, |it| {
            it["metadata"]["annotations"][names::LAST_RUN] = json!(earlier);
        })
        .await;
    let place = ["pods", NAMESPACE, "agent-u1"];
    stage.double.edit(place, |pod| {
        pod["status"]["phase"] = json!("Failed");
        pod["status"]["reason"] = json!("Evicted");
    });
    stage.double.remove(place);
    for _ in 0..20 {
        let seen = stage.see(&id).await;
        assert_eq!(seen.container.state, ContainerState::Exited);
        assert_eq!(seen.loss, Some(Loss::Evicted));
    }
    let (_, uid) = id.split_once('.').unwrap();
    while stage.engine.cache.kept_end(uid).is_some() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(stage.see(&id).await.loss, Some(Loss::Evicted), "noted");
    stage.strike().await;
}

#[tokio::test]
async fn replacement_prefers_the_node_of_its_predecessor() {
    let stage = stage().await;
    let first = stage.run("first", "u1").await;
    let mut seen = json!(null);
    let look = |seen: &mut serde_json::Value| {
        let place = ["pods", NAMESPACE, "agent-u1"];
        stage.double.edit(place, |pod| *seen = pod.clone());
    };
    look(&mut seen);
    let node = seen["spec"]["nodeName"].clone();
    assert!(node.is_string(), "{seen}");
    let next = stage.create("next", "u1").await;
    stage.engine.stop(&first, Duration::ZERO).await.unwrap();
    stage.start(&next).await;
    look(&mut seen);
    let preferred = "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/preference/matchFields/0";
    let preferred = seen.pointer(preferred);
    assert_eq!(preferred.map(|field| &field["values"][0]), Some(&node));
    stage.strike().await;
}

#[tokio::test]
async fn refused_calls_are_repeated_and_then_told() {
    let stage = stage().await;
    stage.double.refuse(Refusals {
        status: 429,
        left: 2,
    });
    stage.create("patient", "u1").await;
    stage.double.refuse(Refusals {
        status: 429,
        left: 100,
    });
    let refused = stage.engine.list("instance", Some("u1")).await;
    assert!(refused.is_err(), "{refused:?}");
    stage.strike().await;
}
