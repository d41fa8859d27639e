//! The packet filter of the host: the services of the host, and the networks behind it, that agents reach.
//!
//! A container reaches every service that the host binds to all addresses, and every network that the host reaches, unless the
//! host's packet filter says otherwise. The rules are those of chains of our own, so that those of other programs are not touched.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use async_trait::async_trait;
use schema::config::{HostAccess, LanAccess};

use super::Isolation;

/// Rules for what agents reach of the host and behind it, besides answers to those who ask them and a resolver that the host itself
/// asks. At least one of both is not open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRules {
    /// The interface of the agents' network on the host.
    pub bridge: String,
    /// The host's address on it.
    pub gateway: Ipv4Addr,
    /// Address at which the service listens for agents; `None`: none.
    pub listener: Option<(Ipv4Addr, u16)>,
    /// Host name or address and port of the service as agents get it, when an administrator has set it: it may be
    /// something in front of the service on this host.
    pub service: Option<(String, u16)>,
    /// The services of the host that agents reach.
    pub host_access: HostAccess,
    /// The networks behind the host that agents reach.
    pub lan_access: LanAccess,
}

impl fmt::Display for HostRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("agents reach ")?;
        match (self.host_access, self.listener) {
            (HostAccess::Open, _) => f.write_str("all services of the host")?,
            (HostAccess::Service | HostAccess::Enforce, Some((ip, port))) => {
                write!(f, "{ip}:{port} and no other service of the host")?;
            }
            (HostAccess::Service | HostAccess::Enforce, None) => {
                f.write_str("no service of the host")?;
            }
        }
        write!(f, "; networks behind it: {}", self.lan_access)
    }
}

impl HostRules {
    /// Returns the rules for agents behind `bridge`, on which the host has the address `gateway`; `None`: they may reach
    /// everything.
    pub fn of(bridge: String, gateway: Ipv4Addr, isolation: &Isolation) -> Option<Self> {
        let host_access = isolation.host_access;
        if host_access == HostAccess::Open && isolation.lan_access == LanAccess::Open {
            return None;
        }
        let listener = isolation.agents.and_then(|agents| match agents.ip {
            None => Some((gateway, agents.port)),
            Some(IpAddr::V4(ip)) => Some((ip, agents.port)),
            // Agents have no IPv6.
            Some(IpAddr::V6(_)) => None,
        });
        Some(Self {
            bridge,
            gateway,
            listener,
            service: isolation.service.clone(),
            host_access,
            lan_access: isolation.lan_access.clone(),
        })
    }

    /// Returns a text for the services and networks that agents reach without these rules.
    pub fn without(&self) -> &'static str {
        match (self.host_access, &self.lan_access) {
            (HostAccess::Open, _) => "every network behind the host",
            (_, LanAccess::Open) => "every service of the host",
            (_, _) => "every service of the host and every network behind it",
        }
    }
}

/// What of ours is in the packet filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// The rules that were asked about.
    AsDesired,
    /// Something else: a part of them, others, or some that somebody has changed.
    Other,
}

/// Why the packet filter was not read or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FirewallError {
    /// It cannot be done here, and waiting does not mend it: why, and what to do.
    #[error("{0}")]
    Impossible(String),
    /// It failed this time and is tried again; in the words of the program.
    #[error("the packet filter cannot be read or changed: {0}")]
    Failed(String),
}

/// The packet filter of the host that the service runs on.
#[async_trait]
pub trait HostFirewall: Send + Sync + 'static {
    /// What of ours is there, compared with `rules`.
    async fn observe(&self, rules: Option<&HostRules>) -> Result<Found, FirewallError>;
    /// Makes these the rules, in place of whatever of ours is there.
    async fn restrict(&self, rules: &HostRules) -> Result<(), FirewallError>;
    /// Removes whatever of ours is there.
    async fn open(&self) -> Result<(), FirewallError>;
}
