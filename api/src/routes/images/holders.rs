//! Users of an image that a client named: one rule for lists, deletion and migration.

use std::collections::HashSet;

use schema::image;
use schema::reader::Connection;
use schema::user::ImageFilter;

use super::local::{known_as, meant};
use super::names::{Named, full};
use crate::deps::Deps;
use crate::error::Result;

/// An image that a client named. By a reference it is that of users with this reference, whatever the tag meant when they got
/// it, and of users with the image that it means now; by an id, that of users with this id.
#[derive(Debug, Default)]
pub(in crate::routes) struct Meant {
    /// Full reference, if it was named by one.
    pub(super) reference: Option<String>,
    /// Its id, or the beginning of one.
    pub(super) id: Option<String>,
    /// Full references by which the engine knows it; users without an id have it by one of these.
    pub(super) known_as: HashSet<String>,
}

impl Meant {
    /// Asks the engine for the image; while it cannot be reached, what was pulled last counts. Holds no connection meanwhile.
    ///
    /// # Errors
    /// 400 when several ids begin as the text does; failures of the database.
    pub(super) async fn find(deps: &Deps, named: &Named) -> Result<Self> {
        let reference = named.reference().map(ToString::to_string);
        if let Ok(images) = deps.images.list().await {
            let image = meant(&images, named)?;
            if let Some(image) = image {
                let known_as = known_as(image).map(|known| known.to_string()).collect();
                return Ok(Self {
                    reference: reference.filter(|_| !named.is_id(&image.id)),
                    id: Some(image.id.clone()),
                    known_as,
                });
            }
        }
        let mut connection = deps.db.snapshot().await?;
        Self::recall(&mut connection, named).await
    }

    /// Reads from the database what was pulled last.
    ///
    /// # Errors
    /// Failures of the database.
    pub(in crate::routes) async fn recall(
        connection: &mut Connection,
        named: &Named,
    ) -> Result<Self> {
        let reference = named.reference().map(ToString::to_string);
        let pulled = match &reference {
            Some(reference) => image::find(connection, reference).await?,
            None => None,
        };
        let pulled = pulled.and_then(|image| image.facts.image_id);
        // The id of an engine whose ids name the repository.
        let by_digest = named.reference().filter(|it| it.digest().is_some());
        let pulled = pulled.or_else(|| by_digest.map(ToString::to_string));
        Ok(Self {
            reference,
            id: named.id().map(str::to_owned).or(pulled),
            known_as: HashSet::new(),
        })
    }

    /// Returns true if a user with this reference and id has the image.
    pub(super) fn is_of(&self, reference: &str, id: Option<&str>) -> bool {
        let by_id = match (&self.id, id) {
            (Some(meant), Some(id)) => image::is_id(id, meant),
            (None, _) | (_, None) => false,
        };
        let full = full(reference);
        by_id
            || self.reference.as_ref() == Some(&full)
            || id.is_none() && self.known_as.contains(&full)
    }

    /// The users who have it, as the database finds them.
    pub(in crate::routes) fn into_filter(self) -> ImageFilter {
        ImageFilter {
            reference: self.reference.unwrap_or_default(),
            id: self.id.unwrap_or_default(),
        }
    }
}
