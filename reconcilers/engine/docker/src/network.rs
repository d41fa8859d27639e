//! Networks of a Docker Engine.

use async_trait::async_trait;
use engine::{
    AgentNetwork, EngineError, HostFirewall, HostRules, Isolation, Network, NetworkSettings, Reach,
};

use super::real::{DockerEngine, ignore_missing};
use super::{convert, request};

#[async_trait]
impl AgentNetwork for DockerEngine {
    async fn network(&self, name: &str) -> Result<Option<Network>, EngineError> {
        let word = request::check_word(name)?;
        let answer = self
            .call(async |docker| docker.inspect_network(word, None).await)
            .await;
        let network = ignore_missing(answer)?.map(convert::network).transpose()?;
        // The engine also finds a network by its id or the beginning of it.
        Ok(network.filter(|network| network.name == name))
    }

    async fn create_network(&self, settings: &NetworkSettings) -> Result<(), EngineError> {
        request::check_word(&settings.name)?;
        let body = convert::network_body(settings)?;
        let bytes = request::with_check_duplicate(&body)?;
        self.call(async |docker| {
            let docker = request::replace_body(docker, bytes);
            docker.create_network(body).await
        })
        .await
        .map(|_| ())
    }

    async fn remove_network(&self, id: &str) -> Result<(), EngineError> {
        let id = request::check_word(id)?;
        let removed = self
            .call(async |docker| docker.remove_network(id).await)
            .await;
        ignore_missing(removed).map(|_| ())
    }

    fn is_as_desired(&self, network: &Network, wanted: &NetworkSettings) -> bool {
        network.subnet.as_ref() == Some(&wanted.subnet)
            && network.driver == "bridge"
            && !network.inter_container_traffic
    }

    fn agents_reach_us(&self, network: &Network) -> Option<Reach> {
        let gateway = network.gateway.as_ref()?.parse().ok()?;
        Some(Reach::Gateway(gateway))
    }

    fn host_rules(&self, network: &Network, isolation: &Isolation) -> Option<HostRules> {
        // The engine names the interface after the network, unless an option names it.
        let bridge = format!("br-{}", network.id.get(..12)?);
        let gateway = network.gateway.as_ref()?.parse().ok()?;
        HostRules::of(bridge, gateway, isolation)
    }

    fn firewall(&self) -> Option<&dyn HostFirewall> {
        self.firewall
            .as_ref()
            .map(|firewall| -> &dyn HostFirewall { firewall })
    }
}
