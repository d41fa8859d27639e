//! Rows of containers.

use std::time::Duration;

use serde::Serialize;
use sqlx::FromRow;
use strum::{Display, IntoStaticStr};
use utoipa::ToSchema;

use crate::agent_config::read_reason;
use crate::condition::{self, Condition, ConditionStatus, ConditionType, Reason};
use crate::error::DbError;
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

impl Desired {
    /// Reads the stored form.
    pub(crate) fn read(text: &str) -> Result<Self, DbError> {
        text.parse()
            .map_err(|_| DbError::Corrupt(format!("desired state {text:?}")))
    }
}

/// Everything the container reconciler needs from the database about one user.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerRow {
    /// Identity of the user, and of its container.
    pub uid: Uid,
    /// Name of the user.
    pub name: UserName,
    /// The account may not be used: the container does not run, whatever is desired.
    pub disabled: bool,
    /// Whether it is to run.
    pub desired: Desired,
    /// A new token means: replace the container by a fresh one, once.
    pub restart_token: String,
    /// Runs the adapter's debug command until the next start or restart.
    pub debug: bool,
    /// Image reference, fixed when the user was created or migrated.
    pub image_ref: String,
    /// What a rollout resolved the reference to; `None`: what it meant when the container was first made.
    pub image_id: Option<String>,
    /// Its repository digest, when it has one.
    pub image_digest: Option<String>,
    /// How long a rollout waits for the replacement to become ready; `None` outside of rollouts.
    pub health_timeout: Option<Duration>,
    /// Processor limit in cores, when it differs from the configuration's.
    pub cpu_limit: Option<f64>,
    /// Memory limit in MiB, when it differs from the configuration's.
    pub memory_limit_mb: Option<i64>,
    /// Generation of the container object.
    pub generation: Generation,
    /// Its removal was asked for.
    pub deleted_at: Option<Timestamp>,
    /// Whether the reconciler has noted that it must clean up.
    pub has_finalizer: bool,
    /// Configuration generation at the time of reading.
    pub config_generation: i64,
    /// Generation of the active adapter at the time of reading.
    pub adapter_generation: i64,
    /// How the agent's files are.
    pub files: AgentFiles,
    /// What the reconciler remembers.
    pub facts: ContainerFacts,
}

/// How a user's agent files are, as the container reconciler has to know it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentFiles {
    /// The agent-config reconciler has not observed the newest generation yet, and is going to: nobody has
    /// paused it for this user.
    pub pending: bool,
    /// Why they were not brought to it.
    pub refused: Option<Reason>,
    /// Digest over what a running agent must be restarted for.
    pub restart_digest: Option<String>,
}

impl ContainerRow {
    /// The image (`sha256:…`) this user is pinned to: what a rollout gave it, or what the reference meant
    /// when its container was first made. `None` before.
    pub fn pinned_image(&self) -> Option<&str> {
        let made = (self.facts.image_ref.as_ref() == Some(&self.image_ref))
            .then_some(self.facts.image_id.as_deref());
        self.image_id.as_deref().or(made.flatten())
    }

    /// Whether it is to run, all things considered.
    pub fn shall_run(&self) -> bool {
        self.desired == Desired::Running && !self.disabled && self.deleted_at.is_none()
    }
}

/// What the container reconciler remembers between passes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ContainerFacts {
    /// The engine's id of the container last seen ready.
    pub engine_id: Option<String>,
    /// The reference that `image_id` was resolved from.
    pub image_ref: Option<String>,
    /// The image this user is pinned to.
    pub image_id: Option<String>,
    /// Its repository digest, when it has one.
    pub image_digest: Option<String>,
    /// Address in the agent network.
    pub ip: Option<String>,
    /// When that container was started.
    pub started_at: Option<Timestamp>,
    /// When it was first seen ready after that start.
    pub ready_at: Option<Timestamp>,
    /// Exits in a row that nobody asked for.
    pub crash_count: u32,
    /// The restart token for which they were counted; a new one forgives.
    pub crash_token: String,
    /// When the newest of them happened.
    pub last_exit_at: Option<Timestamp>,
    /// Its exit code.
    pub last_exit_code: Option<i64>,
    /// Settings whose replacement container did not become ready.
    pub failed_digest: Option<String>,
    /// When that was.
    pub failed_at: Option<Timestamp>,
    /// How often in a row.
    pub failed_count: u32,
}

#[derive(FromRow)]
pub(super) struct RawContainer {
    pub uid: String,
    pub name: String,
    pub disabled: i64,
    pub desired: String,
    pub restart_token: String,
    pub debug: i64,
    pub spec_image_ref: String,
    pub spec_image_id: Option<String>,
    pub spec_image_digest: Option<String>,
    pub health_timeout_ms: Option<i64>,
    pub cpu_limit: Option<f64>,
    pub memory_limit_mb: Option<i64>,
    pub generation: i64,
    pub deleted_at: Option<i64>,
    pub finalizer: Option<String>,
    pub config_generation: i64,
    pub adapter_generation: i64,
    pub files_wanted: Option<i64>,
    pub files_at: Option<i64>,
    pub files_refused: Option<String>,
    pub files_digest: Option<String>,
    pub engine_id: Option<String>,
    pub image_ref: Option<String>,
    pub image_id: Option<String>,
    pub image_digest: Option<String>,
    pub ip: Option<String>,
    pub started_at: Option<i64>,
    pub ready_at: Option<i64>,
    pub crash_count: Option<i64>,
    pub crash_token: Option<String>,
    pub last_exit_at: Option<i64>,
    pub last_exit_code: Option<i64>,
    pub failed_digest: Option<String>,
    pub failed_at: Option<i64>,
    pub failed_count: Option<i64>,
}

fn count(value: Option<i64>) -> u32 {
    u32::try_from(value.unwrap_or(0)).unwrap_or(0)
}

impl TryFrom<RawContainer> for ContainerRow {
    type Error = DbError;

    fn try_from(raw: RawContainer) -> Result<Self, DbError> {
        Ok(Self {
            uid: Uid::from(raw.uid),
            name: raw.name.parse()?,
            disabled: raw.disabled != 0,
            desired: Desired::read(&raw.desired)?,
            restart_token: raw.restart_token,
            debug: raw.debug != 0,
            image_ref: raw.spec_image_ref,
            image_id: raw.spec_image_id,
            image_digest: raw.spec_image_digest,
            health_timeout: raw
                .health_timeout_ms
                .and_then(|millis| u64::try_from(millis).ok())
                .map(Duration::from_millis),
            cpu_limit: raw.cpu_limit,
            memory_limit_mb: raw.memory_limit_mb,
            generation: Generation(raw.generation),
            deleted_at: raw.deleted_at.map(Timestamp::from_millis),
            has_finalizer: raw.finalizer.is_some(),
            config_generation: raw.config_generation,
            adapter_generation: raw.adapter_generation,
            files: AgentFiles {
                pending: raw.files_wanted.unwrap_or(0) > raw.files_at.unwrap_or(0),
                refused: read_reason(raw.files_refused.as_deref())?,
                restart_digest: raw.files_digest,
            },
            facts: ContainerFacts {
                engine_id: raw.engine_id,
                image_ref: raw.image_ref,
                image_id: raw.image_id,
                image_digest: raw.image_digest,
                ip: raw.ip,
                started_at: raw.started_at.map(Timestamp::from_millis),
                ready_at: raw.ready_at.map(Timestamp::from_millis),
                crash_count: count(raw.crash_count),
                crash_token: raw.crash_token.unwrap_or_default(),
                last_exit_at: raw.last_exit_at.map(Timestamp::from_millis),
                last_exit_code: raw.last_exit_code,
                failed_digest: raw.failed_digest,
                failed_at: raw.failed_at.map(Timestamp::from_millis),
                failed_count: count(raw.failed_count),
            },
        })
    }
}

/// A container's state in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Display, IntoStaticStr, ToSchema)]
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

/// The word for a container that is not observed: as it was when it last was, whatever is desired now.
fn last_seen(ready: &Condition) -> StatusWord {
    match (ready.status, ready.reason) {
        (ConditionStatus::True, Reason::Running) => StatusWord::Running,
        (ConditionStatus::True, Reason::Stopped) => StatusWord::Stopped,
        (ConditionStatus::False, reason) if reason.needs_action() => StatusWord::Failed,
        _ => StatusWord::Unknown,
    }
}

/// Derives the word from what is desired and what was observed: never `running` before an observation
/// of this generation said so.
pub fn status_word(
    shall_run: bool,
    deleted: bool,
    generation: Generation,
    status: &StatusRow,
) -> StatusWord {
    if deleted {
        return StatusWord::Deleting;
    }
    let under_way = if shall_run {
        StatusWord::Starting
    } else {
        StatusWord::Stopping
    };
    let ready = condition::find(&status.conditions, ConditionType::Ready);
    if status.observed_generation < generation {
        let paused = condition::find(&status.conditions, ConditionType::Paused);
        return match paused.filter(|paused| paused.status == ConditionStatus::True) {
            Some(_) => ready.map_or(StatusWord::Unknown, last_seen),
            None => under_way,
        };
    }
    match ready {
        None => under_way,
        Some(ready) => match ready.status {
            ConditionStatus::True if shall_run => StatusWord::Running,
            ConditionStatus::True => StatusWord::Stopped,
            ConditionStatus::Unknown => StatusWord::Unknown,
            ConditionStatus::False if ready.reason.needs_action() => StatusWord::Failed,
            ConditionStatus::False => under_way,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(shall_run: bool, conditions: Vec<Condition>) -> StatusWord {
        let status = StatusRow {
            observed_generation: Generation(1),
            conditions,
            ..StatusRow::default()
        };
        status_word(shall_run, false, Generation(2), &status)
    }

    #[test]
    fn l59_what_is_paused_is_as_it_was_last_seen_and_not_on_its_way() {
        let paused = Condition::new(
            ConditionType::Paused,
            ConditionStatus::True,
            Reason::PausedByOperator,
            "",
        );
        let ready = |reason| Condition::ready(reason, "");
        let lost = Condition::new(
            ConditionType::Ready,
            ConditionStatus::Unknown,
            Reason::EngineUnavailable,
            "",
        );
        assert_eq!(
            word(true, vec![ready(Reason::Running)]),
            StatusWord::Starting
        );
        for (shall_run, seen, expected) in [
            (true, ready(Reason::Running), StatusWord::Running),
            (false, ready(Reason::Running), StatusWord::Running),
            (true, ready(Reason::Stopped), StatusWord::Stopped),
            (true, lost, StatusWord::Unknown),
        ] {
            assert_eq!(word(shall_run, vec![seen, paused.clone()]), expected);
        }
        assert_eq!(word(true, vec![paused]), StatusWord::Unknown);
    }
}
