//! The half of a database for those who observe.

use std::ops::Deref;

use crate::db::{Db, ObservedTx};
use crate::error::DbError;
use crate::reader::Reader;

/// A database for reconcilers and housekeeping: they read it, and write what they have observed. Desired state is
/// changed through [`audit::Writer`](crate::audit::Writer), with an entry in the audit trail.
#[derive(Debug, Clone)]
pub struct Recorder {
    db: Db,
    reader: Reader,
}

impl Db {
    /// Its half for those who observe.
    pub fn recorder(&self) -> Recorder {
        Recorder {
            db: self.clone(),
            reader: self.reader(),
        }
    }
}

impl Recorder {
    /// A transaction that may write what was observed.
    pub async fn begin(&self) -> Result<ObservedTx, DbError> {
        self.db.begin_observed().await
    }
}

impl Deref for Recorder {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.reader
    }
}
