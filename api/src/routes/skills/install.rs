//! `POST /api/admin/skills/install`: a skill of a repository comes into the store.

use schema::ids::{PlainName, SkillName};
use schema::skill::{Origin, SkillRow};
use schema::skill_repository::{self, OfferedSkill, RepositoryRow};
use schema::skill_store::{ImportError, SkillStoreError};
use serde::Deserialize;
use utoipa::ToSchema;

use super::repos::{NO_REPOSITORY, installed};
use super::upload::{self, Added, Adding, INVALID, OTHER_ORIGIN, REMOVED};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::Input;
use crate::route::{Area, Failure, Route, Tokens};
use crate::routes::params::given;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("skills_install", "/api/admin/skills/install", install)
            .tokens(Tokens::Admin)
            .title(Area::Skills, "Install a skill from a repository")
            .about(
                "`skill` is the directory or the name of a skill in the repository; it may be \
                 left out where there is only one. It is installed under `name`, else under its \
                 own. Installing again updates the skill to the commit that was pulled last. A \
                 bound skill of this name from elsewhere is replaced only with `force`.",
            )
            .waits_for_task()
            .guarded()
            .fails(&[
                NO_REPOSITORY,
                INVALID,
                REMOVED,
                OTHER_ORIGIN,
                Failure(409, "not_pulled", "the repository was not pulled yet"),
                Failure(
                    422,
                    "ambiguous_skill",
                    "the repository has several skills; name one",
                ),
            ]),
    ]
}

/// A skill to install.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = SkillInstallation)]
pub struct Form {
    /// The repository.
    repo: PlainName,
    /// Directory of the skill in the repository (`.`: the top), or its name.
    #[schema(example = "pdf")]
    skill: Option<String>,
    /// Name that it gets [default: the one under which it is installed from there, else its own, else its directory's].
    #[schema(value_type = Option<SkillName>)]
    name: Option<String>,
    /// Also when a bound skill of this name comes from elsewhere.
    #[serde(default)]
    force: bool,
    /// Report who would be affected, without changing anything.
    #[serde(default)]
    dry_run: bool,
}

/// `POST /api/admin/skills/install`.
///
/// # Errors
/// 404 without such a repository or skill, 409 `not_pulled`, 422 for a skill that cannot be installed.
async fn install(
    Superadmin(actor): Superadmin,
    input: Input<Form>,
    deps: Deps,
) -> Result<Answer<Added>> {
    let Input {
        params,
        if_generation,
        wait,
        meta,
        ..
    } = input;
    let mut snapshot = deps.db.snapshot().await?;
    let repository = skill_repository::find(&mut snapshot, &params.repo).await?;
    let repository = repository.filter(|row| row.deleted_at.is_none());
    let repository = repository
        .ok_or_else(|| ApiError::not_found(format!("skill repository {}", params.repo)))?;
    let not_pulled = || {
        let message = "the repository was not pulled yet; wait for its pull, or see why it failed";
        ApiError::conflict("not_pulled", message)
    };
    let commit = repository.facts.commit_id.clone().ok_or_else(not_pulled)?;
    let skill = chosen(&repository, given(&params.skill))?;
    if let Some(problem) = skill.problem.clone().filter(|_| skill.absent) {
        return Err(ApiError::unprocessable("invalid_skill", problem));
    }
    let installed = installed(&mut snapshot, &repository).await?;
    drop(snapshot);
    let mut warnings = skill.warnings.clone();
    let name = name_of(skill, given(&params.name), &installed, &mut warnings)?;
    let path = skill.path.clone();
    let origin = Origin {
        repository: Some(repository.name.to_string()),
        path: Some(path.clone()),
        commit_id: Some(commit.clone()),
    };
    let checkouts = std::sync::Arc::clone(&deps.checkouts);
    let uid = repository.uid.clone();
    let mut imported = upload::import(&deps, move |store| {
        let failed = |source| {
            ImportError::Store(SkillStoreError::Io {
                action: "reading",
                path: path.clone().into(),
                source,
            })
        };
        let files = checkouts
            .open_skill(&uid, &commit, &path)
            .map_err(|error| failed(std::io::Error::other(error)))?;
        match files {
            Some(files) => store.import_dir(&files, &name),
            None => Err(failed(std::io::ErrorKind::NotFound.into())),
        }
    })
    .await?;
    imported.warnings.extend(warnings);
    let adding = Adding {
        actor: &actor,
        imported,
        origin,
        force: params.force,
        dry_run: params.dry_run,
    };
    upload::add(&deps, &meta, adding, if_generation, wait).await
}

/// The skill that was named: by its directory, `.` being the top, else by its name.
fn chosen<'a>(repository: &'a RepositoryRow, named: Option<&str>) -> Result<&'a OfferedSkill> {
    /// Most directories that a refusal names.
    const NAMED: usize = 10;
    let offered = repository.facts.skills.as_deref().unwrap_or_default();
    let found: Vec<&OfferedSkill> = match named {
        None => offered.iter().collect(),
        Some(named) => {
            let path = named.trim_start_matches("./").trim_end_matches('/');
            let path = if path == "." { "" } else { path };
            let called = |skill: &&OfferedSkill| {
                let name = skill.name.as_ref().map(SkillName::as_str);
                name == Some(named)
            };
            match offered.iter().find(|skill| skill.path == path) {
                Some(skill) => vec![skill],
                None => offered.iter().filter(called).collect(),
            }
        }
    };
    match found.as_slice() {
        [] => {
            let what = named.unwrap_or("any");
            let what = format!("skill {what} in repository {}", repository.name);
            Err(ApiError::not_found(what))
        }
        [skill] => Ok(skill),
        several => {
            let shown = |skill: &&OfferedSkill| match skill.path.as_str() {
                "" => ".".to_owned(),
                path => path.to_owned(),
            };
            let mut paths: Vec<String> = several.iter().take(NAMED).map(shown).collect();
            if let Some(more @ 1..) = several.len().checked_sub(NAMED) {
                paths.push(format!("and {more} more"));
            }
            let what = match named {
                Some(named) => format!("{} skills called {named}", several.len()),
                None => format!("{} skills", several.len()),
            };
            let message = format!(
                "repository {} has {what}; name one by its directory: {}",
                repository.name,
                paths.join(", ")
            );
            Err(ApiError::unprocessable("ambiguous_skill", message))
        }
    }
}

/// The name that a skill gets: the one given, else the one under which it is installed from there, else its own.
fn name_of(
    skill: &OfferedSkill,
    given: Option<&str>,
    installed: &[SkillRow],
    warnings: &mut Vec<String>,
) -> Result<SkillName> {
    if let Some(name) = given {
        return name
            .parse::<SkillName>()
            .map_err(|rule| ApiError::invalid("name", rule.to_string()));
    }
    let here: Vec<&SkillName> = installed
        .iter()
        .filter(|it| skill.is_source_of(it))
        .map(|it| &it.name)
        .collect();
    if let Some(own) = &skill.name
        && (here.is_empty() || here.contains(&own))
    {
        return Ok(own.clone());
    }
    match here.as_slice() {
        [] => {
            let problem = skill.problem.clone();
            let none = || "it has no name that a skill can have; give one (`name`)".to_owned();
            let problem = problem.unwrap_or_else(none);
            Err(ApiError::unprocessable("invalid_skill", problem))
        }
        [name] => {
            warnings.push(format!(
                "it is installed from there as {name}, and was updated under that name; give another (`name`) to install \
                 it once more"
            ));
            Ok((*name).clone())
        }
        several => {
            let names: Vec<&str> = several.iter().map(|name| name.as_str()).collect();
            let message = format!(
                "it is installed from there as {}; give the name to update (`name`)",
                names.join(", ")
            );
            Err(ApiError::unprocessable("ambiguous_skill", message))
        }
    }
}
