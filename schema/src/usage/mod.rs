//! The space that users' directories take. One object stands for the measuring of all.
//!
//! Every directory is measured once, again soon after a request has changed its workspace ([`changed`]), and from time to time, since agents
//! write without a request. A directory that cannot be measured keeps its numbers and its [`Verdict`]: unknown is not zero.

mod model;
pub(crate) mod query;
mod quota;

pub use model::{
    AFTER_CHANGE, Attempt, Due, Failing, MOST_UNCHANGED, OTHERWISE, RETRY, Usage, WHILE_RUNNING,
    WITH_QUOTA,
};
pub use query::{changed, due, failing, get, held, quota_users, save, save_judgements};
pub use quota::{Held, Judgement, Quota, QuotaState, QuotaUsers, Verdict};

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
