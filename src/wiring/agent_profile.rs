//! From an adapter package to what the container reconciler needs of it.

use std::path::Path;

use reconcilers::container::settings::{AgentProfile, Readiness, RunAs};
use schema::adapter::{self, Adapter};

/// Loads the adapter that was asked for: a built-in one by name, else a folder or a zip.
///
/// # Errors
/// When there is none, or it is not valid: every problem is named.
pub fn adapter(wanted: &str) -> Result<Adapter, Box<dyn std::error::Error + Send + Sync>> {
    if let Some(builtin) = Adapter::builtin(wanted) {
        return Ok(builtin?);
    }
    let path = Path::new(wanted);
    if path.is_dir() {
        return Ok(Adapter::from_folder(path)?);
    }
    let bytes = std::fs::read(path).map_err(|error| {
        format!("--adapter {wanted}: neither a built-in adapter (picoclaw, echo) nor a readable folder or zip: {error}")
    })?;
    Ok(Adapter::from_zip(&bytes)?)
}

/// Whether agents run as their image's own user.
pub fn run_as_image(adapter: &Adapter) -> bool {
    adapter.index.agent.run_as == adapter::RunAs::Image
}

/// How agents are run.
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

/// To whom users' directories belong, when that is not the service.
pub fn home_owner(agent: &AgentProfile, service_user: (u32, u32)) -> Option<(u32, u32)> {
    match agent.run_as {
        RunAs::Fixed(uid, gid) if (uid, gid) != service_user => Some((uid, gid)),
        RunAs::Fixed(..) | RunAs::Service | RunAs::Image => None,
    }
}
