//! Rows of operations.

use serde::Serialize;
use sqlx::FromRow;

use crate::column::Flag;
use crate::condition::{self, ConditionStatus, ConditionType};
use crate::ids::{Generation, Timestamp};
use crate::object::StatusRow;
use crate::rollout::{self, Phase};

/// What is reported of an object that its operation did not reach before it was cancelled.
pub const CANCELLED: &str =
    "cancelled; the change stays recorded and is applied by regular reconciliation";

/// A request that touches many objects.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Operation {
    /// Identity; later ones sort after earlier ones.
    pub id: String,
    /// What was asked for, such as `batch_create`.
    #[sqlx(rename = "type")]
    pub kind: String,
    /// Who asked.
    pub actor: String,
    /// When.
    pub created_at: Timestamp,
    /// When somebody ended it before it was through. Rollouts and pulls keep that elsewhere.
    pub cancelled_at: Option<Timestamp>,
}

/// The state of one object of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::EnumString, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[schema(as = TaskResultState)]
pub enum TargetState {
    /// Reached, or the object is gone.
    Done,
    /// Needed manual action.
    Failed,
    /// The task was cancelled before it was reached.
    Cancelled,
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
    /// Its condition's message; once it is done or failed, the one of then.
    pub message: String,
    /// Since when its condition has its status, or had it then; null before it was first observed and once it is gone.
    pub since: Option<Timestamp>,
}

#[derive(FromRow)]
pub(super) struct RawTarget {
    object: String,
    generation: Generation,
    /// How it ended, what its condition said then, and since when. Earlier releases kept no words.
    outcome: Option<TargetState>,
    message: Option<String>,
    ended_at: Option<Timestamp>,
    #[sqlx(try_from = "Flag")]
    gone: bool,
    #[sqlx(flatten)]
    status: StatusRow,
}

impl From<RawTarget> for Target {
    fn from(raw: RawTarget) -> Self {
        let status = raw.status;
        let ready = condition::find(&status.conditions, ConditionType::Ready);
        let observed = ready.filter(|_| status.observed_generation >= raw.generation);
        let state = raw.outcome.unwrap_or_else(|| match observed {
            _ if raw.gone => TargetState::Done,
            Some(ready) if ready.status == ConditionStatus::True => TargetState::Done,
            // What could not be observed has not failed.
            Some(ready) if ready.status == ConditionStatus::Unknown => TargetState::Running,
            Some(ready) if ready.needs_action() => TargetState::Failed,
            Some(_) => TargetState::Running,
            None => TargetState::Pending,
        });
        let message = match (state, raw.message) {
            (TargetState::Cancelled, _) => CANCELLED.to_owned(),
            (_, Some(said)) => said,
            (_, None) => ready.map(|c| c.message.clone()).unwrap_or_default(),
        };
        Self {
            object: raw.object,
            state,
            message,
            since: raw.ended_at.or(ready.map(|c| c.last_transition_at)),
        }
    }
}

impl From<rollout::TargetState> for TargetState {
    fn from(state: rollout::TargetState) -> Self {
        use rollout::TargetState as User;
        match state {
            User::Pending => Self::Pending,
            User::Moving | User::PuttingBack | User::RollingBack => Self::Running,
            User::Done | User::RolledBack | User::Skipped => Self::Done,
            User::Failed => Self::Failed,
            User::Cancelled => Self::Cancelled,
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
    /// Needed manual action.
    pub failed: usize,
    /// Not reached before the task was cancelled.
    pub cancelled: usize,
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
            TargetState::Cancelled => self.cancelled += objects,
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
    /// When the last of its objects got where it is; `None` before the first one was observed. Of a rollout, when it ended.
    pub since: Option<Timestamp>,
    /// Nothing of it is under way, and nothing is resumed any more.
    pub ended: bool,
    /// How far a rollout is.
    pub phase: Option<Phase>,
}

impl Count {
    pub(super) fn add(&mut self, state: TargetState, objects: i64, since: Option<Timestamp>) {
        self.progress.add(state, objects);
        self.since = self.since.max(since);
    }
}
