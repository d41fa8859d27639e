//! Statements on operations.

use serde::Serialize;
use sqlx::{AnyConnection, FromRow};

use crate::condition::{self, ConditionStatus, ConditionType};
use crate::db::Tx;
use crate::error::DbError;
use crate::ids::{Generation, Kind, Timestamp, Uid};
use crate::object::StatusRow;
use crate::rollout::{self, RolloutKind};
use crate::statement::statements;

statements! {
    /// Records an operation.
    INSERT = "INSERT INTO operations (id, type, actor, created_at) VALUES ($1, $2, $3, $4)";
    /// Records one object an operation touches, and the generation it asks for.
    INSERT_TARGET = "INSERT INTO operation_targets (operation_id, kind, uid, name, generation) VALUES ($1, $2, $3, $4, $5)";
    /// Reads one operation.
    GET = "SELECT id, type, actor, created_at, finished_at, cancelled_at FROM operations WHERE id = $1";
    /// Operations, newest first.
    LIST = "SELECT id, type, actor, created_at, finished_at, cancelled_at FROM operations ORDER BY created_at DESC, id DESC LIMIT $1 OFFSET $2";
    /// How many there are.
    COUNT = "SELECT count(*) FROM operations";
    /// Objects of an operation with their states.
    TARGETS = "SELECT t.kind, t.name, t.generation, o.uid, s.observed_generation, s.conditions, s.failures, s.next_attempt_at \
               FROM operation_targets t LEFT JOIN objects o ON o.kind = t.kind AND o.uid = t.uid \
               LEFT JOIN object_status s ON s.kind = t.kind AND s.uid = t.uid \
               WHERE t.operation_id = $1 ORDER BY t.name";
    /// Users of a rollout with their states.
    ROLLOUT_TARGETS = "SELECT name, state, message, moved_at, finished_at FROM rollout_targets WHERE rollout_uid = $1 ORDER BY position";
}

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
}

#[derive(FromRow)]
struct RawOperation {
    id: String,
    #[sqlx(rename = "type")]
    kind: String,
    actor: String,
    created_at: i64,
}

impl From<RawOperation> for Operation {
    fn from(raw: RawOperation) -> Self {
        Self {
            id: raw.id,
            kind: raw.kind,
            actor: raw.actor,
            created_at: Timestamp::from_millis(raw.created_at),
        }
    }
}

/// How far one object of an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = TaskResultState)]
pub enum TargetState {
    /// Reached, or the object is gone.
    Done,
    /// Needs a person.
    Failed,
    /// Seen by its reconciler, not there yet.
    Running,
    /// Not seen yet.
    Pending,
}

/// One object of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = TaskResult)]
pub struct Target {
    /// `kind/name`.
    pub object: String,
    /// How far it is.
    pub state: TargetState,
    /// Its condition's message.
    pub message: String,
    /// Since when its condition has its status; `None` before the first pass and once it is gone.
    pub since: Option<Timestamp>,
}

#[derive(FromRow)]
struct RawTarget {
    kind: String,
    name: String,
    generation: i64,
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
        let state = match ready {
            _ if raw.uid.is_none() => TargetState::Done,
            Some(ready) if seen && ready.status == ConditionStatus::True => TargetState::Done,
            Some(ready) if seen && ready.reason.needs_person() => TargetState::Failed,
            Some(_) if seen => TargetState::Running,
            _ => TargetState::Pending,
        };
        Ok(Self {
            object: format!("{}/{}", raw.kind, raw.name),
            state,
            message: ready.map(|c| c.message.clone()).unwrap_or_default(),
            since: ready.map(|c| c.last_transition_at),
        })
    }
}

/// How far an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, utoipa::ToSchema)]
#[schema(as = TaskProgress)]
pub struct Progress {
    /// Objects in all.
    pub total: usize,
    /// Reached.
    pub done: usize,
    /// Need a person.
    pub failed: usize,
    /// Under way.
    pub running: usize,
    /// Not seen yet.
    pub pending: usize,
}

/// Records an operation over objects whose desired state the same transaction has changed.
pub async fn create(
    tx: &mut Tx,
    kind: &str,
    actor: &str,
    objects: &[(Kind, Uid, String, Generation)],
    now: Timestamp,
) -> Result<String, DbError> {
    let id = uuid::Uuid::now_v7().simple().to_string();
    sqlx::query(INSERT)
        .bind(&id)
        .bind(kind)
        .bind(actor)
        .bind(now.as_millis())
        .execute(&mut **tx)
        .await?;
    for (kind, uid, name, generation) in objects {
        sqlx::query(INSERT_TARGET)
            .bind(&id)
            .bind(kind.as_str())
            .bind(uid.as_str())
            .bind(name)
            .bind(generation.0)
            .execute(&mut **tx)
            .await?;
    }
    Ok(id)
}

/// Reads one operation.
pub async fn get(connection: &mut AnyConnection, id: &str) -> Result<Option<Operation>, DbError> {
    let raw: Option<RawOperation> = sqlx::query_as(GET)
        .bind(id)
        .fetch_optional(connection)
        .await?;
    Ok(raw.map(Operation::from))
}

/// Operations, newest first, one page, with the total.
pub async fn list(
    connection: &mut AnyConnection,
    limit: i64,
    offset: i64,
) -> Result<(Vec<Operation>, i64), DbError> {
    let (total,): (i64,) = sqlx::query_as(COUNT).fetch_one(&mut *connection).await?;
    let raws: Vec<RawOperation> = sqlx::query_as(LIST)
        .bind(limit)
        .bind(offset)
        .fetch_all(connection)
        .await?;
    Ok((raws.into_iter().map(Operation::from).collect(), total))
}

/// Objects of an operation with their states.
pub async fn targets(
    connection: &mut AnyConnection,
    operation: &Operation,
) -> Result<Vec<Target>, DbError> {
    if operation.kind.parse::<RolloutKind>().is_ok() {
        return rollout_targets(connection, &operation.id).await;
    }
    let raws: Vec<RawTarget> = sqlx::query_as(TARGETS)
        .bind(&operation.id)
        .fetch_all(connection)
        .await?;
    raws.into_iter().map(Target::try_from).collect()
}

#[derive(FromRow)]
struct RawRolloutTarget {
    name: String,
    state: String,
    message: String,
    moved_at: Option<i64>,
    finished_at: Option<i64>,
}

impl TryFrom<RawRolloutTarget> for Target {
    type Error = DbError;

    fn try_from(raw: RawRolloutTarget) -> Result<Self, DbError> {
        let state = rollout::TargetState::read(&raw.state)?;
        Ok(Self {
            object: format!("{}/{}", Kind::Container, raw.name),
            state: state.into(),
            message: raw.message,
            since: raw.finished_at.or(raw.moved_at).map(Timestamp::from_millis),
        })
    }
}

/// Users of a rollout: what became of each is in its own row.
async fn rollout_targets(connection: &mut AnyConnection, id: &str) -> Result<Vec<Target>, DbError> {
    let raws: Vec<RawRolloutTarget> = sqlx::query_as(ROLLOUT_TARGETS)
        .bind(id)
        .fetch_all(connection)
        .await?;
    raws.into_iter().map(Target::try_from).collect()
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
}

/// Adds the states up.
pub fn progress(targets: &[Target]) -> Progress {
    let mut progress = Progress::default();
    for target in targets {
        progress.add(target.state, 1);
    }
    progress
}
