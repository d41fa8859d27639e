//! A connection that the pool has lent, and what becomes of it.
//!
//! A connection goes back to the pool only when it is known to be as it was: outside of any transaction, with
//! nothing under way. One whose transaction did not end cleanly (its COMMIT or ROLLBACK failed, a
//! statement met a full or failing disk, or was cut off) is closed, and the next one begins afresh: SQLite
//! ends a transaction by itself when its disk is full, and whoever goes on then writes outside of it.

use std::ops::{Deref, DerefMut};

use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, AnyPool, Database, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;

use crate::error::DbError;
use crate::link::Link;

type Transactions = <Any as Database>::TransactionManager;

/// Begins a transaction of SQLite that writes: it takes the lock on the file.
pub(crate) const BEGIN_WRITING: &str = "BEGIN IMMEDIATE";

/// What all functions of this crate take that read or write: a connection, in a transaction or not.
#[derive(Debug)]
pub struct Connection {
    raw: PoolConnection<Any>,
    link: Link,
    /// A statement is under way, or has ended so that nobody knows what has become of it.
    doubtful: bool,
    /// A transaction has begun and has not ended.
    open: bool,
}

impl Connection {
    /// Borrows one of the pool's, outside of any transaction.
    pub(crate) async fn of(pool: &AnyPool, link: &Link) -> Result<Self, DbError> {
        link.check()?;
        let raw = link.bound(pool.acquire()).await?;
        Ok(Self {
            raw,
            link: link.clone(),
            doubtful: false,
            open: false,
        })
    }

    /// The same in a transaction that begins with `statement`.
    pub(crate) async fn beginning(
        pool: &AnyPool,
        link: &Link,
        statement: &'static str,
    ) -> Result<Self, DbError> {
        let mut connection = Self::of(pool, link).await?;
        let (raw, link) = connection.statement()?;
        let begun = link.bound(Transactions::begin(raw, Some(statement.into_sql_str())));
        let begun = match statement {
            BEGIN_WRITING => link.lock_file(begun).await,
            _ => begun.await,
        };
        connection.ended(&begun);
        begun?;
        connection.open = true;
        Ok(connection)
    }

    /// A statement begins. Until it has [`ended`](Self::ended), the connection is in doubt, and so it stays
    /// when the statement is cut off.
    pub(crate) fn statement(&mut self) -> Result<(&mut AnyConnection, &Link), DbError> {
        if self.doubtful {
            let why = "an earlier statement of this transaction was not completed";
            return Err(DbError::Unavailable(why.to_owned()));
        }
        self.doubtful = true;
        Ok((&mut *self.raw, &self.link))
    }

    /// A statement has ended.
    pub(crate) fn ended<T>(&mut self, result: &Result<T, DbError>) {
        self.doubtful = matches!(
            result,
            Err(DbError::StorageFull(_) | DbError::StorageFailed(..) | DbError::Unavailable(_))
        );
    }

    pub(crate) async fn commit(&mut self) -> Result<(), DbError> {
        let (raw, link) = self.statement()?;
        // What fails here may have been done or not: the connection stays in doubt.
        link.bound(Transactions::commit(raw)).await?;
        link.written();
        self.doubtful = false;
        self.open = false;
        Ok(())
    }

    /// The connection itself, for statements that are not this crate's: tests have some.
    pub fn raw(&mut self) -> &mut AnyConnection {
        &mut self.raw
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.doubtful {
            self.raw.close_on_drop();
        } else if self.open {
            Transactions::start_rollback(&mut self.raw);
        }
    }
}

/// A connection for reading.
#[derive(Debug)]
pub struct Reading(pub(crate) Connection);

impl Deref for Reading {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl DerefMut for Reading {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.0
    }
}
