//! Images.

use schema::ids::Timestamp;
use schema::image::{self, DesiredImage};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Reading, Sections};
use crate::error::Result;

/// What is desired of an image.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DesiredImageState)]
pub struct Desired {
    /// The full reference, or the id of an image to be removed.
    image: String,
    /// The desired state as it was requested.
    desired: DesiredImage,
    /// Opaque; a new value requests another pull.
    pull_token: String,
}

/// What was observed of an image when it was last pulled.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ObservedImage)]
pub struct Observed {
    /// The full reference, or the id of an image to be removed.
    reference: String,
    /// The image (`sha256:…`) that the reference meant.
    image_id: Option<String>,
    /// Its repository digest (`name@sha256:…`).
    digest: Option<String>,
    /// The pull token of that pull.
    pull_token: Option<String>,
    /// When it was pulled.
    pulled_at: Option<Timestamp>,
}

pub(super) async fn read(at: &mut Reading<'_>) -> Result<Sections<Desired, Observed>> {
    let Some(row) = image::get(at.connection, &at.row.uid).await? else {
        return Ok(Sections::none());
    };
    let observed = Observed {
        reference: row.reference.clone(),
        image_id: row.facts.image_id,
        digest: row.facts.digest,
        pull_token: row.facts.pull_token,
        pulled_at: row.facts.pulled_at,
    };
    let desired = Desired {
        image: row.reference,
        desired: row.desired,
        pull_token: row.pull_token,
    };
    Ok(Sections::known(Some(desired), Some(observed)))
}
