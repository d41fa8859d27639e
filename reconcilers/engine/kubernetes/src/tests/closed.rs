//! Pods of ours beside agents, and the wait for the cluster's policies.

use std::collections::BTreeMap;

use engine::ContainerState;
use k8s_openapi::api::core::v1::VolumeMount;
use schema::condition::Reason;
use serde_json::{Value, json};

use super::states::{START, details, details_at};
use super::{options, settings, template_of};
use crate::names::STARTED;
use crate::pods::{Errand, errand_pod};

/// The status of a Pod whose first container is in this state.
fn first_container(phase: &str, state: Value) -> Value {
    json!({ "status": { "phase": phase, "initContainerStatuses": [
        { "name": "agentyard-closed", "image": "w", "imageID": "", "ready": false, "restartCount": 0, "state": state },
    ], "containerStatuses": [
        { "name": "agent", "image": "a", "imageID": "", "ready": false, "restartCount": 0,
          "state": { "waiting": { "reason": "PodInitializing" } } },
    ]}})
}

#[test]
fn agents_pod_begins_with_a_wait_as_the_agent() {
    let spec = template_of(&settings(), &[])
        .template
        .unwrap()
        .spec
        .unwrap();
    let first = serde_json::to_value(&spec.init_containers.unwrap()[0]).unwrap();
    let address = "$(KUBERNETES_SERVICE_HOST):$(KUBERNETES_SERVICE_PORT)";
    assert_eq!(first["command"], json!(["/usr/bin/agentyard"]));
    assert_eq!(
        first["args"],
        json!(["pod", "wait-closed", "--seconds", "30", address])
    );
    assert_eq!(
        first["securityContext"],
        json!({
            "allowPrivilegeEscalation": false, "privileged": false, "runAsNonRoot": true,
            "runAsUser": 1000, "runAsGroup": 1001, "seccompProfile": { "type": "RuntimeDefault" },
            "capabilities": { "drop": ["ALL"] }, "readOnlyRootFilesystem": true,
        })
    );
    let agent = serde_json::to_value(&spec.containers[0].resources).unwrap();
    assert_eq!(first["resources"], agent, "no quota counts it besides");
}

#[test]
fn pod_that_may_reach_everything_does_not_wait() {
    let mut pod = super::pod(&template_of(&settings(), &[]), json!({}));
    crate::closed::remove_wait(&mut pod);
    assert_eq!(pod.spec.unwrap().init_containers, Some(Vec::new()));
}

#[test]
fn pod_of_an_old_template_waits_with_the_image_of_now() {
    let mut pod = super::pod(&template_of(&settings(), &[]), json!({}));
    let mut options = options();
    options.image = "registry.example.org/agentyard:2".to_owned();
    options.network.close_seconds = 7;
    crate::closed::renew_wait(&mut pod, &options);
    let first = pod.spec.clone().unwrap().init_containers.unwrap().remove(0);
    assert_eq!(
        first.image.as_deref(),
        Some("registry.example.org/agentyard:2")
    );
    assert_eq!(first.args.unwrap()[3], "7");
    let user = first.security_context.unwrap().run_as_user;
    assert_eq!(user, Some(1000), "it is still the agent's");
    options.network.close_seconds = 0;
    crate::closed::renew_wait(&mut pod, &options);
    assert_eq!(pod.spec.unwrap().init_containers, Some(Vec::new()));
}

#[test]
fn wait_that_is_turned_off_is_not_there() {
    let mut options = options();
    options.network.close_seconds = 0;
    let template = crate::convert::template("agentyard-a", &settings(), &options, 0).unwrap();
    let spec = template.template.unwrap().spec.unwrap();
    assert_eq!(spec.init_containers, None);
}

#[test]
fn pod_that_stays_open_says_so_after_a_while() {
    let running = || first_container("Pending", json!({ "running": { "startedAt": START } }));
    let at = |now: &str| {
        let seen = details_at(&[(STARTED, START)], Some(running()), now).container;
        assert_eq!(seen.state, ContainerState::Starting);
        seen.waiting.map(|waiting| waiting.reason)
    };
    assert_eq!(at("2026-01-01T00:01:30Z"), None);
    let open = Some(Reason::IsolationNotEnforced);
    assert_eq!(at("2026-01-01T00:01:31Z"), open);
}

#[test]
fn first_container_that_fails_says_why_the_agent_never_ran() {
    let failed = json!({ "terminated": {
        "exitCode": 128, "reason": "StartError", "message": "no such file", "finishedAt": "2026-01-01T00:01:09Z",
    }});
    let seen = details(&[(STARTED, START)], Some(first_container("Failed", failed)));
    assert_eq!(seen.container.state, ContainerState::Exited);
    assert_eq!(
        seen.error,
        "the container agentyard-closed, which runs before the agent, ended with exit code 128: no such file"
    );
    assert!(seen.finished_at.is_some() && seen.exit_code.is_none());
}

#[test]
fn first_container_that_cannot_be_made_is_a_failed_start() {
    let waiting = json!({ "waiting": { "reason": "CreateContainerError", "message": "x" } });
    let seen = details(
        &[(STARTED, START)],
        Some(first_container("Pending", waiting)),
    );
    assert_eq!(seen.container.state, ContainerState::Created);
    assert_eq!(seen.error, "CreateContainerError: x");
}

#[test]
fn errand_passes_the_restricted_standard() {
    let errand = Errand {
        kind: "home",
        labels: BTreeMap::new(),
        args: vec!["pod".to_owned()],
        mount: Some((
            "data".to_owned(),
            VolumeMount {
                name: "claim".to_owned(),
                mount_path: "/agentyard".to_owned(),
                ..VolumeMount::default()
            },
        )),
    };
    let mut options = options();
    let overlay = json!({
        "metadata": { "annotations": { "a": "b" } },
        "spec": { "nodeSelector": { "c": "d" }, "hostNetwork": true, "containers": [{ "name": "x" }] },
    });
    options.pods.overlay = serde_json::from_value(overlay).unwrap();
    let pod = errand_pod(&errand, "me", "agentyard-home-1", (1000, 1001), &options);
    let pod = serde_json::to_value(pod).unwrap();
    assert_eq!(pod["metadata"]["annotations"], json!({ "a": "b" }));
    assert_eq!(
        pod["metadata"]["labels"],
        json!({
            "agentyard.io/owner": "me", "agentyard.io/errand": "home",
            "app.kubernetes.io/managed-by": "agentyard",
        })
    );
    let spec = &pod["spec"];
    for (field, value) in [
        ("restartPolicy", json!("Never")),
        ("automountServiceAccountToken", json!(false)),
        ("hostNetwork", Value::Null),
        ("nodeSelector", json!({ "c": "d" })),
        (
            "volumes",
            json!([{ "name": "claim", "persistentVolumeClaim": { "claimName": "data" } }]),
        ),
    ] {
        assert_eq!(spec[field], value, "{field}");
    }
    let container = &spec["containers"][0];
    assert_eq!(container["image"], "registry.example.org/agentyard:1");
    let context = &container["securityContext"];
    assert_eq!(
        (&context["runAsUser"], &context["runAsNonRoot"]),
        (&json!(1000), &json!(true))
    );
}
