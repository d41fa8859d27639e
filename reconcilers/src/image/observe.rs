//! Reads everything a plan needs about one image, and no more than it needs.

use std::sync::Arc;

use engine::{EngineError, Image};
use schema::condition::Reason;
use schema::error::chain;
use schema::ids::Uid;
use schema::image::{DesiredImage, ImageReference, ImageRow, ImageUse};

use super::{ImageError, ImageReconciler};
use crate::shared::pulls::PullReport;
use crate::shared::view::Connection;

/// Desired and observed state of one image.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// What is desired.
    pub row: Arc<ImageRow>,
    /// What became of pulling it.
    pub pull: PullReport,
    /// What is there.
    pub world: World,
}

/// What is there.
#[derive(Debug, Clone, PartialEq)]
pub enum World {
    /// It does not matter: a pull was called off, which must not wait for an engine that hangs.
    NotAsked,
    /// The engine could not be asked, or not be used.
    Unavailable(Reason, String),
    /// The registry does not say whether there is such an image.
    Unknown(String),
    /// What it said.
    Seen {
        /// The image that the reference or id means on the engine.
        image: Option<Image>,
        /// Names of the users who have it, or may get it from a rollout; searched for only when it shall go.
        users: Vec<String>,
    },
}

impl ImageReconciler {
    async fn row(&self, uid: &Uid) -> Result<Option<Arc<ImageRow>>, ImageError> {
        let row = self.desired.row(uid).await?;
        // Of one that is being removed, a cancelled pull may still become a removal, for which no generation
        // rings.
        match &row {
            Some(cached) if cached.deleted_at.is_some() => Ok(self.desired.read(uid).await?),
            _ => Ok(row),
        }
    }

    pub(super) async fn observe_one(&self, uid: &Uid) -> Result<Option<Snapshot>, ImageError> {
        let Some(row) = self.row(uid).await? else {
            return Ok(None);
        };
        // Before the engine is asked: a pull that ends meanwhile is found running once more, but one
        // that is found ended has put its image there.
        let pull = self.shared.pulls.report(&row.reference);
        let world = self.world(&row).await?;
        Ok(Some(Snapshot { row, pull, world }))
    }

    async fn world(&self, row: &ImageRow) -> Result<World, ImageError> {
        if row.deleted_at.is_some() && row.desired == DesiredImage::Cancelled {
            return Ok(World::NotAsked);
        }
        match self.shared.view.connection() {
            Connection::Up => {}
            Connection::Unavailable(why) => {
                return Ok(World::Unavailable(Reason::EngineUnavailable, why));
            }
            Connection::Unusable(reason, why) => return Ok(World::Unavailable(reason, why)),
        }
        let image = match self.shared.compute.images.image(&row.reference).await {
            Ok(image) => image,
            // A request is answered by its pull, which asks the registry itself.
            Err(EngineError::RegistryFailed(_)) if !row.is_answered() => None,
            Err(EngineError::RegistryFailed(why)) => return Ok(World::Unknown(why)),
            Err(error) => {
                self.shared.view.note_error(&error);
                return match error {
                    EngineError::Unavailable(_) => {
                        Ok(World::Unavailable(Reason::EngineUnavailable, chain(&error)))
                    }
                    other => Err(ImageError::Engine(other)),
                };
            }
        };
        let users = if row.deleted_at.is_some() && row.desired == DesiredImage::Absent {
            let uses = self.store.image_uses().await?;
            users(row, image.as_ref(), uses)
        } else {
            Vec::new()
        };
        Ok(World::Seen { image, users })
    }
}

/// Who has the image: by the reference, however it is written, or by its id. One that goes by its id
/// goes with all its references.
fn users(row: &ImageRow, image: Option<&Image>, uses: Vec<ImageUse>) -> Vec<String> {
    let is_id = row.reference.starts_with("sha256:");
    let references: Vec<ImageReference> = if is_id {
        let names = image.map(|image| image.repo_tags.iter().chain(&image.repo_digests));
        let names = names.into_iter().flatten();
        names.filter_map(|name| name.parse().ok()).collect()
    } else {
        row.reference.parse().into_iter().collect()
    };
    let id = image
        .map(|image| image.id.as_str())
        .or(is_id.then_some(row.reference.as_str()));
    let uses = uses.into_iter().filter(|user| {
        let own: Result<ImageReference, _> = user.image_ref.parse();
        let same_reference = own.is_ok_and(|own| references.contains(&own));
        same_reference
            || user.image_ref == row.reference
            || (id.is_some() && user.image_id.as_deref() == id)
    });
    let mut names: Vec<String> = Vec::new();
    for user in uses {
        if !names.contains(&user.name) {
            names.push(user.name);
        }
    }
    names
}
