//! Repositories that skills are installed from.

mod form;
mod list;
mod pull;

use schema::ids::{Generation, Kind, PlainName, Uid};
use schema::object;
use schema::reader::Connection;
use schema::skill_repository::{self, RepositoryRow, RepositoryUrl};
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::Input;
use crate::route::{Area, Failure, Route, Tokens};
use crate::wait::{self, Change, Converging, Until};

use form::{Fields, readable};
use list::list;
pub(super) use list::{Repository, installed, shown};
use pull::pull;

pub(super) const NO_REPOSITORY: Failure = Failure(404, "not_found", "no such repository");
const REMOVED: Failure = Failure(
    409,
    "name_being_removed",
    "the previous repository of this name is still being removed",
);
const SECRET: Failure = Failure(
    422,
    "secret_required",
    "the address has another host, so the credentials have to be sent again",
);

/// The routes of repositories.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("skills_repos_list", "/api/admin/skills/repos/list", list)
            .tokens(Tokens::Read)
            .title(Area::Skills, "List repositories, or the skills of one")
            .about(
                "With `name`, `skills` are those in that repository; without it, `repos` are all \
                 repositories.",
            )
            .paged()
            .fails(&[NO_REPOSITORY]),
        Route::post("skills_repos_add", "/api/admin/skills/repos/add", add)
            .tokens(Tokens::Admin)
            .title(Area::Skills, "Add a repository")
            .about(
                "The repository as JSON in `repo`, or as fields. It is cloned; the answer waits \
                 10 s unless `wait` says otherwise.",
            )
            .waits()
            .fails(&[Failure::TAKEN, REMOVED]),
        Route::post("skills_repos_save", "/api/admin/skills/repos/save", save)
            .tokens(Tokens::Admin)
            .title(Area::Skills, "Change a repository")
            .about(
                "Takes the same fields as add. Credentials that are not sent stay; one without \
                 `secret` keeps its stored secret as long as the host is the same. \
                 `forget_host_key` trusts the key that the host shows next.",
            )
            .waits()
            .guarded()
            .fails(&[NO_REPOSITORY, REMOVED, SECRET]),
        Route::post("skills_repos_pull", "/api/admin/skills/repos/pull", pull)
            .tokens(Tokens::Admin)
            .title(Area::Skills, "Pull a repository")
            .about(
                "`updated` says whether the commit is another one than before. Installed skills \
                 do not change; `update_available` names those for which an update is available.",
            )
            .waits()
            .guarded()
            .fails(&[NO_REPOSITORY]),
        Route::post(
            "skills_repos_cancel",
            "/api/admin/skills/repos/cancel",
            cancel,
        )
        .tokens(Tokens::Admin)
        .title(Area::Skills, "Cancel a pull of a repository")
        .about("What was pulled before stays.")
        .guarded()
        .fails(&[
            NO_REPOSITORY,
            Failure(409, "wrong_state", "no pull is under way"),
        ]),
        Route::post(
            "skills_repos_remove",
            "/api/admin/skills/repos/remove",
            remove,
        )
        .tokens(Tokens::Admin)
        .title(Area::Skills, "Remove a repository")
        .about("Installed skills stay.")
        .waits()
        .guarded()
        .fails(&[NO_REPOSITORY]),
    ]
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(field: &str, text: &str) -> Result<T> {
    text.parse()
        .map_err(|rule| ApiError::invalid(field, format!("{field}: {rule}")))
}

/// The repository of this name, unless it is being removed.
async fn present(connection: &mut Connection, name: &PlainName) -> Result<RepositoryRow> {
    let row = skill_repository::find(connection, name).await?;
    row.filter(|row| row.deleted_at.is_none())
        .ok_or_else(|| ApiError::not_found(format!("skill repository {name}")))
}

/// New for each request; a later one is greater.
fn token() -> String {
    Uuid::now_v7().simple().to_string()
}

/// `POST /api/admin/skills/repos/add`.
///
/// # Errors
/// 400 for a bad field, 409 when the name is taken; what the clone fails with.
async fn add(_: Superadmin, input: Input<Fields>, deps: Deps) -> Result<Answer<Converging>> {
    let fields = input.params.flat()?;
    let name = fields.name()?;
    let new = fields.repository(name.clone(), None)?;
    let credentials = fields.credentials(Vec::new(), true)?;
    readable(&new, &credentials)?;
    let mut tx = input.meta.begin(&deps).await?;
    skill_repository::lock(&mut tx).await?;
    if let Some(row) = skill_repository::find(&mut tx, &name).await?
        && row.deleted_at.is_none()
    {
        let what = format!("skill repository {name}");
        return Err(ApiError::AlreadyExists { what });
    }
    let (key, now) = (&deps.master_key, deps.clock.now());
    let saved = skill_repository::save(&mut tx, key, &new, &credentials, &token(), None, now).await;
    let (uid, generation) = saved.map_err(being_removed)?;
    let change = change(uid, &name, generation);
    tx.commit(change.about().detail(new.url.to_string()))
        .await?;
    wait::answer(
        &deps,
        &change,
        input.wait,
        format!("repository {name} added and cloned"),
    )
    .await
}

fn change(uid: Uid, name: &PlainName, generation: Generation) -> Change {
    Change::new(Kind::SkillRepository, uid, name.as_str(), generation)
}

fn being_removed(error: schema::error::DbError) -> ApiError {
    match error {
        schema::error::DbError::NameBeingRemoved => ApiError::conflict(
            "name_being_removed",
            "the previous repository of this name is still being removed; try again soon",
        ),
        error => error.into(),
    }
}

/// `POST /api/admin/skills/repos/save`.
///
/// # Errors
/// 400 for a bad field, 404 without such a repository, 412 for a stale `if_generation`, 422 `secret_required`.
async fn save(_: Superadmin, input: Input<Fields>, deps: Deps) -> Result<Answer<Converging>> {
    let fields = input.params.flat()?;
    let name = fields.name()?;
    let mut tx = input.meta.begin(&deps).await?;
    skill_repository::lock(&mut tx).await?;
    let before = present(&mut tx, &name).await?;
    // As it was written when it was added: skills say by it where they come from.
    let name = before.name.clone();
    let new = fields.repository(name.clone(), Some(&before))?;
    let stored = skill_repository::credentials(&mut tx, &deps.master_key, &before.uid).await?;
    let host = |url: &RepositoryUrl| (url.scheme(), url.host().to_owned(), url.port_or_default());
    let credentials = fields.credentials(stored, host(&before.url) == host(&new.url))?;
    readable(&new, &credentials)?;
    let (key, now, token) = (&deps.master_key, deps.clock.now(), token());
    let guard = input.if_generation;
    let saved = skill_repository::save(&mut tx, key, &new, &credentials, &token, guard, now).await;
    let (uid, generation) = saved.map_err(being_removed)?;
    if fields.forget_host_key {
        skill_repository::forget_host_key(&mut tx, &uid, &token).await?;
    }
    let change = change(uid, &name, generation);
    tx.commit(change.about().detail(new.url.to_string()))
        .await?;
    wait::answer(
        &deps,
        &change,
        input.wait,
        format!("repository {name} saved and pulled"),
    )
    .await
}

/// Which repository.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = WhichRepository)]
pub struct Which {
    /// Its name.
    name: PlainName,
}

/// `POST /api/admin/skills/repos/cancel`.
///
/// # Errors
/// 404 without such a repository, 409 `wrong_state` when no pull is under way.
async fn cancel(_: Superadmin, input: Input<Which>, deps: Deps) -> Result<Answer> {
    let name = &input.params.name;
    let mut tx = input.meta.begin(&deps).await?;
    let row = present(&mut tx, name).await?;
    let token = Some(&row.pull_token);
    let ended = row.facts.pull_token.as_ref() == token || row.facts.failed_token.as_ref() == token;
    if ended || row.cancelled {
        return Err(ApiError::conflict("wrong_state", "no pull is under way"));
    }
    let guard = input.if_generation;
    let generation = skill_repository::cancel_pull(&mut tx, &row.uid, guard).await?;
    let change = change(row.uid, name, generation);
    tx.commit(change.about()).await?;
    Ok(Answer::plain(format!(
        "the pull of repository {name} is cancelled"
    )))
}

/// `POST /api/admin/skills/repos/remove`.
///
/// # Errors
/// 404 without such a repository, 412 for a stale `if_generation`.
async fn remove(_: Superadmin, input: Input<Which>, deps: Deps) -> Result<Answer<Converging>> {
    let name = &input.params.name;
    let mut tx = input.meta.begin(&deps).await?;
    let row = present(&mut tx, name).await?;
    if input.if_generation.is_some() {
        object::bump(
            &mut tx,
            Kind::SkillRepository,
            &row.uid,
            input.if_generation,
        )
        .await?;
    }
    let now = deps.clock.now();
    let generation = skill_repository::delete(&mut tx, &row.uid, now).await?;
    let change = change(row.uid, name, generation);
    tx.commit(change.about()).await?;
    let settled = wait::settle(&deps, &change, Until::Purged, input.wait).await;
    let done = format!("repository {name} removed; installed skills stay");
    wait::reply(&change, settled, done, "the removal is under way")
}
