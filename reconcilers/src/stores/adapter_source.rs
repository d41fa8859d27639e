//! The active adapter at a generation, read once per change.

use std::sync::Arc;

use async_trait::async_trait;
use schema::adapter::store::{self, AdapterCache};
use schema::adapter::{Adapter, Agent};
use schema::error::DbError;

use super::Database;

/// The stored adapter packages.
#[async_trait]
pub trait PackageStore: Send + Sync + 'static {
    /// The active adapter, and the generation it belongs to.
    async fn adapter(&self) -> Result<(i64, Arc<Adapter>), DbError>;
    /// How often the active adapter has changed.
    async fn adapter_generation(&self) -> Result<i64, DbError>;
}

#[async_trait]
impl PackageStore for Database {
    async fn adapter(&self) -> Result<(i64, Arc<Adapter>), DbError> {
        let mut connection = self.db.read().await?;
        let (generation, adapter) = store::active(&mut connection).await?;
        Ok((generation, Arc::new(adapter)))
    }

    async fn adapter_generation(&self) -> Result<i64, DbError> {
        let mut connection = self.db.read().await?;
        store::generation(&mut connection).await
    }
}

/// Reads the active adapter when its generation has changed, and keeps it.
pub struct AdapterSource {
    store: Arc<dyn PackageStore>,
    cache: AdapterCache,
}

impl std::fmt::Debug for AdapterSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdapterSource").finish_non_exhaustive()
    }
}

impl AdapterSource {
    /// A source that has read nothing yet.
    pub fn new(store: Arc<dyn PackageStore>) -> Self {
        Self {
            store,
            cache: AdapterCache::default(),
        }
    }

    /// The adapter of `generation` or newer.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn at(&self, generation: i64) -> Result<Arc<Adapter>, DbError> {
        self.cache.at(generation, self.store.adapter()).await
    }

    /// Reports that a newer adapter than that of `generation` was read.
    pub async fn is_newer(&self, generation: i64) -> bool {
        self.cache.is_newer(generation).await
    }

    /// How agents are run by the adapter of `generation` or newer.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn agent(&self, generation: i64) -> Result<Arc<Agent>, DbError> {
        Ok(Arc::clone(&self.at(generation).await?.index.agent))
    }

    /// The newest adapter there is: one small query, and a read only when it changed.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn newest(&self) -> Result<Arc<Adapter>, DbError> {
        let generation = self.store.adapter_generation().await?;
        self.at(generation).await
    }
}
