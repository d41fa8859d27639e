//! The space that users' workspaces take. One object stands for the measuring of all.
//!
//! Every workspace is measured once, again soon after a request has changed it ([`changed`]), and from time to time, since agents
//! write without asking anybody. A workspace that cannot be measured keeps its numbers: unknown is not zero.

mod model;
pub(crate) mod query;

pub use model::{AFTER_CHANGE, Attempt, Due, Failing, OTHERWISE, RETRY, Usage, WHILE_RUNNING};
pub use query::{changed, due, failing, get, save};

use crate::ids::Uid;
use crate::kind::Descriptor;

/// The name of the one object.
pub const OBJECT_NAME: &str = "workspaces";

pub(crate) const KIND: Descriptor = Descriptor {
    single: Some(OBJECT_NAME),
    ..Descriptor::new("usages", &["us"])
};

/// The uid of the one object.
pub fn object_uid() -> Uid {
    Uid::singleton(OBJECT_NAME)
}
