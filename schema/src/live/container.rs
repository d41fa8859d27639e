//! A container as the engine reports it.
//!
//! Its JSON is what operators see of it: names of environment variables without their values, which
//! may be secrets, and each fact once, although the engine's driver compares some in two places.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::condition::Reason;
use crate::ids::Timestamp;

/// Label: the restart token the object was made for.
pub const LABEL_RESTART_TOKEN: &str = "io.agentyard.restart-token";
/// Label: made with the adapter's debug command.
pub const LABEL_DEBUG: &str = "io.agentyard.debug";

/// A container as listings report it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct Container {
    /// The engine's id.
    pub id: String,
    /// Name on the engine; empty while the container is being removed.
    #[schema(example = "agentyard-alice")]
    pub name: String,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// What it is doing.
    pub state: ContainerState,
    /// Id (`sha256:…`) of the image it was made from.
    #[serde(rename = "image")]
    pub image_id: String,
    /// When it was created (whole seconds).
    pub created_at: Timestamp,
    /// Networks by name, with the address where there is one.
    pub networks: BTreeMap<String, Option<String>>,
    /// Result of the engine's own readiness check; null where the engine has none, and the service asks the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Cause for which it does not run yet, or is not removed yet, if the engine reports one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
}

/// Cause for which the engine does not go on with a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Waiting {
    /// Stable for programs.
    #[schema(example = "Unschedulable")]
    pub reason: Reason,
    /// In the engine's words.
    pub message: String,
}

impl Container {
    /// The restart token that it was made for.
    pub fn restart_token(&self) -> Option<&str> {
        self.labels.get(LABEL_RESTART_TOKEN).map(String::as_str)
    }

    /// Whether it runs the adapter's debug command.
    pub fn debug(&self) -> bool {
        self.labels.contains_key(LABEL_DEBUG)
    }
}

/// What a container is doing.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Default,
    Serialize,
    strum::Display,
    strum::EnumString,
    ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(example = "running")]
pub enum ContainerState {
    /// Created, never started.
    #[default]
    Created,
    /// Accepted by the engine for a start, and not running yet: a machine, an image or a volume is awaited.
    Starting,
    /// Running.
    Running,
    /// Frozen by `pause`.
    Paused,
    /// Between two runs of the engine's own restart policy.
    Restarting,
    /// Being removed.
    Removing,
    /// Ended.
    Exited,
    /// Could not be removed; unusable.
    Dead,
}

impl ContainerState {
    /// Returns true while the container's process runs, or will without another call.
    pub fn is_up(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }
}

/// End of a container for a cause outside of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// The engine took it from its machine, which was short of something.
    Evicted,
    /// Its machine is gone.
    NodeLost,
    /// A person or another program removed it.
    Removed,
    /// The engine stopped or was restarted.
    EngineStopped,
}

/// Everything about one container.
#[derive(Debug, Clone, PartialEq, Default, Serialize, ToSchema)]
pub struct ContainerDetails {
    /// What a listing says of it, too.
    #[serde(flatten)]
    pub container: Container,
    /// When it was last started.
    pub started_at: Option<Timestamp>,
    /// When it last exited.
    pub finished_at: Option<Timestamp>,
    /// Exit code of the last exit; null while it runs and when it never ran.
    pub exit_code: Option<i64>,
    /// Killed for using too much memory.
    pub oom_killed: bool,
    /// Cause outside of the container for its last end, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// The engine's error when a start failed.
    pub error: String,
    /// The settings in force.
    // Read back in the same form they are given: zero for "no limit", binds sorted by target,
    // capabilities sorted and without `CAP_`. Environment and labels hold the image's too, and command
    // and host name the engine's own choice where none was given: compare only what was requested.
    #[serde(flatten)]
    pub settings: ContainerSettings,
    /// Names of properties that `create` gives every container and this one lacks, because somebody
    /// else made or changed it: `cap_drop`, `no_new_privileges`, `privileged`, `init`, `restart_policy`.
    #[serde(skip)]
    pub deviations: Vec<&'static str>,
}

/// The settings of a container.
// What it is made with. Read back by `inspect` in the same form, so that the two can be compared; a
// field that the engine fills in by itself when absent is `None` in a request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, ToSchema)]
pub struct ContainerSettings {
    /// Image id (`sha256:…`), so that a moved tag changes nothing.
    #[serde(skip)]
    pub image: String,
    /// The whole command line.
    // It replaces the image's entry point and arguments; `None` keeps both, and `inspect` reads back
    // the one in force.
    pub command: Option<Vec<String>>,
    /// Names of environment variables, without their values.
    // Set by us, on top of the image's.
    #[serde(serialize_with = "names")]
    #[schema(value_type = Vec<String>)]
    pub environment: BTreeMap<String, String>,
    /// Labels set by us. Never a secret.
    #[serde(skip)]
    pub labels: BTreeMap<String, String>,
    /// `uid:gid`; null = the image's own user.
    pub user: Option<String>,
    /// Host name inside the container.
    pub hostname: Option<String>,
    /// Directories of the host that it sees.
    // The source must exist.
    #[serde(rename = "mounts")]
    pub binds: Vec<Bind>,
    /// The one network to attach to.
    #[serde(skip)]
    pub network: String,
    /// Processor limit in billionths of a core; 0 = no limit.
    #[serde(rename = "cpu_limit_nanos")]
    pub nano_cpus: i64,
    /// Memory limit in bytes (swap included, so swap is off); 0 = no limit.
    #[serde(rename = "memory_limit_bytes")]
    pub memory_bytes: i64,
    /// Maximum number of processes; 0 = no limit.
    pub pids_limit: i64,
    /// Capabilities added after dropping all.
    pub capabilities: Vec<String>,
    /// Log limits.
    #[serde(skip)]
    pub log: LogLimits,
    /// Check of the agent's readiness that the engine makes itself; none where the service asks the agent.
    #[serde(skip)]
    pub probe: Option<Probe>,
    /// Digest of what the engine adds to the settings by its own configuration, if it adds anything.
    #[serde(skip)]
    pub overlay: Option<String>,
}

/// A check of an agent's readiness: an HTTP GET that answers 2xx.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Probe {
    /// Port in the container.
    pub port: u16,
    /// Path, with a slash in front.
    pub path: String,
}

fn names<S: Serializer>(
    environment: &BTreeMap<String, String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(environment.keys())
}

/// A directory of the engine inside a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, ToSchema)]
#[schema(as = Mount)]
pub struct Bind {
    /// Place as the engine names it: a path of its host, or a folder of a volume.
    pub source: String,
    /// Path inside the container.
    pub target: String,
    /// Mounted read-only.
    pub read_only: bool,
}

/// Bounds of the engine's log files of one container (`json-file` driver).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLimits {
    /// Size of one file in MiB.
    pub max_size_mb: u32,
    /// Number of files.
    pub max_files: u32,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self {
            max_size_mb: 10,
            max_files: 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_environment_variables_are_not_shown() {
        let settings = ContainerSettings {
            environment: BTreeMap::from([("TOKEN".to_owned(), "hunter2".to_owned())]),
            ..ContainerSettings::default()
        };
        let details = ContainerDetails {
            settings,
            ..ContainerDetails::default()
        };
        let shown = serde_json::to_value(&details).unwrap();
        assert_eq!(shown["environment"], json!(["TOKEN"]));
        assert!(!shown.to_string().contains("hunter2"));
    }
}
