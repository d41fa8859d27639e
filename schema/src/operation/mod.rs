//! Operations: requests that touch many objects. Their progress is computed from the objects' own
//! states, so it survives restarts and never disagrees with them.

pub(crate) mod query;

pub use query::{Operation, Progress, Target, TargetState, create, get, list, progress, targets};
