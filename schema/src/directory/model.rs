//! What a directory says of users, and what became of it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sqlx::FromRow;

use crate::column::Flag;
use crate::ids::{PlainName, Timestamp, Uid, UserName};

/// Somebody whom a directory or an identity provider knows, under a name that is one here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The name.
    pub name: UserName,
    /// What identifies whoever it is there: the DN, or issuer and subject.
    pub subject: String,
    /// What identifies the entry whatever its name and place are, as `<attribute>:<value>`; `None`: that is not known.
    pub identity: Option<String>,
    /// The groups, nested ones resolved; `None`: that is not known, and stays as it is.
    pub groups: Option<BTreeSet<PlainName>>,
}

/// Reports that two identities are of different entries. Those by different attributes say nothing about each other.
pub fn are_different(one: &str, other: &str) -> bool {
    let attribute = |identity: &str| identity.split_once(':').map(|it| it.0.to_owned());
    one != other && attribute(one).is_some() && attribute(one) == attribute(other)
}

impl Listed {
    /// Tells whether anything of this has changed, except the identity.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        let groups = self
            .groups
            .iter()
            .flatten()
            .map(|group| group.as_str().to_owned());
        for part in [self.name.as_str().to_owned(), self.subject.clone()]
            .into_iter()
            .chain(groups)
        {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hex::encode(hash.finalize())
    }
}

/// An ordinary user, and what the source last said.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct KnownUser {
    /// Identity.
    pub uid: Uid,
    /// Name.
    pub name: UserName,
    /// Identifier of the user in the source, such as a DN; empty when there is none.
    pub subject: String,
    /// What identifies the user's entry whatever its name is; empty when that is not known.
    pub identity: String,
    /// The name before a rename that is still under way.
    pub previous_name: Option<UserName>,
    /// Digest of what was said; empty when nothing was.
    pub digest: String,
    /// Since when a complete list has not named the user.
    pub missing_since: Option<Timestamp>,
    /// The account is being removed.
    #[sqlx(try_from = "Flag")]
    pub leaving: bool,
    /// When the user was created, or last signed in.
    pub seen_at: Timestamp,
}

/// What is to become of one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserChange {
    /// A new one.
    Add(Listed),
    /// What the source says has changed, or the user is back.
    Update {
        /// Who.
        uid: Uid,
        /// What it says.
        listed: Listed,
        /// The user was missing.
        back: bool,
    },
    /// The user's entry has another name.
    Rename {
        /// Who.
        uid: Uid,
        /// The name until now.
        from: UserName,
        /// What the source says, with the new name.
        listed: Listed,
        /// The user was missing.
        back: bool,
    },
    /// What identifies the user's entry is known from now on, or no longer asked for; nothing else has changed.
    Identify {
        /// Who.
        uid: Uid,
        /// The name, for people.
        name: UserName,
        /// Identifier of the user in the source, such as a DN.
        subject: String,
        /// What identifies the entry; `None`: it is forgotten.
        identity: Option<String>,
    },
    /// The source no longer knows the user: no sign-in, and no container.
    Disable {
        /// Who.
        uid: Uid,
        /// The name, for people.
        name: UserName,
    },
    /// So long that the account goes.
    Remove {
        /// Since when the user is missing; `None`: since just now.
        since: Option<Timestamp>,
        /// Who.
        uid: Uid,
        /// The name, for people.
        name: UserName,
    },
}

/// What a synchronisation is to bring up to date.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SyncScope {
    /// Users, groups and who is in which.
    #[default]
    Users,
    /// Groups, and who of the users that there are is in which: nobody comes or goes.
    Groups,
}

/// The newest request for a synchronisation.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Request {
    /// Names the request; empty before the first one.
    pub token: String,
    /// What is asked for.
    pub scope: SyncScope,
    /// The digest of the plan that may remove more than `ldap.max_removal_percent`; empty: none may.
    pub confirm: String,
}

/// How many of what a synchronisation changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SyncCounts {
    /// Users in the directory whose names are valid here.
    pub users: u64,
    /// Groups in the directory.
    pub groups: u64,
    /// Users created.
    pub added: u64,
    /// Users whose entry or groups have changed.
    pub changed: u64,
    /// Users renamed, because their entries have other names.
    #[serde(default)]
    #[schema(required = true)]
    pub renamed: u64,
    /// Users whose entries are recognised by `ldap.id_attribute` from now on; nothing else of them changes.
    #[serde(default)]
    #[schema(required = true)]
    pub identified: u64,
    /// Users who are missing from the directory from now on: they cannot sign in, and their containers are stopped.
    pub disabled: u64,
    /// Users deleted because they have been missing for `ldap.removal_grace`.
    pub removed: u64,
    /// Groups created.
    pub groups_added: u64,
    /// Groups deleted.
    pub groups_removed: u64,
    /// Entries that are not imported.
    pub skipped: u64,
}

impl SyncCounts {
    /// Whether everything stays as it is.
    pub fn is_nothing(&self) -> bool {
        let Self {
            added,
            changed,
            renamed,
            identified,
            disabled,
            removed,
            groups_added,
            groups_removed,
            ..
        } = self;
        [
            added,
            changed,
            renamed,
            identified,
            disabled,
            removed,
            groups_added,
            groups_removed,
        ]
        .iter()
        .all(|count| **count == 0)
    }
}

/// An entry that is not imported, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Skipped {
    /// Its name in the directory.
    pub name: String,
    /// Reason for not importing it, and the remedy.
    pub reason: String,
}

/// The outcome of a synchronisation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SyncResult {
    /// How many of what.
    #[serde(flatten)]
    pub counts: SyncCounts,
    /// The first 100 entries that are not imported.
    #[serde(default)]
    pub skipped_entries: Vec<Skipped>,
}

impl SyncResult {
    /// How many entries that are not imported are named.
    pub const NAMED: usize = 100;
}

/// A removal that waits until somebody confirms it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = HeldRemoval)]
pub struct Held {
    /// Names it: what a confirmation repeats.
    pub digest: String,
    /// What would go.
    pub what: String,
}

/// What the directory reconciler remembers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = ObservedDirectory)]
pub struct DirectoryFacts {
    /// The newest request that was answered.
    #[serde(default)]
    pub answered: String,
    /// When that, or the last synchronisation that has changed something, was done.
    #[serde(default)]
    #[schema(required = true)]
    pub synced_at: Option<Timestamp>,
    /// A removal that it has not done.
    #[serde(default)]
    #[schema(required = true)]
    pub held: Option<Held>,
    /// Names whose removal is confirmed, such as `user alice`, until they are removed or listed again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[schema(required = false)]
    pub confirmed_names: BTreeSet<String>,
    /// What it did.
    #[serde(default)]
    pub result: SyncResult,
}

/// A group that the service knows.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct KnownGroup {
    /// Identity.
    pub uid: Uid,
    /// Name.
    pub name: PlainName,
    /// Skills are bound to it, or other groups are in it.
    #[sqlx(try_from = "Flag")]
    pub in_use: bool,
    /// Users are in it who are not missing.
    #[sqlx(try_from = "Flag")]
    pub has_members: bool,
}
