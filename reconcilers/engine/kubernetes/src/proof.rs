//! The trial of what agents reach, from a Pod with their labels.

use engine::{EngineError, Isolation, IsolationProof};
use http::Uri;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use schema::config::LanAccess;

use super::closed::API_SERVER;
use super::names::{ERRAND, UID};
use super::network::{AGENT, ROLE};
use super::options::NetworkOptions;
use super::pod::Findings;
use super::pods::{Errand, NODE};
use super::{KubernetesEngine, names, policies};

const KIND: &str = "isolation";
const CONSOLE: &str = "the console of Agentyard";
/// Address at which clouds tell machines their secrets.
const METADATA: &str = "169.254.169.254:80";
/// Port of the kubelet.
const KUBELET: u16 = 10250;
/// Most agents among which one is looked for that runs.
const AGENTS: u32 = 20;

/// The errand that tries everything. `agent` is the address of another agent, `own` the service's own Pod. Pure.
fn errand(
    labels: std::collections::BTreeMap<String, String>,
    isolation: &Isolation,
    options: &NetworkOptions,
    (agent, own): (Option<&str>, Option<&Pod>),
) -> Errand {
    let mut args = vec!["pod".to_owned(), "probe".to_owned()];
    let mut add = |option: &str, name: &str, address: String| {
        args.extend([option.to_owned(), format!("{name}={address}")]);
    };
    let closed = "--closed";
    add(
        closed,
        "the API server of the cluster",
        API_SERVER.to_owned(),
    );
    if isolation.lan_access != LanAccess::Open {
        add(
            closed,
            "the metadata service of the cloud",
            METADATA.to_owned(),
        );
    }
    for port in &isolation.agent_ports {
        if let Some(ip) = agent {
            add(closed, "another agent", format!("{ip}:{port}"));
        }
    }
    for address in own.map(console).unwrap_or_default() {
        if !address.ends_with(&format!(":{}", options.service_port)) {
            add(closed, CONSOLE, address);
        }
    }
    add(
        "--tolerated",
        "the kubelet of their own node",
        format!("$({NODE}):{KUBELET}"),
    );
    let configured = isolation.service.as_ref();
    let configured = configured.map(|(host, port)| format!("{host}:{port}"));
    if let Some(address) = configured.or_else(|| address_of(&options.service_url)) {
        add("--open", "Agentyard's address for agents", address);
    }
    for server in &options.name_servers {
        add("--name-server", "the name server", format!("{server}:53"));
    }
    Errand {
        kind: KIND,
        labels,
        args,
        mount: None,
    }
}

/// Targets that must be closed and could not be tried, since they have no address now. Pure.
fn untried(agent: Option<&str>, own: Option<&Pod>) -> Vec<String> {
    let is_silent = own.map(console).unwrap_or_default().is_empty();
    let targets = [
        (agent.is_none(), "another agent (none runs)"),
        (is_silent, CONSOLE),
    ];
    let untried = targets.into_iter().filter(|(is_untried, _)| *is_untried);
    untried.map(|(_, name)| name.to_owned()).collect()
}

/// Addresses at which a Pod of the service listens.
fn console(pod: &Pod) -> Vec<String> {
    let ip = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let ports = containers.flat_map(|container| container.ports.iter().flatten());
    let tcp = ports.filter(|port| port.protocol.as_deref().is_none_or(|it| it == "TCP"));
    let addresses = ip.into_iter().flat_map(|ip| {
        tcp.clone()
            .map(move |port| format!("{ip}:{}", port.container_port))
    });
    addresses.collect()
}

fn address_of(url: &str) -> Option<String> {
    let url: Uri = url.parse().ok()?;
    let port = match url.scheme_str() {
        Some("https") => 443,
        _ => 80,
    };
    Some(format!(
        "{}:{}",
        url.host()?,
        url.port_u16().unwrap_or(port)
    ))
}

impl KubernetesEngine {
    pub(crate) async fn try_isolation(
        &self,
        isolation: &Isolation,
    ) -> Result<IsolationProof, EngineError> {
        let agent = self.some_agent().await?;
        let own = self.service_pod().await?;
        let labels = policies::agent_labels(&self.owner);
        let targets = (agent.as_deref(), own.as_ref());
        let errand = errand(labels, isolation, &self.options.network, targets);
        let report = Box::pin(self.run_errand(&errand)).await?;
        let found: Result<Findings, _> = serde_json::from_str(&report.message);
        let found = found.map_err(|_| {
            EngineError::Internal(format!(
                "the Pod that tries what agents reach ended with exit code {}",
                report.exit_code
            ))
        })?;
        Ok(IsolationProof {
            open: found.open,
            tolerated: found.tolerated,
            unreached: found.unreached,
            untried: untried(agent.as_deref(), own.as_ref()),
        })
    }

    /// The address of an agent that runs.
    async fn some_agent(&self) -> Result<Option<String>, EngineError> {
        let owner = names::label_value(&self.owner);
        let selector = format!("{}={owner},{ROLE}={AGENT},{UID},!{ERRAND}", names::OWNER);
        let params = ListParams::default().labels(&selector).limit(AGENTS);
        let pods = self.cluster.read(self.cluster.pods.list(&params)).await?;
        let running = pods
            .items
            .into_iter()
            .filter(|pod| super::reason::progress(pod) == super::reason::Progress::Running);
        let mut addresses = running.filter_map(|pod| pod.status?.pod_ip);
        Ok(addresses.next())
    }
}
