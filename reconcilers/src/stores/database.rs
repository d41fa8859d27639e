//! The database, as every reconciler's store. What each of them reads and writes stands in its own folder.

use std::sync::Arc;

use schema::audit::{Audited, Author, Writer};
use schema::bell::Bell;
use schema::clock::SharedClock;
use schema::db::Db;
use schema::error::DbError;
use schema::ids::{Kind, Uid};
use schema::recorder::Recorder;
use schema::secrets::MasterKey;

use super::DbStatusStore;
use crate::runtime::{Objects, StatusStore};

/// The open database, and the key for its secrets. What it writes is what reconcilers observe; desired state they change
/// in a transaction of `Database::begin_as`.
#[derive(Clone)]
pub struct Database {
    pub(crate) db: Recorder,
    writer: Writer,
    pub(crate) master_key: Arc<MasterKey>,
    clock: SharedClock,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").finish_non_exhaustive()
    }
}

impl Database {
    /// Puts the parts together.
    pub fn new(db: Db, master_key: Arc<MasterKey>, clock: SharedClock) -> Self {
        Self {
            writer: Writer::new(db.clone(), &master_key, Arc::clone(&clock)),
            db: db.recorder(),
            master_key,
            clock,
        }
    }

    /// A transaction in which the reconciler `name` changes desired state; `action` is what the audit trail calls it.
    pub(crate) async fn begin_as(&self, name: &str, action: &str) -> Result<Audited, DbError> {
        self.writer.begin(Author::system(name, action)).await
    }
}

impl Objects for Database {
    fn statuses(&self, kind: Kind, reconciler: &'static str) -> Arc<dyn StatusStore<Uid>> {
        let (db, clock) = (self.db.clone(), Arc::clone(&self.clock));
        Arc::new(DbStatusStore::new(db, kind, reconciler, clock))
    }

    fn bell(&self) -> Bell {
        self.db.bell()
    }
}
