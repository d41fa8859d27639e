//! The database.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schema::adapter::{Adapter, store as adapters};
use schema::agent_config::{self, AgentConfigFacts, AgentConfigRow, KeptFiles, UserValues};
use schema::clock::SharedClock;
use schema::config::query::{self as config, Values};
use schema::container::{self, ContainerFacts, ContainerRow};
use schema::db::{Db, Tx};
use schema::error::DbError;
use schema::ids::{Generation, Kind, Uid};
use schema::image::{self, DesiredImage, ImageFacts, ImageRow, ImageUse};
use schema::rollout::{self, ImageChoice, RolloutFacts, RolloutRow, RolloutTarget, TargetState};
use schema::secrets::MasterKey;
use schema::user::UserRow;
use schema::{meta, object, user};
use secrecy::SecretString;

use super::{DbStatusStore, DirtyObserver, RolloutStep, Store};
use crate::runtime::StatusStore;

/// The database as [`Store`].
#[derive(Debug, Clone)]
pub struct DbStore {
    db: Db,
    master_key: Arc<MasterKey>,
}

impl DbStore {
    /// The open database, and the key for its secrets.
    pub fn new(db: Db, master_key: Arc<MasterKey>) -> Self {
        Self { db, master_key }
    }

    /// The transaction of a step, if the rollout is still as the plan saw it. The guard keeps it so until
    /// the commit: whoever changes a rollout takes it first.
    async fn begin_step(&self, step: RolloutStep<'_>) -> Result<Tx, DbError> {
        let mut tx = self.db.begin().await?;
        meta::take_guard(&mut tx, "rollouts").await?;
        let object = object::get(&mut tx, Kind::Rollout, step.rollout).await?;
        match object.map(|object| object.generation) {
            Some(generation) if generation == step.planned_for => Ok(tx),
            Some(Generation(actual)) => Err(DbError::StaleGeneration { actual }),
            None => Err(DbError::NotFound("rollout")),
        }
    }
}

#[async_trait]
impl Store for DbStore {
    async fn users(&self) -> Result<Vec<UserRow>, DbError> {
        let mut connection = self.db.read().await?;
        user::rows(&mut connection).await
    }

    async fn user(&self, uid: &Uid) -> Result<Option<UserRow>, DbError> {
        let mut connection = self.db.read().await?;
        user::row(&mut connection, uid).await
    }

    async fn containers(&self) -> Result<Vec<ContainerRow>, DbError> {
        let mut connection = self.db.read().await?;
        container::all(&mut connection).await
    }

    async fn container(&self, uid: &Uid) -> Result<Option<ContainerRow>, DbError> {
        let mut connection = self.db.read().await?;
        container::get(&mut connection, uid).await
    }

    async fn generation(&self, kind: Kind, uid: &Uid) -> Result<Option<Generation>, DbError> {
        let mut connection = self.db.read().await?;
        let row = object::get(&mut connection, kind, uid).await?;
        Ok(row.map(|row| row.generation))
    }

    async fn add_finalizer(&self, kind: Kind, uid: &Uid, name: &str) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        object::add_finalizer(&mut tx, kind, uid, name).await?;
        tx.commit().await
    }

    async fn purge_container(&self, uid: &Uid, finalizer: &str) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        object::remove_finalizer(&mut tx, Kind::Container, uid, finalizer).await?;
        container::purge(&mut tx, uid).await?;
        tx.commit().await
    }

    async fn purge_user(&self, uid: &Uid, finalizer: &str) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        object::remove_finalizer(&mut tx, Kind::User, uid, finalizer).await?;
        user::purge(&mut tx, uid).await?;
        tx.commit().await
    }

    async fn save_facts(&self, uid: &Uid, facts: &ContainerFacts) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        container::save_facts(&mut tx, uid, facts).await?;
        tx.commit().await
    }

    async fn agent_configs(&self) -> Result<Vec<AgentConfigRow>, DbError> {
        let mut connection = self.db.read().await?;
        agent_config::all(&mut connection).await
    }

    async fn agent_config(&self, uid: &Uid) -> Result<Option<AgentConfigRow>, DbError> {
        let mut connection = self.db.read().await?;
        agent_config::get(&mut connection, uid).await
    }

    async fn agent_values(&self, uid: &Uid) -> Result<UserValues, DbError> {
        let mut connection = self.db.snapshot().await?;
        agent_config::values(&mut connection, &self.master_key, uid).await
    }

    fn mcp_token(&self, row: &AgentConfigRow) -> SecretString {
        row.mcp_token(&self.master_key)
    }

    async fn keep_files(&self, uid: &Uid, files: &KeptFiles) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        agent_config::keep_files(&mut tx, &self.master_key, uid, files).await?;
        tx.commit().await
    }

    async fn kept_files(&self, uid: &Uid) -> Result<Option<KeptFiles>, DbError> {
        let mut connection = self.db.read().await?;
        agent_config::kept_files(&mut connection, &self.master_key, uid).await
    }

    async fn save_config_facts(&self, uid: &Uid, facts: &AgentConfigFacts) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        agent_config::save_facts(&mut tx, uid, facts).await?;
        tx.commit().await
    }

    async fn config(&self) -> Result<(Values, i64), DbError> {
        let mut connection = self.db.snapshot().await?;
        config::load(&mut connection, &self.master_key).await
    }

    async fn config_generation(&self) -> Result<i64, DbError> {
        let mut connection = self.db.read().await?;
        config::generation(&mut connection).await
    }

    async fn adapter(&self) -> Result<(i64, Arc<Adapter>), DbError> {
        let mut connection = self.db.read().await?;
        let (generation, adapter) = adapters::active(&mut connection).await?;
        Ok((generation, Arc::new(adapter)))
    }

    async fn adapter_generation(&self) -> Result<i64, DbError> {
        let mut connection = self.db.read().await?;
        adapters::generation(&mut connection).await
    }

    fn statuses(
        &self,
        kind: Kind,
        reconciler: &'static str,
        clock: SharedClock,
        observer: Arc<dyn DirtyObserver>,
    ) -> Arc<dyn StatusStore<Uid>> {
        let db = self.db.clone();
        Arc::new(DbStatusStore::new(db, kind, reconciler, clock, observer))
    }

    async fn images(&self) -> Result<Vec<ImageRow>, DbError> {
        let mut connection = self.db.read().await?;
        image::all(&mut connection).await
    }

    async fn image(&self, uid: &Uid) -> Result<Option<ImageRow>, DbError> {
        let mut connection = self.db.read().await?;
        image::get(&mut connection, uid).await
    }

    async fn image_uses(&self) -> Result<Vec<ImageUse>, DbError> {
        let mut connection = self.db.snapshot().await?;
        let mut uses = image::uses(&mut connection).await?;
        uses.extend(image::needs(&mut connection).await?);
        Ok(uses)
    }

    async fn save_image_facts(&self, uid: &Uid, facts: &ImageFacts) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        image::save_facts(&mut tx, uid, facts).await?;
        tx.commit().await
    }

    async fn purge_image(&self, uid: &Uid, wished: DesiredImage) -> Result<(), DbError> {
        let mut tx = self.db.begin().await?;
        image::purge(&mut tx, uid, wished).await?;
        tx.commit().await
    }

    async fn rollouts(&self) -> Result<Vec<Uid>, DbError> {
        let mut connection = self.db.read().await?;
        rollout::unfinished(&mut connection).await
    }

    async fn rollout(
        &self,
        uid: &Uid,
    ) -> Result<Option<(RolloutRow, Vec<RolloutTarget>)>, DbError> {
        // The rollout and its users of one moment.
        let mut connection = self.db.snapshot().await?;
        rollout::get(&mut connection, uid).await
    }

    async fn save_rollout_facts(
        &self,
        step: RolloutStep<'_>,
        facts: &RolloutFacts,
    ) -> Result<(), DbError> {
        let mut tx = self.begin_step(step).await?;
        rollout::save_facts(&mut tx, step.rollout, facts).await?;
        tx.commit().await
    }

    async fn move_targets(
        &self,
        step: RolloutStep<'_>,
        users: &[Uid],
        image: &ImageChoice,
        health_timeout: Duration,
    ) -> Result<(), DbError> {
        let mut tx = self.begin_step(step).await?;
        // Several users' rows, in no order of a change of all: the two would wait for each other.
        meta::take_guard(&mut tx, "bulk").await?;
        for user in users {
            let (rollout, now) = (step.rollout, step.now);
            rollout::move_target(&mut tx, rollout, user, image, health_timeout, now).await?;
        }
        tx.commit().await
    }

    async fn put_back_target(
        &self,
        step: RolloutStep<'_>,
        user: &Uid,
        state: TargetState,
        message: &str,
    ) -> Result<(), DbError> {
        let mut tx = self.begin_step(step).await?;
        rollout::put_back(&mut tx, step.rollout, user, state, message, step.now).await?;
        tx.commit().await
    }

    async fn finish_targets(
        &self,
        step: RolloutStep<'_>,
        users: &[Uid],
        state: TargetState,
        message: &str,
    ) -> Result<(), DbError> {
        let mut tx = self.begin_step(step).await?;
        rollout::finish_targets(&mut tx, step.rollout, users, state, message, step.now).await?;
        tx.commit().await
    }

    async fn finish_target(
        &self,
        step: RolloutStep<'_>,
        user: &Uid,
        state: TargetState,
        message: &str,
    ) -> Result<(), DbError> {
        let mut tx = self.begin_step(step).await?;
        rollout::finish_target(&mut tx, step.rollout, user, state, message, step.now).await?;
        tx.commit().await
    }
}
