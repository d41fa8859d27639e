//! Rows of skills.

use serde::Serialize;
use sqlx::FromRow;

use crate::column::{Flag, JsonList};
use crate::ids::{Generation, PlainName, SkillName, Timestamp, Uid};
use crate::object::StatusRow;
pub use crate::skill_store::{TreeDigest, TreeStamp};

/// A skill with the version in effect.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct SkillRow {
    /// Identity.
    pub uid: Uid,
    /// Its name, unique without regard to case.
    pub name: SkillName,
    /// Generation of the object.
    pub generation: Generation,
    /// Its removal was asked for.
    pub deleted_at: Option<Timestamp>,
    /// The version in effect.
    #[sqlx(flatten)]
    pub version: SkillVersion,
}

/// One version of a skill.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct SkillVersion {
    /// Its number, which counts from 1.
    pub number: i64,
    /// Its files.
    pub digest: TreeDigest,
    /// What `SKILL.md` says it is for.
    pub description: String,
    /// The version that `SKILL.md` names.
    pub version: String,
    /// The licence that `SKILL.md` names.
    pub license: String,
    /// Whether it has a `SKILL.md`.
    #[sqlx(try_from = "Flag")]
    pub has_manifest: bool,
    /// How many files it has.
    pub file_count: i64,
    /// Bytes of all files.
    pub size: i64,
    /// Where it comes from.
    #[sqlx(flatten)]
    pub origin: Origin,
    /// Entries that were left out of it or read otherwise than they are written, a sentence each.
    #[sqlx(try_from = "JsonList<String>")]
    pub warnings: Vec<String>,
    /// When it was added.
    pub created_at: Timestamp,
}

/// Where a version comes from; nothing of one that was uploaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromRow, Serialize)]
pub struct Origin {
    /// The repository that it was installed from.
    pub repository: Option<String>,
    /// Its directory in there; empty for the top.
    pub path: Option<String>,
    /// The commit.
    pub commit_id: Option<String>,
}

impl Origin {
    /// The word for people: `upload`, or the repository.
    pub fn source(&self) -> &str {
        self.repository.as_deref().unwrap_or("upload")
    }

    /// Returns true if both are the same place, at any commit.
    pub fn is_same_place(&self, other: &Self) -> bool {
        (&self.repository, &self.path) == (&other.repository, &other.path)
    }

    /// The place, for people.
    pub fn describe(&self) -> String {
        let path = self.path.as_deref().unwrap_or_default();
        match (&self.repository, path) {
            (None, _) => "an upload".to_owned(),
            (Some(repository), "") => format!("repository {repository}"),
            (Some(repository), path) => format!("directory {path} of repository {repository}"),
        }
    }
}

/// A version to add.
#[derive(Debug, Clone)]
pub struct NewVersion {
    /// Its files, which are in the store.
    pub digest: TreeDigest,
    /// What `SKILL.md` says it is for.
    pub description: String,
    /// The version that `SKILL.md` names.
    pub version: String,
    /// The licence that `SKILL.md` names.
    pub license: String,
    /// Whether it has a `SKILL.md`.
    pub has_manifest: bool,
    /// How many files it has.
    pub file_count: i64,
    /// Bytes of all files.
    pub size: i64,
    /// Where it comes from.
    pub origin: Origin,
    /// Entries that were left out of it or read otherwise than they are written, a sentence each.
    pub warnings: Vec<String>,
}

/// What became of a version that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The skill.
    pub uid: Uid,
    /// Its generation.
    pub generation: Generation,
    /// The number of the version in effect.
    pub number: i64,
    /// Whether it is another one than before.
    pub changed: bool,
}

/// A skill in a list.
#[derive(Debug, Clone, FromRow)]
pub struct SkillListing {
    /// The skill itself.
    #[sqlx(flatten)]
    pub row: SkillRow,
    /// How many users get it.
    pub user_count: i64,
    /// What is known of it.
    #[sqlx(flatten)]
    pub status: StatusRow,
}

/// Why a user gets a skill.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, FromRow)]
pub struct Binding {
    /// The skill.
    pub skill: SkillName,
    /// The digest in effect.
    pub digest: TreeDigest,
    /// The version that its `SKILL.md` names; empty when it names none.
    pub version: String,
    /// Purpose of the skill.
    pub description: String,
    /// How many files that has.
    pub file_count: i64,
    /// How many bytes.
    pub size: i64,
    /// The group that it is bound to; with neither group nor `own`, it is bound to everybody.
    pub bound_group: Option<PlainName>,
    /// The group that the user is in itself, if that is below the bound one or it.
    pub via: Option<PlainName>,
    /// It is bound to this user.
    #[sqlx(try_from = "Flag")]
    pub own: bool,
}
