//! The agents' network.

use std::collections::BTreeMap;

use async_trait::async_trait;
use schema::config::{HostAccess, LanAccess};

use super::{
    EngineError, ForeignOwner, HostFirewall, HostRules, Isolation, IsolationProof, LABEL_OWNER,
    Network, Reach,
};

/// Name of the agents' network: one on which they reach neither each other nor, as configured, what is around them.
pub const NETWORK: &str = "agentyard";

/// A network to create: no traffic between its containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkSettings {
    /// Name.
    pub name: String,
    /// Subnet in CIDR form; the engine allocates all addresses, the gateway gets the first.
    pub subnet: String,
    /// Labels. Never a secret.
    pub labels: BTreeMap<String, String>,
    /// Targets that agents may reach on it, for engines that enforce it themselves.
    pub isolation: Isolation,
}

/// State of the agents' network, compared with the desired one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkState {
    /// There is none.
    Missing,
    /// There is one of that name, but it is not ours.
    Foreign(ForeignOwner),
    /// It is ours, and has to be recreated.
    Outdated,
    /// It is ours, and is mended in place, while agents are on it.
    Drifted,
    /// It is ours and as configured.
    AsDesired,
}

impl NetworkState {
    /// Compares a network of our name with the one that `owner` desires; `judge` is asked about one that is ours.
    pub fn of(
        network: Option<&Network>,
        owner: &str,
        judge: impl FnOnce(&Network) -> Self,
    ) -> Self {
        match network {
            None => Self::Missing,
            Some(network) if network.labels.get(LABEL_OWNER).map(String::as_str) != Some(owner) => {
                Self::Foreign(ForeignOwner::of(&network.labels, owner))
            }
            Some(network) => judge(network),
        }
    }
}

/// The verbs of an engine for the agents' network, and for the rules about what agents reach through it.
#[async_trait]
pub trait AgentNetwork: Send + Sync + 'static {
    /// Reads a network by name; `None` when there is none.
    async fn network(&self, name: &str) -> Result<Option<Network>, EngineError>;

    /// Returns true for a network that keeps agents apart and is as wanted. Pure.
    fn is_as_desired(&self, network: &Network, wanted: &NetworkSettings) -> bool;

    /// Creates a network. A taken name is [`EngineError::NameTaken`].
    async fn create_network(&self, settings: &NetworkSettings) -> Result<(), EngineError>;

    /// Returns true if a network is made and changed with [`mend_network`](Self::mend_network), whether agents are on it or not.
    /// Pure.
    fn mends_in_place(&self) -> bool {
        false
    }

    /// Makes what is missing of a network, and changes what is not as wanted. Something of the same name that is not ours is
    /// [`EngineError::NameTaken`]; [`EngineError::Unsupported`] where a network is recreated instead.
    async fn mend_network(&self, _settings: &NetworkSettings) -> Result<(), EngineError> {
        Err(EngineError::Unsupported(
            "the engine recreates networks instead of changing them",
        ))
    }

    /// Removes a network; success when it is gone; [`EngineError::Conflict`] while containers use it.
    async fn remove_network(&self, id: &str) -> Result<(), EngineError>;

    /// Returns where agents on this network find the service when no address is configured; `None` while that is not known. Pure.
    fn agents_reach_us(&self, network: &Network) -> Option<Reach>;

    /// Returns the access that agents have to the host and to the networks behind it where these are configured. Pure.
    fn effective_access(&self, host: HostAccess, lan: LanAccess) -> (HostAccess, LanAccess) {
        (host, lan)
    }

    /// Returns the rules that have to be in the host's packet filter before an agent starts on this network; `None` when it
    /// needs none: agents may reach everything, or the engine itself keeps them from what they may not. Pure.
    fn host_rules(&self, _network: &Network, _isolation: &Isolation) -> Option<HostRules> {
        None
    }

    /// The packet filter that takes these rules; `None` for an engine that needs none.
    fn firewall(&self) -> Option<&dyn HostFirewall> {
        None
    }

    /// Returns true if [`prove_isolation`](Self::prove_isolation) tells whether the engine enforces its rules. Pure.
    fn proves_isolation(&self) -> bool {
        false
    }

    /// Tries from within the network what agents must and must not reach. Takes up to a few minutes.
    /// [`EngineError::Unsupported`] where the service makes the rules itself and sees them.
    async fn prove_isolation(
        &self,
        _settings: &NetworkSettings,
    ) -> Result<IsolationProof, EngineError> {
        Err(EngineError::Unsupported(
            "the engine cannot try what agents reach",
        ))
    }
}
