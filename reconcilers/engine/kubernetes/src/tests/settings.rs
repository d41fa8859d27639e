use engine::{Container, ContainerSettings, EngineError, Limits};
use k8s_openapi::api::core::v1::{PodTemplate, PodTemplateSpec};
use serde_json::{Value, json};

use super::{merge, options, pod, settings, template_of};
use crate::convert;
use crate::{drift, read, state};

/// Drift of a container whose Pod was changed by `patch`.
fn drift_of(
    wanted: &ContainerSettings,
    template: &PodTemplate,
    patch: Value,
) -> Option<&'static str> {
    let mut running = super::agent_status("Running", json!({ "running": {} }));
    merge(&mut running, patch);
    let pod = pod(template, running);
    let now = schema::ids::Timestamp::from_millis(0);
    let details = state::details(template, Some(&pod), &[], now).unwrap();
    drift::find_drift(&details.container, Some(&details), wanted)
}

#[test]
fn settings_are_read_back_as_they_were_given() {
    let wanted = settings();
    let template = template_of(&wanted, &[]);
    assert_eq!(read::template_settings(&template), wanted);
    assert_eq!(read::settings(&template, None), wanted);
    assert_eq!(
        read::settings(&template, Some(&pod(&template, json!({})))),
        wanted
    );
    assert_eq!(read::deviations(&template), Vec::<&str>::new());
}

#[test]
fn settings_left_out_are_read_back_as_none() {
    let wanted = ContainerSettings {
        image: "agent:1".to_owned(),
        labels: settings().labels,
        network: settings().network,
        ..ContainerSettings::default()
    };
    let template = template_of(&wanted, &[]);
    assert_eq!(
        read::settings(&template, Some(&pod(&template, json!({})))),
        wanted
    );
    let agent = &template.template.unwrap().spec.unwrap().containers[0];
    assert_eq!((&agent.command, &agent.resources), (&None, &None));
}

#[test]
fn pod_passes_the_restricted_standard() {
    let template = template_of(&settings(), &[]);
    let spec = template.template.unwrap().spec.unwrap();
    let agent = serde_json::to_value(&spec.containers[0].security_context).unwrap();
    assert_eq!(
        agent,
        json!({
            "allowPrivilegeEscalation": false, "privileged": false, "runAsNonRoot": true,
            "runAsUser": 1000, "runAsGroup": 1001, "seccompProfile": { "type": "RuntimeDefault" },
            "capabilities": { "drop": ["ALL"], "add": ["NET_BIND_SERVICE"] },
        })
    );
    let spec = serde_json::to_value(&spec).unwrap();
    for (field, value) in [
        ("restartPolicy", json!("Never")),
        ("automountServiceAccountToken", json!(false)),
        ("serviceAccountName", json!("agentyard-agent")),
        ("enableServiceLinks", json!(false)),
        ("shareProcessNamespace", json!(true)),
        ("hostname", json!("alice-b")),
        ("hostNetwork", Value::Null),
        (
            "volumes",
            json!([{ "name": "claim-0", "persistentVolumeClaim": { "claimName": "data" } }]),
        ),
    ] {
        assert_eq!(spec[field], value, "{field}");
    }
    let resources = &spec["containers"][0]["resources"];
    assert_eq!(
        resources["limits"],
        json!({ "cpu": "334m", "memory": "67108864" })
    );
    assert_eq!(
        resources["requests"],
        json!({ "cpu": "167m", "memory": "33554432" })
    );
}

#[test]
fn root_agent_is_not_marked_as_non_root() {
    let settings = ContainerSettings {
        user: Some("0:0".to_owned()),
        ..settings()
    };
    let template = template_of(&settings, &[]);
    assert_eq!(
        read::template_settings(&template).user.as_deref(),
        Some("0:0")
    );
    let spec = template.template.unwrap().spec.unwrap();
    let context = spec.containers[0].security_context.clone().unwrap();
    assert_eq!(context.run_as_non_root, None);
}

#[test]
fn administrators_fields_lie_under_ours() {
    let overlay: PodTemplateSpec = serde_json::from_value(json!({
        "metadata": {
            "annotations": { "team": "blue" },
            "labels": { "team": "blue", "agentyard.io/role": "other" },
        },
        "spec": {
            "containers": [{ "name": "injected" }],
            "nodeSelector": { "pool": "agents" },
            "runtimeClassName": "gvisor",
            "imagePullSecrets": [{ "name": "registry" }],
            "restartPolicy": "Always",
            "hostNetwork": true,
            "securityContext": { "fsGroup": 7, "supplementalGroups": [5] },
        },
    }))
    .unwrap();
    let mut options = options();
    options.pods.overlay = overlay;
    let template = convert::template("a1", &settings(), &options, 0).unwrap();
    assert_eq!(read::deviations(&template), Vec::<&str>::new());
    let pod = serde_json::to_value(template.template.unwrap()).unwrap();
    assert_eq!(pod["metadata"]["annotations"]["team"], "blue");
    assert_eq!(pod["metadata"]["labels"]["team"], "blue");
    assert_eq!(pod["metadata"]["labels"]["agentyard.io/role"], "agent");
    assert_eq!(pod["spec"]["nodeSelector"]["pool"], "agents");
    assert_eq!(pod["spec"]["runtimeClassName"], "gvisor");
    assert_eq!(pod["spec"]["imagePullSecrets"][0]["name"], "registry");
    assert_eq!(pod["spec"]["restartPolicy"], "Never");
    assert_eq!(pod["spec"]["hostNetwork"], Value::Null);
    assert_eq!(pod["spec"]["securityContext"]["fsGroup"], Value::Null);
    assert_eq!(
        pod["spec"]["securityContext"]["supplementalGroups"],
        json!([5])
    );
    assert_eq!(pod["spec"]["containers"].as_array().map(Vec::len), Some(1));
}

#[rstest::rstest]
#[case::host_path(|it: &mut ContainerSettings| it.binds[0].source = "/srv/alice".to_owned())]
#[case::user_name(|it: &mut ContainerSettings| it.user = Some("alice".to_owned()))]
#[case::negative_user(|it: &mut ContainerSettings| it.user = Some("-1:0".to_owned()))]
fn settings_without_a_meaning_here_are_refused(#[case] change: fn(&mut ContainerSettings)) {
    let mut settings = settings();
    change(&mut settings);
    let made = convert::template("a1", &settings, &options(), 0);
    assert!(matches!(made, Err(EngineError::Refused(_))), "{made:?}");
}

#[rstest::rstest]
#[case::nothing(json!({}))]
#[case::limits_of_a_namespace(json!({ "spec": { "overhead": { "memory": "1Mi" } } }))]
#[case::tolerations(json!({ "spec": { "tolerations": [{ "key": "x", "operator": "Exists" }] } }))]
#[case::priority(json!({ "spec": { "priority": 7, "preemptionPolicy": "Never" } }))]
#[case::annotations(json!({ "metadata": { "annotations": { "mesh": "on" }, "labels": { "x": "y" } } }))]
fn admission_beside_the_agent_is_no_drift(#[case] patch: Value) {
    let template = template_of(&settings(), &[]);
    assert_eq!(drift_of(&settings(), &template, patch), None);
}

#[test]
fn limit_range_defaults_are_no_drift() {
    let wanted = ContainerSettings {
        nano_cpus: 0,
        memory_bytes: 0,
        ..settings()
    };
    let template = template_of(&wanted, &[]);
    let mut containers =
        serde_json::to_value(&template.template.clone().unwrap().spec.unwrap().containers).unwrap();
    containers[0]["resources"] = json!({
        "limits": { "cpu": "500m", "memory": "512Mi" }, "requests": { "cpu": "500m", "memory": "512Mi" },
    });
    let patch = json!({ "spec": { "containers": containers } });
    assert_eq!(drift_of(&wanted, &template, patch), None);
}

#[test]
fn injected_sidecar_and_mirrored_image_are_no_drift() {
    let template = template_of(&settings(), &[]);
    let spec = template.template.clone().unwrap().spec.unwrap();
    let mut containers = serde_json::to_value(&spec.containers).unwrap();
    containers[0]["image"] = json!("mirror:5000/hub/agent@sha256:aa");
    containers[0]["env"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "name": "MESH", "value": "1" }));
    let token =
        json!({ "name": "kube-api-access", "mountPath": "/var/run/secrets", "readOnly": true });
    containers[0]["volumeMounts"]
        .as_array_mut()
        .unwrap()
        .push(token);
    let sidecar =
        json!({ "name": "sidecar", "image": "mesh:1", "securityContext": { "privileged": true } });
    containers.as_array_mut().unwrap().insert(0, sidecar);
    let patch = json!({ "spec": { "containers": containers } });
    assert_eq!(drift_of(&settings(), &template, patch), None);
}

#[rstest::rstest]
#[case("image", json!("registry.example.org/agent@sha256:bb"), "image")]
#[case("command", json!(["sleep"]), "command")]
#[case("resources", json!({ "limits": { "cpu": "334m", "memory": "48Mi" } }), "memory limit")]
#[case("resources", json!({ "limits": { "cpu": "2", "memory": "64Mi" } }), "cpu limit")]
#[case("securityContext", json!({ "runAsUser": 7, "capabilities": { "add": ["NET_BIND_SERVICE"] } }), "user")]
#[case("securityContext", json!({ "runAsUser": 1000, "runAsGroup": 1001 }), "capabilities")]
#[case("volumeMounts", json!([]), "mounts")]
fn contradiction_in_the_agents_container_is_drift(
    #[case] field: &str,
    #[case] value: Value,
    #[case] expected: &str,
) {
    let template = template_of(&settings(), &[]);
    let spec = template.template.clone().unwrap().spec.unwrap();
    let mut containers = serde_json::to_value(&spec.containers).unwrap();
    containers[0][field] = value;
    let patch = json!({ "spec": { "containers": containers } });
    assert_eq!(drift_of(&settings(), &template, patch), Some(expected));
}

#[rstest::rstest]
#[case(json!({ "restartPolicy": "Always" }), "restart_policy")]
#[case(json!({ "hostNetwork": true }), "host_network")]
#[case(json!({ "shareProcessNamespace": false }), "init")]
#[case(json!({ "automountServiceAccountToken": true }), "service_account_token")]
fn template_changed_by_hand_is_drift(#[case] patch: Value, #[case] expected: &str) {
    let mut template = serde_json::to_value(template_of(&settings(), &[])).unwrap();
    merge(&mut template["template"]["spec"], patch);
    let template: PodTemplate = serde_json::from_value(template).unwrap();
    let now = schema::ids::Timestamp::from_millis(0);
    let details = state::details(&template, None, &[], now).unwrap();
    assert_eq!(details.deviations, [expected]);
    let drift = drift::find_drift(&details.container, Some(&details), &settings());
    assert_eq!(drift, Some(expected));
}

#[test]
fn another_generation_of_settings_is_no_drift() {
    let template = template_of(&settings(), &[]);
    let mut wanted = settings();
    wanted.image = "other".to_owned();
    wanted.labels.clear();
    assert_eq!(drift_of(&wanted, &template, json!({})), None);
    assert_eq!(
        drift_of(
            &ContainerSettings {
                labels: settings().labels,
                ..wanted
            },
            &template,
            json!({})
        ),
        Some("image")
    );
}

#[test]
fn limits_of_processes_and_logs_are_not_compared() {
    let template = template_of(&settings(), &[]);
    let mut wanted = settings();
    wanted.pids_limit = 7;
    wanted.log.max_files = 9;
    assert_eq!(drift_of(&wanted, &template, json!({})), None);
    assert_eq!(
        drift::find_drift(&Container::default(), None, &wanted),
        Some("network")
    );
    let limits = Limits {
        pids: false,
        ..Limits::ALL
    };
    assert_eq!(limits.enforceable(&wanted).pids_limit, 0);
}
