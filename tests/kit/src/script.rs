//! What a simulation decides of calls, and what it is told.

use std::sync::Arc;
use std::time::Duration;

use schema::agent_config::AgentConfigFacts;
use schema::container::ContainerFacts;
use schema::ids::{Epoch, Generation, Kind, Uid};
use schema::object::StatusRow;
use tokio::time::sleep;

/// How one call goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pace {
    /// From the question to the moment at which it takes effect.
    pub before: Duration,
    /// From that moment to the answer.
    pub after: Duration,
    /// It fails, and nothing happened.
    pub fails: bool,
    /// It takes effect, and the answer is lost.
    pub loses_answer: bool,
}

/// Something that a reconciler wrote.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A status was given to be saved.
    Status {
        /// Kind of the object.
        kind: Kind,
        /// The object.
        uid: Uid,
        /// The status.
        status: StatusRow,
        /// The epoch of the writer.
        epoch: Epoch,
        /// The generation that the object has; `None` when there is none.
        generation: Option<Generation>,
        /// Whether it was accepted.
        saved: bool,
    },
    /// What is remembered of a container was saved.
    Facts {
        /// The user.
        uid: Uid,
        /// What is remembered.
        facts: ContainerFacts,
    },
    /// What is remembered of a user's agent files was saved.
    AgentConfigFacts {
        /// The user.
        uid: Uid,
        /// What is remembered.
        facts: AgentConfigFacts,
        /// The generation that the container got by it, if it is to be restarted.
        bumped: Option<Generation>,
    },
    /// A rollout has given a container another image.
    Moved {
        /// The user.
        uid: Uid,
        /// The generation that the container got by it.
        generation: Generation,
    },
    /// The package of the source is in effect.
    AdapterInstalled {
        /// Its version.
        version: String,
    },
    /// A finalizer was added.
    FinalizerAdded {
        /// Kind of the object.
        kind: Kind,
        /// The object.
        uid: Uid,
    },
    /// The last row of an object was removed.
    Purged {
        /// Kind of the object.
        kind: Kind,
        /// The object.
        uid: Uid,
    },
    /// An event was recorded.
    Event {
        /// Kind of the object.
        kind: Kind,
        /// The object.
        uid: Uid,
        /// The step.
        action: String,
        /// What happened.
        message: String,
    },
}

/// Decides how each call goes.
pub(super) type PaceHook = Arc<dyn Fn() -> Pace + Send + Sync>;

/// Called with each change.
pub(super) type ChangeHook = Arc<dyn Fn(&Change) + Send + Sync>;

#[derive(Default)]
pub(super) struct Script {
    pub(super) pace: Option<PaceHook>,
    pub(super) told: Option<ChangeHook>,
}

/// Does `work` at the given pace: at one moment, or not at all.
pub(super) async fn delayed<T, E>(
    pace: Pace,
    work: impl FnOnce() -> Result<T, E>,
    failure: impl FnOnce() -> E,
) -> Result<T, E> {
    if !pace.before.is_zero() {
        sleep(pace.before).await;
    }
    if pace.fails {
        return Err(failure());
    }
    let result = work();
    if !pace.after.is_zero() {
        sleep(pace.after).await;
    }
    if pace.loses_answer {
        return Err(failure());
    }
    result
}
