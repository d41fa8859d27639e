//! Tells why agents, in their containers, do not reach a provider that this service reaches.

use std::net::IpAddr;

use cidr::Ipv4Cidr;
use schema::condition::{self, ConditionStatus, ConditionType};
use schema::config::query::engine_uid;
use schema::config::{Config, HostAccess, LanAccess, keys};
use schema::error::DbError;
use schema::kind::Kind;
use schema::live::ModelHost;
use schema::object;
use schema::reader::Connection;
use schema::zone::Zone;
use url::Url;

use crate::deps::Dependencies;

/// Parts of the host, and of the networks behind it, that agents reach.
pub(super) struct Reach {
    host_access: HostAccess,
    lan_access: LanAccess,
    /// The host's address on the agents' network.
    gateway: Option<IpAddr>,
}

impl Reach {
    /// Reads what is configured. Where the packet filter cannot be changed, everything is open.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) async fn read(
        connection: &mut Connection,
        deps: &Dependencies,
        config: &Config,
    ) -> Result<Self, DbError> {
        let engine = object::get(connection, Kind::Engine, &engine_uid()).await?;
        let conditions = engine.map(|engine| engine.status.conditions);
        let conditions = conditions.unwrap_or_default();
        let restricted = condition::find(&conditions, ConditionType::HostRestricted);
        let is_open = restricted.is_some_and(|one| one.status == ConditionStatus::False);
        let network = deps.engine.network();
        let (host_access, lan_access) = match is_open {
            true => (HostAccess::Open, LanAccess::Open),
            false => deps.engine.effective_access(
                config.get(&keys::container::HOST_ACCESS),
                config.get(&keys::container::LAN_ACCESS),
            ),
        };
        Ok(Self {
            host_access,
            lan_access,
            gateway: network.and_then(|network| network.gateway?.parse().ok()),
        })
    }

    /// Says why agents do not reach an address, and the setting that lets them; empty: nothing known keeps them from it.
    pub(super) fn list_warnings(&self, address: &Url, hosts: &[ModelHost]) -> Vec<String> {
        let name = address.host_str().unwrap_or_default();
        let is_local = name.eq_ignore_ascii_case("localhost");
        if is_local || hosts.iter().any(|host| zone(host) == Zone::Loopback) {
            let open = match self.host_access {
                HostAccess::Open => "",
                HostAccess::Service | HostAccess::Enforce => ", and set container.host_access=open",
            };
            return vec![format!(
                "to an agent, {name} is its own container: give an address of this machine that agents reach{open}"
            )];
        }
        let v4: Vec<&ModelHost> = hosts.iter().filter(|host| host.ip.is_ipv4()).collect();
        if v4.is_empty() && !hosts.is_empty() {
            let text = "agents have no IPv6: give an address of IPv4, or a name that has one";
            return vec![text.to_owned()];
        }
        let closed = v4.into_iter().map(|host| self.find_obstacle(host));
        // An agent takes another address of the name.
        let closed: Option<Vec<String>> = closed.collect();
        let mut closed = closed.unwrap_or_default();
        closed.sort();
        closed.dedup();
        closed
    }

    fn find_obstacle(&self, host: &ModelHost) -> Option<String> {
        let ip = host.ip;
        if host.is_own || self.gateway == Some(ip) {
            let is_closed = self.host_access != HostAccess::Open;
            return is_closed.then(|| {
                format!(
                    "agents cannot reach services of this host ({ip}): set container.host_access=open, or run the model on another machine"
                )
            });
        }
        let wanted = match (&self.lan_access, zone(host), ip) {
            (LanAccess::Open, ..) => return None,
            (_, Zone::LinkLocal, _) => LanAccess::Open,
            (LanAccess::Only(networks), Zone::Private, IpAddr::V4(ip))
                if !networks.iter().any(|network| network.contains(&ip)) =>
            {
                let own = std::iter::once(Ipv4Cidr::new_host(ip));
                LanAccess::Only(networks.iter().copied().chain(own).collect())
            }
            _ => return None,
        };
        Some(format!(
            "agents cannot reach {ip}: set container.lan_access={wanted}"
        ))
    }
}

fn zone(host: &ModelHost) -> Zone {
    Zone::from_address(host.ip)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const OWN: &str = "agents cannot reach services of this host (10.88.0.1): set container.host_access=open, or run the model on \
                       another machine";

    fn warnings(host_access: &str, lan_access: &str, address: &str, ips: &[&str]) -> String {
        let reach = Reach {
            host_access: host_access.parse().unwrap(),
            lan_access: lan_access.parse().unwrap(),
            gateway: Some([10, 88, 0, 1].into()),
        };
        let hosts = ips.iter().map(|ip| ModelHost {
            ip: ip.trim_end_matches('!').parse().unwrap(),
            is_own: ip.ends_with('!'),
        });
        let hosts: Vec<ModelHost> = hosts.collect();
        let address = address.parse().unwrap();
        reach.list_warnings(&address, &hosts).join("; ")
    }

    #[rstest]
    #[case("service", &["10.88.0.1"], OWN)]
    #[case("enforce", &["10.88.0.1!"], OWN)]
    #[case("open", &["10.88.0.1!"], "")]
    #[case("service", &["192.168.1.5"], "")]
    #[case("service", &["192.168.1.5!", "192.168.1.6"], "")]
    #[case("service", &["8.8.8.8"], "")]
    #[case("service", &["2606:4700::1", "8.8.8.8"], "")]
    #[case("open", &["2606:4700::1"], "agents have no IPv6: give an address of IPv4, or a name that has one")]
    #[case("open", &["169.254.1.1"], "agents cannot reach 169.254.1.1: set container.lan_access=open")]
    #[case("open", &[], "")]
    fn closed_service_of_the_host_is_named(
        #[case] host_access: &str,
        #[case] ips: &[&str],
        #[case] expected: &str,
    ) {
        let found = warnings(host_access, "private", "http://model:8000/v1", ips);
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case("none", "10.1.2.3", "10.1.2.3")]
    #[case("192.168.7.0/24", "10.1.2.3", "192.168.7.0/24,10.1.2.3")]
    #[case("10.1.0.0/16", "10.1.2.3", "")]
    #[case("none", "8.8.8.8", "")]
    #[case("none", "169.254.169.254", "open")]
    #[case("open", "169.254.169.254", "")]
    fn closed_network_is_named(#[case] lan_access: &str, #[case] ip: &str, #[case] wanted: &str) {
        let expected = match wanted {
            "" => String::new(),
            wanted => format!("agents cannot reach {ip}: set container.lan_access={wanted}"),
        };
        let found = warnings("service", lan_access, "http://model:8000/v1", &[ip]);
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case("http://localhost:1/v1", &[])]
    #[case("http://127.0.0.1:1", &["127.0.0.1!"])]
    #[case("http://[::1]:1", &["::1!"])]
    #[case("http://workstation", &["127.0.1.1!", "10.1.2.3!"])]
    fn loopback_is_the_container_of_an_agent(#[case] address: &str, #[case] ips: &[&str]) {
        let closed = warnings("service", "private", address, ips);
        let open = warnings("open", "private", address, ips);
        assert!(open.starts_with("to an agent, "), "{open}");
        assert!(open.ends_with("that agents reach"), "{open}");
        assert_eq!(
            closed,
            format!("{open}, and set container.host_access=open")
        );
    }
}
