//! Operations: requests that touch many objects. Their progress is computed from the objects' own
//! states, so it survives restarts and never disagrees with them.

mod model;
pub(crate) mod query;

pub use model::{CANCELLED, Count, Operation, Progress, Target, TargetState};
pub use query::{BATCH, KEPT, cancel, count, create, create_for_all, get, list, prune, targets};
pub(crate) use query::{new_id, record};
