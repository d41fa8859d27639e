//! `POST /api/admin/skills/install`: a skill of a repository comes into the store.

use schema::ids::{PlainName, SkillName};
use schema::skill::Origin;
use schema::skill_repository::{self, OfferedSkill, RepositoryRow};
use schema::skill_store::{ImportError, SkillStoreError};
use serde::Deserialize;
use utoipa::ToSchema;

use super::repos::NO_REPOSITORY;
use super::upload::{self, Added, Adding, INVALID, REMOVED};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::Input;
use crate::route::{Area, Failure, Route};
use crate::routes::params::given;

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("skills_install", "/api/admin/skills/install", install)
            .title(Area::Skills, "Install a skill from a repository")
            .about(
                "`skill` is the name or the directory of a skill in the repository; it may be \
                 left out where there is only one. It is installed under `name`, else under its \
                 own. Installing again updates the skill to the \
                 commit that was pulled last.",
            )
            .waits_for_task()
            .guarded()
            .fails(&[
                NO_REPOSITORY,
                INVALID,
                REMOVED,
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
    /// Name or directory of the skill in the repository.
    #[schema(example = "pdf")]
    skill: Option<String>,
    /// Name that it gets [default: its own, else its directory's].
    #[schema(value_type = Option<SkillName>)]
    name: Option<String>,
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
    let repository = skill_repository::find(&mut *deps.db.read().await?, &params.repo).await?;
    let repository = repository.filter(|row| row.deleted_at.is_none());
    let repository = repository
        .ok_or_else(|| ApiError::not_found(format!("skill repository {}", params.repo)))?;
    let not_pulled = || {
        let message = "the repository was not pulled yet; wait for its pull, or see why it failed";
        ApiError::conflict("not_pulled", message)
    };
    let commit = repository.facts.commit_id.clone().ok_or_else(not_pulled)?;
    let (path, own) = chosen(&repository, given(&params.skill))?;
    let name = match given(&params.name) {
        Some(name) => name
            .parse::<SkillName>()
            .map_err(|rule| ApiError::invalid("name", rule.to_string()))?,
        None => own?,
    };
    let origin = Origin {
        repository: Some(repository.name.to_string()),
        path: Some(path.clone()),
        commit_id: Some(commit.clone()),
    };
    let checkouts = std::sync::Arc::clone(&deps.checkouts);
    let uid = repository.uid.clone();
    let imported = upload::import(&deps, move |store| {
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
    let adding = Adding {
        actor: &actor,
        imported,
        origin,
        dry_run: params.dry_run,
    };
    upload::add(&deps, &meta, adding, if_generation, wait).await
}

/// Directory of the skill that was named, and the name that it gives itself.
fn chosen(repository: &RepositoryRow, named: Option<&str>) -> Result<(String, Result<SkillName>)> {
    let offered = &repository.facts.skills;
    let is_named = |skill: &&OfferedSkill| match named {
        None => true,
        Some(named) => {
            let name = skill.name.as_ref().map(SkillName::as_str);
            skill.path == named || name == Some(named)
        }
    };
    let found: Vec<&OfferedSkill> = offered.iter().filter(is_named).collect();
    let skill = match found.as_slice() {
        [] => {
            let what = named.unwrap_or("any");
            let what = format!("skill {what} in repository {}", repository.name);
            return Err(ApiError::not_found(what));
        }
        [skill] => skill,
        _ => {
            let message = "the repository has several skills; name one by its directory";
            return Err(ApiError::unprocessable("ambiguous_skill", message));
        }
    };
    let unusable = || {
        let problem = skill.problem.clone();
        let problem = problem.unwrap_or_else(|| "it has no name that a skill can have".to_owned());
        ApiError::unprocessable("invalid_skill", problem)
    };
    Ok((skill.path.clone(), skill.name.clone().ok_or_else(unusable)))
}
