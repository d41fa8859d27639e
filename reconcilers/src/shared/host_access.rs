//! The rules that keep agents from services of the host and from networks behind it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

use schema::config::{Config, HostAccess as Host, LanAccess, keys};
use url::Url;

use super::AgentAddress;
use crate::drivers::docker::Network;
use crate::drivers::firewall::{FirewallError, Found, HostFirewall, HostRules};
use crate::runtime::Purpose;

/// What is known.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HostState {
    /// Not known yet, or changed by somebody.
    Unknown,
    /// Agents reach what these rules let them.
    Restricted(HostRules),
    /// Agents reach everything: it cannot be otherwise here.
    Impossible,
}

/// Restricts agents, and remembers that it has.
pub struct HostAccess {
    firewall: Arc<dyn HostFirewall>,
    known: Mutex<HostState>,
    turn: tokio::sync::Mutex<()>,
}

impl std::fmt::Debug for HostAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostAccess").finish_non_exhaustive()
    }
}

/// The rules for this network; `None`: agents may reach everything, or the network is not known yet.
pub fn rules_for(
    config: &Config,
    network: Option<&Network>,
    agents: Option<AgentAddress>,
) -> Option<HostRules> {
    let host_access = config.get(&keys::container::HOST_ACCESS);
    let lan_access = config.get(&keys::container::LAN_ACCESS);
    if host_access == Host::Open && lan_access == LanAccess::Open {
        return None;
    }
    let network = network?;
    let gateway: Ipv4Addr = network.gateway.as_ref()?.parse().ok()?;
    let listener = agents.and_then(|agents| match agents.ip {
        None => Some((gateway, agents.port)),
        Some(IpAddr::V4(ip)) => Some((ip, agents.port)),
        // Agents have no IPv6.
        Some(IpAddr::V6(_)) => None,
    });
    let url = config.get(&keys::container::SERVICE_URL);
    let service = url.and_then(|url| {
        let url = Url::parse(&url).ok()?;
        Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
    });
    Some(HostRules {
        // The engine names the interface after the network, unless an option names it.
        bridge: format!("br-{}", network.id.get(..12)?),
        gateway,
        listener,
        service,
        host_access,
        lan_access,
    })
}

impl HostAccess {
    /// Nothing is known yet.
    pub fn new(firewall: Arc<dyn HostFirewall>) -> Self {
        Self {
            firewall,
            known: Mutex::new(HostState::Unknown),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HostState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether these rules have still to be made before a container is.
    pub fn needs(&self, rules: &HostRules) -> bool {
        match &*self.known() {
            HostState::Unknown => true,
            HostState::Restricted(now) => now != rules,
            HostState::Impossible => false,
        }
    }

    /// Somebody else may have changed what was known.
    pub fn forget(&self) {
        *self.known() = HostState::Unknown;
    }

    /// What of ours is in the packet filter, compared with `rules`. A dry run remembers nothing.
    ///
    /// # Errors
    /// [`FirewallError`].
    pub async fn observe(
        &self,
        rules: Option<&HostRules>,
        purpose: Purpose,
    ) -> Result<Found, FirewallError> {
        let _turn = self.turn.lock().await;
        let found = self.firewall.observe(rules).await;
        if purpose == Purpose::DryRun {
            return found;
        }
        *self.known() = match (&found, rules) {
            (Ok(Found::AsDesired), Some(rules)) => HostState::Restricted(rules.clone()),
            (Err(FirewallError::Impossible(_)), _) => HostState::Impossible,
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
        *self.known() = match self.firewall.restrict(rules).await {
            Ok(()) => HostState::Restricted(rules.clone()),
            Err(FirewallError::Impossible(_)) => HostState::Impossible,
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
        self.firewall.open().await
    }
}
