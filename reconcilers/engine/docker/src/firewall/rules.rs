//! The rules of our chains, as `iptables` lists them.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use cidr::Ipv4Cidr;
use engine::HostRules;
use engine::own_address::is_own_address;
use schema::config::{HostAccess, LanAccess};
use schema::zone::Zone;
use tokio::time::timeout;

/// Longest time for a name to be resolved.
const RESOLVE: Duration = Duration::from_secs(2);
/// The resolvers that the engine asks from within its containers: the host's, or those behind systemd's resolver.
const RESOLVERS: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];

/// The rules for packets to the host; `None`: there are none.
pub async fn for_host(chain: &str, rules: &HostRules) -> Option<Vec<String>> {
    if rules.host_access == HostAccess::Open {
        return None;
    }
    let mut lines = vec![reply_rule(chain)];
    if let Some((ip, port)) = rules.listener {
        let ip = destination(Ipv4Cidr::new_host(ip));
        lines.push(format!(
            "-A {chain}{ip} -p tcp -m tcp --dport {port} -j RETURN"
        ));
    }
    if let Some((name, port)) = &rules.service {
        match addresses(name, *port).await {
            Some(addresses) => {
                let ours = keep_host_addresses(addresses).await.into_iter();
                lines.extend(ours.map(|ip| accept_rule(chain, Some(ip), "tcp", *port)));
            }
            None => lines.push(accept_rule(chain, None, "tcp", *port)),
        }
    }
    for ip in keep_host_addresses(resolvers().await).await {
        lines.extend(names_from(chain, ip));
    }
    lines.push(reject_rule(chain, ""));
    Some(lines)
}

/// The rules for packets that the host forwards; `None`: there are none.
pub async fn for_lan(chain: &str, rules: &HostRules) -> Option<Vec<String>> {
    let networks = match &rules.lan_access {
        LanAccess::Open => return None,
        LanAccess::Private => None,
        LanAccess::Only(networks) => Some(networks),
    };
    let mut lines = vec![reply_rule(chain)];
    // The resolver of some clouds has the address of their metadata service.
    for ip in sort_addresses(resolvers().await) {
        lines.extend(names_from(chain, ip));
    }
    let close = |network| reject_rule(chain, &destination(network));
    lines.extend(Zone::LinkLocal.networks_v4().map(close));
    let Some(networks) = networks else {
        return Some(lines);
    };
    if let Some((name, port)) = &rules.service {
        match addresses(name, *port).await {
            Some(addresses) => {
                let all = sort_addresses(addresses).into_iter();
                lines.extend(all.map(|ip| accept_rule(chain, Some(ip), "tcp", *port)));
            }
            None => lines.push(accept_rule(chain, None, "tcp", *port)),
        }
    }
    let open = |network: &Ipv4Cidr| format!("-A {chain}{} -j RETURN", destination(*network));
    lines.extend(networks.iter().map(open));
    lines.extend(Zone::Private.networks_v4().map(close));
    Some(lines)
}

/// Lets answers of agents through, such as those to readiness checks, and no packet of a connection that an agent opened.
fn reply_rule(chain: &str) -> String {
    format!("-A {chain} -m conntrack --ctstate RELATED,ESTABLISHED --ctdir REPLY -j RETURN")
}

/// Lets agents reach a port by the address that they use; a port that the engine publishes is translated before this rule.
fn accept_rule(chain: &str, ip: Option<Ipv4Addr>, protocol: &str, port: u16) -> String {
    let ip = ip.map_or_else(String::new, |ip| format!(" --ctorigdst {ip}"));
    format!("-A {chain} -p {protocol} -m conntrack{ip} --ctorigdstport {port} -j RETURN")
}

/// Lets agents ask a resolver.
fn names_from(chain: &str, ip: Ipv4Addr) -> [String; 2] {
    ["udp", "tcp"].map(|protocol| accept_rule(chain, Some(ip), protocol, 53))
}

fn reject_rule(chain: &str, destination: &str) -> String {
    format!("-A {chain}{destination} -j REJECT --reject-with icmp-port-unreachable")
}

fn destination(network: Ipv4Cidr) -> String {
    let (address, length) = (network.first_address(), network.network_length());
    format!(" -d {address}/{length}")
}

/// The addresses that a name stands for. `None`: agents may take it for another one than the host does, which calls itself by
/// loopback addresses, or does not know it.
async fn addresses(name: &str, port: u16) -> Option<Vec<IpAddr>> {
    let found = timeout(RESOLVE, tokio::net::lookup_host((name, port)));
    let found: Vec<IpAddr> = found
        .await
        .ok()?
        .ok()?
        .map(|address| address.ip())
        .collect();
    let is_literal = name.parse::<IpAddr>().is_ok();
    (is_literal || !found.iter().any(IpAddr::is_loopback)).then_some(found)
}

/// The resolvers of the host.
async fn resolvers() -> Vec<IpAddr> {
    let mut named: Vec<IpAddr> = Vec::new();
    for file in RESOLVERS {
        let text = tokio::fs::read_to_string(file).await.unwrap_or_default();
        named.extend(text.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            let named = (words.next() == Some("nameserver")).then(|| words.next())?;
            named?.parse::<IpAddr>().ok()
        }));
    }
    named
}

/// Those that agents may reach by IPv4, each once, in order.
fn sort_addresses(all: Vec<IpAddr>) -> Vec<Ipv4Addr> {
    let v4 = all.into_iter().filter_map(|ip| match ip {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    });
    let mut all: Vec<Ipv4Addr> = v4
        .filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
        .collect();
    all.sort();
    all.dedup();
    all
}

/// Those of this host.
async fn keep_host_addresses(all: Vec<IpAddr>) -> Vec<Ipv4Addr> {
    let mut ours = Vec::new();
    for ip in sort_addresses(all) {
        if is_own_address(ip.into()).await {
            ours.push(ip);
        }
    }
    ours
}
