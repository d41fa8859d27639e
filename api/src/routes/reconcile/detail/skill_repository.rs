//! A repository: what is desired of it, and what was pulled.

use schema::ids::{SkillName, Timestamp};
use schema::skill_repository::{self, GitRef, RefType, RepositoryUrl};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Reading, Sections};
use crate::error::Result;

/// What is desired of a repository.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DesiredSkillRepository)]
pub struct Desired {
    /// Where it is.
    url: RepositoryUrl,
    /// The branch or tag.
    #[serde(rename = "ref")]
    reference: GitRef,
    /// Which of both.
    ref_type: RefType,
    /// It is read without credentials.
    public: bool,
}

/// What was pulled.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ObservedSkillRepository)]
pub struct Observed {
    /// The commit.
    #[schema(required = true)]
    commit: Option<String>,
    /// When.
    #[schema(required = true)]
    pulled_at: Option<Timestamp>,
    /// The skills in it that can be installed.
    skills: Vec<SkillName>,
    /// Keys of its host are known, and no others are trusted.
    host_keys_known: bool,
}

pub(super) async fn read(at: &mut Reading<'_>) -> Result<Sections<Desired, Observed>> {
    let Some(row) = skill_repository::get_whole(at.connection, &at.row.uid).await? else {
        return Ok(Sections::none());
    };
    let observed = Observed {
        host_keys_known: row.trusted_hosts().is_some(),
        skills: row
            .facts
            .skills
            .into_iter()
            .flatten()
            .filter_map(|skill| skill.name)
            .collect(),
        commit: row.facts.commit_id,
        pulled_at: row.facts.pulled_at,
    };
    let desired = Desired {
        url: row.url,
        reference: row.reference,
        ref_type: row.ref_type,
        public: row.public,
    };
    Ok(Sections::known(Some(desired), Some(observed)))
}
