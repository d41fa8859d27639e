//! Decides what to do next on the engine. Pure.

use schema::condition::{Condition, Reason};
use schema::ids::Generation;

use crate::drivers::docker::{LABEL_OWNER, Network, NetworkSettings};
use crate::runtime::Plan;
use crate::shared::network::{NETWORK, NetworkState, foreign_network};
use crate::shared::probe::ProbeState;
use crate::shared::view::Connection;

/// Desired and observed state of what all containers share.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Generation of the engine object.
    pub generation: Generation,
    /// The instance id.
    pub owner: String,
    /// Whether the engine can be used.
    pub connection: Connection,
    /// The subnet that is wanted.
    pub subnet: String,
    /// The network of our name, as it is.
    pub network: Option<Network>,
    /// How many containers we own.
    pub containers: usize,
    /// Whether engine and service see the same data directory.
    pub data_dir: ProbeState,
    /// An image that the proof can be given with.
    pub image: Option<String>,
    /// A proof that was cut short has left its container, and no other is about to be given.
    pub left_over: bool,
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Creates the agents' network.
    CreateNetwork(NetworkSettings),
    /// Removes it, to be recreated.
    RemoveNetwork {
        /// Id.
        id: String,
    },
    /// Proves that engine and service see the same data directory.
    ProbeDataDir {
        /// An image that is on the engine.
        image: String,
    },
    /// Removes what a proof that was cut short has left.
    CleanUpProbe,
}

/// The plan for the engine.
pub fn plan(snapshot: &Snapshot) -> Plan<Action> {
    let say = Plan::say;
    let act = |action, message: &str| {
        Plan::act(
            vec![action],
            Condition::not_ready(Reason::Progressing, message),
        )
    };
    match &snapshot.connection {
        Connection::Up => {}
        Connection::Unavailable(why) => {
            return say(Condition::unknown(Reason::EngineUnavailable, why));
        }
        Connection::Unusable(reason, why) => return say(Condition::not_ready(*reason, why)),
    }
    let Some(network) = &snapshot.network else {
        let settings = NetworkSettings {
            name: NETWORK.to_owned(),
            subnet: snapshot.subnet.clone(),
            labels: [(LABEL_OWNER.to_owned(), snapshot.owner.clone())].into(),
        };
        return act(Action::CreateNetwork(settings), "creating the network");
    };
    let state = NetworkState::of(Some(network), &snapshot.owner, &snapshot.subnet);
    if state == NetworkState::Foreign {
        return say(Condition::not_ready(
            Reason::NameConflict,
            foreign_network(),
        ));
    }
    if state != NetworkState::AsDesired {
        if snapshot.containers > 0 || !network.containers.is_empty() {
            return say(Condition::not_ready(
                Reason::NetworkInUse,
                format!(
                    "the network has subnet {} and should have {}, but containers use it",
                    network.subnet.as_deref().unwrap_or("none"),
                    snapshot.subnet
                ),
            ));
        }
        let id = network.id.clone();
        return act(Action::RemoveNetwork { id }, "recreating the network");
    }
    match (&snapshot.data_dir, &snapshot.image) {
        (ProbeState::Same, _) => say(Condition::ready(
            Reason::Converged,
            "the engine is reachable and the network is as configured",
        )),
        (_, Some(image)) => act(
            Action::ProbeDataDir {
                image: image.clone(),
            },
            "probing the data directory",
        ),
        (_, None) if snapshot.left_over => act(Action::CleanUpProbe, "cleaning up after a probe"),
        (ProbeState::Mismatch(why), None) => {
            say(Condition::not_ready(Reason::DataDirMismatch, why))
        }
        (ProbeState::Unknown, None) => say(Condition::ready(
            Reason::Converged,
            "the engine is reachable; the data directory is probed with the first image",
        )),
    }
}
