//! Rows of operations.

use serde::Serialize;
use sqlx::FromRow;

use crate::condition::{self, ConditionStatus, ConditionType};
use crate::error::DbError;
use crate::ids::{Generation, Timestamp};
use crate::object::StatusRow;
use crate::rollout;

/// What is reported of an object that its operation did not reach before it was cancelled.
pub const CANCELLED: &str =
    "cancelled; the change stays recorded and is applied by regular reconciliation";

/// A request that touches many objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Identity; later ones sort after earlier ones.
    pub id: String,
    /// What was asked for, such as `batch_create`.
    pub kind: String,
    /// Who asked.
    pub actor: String,
    /// When.
    pub created_at: Timestamp,
    /// When somebody ended it before it was through. Rollouts and pulls keep that elsewhere.
    pub cancelled_at: Option<Timestamp>,
}

#[derive(FromRow)]
pub(super) struct RawOperation {
    id: String,
    #[sqlx(rename = "type")]
    kind: String,
    actor: String,
    created_at: i64,
    cancelled_at: Option<i64>,
}

impl From<RawOperation> for Operation {
    fn from(raw: RawOperation) -> Self {
        Self {
            id: raw.id,
            kind: raw.kind,
            actor: raw.actor,
            created_at: Timestamp::from_millis(raw.created_at),
            cancelled_at: raw.cancelled_at.map(Timestamp::from_millis),
        }
    }
}

/// The state of one object of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = TaskResultState)]
pub enum TargetState {
    /// Reached, or the object is gone.
    Done,
    /// Needs manual action, or the task was cancelled before it was reached.
    Failed,
    /// Observed by its reconciler, not done yet.
    Running,
    /// Not observed yet.
    Pending,
}

/// One object of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = TaskResult)]
pub struct Target {
    /// `kind/name`.
    pub object: String,
    /// How far it is.
    pub state: TargetState,
    /// Its condition's message.
    pub message: String,
    /// Since when its condition has its status; null before it was first observed and once it is gone.
    pub since: Option<Timestamp>,
}

#[derive(FromRow)]
pub(super) struct RawTarget {
    kind: String,
    name: String,
    generation: i64,
    outcome: Option<String>,
    uid: Option<String>,
    observed_generation: Option<i64>,
    conditions: Option<String>,
    failures: Option<i64>,
    next_attempt_at: Option<i64>,
}

impl TryFrom<RawTarget> for Target {
    type Error = DbError;

    fn try_from(raw: RawTarget) -> Result<Self, DbError> {
        let status = StatusRow::from_columns(
            raw.observed_generation,
            raw.conditions.as_deref(),
            raw.failures,
            raw.next_attempt_at,
        )?;
        let ready = condition::find(&status.conditions, ConditionType::Ready);
        let seen = status.observed_generation >= Generation(raw.generation);
        let said = || ready.map(|c| c.message.clone()).unwrap_or_default();
        let (state, message) = match raw.outcome.as_deref() {
            Some("cancelled") => (TargetState::Failed, CANCELLED.to_owned()),
            Some(outcome) => (read_state(outcome)?, said()),
            None if raw.uid.is_none() => (TargetState::Done, said()),
            None => match ready {
                Some(ready) if seen && ready.status == ConditionStatus::True => {
                    (TargetState::Done, said())
                }
                Some(ready) if seen && ready.needs_action() => (TargetState::Failed, said()),
                Some(_) if seen => (TargetState::Running, said()),
                _ => (TargetState::Pending, said()),
            },
        };
        Ok(Self {
            object: format!("{}/{}", raw.kind, raw.name),
            state,
            message,
            since: ready.map(|c| c.last_transition_at),
        })
    }
}

/// Reads what the statements call a state.
pub(super) fn read_state(text: &str) -> Result<TargetState, DbError> {
    match text {
        "done" => Ok(TargetState::Done),
        "failed" | "cancelled" => Ok(TargetState::Failed),
        "running" => Ok(TargetState::Running),
        "pending" => Ok(TargetState::Pending),
        other => Err(DbError::Corrupt(format!("state {other:?} of a target"))),
    }
}

impl From<rollout::TargetState> for TargetState {
    fn from(state: rollout::TargetState) -> Self {
        use rollout::TargetState as User;
        match state {
            User::Pending => Self::Pending,
            User::Moving | User::PuttingBack | User::RollingBack => Self::Running,
            User::Done | User::RolledBack | User::Skipped => Self::Done,
            User::Failed | User::Cancelled => Self::Failed,
        }
    }
}

/// The progress of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, utoipa::ToSchema)]
#[schema(as = TaskProgress)]
pub struct Progress {
    /// Total number of objects.
    pub total: usize,
    /// Reached.
    pub done: usize,
    /// Need manual action.
    pub failed: usize,
    /// Under way.
    pub running: usize,
    /// Not observed yet.
    pub pending: usize,
}

impl Progress {
    /// Counts objects of one state.
    pub(crate) fn add(&mut self, state: TargetState, objects: i64) {
        let objects = usize::try_from(objects).unwrap_or(0);
        self.total += objects;
        match state {
            TargetState::Done => self.done += objects,
            TargetState::Failed => self.failed += objects,
            TargetState::Running => self.running += objects,
            TargetState::Pending => self.pending += objects,
        }
    }

    /// Whether an object may still reach its desired state.
    pub fn is_under_way(self) -> bool {
        self.pending + self.running > 0
    }
}

/// How far an operation is, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// How far.
    pub progress: Progress,
    /// When the last of its objects got where it is; `None` before the first one was seen.
    pub since: Option<Timestamp>,
}

impl Count {
    pub(super) fn add(&mut self, state: TargetState, objects: i64, since: Option<Timestamp>) {
        self.progress.add(state, objects);
        self.since = self.since.max(since);
    }
}
