//! `GET /api/admin/archives`: directories of deleted users. What is in them is for the command line, on the server's machine.

use std::time::Duration;

use schema::config::{Config, keys, query};
use schema::home::{Archive, archive_handles};
use schema::ids::{Timestamp, UserName};
use serde::Serialize;
use utoipa::ToSchema;

use super::page::{Page, cut};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::Result;
use crate::input::{Input, Nothing};
use crate::route::{Area, Route, Tokens};

#[cfg(test)]
mod tests;

/// The route of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("archives", "/api/admin/archives", list)
.tokens(Tokens::Read)
            .title(Area::Operators, "List archives of deleted users")
            .about(
                "Newest first, always one page. `search` matches names of users. `agentyard archive` shows, restores \
                 and deletes what is in them.",
            )
            .paged(),
    ]
}

/// State of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ArchiveState {
    /// It is complete.
    Archived,
    /// It is being removed: a part of it may be gone.
    Removing,
}

/// An archived directory of a deleted user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ArchiveItem)]
struct Item {
    /// Name of the archive, as `agentyard archive` takes it.
    #[schema(example = "alice@2026-05-11T11:46:40Z")]
    name: String,
    /// The user whose it was.
    username: UserName,
    /// Time at which the user was deleted.
    archived_at: Timestamp,
    /// Bytes that the directory took on the disk, as last measured before it was archived; null if it was not measured, and for archives
    /// of earlier releases.
    #[schema(required = true)]
    size: Option<u64>,
    /// After this time it is removed (`archive.retention`); null if it is kept until it is deleted.
    #[schema(required = true)]
    expires_at: Option<Timestamp>,
    /// State.
    state: ArchiveState,
    #[serde(skip)]
    archive: Archive,
}

impl Item {
    fn new(archive: Archive, name: String, retention: Option<Duration>) -> Self {
        Self {
            name,
            username: archive.user.clone(),
            archived_at: archive.archived_at,
            size: None,
            expires_at: retention.map(|kept| archive.archived_at.plus(kept)),
            state: match archive.removing {
                true => ArchiveState::Removing,
                false => ArchiveState::Archived,
            },
            archive,
        }
    }
}

/// Archives of deleted users.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Archives)]
pub struct Listing {
    /// Newest first.
    items: Vec<Item>,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/archives`: newest first. Always one page; only the directories of the archive itself are read.
///
/// # Errors
/// When the archive cannot be listed; 503 `busy`.
async fn list(_: Superadmin, input: Input<Nothing>, deps: Deps) -> Result<Answer<Listing>> {
    let mut connection = deps.db.read().await?;
    let (values, _) = query::load(&mut connection, &deps.master_key).await?;
    drop(connection);
    let retention = Config::from_stored(values).get(&keys::archive::RETENTION);
    let archives = deps.files.list_archives().await?;
    let named = archive_handles(&archives).into_iter().zip(archives).rev();
    let items = named.map(|(name, archive)| Item::new(archive, name, retention));
    let paging = input.paging.unwrap_or_default();
    let (mut items, page) = cut(items.collect(), Some(&paging), |item: &Item, text| {
        item.username.as_str().to_lowercase().contains(text)
    });
    let shown = items.iter().map(|item| item.archive.clone()).collect();
    let sizes = deps.files.read_archive_sizes(shown).await?;
    for (item, size) in items.iter_mut().zip(sizes) {
        item.size = size;
    }
    Ok(Answer::ok(
        "archives, newest first",
        Listing { items, page },
    ))
}
