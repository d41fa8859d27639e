//! Rows of accounts.

use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use sqlx::FromRow;

use crate::column::Flag;
use crate::container::Desired;
use crate::home::ArchiveBatch;
use crate::ids::{Generation, Timestamp, Uid, UserName};
use crate::object::StatusRow;
use crate::usage::Verdict;

/// What an account may do.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Role {
    /// Has a container and a workspace.
    User,
    /// Administers; has neither.
    Superadmin,
}

/// Where an account comes from.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
    strum::IntoStaticStr,
    utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[schema(as = AccountSource)]
pub enum Source {
    /// Created by an administrator; the password is here.
    Local,
    /// Synchronised from a directory server.
    Ldap,
    /// Signed in through an identity provider.
    Oidc,
}

/// An account.
#[derive(Debug, Clone, FromRow)]
pub struct User {
    /// Identity.
    pub uid: Uid,
    /// Name as written at creation.
    pub name: UserName,
    /// What it may do.
    pub role: Role,
    /// Where it comes from.
    pub source: Source,
    /// PHC string; `None` for accounts whose password is elsewhere.
    #[sqlx(try_from = "PasswordHash")]
    pub password_hash: Option<SecretString>,
    /// May not sign in; its container is stopped.
    #[sqlx(try_from = "Flag")]
    pub disabled: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last signed in.
    pub last_login_at: Option<Timestamp>,
    /// Version of its MCP token (see [`crate::secrets::MasterKey::mcp_token`]).
    pub mcp_token_version: i64,
    /// When its removal was asked for (ordinary users only).
    pub deleted_at: Option<Timestamp>,
}

/// The column of a password.
#[derive(sqlx::Type)]
#[sqlx(transparent, no_pg_array)]
pub(super) struct PasswordHash(Option<String>);

impl From<PasswordHash> for Option<SecretString> {
    fn from(hash: PasswordHash) -> Self {
        hash.0.map(SecretString::from)
    }
}

/// An ordinary user to create, with its container.
#[derive(Debug)]
pub struct NewUser {
    /// Identity.
    pub uid: Uid,
    /// Name.
    pub name: UserName,
    /// Where it comes from.
    pub source: Source,
    /// PHC string of its password.
    pub password_hash: Option<SecretString>,
    /// Image reference, fixed from now on.
    pub image_ref: String,
    /// Whether its container is to run.
    pub desired: Desired,
}

/// Objects that belong to a user besides the container: conditions as stored, NULL if all is well, and whether the newest change was not
/// observed yet.
#[derive(Debug, Clone, Default, FromRow)]
pub struct UserParts {
    /// The user's own.
    pub(super) user_part: Option<String>,
    #[sqlx(try_from = "Flag")]
    pub(super) user_part_behind: bool,
    /// The configuration's.
    pub(super) agent_config_part: Option<String>,
    #[sqlx(try_from = "Flag")]
    pub(super) agent_config_part_behind: bool,
    /// The skills'.
    pub(super) skill_set_part: Option<String>,
    #[sqlx(try_from = "Flag")]
    pub(super) skill_set_part_behind: bool,
}

/// A user with its container, as the administrators' listing shows it.
#[derive(Debug, Clone, FromRow)]
pub struct UserListing {
    /// Identity.
    pub uid: Uid,
    /// Name.
    pub name: String,
    /// Where it comes from.
    pub source: String,
    /// May not sign in.
    #[sqlx(try_from = "Flag")]
    pub disabled: bool,
    /// An administrator has decided that, whatever the directory says.
    #[sqlx(try_from = "Flag")]
    pub disabled_here: bool,
    /// Time of that, if it is known.
    pub disabled_at: Option<Timestamp>,
    /// Author of it.
    pub disabled_by: Option<String>,
    /// Since when the directory does not have the user.
    pub missing_since: Option<Timestamp>,
    /// Time at which the container was stopped, if it was and that is known.
    pub stopped_at: Option<Timestamp>,
    /// Author of the stop.
    pub stopped_by: Option<String>,
    /// Conditions of the other objects of the user.
    #[sqlx(flatten)]
    pub parts: UserParts,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last signed in.
    pub last_login_at: Option<Timestamp>,
    /// Being removed since.
    pub deleted_at: Option<Timestamp>,
    /// Whether the container is to run; `None` once the container is gone.
    pub desired: Option<Desired>,
    /// It runs the adapter's debug command.
    #[sqlx(try_from = "Flag")]
    pub debug: bool,
    /// Image reference of the container.
    pub image_ref: String,
    /// Generation of the container.
    pub generation: Generation,
    /// What is known of the container.
    #[sqlx(flatten)]
    pub status: StatusRow,
    /// The image that the container is pinned to.
    pub image_id: Option<String>,
    /// Reference of the image that the present container has; `None` without one.
    pub observed_image: Option<String>,
    /// Its id.
    pub observed_image_id: Option<String>,
    /// Address of the container in the agent network.
    pub ip: Option<String>,
    /// Bytes that the user's directory takes, as last measured.
    pub used_bytes: Option<i64>,
    /// Everything in it was counted.
    #[sqlx(try_from = "Flag")]
    pub used_complete: bool,
}

/// Everything the user reconciler needs from the database about one user.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct UserRow {
    /// Identity.
    pub uid: Uid,
    /// Name, and name of the directory.
    pub name: UserName,
    /// The name before a rename, which the directory still has.
    pub previous_name: Option<UserName>,
    /// No container has that name any more.
    #[sqlx(try_from = "Flag")]
    pub previous_released: bool,
    /// Generation of the user object.
    pub generation: Generation,
    /// Its removal was asked for.
    pub deleted_at: Option<Timestamp>,
    /// The batch of the archive that its directory goes to; `None`: the archive itself.
    pub archive_batch: Option<ArchiveBatch>,
    /// Whether the reconciler has noted that it must clean up.
    #[sqlx(try_from = "Flag")]
    pub has_finalizer: bool,
    /// Generation of the active adapter at the time of reading.
    pub adapter_generation: i64,
    /// Use that its directory makes of the quota.
    #[sqlx(flatten)]
    pub quota: Verdict,
}
