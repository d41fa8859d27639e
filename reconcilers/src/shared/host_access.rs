//! The rules that keep agents from services of the host and from networks behind it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use engine::{AgentAddress, AgentNetwork, FirewallError, Found, HostRules, Isolation};
use schema::config::{Config, HostAccess as Host, LanAccess, keys};
use tokio::time::Instant;
use url::Url;

use crate::runtime::Purpose;

/// Time until rules are tried again that the packet filter, though readable, does not take.
const RETRY: Duration = Duration::from_secs(300);

/// What is known.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HostState {
    /// Not known yet, or changed by somebody.
    Unknown,
    /// Agents reach what these rules let them.
    Restricted(HostRules),
    /// These rules cannot be made here for this reason, so agents reach everything.
    Impossible(HostRules, String),
    /// The packet filter can be read, and does not take these rules; they are tried again then.
    Refused(HostRules, FirewallError, Instant),
}

/// Restricts agents, and remembers that it has.
pub struct HostAccess {
    network: Arc<dyn AgentNetwork>,
    known: Mutex<HostState>,
    turn: tokio::sync::Mutex<()>,
}

impl std::fmt::Debug for HostAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostAccess").finish_non_exhaustive()
    }
}

/// The hosts and networks that agents are to reach.
pub fn isolation(config: &Config, agents: Option<AgentAddress>) -> Isolation {
    let url = config.get(&keys::container::SERVICE_URL);
    let service = url.and_then(|url| {
        let url = Url::parse(&url).ok()?;
        Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
    });
    Isolation {
        host_access: config.get(&keys::container::HOST_ACCESS),
        lan_access: config.get(&keys::container::LAN_ACCESS),
        agents,
        service,
        ..Isolation::default()
    }
}

/// Turns a failure into a condition where the host is open and the networks are as by default: no rule was asked for there,
/// so containers wait for none.
fn excuse(error: FirewallError, rules: Option<&HostRules>) -> FirewallError {
    let is_default = rules.is_some_and(|rules| {
        rules.host_access == Host::Open && rules.lan_access == LanAccess::default()
    });
    match error {
        FirewallError::Failed(_) if is_default => FirewallError::Impossible(format!(
            "{error}; make iptables work, or set container.lan_access to open"
        )),
        error => error,
    }
}

impl HostAccess {
    /// Nothing is known yet.
    pub fn new(network: Arc<dyn AgentNetwork>) -> Self {
        Self {
            network,
            known: Mutex::new(HostState::Unknown),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HostState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true when these rules have still to be made before a container is.
    pub fn needs(&self, rules: &HostRules) -> bool {
        match &*self.known() {
            HostState::Unknown => true,
            HostState::Restricted(now)
            | HostState::Impossible(now, _)
            | HostState::Refused(now, ..) => now != rules,
        }
    }

    /// Returns why no agent may be started under these rules: they are to be enforced and cannot be made.
    pub fn refusal(&self, rules: &HostRules) -> Option<String> {
        match &*self.known() {
            HostState::Impossible(now, why)
            | HostState::Refused(now, FirewallError::Impossible(why), _)
                if now == rules && rules.host_access == Host::Enforce =>
            {
                let reached = rules.without();
                Some(format!(
                    "container.host_access is enforce, and agents would reach {reached}: {why}"
                ))
            }
            _ => None,
        }
    }

    /// Somebody else may have changed what was known.
    pub fn forget(&self) {
        *self.known() = HostState::Unknown;
    }

    /// Compares the packet filter with `rules`. While no agent is on the network (`in_use`), they are not to stand, and none are
    /// remembered to, since they go before the next agent comes. A dry run remembers nothing.
    ///
    /// # Errors
    /// [`FirewallError`].
    pub async fn observe(
        &self,
        rules: Option<&HostRules>,
        in_use: bool,
        purpose: Purpose,
    ) -> Result<Found, FirewallError> {
        let _turn = self.turn.lock().await;
        let found = match self.network.firewall() {
            Some(firewall) => firewall.observe(rules).await,
            None => Ok(Found::Nothing),
        };
        let found = found.map_err(|error| excuse(error, rules));
        if let Ok(Found::Nothing | Found::Other) = found
            && let HostState::Refused(refused, why, until) = &*self.known()
            && rules == Some(refused)
            && Instant::now() < *until
        {
            return Err(why.clone());
        }
        if purpose == Purpose::DryRun {
            return found;
        }
        *self.known() = match (&found, rules) {
            (Ok(Found::AsDesired), Some(rules)) if in_use => HostState::Restricted(rules.clone()),
            (Err(FirewallError::Impossible(why)), Some(rules)) => {
                HostState::Impossible(rules.clone(), why.clone())
            }
            _ => HostState::Unknown,
        };
        found
    }

    /// Makes these the rules. That it is impossible here is no failure: the engine's condition says it.
    ///
    /// # Errors
    /// [`FirewallError::Failed`].
    pub async fn restrict(&self, rules: &HostRules) -> Result<(), FirewallError> {
        let _turn = self.turn.lock().await;
        self.forget();
        let made = match self.network.firewall() {
            Some(firewall) => firewall.restrict(rules).await,
            None => Ok(()),
        };
        *self.known() = match made.map_err(|error| excuse(error, Some(rules))) {
            Ok(()) => HostState::Restricted(rules.clone()),
            Err(why @ FirewallError::Impossible(_)) => {
                HostState::Refused(rules.clone(), why, Instant::now() + RETRY)
            }
            Err(failed) => return Err(failed),
        };
        Ok(())
    }

    /// Removes the rules.
    ///
    /// # Errors
    /// [`FirewallError`].
    pub async fn open(&self) -> Result<(), FirewallError> {
        let _turn = self.turn.lock().await;
        self.forget();
        match self.network.firewall() {
            Some(firewall) => firewall.open().await,
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use engine::{EngineError, HostFirewall, Network, NetworkSettings, Reach};

    use super::*;

    /// An engine of whose network only the packet filter is asked.
    struct Filtered<F>(F);

    #[async_trait]
    impl<F: HostFirewall> AgentNetwork for Filtered<F> {
        async fn network(&self, _: &str) -> Result<Option<Network>, EngineError> {
            Ok(None)
        }

        fn is_as_desired(&self, _: &Network, _: &NetworkSettings) -> bool {
            true
        }

        async fn create_network(&self, _: &NetworkSettings) -> Result<(), EngineError> {
            Ok(())
        }

        async fn remove_network(&self, _: &str) -> Result<(), EngineError> {
            Ok(())
        }

        fn agents_reach_us(&self, _: &Network) -> Option<Reach> {
            None
        }

        fn firewall(&self) -> Option<&dyn HostFirewall> {
            Some(&self.0)
        }
    }

    /// A packet filter that can be read and fails to change.
    struct Unwritable;

    /// A packet filter of another host.
    struct Elsewhere;

    #[async_trait]
    impl HostFirewall for Elsewhere {
        async fn observe(&self, _rules: Option<&HostRules>) -> Result<Found, FirewallError> {
            Err(FirewallError::Impossible("not here".to_owned()))
        }

        async fn restrict(&self, _rules: &HostRules) -> Result<(), FirewallError> {
            Err(FirewallError::Impossible("not here".to_owned()))
        }

        async fn open(&self) -> Result<(), FirewallError> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn impossible_rules_refuse_agents_only_when_enforced() {
        for (host_access, refuses) in [(Host::Service, false), (Host::Enforce, true)] {
            let rules = HostRules {
                bridge: "br-0123456789ab".to_owned(),
                gateway: [10, 88, 0, 1].into(),
                listener: None,
                service: None,
                host_access,
                lan_access: LanAccess::Private,
            };
            let access = HostAccess::new(Arc::new(Filtered(Elsewhere)));
            assert_eq!(access.refusal(&rules), None, "nothing is known yet");
            access.restrict(&rules).await.unwrap();
            assert_eq!(access.refusal(&rules).is_some(), refuses, "{host_access}");
            let _ = access.observe(Some(&rules), false, Purpose::Pass).await;
            assert_eq!(access.refusal(&rules).is_some(), refuses, "{host_access}");
            assert!(!access.needs(&rules));
            access.forget();
            assert_eq!(access.refusal(&rules), None);
        }
    }

    #[async_trait]
    impl HostFirewall for Unwritable {
        async fn observe(&self, _rules: Option<&HostRules>) -> Result<Found, FirewallError> {
            Ok(Found::Nothing)
        }

        async fn restrict(&self, _rules: &HostRules) -> Result<(), FirewallError> {
            Err(FirewallError::Failed("odd words".to_owned()))
        }

        async fn open(&self) -> Result<(), FirewallError> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn open_host_with_default_networks_waits_for_no_rules() {
        for (host_access, lan_access, waits) in [
            (Host::Open, LanAccess::Private, false),
            (Host::Open, LanAccess::Only(Vec::new()), true),
            (Host::Service, LanAccess::Private, true),
            (Host::Service, LanAccess::Open, true),
        ] {
            let rules = HostRules {
                bridge: "br-0123456789ab".to_owned(),
                gateway: [10, 88, 0, 1].into(),
                listener: None,
                service: None,
                host_access,
                lan_access,
            };
            let access = HostAccess::new(Arc::new(Filtered(Unwritable)));
            let found = async || access.observe(Some(&rules), true, Purpose::Pass).await;
            assert_eq!(access.restrict(&rules).await.is_err(), waits, "{rules}");
            for _ in 0..2 {
                let is_condition = matches!(found().await, Err(FirewallError::Impossible(_)));
                assert_eq!(is_condition, !waits, "{rules}");
                assert_eq!(access.needs(&rules), waits, "{rules}");
            }
            // What is not known to be impossible for other rules is tried.
            let others = HostRules {
                host_access: Host::Service,
                lan_access: LanAccess::Only(Vec::new()),
                ..rules.clone()
            };
            assert!(access.needs(&others));
            tokio::time::advance(RETRY).await;
            assert_eq!(found().await, Ok(Found::Nothing), "tried again: {rules}");
        }
    }
}
