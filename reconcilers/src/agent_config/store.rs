//! What the agent-config reconciler reads and writes in the database.

use async_trait::async_trait;
use schema::agent_config::{self, AgentConfigFacts, AgentConfigRow, KeptFiles, UserValues};
use schema::error::DbError;
use schema::ids::Uid;
use secrecy::SecretString;

use crate::stores::{Database, Rows};

/// What users' agent files follow from. Every write is one transaction, and may be repeated.
#[async_trait]
pub trait AgentConfigStore: Rows<AgentConfigRow> {
    /// What a user has set, opened.
    async fn user_values(&self, uid: &Uid) -> Result<UserValues, DbError>;
    /// The MCP token that goes into a user's files.
    fn mcp_token(&self, row: &AgentConfigRow) -> SecretString;
    /// The token of the agent's chat that goes into a user's files.
    fn chat_token(&self, row: &AgentConfigRow) -> SecretString;
    /// Keeps a user's files as they are before a migration, in place of what was kept; nothing happens when
    /// the user is gone or going.
    async fn keep_files(&self, uid: &Uid, files: &KeptFiles) -> Result<(), DbError>;
    /// A user's files as they were before the last migration, opened.
    async fn kept_files(&self, uid: &Uid) -> Result<Option<KeptFiles>, DbError>;
    /// Saves what was written, and bumps the container when what a running agent must be restarted for has
    /// changed; nothing happens when the user is gone.
    async fn save_agent_config_facts(
        &self,
        uid: &Uid,
        facts: &AgentConfigFacts,
    ) -> Result<(), DbError>;
}

#[async_trait]
impl Rows<AgentConfigRow> for Database {
    async fn rows(&self) -> Result<Vec<(Uid, AgentConfigRow)>, DbError> {
        let rows = agent_config::all(&mut *self.db.read().await?).await?;
        Ok(rows.into_iter().map(|row| (row.uid.clone(), row)).collect())
    }

    async fn row(&self, uid: &Uid) -> Result<Option<AgentConfigRow>, DbError> {
        agent_config::get(&mut *self.db.read().await?, uid).await
    }
}

#[async_trait]
impl AgentConfigStore for Database {
    async fn user_values(&self, uid: &Uid) -> Result<UserValues, DbError> {
        let mut snapshot = self.db.snapshot().await?;
        agent_config::values(&mut snapshot, &self.master_key, uid).await
    }

    fn mcp_token(&self, row: &AgentConfigRow) -> SecretString {
        row.mcp_token(&self.master_key)
    }

    fn chat_token(&self, row: &AgentConfigRow) -> SecretString {
        row.chat_token(&self.master_key)
    }

    async fn keep_files(&self, uid: &Uid, files: &KeptFiles) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        agent_config::keep_files(&mut tx, &self.master_key, uid, files).await?;
        tx.commit().await
    }

    async fn kept_files(&self, uid: &Uid) -> Result<Option<KeptFiles>, DbError> {
        let mut connection = self.db.read().await?;
        agent_config::kept_files(&mut connection, &self.master_key, uid).await
    }

    async fn save_agent_config_facts(
        &self,
        uid: &Uid,
        facts: &AgentConfigFacts,
    ) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        agent_config::save_facts(&mut tx, uid, facts).await?;
        tx.commit().await
    }
}
