//! Does one step. Each is one transaction, or the beginning of a pull; each may be repeated.

use engine::EngineError;
use schema::condition::Reason;
use schema::error::DbError;
use schema::ids::Uid;

use super::RolloutStep;
use super::plan::{Action, Step};
use super::{RolloutReconciler, lock};
use crate::runtime::{Classify, ErrorClass};

/// What observing or changing a rollout can fail with.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    /// The database failed.
    #[error("the rollout cannot be read or written")]
    Db(#[source] DbError),
    /// Somebody wants something else by now, or a user is gone.
    #[error("the rollout changed while it was observed")]
    Changed(#[source] DbError),
    /// The engine failed.
    #[error("{0}")]
    Engine(#[source] EngineError),
}

impl From<DbError> for RolloutError {
    fn from(error: DbError) -> Self {
        match error {
            DbError::StaleGeneration { .. } | DbError::NotFound(_) => Self::Changed(error),
            other => Self::Db(other),
        }
    }
}

impl From<EngineError> for RolloutError {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl Classify for RolloutError {
    fn classify(&self) -> (ErrorClass, Reason) {
        match self {
            Self::Db(error) => error.classify(),
            Self::Changed(_) => (ErrorClass::Conflict, Reason::Retrying),
            Self::Engine(error) => error.classify(),
        }
    }
}

impl RolloutReconciler {
    pub(super) async fn apply_one(&self, uid: &Uid, action: &Action) -> Result<(), RolloutError> {
        let store = &self.store;
        let at = |step: &Step| RolloutStep {
            rollout: uid,
            planned_for: step.planned_for,
            now: self.shared.clock.now(),
        };
        match action {
            Action::StartPull { reference, attempt } => {
                self.start_pull(uid, reference, *attempt).await
            }
            Action::Remember { step, facts, .. } => {
                Ok(store.save_rollout_facts(at(step), facts).await?)
            }
            Action::Move {
                step,
                users,
                image,
                policy,
                ..
            } => Ok(store.move_targets(at(step), users, image, *policy).await?),
            Action::Release { step, users, .. } => {
                Ok(store.release_targets(at(step), users).await?)
            }
            Action::PutBack {
                step,
                user,
                state,
                message,
                ..
            } => Ok(store
                .put_back_target(at(step), user, *state, message)
                .await?),
            Action::FinishMany {
                step,
                users,
                state,
                message,
                ..
            } => Ok(store
                .finish_targets(at(step), users, *state, message)
                .await?),
            Action::Finish {
                step,
                user,
                state,
                message,
                ..
            } => Ok(store.finish_target(at(step), user, *state, message).await?),
        }
    }

    async fn start_pull(
        &self,
        uid: &Uid,
        reference: &str,
        attempt: i64,
    ) -> Result<(), RolloutError> {
        self.shared.start_pull(reference, "").await?;
        lock(&self.memory)
            .asked
            .insert(uid.clone(), (attempt, self.shared.clock.now()));
        Ok(())
    }
}
