//! What the engine reconciler reads in the database.

use async_trait::async_trait;
use schema::config::query::engine_uid;
use schema::error::DbError;
use schema::ids::{Generation, Kind};
use schema::object;

use crate::stores::Database;

/// The one engine.
#[async_trait]
pub trait EngineStore: Send + Sync + 'static {
    /// The generation of the engine object; `None` before the first start.
    async fn engine_generation(&self) -> Result<Option<Generation>, DbError>;
}

#[async_trait]
impl EngineStore for Database {
    async fn engine_generation(&self) -> Result<Option<Generation>, DbError> {
        let mut connection = self.db.read().await?;
        let object = object::get(&mut connection, Kind::Engine, &engine_uid()).await?;
        Ok(object.map(|object| object.generation))
    }
}
