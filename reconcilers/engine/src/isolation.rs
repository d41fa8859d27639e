//! Desired reach of agents.

use std::collections::BTreeSet;
use std::net::IpAddr;

use schema::config::{HostAccess, LanAccess};

/// Address at which agents reach the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentAddress {
    /// Address; `None`: the gateway of their network.
    pub ip: Option<IpAddr>,
    /// Port there.
    pub port: u16,
}

/// Address of the service for agents when none is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// At this address of the host that is the gateway of their network, at the port of [`AgentAddress`].
    Gateway(IpAddr),
    /// At this URL, which the engine has for them.
    Url(String),
}

/// The hosts and networks that agents are to reach, and what of agents the service reaches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Isolation {
    /// The services of the host that agents reach.
    pub host_access: HostAccess,
    /// The networks behind the host that agents reach.
    pub lan_access: LanAccess,
    /// Address at which the service listens for agents; `None`: none.
    pub agents: Option<AgentAddress>,
    /// Host name or address and port of the service as agents get it, when an administrator has set it.
    pub service: Option<(String, u16)>,
    /// Ports of agents to which the service connects.
    pub agent_ports: BTreeSet<u16>,
}

/// Outcome of a trial of the agents' isolation; each text names a target, with its address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IsolationProof {
    /// Reached by agents, which must not.
    pub open: Vec<String>,
    /// Reached by agents, which should not, and no rule of the engine can prevent.
    pub tolerated: Vec<String>,
    /// Not reached by agents, which must.
    pub unreached: Vec<String>,
    /// Not to be reached by agents, and without an address to try it at.
    pub untried: Vec<String>,
}
