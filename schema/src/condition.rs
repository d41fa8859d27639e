//! Conditions: what is known of an object, why, and since when.

use serde::{Deserialize, Serialize};

use crate::ids::{Generation, ObjectRef, Timestamp};

/// The type of a condition.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
    utoipa::ToSchema,
)]
pub enum ConditionType {
    /// Observed to be as desired, with nothing left to do.
    Ready,
    /// Makes no progress by itself: needs manual action.
    Stalled,
    /// Reconciliation of this object is suspended.
    Paused,
}

/// A condition's status.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
    utoipa::ToSchema,
)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It could not be observed.
    Unknown,
}

/// Why a condition has its status: a stable word for programs, with a remedy for operators.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::IntoStaticStr,
    strum::EnumString,
    strum::VariantArray,
    utoipa::ToSchema,
)]
#[schema(example = "Running")]
pub enum Reason {
    /// Nothing was observed yet.
    Pending,
    /// Observed as desired: running and ready.
    Running,
    /// Observed as desired: stopped on purpose.
    Stopped,
    /// Observed as desired (objects that neither run nor stop).
    Converged,
    /// Steps towards the desired state are under way.
    Progressing,
    /// Started, but the readiness check has not passed yet.
    NotReady,
    /// The container engine cannot be reached.
    EngineUnavailable,
    /// The container engine speaks an API older than 1.41.
    EngineTooOld,
    /// The engine sees another data directory than the service does.
    DataDirMismatch,
    /// The agent network does not exist yet.
    NetworkMissing,
    /// The agent network must be recreated, but containers still use it.
    NetworkInUse,
    /// The agent network has no free address.
    NetworkFull,
    /// The image is not on the engine and may not be pulled.
    ImageMissing,
    /// The image is being pulled.
    ImagePulling,
    /// The image could not be pulled.
    ImagePullFailed,
    /// The image is to be deleted, but users have it.
    ImageInUse,
    /// A user did not become ready on the new image; no more users are moved.
    RolloutPaused,
    /// The rollout ended, and users could not be moved, or not back.
    RolloutFailed,
    /// The container waits until the agent's files are as desired.
    ConfigPending,
    /// A file of the agent cannot be read, so it is left unchanged.
    InvalidUserConfig,
    /// The agent's files cannot be brought to the version that the image reads.
    NoMigrationPath,
    /// The global agent or security settings cannot be used.
    InvalidGlobalConfig,
    /// The source of adapter packages could not be read.
    AdapterSourceFailed,
    /// The source of adapter packages returned an invalid package.
    AdapterInvalid,
    /// An object of the same name exists that Agentyard does not own.
    NameConflict,
    /// The user's directory cannot be used as it is.
    HomeConflict,
    /// The user's directory does not exist yet.
    HomeMissing,
    /// The container repeatedly exits soon after its start.
    CrashLoop,
    /// The container exited by itself and is about to be restarted.
    Exited,
    /// The replacement did not become ready; the previous container was restored.
    ReplacementFailed,
    /// `run_as=image` needs a service that runs as root.
    NeedsRoot,
    /// The engine refused the container's settings.
    InvalidSettings,
    /// The storage of the engine or of the data directory is full.
    StorageFull,
    /// A reconciliation failed for a temporary reason and is retried.
    Retrying,
    /// A reconciliation failed for a reason that a retry does not mend.
    Failed,
    /// A reconciliation crashed; this is a defect of Agentyard.
    Panicked,
    /// Five reconciliations in a row changed something for the same generation.
    NoProgress,
    /// Being removed.
    Terminating,
    /// This object, its reconciler, or all reconciliation is paused.
    PausedByOperator,
    /// The event stream is lost; the resync finds changes, later.
    WatchLost,
    /// The event stream is back.
    WatchRestored,
    /// A task of the service ended by itself or crashed, and the process with it.
    TaskEnded,
    /// A reconciler makes no progress although work is queued.
    Stuck,
    /// A reconciler that was stuck makes progress again.
    Recovered,
}

impl Reason {
    /// The stable text form.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether manual action is needed before this can become `Ready=True`: for a caller who waits, a failure.
    pub fn needs_action(self) -> bool {
        match self {
            Self::EngineTooOld
            | Self::DataDirMismatch
            | Self::NetworkInUse
            | Self::NetworkFull
            | Self::ImageMissing
            | Self::ImagePullFailed
            | Self::ImageInUse
            | Self::RolloutPaused
            | Self::RolloutFailed
            | Self::InvalidUserConfig
            | Self::NoMigrationPath
            | Self::InvalidGlobalConfig
            | Self::AdapterSourceFailed
            | Self::AdapterInvalid
            | Self::NameConflict
            | Self::HomeConflict
            | Self::CrashLoop
            | Self::ReplacementFailed
            | Self::NeedsRoot
            | Self::InvalidSettings
            | Self::StorageFull
            | Self::Failed
            | Self::PausedByOperator => true,
            Self::Pending
            | Self::Running
            | Self::Stopped
            | Self::Converged
            | Self::Progressing
            | Self::NotReady
            | Self::EngineUnavailable
            | Self::NetworkMissing
            | Self::ImagePulling
            | Self::HomeMissing
            | Self::ConfigPending
            | Self::Exited
            | Self::Retrying
            | Self::Panicked
            | Self::NoProgress
            | Self::Terminating
            | Self::WatchLost
            | Self::WatchRestored
            | Self::TaskEnded
            | Self::Stuck
            | Self::Recovered => false,
        }
    }

    /// One line that says what to do about it; empty when there is nothing to do.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Running
            | Self::Stopped
            | Self::Converged
            | Self::WatchRestored
            | Self::Recovered => "",
            Self::Pending | Self::Progressing | Self::Terminating => {
                "Wait; reconciliation continues automatically."
            }
            Self::NotReady => "Wait; read the container's log if it does not become ready.",
            Self::EngineUnavailable => {
                "Start the container engine or correct --docker-host; recovery is automatic."
            }
            Self::EngineTooOld => "Upgrade the engine to Docker 20.10 (API 1.41) or newer.",
            Self::DataDirMismatch => {
                "Set --engine-data-dir to the path of the data directory on the engine's host."
            }
            Self::NetworkMissing => {
                "Wait; the engine reconciler creates the network. If this persists, describe engine/local."
            }
            Self::NetworkInUse => {
                "Stop all containers, or restore the previous container.network_subnet."
            }
            Self::NetworkFull => {
                "Delete users, or stop all containers and set a larger container.network_subnet."
            }
            Self::ImageMissing => {
                "Load the image on the engine, or set image.pull_policy to missing or always."
            }
            Self::ImagePulling => "Wait until the pull has finished.",
            Self::ImagePullFailed => {
                "Check image.name, image.tag and the registry credentials; the pull is retried."
            }
            Self::ImageInUse => {
                "Move its users to another image with a rollout; the image is then deleted automatically."
            }
            Self::RolloutPaused => {
                "Inspect the failed users, then resume, roll back or cancel the rollout."
            }
            Self::RolloutFailed => {
                "Inspect the failed users, then start another rollout for them or roll this one back."
            }
            Self::ConfigPending => {
                "Wait; the agent-config reconciler writes the files. If this persists, describe agent-config/<name>."
            }
            Self::InvalidUserConfig => {
                "Correct or delete the file named in the message, inside the container, then run retry."
            }
            Self::NoMigrationPath => {
                "Choose an image that reads the files, or an adapter that declares this migration."
            }
            Self::InvalidGlobalConfig => {
                "Correct the keys agent and security of the configuration."
            }
            Self::AdapterSourceFailed => {
                "Check adapter.source_url and that the service can reach it; the source is retried."
            }
            Self::AdapterInvalid => {
                "Correct the package as the message says; the active adapter stays in effect."
            }
            Self::NameConflict => {
                "Rename or remove the foreign object; Agentyard never touches what it does not own."
            }
            Self::HomeConflict => {
                "Inspect the user's directory on the server: it has another owner or is not a directory."
            }
            Self::HomeMissing => {
                "Wait; the user reconciler creates the directory. If this persists, describe user/<name>."
            }
            Self::CrashLoop => {
                "Read the container's log, correct the image or configuration, then restart the container."
            }
            Self::Exited => "Wait for the restart, or read the container's log.",
            Self::ReplacementFailed => {
                "Read the events, then correct the image or settings, or restart the container to retry."
            }
            Self::NeedsRoot => "Run the service as root, or choose an adapter with run_as=service.",
            Self::InvalidSettings => "Correct the settings named in the message.",
            Self::StorageFull => "Free space on the engine's storage or the data directory.",
            Self::Retrying => "Wait for the next attempt, or run retry.",
            Self::Failed => "Correct what the message names, then run retry.",
            Self::Panicked => "Report the log of this reconciliation; it is retried.",
            Self::NoProgress => {
                "Find out what else changes this object; reconciliation continues with a growing delay."
            }
            Self::PausedByOperator => "Resume it when you are done.",
            Self::WatchLost => {
                "Check the connection to the engine or database; it is restored automatically."
            }
            Self::TaskEnded => {
                "Report the log; the supervisor of the process restarts the service."
            }
            Self::Stuck => "Report the log; restart the service if it does not recover.",
        }
    }

    /// What the next reconciliation does by itself; empty when nothing is wrong.
    pub fn next_try(self) -> &'static str {
        match self {
            Self::Running
            | Self::Stopped
            | Self::Converged
            | Self::WatchRestored
            | Self::Recovered => "",
            Self::Pending | Self::Progressing => "the next step is taken",
            Self::NotReady => "the readiness check is repeated",
            Self::EngineUnavailable => "the connection to the engine is retried",
            Self::EngineTooOld => "the engine's version is checked again",
            Self::DataDirMismatch => "the data directory is checked again",
            Self::NetworkMissing | Self::NetworkInUse => "the network is checked again",
            Self::NetworkFull => "an address is requested again",
            Self::ImageMissing => "the image is looked up on the engine again",
            Self::ImagePulling => "the pull is checked again",
            Self::ImagePullFailed => "the pull is retried",
            Self::ImageInUse => "the users of the image are checked again",
            Self::RolloutPaused | Self::PausedByOperator => "nothing is tried until it is resumed",
            Self::RolloutFailed => "nothing is tried; the rollout has ended",
            Self::ConfigPending => "the agent's files are checked again",
            Self::InvalidUserConfig => "the files are read again",
            Self::NoMigrationPath | Self::InvalidGlobalConfig => "the files are rendered again",
            Self::AdapterSourceFailed | Self::AdapterInvalid => "the source is read again",
            Self::NameConflict => "the name is checked again",
            Self::HomeConflict | Self::HomeMissing => "the user's directory is checked again",
            Self::CrashLoop | Self::Exited => "the container is restarted",
            Self::ReplacementFailed => "the replacement is retried",
            Self::NeedsRoot => "the user of the service is checked again",
            Self::InvalidSettings => "the same settings are tried again",
            Self::StorageFull => "the step that found no space is retried",
            Self::Retrying | Self::Failed | Self::Panicked => "the failed step is retried",
            Self::NoProgress => "the change is made again",
            Self::Terminating => "the removal continues",
            Self::WatchLost => "the event stream is reopened",
            Self::TaskEnded => "the service is restarted by its supervisor",
            Self::Stuck => "the reconciler continues when it is no longer blocked",
        }
    }
}

/// A condition of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Condition {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ConditionType,
    /// Its status.
    pub status: ConditionStatus,
    /// Why, stable for programs.
    pub reason: Reason,
    /// Why, for operators. Never holds a secret.
    pub message: String,
    /// The object that this one waits for, if it waits for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "agent-config/alice")]
    pub waits_for: Option<ObjectRef>,
    /// The generation that was observed.
    pub observed_generation: Generation,
    /// When `status` last changed.
    pub last_transition_at: Timestamp,
    /// How far what is under way is, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 100)]
    pub percent: Option<u8>,
}

impl Condition {
    /// A statement without history: generation and time are filled in by the runtime when it is saved.
    pub fn new(
        kind: ConditionType,
        status: ConditionStatus,
        reason: Reason,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            status,
            reason,
            message: message.into(),
            waits_for: None,
            observed_generation: Generation::default(),
            last_transition_at: Timestamp::default(),
            percent: None,
        }
    }

    /// Whether it does not hold until somebody takes action.
    pub fn needs_action(&self) -> bool {
        self.status != ConditionStatus::True && self.reason.needs_action()
    }

    /// `Ready=True`: only ever made from an observation with nothing left to do.
    pub fn ready(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(ConditionType::Ready, ConditionStatus::True, reason, message)
    }

    /// `Ready=False`.
    pub fn not_ready(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(
            ConditionType::Ready,
            ConditionStatus::False,
            reason,
            message,
        )
    }

    /// `Ready=Unknown`: it could not be observed.
    pub fn unknown(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(
            ConditionType::Ready,
            ConditionStatus::Unknown,
            reason,
            message,
        )
    }

    /// Equality without times and generations: whether saving `other` over `self` would say anything new.
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.status == other.status
            && self.reason == other.reason
            && self.message == other.message
            && self.waits_for == other.waits_for
            && self.percent == other.percent
    }
}

/// Finds the condition of one type.
pub fn find(conditions: &[Condition], kind: ConditionType) -> Option<&Condition> {
    conditions.iter().find(|c| c.kind == kind)
}

/// Carries times over: a condition keeps its transition time while its status stays the same.
pub fn merge(
    old: &[Condition],
    new: Vec<Condition>,
    generation: Generation,
    now: Timestamp,
) -> Vec<Condition> {
    new.into_iter()
        .map(|mut condition| {
            condition.observed_generation = generation;
            condition.last_transition_at = match find(old, condition.kind) {
                Some(previous) if previous.status == condition.status => {
                    previous.last_transition_at
                }
                _ => now,
            };
            condition
        })
        .collect()
}
