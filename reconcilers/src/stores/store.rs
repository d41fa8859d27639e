//! What reconcilers ask of the database, apart from statuses.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schema::adapter::Adapter;
use schema::agent_config::{AgentConfigFacts, AgentConfigRow, KeptFiles, UserValues};
use schema::clock::SharedClock;
use schema::config::query::Values;
use schema::container::{ContainerFacts, ContainerRow};
use schema::error::DbError;
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::image::{DesiredImage, ImageFacts, ImageRow, ImageUse};
use schema::rollout::{ImageChoice, RolloutFacts, RolloutRow, RolloutTarget, TargetState};
use schema::user::UserRow;
use secrecy::SecretString;

use super::DirtyObserver;
use crate::runtime::StatusStore;

/// A step of a rollout: it is only taken while the rollout is as it was when the step was planned.
#[derive(Debug, Clone, Copy)]
pub struct RolloutStep<'a> {
    /// The rollout.
    pub rollout: &'a Uid,
    /// The generation that the plan was made for. With another one, somebody wants something else by now:
    /// the step is refused ([`DbError::StaleGeneration`]).
    pub planned_for: Generation,
    /// When it is taken.
    pub now: Timestamp,
}

/// Desired state, and the little that reconcilers write beside statuses.
///
/// [`DbStore`](super::DbStore) is the database, [`MemoryStore`](super::memory::MemoryStore) keeps the
/// same contract for simulations.
///
/// Every write is one transaction: it happens or it does not, and it may be repeated.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// All ordinary users, in one scan, ordered by uid.
    async fn users(&self) -> Result<Vec<UserRow>, DbError>;
    /// One ordinary user.
    async fn user(&self, uid: &Uid) -> Result<Option<UserRow>, DbError>;
    /// All containers, in one scan, ordered by uid.
    async fn containers(&self) -> Result<Vec<ContainerRow>, DbError>;
    /// One container.
    async fn container(&self, uid: &Uid) -> Result<Option<ContainerRow>, DbError>;
    /// The generation of an object; `None` when there is none.
    async fn generation(&self, kind: Kind, uid: &Uid) -> Result<Option<Generation>, DbError>;
    /// Adds a finalizer to an object that exists.
    async fn add_finalizer(&self, kind: Kind, uid: &Uid, name: &str) -> Result<(), DbError>;
    /// Removes a finalizer of a container, and its rows when it is deleted and no other is left.
    async fn purge_container(&self, uid: &Uid, finalizer: &str) -> Result<(), DbError>;
    /// Removes a finalizer of a user, and its rows when it is deleted and no other is left.
    async fn purge_user(&self, uid: &Uid, finalizer: &str) -> Result<(), DbError>;
    /// Saves what the container reconciler remembers; nothing happens when the container is gone.
    async fn save_facts(&self, uid: &Uid, facts: &ContainerFacts) -> Result<(), DbError>;
    /// All configured values with secrets opened, and the generation they belong to.
    async fn config(&self) -> Result<(Values, i64), DbError>;
    /// How often configuration changed.
    async fn config_generation(&self) -> Result<i64, DbError>;
    /// The active adapter, and the generation it belongs to.
    async fn adapter(&self) -> Result<(i64, Arc<Adapter>), DbError>;
    /// How often the active adapter changed.
    async fn adapter_generation(&self) -> Result<i64, DbError>;
    /// All users' agent configurations, in one scan, ordered by uid.
    async fn agent_configs(&self) -> Result<Vec<AgentConfigRow>, DbError>;
    /// One user's.
    async fn agent_config(&self, uid: &Uid) -> Result<Option<AgentConfigRow>, DbError>;
    /// What a user has set, opened.
    async fn agent_values(&self, uid: &Uid) -> Result<UserValues, DbError>;
    /// The MCP token that goes into a user's files.
    fn mcp_token(&self, row: &AgentConfigRow) -> SecretString;
    /// Keeps a user's files as they are before a migration, in place of what was kept; nothing happens when
    /// the user is gone or going.
    async fn keep_files(&self, uid: &Uid, files: &KeptFiles) -> Result<(), DbError>;
    /// A user's files as they were before the last migration, opened.
    async fn kept_files(&self, uid: &Uid) -> Result<Option<KeptFiles>, DbError>;
    /// Saves what the agent-config reconciler remembers, and bumps the container when what a running agent must
    /// be restarted for has changed; nothing happens when the user is gone.
    async fn save_config_facts(&self, uid: &Uid, facts: &AgentConfigFacts) -> Result<(), DbError>;
    /// The statuses of one kind of object; its dirty keys are told to `observer`.
    fn statuses(
        &self,
        kind: Kind,
        reconciler: &'static str,
        clock: SharedClock,
        observer: Arc<dyn DirtyObserver>,
    ) -> Arc<dyn StatusStore<Uid>>;

    /// All images that an administrator asked for or wants removed, in one scan.
    async fn images(&self) -> Result<Vec<ImageRow>, DbError>;
    /// One of them.
    async fn image(&self, uid: &Uid) -> Result<Option<ImageRow>, DbError>;
    /// Which user has which image, ordered by name; then which user may yet get which image from a rollout
    /// that has not ended.
    async fn image_uses(&self) -> Result<Vec<ImageUse>, DbError>;
    /// Saves what the image reconciler remembers; nothing happens when the image is gone.
    async fn save_image_facts(&self, uid: &Uid, facts: &ImageFacts) -> Result<(), DbError>;
    /// Cleaning up is done as it was wished: removes a deleted image's rows, unless something else is
    /// wished by now.
    async fn purge_image(&self, uid: &Uid, wished: DesiredImage) -> Result<(), DbError>;
    /// Rollouts that have not ended.
    async fn rollouts(&self) -> Result<Vec<Uid>, DbError>;
    /// One rollout with its users, in order.
    async fn rollout(&self, uid: &Uid)
    -> Result<Option<(RolloutRow, Vec<RolloutTarget>)>, DbError>;
    /// Saves what the rollout reconciler remembers.
    async fn save_rollout_facts(
        &self,
        step: RolloutStep<'_>,
        facts: &RolloutFacts,
    ) -> Result<(), DbError>;
    /// Gives the containers of a batch the rollout's image, all or none, and remembers what they had.
    async fn move_targets(
        &self,
        step: RolloutStep<'_>,
        users: &[Uid],
        image: &ImageChoice,
        health_timeout: Duration,
    ) -> Result<(), DbError>;
    /// Gives a user's container the image of before; `state` says why.
    async fn put_back_target(
        &self,
        step: RolloutStep<'_>,
        user: &Uid,
        state: TargetState,
        message: &str,
    ) -> Result<(), DbError>;
    /// Records that users who are not under way are at the end of theirs, all in the same way.
    async fn finish_targets(
        &self,
        step: RolloutStep<'_>,
        users: &[Uid],
        state: TargetState,
        message: &str,
    ) -> Result<(), DbError>;
    /// Records that a user is at the end of its way.
    async fn finish_target(
        &self,
        step: RolloutStep<'_>,
        user: &Uid,
        state: TargetState,
        message: &str,
    ) -> Result<(), DbError>;
}
