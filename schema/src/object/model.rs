//! Rows of objects and their statuses.

use sqlx::FromRow;

use crate::column::{Flag, JsonList};
use crate::condition::{self, Condition, ConditionStatus, ConditionType, Reason};
use crate::ids::{Generation, Timestamp, Uid};

/// An object's header with its status.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct ObjectRow {
    /// `user`, `container`, …
    pub kind: String,
    /// Identity.
    pub uid: Uid,
    /// Name, for display.
    pub name: String,
    /// How often its desired state changed.
    pub generation: Generation,
    /// Whether its passes are switched off.
    #[sqlx(try_from = "Flag")]
    pub paused: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its removal was asked for.
    pub deleted_at: Option<Timestamp>,
    /// What is known of it; the default until its first pass.
    #[sqlx(flatten)]
    pub status: StatusRow,
}

/// What is known of an object.
#[derive(Debug, Clone, PartialEq, Default, FromRow)]
pub struct StatusRow {
    /// The newest generation a pass has observed.
    pub observed_generation: Generation,
    /// What is known.
    #[sqlx(try_from = "JsonList<Condition>")]
    pub conditions: Vec<Condition>,
    /// Failed reconciliations in a row.
    #[sqlx(try_from = "i64")]
    pub failures: u32,
    /// When the next attempt is due, while in back-off.
    pub next_attempt_at: Option<Timestamp>,
}

impl StatusRow {
    /// As it is while its whole reconciler is paused: no pass says so of each object.
    pub fn pause(&mut self) {
        condition::not_observed(&mut self.conditions);
        let paused = ConditionType::Paused;
        if condition::find(&self.conditions, paused).is_none() {
            let (status, reason) = (ConditionStatus::True, Reason::PausedByOperator);
            self.conditions
                .push(Condition::new(paused, status, reason, ""));
        }
    }
}

/// An object whose newest desired state no reconciliation has observed yet.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Dirty {
    /// Identity.
    pub uid: Uid,
    /// The newest generation.
    pub generation: Generation,
    /// It was changed together with many others, and can wait.
    #[sqlx(try_from = "Flag")]
    pub bulk: bool,
}

/// How many objects of a kind have not come to what is desired of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, FromRow)]
pub struct Unsettled {
    /// Under way.
    pub pending: i64,
    /// Not under way: they need manual action.
    pub failed: i64,
}

/// How many objects of a kind have one value of `Ready`.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct ReadyCount {
    /// Kind of object.
    pub kind: String,
    /// `True`, `False`, `Unknown`, or empty before the first pass.
    pub ready: String,
    /// How many.
    pub n: i64,
    /// How many of them are in back-off.
    pub failing: i64,
}
