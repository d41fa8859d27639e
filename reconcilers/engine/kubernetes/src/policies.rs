//! The policies that keep agents apart from each other and from the cluster. Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;

use cidr::IpCidr;
use engine::Isolation;
use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer,
    NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schema::config::LanAccess;
use schema::zone::Zone;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::names;
use super::network::{AGENT, ROLE};
use super::options::NetworkOptions;

/// Port of name servers.
const NAMES: u16 = 53;
/// Port of name servers in Pods that may not take a port below 1024.
const NAMES_UNPRIVILEGED: u16 = 5353;

/// The rules for all agents of an instance.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Policies {
    /// Connections to agents.
    pub(crate) ingress: NetworkPolicySpec,
    /// Connections of agents.
    pub(crate) egress: NetworkPolicySpec,
}

impl Policies {
    /// The rules that let agents of `owner` reach what `isolation` says.
    pub(crate) fn new(owner: &str, isolation: &Isolation, options: &NetworkOptions) -> Self {
        let spec = |kind: &str| NetworkPolicySpec {
            pod_selector: Some(labels(&agent_labels(owner))),
            policy_types: Some(vec![kind.to_owned()]),
            ..NetworkPolicySpec::default()
        };
        Self {
            ingress: NetworkPolicySpec {
                ingress: Some(ingress(isolation, options)).filter(|rules| !rules.is_empty()),
                ..spec("Ingress")
            },
            egress: NetworkPolicySpec {
                egress: Some(egress(isolation, options)).filter(|rules| !rules.is_empty()),
                ..spec("Egress")
            },
        }
    }

    /// A digest of these rules.
    pub(crate) fn digest(&self) -> String {
        digest(Some(&self.ingress), Some(&self.egress))
    }
}

/// A digest of the rules for connections to agents and of agents, as far as they are there.
pub(crate) fn digest(
    ingress: Option<&NetworkPolicySpec>,
    egress: Option<&NetworkPolicySpec>,
) -> String {
    let text = json!([ingress, egress]).to_string();
    hex::encode(Sha256::digest(text))
}

/// The labels by which the policies select the Pods of agents of `owner`.
pub(crate) fn agent_labels(owner: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        (names::OWNER.to_owned(), names::label_value(owner)),
        (ROLE.to_owned(), AGENT.to_owned()),
    ])
}

fn ingress(isolation: &Isolation, options: &NetworkOptions) -> Vec<NetworkPolicyIngressRule> {
    let peers = service(options);
    // A rule without peers would let every Pod in; one without ports would open every port.
    if peers.is_empty() || isolation.agent_ports.is_empty() {
        return Vec::new();
    }
    let ports = isolation.agent_ports.iter();
    vec![NetworkPolicyIngressRule {
        from: Some(peers),
        ports: Some(ports.map(|port| tcp(*port)).collect()),
    }]
}

fn egress(isolation: &Isolation, options: &NetworkOptions) -> Vec<NetworkPolicyEgressRule> {
    let mut rules = Vec::new();
    let mut allow = |to: Vec<NetworkPolicyPeer>, ports: Vec<NetworkPolicyPort>| {
        if !to.is_empty() {
            rules.push(NetworkPolicyEgressRule {
                to: Some(to),
                ports: Some(ports).filter(|ports| !ports.is_empty()),
            });
        }
    };
    let both = |port| vec![protocol_port("UDP", port), protocol_port("TCP", port)];
    let servers = options.name_servers.iter();
    allow(servers.map(|ip| host(*ip)).collect(), both(NAMES));
    if !options.name_server_labels.is_empty() {
        let pods = NetworkPolicyPeer {
            namespace_selector: Some(LabelSelector::default()),
            ..pods(&options.name_server_labels)
        };
        allow(vec![pods], [both(NAMES), both(NAMES_UNPRIVILEGED)].concat());
    }
    allow(service(options), vec![tcp(options.service_port)]);
    if let Some((name, port)) = &isolation.service
        && let Ok(ip) = name.trim_matches(['[', ']']).parse()
    {
        allow(vec![host(ip)], vec![tcp(*port)]);
    }
    match options.proxy {
        Some(proxy) => allow(vec![host(proxy.ip())], vec![tcp(proxy.port())]),
        None => {
            let mut outside = internet(&isolation.lan_access, options);
            outside.extend(local_networks(&isolation.lan_access, options));
            allow(outside, Vec::new());
        }
    }
    rules
}

/// The Pods of the service, and where it is else.
fn service(options: &NetworkOptions) -> Vec<NetworkPolicyPeer> {
    let labelled = Some(&options.service_labels).filter(|labels| !labels.is_empty());
    let networks = options.service_networks.iter();
    labelled
        .map(pods)
        .into_iter()
        .chain(networks.map(|network| block(network.clone(), Vec::new())))
        .collect()
}

/// Everything but what is not of the internet, and the cluster.
fn internet(lan_access: &LanAccess, options: &NetworkOptions) -> Vec<NetworkPolicyPeer> {
    let zones = [Zone::Private, Zone::LinkLocal, Zone::Loopback];
    let mut closed: Vec<IpCidr> = closed_networks(options).collect();
    if *lan_access != LanAccess::Open {
        let v4 = zones.iter().flat_map(|zone| zone.networks_v4());
        closed.extend(v4.map(IpCidr::V4));
        let v6 = zones.iter().flat_map(|zone| zone.networks_v6());
        closed.extend(v6.map(IpCidr::V6));
    }
    let all = ["0.0.0.0/0", "::/0"].into_iter();
    all.filter_map(|all| except_closed(all.parse().ok()?, &closed))
        .collect()
}

/// The networks that policies open where `configured` is set. The cluster's own are among all private ones, so of these only
/// named ones are open.
pub(crate) fn opened_networks(configured: LanAccess) -> LanAccess {
    match configured {
        LanAccess::Private => LanAccess::Only(Vec::new()),
        LanAccess::Open | LanAccess::Only(_) => configured,
    }
}

/// The private networks that were named, besides those of the cluster.
fn local_networks(lan_access: &LanAccess, options: &NetworkOptions) -> Vec<NetworkPolicyPeer> {
    let closed: Vec<IpCidr> = closed_networks(options).collect();
    match lan_access {
        LanAccess::Only(networks) => networks
            .iter()
            .filter_map(|network| except_closed(IpCidr::V4(*network), &closed))
            .collect(),
        LanAccess::Open | LanAccess::Private => Vec::new(),
    }
}

fn closed_networks(options: &NetworkOptions) -> impl Iterator<Item = IpCidr> {
    options.closed.iter().filter_map(|text| text.parse().ok())
}

/// A network without the closed ones in it; `None`: nothing of it is left.
fn except_closed(network: IpCidr, closed: &[IpCidr]) -> Option<NetworkPolicyPeer> {
    if closed
        .iter()
        .any(|closed| contains_network(closed, &network))
    {
        return None;
    }
    let mut except: Vec<&IpCidr> = closed
        .iter()
        .filter(|one| contains_network(&network, one))
        .filter(|one| {
            let larger = |other: &&IpCidr| other != one && contains_network(other, one);
            !closed.iter().any(|other| larger(&other))
        })
        .collect();
    except.sort();
    except.dedup();
    let except = except.into_iter().map(|one| format!("{one:#}")).collect();
    Some(block(format!("{network:#}"), except))
}

fn contains_network(outer: &IpCidr, inner: &IpCidr) -> bool {
    outer.contains(&inner.first_address()) && outer.contains(&inner.last_address())
}

fn host(ip: IpAddr) -> NetworkPolicyPeer {
    block(format!("{:#}", IpCidr::new_host(ip)), Vec::new())
}

fn block(cidr: String, except: Vec<String>) -> NetworkPolicyPeer {
    NetworkPolicyPeer {
        ip_block: Some(IPBlock {
            cidr,
            except: Some(except).filter(|except| !except.is_empty()),
        }),
        ..NetworkPolicyPeer::default()
    }
}

fn pods(wanted: &BTreeMap<String, String>) -> NetworkPolicyPeer {
    NetworkPolicyPeer {
        pod_selector: Some(labels(wanted)),
        ..NetworkPolicyPeer::default()
    }
}

fn labels(wanted: &BTreeMap<String, String>) -> LabelSelector {
    LabelSelector {
        match_labels: Some(wanted.clone()),
        ..LabelSelector::default()
    }
}

fn tcp(port: u16) -> NetworkPolicyPort {
    protocol_port("TCP", port)
}

fn protocol_port(protocol: &str, port: u16) -> NetworkPolicyPort {
    NetworkPolicyPort {
        protocol: Some(protocol.to_owned()),
        port: Some(IntOrString::Int(port.into())),
        end_port: None,
    }
}

/// The merge patch that makes `wanted` of `found`; `None`: they are equal.
pub(crate) fn change(found: &Value, wanted: &Value) -> Option<Value> {
    let (Value::Object(found), Value::Object(wanted)) = (found, wanted) else {
        return (found != wanted).then(|| wanted.clone());
    };
    let mut patch = serde_json::Map::new();
    for key in found.keys().filter(|key| !wanted.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, wanted) in wanted {
        let found = found.get(key).unwrap_or(&Value::Null);
        if let Some(change) = change(found, wanted) {
            patch.insert(key.clone(), change);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}
