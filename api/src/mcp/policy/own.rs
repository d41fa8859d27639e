//! Where this service itself is: an agent that comes there in its user's browser could act as its user.

use std::net::{IpAddr, SocketAddr};

use schema::config::policy::canonical_host;
use url::{Host, Url};

use super::decision::is_loopback;

/// Where this service is, as far as it knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Own {
    /// Hosts, with a port if only that and those of listeners are the service's.
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
            && let Some(host) = url.host().map(canonical_host)
        {
            self.hosts
                .push((host.to_owned(), url.port_or_known_default()));
        }
    }

    /// Also at this host, with any port.
    pub fn add_address(&mut self, address: IpAddr) {
        self.hosts.push((host_of(address).to_owned(), None));
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

    /// Returns true if a browser that is at this host sends the service's cookies there: they do not depend on ports.
    pub(super) fn has_host(&self, host: &str) -> bool {
        let Ok(host) = Host::parse(host) else {
            return false;
        };
        let host = match &host {
            Host::Domain(name) => Host::Domain(name.as_str()),
            Host::Ipv4(ip) => Host::Ipv4(*ip),
            Host::Ipv6(ip) => Host::Ipv6(*ip),
        };
        let host = canonical_host(host);
        self.hosts.iter().any(|(own, _)| is_same(own, &host))
            || (self.listeners.iter()).any(|listener| is_same(&host_of(listener.ip()), &host))
    }

    /// Whether a page is there.
    pub(super) fn has(&self, url: &Url) -> bool {
        let Some(host) = url.host().map(canonical_host) else {
            return false;
        };
        let port = url.port_or_known_default();
        let listens = |listener: &SocketAddr| Some(listener.port()) == port;
        let listened = self.listeners.iter().any(listens);
        // Behind a proxy, a listener is another way to the same service, and the browser sends the same cookies there.
        let named = |(own, at): &(Host, Option<u16>)| {
            is_same(own, &host) && (listened || at.is_none_or(|at| Some(at) == port))
        };
        let here = |listener: &SocketAddr| is_same(&host_of(listener.ip()), &host);
        self.hosts.iter().any(named)
            || (self.listeners.iter()).any(|listener| listens(listener) && here(listener))
    }
}

fn host_of(address: IpAddr) -> Host<&'static str> {
    canonical_host(match address {
        IpAddr::V4(ip) => Host::Ipv4(ip),
        IpAddr::V6(ip) => Host::Ipv6(ip),
    })
}

/// Whether the service is at both, if it is at the first one. Each loopback address stands for all.
fn is_same<S: AsRef<str>>(own: &Host<S>, host: &Host<&str>) -> bool {
    let equal = match (own, host) {
        (Host::Domain(own), Host::Domain(host)) => own.as_ref() == *host,
        (Host::Ipv4(own), Host::Ipv4(host)) => own == host,
        (Host::Ipv6(own), Host::Ipv6(host)) => own == host,
        _ => false,
    };
    equal || (is_loopback(own) && is_loopback(host))
}
