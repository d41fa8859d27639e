//! The directory that users come from.

use schema::config::{AuthMode, keys};
use schema::directory;
use serde::Serialize;
use utoipa::ToSchema;

pub(super) use schema::directory::DirectoryFacts as Observed;

use super::{Reading, Sections};
use crate::error::ApiError;

/// What is desired of the directory.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DesiredDirectory)]
pub struct Desired {
    /// Where users come from.
    auth_mode: AuthMode,
    /// Seconds between two synchronisations; null = only on request.
    #[schema(required = true)]
    sync_interval_seconds: Option<u64>,
}

pub(super) async fn read(at: &mut Reading<'_>) -> Result<Sections<Desired, Observed>, ApiError> {
    let interval = at.config.get(&keys::ldap::SYNC_INTERVAL);
    let desired = Desired {
        auth_mode: at.config.get(&keys::web::AUTH_MODE),
        sync_interval_seconds: interval.map(|interval| interval.as_secs()),
    };
    let observed = directory::facts(at.connection).await?;
    Ok(Sections::known(Some(desired), Some(observed)))
}
