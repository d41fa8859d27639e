//! Rows of the adapter tables.

use serde::Serialize;
use sqlx::FromRow;
use strum::{Display, EnumString, IntoStaticStr};
use utoipa::ToSchema;

use crate::column::Flag;
use crate::ids::Timestamp;

/// Where a package came from.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Display, EnumString, IntoStaticStr, ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(as = AdapterSource)]
pub enum Source {
    /// The service was started with it.
    Base,
    /// An administrator uploaded it.
    Upload,
    /// It was fetched from the configured source.
    Refresh,
}

impl Source {
    /// The stored form.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Which package is in effect, and what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct AdapterState {
    /// How often that changed.
    pub generation: i64,
    /// Digest of the package in effect; `None` before the first start.
    pub active: Option<String>,
    /// Digest of the package that was before.
    pub previous: Option<String>,
    /// Since when.
    pub activated_at: Option<Timestamp>,
    /// The newest request to ask the source; empty when there was none.
    pub refresh_token: String,
}

/// A package that is known.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct KnownAdapter {
    /// Its digest.
    pub digest: String,
    /// What it says of itself.
    pub version: String,
    /// Where it came from.
    pub source: Source,
    /// When.
    pub added_at: Timestamp,
    /// It is active.
    #[sqlx(try_from = "Flag")]
    pub active: bool,
    /// It was in effect before.
    #[sqlx(try_from = "Flag")]
    pub previous: bool,
}

/// What the adapter reconciler remembers of the source.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromRow)]
pub struct AdapterFacts {
    /// Where it is.
    pub source_url: String,
    /// The tag of what it gave last.
    pub etag: Option<String>,
    /// The date of what it gave last.
    pub last_modified: Option<String>,
    /// Generation of the active adapter at that time.
    pub seen_generation: Option<i64>,
    /// The version that it gave last.
    pub offered: Option<String>,
    /// What is wrong with what it gave last; `None` when that was a valid package.
    pub invalid: Option<String>,
    /// What would change with that version, when it is newer and waits for its activation.
    pub update_changes: Option<String>,
    /// When it was asked last with an answer.
    pub checked_at: Option<Timestamp>,
    /// The request that was answered last.
    pub refresh_token: String,
}
