//! Rows of repositories.

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sqlx::FromRow;

use super::{GitRef, Provider, RefType, RepositoryUrl};
use crate::column::{Flag, JsonList};
use crate::condition::Reason;
use crate::ids::{Generation, PlainName, SkillName, Timestamp, Uid};
use crate::object::StatusRow;
use crate::skill::{SkillRow, SkillVersion, TreeDigest};

/// A repository, without its credentials.
#[derive(Debug, Clone, PartialEq, FromRow)]
pub struct RepositoryRow {
    /// Identity.
    pub uid: Uid,
    /// Its name, unique without regard to case.
    pub name: PlainName,
    /// Generation of the object.
    pub generation: Generation,
    /// Its removal was asked for.
    pub deleted_at: Option<Timestamp>,
    /// Where it is.
    pub url: RepositoryUrl,
    /// The branch or tag.
    #[sqlx(rename = "ref")]
    pub reference: GitRef,
    /// Which of both.
    pub ref_type: RefType,
    /// It is read without credentials.
    #[sqlx(try_from = "Flag")]
    pub public: bool,
    /// The newest request for a pull.
    pub pull_token: String,
    /// That request was taken back.
    #[sqlx(try_from = "Flag")]
    pub cancelled: bool,
    /// The newest request to forget the host's keys.
    pub host_key_token: String,
    /// What the reconciler remembers.
    #[sqlx(flatten)]
    pub facts: RepositoryFacts,
}

impl RepositoryRow {
    /// The host's keys, as far as nobody has asked to forget them.
    pub fn trusted_hosts(&self) -> Option<&str> {
        let known = self.facts.known_hosts.as_deref();
        known.filter(|_| self.facts.host_key_token == self.host_key_token)
    }
}

/// The rules by which skills are listed now. What was listed by others is listed anew at the next pull, also when the commit is
/// the same.
pub const LISTING: i64 = 1;

/// What the skill-repository reconciler remembers.
#[derive(Debug, Clone, Default, PartialEq, FromRow)]
pub struct RepositoryFacts {
    /// The request that was answered last.
    #[sqlx(rename = "done_token")]
    pub pull_token: Option<String>,
    /// The commit that was fetched last.
    pub commit_id: Option<String>,
    /// When.
    pub pulled_at: Option<Timestamp>,
    /// The skills in it. `None`: they were not read; saved so, those of before stay.
    #[sqlx(default, try_from = "JsonList<OfferedSkill>")]
    pub skills: Option<Vec<OfferedSkill>>,
    /// Number of skills in it, as it was read; saving counts `skills`.
    pub skill_count: i64,
    /// Entries that were left out of it, a sentence each.
    #[sqlx(try_from = "JsonList<String>")]
    pub warnings: Vec<String>,
    /// The rules by which the skills were listed: [`LISTING`], or those of an earlier release.
    pub listing: i64,
    /// The keys of its host, as lines of known_hosts.
    pub known_hosts: Option<String>,
    /// The request to forget keys that was obeyed last.
    #[sqlx(rename = "known_token")]
    pub host_key_token: String,
    /// The request that failed last, and will not be tried again.
    pub failed_token: Option<String>,
    /// Why, stable for programs.
    pub failed_reason: Option<Reason>,
    /// Why, as a sentence.
    pub failure: Option<String>,
}

/// A skill in a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedSkill {
    /// Its directory; empty for the top.
    pub path: String,
    /// Its name; `None` when it has none that a skill can have.
    pub name: Option<SkillName>,
    /// What it is for.
    pub description: String,
    /// Why it cannot be installed as it is.
    pub problem: Option<String>,
    /// What it is called by its content. `None` when others are inside it, which keeps each file from being read again for
    /// every directory that it is in, and when it has a problem other than its name. There are directories with a digest that cannot be installed.
    #[serde(default)]
    pub digest: Option<TreeDigest>,
    /// Entries of its directory in the repository that the copy on disk does not have, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Its files are not on disk: it is listed for its problem only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub absent: bool,
}

impl OfferedSkill {
    /// Returns true if a skill was installed from here, under any name.
    pub fn is_source_of(&self, installed: &SkillRow) -> bool {
        let path = installed.version.origin.path.as_deref();
        !self.absent && path.unwrap_or_default() == self.path
    }

    /// Whether it is another than what was installed from here: by its files, or where their digest is not known by the commit.
    pub fn updates(&self, installed: &SkillVersion, commit: Option<&str>) -> bool {
        match &self.digest {
            Some(digest) => *digest != installed.digest,
            None if self.problem.is_some() => false,
            None => installed.origin.commit_id.as_deref() != commit,
        }
    }
}

/// A repository in a list.
#[derive(Debug, Clone, FromRow)]
pub struct RepositoryListing {
    /// The repository itself.
    #[sqlx(flatten)]
    pub row: RepositoryRow,
    /// What is known of it.
    #[sqlx(flatten)]
    pub status: StatusRow,
    /// Its credentials, sealed.
    pub(super) sealed: Option<Vec<u8>>,
}

/// A repository to add or to change.
#[derive(Debug, Clone)]
pub struct NewRepository {
    /// Its name.
    pub name: PlainName,
    /// Where it is.
    pub url: RepositoryUrl,
    /// The branch or tag.
    pub reference: GitRef,
    /// Which of both.
    pub ref_type: RefType,
    /// It is read without credentials.
    pub public: bool,
}

/// What proves that somebody may read a repository; it cannot be printed.
#[derive(Clone)]
pub struct Credential {
    /// Its name, for people.
    pub name: String,
    /// Who runs the server.
    pub provider: Provider,
    /// The user name; the provider's when it is empty.
    pub username: String,
    /// A password or token, or with SSH a private key.
    pub secret: SecretString,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Credential([REDACTED])")
    }
}

/// A credential as it is sealed.
#[derive(Serialize, Deserialize)]
pub(super) struct SealedCredential {
    name: String,
    provider: Provider,
    username: String,
    secret: String,
}

impl From<&Credential> for SealedCredential {
    fn from(credential: &Credential) -> Self {
        Self {
            name: credential.name.clone(),
            provider: credential.provider,
            username: credential.username.clone(),
            secret: credential.secret.expose_secret().to_owned(),
        }
    }
}

impl From<SealedCredential> for Credential {
    fn from(sealed: SealedCredential) -> Self {
        Self {
            name: sealed.name,
            provider: sealed.provider,
            username: sealed.username,
            secret: SecretString::from(sealed.secret),
        }
    }
}
