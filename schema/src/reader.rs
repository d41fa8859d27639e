//! The reading half of a database.

use crate::bell::Bell;
pub use crate::connection::{Connection, Reading};
use crate::db::{Db, Refusal};
use crate::error::DbError;

/// A database for those who must not write as they like: no transaction that may write can be had
/// from it.
#[derive(Debug, Clone)]
pub struct Reader(Db);

impl Db {
    /// Its reading half.
    pub fn reader(&self) -> Reader {
        Reader(self.clone())
    }
}

/// A connection whose reads all see one state.
pub type Snapshot = Reading;

impl Reader {
    /// As [`Db::read`].
    pub async fn read(&self) -> Result<Reading, DbError> {
        self.0.read().await
    }

    /// As [`Db::snapshot`].
    pub async fn snapshot(&self) -> Result<Snapshot, DbError> {
        self.0.snapshot().await
    }

    /// As [`Backend::kind`](crate::db::Backend::kind).
    pub fn kind(&self) -> &'static str {
        self.0.backend().kind()
    }

    /// As [`Db::refusal`].
    pub fn refusal(&self) -> Option<Refusal> {
        self.0.refusal()
    }

    /// As [`Db::ping`].
    pub async fn ping(&self) -> Result<(), DbError> {
        self.0.ping().await
    }

    /// As [`Db::bell`].
    pub fn bell(&self) -> Bell {
        self.0.bell()
    }

    /// As [`Db::changes`].
    pub fn changes(&self) -> Bell {
        self.0.changes()
    }
}
