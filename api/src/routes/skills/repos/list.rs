//! Repositories, and what one offers.

use std::collections::HashMap;

use schema::ids::{Generation, Kind, PlainName, SkillName, Timestamp};
use schema::reader::Connection;
use schema::skill::{self, SkillRow};
use schema::skill_repository::{
    self, GitRef, OfferedSkill, Provider, RefType, RepositoryListing, RepositoryRow, RepositoryUrl,
};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{parsed, present};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::Result;
use crate::explain::{Explained, explained_owned};
use crate::input::Input;
use crate::routes::page::{Page, cut};
use crate::routes::params::given;

/// A credential, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RepositoryCredential)]
pub struct ShownCredential {
    /// Its name.
    name: String,
    /// Who runs the server.
    provider: Provider,
    /// The user name; empty: the provider's default.
    username: String,
    /// It has a secret, which is never shown.
    secret_set: bool,
}

/// A repository.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Repository)]
pub struct Repository {
    /// Its name.
    name: PlainName,
    /// Where it is.
    url: RepositoryUrl,
    /// The branch or tag.
    #[serde(rename = "ref")]
    reference: GitRef,
    /// Which of both.
    ref_type: RefType,
    /// It is read without credentials.
    public: bool,
    /// Its credentials, without their secrets.
    credentials: Vec<ShownCredential>,
    /// When it was pulled last.
    last_pull: Option<Timestamp>,
    /// The commit that was pulled last.
    commit: Option<String>,
    /// How many skills it has.
    #[schema(example = 1)]
    skill_count: usize,
    /// Entries that were left out of it, and skills that cannot be installed; a sentence each.
    warnings: Vec<String>,
    /// How often it was changed.
    generation: Generation,
    /// Its conditions, each with its remedy.
    conditions: Vec<Explained>,
}

/// A repository as it is shown.
pub(in crate::routes::skills) fn shown(
    deps: &Deps,
    listing: RepositoryListing,
) -> Result<Repository> {
    let credentials = skill_repository::listed_credentials(&deps.master_key, &listing)?;
    let RepositoryListing { row, status, .. } = listing;
    let credentials = credentials.into_iter().map(|credential| ShownCredential {
        secret_set: !credential.secret.expose_secret().is_empty(),
        name: credential.name,
        provider: credential.provider,
        username: credential.username,
    });
    let object = format!("{}/{}", Kind::SkillRepository, row.name);
    Ok(Repository {
        credentials: credentials.collect(),
        name: row.name,
        url: row.url,
        reference: row.reference,
        ref_type: row.ref_type,
        public: row.public,
        last_pull: row.facts.pulled_at,
        commit: row.facts.commit_id,
        skill_count: usize::try_from(row.facts.skill_count).unwrap_or(0),
        warnings: row.facts.warnings,
        generation: row.generation,
        conditions: explained_owned(&object, status.conditions),
    })
}

/// Which repository.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = WhichRepositoryOrAll)]
pub struct WhichOrAll {
    /// Its name; without it, all.
    #[schema(value_type = Option<PlainName>)]
    name: Option<String>,
}

/// A skill in a repository.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OfferedSkill)]
pub struct Offered {
    /// Its name; null when it has none that a skill can have.
    #[schema(required = true)]
    name: Option<SkillName>,
    /// Its directory; empty for the top.
    #[schema(example = "skills/pdf")]
    path: String,
    /// What it is for.
    description: String,
    /// It is installed from here.
    installed: bool,
    /// The repository has other files than what is installed; where skills are inside another, another commit.
    update_available: bool,
    /// Why it cannot be installed as it is.
    #[schema(required = true)]
    problem: Option<String>,
    /// Entries of its directory in the repository that an installation does not have; a sentence each.
    warnings: Vec<String>,
}

/// Repositories, or the skills of one.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Repositories)]
pub struct Listing {
    /// All repositories; without `name` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    repos: Option<Vec<Repository>>,
    /// The skills of the one named.
    #[serde(skip_serializing_if = "Option::is_none")]
    skills: Option<Vec<Offered>>,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/skills/repos/list`.
///
/// # Errors
/// 404 without such a repository.
pub(super) async fn list(
    _: Superadmin,
    input: Input<WhichOrAll>,
    deps: Deps,
) -> Result<Answer<Listing>> {
    let paging = input.paging.as_ref();
    let mut snapshot = deps.db.snapshot().await?;
    let Some(name) = given(&input.params.name) else {
        let (rows, _) = skill_repository::list(&mut snapshot, "", i64::MAX, 0).await?;
        let (rows, page) = cut(rows, paging, |listing: &RepositoryListing, text| {
            listing.row.name.key().contains(text)
        });
        drop(snapshot);
        let repos = rows.into_iter().map(|listing| shown(&deps, listing));
        let listing = Listing {
            repos: Some(repos.collect::<Result<_>>()?),
            skills: None,
            page,
        };
        return Ok(Answer::ok("repositories", listing));
    };
    let name = parsed("name", name)?;
    let row = present(&mut snapshot, &name).await?;
    let skills = installed(&mut snapshot, &row).await?;
    drop(snapshot);
    let commit = row.facts.commit_id.as_deref();
    let mut by_path: HashMap<&str, Vec<&SkillRow>> = HashMap::new();
    for skill in &skills {
        let path = skill.version.origin.path.as_deref().unwrap_or_default();
        by_path.entry(path).or_default().push(skill);
    }
    let offered = row.facts.skills.iter().flatten().collect();
    let (offered, page) = cut(offered, paging, |skill: &&OfferedSkill, text| {
        let name = skill.name.as_ref().map(SkillName::key).unwrap_or_default();
        name.contains(text) || skill.path.to_lowercase().contains(text)
    });
    let shown = offered.into_iter().map(|skill| {
        let here = by_path.get(skill.path.as_str()).into_iter().flatten();
        let mut versions = here
            .filter(|it| skill.is_source_of(it))
            .map(|it| &it.version);
        Offered {
            name: skill.name.clone(),
            path: skill.path.clone(),
            description: skill.description.clone(),
            installed: versions.clone().next().is_some(),
            update_available: versions.any(|version| skill.updates(version, commit)),
            problem: skill.problem.clone(),
            warnings: skill.warnings.clone(),
        }
    });
    let skills = shown.collect();
    let listing = Listing {
        repos: None,
        skills: Some(skills),
        page,
    };
    Ok(Answer::ok("skills in the repository", listing))
}

/// What is installed from a repository.
pub(in crate::routes::skills) async fn installed(
    connection: &mut Connection,
    row: &RepositoryRow,
) -> Result<Vec<SkillRow>> {
    let mut skills = skill::all(connection).await?;
    skills.retain(|skill| {
        let repository = skill.version.origin.repository.as_deref();
        skill.deleted_at.is_none() && repository == Some(row.name.as_str())
    });
    Ok(skills)
}
