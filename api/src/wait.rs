//! Accepted, then converged: holding an answer back until the reconcilers have made it so.
//!
//! A change is committed before anybody waits, and stays recorded whatever the wait ends with. So
//! nothing here fails a request because of the world: what cannot be read now is looked at again,
//! and at the end of the time the answer is "pending".

use std::time::Duration;

use http::StatusCode;
use schema::condition::{self, Condition, ConditionStatus, ConditionType, Reason};
use schema::error::DbError;
use schema::ids::{Generation, Kind, Uid};
use schema::object::{self, ObjectRow};
use schema::operation::{self, Progress};
use schema::user::User;
use serde::Serialize;
use strum::VariantArray;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::deps::{Dependencies, Deps};
use crate::error::{ApiError, FailureClass};
use crate::explain::{Explained, explained};

/// How long an answer about one object is held back when the client says nothing.
pub const DEFAULT_WAIT: Duration = Duration::from_secs(10);
/// Other replicas' saves ring no bell here: look this often all the same.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Many objects may converge at once; no waiter looks more often than this.
const LOOK_GAP: Duration = Duration::from_millis(50);

/// A committed change of one object's desired state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Kind of object.
    pub kind: Kind,
    /// Its identity.
    pub uid: Uid,
    /// Its name, for display.
    pub name: String,
    /// The generation that the change made.
    pub generation: Generation,
}

impl Change {
    /// A change of a user's container.
    pub fn of_container(user: &User, generation: Generation) -> Self {
        Self {
            kind: Kind::Container,
            uid: user.uid.clone(),
            name: user.name.to_string(),
            generation,
        }
    }

    /// A change of what a user's agent is configured with.
    pub fn of_config(user: &User, generation: Generation) -> Self {
        Self {
            kind: Kind::AgentConfig,
            ..Self::of_container(user, generation)
        }
    }

    /// A change of an image, by its reference or id.
    pub fn of_image(uid: Uid, name: impl Into<String>, generation: Generation) -> Self {
        Self {
            kind: Kind::Image,
            uid,
            name: name.into(),
            generation,
        }
    }

    /// The object as answers name it, such as `container/alice`.
    pub fn object(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }
}

/// How far a change is, as answers tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Observed to be as desired.
    Converged,
    /// Recorded and under way.
    Pending,
    /// Recorded, but a person must act first.
    Failed,
}

/// What an answer tells of a change of desired state.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Converging {
    /// How far it is.
    pub(crate) state: State,
    /// What was changed.
    #[schema(example = "container/alice")]
    pub(crate) object: String,
    /// The generation that the change made.
    pub(crate) generation: Generation,
    /// What is known so far, while it is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) conditions: Option<Vec<Explained>>,
}

/// What a wait ended with.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    /// The generation was observed and the object is as desired.
    Converged,
    /// Not yet; with what is known so far.
    Pending(Vec<Condition>),
    /// Not before somebody resumes it; with what is known so far. Nobody waits for that.
    Paused(Vec<Condition>),
    /// A person must act first.
    Failed {
        /// Why, for programs.
        reason: Reason,
        /// Why, for people.
        message: String,
    },
}

impl Settled {
    /// What decides when several objects were changed together. A pause comes before what is merely under
    /// way, since nobody waits for it.
    fn weight(&self) -> u8 {
        match self {
            Self::Converged => 0,
            Self::Pending(_) => 1,
            Self::Paused(_) => 2,
            Self::Failed { .. } => 3,
        }
    }
}

/// Waits for one change, at most `wait` ([`DEFAULT_WAIT`] when the client said nothing).
pub async fn settle(deps: &Deps, change: &Change, wait: Option<Duration>) -> Settled {
    let mut watch = Watch::new(deps, wait.unwrap_or(DEFAULT_WAIT));
    loop {
        let seen = match look(deps, change).await {
            Ok(Settled::Pending(conditions)) => conditions,
            Ok(settled) => return settled,
            Err(error) => unreadable(&error),
        };
        if !watch.next().await {
            return Settled::Pending(seen);
        }
    }
}

/// Waits for changes that one request made of several objects, at most `wait` ([`DEFAULT_WAIT`] when the
/// client said nothing): until all have converged or one of them has failed. Returns which one decides.
async fn settle_all<'a>(
    deps: &Deps,
    first: &'a Change,
    others: &'a [Change],
    wait: Option<Duration>,
) -> (&'a Change, Settled) {
    let mut watch = Watch::new(deps, wait.unwrap_or(DEFAULT_WAIT));
    loop {
        let seen = match look_at_all(deps, first, others).await {
            Ok((change, Settled::Pending(conditions))) => (change, conditions),
            Ok(settled) => return settled,
            Err(error) => (first, unreadable(&error)),
        };
        if !watch.next().await {
            let (change, conditions) = seen;
            return (change, Settled::Pending(conditions));
        }
    }
}

/// Waits until a deleted object is purged; a user: container gone, directory archived, name free.
pub async fn settle_removal(deps: &Deps, deleted: &Change, wait: Option<Duration>) -> Settled {
    let mut watch = Watch::new(deps, wait.unwrap_or(DEFAULT_WAIT));
    loop {
        let seen = match look_for_removal(deps, deleted).await {
            Ok(Settled::Pending(conditions)) => conditions,
            Ok(settled) => return settled,
            Err(error) => unreadable(&error),
        };
        if !watch.next().await {
            return Settled::Pending(seen);
        }
    }
}

/// Waits until a pass has taken note of a change, whatever it makes of it. What is gone needs no note.
pub async fn settle_noted(deps: &Deps, change: &Change, wait: Option<Duration>) -> Settled {
    let mut watch = Watch::new(deps, wait.unwrap_or(DEFAULT_WAIT));
    loop {
        let seen = match look_for_note(deps, change).await {
            Ok(Settled::Pending(conditions)) => conditions,
            Ok(settled) => return settled,
            Err(error) => unreadable(&error),
        };
        if !watch.next().await {
            return Settled::Pending(seen);
        }
    }
}

/// Waits until a pass has seen that an object is paused.
pub async fn settle_pause(deps: &Deps, change: &Change, wait: Option<Duration>) -> Settled {
    let mut watch = Watch::new(deps, wait.unwrap_or(DEFAULT_WAIT));
    loop {
        let seen = match read(deps, change.kind, &change.uid).await {
            Ok(row) => row.map(|row| row.status.conditions).unwrap_or_default(),
            Err(error) => unreadable(&error),
        };
        if is_true(&seen, ConditionType::Paused) {
            return Settled::Converged;
        }
        if !watch.next().await {
            return Settled::Pending(seen);
        }
    }
}

/// Waits until no object of an operation is under way any more, at most `wait` (by default not at
/// all). Returns how far it is then.
pub async fn settle_operation(deps: &Deps, id: &str, wait: Option<Duration>) -> Progress {
    let mut watch = Watch::new(deps, wait.unwrap_or(Duration::ZERO));
    loop {
        let progress = match progress_of(deps, id).await {
            Ok(progress) => progress,
            Err(error) => unreadable(&error),
        };
        let done = progress.total > 0 && !progress.is_under_way();
        if done || !watch.next().await {
            return progress;
        }
    }
}

/// Waits for one change and says how it went: 200 `converged` with the message given, 202 `pending`
/// (at once while it is paused: somebody wants it so, which is no failure), or the failure that a person has to mend.
///
/// # Errors
/// [`ApiError::ObjectFailed`].
pub async fn answer(
    deps: &Deps,
    change: &Change,
    wait: Option<Duration>,
    done: impl Into<String>,
) -> Result<Answer<Converging>, ApiError> {
    let settled = settle(deps, change, wait).await;
    reply(change, settled, done, "accepted; the change is under way")
}

/// As [`answer`], for a change that made changes of other objects, too: it has converged when all of them
/// have, and the failure of each is its own. The answer is about the first.
///
/// # Errors
/// [`ApiError::ObjectFailed`], about the object that failed.
pub async fn answer_all(
    deps: &Deps,
    first: &Change,
    others: &[Change],
    wait: Option<Duration>,
    done: impl Into<String>,
) -> Result<Answer<Converging>, ApiError> {
    let about = match settle_all(deps, first, others, wait).await {
        (change, settled @ Settled::Failed { .. }) => (change, settled),
        (_, settled) => (first, settled),
    };
    let under_way = "accepted; the change is under way";
    reply(about.0, about.1, done, under_way)
}

/// Says how a wait ended.
///
/// # Errors
/// [`ApiError::ObjectFailed`].
pub fn reply(
    change: &Change,
    settled: Settled,
    done: impl Into<String>,
    under_way: impl Into<String>,
) -> Result<Answer<Converging>, ApiError> {
    let told = |state, conditions: Option<Vec<Condition>>| Converging {
        state,
        object: change.object(),
        generation: change.generation,
        conditions: conditions.map(|conditions| explained(&conditions)),
    };
    let pending = |message: String, conditions| {
        Answer::ok(message, told(State::Pending, Some(conditions))).status(StatusCode::ACCEPTED)
    };
    match settled {
        Settled::Converged => Ok(Answer::ok(done, told(State::Converged, None))),
        Settled::Pending(conditions) => Ok(pending(under_way.into(), conditions)),
        Settled::Paused(conditions) => {
            let message = "accepted; it is paused, and the change waits for its resumption";
            Ok(pending(message.to_owned(), conditions))
        }
        Settled::Failed { reason, message } => Err(failure(change, reason, message)),
    }
}

/// Says how far an operation is: 200 `converged`, 202 `pending`, or 200 `failed` when some of its
/// objects need a person; which ones, its task tells.
pub fn state_of(progress: Progress) -> (State, StatusCode) {
    let under_way = progress.total == 0 || progress.is_under_way();
    match (under_way, progress.failed) {
        (true, _) => (State::Pending, StatusCode::ACCEPTED),
        (false, 0) => (State::Converged, StatusCode::OK),
        (false, _) => (State::Failed, StatusCode::OK),
    }
}

fn failure(change: &Change, reason: Reason, message: String) -> ApiError {
    ApiError::ObjectFailed {
        class: class(reason),
        code: snake_case(reason.as_str()),
        message,
        object: change.object(),
        generation: change.generation,
        reason,
    }
}

/// How an answer about one object can fail because of it: status, code, and what to do.
pub fn object_failures() -> impl Iterator<Item = (StatusCode, String, &'static str)> {
    let reasons = Reason::VARIANTS.iter().copied();
    let told = reasons.filter(|reason| reason.needs_action() || *reason == Reason::Terminating);
    told.map(|reason| {
        let code = snake_case(reason.as_str());
        (class(reason).status(), code, reason.remedy())
    })
}

/// How the failure of an object is told in HTTP.
fn class(reason: Reason) -> FailureClass {
    match reason {
        Reason::ImageMissing
        | Reason::NeedsRoot
        | Reason::InvalidSettings
        | Reason::NoMigrationPath
        | Reason::InvalidGlobalConfig
        | Reason::AdapterInvalid => FailureClass::Refused,
        Reason::NameConflict
        | Reason::HomeConflict
        | Reason::NetworkInUse
        | Reason::PausedByOperator
        | Reason::ImageInUse
        | Reason::InvalidUserConfig
        | Reason::RolloutPaused
        | Reason::Terminating => FailureClass::Conflict,
        // The registry, or the agent itself, is what failed behind this service.
        Reason::ImagePullFailed
        | Reason::AdapterSourceFailed
        | Reason::CrashLoop
        | Reason::ReplacementFailed
        | Reason::RolloutFailed => FailureClass::Remote,
        Reason::EngineTooOld
        | Reason::DataDirMismatch
        | Reason::NetworkFull
        | Reason::StorageFull
        | Reason::EngineUnavailable => FailureClass::Engine,
        Reason::Failed
        | Reason::Pending
        | Reason::Running
        | Reason::Stopped
        | Reason::Converged
        | Reason::Progressing
        | Reason::NotReady
        | Reason::NetworkMissing
        | Reason::ImagePulling
        | Reason::HomeMissing
        | Reason::ConfigPending
        | Reason::Exited
        | Reason::Retrying
        | Reason::Panicked
        | Reason::NoProgress
        | Reason::WatchLost
        | Reason::WatchRestored
        | Reason::TaskEnded
        | Reason::Stuck
        | Reason::Recovered => FailureClass::Other,
    }
}

/// `ImagePullFailed` → `image_pull_failed`.
fn snake_case(word: &str) -> String {
    let mut code = String::with_capacity(word.len() + 4);
    for (at, c) in word.char_indices() {
        if c.is_ascii_uppercase() && at > 0 {
            code.push('_');
        }
        code.push(c.to_ascii_lowercase());
    }
    code
}

/// Paces the looks of one waiter.
pub(crate) struct Watch {
    ticks: watch::Receiver<u64>,
    deadline: Instant,
    shutdown: CancellationToken,
}

impl Watch {
    /// Takes note of all saves so far: one that comes after leads to another look.
    pub(crate) fn new(deps: &Dependencies, wait: Duration) -> Self {
        let mut ticks = deps.status_ticks.clone();
        ticks.borrow_and_update();
        Self {
            ticks,
            deadline: Instant::now() + wait,
            shutdown: deps.shutdown.clone(),
        }
    }

    /// For whoever looks as long as a client listens.
    pub(crate) fn unending(deps: &Dependencies) -> Self {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
        Self::new(deps, YEAR)
    }

    /// Waits for a reason to look again. False when the time is up or the service stops.
    pub(crate) async fn next(&mut self) -> bool {
        let now = Instant::now();
        if now >= self.deadline || self.shutdown.is_cancelled() {
            return false;
        }
        let earliest = self.deadline.min(now + LOOK_GAP);
        let latest = self.deadline.min(now + LOOK_EVERY);
        let tick = async {
            sleep_until(earliest).await;
            if self.ticks.changed().await.is_err() {
                // Nobody saves here any more; the clock still ticks.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = tick => true,
            () = sleep_until(latest) => true,
            () = self.shutdown.cancelled() => false,
        }
    }
}

/// A look that failed says nothing: it is logged, and the next one may succeed.
fn unreadable<T: Default>(error: &DbError) -> T {
    let error = crate::error::chain(error);
    tracing::warn!(%error, "cannot see how far a change is; looking again");
    T::default()
}

async fn read(deps: &Deps, kind: Kind, uid: &Uid) -> Result<Option<ObjectRow>, DbError> {
    let mut connection = deps.db.read().await?;
    object::get(&mut connection, kind, uid).await
}

async fn progress_of(deps: &Deps, id: &str) -> Result<Progress, DbError> {
    let mut connection = deps.db.read().await?;
    let operation = operation::get(&mut connection, id).await?;
    let operation = operation.ok_or(DbError::NotFound("task"))?;
    let count = operation::count(&mut connection, &operation).await?;
    Ok(count.progress)
}

async fn look(deps: &Deps, change: &Change) -> Result<Settled, DbError> {
    let mut connection = deps.db.read().await?;
    let row = object::get(&mut connection, change.kind, &change.uid).await?;
    let paused = object::paused_reconcilers(&mut connection).await?;
    Ok(judge(change, row, &paused))
}

/// How far changes are that were made together, and which of them decides.
async fn look_at_all<'a>(
    deps: &Deps,
    first: &'a Change,
    others: &'a [Change],
) -> Result<(&'a Change, Settled), DbError> {
    let mut connection = deps.db.snapshot().await?;
    let paused = object::paused_reconcilers(&mut connection).await?;
    let mut decides = (first, Settled::Converged);
    for change in std::iter::once(first).chain(others) {
        let row = object::get(&mut connection, change.kind, &change.uid).await?;
        let settled = judge(change, row, &paused);
        if settled.weight() > decides.1.weight() {
            decides = (change, settled);
        }
    }
    Ok(decides)
}

/// How far a change is, from the object's row and the names of paused reconcilers.
fn judge(change: &Change, row: Option<ObjectRow>, paused: &[String]) -> Settled {
    let row = match row {
        Some(row) if row.deleted_at.is_none() => row,
        // Somebody deleted it meanwhile; this change will never be seen.
        Some(_) | None => {
            return Settled::Failed {
                reason: Reason::Terminating,
                message: format!("{} was deleted meanwhile", change.object()),
            };
        }
    };
    let seen = row.status.observed_generation >= change.generation;
    if seen && is_true(&row.status.conditions, ConditionType::Ready) {
        return Settled::Converged;
    }
    held_up(&row, seen, paused).unwrap_or(Settled::Pending(row.status.conditions))
}

async fn look_for_note(deps: &Deps, change: &Change) -> Result<Settled, DbError> {
    let mut connection = deps.db.snapshot().await?;
    let Some(row) = object::get(&mut connection, change.kind, &change.uid).await? else {
        return Ok(Settled::Converged);
    };
    if row.status.observed_generation >= change.generation {
        return Ok(Settled::Converged);
    }
    let paused = object::paused_reconcilers(&mut connection).await?;
    Ok(held_up(&row, false, &paused).unwrap_or(Settled::Pending(row.status.conditions)))
}

async fn look_for_removal(deps: &Deps, deleted: &Change) -> Result<Settled, DbError> {
    let mut connection = deps.db.snapshot().await?;
    let row = object::get(&mut connection, deleted.kind, &deleted.uid).await?;
    let mut first = Vec::new();
    for kind in deleted.kind.descriptor().removal_waits_for {
        first.extend(object::get(&mut connection, *kind, &deleted.uid).await?);
    }
    let paused = object::paused_reconcilers(&mut connection).await?;
    Ok(judge_removal(row, first, &paused))
}

/// How far a removal is. An object goes last; what holds it up may be one of those that must go `first`.
fn judge_removal(row: Option<ObjectRow>, first: Vec<ObjectRow>, paused: &[String]) -> Settled {
    let Some(row) = row else {
        return Settled::Converged;
    };
    let obstacle = first.iter().chain([&row]).find_map(|row| {
        let seen = row.status.observed_generation >= row.generation;
        held_up(row, seen, paused)
    });
    obstacle.unwrap_or_else(|| {
        let next = first.into_iter().next().unwrap_or(row);
        Settled::Pending(next.status.conditions)
    })
}

/// Whether an object waits for a person. What was `seen` of an older generation does not count.
fn held_up(row: &ObjectRow, seen: bool, paused: &[String]) -> Option<Settled> {
    if row.paused || paused.iter().any(|name| name == "*" || *name == row.kind) {
        return Some(Settled::Paused(with_paused(row)));
    }
    let ready = condition::find(&row.status.conditions, ConditionType::Ready)?;
    let stuck = seen && ready.status != ConditionStatus::True && ready.reason.needs_action();
    stuck.then(|| Settled::Failed {
        reason: ready.reason,
        message: ready.message.clone(),
    })
}

/// The object's conditions and that it is paused, which no pass need have seen yet.
fn with_paused(row: &ObjectRow) -> Vec<Condition> {
    let mut conditions = row.status.conditions.clone();
    if !is_true(&conditions, ConditionType::Paused) {
        conditions.retain(|condition| condition.kind != ConditionType::Paused);
        conditions.push(Condition::new(
            ConditionType::Paused,
            ConditionStatus::True,
            Reason::PausedByOperator,
            format!(
                "{}/{} is paused; changes are recorded and wait until it is resumed",
                row.kind, row.name
            ),
        ));
    }
    conditions
}

fn is_true(conditions: &[Condition], kind: ConditionType) -> bool {
    condition::find(conditions, kind).is_some_and(|c| c.status == ConditionStatus::True)
}

#[cfg(test)]
mod tests;
