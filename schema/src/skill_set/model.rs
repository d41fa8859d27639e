//! Rows of skill sets.

use sqlx::FromRow;

use crate::ids::{Generation, SkillName, Timestamp, Uid, UserName};
use crate::skill::{TreeDigest, TreeStamp};

/// What every pass needs of a user's skill set.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct SkillSetRow {
    /// Identity of the user.
    pub uid: Uid,
    /// Name of the user.
    pub name: UserName,
    /// Generation of the skill set.
    pub generation: Generation,
    /// Its removal was asked for.
    pub deleted_at: Option<Timestamp>,
    /// Generation of the active adapter, which says whose the files are.
    pub adapter_generation: i64,
}

/// A skill that a user gets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, FromRow)]
pub struct DesiredSkill {
    /// Its name.
    pub name: SkillName,
    /// The files in effect.
    pub digest: TreeDigest,
    /// How many they are.
    pub file_count: i64,
    /// Bytes of all.
    pub size: i64,
}

/// What the reconciler has put into a user's workspace, and is about to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, FromRow)]
pub struct Deployment {
    /// The skill's name.
    pub name: SkillName,
    /// What lies there; `None` before the first time.
    pub digest: Option<TreeDigest>,
    /// By which it is recognised without reading it.
    pub stamp: Option<TreeStamp>,
    /// What is about to take its place.
    pub next: Option<TreeDigest>,
    /// How many files the larger of the two has.
    pub file_count: i64,
    /// Bytes of the larger of the two.
    pub size: i64,
}
