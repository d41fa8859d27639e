//! `GET /api/admin/skills`: what there is.

use schema::ids::{Generation, Kind, PlainName, SkillName, Timestamp};
use schema::object;
use schema::skill::{self, SkillListing, SkillVersion, TreeDigest};
use schema::skill_repository;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::repos::{self, Repository};
use super::{NO_SKILL, present};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::Result;
use crate::explain::{Explained, explained_owned};
use crate::input::{Input, Nothing};
use crate::route::{Area, Route, Tokens};
use crate::routes::images::{minute, size_text};
use crate::routes::page::{Page, read_page, search};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("skills_list", "/api/admin/skills", list)
            .tokens(Tokens::Read)
            .title(Area::Skills, "List skills and repositories")
            .about("All skills, or one page; `repos` are all repositories.")
            .paged(),
        Route::get("skills_versions", "/api/admin/skills/versions", versions)
            .tokens(Tokens::Read)
            .title(Area::Skills, "List the versions of a skill")
            .about("The newest first; the last 10 are kept.")
            .fails(&[NO_SKILL]),
    ]
}

/// A skill, in a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Skill)]
pub struct Item {
    /// Its name.
    name: SkillName,
    /// What it is for.
    description: String,
    /// The version that its `SKILL.md` names; empty when it names none.
    version: String,
    /// The licence that it names.
    license: String,
    /// Its files: a SHA-256 over paths, modes and contents.
    digest: TreeDigest,
    /// The number of the version in effect.
    #[schema(example = 1)]
    number: i64,
    /// `upload`, or the repository that it was installed from.
    #[schema(example = "upload")]
    source: String,
    /// How many files it has.
    #[schema(example = 1)]
    file_count: i64,
    /// Bytes of all files.
    #[schema(example = 120)]
    size: i64,
    /// The same for people.
    #[schema(example = "120 B")]
    size_str: String,
    /// When the version in effect was added, to the minute.
    #[schema(example = "2026-05-11 11:46")]
    mod_time: String,
    /// The same moment.
    modified_at: Timestamp,
    /// Groups that it is bound to themselves.
    bound_groups: Vec<PlainName>,
    /// How many users get it.
    #[schema(example = 1)]
    user_count: i64,
    /// Everybody gets it.
    bound_to_everyone: bool,
    /// How often it was changed.
    generation: Generation,
    /// The generation that was last observed.
    observed_generation: Generation,
    /// Its conditions, each with its remedy.
    conditions: Vec<Explained>,
}

impl Item {
    fn new(listing: SkillListing, bound_groups: Vec<PlainName>, bound_to_everyone: bool) -> Self {
        let SkillListing {
            row,
            user_count,
            status,
        } = listing;
        let version = row.version;
        let object = format!("{}/{}", Kind::Skill, row.name);
        Self {
            name: row.name,
            source: version.origin.source().to_owned(),
            description: version.description,
            version: version.version,
            license: version.license,
            digest: version.digest,
            number: version.number,
            file_count: version.file_count,
            size: version.size,
            size_str: size_text(u64::try_from(version.size).unwrap_or(0)),
            mod_time: minute(version.created_at),
            modified_at: version.created_at,
            bound_groups,
            user_count,
            bound_to_everyone,
            generation: row.generation,
            observed_generation: status.observed_generation,
            conditions: explained_owned(&object, status.conditions),
        }
    }
}

/// Skills and repositories.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Skills)]
pub struct Listing {
    skills: Vec<Item>,
    repos: Vec<Repository>,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/skills`.
///
/// # Errors
/// Only when the database fails.
async fn list(_: Superadmin, input: Input<Nothing>, deps: Deps) -> Result<Answer<Listing>> {
    let paging = input.paging.as_ref();
    let mut snapshot = deps.db.snapshot().await?;
    let (mut rows, page) = read_page!(paging, window => {
        skill::list(&mut snapshot, search(paging), window.limit, window.offset)
    });
    if object::is_kind_paused(&mut snapshot, Kind::Skill).await? {
        rows.iter_mut().for_each(|row| row.status.pause());
    }
    let mut groups = skill::bound_groups(&mut snapshot).await?;
    let defaults = skill::defaults(&mut snapshot).await?;
    let (repositories, _) = skill_repository::list(&mut snapshot, "", i64::MAX, 0).await?;
    drop(snapshot);
    let repos = repositories.into_iter();
    let repos = repos.map(|repository| repos::shown(&deps, repository));
    let repos = repos.collect::<Result<_>>()?;
    let skills = rows.into_iter().map(|listing| {
        let uid = &listing.row.uid;
        let bound = groups.remove(uid).unwrap_or_default();
        let everyone = defaults.iter().any(|(default, _)| default == uid);
        Item::new(listing, bound, everyone)
    });
    let skills = skills.collect();
    Ok(Answer::ok(
        "skills and repositories",
        Listing {
            skills,
            repos,
            page,
        },
    ))
}

/// Which skill.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = WhichSkill)]
pub struct Which {
    /// Its name.
    name: SkillName,
}

/// A version of a skill.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SkillVersion)]
pub struct Version {
    /// Its number, which counts from 1.
    #[schema(example = 1)]
    number: i64,
    /// Its files.
    digest: TreeDigest,
    /// The version that its `SKILL.md` names.
    version: String,
    /// What it is for.
    description: String,
    /// `upload`, or the repository that it was installed from.
    #[schema(example = "upload")]
    source: String,
    /// Its directory in the repository.
    path: Option<String>,
    /// The commit.
    commit: Option<String>,
    /// How many files it has.
    #[schema(example = 1)]
    file_count: i64,
    /// Bytes of all files.
    #[schema(example = 120)]
    size: i64,
    /// When it was added.
    created_at: Timestamp,
    /// It is in effect.
    active: bool,
}

impl Version {
    fn new(version: SkillVersion, active: i64) -> Self {
        Self {
            number: version.number,
            digest: version.digest,
            version: version.version,
            description: version.description,
            source: version.origin.source().to_owned(),
            path: version.origin.path,
            commit: version.origin.commit_id,
            file_count: version.file_count,
            size: version.size,
            created_at: version.created_at,
            active: version.number == active,
        }
    }
}

/// The versions of a skill.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SkillVersions)]
pub struct Versions {
    /// The newest first.
    versions: Vec<Version>,
}

/// `GET /api/admin/skills/versions`.
///
/// # Errors
/// 404 without such a skill.
async fn versions(_: Superadmin, input: Input<Which>, deps: Deps) -> Result<Answer<Versions>> {
    let mut snapshot = deps.db.snapshot().await?;
    let row = present(&mut snapshot, &input.params.name).await?;
    let versions = skill::versions(&mut snapshot, &row.uid).await?.into_iter();
    let versions = versions
        .map(|version| Version::new(version, row.version.number))
        .collect();
    Ok(Answer::ok("versions, newest first", Versions { versions }))
}
