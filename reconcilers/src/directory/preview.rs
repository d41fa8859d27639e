//! What a synchronisation would do, for somebody who asks before it is done.

use schema::directory::SyncScope;
use schema::error::DbError;

use super::diff::{self, Diff};
use super::{Asked, DirectoryStore, SyncError, limits, settings};
use crate::shared::Shared;

/// Asks the directory, and changes nothing.
///
/// # Errors
/// When a setting is missing, or the database or the directory fails.
pub async fn preview(
    store: &dyn DirectoryStore,
    shared: &Shared,
    scope: SyncScope,
) -> Result<Diff, SyncError> {
    let config = shared.config.newest().await?;
    let settings = settings::of(&config)?;
    let at = shared.clock.now();
    let listing = shared.directory.list(&settings).await?.into();
    let asked = Asked { listing, at, scope };
    let known = store.known().await?;
    let now = shared.clock.now();
    let limits = limits(&config);
    let confirmed = store.directory_row().await?;
    let confirmed = confirmed
        .map(|row| row.facts.confirmed_names)
        .unwrap_or_default();
    let diff = move || diff::diff(&asked, &known, &confirmed, limits, now);
    let diff = tokio::task::spawn_blocking(diff).await;
    let interrupted = DbError::WrongState("the comparison was interrupted");
    Ok(diff.map_err(|_| interrupted)?)
}
