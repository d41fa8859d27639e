//! What changed: the newest version of every object, in the order of commits.
//!
//! Each commit that changes what a watcher is shown of an object (creation, generation, pause, status,
//! deletion, purge) writes one row for it with a new version. The table holds the newest version
//! only, so several changes of one object between two reads are one change, and what a watcher reads
//! is the object's present state. Purged objects keep their row for some time; once such a row is
//! pruned, a watcher that has not read it must list again: its position is below the floor.
//!
//! Versions come from the one row of `change_state`, which the commit takes as its last lock
//! ([`crate::db::Tx::commit`]). So versions become visible in their order on PostgreSQL, too, and no
//! two transactions can wait for each other.

mod model;
pub(crate) mod pending;
pub(crate) mod query;

pub use model::{Change, Filter, InvalidPosition, News, Position};
pub use query::{KEPT, after, position, prune};
