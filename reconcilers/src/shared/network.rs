//! Texts about the agents' network.

use engine::{ForeignOwner, NETWORK};

/// Names the owner of a network that only bears our name.
pub fn describe_foreign_network(owner: ForeignOwner) -> String {
    owner.describe("network", NETWORK)
}
