//! The engine.

use schema::config::keys;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Reading, Sections};
use crate::error::Result;
use crate::ports::Network;

/// What is desired of the engine.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DesiredEngine)]
pub struct Desired {
    /// Addresses of the agent network.
    network_subnet: String,
}

/// What was observed of the engine.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ObservedEngine)]
pub struct Observed {
    /// The engine was reachable.
    available: bool,
    /// Its version, or why it cannot be used.
    engine: String,
    /// Addresses of the agent network.
    network_subnet: Option<String>,
    /// The agent network; null when there is none.
    network: Option<Network>,
}

pub(super) async fn read(at: &mut Reading<'_>) -> Result<Sections<Desired, Observed>> {
    let desired = Desired {
        network_subnet: at.config.get(&keys::container::NETWORK_SUBNET),
    };
    let engine = at.deps.engine.engine();
    let network = at.deps.engine.network();
    let observed = Observed {
        available: engine.available,
        engine: engine.message,
        network_subnet: network.as_ref().and_then(|network| network.subnet.clone()),
        network,
    };
    Ok(Sections::known(Some(desired), Some(observed)))
}
