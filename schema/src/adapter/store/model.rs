//! Rows of the adapter tables.

use serde::Serialize;
use sqlx::FromRow;
use strum::{EnumString, IntoStaticStr};
use utoipa::ToSchema;

use crate::error::DbError;
use crate::ids::Timestamp;

/// Where a package came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, EnumString, IntoStaticStr, ToSchema)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub active: bool,
    /// It was in effect before.
    pub previous: bool,
}

/// What the adapter reconciler remembers of the source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    /// When it was asked last with an answer.
    pub checked_at: Option<Timestamp>,
    /// The request that was answered last.
    pub refresh_token: String,
}

#[derive(FromRow)]
pub(super) struct RawState {
    generation: i64,
    active: Option<String>,
    previous: Option<String>,
    activated_at: Option<i64>,
    refresh_token: String,
}

impl From<RawState> for AdapterState {
    fn from(raw: RawState) -> Self {
        Self {
            generation: raw.generation,
            active: raw.active,
            previous: raw.previous,
            activated_at: raw.activated_at.map(Timestamp::from_millis),
            refresh_token: raw.refresh_token,
        }
    }
}

#[derive(FromRow)]
pub(super) struct RawKnown {
    digest: String,
    version: String,
    source: String,
    added_at: i64,
    active: i64,
    previous: i64,
}

impl TryFrom<RawKnown> for KnownAdapter {
    type Error = DbError;

    fn try_from(raw: RawKnown) -> Result<Self, DbError> {
        let source = raw.source.parse();
        Ok(Self {
            source: source
                .map_err(|_| DbError::Corrupt(format!("adapter source {:?}", raw.source)))?,
            digest: raw.digest,
            version: raw.version,
            added_at: Timestamp::from_millis(raw.added_at),
            active: raw.active != 0,
            previous: raw.previous != 0,
        })
    }
}

#[derive(FromRow)]
pub(super) struct RawFacts {
    source_url: String,
    etag: Option<String>,
    last_modified: Option<String>,
    seen_generation: Option<i64>,
    offered: Option<String>,
    invalid: Option<String>,
    checked_at: Option<i64>,
    refresh_token: String,
}

impl From<RawFacts> for AdapterFacts {
    fn from(raw: RawFacts) -> Self {
        Self {
            source_url: raw.source_url,
            etag: raw.etag,
            last_modified: raw.last_modified,
            seen_generation: raw.seen_generation,
            offered: raw.offered,
            invalid: raw.invalid,
            checked_at: raw.checked_at.map(Timestamp::from_millis),
            refresh_token: raw.refresh_token,
        }
    }
}
