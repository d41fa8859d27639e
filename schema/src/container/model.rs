//! Rows of containers.

use std::time::Duration;

use serde::Serialize;
use sqlx::FromRow;
use strum::{Display, IntoStaticStr};
use utoipa::ToSchema;

use super::ends::with_log;
use crate::column::{Flag, Millis};
use crate::condition::{self, Condition, ConditionStatus, ConditionType, Reason};
use crate::home::HomeId;
use crate::ids::{Generation, Timestamp, Uid, UserName};
use crate::object::StatusRow;

/// Whether a container is to run.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    strum::EnumString,
    IntoStaticStr,
    Display,
    ToSchema,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[schema(as = DesiredState)]
pub enum Desired {
    /// It is to run.
    Running,
    /// It is to be absent; the user's directory stays.
    Stopped,
}

/// Everything the container reconciler needs from the database about one user.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct ContainerRow {
    /// Identity of the user, and of its container.
    pub uid: Uid,
    /// Name of the user.
    pub name: UserName,
    /// The user's name before a rename, until it is recorded that no container has it any more.
    pub previous_name: Option<UserName>,
    /// The account may not be used: the container does not run, whatever is desired.
    #[sqlx(try_from = "Flag")]
    pub disabled: bool,
    /// Reason for which the quota stops it, whatever is desired.
    pub quota_stop: Option<String>,
    /// Whether it is to run.
    pub desired: Desired,
    /// A new token means: replace the container by a fresh one, once.
    pub restart_token: String,
    /// Runs the adapter's debug command until an administrator starts, restarts or stops it.
    #[sqlx(try_from = "Flag")]
    pub debug: bool,
    /// Image reference, fixed when the user was created or migrated.
    #[sqlx(rename = "spec_image_ref")]
    pub image_ref: String,
    /// What a rollout resolved the reference to; `None`: what it meant when the container was first made.
    #[sqlx(rename = "spec_image_id")]
    pub image_id: Option<String>,
    /// Its repository digest, when it has one.
    #[sqlx(rename = "spec_image_digest")]
    pub image_digest: Option<String>,
    /// How long a rollout waits for the replacement to become ready; `None` outside of rollouts.
    #[sqlx(rename = "health_timeout_ms", try_from = "Millis")]
    pub health_timeout: Option<Duration>,
    /// How long a rollout wants the replacement to have been ready before it counts; `None`: as configured.
    #[sqlx(rename = "min_ready_ms", try_from = "Millis")]
    pub min_ready: Option<Duration>,
    /// Processor limit in cores, when it differs from the configuration's.
    pub cpu_limit: Option<f64>,
    /// Memory limit in MiB, when it differs from the configuration's.
    pub memory_limit_mb: Option<i64>,
    /// Generation of the container object.
    pub generation: Generation,
    /// Its removal was asked for.
    pub deleted_at: Option<Timestamp>,
    /// Whether the reconciler has noted that it must clean up.
    #[sqlx(try_from = "Flag")]
    pub has_finalizer: bool,
    /// Configuration generation at the time of reading.
    pub config_generation: i64,
    /// Generation of the active adapter at the time of reading.
    pub adapter_generation: i64,
    /// How the agent's files are.
    #[sqlx(flatten)]
    pub files: AgentFiles,
    /// The rollout of a changed configuration or adapter in which its turn has not come: it keeps what it has.
    pub held_by: Option<Uid>,
    /// What the reconciler remembers.
    #[sqlx(flatten)]
    pub facts: ContainerFacts,
}

/// How a user's agent files are, as the container reconciler has to know it.
#[derive(Debug, Clone, PartialEq, Eq, Default, FromRow)]
pub struct AgentFiles {
    /// The agent-config reconciler has not observed the newest generation yet, and is going to: nobody has
    /// paused it for this user.
    #[sqlx(rename = "files_pending", try_from = "Flag")]
    pub pending: bool,
    /// Why they were not brought to it.
    #[sqlx(rename = "files_refused")]
    pub refused: Option<Reason>,
    /// Digest over what a running agent must be restarted for.
    #[sqlx(rename = "files_digest")]
    pub restart_digest: Option<String>,
    /// The directory that they are in; `None` when that is not known, or the agent-config reconciler is paused for
    /// this user.
    #[sqlx(rename = "files_home")]
    pub home: Option<HomeId>,
}

impl ContainerRow {
    /// The image (`sha256:…`) this user is pinned to: what a rollout gave it, or what the reference meant
    /// when the engine first had it. `None` before.
    pub fn pinned_image(&self) -> Option<&str> {
        let made = (self.facts.image_ref.as_ref() == Some(&self.image_ref))
            .then_some(self.facts.image_id.as_deref());
        self.image_id.as_deref().or(made.flatten())
    }

    /// Whether it is to run, all things considered.
    pub fn desired_running(&self) -> bool {
        self.desired == Desired::Running
            && !self.disabled
            && self.quota_stop.is_none()
            && self.deleted_at.is_none()
    }
}

/// What the container reconciler remembers between passes.
#[derive(Debug, Clone, PartialEq, Default, FromRow)]
pub struct ContainerFacts {
    /// The engine's id of the container last observed ready.
    pub engine_id: Option<String>,
    /// The reference that `image_id` was resolved from.
    pub image_ref: Option<String>,
    /// The image that this user is pinned to.
    pub image_id: Option<String>,
    /// Its repository digest, when it has one.
    pub image_digest: Option<String>,
    /// Address in the agent network.
    pub ip: Option<String>,
    /// When that container was started.
    pub started_at: Option<Timestamp>,
    /// When it was first observed ready after that start.
    pub ready_at: Option<Timestamp>,
    /// Unexpected exits in a row.
    #[sqlx(try_from = "i64")]
    pub crash_count: u32,
    /// The restart token for which they were counted; a new one resets the count.
    pub crash_token: String,
    /// When the newest of them happened.
    pub last_exit_at: Option<Timestamp>,
    /// Its exit code.
    pub last_exit_code: Option<i64>,
    /// Cause, in a clause.
    pub last_exit_cause: Option<String>,
    /// Digest of the settings whose replacement container did not become ready.
    pub failed_digest: Option<String>,
    /// When that was.
    pub failed_at: Option<Timestamp>,
    /// How often in a row.
    #[sqlx(try_from = "i64")]
    pub failed_count: u32,
    /// Cause, in a clause.
    pub failure: Option<String>,
    /// The last lines of its log, cleaned and without secrets.
    pub failure_log: Option<String>,
}

impl ContainerFacts {
    /// Why the newest replacement failed, with as many of the last lines of its log as fit in a condition.
    pub fn failure_text(&self) -> Option<String> {
        /// Of the kilobyte of a condition; the rest is for what is said beside it.
        const ROOM: usize = 600;
        let cause = self.failure.as_deref()?;
        let log = self.failure_log.as_deref().unwrap_or_default();
        Some(with_log(cause, log, ROOM))
    }
}

/// After this time without an exit, the exits before are forgiven; an exit this soon after a start is a crash.
pub const CRASH_WINDOW: Duration = Duration::from_secs(10 * 60);

impl ContainerFacts {
    /// Unexpected exits in a row that still count: none once the container has been ready and has run for
    /// [`CRASH_WINDOW`]. What is remembered is forgotten with the next change, not by one of its own.
    pub fn crashes_in_a_row(&self, now: Timestamp) -> u32 {
        let ready_since = self.started_at.filter(|_| self.ready_at.is_some());
        match ready_since {
            Some(started_at) if now.since(started_at) >= CRASH_WINDOW => 0,
            _ => self.crash_count,
        }
    }
}

/// A container's state in one word.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    serde::Deserialize,
    Display,
    IntoStaticStr,
    strum::EnumString,
    strum::VariantArray,
    ToSchema,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[schema(as = ContainerStatus)]
pub enum StatusWord {
    /// Observed running and ready.
    Running,
    /// On its way there.
    Starting,
    /// Observed stopped on purpose.
    Stopped,
    /// On its way there.
    Stopping,
    /// Needs manual action, or a later attempt.
    Failed,
    /// The engine could not be asked.
    Unknown,
    /// Being removed.
    Deleting,
}

/// Derives the word from what is desired and what was observed: never `running` before an observation
/// of this generation said so.
pub fn status_word(
    desired_running: bool,
    deleted: bool,
    generation: Generation,
    status: &StatusRow,
) -> StatusWord {
    if deleted {
        return StatusWord::Deleting;
    }
    let under_way = if desired_running {
        StatusWord::Starting
    } else {
        StatusWord::Stopping
    };
    let ready = condition::find(&status.conditions, ConditionType::Ready);
    if status.observed_generation < generation {
        let paused = condition::find(&status.conditions, ConditionType::Paused);
        return match paused.filter(|paused| paused.status == ConditionStatus::True) {
            // Nobody observes it, and it is not on its way either.
            Some(_) => match ready {
                Some(ready) if is_stuck(ready) => StatusWord::Failed,
                _ => StatusWord::Unknown,
            },
            None => under_way,
        };
    }
    match ready {
        None => under_way,
        Some(ready) => match ready.status {
            ConditionStatus::True if desired_running => StatusWord::Running,
            ConditionStatus::True => StatusWord::Stopped,
            ConditionStatus::Unknown => StatusWord::Unknown,
            ConditionStatus::False if is_stuck(ready) => StatusWord::Failed,
            ConditionStatus::False => under_way,
        },
    }
}

fn is_stuck(ready: &Condition) -> bool {
    ready.status == ConditionStatus::False && ready.reason.needs_action()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(desired_running: bool, conditions: Vec<Condition>) -> StatusWord {
        let status = StatusRow {
            observed_generation: Generation(1),
            conditions,
            ..StatusRow::default()
        };
        status_word(desired_running, false, Generation(2), &status)
    }

    #[test]
    fn l59_what_is_paused_is_unknown_and_not_on_its_way() {
        let paused = Condition::new(
            ConditionType::Paused,
            ConditionStatus::True,
            Reason::PausedByOperator,
            "",
        );
        let ready = |reason| Condition::ready(reason, "");
        let not_ready = |reason| Condition::not_ready(reason, "");
        let unknown = |reason| Condition::unknown(reason, "");
        assert_eq!(
            word(true, vec![ready(Reason::Running)]),
            StatusWord::Starting
        );
        for (observed, expected) in [
            (unknown(Reason::PausedByOperator), StatusWord::Unknown),
            (unknown(Reason::EngineUnavailable), StatusWord::Unknown),
            (not_ready(Reason::Progressing), StatusWord::Unknown),
            (not_ready(Reason::CrashLoop), StatusWord::Failed),
        ] {
            for desired_running in [true, false] {
                let conditions = vec![observed.clone(), paused.clone()];
                assert_eq!(word(desired_running, conditions), expected);
            }
        }
        assert_eq!(word(true, vec![paused]), StatusWord::Unknown);
    }
}
