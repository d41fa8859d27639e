//! Rows of images.

use serde::Serialize;
use sqlx::FromRow;
use strum::{Display, EnumString};
use utoipa::ToSchema;

use crate::container::Desired;
use crate::ids::{Generation, Timestamp, Uid};

/// The desired state of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Display, EnumString, ToSchema)]
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
#[derive(Debug, Clone, PartialEq, FromRow)]
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
    #[sqlx(flatten)]
    pub facts: ImageFacts,
}

impl ImageRow {
    /// Whether the newest request was answered by a pull.
    pub fn is_answered(&self) -> bool {
        self.facts.pull_token.as_ref() == Some(&self.pull_token)
    }

    /// Whether the newest request has ended with a failed pull.
    pub fn has_failed(&self) -> bool {
        !self.is_answered() && self.facts.failed_token.as_ref() == Some(&self.pull_token)
    }
}

/// What the image reconciler remembers between passes.
#[derive(Debug, Clone, PartialEq, Default, FromRow)]
pub struct ImageFacts {
    /// The image (`sha256:…`) that the reference meant when it was last pulled.
    pub image_id: Option<String>,
    /// Its repository digest (`name@sha256:…`).
    pub digest: Option<String>,
    /// The pull token that was answered.
    #[sqlx(rename = "done_token")]
    pub pull_token: Option<String>,
    /// When.
    pub pulled_at: Option<Timestamp>,
    /// The pull token whose pull failed: it is not tried again by itself.
    pub failed_token: Option<String>,
    /// Why, in the registry's or engine's words.
    pub failure: Option<String>,
}

/// A user's image.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
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
