//! One engine, as the service wires it.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::{AgentNetwork, BindHomes, ContainerFiles, Containers, HomeMounts, Images, Metered};

/// One engine. Several parts may be the same object.
#[derive(Clone)]
pub struct Compute {
    /// Containers.
    pub containers: Arc<dyn Containers>,
    /// Images.
    pub images: Arc<dyn Images>,
    /// The agents' network, and what they reach through it.
    pub network: Arc<dyn AgentNetwork>,
    /// Users' directories.
    pub homes: Arc<dyn HomeMounts>,
    /// Words of this engine, for texts only.
    pub facts: EngineFacts,
    /// Returns true for an engine that checks the readiness of containers itself.
    pub probes: bool,
    /// Containers run on without the engine; false for one that may end them when it stops.
    pub outlived: bool,
    /// Digest of what the engine's own configuration adds to each container; another one replaces them. `None`: it adds nothing.
    pub overlay: Option<String>,
    /// Makes a task that runs for as long as the engine is used; `None`: it needs none.
    pub attendance: Option<Attendance>,
}

/// Maker of a task that never ends by itself.
pub type Attendance = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

impl std::fmt::Debug for Compute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compute")
            .field("facts", &self.facts)
            .finish_non_exhaustive()
    }
}

impl Compute {
    /// An engine in one object that mounts directories of its host; calls of it are counted. `data_dir` is the data directory as
    /// that host sees it, `owner` the instance id.
    pub fn with_bind_homes<E>(engine: E, owner: &str, data_dir: &str, facts: EngineFacts) -> Self
    where
        E: Containers + Images + AgentNetwork + ContainerFiles,
    {
        let engine = Arc::new(Metered::new(engine));
        Self {
            homes: Arc::new(BindHomes::new(Arc::clone(&engine), owner, data_dir)),
            containers: engine.clone(),
            images: engine.clone(),
            network: engine,
            facts,
            probes: false,
            outlived: false,
            overlay: None,
            attendance: None,
        }
    }
}

/// Words of an engine, for people. Nothing is decided by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineFacts {
    /// Its name.
    pub name: &'static str,
    /// Remedy while it cannot be reached: an imperative without a full stop.
    pub unreachable: &'static str,
    /// Sentence that says which images its inventory leaves out; `None`: it leaves out none.
    pub inventory: Option<&'static str>,
    /// How to remove what an installation that is gone has left, an imperative without a full stop; `None`: there is no network to remove.
    pub foreign_network: Option<&'static str>,
    /// Sentence that says who removes images, where the engine does not do it when asked.
    pub removal: Option<&'static str>,
}
