//! The agents' network: its name, and how one of that name compares with the desired one.

use engine::{LABEL_OWNER, Network};

use super::foreign::ForeignOwner;

/// Name of the agents' network.
pub const NETWORK: &str = "agentyard";

/// How the agents' network is, compared with what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkState {
    /// There is none.
    Missing,
    /// There is one of that name, but it is not ours.
    Foreign(ForeignOwner),
    /// It is ours, and has to be recreated.
    Outdated,
    /// It is ours and as configured.
    AsDesired,
}

impl NetworkState {
    /// Compares a network of our name with what `owner` wants.
    pub fn of(network: Option<&Network>, owner: &str, subnet: &str) -> Self {
        let Some(network) = network else {
            return Self::Missing;
        };
        if network.labels.get(LABEL_OWNER).map(String::as_str) != Some(owner) {
            return Self::Foreign(ForeignOwner::of(&network.labels, owner));
        }
        let as_wanted = network.subnet.as_deref() == Some(subnet)
            && network.driver == "bridge"
            && !network.inter_container_traffic;
        if as_wanted {
            Self::AsDesired
        } else {
            Self::Outdated
        }
    }
}

/// Says whose a network is that only bears our name.
pub fn describe_foreign_network(owner: ForeignOwner) -> String {
    owner.describe("network", NETWORK)
}
