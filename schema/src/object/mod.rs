//! What every reconciled object has: generation, status, finalizers, pause switch.

mod model;
pub(crate) mod problem;
pub(crate) mod query;

pub use model::{Dirty, ObjectRow, ReadyCount, StatusRow, Unsettled};
pub use problem::{NAMED, Problem, problems};
pub use query::{
    UNREADY, add_finalizer, bump, bump_all, bump_all_but, bump_in_bulk, delete, dirty, dirty_since,
    ensure_singles, finalizers, find_by_name, get, insert, is_kind_paused, list,
    paused_reconcilers, paused_uids, purge_if_finalized, ready_counts, remove_finalizer,
    save_status, set_paused, set_reconciler_paused, statuses, uids, unsettled,
};
pub(crate) use query::{insert_many, is_unready, status_columns};
