//! Does one step. Every step may be repeated and may be cancelled at any await.

use schema::condition::Reason;
use schema::error::{DbError, chain};
use schema::home::HomeError;
use schema::ids::Uid;
use schema::skill_store::SkillStoreError;

use super::{Action, SkillSetReconciler};
use crate::runtime::{Classify, ErrorClass};

/// What observing or changing a user's skills can fail with.
#[derive(Debug, thiserror::Error)]
pub enum SkillSetError {
    /// The database failed.
    #[error("desired state cannot be read or written")]
    Db(#[from] DbError),
    /// The files could not be read or written.
    #[error("{}", chain(.0))]
    Home(#[from] HomeError),
    /// The store of skills could not be read.
    #[error("{}", chain(.0))]
    Store(#[from] SkillStoreError),
}

impl Classify for SkillSetError {
    fn classify(&self) -> (ErrorClass, Reason) {
        match self {
            Self::Db(error) => error.classify(),
            // Somebody has put something else there since it was read: the next observation says what.
            Self::Home(HomeError::Conflict(_) | HomeError::Changed { .. }) => {
                (ErrorClass::Conflict, Reason::NameConflict)
            }
            Self::Home(error) => error.classify(),
            Self::Store(error) => error.classify(),
        }
    }
}

impl SkillSetReconciler {
    pub(super) async fn apply_one(&self, uid: &Uid, action: &Action) -> Result<(), SkillSetError> {
        let data_dir = &self.shared.data_dir;
        match action {
            Action::Clear { name } => data_dir.clear_skill_leftovers(name, uid).await?,
            Action::Stage {
                name,
                skill,
                digest,
            } => {
                let stamp = data_dir.stage_skill(name, uid, skill, digest).await?;
                let mut staged = self.staged();
                let of_user = staged.entry(uid.clone()).or_default();
                of_user.retain(|(other, ..)| other != skill);
                of_user.push((skill.clone(), stamp, digest.clone()));
            }
            Action::Remember(deployments) => {
                self.store.save_deployments(uid, deployments).await?;
            }
            Action::Swap {
                name,
                skill,
                previous,
                ..
            } => data_dir.swap_skill(name, uid, skill, previous).await?,
            Action::Remove {
                name,
                skill,
                previous,
            } => data_dir.remove_skill(name, uid, skill, previous).await?,
        }
        Ok(())
    }
}
