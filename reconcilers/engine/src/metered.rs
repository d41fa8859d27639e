//! An engine whose calls are counted and timed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use schema::config::{HostAccess, LanAccess};
use schema::ids::UserName;
use schema::metric;
use tokio::time::Instant;

use super::{
    AgentNetwork, Bind, Container, ContainerDetails, ContainerFiles, ContainerSettings, Containers,
    EngineError, EngineEvent, EngineInfo, EngineStream, Exec, ExecControl, ExecSettings,
    HomeMounts, HostFirewall, HostRules, Image, ImageHome, Images, Isolation, IsolationProof,
    Limits, LogChunk, LogOptions, Network, NetworkSettings, Proof, PullEvent, Reach,
    RegistryCredentials, Sample, Stats,
};

/// Counts the calls of the engine behind it.
pub struct Metered<E>(E);

impl<E> std::fmt::Debug for Metered<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metered")
    }
}

/// Names of all calls, as metrics have them.
const OPERATIONS: [&str; 27] = [
    "ping",
    "info",
    "list",
    "inspect",
    "create",
    "start",
    "stop",
    "remove",
    "rename",
    "network",
    "create_network",
    "mend_network",
    "prove_isolation",
    "remove_network",
    "image",
    "images",
    "remove_image",
    "pull",
    "read_file",
    "read_tree",
    "logs",
    "exec",
    "resize_exec",
    "exec_exit_code",
    "stats",
    "sample",
    "events",
];

impl<E> Metered<E> {
    /// The engine whose calls are counted.
    pub fn get(&self) -> &E {
        &self.0
    }

    /// Counts the calls of `engine` from now on.
    pub fn new(engine: E) -> Self {
        for operation in OPERATIONS {
            for result in ["success", "unavailable", "error"] {
                metric::ENGINE_CALLS.touch(&[operation, result]);
            }
        }
        Self(engine)
    }
}

async fn measure_call<T>(
    operation: &'static str,
    call: impl Future<Output = Result<T, EngineError>> + Send,
) -> Result<T, EngineError> {
    let begun = Instant::now();
    let answer = call.await;
    let result = match &answer {
        Ok(_) => "success",
        Err(EngineError::Unavailable(_) | EngineError::Timeout(_)) => "unavailable",
        Err(_) => "error",
    };
    metric::ENGINE_CALLS.increment(&[operation, result]);
    metric::ENGINE_DURATION.observe(&[operation], begun.elapsed());
    answer
}

#[async_trait]
impl<E: Containers> Containers for Metered<E> {
    async fn ping(&self) -> Result<(), EngineError> {
        measure_call("ping", self.0.ping()).await
    }

    async fn info(&self) -> Result<EngineInfo, EngineError> {
        measure_call("info", self.0.info()).await
    }

    async fn list(&self, owner: &str, uid: Option<&str>) -> Result<Vec<Container>, EngineError> {
        measure_call("list", self.0.list(owner, uid)).await
    }

    async fn inspect(&self, id_or_name: &str) -> Result<Option<ContainerDetails>, EngineError> {
        measure_call("inspect", self.0.inspect(id_or_name)).await
    }

    async fn create(
        &self,
        name: &str,
        settings: &ContainerSettings,
    ) -> Result<String, EngineError> {
        measure_call("create", self.0.create(name, settings)).await
    }

    async fn start(&self, id: &str) -> Result<(), EngineError> {
        measure_call("start", self.0.start(id)).await
    }

    async fn stop(&self, id: &str, grace: Duration) -> Result<(), EngineError> {
        measure_call("stop", self.0.stop(id, grace)).await
    }

    async fn remove(&self, id: &str) -> Result<(), EngineError> {
        measure_call("remove", self.0.remove(id)).await
    }

    async fn rename(&self, id: &str, name: &str) -> Result<(), EngineError> {
        measure_call("rename", self.0.rename(id, name)).await
    }

    async fn logs(
        &self,
        id: &str,
        options: &LogOptions,
    ) -> Result<EngineStream<LogChunk>, EngineError> {
        measure_call("logs", self.0.logs(id, options)).await
    }

    async fn exec(&self, id: &str, settings: &ExecSettings) -> Result<Exec, EngineError> {
        let exec = measure_call("exec", self.0.exec(id, settings)).await?;
        Ok(Exec {
            control: Arc::new(MeteredControl(exec.control)),
            ..exec
        })
    }

    async fn stats(&self, id: &str) -> Result<Option<Stats>, EngineError> {
        measure_call("stats", self.0.stats(id)).await
    }

    async fn sample(&self, id: &str) -> Result<Option<Sample>, EngineError> {
        measure_call("sample", self.0.sample(id)).await
    }

    async fn events(&self, owner: &str) -> Result<EngineStream<EngineEvent>, EngineError> {
        measure_call("events", self.0.events(owner)).await
    }

    fn drift(
        &self,
        container: &Container,
        details: Option<&ContainerDetails>,
        wanted: &ContainerSettings,
        limits: Limits,
    ) -> Option<&'static str> {
        self.0.drift(container, details, wanted, limits)
    }
}

#[async_trait]
impl<E: Images> Images for Metered<E> {
    async fn image(&self, reference: &str) -> Result<Option<Image>, EngineError> {
        measure_call("image", self.0.image(reference)).await
    }

    async fn images(&self) -> Result<Vec<Image>, EngineError> {
        measure_call("images", self.0.images()).await
    }

    async fn remove_image(&self, reference_or_id: &str) -> Result<(), EngineError> {
        measure_call("remove_image", self.0.remove_image(reference_or_id)).await
    }

    async fn pull(
        &self,
        reference: &str,
        credentials: Option<&RegistryCredentials>,
    ) -> Result<EngineStream<PullEvent>, EngineError> {
        measure_call("pull", self.0.pull(reference, credentials)).await
    }
}

#[async_trait]
impl<E: AgentNetwork> AgentNetwork for Metered<E> {
    async fn network(&self, name: &str) -> Result<Option<Network>, EngineError> {
        measure_call("network", self.0.network(name)).await
    }

    async fn create_network(&self, settings: &NetworkSettings) -> Result<(), EngineError> {
        measure_call("create_network", self.0.create_network(settings)).await
    }

    async fn remove_network(&self, id: &str) -> Result<(), EngineError> {
        measure_call("remove_network", self.0.remove_network(id)).await
    }

    fn is_as_desired(&self, network: &Network, wanted: &NetworkSettings) -> bool {
        self.0.is_as_desired(network, wanted)
    }

    fn mends_in_place(&self) -> bool {
        self.0.mends_in_place()
    }

    async fn mend_network(&self, settings: &NetworkSettings) -> Result<(), EngineError> {
        measure_call("mend_network", self.0.mend_network(settings)).await
    }

    fn agents_reach_us(&self, network: &Network) -> Option<Reach> {
        self.0.agents_reach_us(network)
    }

    fn effective_access(&self, host: HostAccess, lan: LanAccess) -> (HostAccess, LanAccess) {
        self.0.effective_access(host, lan)
    }

    fn host_rules(&self, network: &Network, isolation: &Isolation) -> Option<HostRules> {
        self.0.host_rules(network, isolation)
    }

    fn firewall(&self) -> Option<&dyn HostFirewall> {
        self.0.firewall()
    }

    fn proves_isolation(&self) -> bool {
        self.0.proves_isolation()
    }

    async fn prove_isolation(
        &self,
        settings: &NetworkSettings,
    ) -> Result<IsolationProof, EngineError> {
        measure_call("prove_isolation", self.0.prove_isolation(settings)).await
    }
}

#[async_trait]
impl<E: ContainerFiles> ContainerFiles for Metered<E> {
    async fn read_file(
        &self,
        id: &str,
        path: &str,
        limit: usize,
    ) -> Result<Option<Vec<u8>>, EngineError> {
        measure_call("read_file", self.0.read_file(id, path, limit)).await
    }

    async fn read_tree(
        &self,
        id: &str,
        path: &str,
    ) -> Result<Option<EngineStream<Bytes>>, EngineError> {
        measure_call("read_tree", self.0.read_tree(id, path)).await
    }
}

#[async_trait]
impl<E: HomeMounts> HomeMounts for Metered<E> {
    fn bind_home(&self, user: &UserName, target: &str) -> Bind {
        self.0.bind_home(user, target)
    }

    async fn prove_data_dir(&self, image: &str, nonce: &str) -> Result<Proof, EngineError> {
        measure_call("prove", self.0.prove_data_dir(image, nonce)).await
    }

    async fn is_proof_left_over(&self) -> Result<bool, EngineError> {
        measure_call("is_proof_left_over", self.0.is_proof_left_over()).await
    }

    async fn clean_up_proof(&self) -> Result<(), EngineError> {
        measure_call("clean_up_proof", self.0.clean_up_proof()).await
    }

    async fn open_image(&self, image: &ImageHome) -> Result<String, EngineError> {
        measure_call("open_image", self.0.open_image(image)).await
    }

    async fn read_image(
        &self,
        opened: &str,
        path: &str,
    ) -> Result<Option<EngineStream<Bytes>>, EngineError> {
        measure_call("read_image", self.0.read_image(opened, path)).await
    }

    async fn close_image(&self, opened: &str) -> Result<(), EngineError> {
        measure_call("close_image", self.0.close_image(opened)).await
    }
}

/// Counts the calls about one program.
struct MeteredControl(Arc<dyn ExecControl>);

#[async_trait]
impl ExecControl for MeteredControl {
    async fn resize(&self, columns: u16, rows: u16) -> Result<(), EngineError> {
        measure_call("resize_exec", self.0.resize(columns, rows)).await
    }

    async fn exit_code(&self) -> Result<Option<i64>, EngineError> {
        measure_call("exec_exit_code", self.0.exit_code()).await
    }
}
