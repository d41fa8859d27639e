//! The desired rows of one kind of object: read in one scan, then one by one as they change.

use std::sync::Arc;

use async_trait::async_trait;
use schema::error::DbError;
use schema::ids::Uid;

use super::cache::{Cache, Marks};

/// Where the rows of one kind are.
#[async_trait]
pub trait Rows<T>: Send + Sync + 'static {
    /// All of them by uid, in one scan, ordered.
    async fn rows(&self) -> Result<Vec<(Uid, T)>, DbError>;
    /// One of them.
    async fn row(&self, uid: &Uid) -> Result<Option<T>, DbError>;
}

/// The rows, cached: a no-op pass over all of them is one scan.
pub struct Desired<T> {
    rows: Arc<dyn Rows<T>>,
    cache: Cache<T>,
}

impl<T> std::fmt::Debug for Desired<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desired").finish_non_exhaustive()
    }
}

impl<T: PartialEq + 'static> Desired<T> {
    /// Nothing is cached yet.
    pub fn new(rows: Arc<dyn Rows<T>>) -> Self {
        Self {
            rows,
            cache: Cache::default(),
        }
    }

    /// The uids of all rows, which are cached by this scan.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn keys(&self) -> Result<Vec<Uid>, DbError> {
        let ticket = self.cache.begin();
        let rows = self.rows.rows().await?;
        let keys = rows.iter().map(|(uid, _)| uid.clone()).collect();
        self.cache.replace(ticket, Marks::Answered, rows);
        Ok(keys)
    }

    /// One row, from the cache unless it may have changed.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn row(&self, uid: &Uid) -> Result<Option<Arc<T>>, DbError> {
        match self.cache.get(uid) {
            Some(row) => Ok(row),
            None => self.read(uid).await,
        }
    }

    /// One row, from the database.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn read(&self, uid: &Uid) -> Result<Option<Arc<T>>, DbError> {
        let ticket = self.cache.begin();
        let row = self.rows.row(uid).await?.map(Arc::new);
        self.cache.put(uid, ticket, row.clone());
        Ok(row)
    }

    /// What is cached may be stale: until the next scan has ended, each row is read.
    pub fn distrust(&self) {
        self.cache.distrust();
    }

    /// The row may have changed: it is read before it is used again.
    pub fn mark(&self, uid: &Uid) {
        self.cache.mark(uid);
    }
}
