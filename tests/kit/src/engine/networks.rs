//! Networks of the fake and the addresses in them.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use engine::{EngineError, Network, NetworkSettings};

use super::world::World;

/// Networks that every engine has and that give no address here.
const BUILT_IN_NETWORKS: [&str; 5] = ["", "bridge", "default", "host", "none"];

/// One network.
pub(super) struct FakeNetwork {
    id: String,
    settings: NetworkSettings,
    gateway: Ipv4Addr,
    first: u32,
    last: u32,
    cursor: u32,
    used: BTreeMap<u32, String>,
}

impl FakeNetwork {
    /// The next free address after the one given last, as the engine allocates them.
    fn allocate(&mut self, container: &str) -> Option<Ipv4Addr> {
        let room = u64::from(self.last.saturating_sub(self.first)) + 1;
        for _ in 0..room {
            let address = self.cursor;
            self.cursor = if address >= self.last {
                self.first
            } else {
                address + 1
            };
            if address != u32::from(self.gateway) && !self.used.contains_key(&address) {
                self.used.insert(address, container.to_owned());
                return Some(Ipv4Addr::from(address));
            }
        }
        None
    }
}

impl World {
    pub(super) fn network(&self, name: &str) -> Option<Network> {
        let network = self.networks.get(name)?;
        let mut containers: Vec<String> = network.used.values().cloned().collect();
        containers.sort();
        Some(Network {
            id: network.id.clone(),
            name: network.settings.name.clone(),
            driver: "bridge".to_owned(),
            subnet: Some(network.settings.subnet.clone()),
            gateway: Some(network.gateway.to_string()),
            inter_container_traffic: false,
            policies: String::new(),
            labels: network.settings.labels.clone(),
            containers,
        })
    }

    pub(super) fn create_network(&mut self, settings: &NetworkSettings) -> Result<(), EngineError> {
        let (subnet, gateway) = engine::parse_subnet(&settings.subnet)?;
        if self.networks.contains_key(&settings.name) {
            return Err(EngineError::NameTaken(format!(
                "network with name {} already exists",
                settings.name
            )));
        }
        let first = u32::from(subnet.first_address());
        let last = u32::from(subnet.last_address());
        let overlaps = self.networks.values().any(|other| {
            other.first <= last.saturating_add(1) && first <= other.last.saturating_add(1)
        });
        if overlaps {
            return Err(EngineError::Refused(
                "Pool overlaps with other one on this address space".to_owned(),
            ));
        }
        let id = self.fresh_id();
        self.networks.insert(
            settings.name.clone(),
            FakeNetwork {
                id,
                settings: settings.clone(),
                gateway,
                // The first address names the network, the last one is the broadcast address.
                first: first + 1,
                last: last.saturating_sub(1).max(first + 1),
                cursor: first + 1,
                used: BTreeMap::new(),
            },
        );
        Ok(())
    }

    pub(super) fn remove_network(&mut self, id: &str, by_force: bool) -> Result<(), EngineError> {
        let name = self
            .networks
            .iter()
            .find(|(name, network)| *name == id || network.id == id)
            .map(|(name, network)| (name.clone(), network.used.is_empty()));
        match name {
            Some((name, false)) if !by_force => Err(EngineError::Conflict(format!(
                "error while removing network: network {name} has active endpoints"
            ))),
            Some((name, _)) => {
                self.networks.remove(&name);
                Ok(())
            }
            None => Ok(()),
        }
    }

    pub(super) fn attach(&mut self, id: &str, wanted: &[String]) -> Result<(), EngineError> {
        for name in wanted {
            if let Err(error) = self.connect(id, name) {
                self.release(id);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives a container an address in a network.
    pub(super) fn connect(&mut self, id: &str, name: &str) -> Result<(), EngineError> {
        let address = if BUILT_IN_NETWORKS.contains(&name) {
            None
        } else {
            let network = self
                .networks
                .get_mut(name)
                .ok_or_else(|| EngineError::NotFound(format!("network {name} not found")))?;
            Some(network.allocate(id).ok_or(EngineError::NetworkFull)?)
        };
        if let Some(container) = self.containers.get_mut(id) {
            let networks = &mut container.details.container.networks;
            networks.insert(name.to_owned(), address.map(|address| address.to_string()));
        }
        Ok(())
    }

    /// Takes a container out of a network.
    pub(super) fn disconnect(&mut self, id: &str, name: &str) {
        if let Some(network) = self.networks.get_mut(name) {
            network.used.retain(|_, user| user != id);
        }
        if let Some(container) = self.containers.get_mut(id) {
            container.details.container.networks.remove(name);
        }
    }

    pub(super) fn release(&mut self, id: &str) {
        let Some(container) = self.containers.get_mut(id) else {
            return;
        };
        for (name, address) in &mut container.details.container.networks {
            let given = address
                .take()
                .and_then(|text| text.parse::<Ipv4Addr>().ok());
            if let (Some(given), Some(network)) = (given, self.networks.get_mut(name)) {
                network.used.remove(&u32::from(given));
            }
        }
    }
}
