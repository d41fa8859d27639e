//! Does one step. Every step may be repeated and may be cancelled at any await.

use schema::condition::Reason;
use schema::error::DbError;
use schema::home::HomeError;
use schema::ids::Uid;

use super::observe::is_unreadable;
use super::{Action, AgentConfigReconciler};
use crate::runtime::{Classify, ErrorClass};

/// What observing or changing a user's files can fail with.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The database failed.
    #[error("desired state cannot be read or written")]
    Db(#[from] DbError),
    /// Configuration or adapter changed.
    #[error("the configuration changed while the files were observed")]
    Reconfigured,
    /// The files could not be read or written.
    #[error("{0}")]
    Home(#[source] HomeError),
}

impl From<HomeError> for ConfigError {
    fn from(error: HomeError) -> Self {
        Self::Home(error)
    }
}

impl Classify for ConfigError {
    fn classify(&self) -> (ErrorClass, Reason) {
        match self {
            Self::Db(error) => error.classify(),
            Self::Reconfigured => (ErrorClass::Conflict, Reason::Retrying),
            // Somebody has put something else there since it was read: the next observation says what.
            Self::Home(error) if is_unreadable(error) => {
                (ErrorClass::Conflict, Reason::InvalidUserConfig)
            }
            Self::Home(error) => error.classify(),
        }
    }
}

impl AgentConfigReconciler {
    pub(super) async fn apply_one(&self, uid: &Uid, action: &Action) -> Result<(), ConfigError> {
        // Whatever happens, what was read is no longer trusted.
        self.verified.forget(uid);
        match action {
            Action::KeepFiles(kept) => Ok(self.store.keep_files(uid, kept).await?),
            Action::WriteFiles { name, files, .. } => Ok(self
                .shared
                .data_dir
                .write_agent_files(name, uid, files)
                .await?),
            Action::SaveFacts(facts) => {
                let saved = self.store.save_agent_config_facts(uid, facts).await;
                self.desired.mark(uid);
                Ok(saved?)
            }
        }
    }
}
