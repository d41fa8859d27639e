//! What a user's container is made of: a pure function of the user, the configuration and the adapter.

use std::collections::BTreeMap;

use engine::{
    Bind, ContainerSettings, LABEL_GENERATION, LABEL_OWNER, LABEL_RESTART_TOKEN, LABEL_SPEC_DIGEST,
    LABEL_UID, LogLimits, NETWORK, Probe,
};
use schema::adapter::{Agent, Readiness, RunAs};
use schema::config::{Config, keys};
use schema::container::ContainerRow;
use schema::home::HomeId;
use schema::ids::Uid;
pub use schema::live::LABEL_DEBUG;
use sha2::{Digest, Sha256};

/// Label: what the agent's files said when it was made, as far as it must be restarted for that.
pub const LABEL_CONFIG_DIGEST: &str = "io.agentyard.config-digest";

/// Label: the directory that it mounts as its home. When another one lies there, it goes on in the one that is gone.
pub const LABEL_HOME: &str = "io.agentyard.home";

/// What else than the row goes into the settings.
#[derive(Debug, Clone)]
pub struct Inputs<'a> {
    /// Effective configuration.
    pub config: &'a Config,
    /// How the agent is run.
    pub agent: &'a Agent,
    /// The instance id.
    pub owner: &'a str,
    /// Mount of the user's directory.
    pub mount: Bind,
    /// `uid:gid` the service runs as.
    pub service_user: (u32, u32),
    /// The user's directory, as far as it is known.
    pub home: Option<&'a HomeId>,
    /// The engine checks the agent's readiness itself.
    pub probes: bool,
    /// Digest of what the engine adds, see [`Compute::overlay`](engine::Compute::overlay).
    pub overlay: Option<&'a str>,
}

/// The settings of a user's container made from `image_id`, labels and digest included.
pub fn container_settings(
    row: &ContainerRow,
    image_id: &str,
    inputs: &Inputs<'_>,
) -> ContainerSettings {
    let agent = inputs.agent;
    let config = inputs.config;
    let mut environment = agent.environment.clone();
    if let Some(timezone) = config.get(&keys::container::TIMEZONE) {
        environment.insert("TZ".to_owned(), timezone);
    }
    if row.debug {
        environment.insert("AGENT_DEBUG".to_owned(), "1".to_owned());
    }
    let user = match agent.run_as {
        RunAs::Service => {
            environment.insert("HOME".to_owned(), agent.home.clone());
            Some(format!(
                "{}:{}",
                inputs.service_user.0, inputs.service_user.1
            ))
        }
        RunAs::Ids(uid, gid) => {
            environment.insert("HOME".to_owned(), agent.home.clone());
            Some(format!("{uid}:{gid}"))
        }
        RunAs::Image => None,
    };
    let mut capabilities = config.capabilities_for(agent.run_as == RunAs::Image);
    capabilities.sort();
    capabilities.dedup();
    let nano_cpus = match row.cpu_limit {
        Some(cores) => nano_cpus(cores),
        None => config.cpu_limit_nanos().map_or(0, saturating),
    };
    let memory_bytes = match row.memory_limit_mb {
        Some(megabytes) => megabytes.saturating_mul(1024 * 1024),
        None => saturating(config.memory_limit_bytes()),
    };
    let command = if row.debug {
        agent
            .debug_command
            .clone()
            .or_else(|| agent.command.clone())
    } else {
        agent.command.clone()
    };
    let mut settings = ContainerSettings {
        image: image_id.to_owned(),
        command,
        environment,
        labels: BTreeMap::new(),
        user,
        hostname: Some(hostname(row)),
        binds: vec![inputs.mount.clone()],
        network: NETWORK.to_owned(),
        nano_cpus,
        memory_bytes,
        pids_limit: saturating(config.get(&keys::container::PIDS_LIMIT)),
        capabilities,
        log: LogLimits::default(),
        probe: inputs.probes.then(|| probe(agent)).flatten(),
        overlay: inputs.overlay.map(str::to_owned),
    };
    let digest = digest(&settings);
    settings.labels = labels(row, inputs, &digest);
    settings
}

fn labels(row: &ContainerRow, inputs: &Inputs<'_>, digest: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from(
        [
            (LABEL_OWNER, inputs.owner.to_owned()),
            (LABEL_UID, row.uid.to_string()),
            (LABEL_GENERATION, row.generation.to_string()),
            (LABEL_SPEC_DIGEST, digest.to_owned()),
            (LABEL_RESTART_TOKEN, row.restart_token.clone()),
        ]
        .map(|(key, value)| (key.to_owned(), value)),
    );
    if let Some(digest) = &row.files.restart_digest {
        labels.insert(LABEL_CONFIG_DIGEST.to_owned(), digest.clone());
    }
    if let Some(home) = inputs.home {
        labels.insert(LABEL_HOME.to_owned(), home.to_string());
    }
    if row.debug {
        labels.insert(LABEL_DEBUG.to_owned(), "1".to_owned());
    }
    labels
}

/// The check that an engine can make of an agent's readiness.
fn probe(agent: &Agent) -> Option<Probe> {
    match &agent.readiness {
        Readiness::Http { port, path } => Some(Probe {
            port: *port,
            path: path.clone(),
        }),
        Readiness::Running | Readiness::File(_) => None,
    }
}

/// A core is a thousand million of the engine's units.
#[allow(clippy::cast_possible_truncation)]
fn nano_cpus(cores: f64) -> i64 {
    (cores * 1e9).round() as i64
}

fn saturating(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The user's name as a host name: letters, digits and hyphens, at most 63.
fn hostname(row: &ContainerRow) -> String {
    let mut name: String = row
        .name
        .as_str()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(63)
        .collect();
    while name.ends_with('-') {
        name.pop();
    }
    name
}

/// A digest over everything that, when changed, needs another container. Labels are not part of it:
/// a new generation with the same settings is the same container.
pub fn digest(settings: &ContainerSettings) -> String {
    let mut hash = Sha256::new();
    let mut field = |name: &str, value: &str| {
        // Lengths keep fields apart: no two different settings give the same bytes.
        hash.update(format!("{name}:{}:", value.len()));
        hash.update(value);
        hash.update("\n");
    };
    field("image", &settings.image);
    field(
        "has_command",
        if settings.command.is_some() { "1" } else { "0" },
    );
    for part in settings.command.iter().flatten() {
        field("command", part);
    }
    for (key, value) in &settings.environment {
        field("environment_key", key);
        field("environment_value", value);
    }
    field("user", settings.user.as_deref().unwrap_or(""));
    field("hostname", settings.hostname.as_deref().unwrap_or(""));
    for bind in &settings.binds {
        field("bind_source", &bind.source);
        field("bind_target", &bind.target);
        field("bind_read_only", if bind.read_only { "1" } else { "0" });
    }
    field("network", &settings.network);
    field("nano_cpus", &settings.nano_cpus.to_string());
    field("memory_bytes", &settings.memory_bytes.to_string());
    field("pids_limit", &settings.pids_limit.to_string());
    for capability in &settings.capabilities {
        field("capability", capability);
    }
    field("log_size", &settings.log.max_size_mb.to_string());
    field("log_files", &settings.log.max_files.to_string());
    // Not there on engines that do without, whose containers are to stay.
    if let Some(probe) = &settings.probe {
        field("probe_port", &probe.port.to_string());
        field("probe_path", &probe.path);
    }
    if let Some(overlay) = &settings.overlay {
        field("overlay", overlay);
    }
    hex::encode(hash.finalize())
}

/// Whether a uid names a container of this user.
pub fn owned_by(labels: &BTreeMap<String, String>, owner: &str, uid: &Uid) -> bool {
    labels.get(LABEL_OWNER).map(String::as_str) == Some(owner)
        && labels.get(LABEL_UID).map(String::as_str) == Some(uid.as_str())
}
