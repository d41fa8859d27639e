//! Accepted, then converged: holding an answer back until the reconcilers have made it so.
//!
//! A change is committed before anybody waits, and stays recorded whatever the wait ends with. So
//! nothing here fails a request because of the world: what cannot be read now is read again,
//! and at the end of the time the answer is "pending".

use std::time::Duration;

use http::StatusCode;
use schema::audit::About;
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
use crate::error::{ApiError, FailureClass, Result};
use crate::explain::{Explained, explained_owned};

/// How long an answer about one object is held back when the client says nothing.
pub const DEFAULT_WAIT: Duration = Duration::from_secs(10);
/// Other replicas' saves ring no bell here: ask this often all the same.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// Many objects may converge at once; no waiter asks more often than this.
const ASK_GAP: Duration = Duration::from_millis(50);
/// The message of an answer that comes before the change has converged.
const UNDER_WAY: &str = "requested; the change is under way";

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
    /// A change of the object of this kind, uid and name.
    pub fn new(kind: Kind, uid: Uid, name: impl Into<String>, generation: Generation) -> Self {
        Self {
            kind,
            uid,
            name: name.into(),
            generation,
        }
    }

    /// A change of one of a user's objects, which have the user's uid and name.
    pub fn of_user(kind: Kind, user: &User, generation: Generation) -> Self {
        Self::new(kind, user.uid.clone(), user.name.as_str(), generation)
    }

    /// A change of a user's container.
    pub fn of_container(user: &User, generation: Generation) -> Self {
        Self::of_user(Kind::Container, user, generation)
    }

    /// A change of what a user's agent is configured with.
    pub fn of_config(user: &User, generation: Generation) -> Self {
        Self::of_user(Kind::AgentConfig, user, generation)
    }

    /// What the audit trail says that it is about.
    pub fn about(&self) -> About {
        About::object(self.kind, &self.name)
    }

    /// The object as answers name it, such as `container/alice`.
    pub fn object(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }
}

/// How far a change is, as answers report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Observed to be as desired.
    Converged,
    /// Recorded and under way.
    Pending,
    /// Recorded, but needs manual action.
    Failed,
}

/// What an answer reports of a change of desired state.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Converging {
    /// How far it is.
    pub(crate) state: State,
    #[serde(flatten)]
    pub(crate) changed: Changed,
}

/// The object that was changed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ChangedObject)]
pub struct Changed {
    /// What was changed.
    #[schema(example = "container/alice")]
    pub(crate) object: String,
    /// The generation that the change made.
    pub(crate) generation: Generation,
    /// The conditions so far, while it is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) conditions: Option<Vec<Explained>>,
}

/// Answer to a change with values that were read otherwise than they were written, or left out.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = NotedChange)]
pub struct Noted {
    #[serde(flatten)]
    pub(crate) change: Converging,
    /// Values that were read otherwise than they were written, or left out; a sentence each.
    #[schema(example = json!([]))]
    pub(crate) warnings: Vec<String>,
}

impl Converging {
    /// The same with what its sender may not expect.
    pub(crate) fn noting(self, warnings: Vec<String>) -> Noted {
        let change = self;
        Noted { change, warnings }
    }
}

/// What a wait ended with.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    /// The generation was observed and the object is as desired.
    Converged,
    /// Not yet; with what is known so far.
    Pending(Vec<Condition>),
    /// Not before the engine is reachable again, as a pass has observed of this generation; with what is known so far.
    Unavailable(Vec<Condition>),
    /// Not before somebody resumes it; with what is known so far. Nobody waits for that.
    Paused(Vec<Condition>),
    /// Needs manual action.
    Failed {
        /// Why, stable for programs.
        reason: Reason,
        /// Why, as a sentence.
        message: String,
    },
}

/// Nothing is known.
impl Default for Settled {
    fn default() -> Self {
        Self::Pending(Vec::new())
    }
}

impl Settled {
    /// State of an object that is not ready. Only what was `seen` of the awaited generation tells that the engine is away.
    fn pending(conditions: Vec<Condition>, seen: bool) -> Self {
        let ready = condition::find(&conditions, ConditionType::Ready);
        match seen && ready.is_some_and(|ready| ready.reason == Reason::EngineUnavailable) {
            true => Self::Unavailable(conditions),
            false => Self::Pending(conditions),
        }
    }

    /// What decides when several objects were changed together. A pause comes before what is merely under
    /// way, since nobody waits for it.
    fn weight(&self) -> u8 {
        match self {
            Self::Converged => 0,
            Self::Pending(_) => 1,
            Self::Unavailable(_) => 2,
            Self::Paused(_) => 3,
            Self::Failed { .. } => 4,
        }
    }
}

/// What an answer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The change was observed, and the object is as desired.
    Converged,
    /// A pass has observed the change, whatever it makes of it. What is gone needs no pass.
    Noted,
    /// A pass has observed that the object is paused.
    Paused,
    /// The deleted object is purged; a user: container gone, directory archived, name free.
    Purged,
}

/// Waits for one change, at most `wait` ([`DEFAULT_WAIT`] when the client said nothing).
pub async fn settle(deps: &Deps, change: &Change, until: Until, wait: Option<Duration>) -> Settled {
    settle_all(deps, std::slice::from_ref(change), until, wait)
        .await
        .1
}

/// Waits for changes that one request made of several objects: until all of them have settled or one of
/// them has failed. Returns the place of the one that decides.
async fn settle_all(
    deps: &Deps,
    changes: &[Change],
    until: Until,
    wait: Option<Duration>,
) -> (usize, Settled) {
    let ask = || decisive(deps, changes, until);
    let settled = |(_, settled): &(usize, Settled)| !matches!(settled, Settled::Pending(_));
    repeat(deps, wait.unwrap_or(DEFAULT_WAIT), ask, settled).await
}

/// Waits for changes of single objects and of all objects of some kinds, by default not at all. Says how the single ones
/// settled, and how many of the others need manual action.
///
/// With nothing under way of a kind, what others asked for meanwhile is done, too: that is more than was to be waited for.
pub async fn settle_kinds(
    deps: &Deps,
    changes: &[Change],
    kinds: &[Kind],
    wait: Option<Duration>,
) -> (usize, Settled, i64) {
    let ask = async || {
        let (decides, settled) = decisive(deps, changes, Until::Converged).await?;
        if settled != Settled::Converged {
            return Ok((decides, settled, 0));
        }
        let (mut pending, mut failed) = (0, 0);
        let mut connection = deps.db.read().await?;
        for kind in kinds {
            let unsettled = object::unsettled(&mut connection, *kind).await?;
            pending += unsettled.pending;
            failed += unsettled.failed;
        }
        let settled = match pending {
            0 => Settled::Converged,
            _ => Settled::default(),
        };
        Ok((decides, settled, failed))
    };
    let is_last = |(_, settled, _): &(usize, Settled, i64)| !matches!(settled, Settled::Pending(_));
    repeat(deps, wait.unwrap_or(Duration::ZERO), ask, is_last).await
}

/// Waits until no object of an operation is under way any more, at most `wait` (by default not at
/// all). Returns how far it is then.
pub async fn settle_operation(deps: &Deps, id: &str, wait: Option<Duration>) -> Progress {
    let ask = || progress_of(deps, id);
    let done = |progress: &Progress| progress.total > 0 && !progress.is_under_way();
    repeat(deps, wait.unwrap_or(Duration::ZERO), ask, done).await
}

/// Waits until no agent gets a change any more, or one has failed with it, which pauses its rollout; at most `wait`. Returns how far
/// it is then.
pub async fn settle_change(deps: &Deps, rollout: &str, wait: Option<Duration>) -> Progress {
    let ask = || progress_of(deps, rollout);
    let done = |progress: &Progress| {
        let failed = progress.failed > 0 && progress.running == 0;
        progress.total > 0 && (failed || !progress.is_under_way())
    };
    repeat(deps, wait.unwrap_or(Duration::ZERO), ask, done).await
}

/// Asks until the answer is the last one, or the time is up. A question that failed says nothing: it is
/// logged, and the next one may succeed.
async fn repeat<T: Default, Fut>(
    deps: &Deps,
    wait: Duration,
    ask: impl Fn() -> Fut,
    is_last: impl Fn(&T) -> bool,
) -> T
where
    Fut: Future<Output = Result<T, DbError>>,
{
    let mut watch = Watch::new(deps, wait);
    loop {
        let answer = ask().await.unwrap_or_else(|error| {
            let error = crate::error::chain(&error);
            tracing::warn!(%error, "cannot read how far a change is; asking again");
            T::default()
        });
        if is_last(&answer) || !watch.next().await {
            return answer;
        }
    }
}

/// Waits for one change and says how it went: 200 `converged` with the message given, 202 `pending`
/// (at once while it is paused: somebody wants it so, which is no failure), or the failure that needs manual action.
///
/// # Errors
/// [`ApiError::ObjectFailed`].
pub async fn answer(
    deps: &Deps,
    change: &Change,
    wait: Option<Duration>,
    done: impl Into<String>,
) -> Result<Answer<Converging>> {
    let settled = settle(deps, change, Until::Converged, wait).await;
    reply(change, settled, done, UNDER_WAY)
}

/// As [`answer`], for a change that made a change of another object, too: it has converged when both have,
/// and the failure of each is its own. The answer is about the first.
///
/// # Errors
/// [`ApiError::ObjectFailed`], about the object that failed.
pub async fn answer_all(
    deps: &Deps,
    changes: &[Change; 2],
    wait: Option<Duration>,
    done: impl Into<String>,
) -> Result<Answer<Converging>> {
    let (decides, settled) = settle_all(deps, changes, Until::Converged, wait).await;
    let about = match settled {
        Settled::Failed { .. } => &changes[decides],
        _ => &changes[0],
    };
    reply(about, settled, done, UNDER_WAY)
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
) -> Result<Answer<Converging>> {
    let report = |state, conditions: Option<Vec<Condition>>| Converging {
        state,
        changed: Changed {
            object: change.object(),
            generation: change.generation,
            conditions: conditions.map(|all| explained_owned(&change.object(), all)),
        },
    };
    let pending = |message: String, conditions| {
        Answer::ok(message, report(State::Pending, Some(conditions))).status(StatusCode::ACCEPTED)
    };
    match settled {
        Settled::Converged => Ok(Answer::ok(done, report(State::Converged, None))),
        Settled::Pending(conditions) | Settled::Unavailable(conditions) => {
            Ok(pending(under_way.into(), conditions))
        }
        Settled::Paused(conditions) => {
            let message =
                "requested; the object is paused, and the change takes effect once it is resumed";
            Ok(pending(message.to_owned(), conditions))
        }
        Settled::Failed { reason, message } => Err(failure(change, reason, message)),
    }
}

/// Says how far an operation is: 200 `converged`, 202 `pending`, or 200 `failed` when some of its
/// objects need manual action or were not reached before it was cancelled; its task names them.
pub fn state_of(progress: Progress) -> (State, StatusCode) {
    let under_way = progress.total == 0 || progress.is_under_way();
    match (under_way, progress.failed + progress.cancelled) {
        (true, _) => (State::Pending, StatusCode::ACCEPTED),
        (false, 0) => (State::Converged, StatusCode::OK),
        (false, _) => (State::Failed, StatusCode::OK),
    }
}

/// The failure of an object that was changed, as HTTP reports it.
pub fn failure(change: &Change, reason: Reason, message: String) -> ApiError {
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
    let shown = reasons.filter(|reason| reason.needs_action() || *reason == Reason::Terminating);
    shown.map(|reason| {
        let code = snake_case(reason.as_str());
        (class(reason).status(), code, reason.remedy())
    })
}

/// How HTTP reports the failure of an object.
fn class(reason: Reason) -> FailureClass {
    match reason {
        Reason::ImageMissing
        | Reason::NeedsRoot
        | Reason::HostOpen
        | Reason::IsolationNotEnforced
        | Reason::InvalidSettings
        | Reason::NoMigrationPath
        | Reason::InvalidGlobalConfig
        | Reason::SkillMissing
        | Reason::AdapterInvalid => FailureClass::Refused,
        Reason::NameConflict
        | Reason::HomeConflict
        | Reason::NetworkInUse
        | Reason::PausedByOperator
        | Reason::ImageInUse
        | Reason::InvalidUserConfig
        | Reason::RolloutPaused
        | Reason::MassRemoval
        | Reason::QuotaExceeded
        | Reason::Terminating => FailureClass::Conflict,
        // The registry, or the agent itself, is what failed behind this service.
        Reason::ImagePullFailed
        | Reason::DirectoryFailed
        | Reason::ProviderFailed
        | Reason::PullFailed
        | Reason::AdapterSourceFailed
        | Reason::CloneFailed
        | Reason::HostKeyChanged
        | Reason::CrashLoop
        | Reason::ReplacementFailed
        | Reason::RolloutFailed => FailureClass::Remote,
        Reason::EngineTooOld
        | Reason::DataDirMismatch
        | Reason::NetworkFull
        | Reason::StorageFull
        | Reason::EngineForbidden
        | Reason::EngineQuota
        | Reason::Unschedulable
        | Reason::VolumePending
        | Reason::NodeLost
        | Reason::EngineUnavailable => FailureClass::Engine,
        Reason::Failed
        | Reason::Pending
        | Reason::Running
        | Reason::Stopped
        | Reason::Disabled
        | Reason::Converged
        | Reason::UpdateAvailable
        | Reason::Progressing
        | Reason::NotReady
        | Reason::NetworkMissing
        | Reason::ImagePulling
        | Reason::Cloning
        | Reason::NoManifest
        | Reason::HomeMissing
        | Reason::ConfigPending
        | Reason::Exited
        | Reason::Evicted
        | Reason::Unresponsive
        | Reason::StartFailed
        | Reason::Retrying
        | Reason::Panicked
        | Reason::NoProgress
        | Reason::WatchLost
        | Reason::WatchRestored
        | Reason::TaskEnded
        | Reason::FileSetAside
        | Reason::StorageLow
        | Reason::BackupFailed
        | Reason::CertificateRefused
        | Reason::GroupsLeftOut
        | Reason::Renamed
        | Reason::QuotaNearlyUsed
        | Reason::WithinQuota
        | Reason::StorageFailed
        | Reason::DatabaseUnavailable
        | Reason::LeaseLost
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

/// Paces the questions of one waiter.
pub(crate) struct Watch {
    ticks: watch::Receiver<u64>,
    deadline: Instant,
    shutdown: CancellationToken,
}

impl Watch {
    /// Takes note of all saves so far: one that comes after leads to another question.
    pub(crate) fn new(deps: &Dependencies, wait: Duration) -> Self {
        let mut ticks = deps.status_ticks.clone();
        ticks.borrow_and_update();
        Self {
            ticks,
            deadline: Instant::now() + wait,
            shutdown: deps.shutdown.clone(),
        }
    }

    /// For whoever asks as long as a client listens.
    pub(crate) fn unending(deps: &Dependencies) -> Self {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
        Self::new(deps, YEAR)
    }

    /// Waits for a reason to ask again. False when the time is up or the service stops.
    pub(crate) async fn next(&mut self) -> bool {
        let now = Instant::now();
        if now >= self.deadline || self.shutdown.is_cancelled() {
            return false;
        }
        let earliest = self.deadline.min(now + ASK_GAP);
        let latest = self.deadline.min(now + ASK_EVERY);
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

async fn progress_of(deps: &Deps, id: &str) -> Result<Progress, DbError> {
    let mut connection = deps.db.read().await?;
    let operation = operation::get(&mut connection, id).await?;
    let operation = operation.ok_or(DbError::NotFound("task"))?;
    let count = operation::count(&mut connection, &operation).await?;
    Ok(count.progress)
}

/// How far changes are that were made together, and which of them decides.
async fn decisive(
    deps: &Deps,
    changes: &[Change],
    until: Until,
) -> Result<(usize, Settled), DbError> {
    let mut connection = deps.db.snapshot().await?;
    let paused = object::paused_reconcilers(&mut connection).await?;
    let mut decides = (0, Settled::Converged);
    for (at, change) in changes.iter().enumerate() {
        let row = object::get(&mut connection, change.kind, &change.uid).await?;
        let settled = match until {
            Until::Converged => judge(change, row, &paused),
            Until::Noted => judge_note(change, row, &paused),
            Until::Paused => judge_pause(row),
            Until::Purged => {
                let mut first = Vec::new();
                for kind in change.kind.descriptor().removal_waits_for {
                    first.extend(object::get(&mut connection, *kind, &change.uid).await?);
                }
                judge_removal(row, first, &paused)
            }
        };
        if settled.weight() > decides.1.weight() {
            decides = (at, settled);
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
    held_up(&row, seen, paused).unwrap_or_else(|| Settled::pending(row.status.conditions, seen))
}

fn judge_note(change: &Change, row: Option<ObjectRow>, paused: &[String]) -> Settled {
    let unseen = row.filter(|row| row.status.observed_generation < change.generation);
    let Some(row) = unseen else {
        return Settled::Converged;
    };
    held_up(&row, false, paused).unwrap_or(Settled::Pending(row.status.conditions))
}

fn judge_pause(row: Option<ObjectRow>) -> Settled {
    let conditions = row.map(|row| row.status.conditions).unwrap_or_default();
    if is_true(&conditions, ConditionType::Paused) {
        return Settled::Converged;
    }
    Settled::Pending(conditions)
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
        let seen = next.status.observed_generation >= next.generation;
        Settled::pending(next.status.conditions, seen)
    })
}

/// Whether an object waits for a person. What was `seen` of an older generation does not count.
fn held_up(row: &ObjectRow, seen: bool, paused: &[String]) -> Option<Settled> {
    if row.paused || paused.iter().any(|name| name == "*" || *name == row.kind) {
        return Some(Settled::Paused(with_paused(row)));
    }
    let ready = condition::find(&row.status.conditions, ConditionType::Ready)?;
    // Resumed, and not observed since.
    let resumed = ready.reason == Reason::PausedByOperator;
    let stuck =
        seen && ready.status != ConditionStatus::True && ready.reason.needs_action() && !resumed;
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
