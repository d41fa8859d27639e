//! The typed form of `index.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};

use super::chat::ChatFeature;
use super::version::{AdapterVersion, Version};
use crate::home::AGENT_DIR;

/// What `index.json` says, with defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Index {
    /// The version of this package.
    pub adapter_version: AdapterVersion,
    /// The newest configuration version that the package knows.
    pub latest_supported_config_version: u32,
    /// How the agent is run.
    pub agent: Arc<Agent>,
    /// The versions of the agent, oldest first; at least one.
    pub agent_versions: AgentVersions,
    /// What images without a version in their tag are treated as; one of `agent_versions`.
    pub untagged: Version,
    /// The configuration schema of each configuration version, as a path in the package.
    pub config_schemas: BTreeMap<u32, String>,
    /// The form description of each configuration version, as a path in the package.
    pub ui_schemas: BTreeMap<u32, String>,
    /// The migrations between configuration versions.
    pub migrations: Vec<MigrationFile>,
}

/// How the agent is run and where its files are.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Agent {
    /// The agent's name, for people.
    pub name: String,
    /// Where the user's directory is mounted in the container.
    pub home: String,
    /// Environment variables, with `${agent_dir}` expanded.
    pub environment: BTreeMap<String, String>,
    /// What the container runs instead of the image's entry point and command; `None` = the image's.
    pub command: Option<Vec<String>>,
    /// The same for a container in debug mode (which also has `AGENT_DEBUG=1`).
    pub debug_command: Option<Vec<String>>,
    /// Whom the agent runs as.
    #[serde(deserialize_with = "parsed")]
    pub run_as: RunAs,
    /// Where cookies go in the security file: dotted path of a map from domain to `a=1; b=2`.
    pub cookies_path: String,
    /// The configuration file, relative to the agent directory.
    pub config_file: String,
    /// The file of secrets, relative to the agent directory.
    pub security_file: String,
    /// When a running container counts as ready.
    pub readiness: Readiness,
    /// Where MCP servers go in the configuration file: a dotted path.
    pub mcp_servers_path: String,
    /// The setting that must hold the path of the workspace in the container: a dotted path.
    pub workspace_setting: Option<String>,
    /// The channel behind the chat-app endpoints.
    pub chatapp_section: String,
    /// Whether the image's own home is copied into an empty user directory before the first start.
    pub seed_home: bool,
}

/// What an index without these fields means; every index has a name.
impl Default for Agent {
    fn default() -> Self {
        Self {
            name: String::new(),
            home: "/root".to_owned(),
            environment: BTreeMap::new(),
            command: None,
            debug_command: None,
            run_as: RunAs::Service,
            cookies_path: "cookies".to_owned(),
            config_file: "config.json".to_owned(),
            security_file: ".security.yml".to_owned(),
            readiness: Readiness::Running,
            mcp_servers_path: "tools.mcp.servers".to_owned(),
            workspace_setting: None,
            chatapp_section: "dingtalk".to_owned(),
            seed_home: false,
        }
    }
}

impl Agent {
    /// The agent directory as the container sees it.
    pub fn agent_dir(&self) -> String {
        format!("{}/{AGENT_DIR}", self.home)
    }

    /// The workspace as the container sees it.
    pub fn workspace_dir(&self) -> String {
        format!("{}/{}", self.home, crate::home::WORKSPACE_DIR)
    }

    /// A file of the agent directory as a path inside the user's directory, as
    /// [`crate::home::UserHome`] takes it.
    pub fn in_home(&self, file: &str) -> String {
        format!("{AGENT_DIR}/{file}")
    }

    /// Whether only a service that runs as root can provide the agent with its files.
    pub fn needs_root(&self, service_user: (u32, u32)) -> bool {
        match self.run_as {
            RunAs::Service => false,
            RunAs::Image => service_user.0 != 0,
            RunAs::Ids(uid, gid) => service_user.0 != 0 && (uid, gid) != service_user,
        }
    }

    /// To whom users' directories belong, when that is not the service.
    pub fn home_owner(&self, service_user: (u32, u32)) -> Option<(u32, u32)> {
        match self.run_as {
            RunAs::Ids(uid, gid) if (uid, gid) != service_user => Some((uid, gid)),
            RunAs::Ids(..) | RunAs::Service | RunAs::Image => None,
        }
    }
}

/// Whom an agent runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunAs {
    /// The user and group that the service runs as, with `HOME` = the agent's home.
    Service,
    /// The image's own user. Needs a service that runs as root.
    Image,
    /// This user and group, numeric.
    Ids(u32, u32),
}

impl FromStr for RunAs {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = |text: &str| {
            text.bytes()
                .all(|b| b.is_ascii_digit())
                .then(|| text.parse::<u32>().ok())
                .flatten()
        };
        match text {
            "service" => Ok(Self::Service),
            "image" => Ok(Self::Image),
            _ => text
                .split_once(':')
                .and_then(|(user, group)| Some(Self::Ids(id(user)?, id(group)?)))
                .ok_or("must be service, image, or two numbers as uid:gid"),
        }
    }
}

/// Reads a value from its text form.
pub(super) fn parsed<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    String::deserialize(deserializer)?
        .parse()
        .map_err(serde::de::Error::custom)
}

/// When a running container counts as ready.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "ReadinessDocument")]
pub enum Readiness {
    /// As soon as it runs.
    Running,
    /// When an HTTP GET answers 2xx.
    Http {
        /// The port in the container.
        port: u16,
        /// The path, with a slash in front.
        path: String,
    },
    /// When this file of the agent directory is newer than the start of the container.
    File(String),
}

#[derive(Deserialize)]
struct ReadinessDocument {
    http: Option<HttpDocument>,
    file: Option<String>,
}

#[derive(Deserialize)]
struct HttpDocument {
    port: u16,
    path: String,
}

impl From<ReadinessDocument> for Readiness {
    fn from(document: ReadinessDocument) -> Self {
        match (document.http, document.file) {
            (Some(HttpDocument { port, path }), None) => Self::Http { port, path },
            (None, Some(file)) => Self::File(file),
            _ => Self::Running,
        }
    }
}

/// One version of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AgentVersion {
    /// The version.
    #[serde(deserialize_with = "parsed")]
    pub version: Version,
    /// The configuration version that it reads.
    pub config_version: u32,
    /// The channel types that it knows.
    #[serde(default)]
    pub channel_types: Vec<String>,
    /// Abilities of its chat; `None` when it has no chat.
    pub chat: Option<BTreeSet<ChatFeature>>,
}

/// A migration that the package holds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct MigrationFile {
    /// The configuration version it starts from.
    pub from_config: u32,
    /// The configuration version it leads to.
    pub to_config: u32,
    /// Its file, as a path in the package.
    pub path: String,
}

/// The versions of an agent, oldest first; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentVersions {
    oldest: AgentVersion,
    newer: Vec<AgentVersion>,
}

impl AgentVersions {
    /// Sorts the versions; `None` when there are none.
    pub(super) fn new(mut versions: Vec<AgentVersion>) -> Option<Self> {
        versions.sort_by_key(|version| version.version);
        let mut versions = versions.into_iter();
        let oldest = versions.next()?;
        Some(Self {
            oldest,
            newer: versions.collect(),
        })
    }

    /// All of them, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &AgentVersion> {
        std::iter::once(&self.oldest).chain(&self.newer)
    }

    /// The oldest.
    pub fn oldest(&self) -> &AgentVersion {
        &self.oldest
    }

    /// The newest.
    pub fn newest(&self) -> &AgentVersion {
        self.newer.last().unwrap_or(&self.oldest)
    }

    /// The declared version that equals `version`.
    pub fn find(&self, version: Version) -> Option<&AgentVersion> {
        self.iter().find(|declared| declared.version == version)
    }
}
