//! What the rollout reconciler reads and writes in the database.

use async_trait::async_trait;
use schema::audit::{About, Audited};
use schema::db::ObservedTx;
use schema::error::DbError;
use schema::ids::{Generation, Kind, Timestamp, Uid};
use schema::rollout::{
    self, ImageChoice, ReadinessPolicy, RolloutFacts, RolloutRow, RolloutTarget, TargetState,
};
use schema::{meta, object};

use crate::stores::Database;

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

/// Rollouts and their users. Every write is one transaction, and may be repeated.
#[async_trait]
pub trait RolloutStore: Send + Sync + 'static {
    /// Rollouts that have not ended, and those that a pass has not seen since their last change.
    async fn rollouts(&self) -> Result<Vec<Uid>, DbError>;
    /// One rollout with its users, in order.
    async fn rollout(&self, uid: &Uid)
    -> Result<Option<(RolloutRow, Vec<RolloutTarget>)>, DbError>;
    /// Saves what was observed and decided.
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
        policy: ReadinessPolicy,
    ) -> Result<(), DbError>;
    /// Lets a batch of users have what is changed, all or none.
    async fn release_targets(&self, step: RolloutStep<'_>, users: &[Uid]) -> Result<(), DbError>;
    /// Gives a user's container the previous image; `state` says why.
    async fn put_back_target(
        &self,
        step: RolloutStep<'_>,
        user: &Uid,
        state: TargetState,
        message: &str,
    ) -> Result<(), DbError>;
    /// Records that users who are not under way are done, all in the same way.
    async fn finish_targets(
        &self,
        step: RolloutStep<'_>,
        users: &[Uid],
        state: TargetState,
        message: &str,
    ) -> Result<(), DbError>;
    /// Records that a user is done.
    async fn finish_target(
        &self,
        step: RolloutStep<'_>,
        user: &Uid,
        state: TargetState,
        message: &str,
    ) -> Result<(), DbError>;
}

impl Database {
    /// The transaction of a step, if the rollout is still as the plan saw it. The guard keeps it so until
    /// the commit: whoever changes a rollout takes it first.
    async fn begin_step(&self, step: RolloutStep<'_>) -> Result<ObservedTx, DbError> {
        let mut tx = self.db.begin().await?;
        ensure_as_planned(&mut tx, step).await?;
        Ok(tx)
    }

    /// The same for a step that gives containers another image, which is desired state.
    async fn begin_move(&self, step: RolloutStep<'_>, action: &str) -> Result<Audited, DbError> {
        let mut tx = self.begin_as("rollout", action).await?;
        ensure_as_planned(&mut tx, step).await?;
        Ok(tx)
    }
}

async fn ensure_as_planned(tx: &mut ObservedTx, step: RolloutStep<'_>) -> Result<(), DbError> {
    meta::take_guard(tx, "rollouts").await?;
    let object = object::get(tx, Kind::Rollout, step.rollout).await?;
    match object.map(|object| object.generation) {
        Some(generation) if generation == step.planned_for => Ok(()),
        Some(Generation(actual)) => Err(DbError::StaleGeneration { actual }),
        None => Err(DbError::NotFound("rollout")),
    }
}

/// What the audit trail says of a move: the rollout, and the containers.
async fn about(tx: &mut ObservedTx, rollout: &Uid, users: &[Uid]) -> Result<About, DbError> {
    let name = |object: Option<object::ObjectRow>| object.map_or_else(String::new, |row| row.name);
    let rollout = name(object::get(tx, Kind::Rollout, rollout).await?);
    let mut about = About::object(Kind::Rollout, rollout);
    for user in users {
        let container = name(object::get(tx, Kind::Container, user).await?);
        about = about.and(Kind::Container, container);
    }
    Ok(about)
}

#[async_trait]
impl RolloutStore for Database {
    async fn rollouts(&self) -> Result<Vec<Uid>, DbError> {
        let mut connection = self.db.read().await?;
        rollout::unsettled(&mut connection).await
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
        policy: ReadinessPolicy,
    ) -> Result<(), DbError> {
        let mut tx = self.begin_move(step, "rollout_move").await?;
        // Several users' rows, in no order of a change of all: the two would wait for each other.
        meta::take_guard(&mut tx, "bulk").await?;
        for user in users {
            let (rollout, now) = (step.rollout, step.now);
            rollout::move_target(&mut tx, rollout, user, image, policy, now).await?;
        }
        let about = about(&mut tx, step.rollout, users).await?;
        tx.commit(about.detail(&image.reference)).await
    }

    async fn release_targets(&self, step: RolloutStep<'_>, users: &[Uid]) -> Result<(), DbError> {
        let mut tx = self.begin_move(step, "rollout_release").await?;
        meta::take_guard(&mut tx, "bulk").await?;
        for user in users {
            rollout::release_target(&mut tx, step.rollout, user, step.now).await?;
        }
        let about = about(&mut tx, step.rollout, users).await?;
        tx.commit(about).await
    }

    async fn put_back_target(
        &self,
        step: RolloutStep<'_>,
        user: &Uid,
        state: TargetState,
        message: &str,
    ) -> Result<(), DbError> {
        let mut tx = self.begin_move(step, "rollout_put_back").await?;
        rollout::put_back(&mut tx, step.rollout, user, state, message, step.now).await?;
        let about = about(&mut tx, step.rollout, std::slice::from_ref(user)).await?;
        tx.commit(about.detail(state.to_string())).await
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
