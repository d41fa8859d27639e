//! Rows of groups.

use sqlx::FromRow;

use crate::ids::{PlainName, Timestamp, Uid, UserName};
use crate::user::Source;

/// A group.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Group {
    /// Identity.
    pub uid: Uid,
    /// Its name, unique without regard to case.
    pub name: PlainName,
    /// The group that it is in.
    pub parent_uid: Option<Uid>,
    /// Where it comes from.
    pub source: Source,
    /// What it is for.
    pub description: String,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A group to create.
#[derive(Debug, Clone)]
pub struct NewGroup {
    /// Its name.
    pub name: PlainName,
    /// The group that it is to be in.
    pub parent_uid: Option<Uid>,
    /// Where it comes from.
    pub source: Source,
    /// What it is for.
    pub description: String,
}

/// A group in a list.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct GroupListing {
    /// The group itself.
    #[sqlx(flatten)]
    pub group: Group,
    /// The name of the group that it is in.
    pub parent: Option<PlainName>,
    /// How many users are its direct members.
    pub member_count: i64,
    /// How many skills are bound to it itself.
    pub skill_count: i64,
}

/// A member of a group, or of one below it.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct Member {
    /// The user.
    pub username: UserName,
    /// The group that the user is in itself.
    pub via: PlainName,
}
