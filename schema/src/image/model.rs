//! Rows of images.

use serde::Serialize;
use sqlx::FromRow;
use strum::{EnumString, IntoStaticStr};
use utoipa::ToSchema;

use crate::container::Desired;
use crate::error::DbError;
use crate::ids::{Generation, Timestamp, Uid};

/// The desired state of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, EnumString, IntoStaticStr, ToSchema)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum DesiredImage {
    /// It is to be on the engine; another pull token asks for the registry's newest once more.
    Present,
    /// It is to be absent. Its object is being deleted.
    Absent,
    /// The pull was cancelled; the engine keeps what it has. Its object is being deleted.
    Cancelled,
}

/// Everything the image reconciler needs from the database about one image.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageRow {
    /// Identity.
    pub uid: Uid,
    /// Full reference (`docker.io/library/busybox:latest`), or an id (`sha256:…`) that is to be absent.
    pub reference: String,
    /// What is desired of it.
    pub desired: DesiredImage,
    /// A new token means: pull it again, once.
    pub pull_token: String,
    /// Generation of the object.
    pub generation: Generation,
    /// Its removal was asked for.
    pub deleted_at: Option<Timestamp>,
    /// What the reconciler remembers.
    pub facts: ImageFacts,
}

/// What the image reconciler remembers between passes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImageFacts {
    /// The image (`sha256:…`) that the reference meant when it was last pulled.
    pub image_id: Option<String>,
    /// Its repository digest (`name@sha256:…`).
    pub digest: Option<String>,
    /// The pull token that was answered.
    pub pull_token: Option<String>,
    /// When.
    pub pulled_at: Option<Timestamp>,
}

#[derive(FromRow)]
pub(super) struct RawImage {
    pub uid: String,
    pub reference: String,
    pub desired: String,
    pub pull_token: String,
    pub generation: i64,
    pub deleted_at: Option<i64>,
    pub image_id: Option<String>,
    pub digest: Option<String>,
    pub done_token: Option<String>,
    pub pulled_at: Option<i64>,
}

impl TryFrom<RawImage> for ImageRow {
    type Error = DbError;

    fn try_from(raw: RawImage) -> Result<Self, DbError> {
        Ok(Self {
            uid: Uid::from(raw.uid),
            desired: raw
                .desired
                .parse()
                .map_err(|_| DbError::Corrupt(format!("desired image {:?}", raw.desired)))?,
            reference: raw.reference,
            pull_token: raw.pull_token,
            generation: Generation(raw.generation),
            deleted_at: raw.deleted_at.map(Timestamp::from_millis),
            facts: ImageFacts {
                image_id: raw.image_id,
                digest: raw.digest,
                pull_token: raw.done_token,
                pulled_at: raw.pulled_at.map(Timestamp::from_millis),
            },
        })
    }
}

/// A user's image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageUse {
    /// The user.
    pub uid: Uid,
    /// The user's name.
    pub name: String,
    /// Whether its container is to run; a disabled account's does not, whatever is desired.
    pub desired: Desired,
    /// The reference.
    pub image_ref: String,
    /// What it was resolved to; `None` until its container is made for the first time.
    pub image_id: Option<String>,
}

#[derive(FromRow)]
pub(super) struct RawUse {
    pub uid: String,
    pub name: String,
    pub desired: String,
    pub image_ref: String,
    pub image_id: Option<String>,
}

impl TryFrom<RawUse> for ImageUse {
    type Error = DbError;

    fn try_from(raw: RawUse) -> Result<Self, DbError> {
        Ok(Self {
            uid: Uid::from(raw.uid),
            name: raw.name,
            desired: Desired::read(&raw.desired)?,
            image_ref: raw.image_ref,
            image_id: raw.image_id,
        })
    }
}
