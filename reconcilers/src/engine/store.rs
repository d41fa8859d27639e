//! What the engine reconciler reads in the database.

use async_trait::async_trait;
use schema::config::query::engine_uid;
use schema::error::DbError;
use schema::ids::{Generation, Kind};
use schema::{container, object};

use crate::stores::Database;

/// What is stored about the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineRow {
    /// Generation of the engine object.
    pub generation: Generation,
    /// A container is on the agents' network, or is desired there.
    pub in_use: bool,
}

/// The one engine.
#[async_trait]
pub trait EngineStore: Send + Sync + 'static {
    /// The engine; `None` before the first start.
    async fn engine(&self) -> Result<Option<EngineRow>, DbError>;
}

#[async_trait]
impl EngineStore for Database {
    async fn engine(&self) -> Result<Option<EngineRow>, DbError> {
        let mut connection = self.db.read().await?;
        let object = object::get(&mut connection, Kind::Engine, &engine_uid()).await?;
        let in_use = container::count_on_network(&mut connection).await? > 0;
        Ok(object.map(|object| EngineRow {
            generation: object.generation,
            in_use,
        }))
    }
}
