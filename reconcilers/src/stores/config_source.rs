//! The effective configuration at a generation, read once per change.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use schema::config::Config;
use schema::config::query::{self, Values};
use schema::error::DbError;

use super::Database;

/// The stored configuration.
#[async_trait]
pub trait ConfigStore: Send + Sync + 'static {
    /// All configured values with secrets opened, and the generation they belong to.
    async fn config(&self) -> Result<(Values, i64), DbError>;
    /// How often the configuration has changed.
    async fn config_generation(&self) -> Result<i64, DbError>;
}

#[async_trait]
impl ConfigStore for Database {
    async fn config(&self) -> Result<(Values, i64), DbError> {
        let mut snapshot = self.db.snapshot().await?;
        query::load(&mut snapshot, &self.master_key).await
    }

    async fn config_generation(&self) -> Result<i64, DbError> {
        let mut connection = self.db.read().await?;
        query::generation(&mut connection).await
    }
}

/// Reads configuration when its generation has changed, and keeps it.
pub struct ConfigSource {
    store: Arc<dyn ConfigStore>,
    newest: Mutex<Option<(i64, Arc<Config>)>>,
}

impl std::fmt::Debug for ConfigSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfigSource").finish_non_exhaustive()
    }
}

impl ConfigSource {
    /// A source that has read nothing yet.
    pub fn new(store: Arc<dyn ConfigStore>) -> Self {
        Self {
            store,
            newest: Mutex::new(None),
        }
    }

    /// The configuration of `generation` or newer.
    ///
    /// # Errors
    /// When the database cannot be read or a secret cannot be opened.
    pub async fn at(&self, generation: i64) -> Result<Arc<Config>, DbError> {
        if let Some(config) = self.kept(generation) {
            return Ok(config);
        }
        let (values, read) = self.store.config().await?;
        let config = Arc::new(Config::from_stored(values));
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*newest {
            Some((kept, config)) if *kept > read => Ok(Arc::clone(config)),
            _ => {
                *newest = Some((read, Arc::clone(&config)));
                Ok(config)
            }
        }
    }

    /// The newest configuration there is: one small query, and a read only when it changed.
    ///
    /// # Errors
    /// When the database cannot be read or a secret cannot be opened.
    pub async fn newest(&self) -> Result<Arc<Config>, DbError> {
        let generation = self.store.config_generation().await?;
        self.at(generation).await
    }

    /// Reports that a newer configuration than that of `generation` was read.
    pub fn is_newer(&self, generation: i64) -> bool {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.as_ref().is_some_and(|(kept, _)| *kept > generation)
    }

    fn kept(&self, generation: i64) -> Option<Arc<Config>> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*newest {
            Some((kept, config)) if *kept >= generation => Some(Arc::clone(config)),
            _ => None,
        }
    }
}
