//! Refusals by the cluster.

use std::time::Duration;

use engine::{ContainerState, Containers, EngineError, LABEL_OWNER};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use k8s_openapi::api::rbac::v1::Role;
use kit::contract::engine::Stage;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::stage::{labels, stage};

#[tokio::test]
async fn refused_creation_leaves_nothing() {
    let stage = stage().await;
    let mut settings = stage.settings("u1");
    settings.binds[0].source = stage.home().display().to_string();
    let outcome = stage.engine.create(&stage.name("refused"), &settings).await;
    assert!(
        matches!(outcome, Err(EngineError::Refused(_))),
        "{outcome:?}"
    );
    for bad in ["x", "-option", ".hidden", "a b"] {
        let outcome = stage.engine.create(bad, &stage.settings("u1")).await;
        assert!(
            matches!(outcome, Err(EngineError::Refused(_))),
            "{bad}: {outcome:?}"
        );
    }
    assert_eq!(stage.engine.list(stage.owner(), None).await.unwrap(), []);
    stage.strike().await;
}

#[tokio::test]
async fn used_up_quota_is_told_and_the_container_stays_as_it_was() {
    let stage = stage().await;
    let quota: ResourceQuota = serde_json::from_value(json!({
        "metadata": { "name": "none" }, "spec": { "hard": { "pods": "0" } },
    }))
    .unwrap();
    stage
        .api()
        .create(&PostParams::default(), &quota)
        .await
        .unwrap();
    let id = stage.create("quota", "u1").await;
    stage
        .wait_for("the quota is in force", async || {
            matches!(
                stage.engine.start(&id).await,
                Err(EngineError::QuotaExceeded(_))
            )
        })
        .await;
    assert_eq!(
        stage.see(&id).await.container.state,
        ContainerState::Created
    );
    stage.strike().await;
}

#[tokio::test]
async fn admission_policy_refuses_in_its_own_words() {
    let stage = stage().await;
    let id = stage.create("policy", "u1").await;
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
        "metadata": { "name": stage.namespace },
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"],
            }]},
            "validations": [{
                "expression": "has(object.metadata.labels) && 'cost-centre' in object.metadata.labels",
                "message": "every Pod names its cost centre",
            }],
        },
    }))
    .unwrap();
    let binding: ValidatingAdmissionPolicyBinding = serde_json::from_value(json!({
        "metadata": { "name": stage.namespace },
        "spec": {
            "policyName": stage.namespace, "validationActions": ["Deny"],
            "matchResources": { "namespaceSelector": { "matchLabels": {
                "kubernetes.io/metadata.name": stage.namespace,
            }}},
        },
    }))
    .unwrap();
    let post = PostParams::default();
    stage.cluster_api().create(&post, &policy).await.unwrap();
    stage.cluster_api().create(&post, &binding).await.unwrap();
    stage
        .wait_for("the policy is in force", async || {
            match stage.engine.start(&id).await {
                Ok(()) => {
                    stage.engine.stop(&id, Duration::ZERO).await.unwrap();
                    false
                }
                Err(EngineError::Refused(why)) => why.contains("every Pod names its cost centre"),
                Err(error) => panic!("{error:?}"),
            }
        })
        .await;
    assert!(stage.pods().await.is_empty());
    let name = stage.namespace.clone();
    let policies = stage.cluster_api::<ValidatingAdmissionPolicy>();
    let bindings = stage.cluster_api::<ValidatingAdmissionPolicyBinding>();
    stage.strike().await;
    let delete = DeleteParams::default();
    bindings.delete(&name, &delete).await.unwrap();
    policies.delete(&name, &delete).await.unwrap();
}

#[tokio::test]
async fn missing_right_is_named() {
    let stage = stage().await;
    let id = stage.create("rights", "u1").await;
    let roles: Api<Role> = stage.api();
    let patch = Patch::Merge(json!({ "rules": [
        { "apiGroups": [""], "resources": ["podtemplates"], "verbs": ["get", "list", "watch", "patch"] },
    ]}));
    roles
        .patch("agentyard", &PatchParams::default(), &patch)
        .await
        .unwrap();
    stage
        .wait_for("the right is gone", async || {
            match stage.engine.start(&id).await {
                Err(EngineError::Forbidden(why)) => why.contains("resource \"pods\""),
                _ => false,
            }
        })
        .await;
    stage.strike().await;
}

#[tokio::test]
async fn agent_that_needs_more_than_the_namespace_allows_is_refused() {
    let stage = stage().await;
    let mut settings = stage.settings("u1");
    settings.capabilities = vec!["SYS_ADMIN".to_owned()];
    let id = stage
        .engine
        .create(&stage.name("more"), &settings)
        .await
        .unwrap();
    match stage.engine.start(&id).await {
        Err(EngineError::Refused(why)) => assert!(why.contains("PodSecurity"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        stage.see(&id).await.container.state,
        ContainerState::Created
    );
    stage.strike().await;
}

#[tokio::test]
async fn pod_of_another_program_is_left_alone() {
    let stage = stage().await;
    let foreign: Pod = serde_json::from_value(json!({
        "metadata": { "name": "agent-u1" },
        "spec": {
            "automountServiceAccountToken": false,
            "containers": [{ "name": "agent", "image": "echo:1", "securityContext": {
                "allowPrivilegeEscalation": false, "runAsNonRoot": true, "runAsUser": 1000,
                "capabilities": { "drop": ["ALL"] }, "seccompProfile": { "type": "RuntimeDefault" },
            }}],
        },
    }))
    .unwrap();
    stage
        .api()
        .create(&PostParams::default(), &foreign)
        .await
        .unwrap();
    let id = stage.create("foreign", "u1").await;
    let outcome = stage.engine.start(&id).await;
    assert!(
        matches!(outcome, Err(EngineError::NameTaken(_))),
        "{outcome:?}"
    );
    stage.engine.stop(&id, Duration::ZERO).await.unwrap();
    stage.engine.remove(&id).await.unwrap();
    assert_eq!(stage.pods().await.len(), 1);
    stage.strike().await;
}

#[tokio::test]
async fn second_agent_of_a_user_is_not_started() {
    let stage = stage().await;
    let first = stage.create("first", "u1").await;
    let second = stage.create("second", "u1").await;
    let (one, two) = tokio::join!(stage.engine.start(&first), stage.engine.start(&second));
    let outcomes = [one, two];
    let started = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(started, 1, "{outcomes:?}");
    assert!(
        outcomes
            .iter()
            .any(|it| matches!(it, Err(EngineError::Conflict(_))))
    );
    assert_eq!(stage.pods().await.len(), 1);
    // Together with itself it is started once.
    let third = stage.create("third", "u3").await;
    let starts = (0..4).map(|_| stage.engine.start(&third));
    for outcome in futures::future::join_all(starts).await {
        outcome.unwrap();
    }
    assert_eq!(stage.pods().await.len(), 2);
    stage.strike().await;
}

#[tokio::test]
async fn start_waits_for_the_end_of_the_one_before() {
    let stage = stage().await;
    let mut settings = stage.settings("u1");
    let script = "trap '' TERM; while :; do sleep 1; done";
    settings.command = Some(["/bin/sh", "-c", script].map(str::to_owned).to_vec());
    let old = stage
        .engine
        .create(&stage.name("old"), &settings)
        .await
        .unwrap();
    stage.start(&old).await;
    let new = stage.create("new", "u1").await;
    let stopping = stage.engine.stop(&old, Duration::from_secs(4));
    let starting = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let early = stage.engine.start(&new).await;
        assert!(matches!(early, Err(EngineError::Conflict(_))), "{early:?}");
        let ending = stage.see(&old).await.container;
        assert_eq!(
            (ending.state, ending.waiting),
            (ContainerState::Removing, None)
        );
    };
    let (stopped, ()) = tokio::join!(stopping, starting);
    stopped.unwrap();
    stage.start(&new).await;
    assert_eq!(
        stage.see(&new).await.container.state,
        ContainerState::Running
    );
    assert_eq!(stage.see(&old).await.exit_code, Some(137));
    stage.strike().await;
}

#[tokio::test]
async fn ended_pod_of_another_container_makes_way_and_is_noted() {
    let stage = stage().await;
    let ended = stage.run_script("ended", "exit 5").await;
    let next = stage.create("next", "u1").await;
    stage.start(&next).await;
    let before = stage.see(&ended.container.id).await;
    assert_eq!(before.container.state, ContainerState::Exited);
    assert_eq!((before.exit_code, before.loss), (Some(5), None));
    assert_eq!(before.finished_at, ended.finished_at);
    stage.strike().await;
}

#[tokio::test]
async fn template_of_another_program_is_not_listed() {
    let stage = stage().await;
    let template: k8s_openapi::api::core::v1::PodTemplate = serde_json::from_value(json!({
        "metadata": { "name": "other", "labels": { "agentyard.io/owner": stage.namespace } },
        "template": { "spec": { "containers": [{ "name": "x", "image": "x" }] } },
    }))
    .unwrap();
    stage
        .api()
        .create(&PostParams::default(), &template)
        .await
        .unwrap();
    let id = stage.create("mine", "u1").await;
    let listed = stage.engine.list(stage.owner(), None).await.unwrap();
    assert_eq!(listed.iter().map(|it| &it.id).collect::<Vec<_>>(), [&id]);
    assert_eq!(
        listed[0].labels[LABEL_OWNER],
        labels(stage.owner(), "u1")[LABEL_OWNER]
    );
    stage.strike().await;
}
