//! The archive.

use schema::archive;
use schema::config::keys;
use serde::Serialize;
use utoipa::ToSchema;

pub(super) use schema::archive::ArchiveFacts as Observed;

use super::{Reading, Sections};
use crate::error::ApiError;

/// What is desired of the archive.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DesiredArchive)]
pub struct Desired {
    /// Seconds for which archives are kept; null = forever.
    #[schema(required = true)]
    retention_seconds: Option<u64>,
}

pub(super) async fn read(at: &mut Reading<'_>) -> Result<Sections<Desired, Observed>, ApiError> {
    let retention = at.config.get(&keys::archive::RETENTION);
    let desired = Desired {
        retention_seconds: retention.map(|kept| kept.as_secs()),
    };
    let observed = archive::facts(at.connection).await?;
    Ok(Sections::known(Some(desired), Some(observed)))
}
