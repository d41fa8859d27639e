//! The active adapter in memory: read and parsed once per change.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::adapter::{Adapter, RunAs};
use crate::config::Config;
use crate::connection::Connection;
use crate::error::DbError;
use crate::reader::Reader;

/// Keeps the newest active adapter that was read.
#[derive(Debug, Default)]
pub struct AdapterCache {
    // Held while a package is read, so that many who want a new one at the same moment read it once.
    newest: Mutex<Option<(i64, Arc<Adapter>)>>,
}

impl AdapterCache {
    /// Reports that a newer adapter than that of `generation` is kept.
    pub async fn is_newer(&self, generation: i64) -> bool {
        let newest = self.newest.lock().await;
        newest.as_ref().is_some_and(|(kept, _)| *kept > generation)
    }

    /// The adapter of `generation` or newer: the one that is kept, else what `read` gives.
    ///
    /// # Errors
    /// Those of `read`.
    pub async fn at<E>(
        &self,
        generation: i64,
        read: impl Future<Output = Result<(i64, Arc<Adapter>), E>>,
    ) -> Result<Arc<Adapter>, E> {
        let mut newest = self.newest.lock().await;
        if let Some((kept, adapter)) = &*newest
            && *kept >= generation
        {
            return Ok(Arc::clone(adapter));
        }
        let (read, adapter) = read.await?;
        *newest = Some((read, Arc::clone(&adapter)));
        Ok(adapter)
    }
}

/// The active adapter for those who may only read the database.
#[derive(Debug)]
pub struct ActiveAdapter {
    db: Reader,
    cache: AdapterCache,
}

impl ActiveAdapter {
    /// One that has read nothing yet.
    pub fn new(db: Reader) -> Self {
        Self {
            db,
            cache: AdapterCache::default(),
        }
    }

    /// The adapter in effect: one small query, and a read off the async threads when it changed.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn current(&self) -> Result<Arc<Adapter>, DbError> {
        let mut connection = self.db.read().await?;
        self.current_in(&mut connection).await
    }

    /// The same as `connection` sees it, which may be a transaction.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn current_in(&self, connection: &mut Connection) -> Result<Arc<Adapter>, DbError> {
        let generation = super::generation(connection).await?;
        // Whoever waits for another's read has its connection already, so nobody waits in a circle.
        let read = async {
            let (generation, adapter) = super::active(connection).await?;
            Ok((generation, Arc::new(adapter)))
        };
        self.cache.at(generation, read).await
    }

    /// The configuration with what the active adapter decides: defaults, and which settings are secret.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn settle(
        &self,
        connection: &mut Connection,
        config: Config,
    ) -> Result<Config, DbError> {
        let adapter = self.current_in(connection).await?;
        Ok(config
            .with_run_as_image(adapter.index.agent.run_as == RunAs::Image)
            .with_secret_paths(Arc::clone(&adapter.secret_paths)))
    }
}
