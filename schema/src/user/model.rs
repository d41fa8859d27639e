//! Rows of accounts.

use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use sqlx::FromRow;

use crate::container::{ContainerFacts, Desired};
use crate::error::DbError;
use crate::ids::{Generation, Timestamp, Uid, UserName};
use crate::object::StatusRow;

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
#[derive(Debug, Clone)]
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
    pub password_hash: Option<SecretString>,
    /// May not sign in; its container is stopped.
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

#[derive(FromRow)]
pub(super) struct RawUser {
    pub uid: String,
    pub name: String,
    pub role: String,
    pub source: String,
    pub password_hash: Option<String>,
    pub disabled: i64,
    pub created_at: i64,
    pub last_login_at: Option<i64>,
    pub mcp_token_version: i64,
    pub deleted_at: Option<i64>,
}

impl TryFrom<RawUser> for User {
    type Error = DbError;

    fn try_from(raw: RawUser) -> Result<Self, DbError> {
        Ok(Self {
            uid: Uid::from(raw.uid),
            name: raw.name.parse()?,
            role: raw
                .role
                .parse()
                .map_err(|_| DbError::Corrupt(format!("role {:?}", raw.role)))?,
            source: raw
                .source
                .parse()
                .map_err(|_| DbError::Corrupt(format!("source {:?}", raw.source)))?,
            password_hash: raw.password_hash.map(SecretString::from),
            disabled: raw.disabled != 0,
            created_at: Timestamp::from_millis(raw.created_at),
            last_login_at: raw.last_login_at.map(Timestamp::from_millis),
            mcp_token_version: raw.mcp_token_version,
            deleted_at: raw.deleted_at.map(Timestamp::from_millis),
        })
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

/// A user with its container, as the administrators' listing shows it.
#[derive(Debug, Clone)]
pub struct UserListing {
    /// Identity.
    pub uid: Uid,
    /// Name.
    pub name: String,
    /// Where it comes from.
    pub source: String,
    /// May not sign in.
    pub disabled: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last signed in.
    pub last_login_at: Option<Timestamp>,
    /// Being removed since.
    pub deleted_at: Option<Timestamp>,
    /// Whether the container is to run; `None` once the container is gone.
    pub desired: Option<Desired>,
    /// Image reference of the container.
    pub image_ref: String,
    /// Generation of the container.
    pub generation: Generation,
    /// What is known of the container.
    pub status: StatusRow,
    /// What the container reconciler remembers.
    pub facts: ContainerFacts,
}

#[derive(FromRow)]
pub(super) struct RawListing {
    pub uid: String,
    pub name: String,
    pub source: String,
    pub disabled: i64,
    pub created_at: i64,
    pub last_login_at: Option<i64>,
    pub deleted_at: Option<i64>,
    pub desired: Option<String>,
    pub image_ref: Option<String>,
    pub generation: Option<i64>,
    pub observed_generation: Option<i64>,
    pub conditions: Option<String>,
    pub failures: Option<i64>,
    pub next_attempt_at: Option<i64>,
    pub image_id: Option<String>,
    pub ip: Option<String>,
}

impl TryFrom<RawListing> for UserListing {
    type Error = DbError;

    fn try_from(raw: RawListing) -> Result<Self, DbError> {
        Ok(Self {
            uid: Uid::from(raw.uid),
            name: raw.name,
            source: raw.source,
            disabled: raw.disabled != 0,
            created_at: Timestamp::from_millis(raw.created_at),
            last_login_at: raw.last_login_at.map(Timestamp::from_millis),
            deleted_at: raw.deleted_at.map(Timestamp::from_millis),
            desired: raw.desired.as_deref().map(Desired::read).transpose()?,
            image_ref: raw.image_ref.unwrap_or_default(),
            generation: Generation(raw.generation.unwrap_or(0)),
            status: StatusRow::from_columns(
                raw.observed_generation,
                raw.conditions.as_deref(),
                raw.failures,
                raw.next_attempt_at,
            )?,
            facts: ContainerFacts {
                image_id: raw.image_id,
                ip: raw.ip,
                ..ContainerFacts::default()
            },
        })
    }
}

/// Everything the user reconciler needs from the database about one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRow {
    /// Identity.
    pub uid: Uid,
    /// Name, and name of the directory.
    pub name: UserName,
    /// Generation of the user object.
    pub generation: Generation,
    /// Its removal was asked for.
    pub deleted_at: Option<Timestamp>,
    /// Whether the reconciler has noted that it must clean up.
    pub has_finalizer: bool,
    /// Generation of the active adapter at the time of reading.
    pub adapter_generation: i64,
}

#[derive(FromRow)]
pub(super) struct RawUserRow {
    pub uid: String,
    pub name: String,
    pub generation: i64,
    pub deleted_at: Option<i64>,
    pub finalizer: Option<String>,
    pub adapter_generation: i64,
}

impl TryFrom<RawUserRow> for UserRow {
    type Error = DbError;

    fn try_from(raw: RawUserRow) -> Result<Self, DbError> {
        Ok(Self {
            uid: Uid::from(raw.uid),
            name: raw.name.parse()?,
            generation: Generation(raw.generation),
            deleted_at: raw.deleted_at.map(Timestamp::from_millis),
            has_finalizer: raw.finalizer.is_some(),
            adapter_generation: raw.adapter_generation,
        })
    }
}
