//! How agents are run, and as whom: what the active adapter package says of it.

use std::sync::Arc;

use async_trait::async_trait;
use schema::adapter::Agent;
use schema::error::DbError;

use crate::stores::AdapterSource;

/// How agents are run at a generation of the active adapter.
#[async_trait]
pub trait Agents: Send + Sync + 'static {
    /// That of `generation` or newer.
    async fn at(&self, generation: i64) -> Result<Arc<Agent>, DbError>;
}

#[async_trait]
impl Agents for AdapterSource {
    async fn at(&self, generation: i64) -> Result<Arc<Agent>, DbError> {
        let adapter = Self::at(self, generation).await?;
        Ok(Arc::clone(&adapter.index.agent))
    }
}

/// Agents that are run in the same way for ever: for tests and simulations.
#[async_trait]
impl Agents for Agent {
    async fn at(&self, _: i64) -> Result<Arc<Agent>, DbError> {
        Ok(Arc::new(self.clone()))
    }
}
