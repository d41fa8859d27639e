//! Decides what to do next on the engine. Pure.

use schema::condition::{Condition, Reason};
use schema::ids::Generation;

use crate::drivers::docker::{LABEL_OWNER, Network, NetworkSettings};
use crate::drivers::firewall::{FirewallError, Found, HostRules};
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
    /// What agents reach of the host.
    pub host: Host,
}

/// What agents reach of the host, as desired and observed.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// Networks and services that these rules let them reach; `None`: everything, or there are no agents.
    pub rules: Option<HostRules>,
    /// What of ours is in the packet filter, compared with them.
    pub found: Result<Found, FirewallError>,
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
    /// Lets agents reach what these rules say of the host and behind it.
    RestrictHost(HostRules),
    /// Removes the rules of before.
    OpenHost,
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
    let note = match host_access(snapshot) {
        Ok(note) => note,
        Err(action) => return act(action, "restricting what agents reach"),
    };
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
            format!("the engine is reachable and the network is as configured{note}"),
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
            format!(
                "the engine is reachable; the data directory is probed with the first image{note}"
            ),
        )),
    }
}

/// The step that is needed, or what is to be said.
fn host_access(snapshot: &Snapshot) -> Result<String, Action> {
    match (&snapshot.host.found, &snapshot.host.rules) {
        (Ok(Found::Nothing), None) | (Ok(Found::AsDesired), _) => Ok(String::new()),
        (Ok(Found::Other), None) => Err(Action::OpenHost),
        (Ok(Found::Nothing | Found::Other), Some(rules)) => {
            Err(Action::RestrictHost(rules.clone()))
        }
        (Err(FirewallError::Impossible(why)), Some(_)) => Ok(format!(
            "; agents reach every service of the host and every network behind it: {why}"
        )),
        // Containers wait for it; the network and the data directory do not.
        (Err(failed), Some(_)) => Ok(format!(
            "; what agents reach of the host and behind it is not known: {failed}"
        )),
        // Nobody has asked for rules, so none are ours.
        (Err(_), None) => Ok(String::new()),
    }
}

#[cfg(test)]
mod tests {
    use schema::config::{HostAccess, LanAccess};

    use super::*;

    fn rules() -> HostRules {
        HostRules {
            bridge: "br-0123456789ab".to_owned(),
            gateway: [10, 88, 0, 1].into(),
            listener: None,
            service: None,
            host_access: HostAccess::Service,
            lan_access: LanAccess::Private,
        }
    }

    fn snapshot(found: Result<Found, FirewallError>, rules: Option<HostRules>) -> Snapshot {
        Snapshot {
            generation: Generation(1),
            owner: "me".to_owned(),
            connection: Connection::Up,
            subnet: "10.88.0.0/16".to_owned(),
            network: Some(Network {
                id: "0123456789abcdef".to_owned(),
                name: NETWORK.to_owned(),
                subnet: Some("10.88.0.0/16".to_owned()),
                gateway: Some("10.88.0.1".to_owned()),
                driver: "bridge".to_owned(),
                inter_container_traffic: false,
                labels: [(LABEL_OWNER.to_owned(), "me".to_owned())].into(),
                containers: Vec::new(),
            }),
            containers: 0,
            data_dir: ProbeState::Same,
            image: None,
            left_over: false,
            host: Host { rules, found },
        }
    }

    #[test]
    fn what_agents_reach_of_the_host_follows_what_is_wanted() {
        let restrict = || Some(Action::RestrictHost(rules()));
        for (found, wanted, expected) in [
            (Found::Nothing, None, None),
            (Found::Other, None, Some(Action::OpenHost)),
            (Found::AsDesired, Some(rules()), None),
            (Found::Nothing, Some(rules()), restrict()),
            (Found::Other, Some(rules()), restrict()),
        ] {
            let plan = plan(&snapshot(Ok(found), wanted.clone()));
            let actions: Vec<Action> = expected.into_iter().collect();
            assert_eq!(plan.actions, actions, "{found:?} {wanted:?}");
        }
    }

    #[test]
    fn where_it_cannot_be_done_the_engine_is_ready_and_says_so() {
        let why = || Err(FirewallError::Impossible("no rights".to_owned()));
        let plan_of = |rules| plan(&snapshot(why(), rules));
        let restricted = plan_of(Some(rules()));
        assert!(restricted.actions.is_empty());
        let message = &restricted.conditions[0].message;
        assert!(
            message.ends_with(
                "; agents reach every service of the host and every network behind it: no rights"
            ),
            "{message}"
        );
        let open = plan_of(None);
        assert!(!open.conditions[0].message.contains("host"));
    }
}
