//! Where this service itself is: an agent that comes there in its user's browser could act as its user.

use std::net::{IpAddr, SocketAddr};

use url::{Host, Url};

use super::decision::is_loopback;

/// Where this service is, as far as it knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Own {
    /// Hosts, with a port if only that is the service's.
    hosts: Vec<(Host, Option<u16>)>,
    /// Ports of listeners, and the address if it is not all of them.
    listeners: Vec<SocketAddr>,
}

impl Own {
    /// At these listeners.
    pub fn listening(listeners: Vec<SocketAddr>) -> Self {
        Self {
            hosts: Vec::new(),
            listeners,
        }
    }

    /// Also where this address leads.
    pub fn add_url(&mut self, url: &str) {
        if let Ok(url) = Url::parse(url)
            && let Some(host) = url.host()
        {
            self.hosts
                .push((host.to_owned(), url.port_or_known_default()));
        }
    }

    /// Also at this host, with any port.
    pub fn add_address(&mut self, address: IpAddr) {
        let host = match address {
            IpAddr::V4(ip) => Host::Ipv4(ip),
            IpAddr::V6(ip) => Host::Ipv6(ip),
        };
        self.hosts.push((host, None));
    }

    /// Also where clients have found it: the value of a header `Host`. Without a port, whether it was reached by TLS is not known.
    pub(super) fn add_header(&mut self, host: &str) {
        for scheme in ["http", "https"] {
            self.add_url(&format!("{scheme}://{host}"));
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.hosts.extend(other.hosts.iter().cloned());
        self.listeners.extend(&other.listeners);
    }

    /// Whether a page is there.
    pub(super) fn has(&self, url: &Url) -> bool {
        let Some(host) = url.host() else {
            return false;
        };
        let port = url.port_or_known_default();
        let named = |(own, at): &(Host, Option<u16>)| {
            let same = match (own, &host) {
                (Host::Domain(own), Host::Domain(host)) => {
                    own.trim_end_matches('.') == host.trim_end_matches('.')
                }
                (own, host) => *own == host.to_owned(),
            };
            let both = is_loopback(&own_ref(own)) && is_loopback(&host);
            (same || both) && at.is_none_or(|at| Some(at) == port)
        };
        let listens = |listener: &SocketAddr| {
            let ip = listener.ip();
            let here = match (ip.is_unspecified() || ip.is_loopback(), &host) {
                (true, host) => is_loopback(host),
                (false, Host::Ipv4(host)) => ip == IpAddr::V4(*host),
                (false, Host::Ipv6(host)) => ip == IpAddr::V6(*host).to_canonical(),
                (false, Host::Domain(_)) => false,
            };
            here && Some(listener.port()) == port
        };
        self.hosts.iter().any(named) || self.listeners.iter().any(listens)
    }
}

fn own_ref(host: &Host) -> Host<&str> {
    match host {
        Host::Domain(name) => Host::Domain(name),
        Host::Ipv4(ip) => Host::Ipv4(*ip),
        Host::Ipv6(ip) => Host::Ipv6(*ip),
    }
}
