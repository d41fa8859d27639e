//! Properties of a cluster that an administrator, or the chart, writes into one file.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::checked;

/// The file of `--engine-options`, in YAML, which [`Options::read`] reads.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Options {
    /// A file as kubectl has it; without one the service account of the service's own Pod is used.
    pub kubeconfig: Option<PathBuf>,
    /// Namespace of the agents; without one that of the service account.
    pub namespace: Option<String>,
    /// Directory that the service and the agents mount.
    pub data: DataOptions,
    /// Image of the service, for Pods and init containers that run its program beside agents.
    #[serde(deserialize_with = "checked::filled")]
    pub image: String,
    /// Path of that program in that image.
    #[serde(default = "program")]
    pub program: String,
    /// Reach of agents.
    pub network: NetworkOptions,
    /// Properties of agents' Pods.
    #[serde(default)]
    pub pods: PodOptions,
}

fn program() -> String {
    "/usr/bin/agentyard".to_owned()
}

/// The data directory, as agents' Pods mount parts of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DataOptions {
    /// Name of the claim, in the agents' namespace.
    #[serde(deserialize_with = "checked::object_name")]
    pub claim: String,
    /// Folder of the claim that is the data directory; empty: all of it.
    #[serde(default, deserialize_with = "checked::folder")]
    pub path: String,
}

/// Reach of agents.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkOptions {
    /// Writes the policies; `false`: an administrator does, and they are only tried.
    #[serde(default = "yes")]
    pub manage_policies: bool,
    /// URL at which agents reach the service.
    #[serde(deserialize_with = "checked::service_url")]
    pub service_url: String,
    /// Labels of the service's Pods, which policies select; empty where it does not run in a Pod.
    #[serde(default)]
    pub service_labels: BTreeMap<String, String>,
    /// Networks from which the service calls agents and at which they reach it, where it does not run in a Pod.
    #[serde(default, deserialize_with = "checked::networks")]
    pub service_networks: Vec<String>,
    /// Port of the service for agents, as its Pods have it.
    #[serde(default = "agent_port")]
    pub service_port: u16,
    /// Name servers; without any those of the service's own `resolv.conf`.
    #[serde(default)]
    pub name_servers: Vec<IpAddr>,
    /// Labels of the Pods, in whichever namespace, that serve names where that is a service of the cluster; empty: none.
    #[serde(default = "name_server_labels")]
    pub name_server_labels: BTreeMap<String, String>,
    /// Networks of the cluster, in CIDR form, which agents do not reach in addition to private and link-local ones.
    #[serde(default, deserialize_with = "checked::networks")]
    pub closed: Vec<String>,
    /// The proxy by which agents reach the internet; without one they reach it directly.
    #[serde(default)]
    pub proxy: Option<SocketAddr>,
    /// Seconds after which an agent's Pod that still reaches a forbidden address is said to be open; it waits on, and its agent does
    /// not start before. 0: agents start without waiting.
    #[serde(default = "close_seconds")]
    pub close_seconds: u32,
}

fn yes() -> bool {
    true
}

fn agent_port() -> u16 {
    8081
}

fn name_server_labels() -> BTreeMap<String, String> {
    BTreeMap::from([("k8s-app".to_owned(), "kube-dns".to_owned())])
}

fn close_seconds() -> u32 {
    30
}

/// Properties of agents' Pods.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodOptions {
    /// Service account of agents, which has no rights and whose token is not mounted; without one the namespace's default one.
    pub service_account: Option<String>,
    /// Part of the limits that the scheduler sets aside, in percent.
    #[serde(deserialize_with = "checked::percent")]
    pub requested_percent: u8,
    /// Fields that apply where Agentyard's leave something open: node selector, tolerations, affinity, runtime and priority class, pull
    /// secrets, annotations, labels. A change of it replaces agents as a change of their image does.
    pub overlay: PodTemplateSpec,
}

impl PodOptions {
    /// A digest of all that agents' Pods are made with.
    pub(crate) fn digest(&self) -> String {
        // Keys of these objects are sorted, and values that are not set are left out.
        let overlay = serde_json::json!({
            "overlay": self.overlay,
            "requestedPercent": self.requested_percent,
            "serviceAccount": self.service_account,
        });
        hex::encode(Sha256::digest(overlay.to_string()))
    }
}

impl Default for PodOptions {
    fn default() -> Self {
        Self {
            service_account: None,
            requested_percent: 50,
            overlay: PodTemplateSpec::default(),
        }
    }
}
