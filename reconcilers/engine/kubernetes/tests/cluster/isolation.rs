//! Isolation: policies made and mended, enforced by the plug-in of the cluster, waited for by agents, and tried.

use std::collections::BTreeSet;
use std::net::TcpListener;

use engine::{
    AgentNetwork, ContainerState, Containers, EngineError, Isolation, LABEL_OWNER, NETWORK,
    NetworkSettings, NetworkState,
};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kit::contract::engine::Stage;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use schema::condition::Reason;
use schema::config::LanAccess;
use serde_json::json;

use crate::stage::{ClusterStage, stage, stage_of};

const EGRESS: &str = "agentyard-egress";
const INGRESS: &str = "agentyard-ingress";
/// Port of the test agent's health page.
const HEALTH: u16 = 18790;

fn wanted_settings(stage: &ClusterStage) -> NetworkSettings {
    NetworkSettings {
        name: NETWORK.to_owned(),
        subnet: String::new(),
        labels: [(LABEL_OWNER.to_owned(), stage.owner().to_owned())].into(),
        isolation: Isolation {
            lan_access: LanAccess::Private,
            agent_ports: BTreeSet::from([HEALTH]),
            ..Isolation::default()
        },
    }
}

async fn state(stage: &ClusterStage) -> NetworkState {
    let network = stage.engine.network(NETWORK).await.unwrap();
    NetworkState::of(network.as_ref(), stage.owner(), |network| {
        match stage.engine.is_as_desired(network, &wanted_settings(stage)) {
            true => NetworkState::AsDesired,
            false => NetworkState::Drifted,
        }
    })
}

async fn mend_policies(stage: &ClusterStage) {
    stage
        .engine
        .mend_network(&wanted_settings(stage))
        .await
        .unwrap();
    assert_eq!(state(stage).await, NetworkState::AsDesired);
}

#[tokio::test]
async fn policies_are_made_and_mended() {
    let stage = stage().await;
    assert_eq!(state(&stage).await, NetworkState::Missing);
    mend_policies(&stage).await;
    mend_policies(&stage).await;
    let policies: Api<NetworkPolicy> = stage.api();
    policies
        .delete(EGRESS, &DeleteParams::default())
        .await
        .unwrap();
    assert_eq!(state(&stage).await, NetworkState::Drifted);
    mend_policies(&stage).await;
    for spec in [
        json!({ "podSelector": { "matchLabels": { "another": "label" } } }),
        json!({ "egress": [{}] }),
        json!({ "ingress": [{}], "policyTypes": ["Egress", "Ingress"] }),
    ] {
        let patch = Patch::Merge(json!({ "spec": spec }));
        let params = PatchParams::default();
        policies.patch(EGRESS, &params, &patch).await.unwrap();
        assert_eq!(state(&stage).await, NetworkState::Drifted, "{spec}");
        mend_policies(&stage).await;
    }
    let network = stage.engine.network(NETWORK).await.unwrap().unwrap();
    stage.engine.remove_network(&network.id).await.unwrap();
    assert_eq!(state(&stage).await, NetworkState::Missing);
    stage.engine.remove_network(&network.id).await.unwrap();
    stage.strike().await;
}

#[tokio::test]
async fn foreign_policy_is_left_alone() {
    let stage = stage().await;
    let policies: Api<NetworkPolicy> = stage.api();
    let foreign = json!({
        "metadata": { "name": INGRESS }, "spec": { "podSelector": {}, "policyTypes": ["Ingress"] },
    });
    let foreign: NetworkPolicy = serde_json::from_value(foreign).unwrap();
    policies
        .create(&PostParams::default(), &foreign)
        .await
        .unwrap();
    let found = state(&stage).await;
    assert!(matches!(found, NetworkState::Foreign(_)), "{found:?}");
    let mended = stage.engine.mend_network(&wanted_settings(&stage)).await;
    assert!(
        matches!(mended, Err(EngineError::NameTaken(_))),
        "{mended:?}"
    );
    let found = policies.get(INGRESS).await.unwrap();
    assert_eq!(found.spec.unwrap().ingress, None);
    stage.strike().await;
}

#[tokio::test]
async fn policies_of_an_administrator_are_not_written() {
    let stage = stage_of(
        "restricted",
        json!({ "network": { "managePolicies": false } }),
    )
    .await;
    mend_policies(&stage).await;
    let policies: Api<NetworkPolicy> = stage.api();
    assert_eq!(policies.get_opt(EGRESS).await.unwrap(), None);
    stage.strike().await;
}

/// Closes every connection to this port of the node, until the tests end. Another test may listen there already.
fn listen_on(port: u16) {
    let Ok(listener) = TcpListener::bind(("10.90.0.1", port)) else {
        return;
    };
    std::thread::spawn(move || listener.incoming().for_each(drop));
}

/// The address of an agent that runs.
async fn address(stage: &ClusterStage, id: &str) -> String {
    let seen = stage.see(id).await;
    seen.container.networks[NETWORK].clone().unwrap()
}

#[tokio::test]
async fn agents_reach_the_service_but_no_agent_or_cluster_address() {
    let waits = json!({ "network": { "closeSeconds": 30 } });
    let stage = stage_of("restricted", waits).await;
    mend_policies(&stage).await;
    for port in [8080, 8081] {
        listen_on(port);
    }
    let id = stage.run("other", "u2").await;
    let agent = address(&stage, &id).await;
    stage
        .wait_for("the service reaches an agent", async || {
            tokio::net::TcpStream::connect((agent.as_str(), HEALTH))
                .await
                .is_ok()
        })
        .await;
    let targets = [
        (format!("{agent} {HEALTH}"), false),
        (
            "$KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT".to_owned(),
            false,
        ),
        ("10.90.0.1 6443".to_owned(), false),
        ("169.254.169.254 80".to_owned(), false),
        ("10.90.0.1 10250".to_owned(), false),
        ("10.90.0.1 8080".to_owned(), false),
        ("10.90.0.1 53".to_owned(), true),
        ("10.90.0.1 8081".to_owned(), true),
    ];
    let mut script = "sleep 1; code=0; ".to_owned();
    let mut expected = 0;
    for (number, (target, open)) in targets.iter().enumerate() {
        let bit = 1 << number;
        script += &format!("timeout 3 nc -w 2 {target} </dev/null && code=$((code + {bit})); ");
        expected += if *open { bit } else { 0 };
    }
    let end = stage
        .run_script("tries", &format!("{script} exit $code"))
        .await;
    assert_eq!(end.exit_code, Some(expected), "{end:?}");
    stage.strike().await;
}

#[tokio::test]
async fn agent_waits_until_its_pod_is_closed() {
    let waits = json!({ "network": { "closeSeconds": 1 } });
    let stage = stage_of("restricted", waits).await;
    let id = stage.create("waits", "u1").await;
    stage.engine.start(&id).await.unwrap();
    let seen = stage
        .until(&id, |seen| seen.container.waiting.is_some())
        .await;
    assert_eq!(seen.container.state, ContainerState::Starting);
    let waiting = seen.container.waiting.unwrap();
    assert_eq!(waiting.reason, Reason::IsolationNotEnforced, "{waiting:?}");
    mend_policies(&stage).await;
    let seen = stage
        .until(&id, |seen| seen.container.state == ContainerState::Running)
        .await;
    assert_eq!(seen.container.waiting, None);
    assert_eq!(seen.settings, stage.settings("u1"));
    assert_eq!(seen.deviations, Vec::<&str>::new());
    stage.strike().await;
}

#[tokio::test]
async fn trial_finds_open_targets_only_without_policies() {
    let stage = stage().await;
    listen_on(8081);
    let id = stage.run("other", "u2").await;
    let agent = address(&stage, &id).await;
    stage
        .wait_for("the agent listens", async || {
            tokio::net::TcpStream::connect((agent.as_str(), HEALTH))
                .await
                .is_ok()
        })
        .await;
    let prove = async || {
        stage
            .engine
            .prove_isolation(&wanted_settings(&stage))
            .await
            .unwrap()
    };
    let proof = prove().await;
    eprintln!("without policies: {proof:?}");
    let expected = [
        "the API server of the cluster (10.96.0.1:443)".to_owned(),
        format!("another agent ({agent}:{HEALTH})"),
    ];
    assert_eq!(proof.open, expected);
    assert_eq!(
        proof.tolerated,
        ["the kubelet of their own node (10.90.0.1:10250)"]
    );
    mend_policies(&stage).await;
    let proof = prove().await;
    eprintln!("with policies: {proof:?}");
    assert_eq!(proof.open, Vec::<String>::new());
    assert_eq!(proof.unreached, Vec::<String>::new());
    assert_eq!(stage.pods().await.len(), 1, "nothing is left over");
    stage.strike().await;
}
