//! Does one step. Every step may be repeated and may be cancelled at any await.

use engine::EngineError;
use schema::condition::Reason;
use schema::error::DbError;
use schema::ids::Uid;

use super::ImageReconciler;
use super::plan::Action;
use crate::runtime::{Classify, ErrorClass};

/// What observing or changing an image can fail with.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The database failed.
    #[error("desired state cannot be read or written")]
    Db(#[from] DbError),
    /// The engine failed.
    #[error("{0}")]
    Engine(#[source] EngineError),
    /// Something that is not ours uses the image.
    #[error("the engine keeps it: {0}")]
    InUse(String),
}

impl Classify for ImageError {
    fn classify(&self) -> (ErrorClass, Reason) {
        match self {
            Self::Db(error) => error.classify(),
            Self::InUse(_) => (ErrorClass::Transient, Reason::ImageInUse),
            Self::Engine(error) => error.classify(),
        }
    }
}

impl ImageReconciler {
    pub(super) async fn apply_one(&self, uid: &Uid, action: &Action) -> Result<(), ImageError> {
        match action {
            Action::StartPull { reference, token } => {
                Ok(self.shared.start_pull(reference, token).await?)
            }
            Action::CancelPull { reference } => {
                self.shared.pulls.cancel(reference);
                Ok(())
            }
            Action::SaveFacts(facts) => {
                let saved = self.store.save_image_facts(uid, facts).await;
                // Saved or not: an answer can be lost.
                self.desired.mark(uid);
                Ok(saved?)
            }
            Action::RemoveImage { reference } => {
                match self.shared.compute.images.remove_image(reference).await {
                    Ok(()) => Ok(()),
                    Err(EngineError::Conflict(why)) => Err(ImageError::InUse(why)),
                    Err(error) => {
                        self.shared.view.note_error(&error);
                        Err(ImageError::Engine(error))
                    }
                }
            }
            Action::Purge { desired } => {
                let purged = self.store.purge_image(uid, *desired).await;
                self.desired.mark(uid);
                Ok(purged?)
            }
        }
    }
}
