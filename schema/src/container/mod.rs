//! The desired state of users' containers, and what their reconciler remembers.

use crate::kind::{
    AGE, Column, Descriptor, FAILURES, GENERATION, Kind, MESSAGE, NAME, NEXT_TRY, OBSERVED, READY,
    REASON, SINCE, UID,
};

pub(crate) mod ends;
mod model;
pub(crate) mod query;

pub use ends::{ContainerEnd, ENDS_KEPT, list_ends, note_end, sentence, with_log};
pub use model::{
    AgentFiles, CRASH_WINDOW, ContainerFacts, ContainerRow, Desired, StatusWord, status_word,
};
pub use query::{
    all, count_on_network, get, purge, record_stop, request_fresh, request_restart, save_facts,
    set_desired, set_limits,
};
pub(crate) use query::{create_many, forget_readiness_policy, set_image};

pub(crate) const KIND: Descriptor = Descriptor {
    finalizer: Some("container"),
    // A user's status word is that of its container.
    shown_with: Some(Kind::User),
    columns: &[
        NAME,
        READY,
        REASON,
        SINCE,
        Column::text("ENDS 24H", "ends"),
        FAILURES,
        NEXT_TRY,
        AGE,
        GENERATION,
        OBSERVED,
        UID,
        MESSAGE,
    ],
    ..Descriptor::new("containers", &["c", "ct"])
};
