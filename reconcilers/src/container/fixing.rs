//! The image of a user whose container does not exist yet is fixed as soon as the engine has it, so that nobody gets
//! another one because its tag moved before the first start.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use engine::EngineError;
use schema::config::{PullPolicy, keys};
use schema::container::ContainerRow;
use schema::ids::Timestamp;

use super::observe::{Pin, Seen};
use super::{ContainerError, ContainerReconciler};
use crate::runtime::Purpose;

/// For how long the engine is not asked again for an image that it does not have: many users may wait for one.
const ABSENT_FOR: Duration = Duration::from_secs(5);

/// When the engine said of which reference that it has no such image.
#[derive(Debug, Default)]
pub(super) struct Absent {
    said: Mutex<HashMap<String, Timestamp>>,
}

impl Absent {
    fn has(&self, reference: &str, now: Timestamp) -> bool {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.get(reference)
            .is_some_and(|at| now.left_of(*at, ABSENT_FOR).is_some())
    }

    fn note(&self, reference: &str, now: Timestamp) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.retain(|_, at| now.left_of(*at, ABSENT_FOR).is_some());
        said.insert(reference.to_owned(), now);
    }
}

impl ContainerReconciler {
    /// Finds the image of a stopped user that has none yet. One that is always pulled first is fixed by a pull.
    pub(super) async fn see_image_of_stopped(
        &self,
        seen: &mut Seen,
        row: &ContainerRow,
        purpose: Purpose,
    ) -> Result<(), ContainerError> {
        // Nothing may hold up a stop.
        if row.pinned_image().is_some() || !seen.containers.is_empty() {
            return Ok(());
        }
        let config = self.shared.config.at(row.config_generation).await?;
        seen.pull_policy = config.get(&keys::image::PULL_POLICY);
        let reference = &row.image_ref;
        let pulled = self.shared.pulls.recently_done(reference);
        if seen.pull_policy == PullPolicy::Always && !pulled {
            return Ok(());
        }
        let now = self.shared.clock.now();
        if self.absent.has(reference, now) && !pulled {
            return Ok(());
        }
        seen.pin = match self.known_image(reference, false).await {
            Err(ContainerError::Engine(error)) if !matches!(error, EngineError::Unavailable(_)) => {
                tracing::debug!(%error, reference, "the engine does not say whether it has an image");
                None
            }
            found => found?,
        };
        if seen.pin.is_none() && purpose == Purpose::Pass {
            self.absent.note(reference, now);
        }
        Ok(())
    }

    /// The image that a reference means on the engine now. With `is_needed_local`, only if a container can start from it
    /// without a pull.
    pub(super) async fn known_image(
        &self,
        reference: &str,
        is_needed_local: bool,
    ) -> Result<Option<Pin>, ContainerError> {
        let image = match self.shared.compute.images.image(reference).await {
            // The pull asks the registry again, once for all users, and says why it fails.
            Err(EngineError::RegistryFailed(_)) => None,
            image => image?,
        };
        let image = image.filter(|image| image.is_local || !is_needed_local);
        Ok(image.map(|image| Pin {
            digest: image.repo_digests.first().cloned(),
            image_id: image.id,
        }))
    }
}
