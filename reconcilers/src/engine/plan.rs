//! Decides what to do next on the engine. Pure.

use engine::{
    EngineFacts, FirewallError, ForeignOwner, Found, HostRules, Network, NetworkSettings,
    NetworkState,
};
use schema::condition::{Condition, ConditionStatus, ConditionType, Reason};
use schema::ids::Generation;

use crate::runtime::Plan;
use crate::shared::isolation::Trial;
use crate::shared::network::describe_foreign_network;
use crate::shared::probe::ProbeState;
use crate::shared::view::{Connection, describe_absence};

/// Desired and observed state of what all containers share.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// Generation of the engine object.
    pub generation: Generation,
    /// Whether the engine can be used.
    pub connection: Connection,
    /// Words of the engine.
    pub facts: EngineFacts,
    /// The network that is wanted.
    pub wanted: NetworkSettings,
    /// The engine makes and changes networks in place.
    pub in_place: bool,
    /// The network of our name, as it is.
    pub network: Option<Network>,
    /// The same, compared with the desired one.
    pub network_state: NetworkState,
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
    /// Trials of the engine's rules for agents; `None`: the engine has no such trials.
    pub trial: Option<Trials>,
}

/// Trials of the engine's rules for agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trials {
    /// Outcome of the last trial.
    pub outcome: Option<Trial>,
    /// It has to be tried now.
    pub is_due: bool,
}

/// What agents reach of the host, as desired and observed.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// Networks and services that these rules let them reach; `None`: everything.
    pub rules: Option<HostRules>,
    /// There are agents; without any, the rules do not stand.
    pub in_use: bool,
    /// What of ours is in the packet filter, compared with them.
    pub found: Result<Found, FirewallError>,
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Creates the agents' network.
    CreateNetwork(NetworkSettings),
    /// Makes what is missing of it, and changes what is not as desired.
    MendNetwork(NetworkSettings),
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
    /// Tries what agents reach on this network.
    TryIsolation(NetworkSettings),
}

/// The plan for the engine.
pub fn plan(snapshot: &Snapshot) -> Plan<Action> {
    let mut plan = converge(snapshot);
    let ready = plan.conditions.first().cloned();
    let ready = ready.filter(|ready| ready.status == ConditionStatus::True);
    if let (Some(ready), Some(trials)) = (ready, &snapshot.trial) {
        if trials.is_due {
            // Agents run meanwhile.
            let tried = Action::TryIsolation(snapshot.wanted.clone());
            plan = Plan::tidy(vec![tried], ready);
        }
        plan.conditions.extend(isolation_enforced(trials));
    }
    plan.conditions.extend(host_restricted(snapshot));
    plan
}

fn converge(snapshot: &Snapshot) -> Plan<Action> {
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
            let message = format!("{why}; {}", snapshot.facts.unreachable);
            return say(describe_absence(Reason::EngineUnavailable, &message));
        }
        Connection::Unusable(reason, why) => return say(describe_absence(*reason, why)),
    }
    let Some(network) = &snapshot.network else {
        let settings = snapshot.wanted.clone();
        let action = match snapshot.in_place {
            true => Action::MendNetwork(settings),
            false => Action::CreateNetwork(settings),
        };
        return act(action, "creating the network");
    };
    if let NetworkState::Foreign(owner) = snapshot.network_state {
        let mut message = describe_foreign_network(owner);
        if let (ForeignOwner::Agentyard, Some(remedy)) = (owner, snapshot.facts.foreign_network) {
            message = format!("{message}; {remedy}");
        }
        return say(Condition::not_ready(Reason::NameConflict, message));
    }
    if let Some(action) = host_access(&snapshot.host) {
        return act(action, "restricting what agents reach");
    }
    if snapshot.network_state == NetworkState::Drifted {
        let settings = snapshot.wanted.clone();
        return act(Action::MendNetwork(settings), "mending the network");
    }
    if snapshot.network_state != NetworkState::AsDesired {
        if snapshot.containers > 0 || !network.containers.is_empty() {
            return say(Condition::not_ready(
                Reason::NetworkInUse,
                format!(
                    "the network has subnet {} and should have {}, but containers use it",
                    network.subnet.as_deref().unwrap_or("none"),
                    snapshot.wanted.subnet
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

/// Returns the step that the packet filter needs. What cannot be read or made is said by a condition.
fn host_access(host: &Host) -> Option<Action> {
    let rules = host.rules.as_ref().filter(|_| host.in_use);
    match (&host.found, rules) {
        (Ok(Found::Nothing), None) | (Ok(Found::AsDesired), Some(_)) | (Err(_), _) => None,
        (Ok(Found::Other | Found::AsDesired), None) => Some(Action::OpenHost),
        (Ok(Found::Nothing | Found::Other), Some(rules)) => {
            Some(Action::RestrictHost(rules.clone()))
        }
    }
}

/// Returns the condition about rules that the engine makes; none before they were tried.
fn isolation_enforced(trials: &Trials) -> Option<Condition> {
    let say = |status, reason, message: String| {
        Condition::new(ConditionType::HostRestricted, status, reason, message)
    };
    Some(match trials.outcome.as_ref()? {
        Trial::Failed(why) => say(
            ConditionStatus::Unknown,
            Reason::Retrying,
            format!("what agents reach could not be tried: {why}"),
        ),
        Trial::Done(proof) if !proof.open.is_empty() => say(
            ConditionStatus::False,
            Reason::IsolationNotEnforced,
            format!(
                "agents reach what is closed to them: {}",
                proof.open.join(", ")
            ),
        ),
        Trial::Done(proof) if !proof.unreached.is_empty() => say(
            ConditionStatus::False,
            Reason::IsolationNotEnforced,
            format!(
                "agents do not reach what is open to them: {}",
                proof.unreached.join(", ")
            ),
        ),
        Trial::Done(proof) => {
            let mut message = "tried: agents reach nothing that is closed to them".to_owned();
            for (words, names) in [
                ("no policy closes", &proof.tolerated),
                ("not tried:", &proof.untried),
            ] {
                if !names.is_empty() {
                    message += &format!("; {words} {}", names.join(", "));
                }
            }
            say(ConditionStatus::True, Reason::Converged, message)
        }
    })
}

/// Returns the condition about the rules; none while nobody asks for any, and while no agent needs them that could be made.
fn host_restricted(snapshot: &Snapshot) -> Option<Condition> {
    let say = |status, reason, message: String| {
        Some(Condition::new(
            ConditionType::HostRestricted,
            status,
            reason,
            message,
        ))
    };
    let host = &snapshot.host;
    let rules = host.rules.as_ref()?;
    match &host.found {
        Err(FirewallError::Impossible(why)) => {
            let message = format!("agents reach {}: {why}", rules.without());
            say(ConditionStatus::False, Reason::HostOpen, message)
        }
        // Agents that do not run wait for it; the network and the data directory do not.
        Err(failed @ FirewallError::Failed(_)) => {
            let message = format!("what agents reach of the host is not known: {failed}");
            say(ConditionStatus::Unknown, Reason::Retrying, message)
        }
        Ok(_) if !host.in_use => None,
        Ok(Found::AsDesired) => say(ConditionStatus::True, Reason::Converged, rules.to_string()),
        Ok(Found::Nothing | Found::Other) => say(
            ConditionStatus::Unknown,
            Reason::Progressing,
            format!("the rules are made: {rules}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use engine::{Isolation, LABEL_OWNER, NETWORK};
    use schema::config::{HostAccess, LanAccess};

    use super::*;

    const FACTS: EngineFacts = EngineFacts {
        name: "an engine",
        unreachable: "start it, or correct --its-address",
        inventory: None,
        removal: None,
        foreign_network: Some("remove the network of before"),
    };

    #[test]
    fn engine_that_is_away_is_told_with_its_own_remedy() {
        let mut snapshot = snapshot(Ok(Found::Nothing), None);
        snapshot.connection = Connection::Unavailable("no answer".to_owned());
        let ready = &plan(&snapshot).conditions[0];
        assert_eq!(
            (ready.status, ready.reason, ready.message.as_str()),
            (
                ConditionStatus::Unknown,
                Reason::EngineUnavailable,
                "no answer; start it, or correct --its-address"
            )
        );
    }

    #[test]
    fn foreign_network_is_told_with_the_engines_remedy() {
        let said = |owner| {
            let mut snapshot = snapshot(Ok(Found::Nothing), None);
            snapshot.network_state = NetworkState::Foreign(owner);
            plan(&snapshot).conditions[0].message.clone()
        };
        let remedy = "; remove the network of before";
        assert!(said(ForeignOwner::Agentyard).ends_with(remedy));
        assert!(!said(ForeignOwner::Unknown).ends_with(remedy));
    }

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
            connection: Connection::Up,
            facts: FACTS,
            wanted: NetworkSettings {
                name: NETWORK.to_owned(),
                subnet: "10.88.0.0/16".to_owned(),
                labels: [(LABEL_OWNER.to_owned(), "me".to_owned())].into(),
                isolation: Isolation::default(),
            },
            in_place: false,
            network: Some(Network {
                id: "0123456789abcdef".to_owned(),
                name: NETWORK.to_owned(),
                subnet: Some("10.88.0.0/16".to_owned()),
                gateway: Some("10.88.0.1".to_owned()),
                driver: "bridge".to_owned(),
                inter_container_traffic: false,
                policies: String::new(),
                labels: [(LABEL_OWNER.to_owned(), "me".to_owned())].into(),
                containers: Vec::new(),
            }),
            network_state: NetworkState::AsDesired,
            containers: 0,
            data_dir: ProbeState::Same,
            image: None,
            left_over: false,
            host: Host {
                rules,
                in_use: true,
                found,
            },
            trial: None,
        }
    }

    #[test]
    fn network_that_is_mended_in_place_waits_for_no_container() {
        let wanted = snapshot(Ok(Found::Nothing), None);
        let mend = Action::MendNetwork(wanted.wanted.clone());
        for (network, state) in [
            (None, NetworkState::Missing),
            (wanted.network.clone(), NetworkState::Drifted),
        ] {
            let snapshot = Snapshot {
                network,
                network_state: state,
                in_place: true,
                containers: 3,
                ..wanted.clone()
            };
            assert_eq!(
                plan(&snapshot).actions,
                std::slice::from_ref(&mend),
                "{state:?}"
            );
        }
    }

    #[test]
    fn isolation_that_is_not_enforced_is_a_warning_of_a_ready_engine() {
        use ConditionStatus::{False, True, Unknown};
        let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect();
        let proof = |open: &[&str], tolerated: &[&str], unreached: &[&str]| {
            let proof = engine::IsolationProof {
                open: words(open),
                tolerated: words(tolerated),
                unreached: words(unreached),
                untried: Vec::new(),
            };
            Some(Trial::Done(proof))
        };
        let without_agents = engine::IsolationProof {
            untried: words(&["another agent"]),
            ..engine::IsolationProof::default()
        };
        let closed = "tried: agents reach nothing that is closed to them";
        for (outcome, expected) in [
            (None, None),
            (proof(&[], &[], &[]), Some((True, closed.to_owned()))),
            (
                Some(Trial::Done(without_agents)),
                Some((True, format!("{closed}; not tried: another agent"))),
            ),
            (
                proof(&[], &["a kubelet (x)"], &[]),
                Some((True, format!("{closed}; no policy closes a kubelet (x)"))),
            ),
            (
                proof(&["a (x)", "b (y)"], &[], &["c (z)"]),
                Some((
                    False,
                    "agents reach what is closed to them: a (x), b (y)".to_owned(),
                )),
            ),
            (
                proof(&[], &[], &["c (z)"]),
                Some((
                    False,
                    "agents do not reach what is open to them: c (z)".to_owned(),
                )),
            ),
            (
                Some(Trial::Failed("no room".to_owned())),
                Some((
                    Unknown,
                    "what agents reach could not be tried: no room".to_owned(),
                )),
            ),
        ] {
            for is_due in [true, false] {
                let snapshot = Snapshot {
                    trial: Some(Trials {
                        outcome: outcome.clone(),
                        is_due,
                    }),
                    ..snapshot(Ok(Found::Nothing), None)
                };
                let plan = plan(&snapshot);
                assert_eq!(plan.conditions[0].status, True);
                let said = plan.conditions.get(1);
                let said = said.map(|said| (said.status, said.message.clone()));
                assert_eq!(said, expected);
                let tried = Action::TryIsolation(snapshot.wanted.clone());
                assert_eq!(plan.actions.contains(&tried), is_due);
            }
        }
    }

    #[test]
    fn what_agents_reach_of_the_host_follows_what_is_wanted() {
        let restrict = || Some(Action::RestrictHost(rules()));
        for (found, wanted, in_use, expected) in [
            (Found::Nothing, None, true, None),
            (Found::Other, None, true, Some(Action::OpenHost)),
            (Found::AsDesired, Some(rules()), true, None),
            (Found::Nothing, Some(rules()), true, restrict()),
            (Found::Other, Some(rules()), true, restrict()),
            (Found::Nothing, Some(rules()), false, None),
            (
                Found::AsDesired,
                Some(rules()),
                false,
                Some(Action::OpenHost),
            ),
        ] {
            let mut snapshot = snapshot(Ok(found), wanted.clone());
            snapshot.host.in_use = in_use;
            let plan = plan(&snapshot);
            let actions: Vec<Action> = expected.into_iter().collect();
            assert_eq!(plan.actions, actions, "{found:?} {wanted:?} {in_use}");
        }
    }

    #[test]
    fn unrestricted_host_is_a_warning_of_a_ready_engine() {
        let [open_host, open_lan] = [
            (HostAccess::Open, LanAccess::Private),
            (HostAccess::Enforce, LanAccess::Open),
        ]
        .map(|(host_access, lan_access)| HostRules {
            host_access,
            lan_access,
            ..rules()
        });
        let impossible = || Err(FirewallError::Impossible("no rights".to_owned()));
        let failed = || Err(FirewallError::Failed("busy".to_owned()));
        let all = "agents reach every service of the host and every network behind it: no rights";
        let lan = "agents reach every network behind the host: no rights";
        let host = "agents reach every service of the host: no rights";
        let none = "agents reach no service of the host; networks behind it: private";
        let busy = "what agents reach of the host is not known: the packet filter cannot be read or changed: busy";
        let made =
            "the rules are made: agents reach no service of the host; networks behind it: private";
        let [yes, no, unknown] = [
            ConditionStatus::True,
            ConditionStatus::False,
            ConditionStatus::Unknown,
        ];
        for (found, rules, in_use, expected) in [
            (
                impossible(),
                Some(rules()),
                true,
                Some((no, Reason::HostOpen, all)),
            ),
            (
                impossible(),
                Some(rules()),
                false,
                Some((no, Reason::HostOpen, all)),
            ),
            (
                impossible(),
                Some(open_host),
                true,
                Some((no, Reason::HostOpen, lan)),
            ),
            (
                impossible(),
                Some(open_lan),
                true,
                Some((no, Reason::HostOpen, host)),
            ),
            (impossible(), None, true, None),
            (
                failed(),
                Some(rules()),
                true,
                Some((unknown, Reason::Retrying, busy)),
            ),
            (
                Ok(Found::AsDesired),
                Some(rules()),
                true,
                Some((yes, Reason::Converged, none)),
            ),
            (
                Ok(Found::Other),
                Some(rules()),
                true,
                Some((unknown, Reason::Progressing, made)),
            ),
            (Ok(Found::Nothing), Some(rules()), false, None),
            (Ok(Found::Nothing), None, true, None),
        ] {
            let mut snapshot = snapshot(found, rules);
            snapshot.host.in_use = in_use;
            let plan = plan(&snapshot);
            let ready = &plan.conditions[0];
            assert_eq!(ready.kind, ConditionType::Ready);
            let is_ready = ready.status == ConditionStatus::True;
            assert_eq!(is_ready, plan.actions.is_empty(), "{snapshot:?}");
            let said = plan.conditions.get(1);
            let said = said.map(|said| (said.status, said.reason, said.message.as_str()));
            assert_eq!(said, expected, "{snapshot:?}");
        }
    }
}
