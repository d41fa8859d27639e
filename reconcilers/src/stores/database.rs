//! The database, as every reconciler's store. What each of them reads and writes stands in its own folder.

use std::sync::Arc;

use schema::bell::Bell;
use schema::clock::SharedClock;
use schema::db::Db;
use schema::ids::{Kind, Uid};
use schema::secrets::MasterKey;

use super::DbStatusStore;
use crate::runtime::{Objects, StatusStore};

/// The open database, and the key for its secrets.
#[derive(Clone)]
pub struct Database {
    pub(crate) db: Db,
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
            db,
            master_key,
            clock,
        }
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
