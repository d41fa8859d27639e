//! From an adapter package to what reconcilers need of it: how agents are run, and as whom.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use schema::adapter::{self, Adapter};
use schema::error::DbError;

use super::settings::{AgentProfile, Readiness, RunAs};
use crate::stores::AdapterSource;

/// How agents are run at a generation of the active adapter.
#[async_trait]
pub trait Agents: Send + Sync + 'static {
    /// That of `generation` or newer.
    async fn at(&self, generation: i64) -> Result<Arc<AgentProfile>, DbError>;
}

/// How agents are run, as the active adapter says.
#[derive(Debug)]
pub struct AdapterAgents {
    source: Arc<AdapterSource>,
    newest: Mutex<Option<(Arc<Adapter>, Arc<AgentProfile>)>>,
}

impl AdapterAgents {
    /// Follows `source`.
    pub fn new(source: Arc<AdapterSource>) -> Self {
        Self {
            source,
            newest: Mutex::default(),
        }
    }
}

#[async_trait]
impl Agents for AdapterAgents {
    async fn at(&self, generation: i64) -> Result<Arc<AgentProfile>, DbError> {
        let adapter = self.source.at(generation).await?;
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, profile)) = &*newest
            && Arc::ptr_eq(of, &adapter)
        {
            return Ok(Arc::clone(profile));
        }
        let profile = Arc::new(profile(&adapter));
        *newest = Some((adapter, Arc::clone(&profile)));
        Ok(profile)
    }
}

/// Agents that are run in the same way for ever: for tests and simulations.
#[async_trait]
impl Agents for AgentProfile {
    async fn at(&self, _: i64) -> Result<Arc<AgentProfile>, DbError> {
        Ok(Arc::new(self.clone()))
    }
}

/// How agents of this adapter are run.
pub fn profile(adapter: &Adapter) -> AgentProfile {
    let agent = &adapter.index.agent;
    let agent_dir = agent.agent_dir();
    AgentProfile {
        home: agent.home.clone(),
        environment: agent
            .environment
            .iter()
            .map(|(key, value)| (key.clone(), value.replace("${agent_dir}", &agent_dir)))
            .collect(),
        command: agent.command.clone(),
        debug_command: agent.debug_command.clone(),
        run_as: match agent.run_as {
            adapter::RunAs::Service => RunAs::Service,
            adapter::RunAs::Image => RunAs::Image,
            adapter::RunAs::Ids(uid, gid) => RunAs::Fixed(uid, gid),
        },
        readiness: match &agent.readiness {
            adapter::Readiness::Running => Readiness::Running,
            adapter::Readiness::Http { port, path } => Readiness::Http {
                port: *port,
                path: path.clone(),
            },
            adapter::Readiness::File(file) => Readiness::File(format!("{agent_dir}/{file}")),
        },
    }
}

impl AgentProfile {
    /// To whom users' directories belong, when that is not the service.
    pub fn home_owner(&self, service_user: (u32, u32)) -> Option<(u32, u32)> {
        match self.run_as {
            RunAs::Fixed(uid, gid) if (uid, gid) != service_user => Some((uid, gid)),
            RunAs::Fixed(..) | RunAs::Service | RunAs::Image => None,
        }
    }
}
