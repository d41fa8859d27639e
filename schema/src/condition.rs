//! Conditions: what is known of an object, why, and since when.

use serde::{Deserialize, Serialize};

use crate::ids::{Generation, ObjectRef, Timestamp};

/// What a condition speaks of.
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
    /// Making no progress by itself: a person must look.
    Stalled,
    /// Passes are switched off for this object.
    Paused,
}

/// Whether a condition holds.
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
    /// The world could not be read, so nobody knows.
    Unknown,
}

/// Why a condition has its status: a stable word for programs, with a remedy for people.
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
    /// Started, but its readiness check has not passed yet.
    NotReady,
    /// The container engine cannot be reached.
    EngineUnavailable,
    /// The container engine speaks an API older than 1.41.
    EngineTooOld,
    /// The engine sees another data directory than the service does.
    DataDirMismatch,
    /// The agent network does not exist yet.
    NetworkMissing,
    /// The agent network must be made anew, but containers still use it.
    NetworkInUse,
    /// The agent network has no free address.
    NetworkFull,
    /// The image is not on the engine and may not be pulled.
    ImageMissing,
    /// The image is being pulled.
    ImagePulling,
    /// The image could not be pulled.
    ImagePullFailed,
    /// The image shall leave the engine, but users have it.
    ImageInUse,
    /// A user did not become ready on the new image; nobody more is moved.
    RolloutPaused,
    /// The rollout ended, and somebody could not be moved, or not back.
    RolloutFailed,
    /// The container waits until the agent's files are as they should be.
    ConfigPending,
    /// A file of the agent's cannot be read, so it is left as it is.
    InvalidUserConfig,
    /// The agent's files cannot be brought to the version that the image reads.
    NoMigrationPath,
    /// The global agent or security settings cannot be used.
    InvalidGlobalConfig,
    /// The source of adapter packages could not be asked.
    AdapterSourceFailed,
    /// What the source of adapter packages gave is not a valid package.
    AdapterInvalid,
    /// An object of the same name exists that Agentyard does not own.
    NameConflict,
    /// The user's directory cannot be used as it is.
    HomeConflict,
    /// The user's directory is not there yet.
    HomeMissing,
    /// The container ends again and again soon after its start.
    CrashLoop,
    /// The container ended by itself and is about to be started again.
    Exited,
    /// The replacement container did not become ready; the old one was put back.
    ReplacementFailed,
    /// `run_as=image` needs a service that runs as root.
    NeedsRoot,
    /// The engine refused the container's settings.
    InvalidSettings,
    /// The storage of the engine or of the data directory is full.
    StorageFull,
    /// A pass failed for a passing reason and will be tried again.
    Retrying,
    /// A pass failed for a reason that trying again does not mend.
    Failed,
    /// A pass crashed; this is a defect of Agentyard.
    Panicked,
    /// Five passes in a row changed something for the same generation.
    NoProgress,
    /// Being removed.
    Terminating,
    /// Somebody paused this object, its reconciler, or all of them.
    PausedByOperator,
    /// Changes are no longer heard of as they happen; looking regularly finds them, later.
    WatchLost,
    /// Changes are heard of again.
    WatchRestored,
    /// A part of the service ended by itself or crashed, and the process with it.
    TaskEnded,
    /// A reconciler makes no progress although work waits.
    Stuck,
    /// A reconciler that was stuck works again.
    Recovered,
}

impl Reason {
    /// The stable text form.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether a person must act before this can become `Ready=True`: for a caller who waits, a failure.
    pub fn needs_person(self) -> bool {
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

    /// One line that says what a person can do about it; empty when there is nothing to do.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Running
            | Self::Stopped
            | Self::Converged
            | Self::WatchRestored
            | Self::Recovered => "",
            Self::Pending | Self::Progressing | Self::Terminating => {
                "Wait; the next pass continues by itself."
            }
            Self::NotReady => "Wait, or read the container's log if it does not become ready.",
            Self::EngineUnavailable => {
                "Start the container engine or correct --docker-host; recovery is automatic."
            }
            Self::EngineTooOld => "Upgrade the engine to Docker 20.10 (API 1.41) or newer.",
            Self::DataDirMismatch => {
                "Set --engine-data-dir to the path under which the engine's host sees the data directory."
            }
            Self::NetworkMissing => {
                "Wait; the engine reconciler creates the network. If it stays so, look at engine/local."
            }
            Self::NetworkInUse => {
                "Stop all containers, or set container.network_subnet back to what it was."
            }
            Self::NetworkFull => {
                "Remove users, or choose a larger container.network_subnet while no container exists."
            }
            Self::ImageMissing => {
                "Load the image on the engine, or set image.pull_policy to missing or always."
            }
            Self::ImagePulling => "Wait until the pull has finished.",
            Self::ImagePullFailed => {
                "Check image.name, image.tag and the registry credentials; the pull is retried."
            }
            Self::ImageInUse => {
                "Move its users to another image with migrate, then it is removed by itself."
            }
            Self::RolloutPaused => {
                "Look at the failed users; then resume, roll back or cancel the rollout."
            }
            Self::RolloutFailed => {
                "Look at the failed users; start another rollout for them, or roll this one back."
            }
            Self::ConfigPending => {
                "Wait; the agent-config reconciler writes the files. If it stays so, look at agent-config/<name>."
            }
            Self::InvalidUserConfig => {
                "Correct or remove the file that the message names, inside the container; then force a pass with retry."
            }
            Self::NoMigrationPath => {
                "Choose an image that reads the files, or an adapter that declares this migration."
            }
            Self::InvalidGlobalConfig => {
                "Correct the settings agent and security of the configuration."
            }
            Self::AdapterSourceFailed => {
                "Check adapter.source_url and that the service can reach it; it is asked again by itself."
            }
            Self::AdapterInvalid => {
                "Tell whoever maintains the package what the message names; the active adapter stays."
            }
            Self::NameConflict => {
                "Rename or remove the foreign object; Agentyard never touches what it does not own."
            }
            Self::HomeConflict => {
                "Look at the user's directory on the server; it belongs to somebody else or is not a directory."
            }
            Self::HomeMissing => {
                "Wait; the user reconciler creates the directory. If it stays so, look at user/<name>."
            }
            Self::CrashLoop => {
                "Read the container's log, correct image or configuration, then restart the container."
            }
            Self::Exited => "Wait for the restart, or read the container's log.",
            Self::ReplacementFailed => {
                "Read the events; correct image or settings, or restart the container to try again."
            }
            Self::NeedsRoot => "Run the service as root, or choose an adapter with run_as=service.",
            Self::InvalidSettings => "Correct the settings named in the message.",
            Self::StorageFull => "Free space on the engine's storage or the data directory.",
            Self::Retrying => "Wait for the next attempt, or force it with retry.",
            Self::Failed => "Correct what the message names, then force a pass with retry.",
            Self::Panicked => "Report the log of this pass; it is tried again by itself.",
            Self::NoProgress => {
                "Find out who else changes this object; passes go on with a growing delay."
            }
            Self::PausedByOperator => "Resume it when you are done.",
            Self::WatchLost => {
                "Look at the connection to the engine or database; it is restored by itself."
            }
            Self::TaskEnded => "Report the log; whatever runs the service starts it again.",
            Self::Stuck => "Report the log; restart the service if it does not recover.",
        }
    }

    /// What is tried at the next look, without anybody's doing; empty when nothing is wrong.
    pub fn next_try(self) -> &'static str {
        match self {
            Self::Running
            | Self::Stopped
            | Self::Converged
            | Self::WatchRestored
            | Self::Recovered => "",
            Self::Pending | Self::Progressing => "the next step is taken",
            Self::NotReady => "the readiness check is asked again",
            Self::EngineUnavailable => "the engine is called again",
            Self::EngineTooOld => "the engine is asked for its version again",
            Self::DataDirMismatch => "the data directory is probed again",
            Self::NetworkMissing | Self::NetworkInUse => "the network is looked at again",
            Self::NetworkFull => "an address is asked for again",
            Self::ImageMissing => "the image is looked for on the engine again",
            Self::ImagePulling => "the pull is looked at again",
            Self::ImagePullFailed => "the image is pulled again",
            Self::ImageInUse => "it is looked whether users still have the image",
            Self::RolloutPaused => "nothing is tried until it is resumed",
            Self::RolloutFailed => "nothing is tried; the rollout has ended",
            Self::ConfigPending => "it is looked whether the files were written",
            Self::InvalidUserConfig => "the files are read again",
            Self::NoMigrationPath | Self::InvalidGlobalConfig => "the files are made again",
            Self::AdapterSourceFailed | Self::AdapterInvalid => "the source is asked again",
            Self::NameConflict => "it is looked whether the name is free",
            Self::HomeConflict | Self::HomeMissing => "the user's directory is looked at again",
            Self::CrashLoop | Self::Exited => "the container is started again",
            Self::ReplacementFailed => "the replacement is tried again",
            Self::NeedsRoot => "it is looked whether the service runs as root",
            Self::InvalidSettings => "the same settings are tried again",
            Self::StorageFull => "the step that found no space is tried again",
            Self::Retrying | Self::Failed | Self::Panicked => "the failed step is tried again",
            Self::NoProgress => "the change is made again",
            Self::Terminating => "the removal goes on",
            Self::PausedByOperator => "nothing is tried until it is resumed",
            Self::WatchLost => "the watch is opened again",
            Self::TaskEnded => "the service is started again by whatever runs it",
            Self::Stuck => "the reconciler goes on when what holds it up ends",
        }
    }
}

/// One statement about an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Condition {
    /// What it speaks of.
    #[serde(rename = "type")]
    pub kind: ConditionType,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, for programs.
    pub reason: Reason,
    /// Why, for people. Never holds a secret.
    pub message: String,
    /// The object that this one waits for, if it waits for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "agent-config/alice")]
    pub waits_for: Option<ObjectRef>,
    /// The generation this statement was made for.
    pub observed_generation: Generation,
    /// When `status` last changed.
    pub last_transition_at: Timestamp,
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
        }
    }

    /// Whether it does not hold before a person acts.
    pub fn needs_person(&self) -> bool {
        self.status != ConditionStatus::True && self.reason.needs_person()
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

    /// `Ready=Unknown`: the world could not be read.
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
