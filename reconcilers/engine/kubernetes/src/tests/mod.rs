//! Tables of the pure parts.

mod cache;
mod causes;
mod closed;
mod double;
mod failures;
mod images;
mod policies;
mod pulls;
mod server;
mod settings;
mod states;

use std::collections::BTreeMap;

use engine::{
    Bind, ContainerSettings, LABEL_OWNER, LABEL_SPEC_DIGEST, LABEL_UID, LogLimits, NETWORK, Probe,
};
use k8s_openapi::api::core::v1::{Pod, PodTemplate};
use serde_json::{Value, json};

use crate::names::Id;
use crate::objects::pod_of;
use crate::{Options, convert};

/// Settings that use every field.
fn settings() -> ContainerSettings {
    let map = |pairs: &[(&str, &str)]| {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect::<BTreeMap<_, _>>()
    };
    ContainerSettings {
        image: "registry.example.org/agent@sha256:aa".to_owned(),
        command: Some(vec!["agent".to_owned(), "$(HOME) $$x".to_owned()]),
        environment: map(&[("HOME", "/home/agent"), ("PRICE", "$5 $(HOME) $$")]),
        labels: map(&[
            (LABEL_OWNER, "instance"),
            (LABEL_UID, "u1"),
            (LABEL_SPEC_DIGEST, &"d".repeat(64)),
        ]),
        user: Some("1000:1001".to_owned()),
        hostname: Some("Alice-B".to_owned()),
        binds: vec![
            Bind {
                source: "data:skills/alice".to_owned(),
                target: "/a".to_owned(),
                read_only: true,
            },
            Bind {
                source: "data:users/Alice_B".to_owned(),
                target: "/home/agent".to_owned(),
                read_only: false,
            },
        ],
        network: NETWORK.to_owned(),
        nano_cpus: 333_333_333,
        memory_bytes: 64 << 20,
        pids_limit: 50,
        capabilities: vec!["NET_BIND_SERVICE".to_owned()],
        log: LogLimits {
            max_size_mb: 2,
            max_files: 4,
        },
        probe: Some(Probe {
            port: 8080,
            path: "/health".to_owned(),
        }),
        overlay: Some("0a".to_owned()),
    }
}

fn options() -> Options {
    serde_json::from_value(json!({
        "data": { "claim": "data" },
        "image": "registry.example.org/agentyard:1",
        "network": { "serviceUrl": "http://agentyard-agents:8081" },
        "pods": { "serviceAccount": "agentyard-agent" },
    }))
    .unwrap()
}

fn id() -> Id {
    Id {
        template: "agent-u1-0123abcd".to_owned(),
        uid: "t1".to_owned(),
    }
}

/// The template of settings as the API server returns it, with these annotations besides.
fn template_of(settings: &ContainerSettings, annotations: &[(&str, &str)]) -> PodTemplate {
    let mut template = convert::template("agentyard-Alice_B", settings, &options(), 0).unwrap();
    let metadata = json!({
        "name": id().template, "uid": id().uid, "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    });
    let added = serde_json::from_value::<PodTemplate>(json!({ "metadata": metadata })).unwrap();
    let own = template.metadata;
    template.metadata = added.metadata;
    template.metadata.labels = own.labels;
    let mut all = own.annotations.unwrap_or_default();
    all.extend(
        annotations
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned())),
    );
    template.metadata.annotations = Some(all);
    template
}

/// The Pod of a template, changed by a patch as admission and nodes do.
fn pod(template: &PodTemplate, patch: Value) -> Pod {
    let mut pod = serde_json::to_value(pod_of(template, &id()).unwrap()).unwrap();
    merge(
        &mut pod,
        json!({ "metadata": {
            "uid": "p1", "resourceVersion": "9", "creationTimestamp": "2026-01-01T00:01:00Z",
        }}),
    );
    merge(&mut pod, patch);
    serde_json::from_value(pod).unwrap()
}

/// Merges objects; everything else is replaced.
fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, patch) => *target = patch,
    }
}

/// The status of a Pod whose agent is in this state.
fn agent_status(phase: &str, state: Value) -> Value {
    json!({ "status": {
        "phase": phase,
        "podIP": "10.0.0.9",
        "containerStatuses": [
            { "name": "sidecar", "image": "s", "imageID": "", "ready": true, "restartCount": 0,
              "state": { "running": { "startedAt": "2026-01-01T00:00:01Z" } } },
            { "name": "agent", "image": "a", "imageID": "", "ready": false, "restartCount": 0, "state": state },
        ],
    }})
}
