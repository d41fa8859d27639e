//! What a synchronisation would do, for somebody who asks before it is done.

use std::collections::HashSet;

use schema::config::{AuthMode, keys};
use schema::directory::SyncScope;
use schema::error::DbError;

use super::diff::{self, Diff};
use super::{Asked, DirectoryStore, SyncError, limits, settings};
use crate::shared::Shared;

/// Plan of a synchronisation.
#[derive(Debug)]
pub struct Preview {
    /// What it would do.
    pub diff: Diff,
    /// Users of another source whom a change of the mode removes first, by the keys of their names; none in ldap mode.
    pub replaced: HashSet<String>,
}

/// Asks the directory, and changes nothing. In another mode it plans as after a change to ldap mode, which removes all users
/// and groups.
///
/// # Errors
/// When a setting is missing, or the database or the directory fails.
pub async fn preview(
    store: &dyn DirectoryStore,
    shared: &Shared,
    scope: SyncScope,
) -> Result<Preview, SyncError> {
    let config = shared.config.newest().await?;
    let settings = settings::of(&config)?;
    let at = shared.clock.now();
    let listing = shared.directory.list(&settings).await?.into();
    let asked = Asked { listing, at, scope };
    let mut known = store.known().await?;
    let mut replaced = HashSet::new();
    if config.get(&keys::web::AUTH_MODE) != AuthMode::Ldap {
        known.groups.clear();
        let users = known.users.drain(..);
        replaced.extend(users.map(|user| user.name.key()));
    }
    let now = shared.clock.now();
    let limits = limits(&config);
    let confirmed = store.directory_row().await?;
    let confirmed = confirmed
        .map(|row| row.facts.confirmed_names)
        .unwrap_or_default();
    let diff = move || diff::diff(&asked, &known, &confirmed, limits, now);
    let diff = tokio::task::spawn_blocking(diff).await;
    let interrupted = DbError::WrongState("the comparison was interrupted");
    let diff = diff.map_err(|_| interrupted)?;
    Ok(Preview { diff, replaced })
}
