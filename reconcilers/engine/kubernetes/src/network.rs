//! The agents' network: the two policies of [`Policies`], which select agents' Pods by labels.
//!
//! They are changed in place: a Pod never sees a moment without them.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use engine::{
    AgentNetwork, EngineError, Isolation, IsolationProof, LABEL_OWNER, Network, NetworkSettings,
    Reach,
};
use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicySpec};
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use schema::config::{HostAccess, LanAccess};
use serde::Serialize;
use serde_json::{Value, json};

use super::failure::ignore_missing;
use super::objects::delete_params;
use super::policies::{self, Policies};
use super::{KubernetesEngine, names, read};

/// Label of Pods: what runs in them.
pub(crate) const ROLE: &str = "agentyard.io/role";
/// Value of [`ROLE`] of an agent's Pod.
pub(crate) const AGENT: &str = "agent";
/// Value of [`ROLE`] of a Pod that brings an image to a node.
pub(crate) const PULLER: &str = "puller";

/// Value of [`ROLE`] of a Pod that runs an errand of the service.
pub(crate) const ERRAND: &str = "errand";

/// Ends of the policies' names: for connections to agents, and of agents.
const ENDS: [&str; 2] = ["ingress", "egress"];

fn policy_names(network: &str) -> [String; 2] {
    ENDS.map(|end| format!("{network}-{end}"))
}

fn json(value: &impl Serialize) -> Result<Value, EngineError> {
    serde_json::to_value(value).map_err(|error| EngineError::Internal(error.to_string()))
}

impl KubernetesEngine {
    fn policies(&self, isolation: &Isolation) -> Policies {
        Policies::new(&self.owner, isolation, &self.options.network)
    }

    async fn policy(&self, name: &str) -> Result<Option<NetworkPolicy>, EngineError> {
        let read = self.cluster.read(self.cluster.policies.get(name)).await;
        ignore_missing(read)
    }

    /// Makes or changes one policy.
    async fn mend_policy(
        &self,
        name: &str,
        labels: &BTreeMap<String, String>,
        spec: NetworkPolicySpec,
    ) -> Result<(), EngineError> {
        let Some(policy) = self.policy(name).await? else {
            let wanted = NetworkPolicy {
                metadata: ObjectMeta {
                    name: Some(name.to_owned()),
                    labels: Some(names::object_labels(labels)),
                    annotations: Some(BTreeMap::from([(
                        names::LABELS.to_owned(),
                        json(labels)?.to_string(),
                    )])),
                    ..ObjectMeta::default()
                },
                spec: Some(spec),
            };
            let params = PostParams::default();
            let creating = self.cluster.policies.create(&params, &wanted);
            return match self.cluster.write(creating).await {
                // Made between the two calls.
                Err(EngineError::NameTaken(why)) => Err(EngineError::Conflict(why)),
                created => created.map(|_| ()),
            };
        };
        if read::labels(&policy.metadata).get(LABEL_OWNER) != labels.get(LABEL_OWNER) {
            return Err(EngineError::NameTaken(format!(
                "a NetworkPolicy named {name} exists that Agentyard does not own"
            )));
        }
        let found = json(&policy.spec)?;
        let wanted = json(&spec)?;
        let Some(change) = policies::change(&found, &wanted) else {
            return Ok(());
        };
        let version = policy.metadata.resource_version.as_deref();
        let patch = json!({ "metadata": { "resourceVersion": version }, "spec": change });
        let patch = Patch::Merge(patch);
        let params = PatchParams::default();
        let patching = self.cluster.policies.patch(name, &params, &patch);
        self.cluster.write(patching).await.map(|_| ())
    }
}

#[async_trait]
impl AgentNetwork for KubernetesEngine {
    async fn network(&self, name: &str) -> Result<Option<Network>, EngineError> {
        let mut network = Network {
            id: name.to_owned(),
            name: name.to_owned(),
            driver: "networkpolicy".to_owned(),
            subnet: None,
            gateway: None,
            inter_container_traffic: false,
            policies: String::new(),
            labels: BTreeMap::from([(LABEL_OWNER.to_owned(), self.owner.clone())]),
            containers: Vec::new(),
        };
        // An administrator makes them, by whatever names.
        if !self.options.network.manage_policies {
            return Ok(Some(network));
        }
        let [ingress, egress] = policy_names(name);
        let (ingress, egress) = tokio::try_join!(self.policy(&ingress), self.policy(&egress))?;
        let there = || [&ingress, &egress].into_iter().flatten();
        if there().count() == 0 {
            return Ok(None);
        }
        let is_foreign = |labels: &BTreeMap<_, _>| labels.get(LABEL_OWNER) != Some(&self.owner);
        let mut labels = there().map(|policy| read::labels(&policy.metadata));
        if let Some(foreign) = labels.find(is_foreign) {
            network.labels = foreign;
        }
        let uids = there().filter_map(|policy| policy.metadata.uid.clone());
        network.id = uids.collect::<Vec<String>>().join(".");
        let spec = |policy: &Option<NetworkPolicy>| policy.as_ref().and_then(|it| it.spec.clone());
        network.policies = policies::digest(spec(&ingress).as_ref(), spec(&egress).as_ref());
        Ok(Some(network))
    }

    async fn create_network(&self, settings: &NetworkSettings) -> Result<(), EngineError> {
        self.mend_network(settings).await
    }

    fn mends_in_place(&self) -> bool {
        true
    }

    async fn mend_network(&self, settings: &NetworkSettings) -> Result<(), EngineError> {
        if !self.options.network.manage_policies {
            return Ok(());
        }
        let Policies { ingress, egress } = self.policies(&settings.isolation);
        let [ingress_name, egress_name] = policy_names(&settings.name);
        let labels = &settings.labels;
        Box::pin(self.mend_policy(&ingress_name, labels, ingress)).await?;
        Box::pin(self.mend_policy(&egress_name, labels, egress)).await
    }

    async fn remove_network(&self, id: &str) -> Result<(), EngineError> {
        for name in policy_names(engine::NETWORK) {
            let Some(policy) = self.policy(&name).await? else {
                continue;
            };
            let uid = policy.metadata.uid.unwrap_or_default();
            if !id.split('.').any(|part| part == uid) {
                continue;
            }
            let params = delete_params(&uid);
            let deleting = self.cluster.policies.delete(&name, &params);
            ignore_missing(self.cluster.write(deleting).await)?;
        }
        Ok(())
    }

    fn is_as_desired(&self, network: &Network, wanted: &NetworkSettings) -> bool {
        let is_open = wanted.isolation.lan_access == LanAccess::Open;
        self.is_open.store(is_open, Ordering::Relaxed);
        !self.options.network.manage_policies
            || network.policies == self.policies(&wanted.isolation).digest()
    }

    fn agents_reach_us(&self, _network: &Network) -> Option<Reach> {
        Some(Reach::Url(self.options.network.service_url.clone()))
    }

    /// Policies have no host to close.
    fn effective_access(&self, host: HostAccess, lan: LanAccess) -> (HostAccess, LanAccess) {
        match self.options.network.manage_policies {
            true => (HostAccess::Open, policies::opened_networks(lan)),
            false => (host, lan),
        }
    }

    fn proves_isolation(&self) -> bool {
        true
    }

    async fn prove_isolation(
        &self,
        settings: &NetworkSettings,
    ) -> Result<IsolationProof, EngineError> {
        Box::pin(self.try_isolation(&settings.isolation)).await
    }
}
