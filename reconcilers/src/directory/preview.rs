//! What a synchronisation would do, for somebody who asks before it is done.

use schema::directory::SyncScope;
use schema::error::DbError;

use super::diff::{self, Diff};
use super::{DirectoryStore, SyncError, limits, settings};
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
    let listing = shared.directory.list(&settings).await?;
    let known = store.known().await?;
    let now = shared.clock.now();
    let limits = limits(&config);
    let diff =
        tokio::task::spawn_blocking(move || diff::diff(&listing, &known, scope, limits, now));
    Ok(diff
        .await
        .map_err(|_| DbError::WrongState("the comparison was interrupted"))?)
}
