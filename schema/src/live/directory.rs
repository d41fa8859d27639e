//! What a directory answers to somebody who waits for it.

use std::collections::BTreeSet;

use serde::Serialize;
use utoipa::ToSchema;

use crate::directory::{Skipped, SyncResult};

/// Somebody whom a directory has let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryPerson {
    /// The user name, as the directory writes it.
    pub name: String,
    /// The distinguished name.
    pub dn: String,
    /// What identifies the entry whatever its name is; `None`: that is not known.
    pub identity: Option<String>,
    /// The names of the groups; `None`: they are not known.
    pub groups: Option<BTreeSet<String>>,
}

/// A user of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DirectoryUser {
    /// The user name.
    #[schema(example = "alice")]
    pub username: String,
    /// The distinguished name; null in the local copy of a user who has never been synchronised.
    #[schema(required = true, example = "uid=alice,ou=people,dc=example,dc=org")]
    pub dn: Option<String>,
    /// The names of the groups, those of groups in groups included.
    pub groups: Vec<String>,
}

/// All users of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DirectoryListing {
    /// Those whose names are known.
    pub users: Vec<DirectoryUser>,
    /// Entries that are left out, and why.
    pub skipped: Vec<Skipped>,
}

/// What came of a check of the directory's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct DirectoryCheck {
    /// The steps that were tried, in order.
    pub steps: Vec<CheckStep>,
    /// How many users were found.
    pub user_count: usize,
    /// The first 100 of them.
    pub users: Vec<String>,
    /// The first 100 groups.
    pub groups: Vec<CheckedGroup>,
    /// Why groups could not be read.
    #[schema(required = true)]
    pub group_error: Option<String>,
}

/// A step of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct CheckStep {
    /// Of a directory: `bind`, `user_search`, `group_query`; of an identity provider: `discovery`, `redirect`, `client`; of both `whitelist`, where it is enabled.
    #[schema(example = "bind")]
    pub name: &'static str,
    /// It worked.
    pub ok: bool,
    /// What was found, or what is wrong and what to do.
    #[schema(example = "found 12 users")]
    pub detail: String,
    /// How long it took, in milliseconds.
    pub ms: u64,
}

/// A group of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = DirectoryCheckGroup)]
pub struct CheckedGroup {
    /// Its name.
    pub name: String,
    /// The first five of its members.
    pub members: Vec<String>,
    /// How many it has.
    pub member_count: usize,
    /// The groups that are directly in it.
    pub sub_groups: Vec<String>,
}

/// What a synchronisation would do; of each list the first 1,000 names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct SyncPlan {
    /// How many of what.
    #[serde(flatten)]
    pub result: SyncResult,
    /// Users to create.
    pub add: Vec<String>,
    /// Users to bring up to date.
    pub change: Vec<String>,
    /// Users to rename, because their entries have other names.
    pub rename: Vec<SyncRename>,
    /// Users to disable, because they are missing.
    pub disable: Vec<String>,
    /// Users to delete, because they have been missing for long.
    pub remove: Vec<String>,
    /// Groups to create.
    pub add_groups: Vec<String>,
    /// Groups to delete.
    pub remove_groups: Vec<String>,
    /// Set when so much would go that it has to be confirmed: what, and the digest to confirm it with.
    #[schema(required = true)]
    pub mass_removal: Option<crate::directory::Held>,
}

/// A user who gets another name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SyncRename {
    /// The name until now.
    #[schema(example = "alice")]
    pub from: String,
    /// The name in the directory.
    #[schema(example = "alice.jones")]
    pub to: String,
}

impl SyncPlan {
    /// Most names in a list.
    pub const NAMED: usize = 1000;
}
