//! Rows of users' agent configuration.

use std::collections::BTreeMap;
use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use sqlx::FromRow;

use crate::adapter::Applied;
use crate::condition::Reason;
use crate::error::DbError;
use crate::ids::{Generation, Timestamp, Uid, UserName};
use crate::secrets::MasterKey;

/// Everything the agent-config reconciler needs from the database about one user, but the user's own values.
#[derive(Debug, Clone, PartialEq)]
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
    /// What the reconciler remembers.
    pub facts: AgentConfigFacts,
}

impl AgentConfigRow {
    /// The user's MCP token, as it goes into the files: the user's name, and what proves it.
    pub fn mcp_token(&self, key: &MasterKey) -> SecretString {
        let secret = key.mcp_token(&self.uid, self.mcp_token_version);
        SecretString::from(format!("{}:{}", self.name, secret.expose_secret()))
    }
}

/// What the agent-config reconciler remembers between passes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentConfigFacts {
    /// The newest generation that the files were brought to, or refused for.
    pub generation: Generation,
    /// Why the files were not brought to it; `None` when they were.
    pub refused: Option<Reason>,
    /// What was written last; `None` before the first time.
    pub applied: Option<Applied>,
    /// Digest over what a running agent must be restarted for; `None` before the first time.
    pub restart_digest: Option<String>,
    /// The files from before a migration were put back, and have not been migrated since.
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

#[derive(FromRow)]
pub(super) struct RawConfig {
    pub uid: String,
    pub name: String,
    pub generation: i64,
    pub deleted_at: Option<i64>,
    pub image_ref: Option<String>,
    pub mcp_token_version: i64,
    pub config_generation: i64,
    pub adapter_generation: i64,
    pub facts_generation: Option<i64>,
    pub refused: Option<String>,
    pub applied: Option<String>,
    pub restart_digest: Option<String>,
    pub put_back: Option<i64>,
}

/// Reads the stored form of a reason.
pub(crate) fn read_reason(text: Option<&str>) -> Result<Option<Reason>, DbError> {
    text.map(|text| {
        text.parse()
            .map_err(|_| DbError::Corrupt(format!("reason {text:?}")))
    })
    .transpose()
}

impl TryFrom<RawConfig> for AgentConfigRow {
    type Error = DbError;

    fn try_from(raw: RawConfig) -> Result<Self, DbError> {
        let applied = raw.applied.as_deref().map(serde_json::from_str).transpose();
        let applied = applied.map_err(|e| DbError::Corrupt(format!("applied: {e}")))?;
        Ok(Self {
            uid: Uid::from(raw.uid),
            name: raw.name.parse()?,
            generation: Generation(raw.generation),
            deleted_at: raw.deleted_at.map(Timestamp::from_millis),
            image_ref: raw.image_ref,
            mcp_token_version: raw.mcp_token_version,
            config_generation: raw.config_generation,
            adapter_generation: raw.adapter_generation,
            facts: AgentConfigFacts {
                generation: Generation(raw.facts_generation.unwrap_or(0)),
                refused: read_reason(raw.refused.as_deref())?,
                applied,
                restart_digest: raw.restart_digest,
                put_back: raw.put_back == Some(1),
            },
        })
    }
}
