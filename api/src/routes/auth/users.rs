//! Users of the directory.

use std::collections::BTreeSet;

use schema::directory::{self, Skipped};
use schema::group;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::REMOTE;
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::Result;
use crate::input::Input;
use crate::ports::{DirectoryListing, DirectoryUser};
use crate::route::{Area, Route, Tokens};
use crate::routes::page::{Page, cut};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("auth_ldap_users", "/api/admin/auth/ldap-users", list)
            .tokens(Tokens::Read)
            .title(Area::Authentication, "List users of the directory")
            .about("Asks the directory now, or reads the local copy with `source=snapshot`.")
            .ldap_only()
            .paged()
            .fails(&[REMOTE]),
    ]
}

/// Where to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = DirectoryUsersSource)]
pub enum From {
    /// The directory itself.
    #[default]
    #[serde(alias = "directory")]
    Live,
    /// What the last synchronisation, or sign-in, has left here.
    Snapshot,
}

/// Which users.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = DirectoryUsersQuery)]
pub struct Query {
    /// `live` (default) or `snapshot`.
    #[serde(default)]
    source: From,
}

/// Users of the directory.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DirectoryUsers)]
pub struct Listing {
    users: Vec<DirectoryUser>,
    /// Their names alone.
    #[schema(example = json!(["alice"]))]
    usernames: Vec<String>,
    /// The first 100 entries that the directory has and that are left out, and why; empty with `source=snapshot`.
    skipped_entries: Vec<Skipped>,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/auth/ldap-users`.
///
/// # Errors
/// 403 outside ldap mode; 502 when the directory fails.
async fn list(_: Superadmin, input: Input<Query>, deps: Deps) -> Result<Answer<Listing>> {
    let DirectoryListing { mut users, skipped } = match input.params.source {
        From::Live => deps.directory.users().await?,
        From::Snapshot => DirectoryListing {
            users: snapshot(&deps).await?,
            skipped: Vec::new(),
        },
    };
    users.sort_by_cached_key(|user| user.username.to_lowercase());
    let matches =
        |user: &DirectoryUser, wanted: &str| user.username.to_lowercase().contains(wanted);
    let (users, page) = cut(users, input.paging.as_ref(), matches);
    let listing = Listing {
        usernames: users.iter().map(|user| user.username.clone()).collect(),
        users,
        skipped_entries: skipped,
        page,
    };
    Ok(Answer::ok("users of the directory", listing))
}

async fn snapshot(deps: &Deps) -> Result<Vec<DirectoryUser>> {
    let mut snapshot = deps.db.snapshot().await?;
    let known = directory::known(&mut snapshot).await?;
    let mut groups = group::names_of_users(&mut snapshot).await?;
    let subjects = directory::subjects(&mut snapshot).await?;
    let present = known
        .into_iter()
        .filter(|user| !user.leaving && user.missing_since.is_none());
    let users = present.map(|user| DirectoryUser {
        username: user.name.to_string(),
        dn: subjects.get(&user.uid).cloned(),
        groups: {
            let names = groups.remove(&user.uid).unwrap_or_default();
            let names: BTreeSet<String> = names.iter().map(ToString::to_string).collect();
            names.into_iter().collect()
        },
    });
    Ok(users.collect())
}
