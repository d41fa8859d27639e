//! Rows of users' agent configuration.

use std::collections::BTreeMap;
use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use sqlx::FromRow;

use crate::adapter::Applied;
use crate::column::Flag;
use crate::condition::Reason;
use crate::home::HomeId;
use crate::ids::{Generation, Timestamp, Uid, UserName};
use crate::secrets::MasterKey;

/// Everything the agent-config reconciler needs from the database about one user, but the user's own values.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct AgentConfigRow {
    /// Identity of the user.
    pub uid: Uid,
    /// Name of the user.
    pub name: UserName,
    /// Generation of the agent-config object.
    pub generation: Generation,
    /// Its removal was asked for.
    pub deleted_at: Option<Timestamp>,
    /// Image reference of the container; its tag says which agent reads the files. `None` once the container
    /// is gone.
    pub image_ref: Option<String>,
    /// Version of the user's MCP token.
    pub mcp_token_version: i64,
    /// Generation of the global configuration at the time of reading.
    pub config_generation: i64,
    /// Generation of the active adapter at the time of reading.
    pub adapter_generation: i64,
    /// The rollout of a changed configuration or adapter in which its turn has not come: the files stay as they are.
    pub held_by: Option<Uid>,
    /// What the reconciler remembers.
    #[sqlx(flatten)]
    pub facts: AgentConfigFacts,
}

impl AgentConfigRow {
    /// The user's MCP token, as it goes into the files: the user's name, and what proves it.
    pub fn mcp_token(&self, key: &MasterKey) -> SecretString {
        let secret = key.mcp_token(&self.uid, self.mcp_token_version);
        SecretString::from(format!("{}:{}", self.name, secret.expose_secret()))
    }

    /// The token of the agent's chat, as it goes into the files.
    pub fn chat_token(&self, key: &MasterKey) -> SecretString {
        key.chat_token(&self.uid, self.mcp_token_version)
    }
}

/// What the agent-config reconciler remembers between passes.
#[derive(Debug, Clone, PartialEq, Default, FromRow)]
pub struct AgentConfigFacts {
    /// The newest generation that the files were brought to, or refused for.
    #[sqlx(rename = "facts_generation")]
    pub generation: Generation,
    /// Why the files were not brought to it; `None` when they were.
    pub refused: Option<Reason>,
    /// What was written last; `None` before the first time.
    pub applied: Option<Applied>,
    /// Digest over what a running agent must be restarted for; `None` before the first time.
    pub restart_digest: Option<String>,
    /// The directory that they were written in; `None` before the first time.
    pub home: Option<HomeId>,
    /// The files from before a migration were put back, and have not been migrated since.
    #[sqlx(try_from = "Flag")]
    pub put_back: bool,
}

/// Values by channel and field.
pub type Values = BTreeMap<String, BTreeMap<String, Value>>;

/// What a user has set: secrets, all of it, so it cannot be printed.
#[derive(Clone, Default, PartialEq)]
pub struct UserValues {
    /// Values by channel and field.
    pub channels: Values,
    /// Cookies by domain, as `a=1; b=2`.
    pub cookies: BTreeMap<String, String>,
}

impl fmt::Debug for UserValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserValues([REDACTED])")
    }
}

/// A user's cookies of one domain.
#[derive(Debug, Clone)]
pub struct Cookie {
    /// The domain.
    pub domain: String,
    /// When they were last stored.
    pub updated_at: Timestamp,
    /// As `a=1; b=2`.
    pub value: SecretString,
}
