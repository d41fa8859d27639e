//! What goes into a rendering and what comes out of it.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::migrate::NoMigrationPath;
use super::super::version::Version;
use super::managed::ManagedPaths;

/// Everything that the files follow from.
///
/// It holds secrets, so it cannot be printed.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The tag of the user's image.
    pub image_tag: &'a str,
    /// The global settings for the configuration file; an object, or null for none.
    pub agent: &'a Value,
    /// The global settings for the security file; an object, or null for none.
    pub security: &'a Value,
    /// The user's values by channel and field.
    pub channels: &'a BTreeMap<String, BTreeMap<String, Value>>,
    /// The user's cookies by domain, as `a=1; b=2`.
    pub cookies: &'a BTreeMap<String, String>,
    /// How the agent reaches its MCP servers; `None`: it does not.
    pub mcp: Option<McpAccess<'a>>,
    /// The token of the agent's chat; `None`: the chat is off.
    pub chat: Option<&'a SecretString>,
    /// What the last rendering that was written said.
    pub applied: Option<&'a Applied>,
    /// The files as they are.
    pub found: Found<'a>,
}

/// How the agent reaches its MCP servers.
#[derive(Clone, Copy)]
pub struct McpAccess<'a> {
    /// The service's address as the container sees it.
    pub base_url: &'a str,
    /// The user's token.
    pub token: &'a SecretString,
}

/// The agent's files as they are; `None` = there is none.
#[derive(Clone, Copy, Default)]
pub struct Found<'a> {
    /// The configuration file.
    pub config: Option<&'a [u8]>,
    /// The security file.
    pub security: Option<&'a [u8]>,
}

/// What is kept of a rendering that was written: enough to detect drift and to take back later what
/// is not set any more. Holds places and a digest, no values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// The configuration version of the files.
    pub config_version: u32,
    /// What the service has set.
    pub managed: ManagedPaths,
    /// Digest over what the service has set, places and values.
    pub digest: String,
}

/// The desired files.
///
/// It holds secrets, so it cannot be printed.
pub struct Rendered {
    /// The agent version that the image is treated as.
    pub agent_version: Version,
    /// The configuration version that the files were found in; when it is another one, they were migrated.
    pub found_version: u32,
    /// The configuration version of the files.
    pub config_version: u32,
    /// The configuration file.
    pub config: RenderedFile,
    /// The security file.
    pub security: RenderedFile,
    /// To be kept once the files are written.
    pub applied: Applied,
    /// Digest over what a running agent must be restarted for: the configuration version, global
    /// settings, channels, MCP servers, the workspace; neither cookies nor anything of the user's or the agent's own.
    pub restart_digest: String,
    /// The user's values that this agent version has no place for, as `channel` or
    /// `channel.field`. They are kept where they are stored, and written when it has one.
    pub skipped: Vec<String>,
}

/// One desired file.
pub struct RenderedFile {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether it says something else than the file that was found. Another order or other spaces
    /// are nothing else.
    pub changed: bool,
}

/// Why there are no files. Says nothing of what is in them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A file of the user's cannot be read, so it is left as it is.
    #[error("{file} {problem}")]
    InvalidUserConfig {
        /// The file, relative to the agent directory.
        file: String,
        /// The rest of the sentence.
        problem: String,
    },
    /// The user's files cannot be brought to the version that the image reads.
    #[error("the user's configuration cannot be migrated")]
    NoMigrationPath(#[source] NoMigrationPath),
    /// The global settings cannot be brought to the version that the image reads.
    #[error("the global settings cannot be migrated")]
    GlobalMigration(#[source] NoMigrationPath),
    /// A global setting is not as it must be.
    #[error("the setting {key} {problem}")]
    InvalidGlobal {
        /// `agent` or `security`.
        key: &'static str,
        /// The rest of the sentence.
        problem: String,
    },
    /// A file would come out too long or too deep.
    #[error("{file} {problem}")]
    TooLarge {
        /// The file, relative to the agent directory.
        file: String,
        /// The rest of the sentence.
        problem: String,
    },
}
