//! Rows of rollouts.

use std::time::Duration;

use serde::Serialize;
use sqlx::FromRow;
use strum::{Display, EnumString, IntoStaticStr};
use utoipa::ToSchema;

use crate::column::{Flag, JsonList, Millis};
use crate::condition::{self, Condition, ConditionType};
use crate::ids::{Generation, Timestamp, Uid};
use crate::object::StatusRow;

/// How it was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Display, EnumString, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RolloutKind {
    /// Users of one image move to another; it is pulled if it is missing.
    Migrate,
    /// Users move to an image that is pulled first, whether it is there or not.
    Upgrade,
    /// Users get a changed configuration.
    Config,
    /// Users get another adapter.
    Adapter,
}

impl RolloutKind {
    /// Reports that users get another image by it, and not what all agents are made from.
    pub fn changes_image(self) -> bool {
        matches!(self, Self::Migrate | Self::Upgrade)
    }
}

/// The desired state of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Display, EnumString, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(as = DesiredRollout)]
pub enum DesiredRollout {
    /// It proceeds.
    Run,
    /// No more users are moved until it is resumed.
    Pause,
    /// All users go back to their previous images.
    Rollback,
    /// No more users are moved, and it ends.
    Cancel,
}

/// How far a rollout is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Display, EnumString, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(as = RolloutPhase)]
pub enum Phase {
    /// The image is being pulled and resolved.
    Pulling,
    /// Users are being moved.
    Rolling,
    /// No more users are moved until it is resumed.
    Paused,
    /// Users go back to their previous images.
    RollingBack,
    /// The last users under way are waited for, then it ends.
    Cancelling,
    /// All users were moved.
    Succeeded,
    /// It ended, and users could not be moved, or not back.
    Failed,
    /// All users are back on their previous images.
    RolledBack,
    /// It was ended before all users were moved.
    Cancelled,
}

/// How far one user of a rollout is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Display, EnumString, IntoStaticStr, ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(as = RolloutTargetState)]
pub enum TargetState {
    /// Its turn has not come.
    Pending,
    /// It has the new image and is waited for.
    Moving,
    /// It has the new image and is ready, or stopped as it was.
    Done,
    /// It did not become ready, and is on its way back.
    PuttingBack,
    /// It did not become ready, and has its previous image again.
    Failed,
    /// The whole is rolled back, and it is on its way back.
    RollingBack,
    /// It has its previous image again, as requested.
    RolledBack,
    /// The user is gone, or got its image otherwise.
    Skipped,
    /// The rollout ended before its turn came.
    Cancelled,
}

impl TargetState {
    /// Whether its container may be unavailable because of the rollout.
    pub fn is_under_way(self) -> bool {
        matches!(self, Self::Moving | Self::PuttingBack | Self::RollingBack)
    }
}

/// An image for a container: a reference and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageChoice {
    /// The reference.
    pub reference: String,
    /// The image (`sha256:…`) on the engine; `None`: whatever the reference means when the container is made.
    pub image_id: Option<String>,
    /// Its repository digest, when it has one.
    pub digest: Option<String>,
}

/// Terms on which a rollout judges a user's new container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadinessPolicy {
    /// How long it may take to become ready.
    pub health_timeout: Duration,
    /// Time for which it must have been ready before the user counts as moved.
    pub min_ready: Duration,
}

/// A rollout to create.
#[derive(Debug, Clone)]
pub struct NewRollout {
    /// How it was requested.
    pub kind: RolloutKind,
    /// The full reference of the new image.
    pub reference: String,
    /// The image that users are moved from, as it was named.
    pub source: Option<String>,
    /// How many users may be under way at once, at least 1.
    pub max_unavailable: u32,
    /// Whether a failure ends the move of others until somebody resumes it.
    pub pause_on_failure: bool,
    /// How long a user's new container may take to become ready.
    pub health_timeout: Duration,
    /// Time for which it must have been ready before the user counts as moved.
    pub min_ready: Duration,
}

/// Everything the rollout reconciler needs from the database about one rollout.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct RolloutRow {
    /// Identity; the id of its operation.
    pub uid: Uid,
    /// How it was requested.
    #[sqlx(rename = "type")]
    pub kind: RolloutKind,
    /// The full reference of the new image.
    pub reference: String,
    /// The image that users are moved from, as it was named.
    pub source: Option<String>,
    /// How many users may be under way at once.
    #[sqlx(try_from = "i64")]
    pub max_unavailable: u32,
    /// Whether a failure ends the move of others until somebody resumes it.
    #[sqlx(try_from = "Flag")]
    pub pause_on_failure: bool,
    /// How long a user's new container may take to become ready.
    #[sqlx(rename = "health_timeout_ms", try_from = "Millis")]
    pub health_timeout: Duration,
    /// Time for which it must have been ready before the user counts as moved.
    #[sqlx(rename = "min_ready_ms", try_from = "Millis")]
    pub min_ready: Duration,
    /// What is desired of it now.
    pub desired: DesiredRollout,
    /// Raised by each resume: the image is pulled and resolved once more.
    pub attempt: i64,
    /// Generation of the object.
    pub generation: Generation,
    /// Who requested it.
    pub actor: String,
    /// When.
    pub created_at: Timestamp,
    /// What the reconciler remembers.
    #[sqlx(flatten)]
    pub facts: RolloutFacts,
}

impl RolloutRow {
    /// Whether a failure has ended the move of others, and nobody has resumed it since.
    pub fn paused_itself(&self) -> bool {
        self.facts.paused_attempt == self.attempt
    }

    /// Reports that its image has to be pulled and resolved before users are moved.
    pub fn is_unresolved(&self) -> bool {
        self.kind.changes_image() && self.facts.resolved_attempt < self.attempt
    }

    /// The command that takes back what users get by it; `None` where the rollout itself can be rolled back.
    pub fn way_back(&self) -> Option<String> {
        let source = self.source.as_deref().unwrap_or_default();
        match self.kind {
            RolloutKind::Migrate | RolloutKind::Upgrade => None,
            RolloutKind::Config => {
                let revision = source.rsplit(' ').next().unwrap_or_default();
                Some(format!("agentyard config rollback {revision}"))
            }
            RolloutKind::Adapter => Some("agentyard adapter rollback".to_owned()),
        }
    }

    /// How far it is, all things considered: what is desired by now counts before its reconciler has
    /// taken note.
    pub fn phase(&self) -> Phase {
        if self.facts.finished_at.is_some() {
            return self.facts.phase;
        }
        match self.desired {
            DesiredRollout::Pause => Phase::Paused,
            DesiredRollout::Rollback => Phase::RollingBack,
            DesiredRollout::Cancel => Phase::Cancelling,
            DesiredRollout::Run if self.paused_itself() => Phase::Paused,
            DesiredRollout::Run if self.is_unresolved() => Phase::Pulling,
            DesiredRollout::Run => match self.facts.phase {
                Phase::Paused => Phase::Rolling,
                phase => phase,
            },
        }
    }
}

/// What the rollout reconciler remembers between passes.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct RolloutFacts {
    /// What the reference was resolved to.
    pub image_id: Option<String>,
    /// Its repository digest, when it has one.
    pub image_digest: Option<String>,
    /// The attempt for which it was resolved.
    pub resolved_attempt: i64,
    /// The attempt that was paused by a failure.
    pub paused_attempt: i64,
    /// How far it is.
    pub phase: Phase,
    /// In words, for people.
    pub message: String,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Time at which a pull of the image first failed in this attempt, while it has not been had since.
    pub pull_failed_at: Option<Timestamp>,
}

/// One user of a rollout.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct RolloutTarget {
    /// The user.
    pub uid: Uid,
    /// Its name when the rollout began.
    pub name: String,
    /// How far it is.
    pub state: TargetState,
    /// The image it was moved to.
    pub image_id: Option<String>,
    /// What it had before it was first moved.
    #[sqlx(flatten, try_from = "PreviousImage")]
    pub previous: Option<ImageChoice>,
    /// The generation of its container that asks for the present image.
    pub generation: Option<Generation>,
    /// When that was written.
    pub moved_at: Option<Timestamp>,
    /// When it got to its state, if that is an end.
    pub finished_at: Option<Timestamp>,
    /// In words, for people.
    pub message: String,
    /// The last lines of the log of its container, when that failed.
    pub log: String,
    /// Its container; `None` when the user is gone or going.
    #[sqlx(flatten, try_from = "RawContainer")]
    pub container: Option<TargetContainer>,
    /// Its agent's files; `None` when the user is gone or going.
    #[sqlx(flatten, try_from = "RawFiles")]
    pub files: Option<TargetFiles>,
}

/// The agent's files of a rollout's user.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetFiles {
    /// Their newest generation.
    pub generation: Generation,
    /// The newest generation their reconciler has observed.
    pub observed_generation: Generation,
    /// Their condition.
    pub ready: Option<Condition>,
}

/// The container of a rollout's user.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetContainer {
    /// Whether it is to run, all things considered.
    pub desired_running: bool,
    /// The reference it has now.
    pub image_ref: String,
    /// What that means, once it is known.
    pub image_id: Option<String>,
    /// Its newest generation.
    pub generation: Generation,
    /// The newest generation its reconciler has observed.
    pub observed_generation: Generation,
    /// What is known of it.
    pub ready: Option<Condition>,
}

#[derive(FromRow)]
pub(super) struct PreviousImage {
    previous_ref: Option<String>,
    previous_id: Option<String>,
    previous_digest: Option<String>,
}

impl From<PreviousImage> for Option<ImageChoice> {
    fn from(previous: PreviousImage) -> Self {
        previous.previous_ref.map(|reference| ImageChoice {
            reference,
            image_id: previous.previous_id,
            digest: previous.previous_digest,
        })
    }
}

#[derive(FromRow)]
pub(super) struct RawContainer {
    #[sqlx(try_from = "Flag")]
    desired_running: bool,
    image_ref: Option<String>,
    current_id: Option<String>,
    container_generation: Option<Generation>,
    #[sqlx(flatten)]
    status: StatusRow,
}

impl From<RawContainer> for Option<TargetContainer> {
    fn from(raw: RawContainer) -> Self {
        Some(TargetContainer {
            desired_running: raw.desired_running,
            image_ref: raw.image_ref?,
            image_id: raw.current_id,
            generation: raw.container_generation?,
            observed_generation: raw.status.observed_generation,
            ready: condition::find(&raw.status.conditions, ConditionType::Ready).cloned(),
        })
    }
}

#[derive(FromRow)]
pub(super) struct RawFiles {
    files_generation: Option<Generation>,
    files_observed: Generation,
    #[sqlx(try_from = "JsonList<Condition>")]
    files_conditions: Vec<Condition>,
}

impl From<RawFiles> for Option<TargetFiles> {
    fn from(raw: RawFiles) -> Self {
        Some(TargetFiles {
            generation: raw.files_generation?,
            observed_generation: raw.files_observed,
            ready: condition::find(&raw.files_conditions, ConditionType::Ready).cloned(),
        })
    }
}
