//! Repositories that skills are installed from.

use std::collections::{BTreeMap, BTreeSet};

use schema::ids::{Generation, Kind, PlainName, SkillName, Timestamp, Uid};
use schema::object;
use schema::reader::Connection;
use schema::skill::{self, SkillRow, SkillVersion, impact};
use schema::skill_repository::{
    self, Credential, GitRef, NewRepository, Provider, RefType, RepositoryListing, RepositoryRow,
    RepositoryUrl,
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::effect::{UserChange, affected};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::explain::{Explained, explained_owned};
use crate::input::Input;
use crate::route::{Area, Failure, Route};
use crate::routes::page::{Page, cut};
use crate::routes::params::given;
use crate::wait::{self, Change, Converging, Until};

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

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("skills_repos_list", "/api/admin/skills/repos/list", list)
            .title(Area::Skills, "List repositories, or the skills of one")
            .about(
                "With `name`, `skills` are those in that repository; without it, `repos` are all \
                 repositories.",
            )
            .paged()
            .fails(&[NO_REPOSITORY]),
        Route::post("skills_repos_add", "/api/admin/skills/repos/add", add)
            .title(Area::Skills, "Add a repository")
            .about(
                "The repository as JSON in `repo`, or as fields. It is cloned; the answer waits \
                 10 s unless `wait` says otherwise.",
            )
            .waits()
            .fails(&[Failure::TAKEN, REMOVED]),
        Route::post("skills_repos_save", "/api/admin/skills/repos/save", save)
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
        .title(Area::Skills, "Remove a repository")
        .about("Installed skills stay.")
        .waits()
        .guarded()
        .fails(&[NO_REPOSITORY]),
    ]
}

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
    /// How often it was changed.
    generation: Generation,
    /// Its conditions, each with its remedy.
    conditions: Vec<Explained>,
}

/// A repository as it is shown.
pub(super) fn shown(deps: &Deps, listing: RepositoryListing) -> Result<Repository> {
    let credentials = skill_repository::listed_credentials(&deps.master_key, &listing)?;
    let RepositoryListing { row, status, .. } = listing;
    let credentials = credentials.into_iter().map(|credential| ShownCredential {
        secret_set: !credential.secret.expose_secret().is_empty(),
        name: credential.name,
        provider: credential.provider,
        username: credential.username,
    });
    Ok(Repository {
        credentials: credentials.collect(),
        name: row.name,
        url: row.url,
        reference: row.reference,
        ref_type: row.ref_type,
        public: row.public,
        last_pull: row.facts.pulled_at,
        commit: row.facts.commit_id,
        skill_count: row.facts.skills.len(),
        generation: row.generation,
        conditions: explained_owned(status.conditions),
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
    /// The repository has other files than what is installed.
    update_available: bool,
    /// Why it cannot be installed as it is.
    #[schema(required = true)]
    problem: Option<String>,
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
async fn list(_: Superadmin, input: Input<WhichOrAll>, deps: Deps) -> Result<Answer<Listing>> {
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
    let installed: BTreeMap<&str, &SkillVersion> = skills
        .iter()
        .map(|skill| {
            let path = skill.version.origin.path.as_deref();
            (path.unwrap_or_default(), &skill.version)
        })
        .collect();
    let commit = row.facts.commit_id.as_deref();
    let offered = row.facts.skills.iter().map(|skill| {
        let version = installed.get(skill.path.as_str()).copied();
        Offered {
            name: skill.name.clone(),
            path: skill.path.clone(),
            description: skill.description.clone(),
            installed: version.is_some(),
            update_available: version.is_some_and(|version| skill.updates(version, commit)),
            problem: skill.problem.clone(),
        }
    });
    let (skills, page) = cut(offered.collect(), paging, |skill: &Offered, text| {
        let name = skill.name.as_ref().map(SkillName::key).unwrap_or_default();
        name.contains(text) || skill.path.to_lowercase().contains(text)
    });
    let listing = Listing {
        repos: None,
        skills: Some(skills),
        page,
    };
    Ok(Answer::ok("skills in the repository", listing))
}

/// What is installed from a repository.
async fn installed(connection: &mut Connection, row: &RepositoryRow) -> Result<Vec<SkillRow>> {
    let mut skills = skill::all(connection).await?;
    skills.retain(|skill| {
        let repository = skill.version.origin.repository.as_deref();
        skill.deleted_at.is_none() && repository == Some(row.name.as_str())
    });
    Ok(skills)
}

/// A credential to store.
#[derive(Clone, Deserialize, ToSchema)]
#[schema(as = RepositoryCredentialForm)]
pub struct CredentialForm {
    /// Its name.
    #[serde(default)]
    name: String,
    /// Who runs the server; default: other.
    provider: Option<Provider>,
    /// The user name; default: the provider's.
    #[serde(default)]
    username: String,
    /// A password or token, with SSH a private key; absent: the stored one of this name.
    #[schema(value_type = Option<String>, format = Password)]
    secret: Option<SecretString>,
}

impl std::fmt::Debug for CredentialForm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CredentialForm([REDACTED])")
    }
}

/// The fields of a repository.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[schema(as = RepositoryForm)]
pub struct Fields {
    /// Its name.
    #[schema(value_type = Option<PlainName>)]
    name: Option<String>,
    /// Where it is: `https://`, `http://`, `ssh://` or `git@host:path`.
    #[schema(value_type = Option<RepositoryUrl>)]
    url: Option<String>,
    /// The branch or tag; default: main.
    #[serde(rename = "ref")]
    #[schema(value_type = Option<GitRef>)]
    reference: Option<String>,
    /// Which of both; default: branch.
    ref_type: Option<RefType>,
    /// It is read without credentials; default: when there are none.
    public: Option<bool>,
    /// Who may read it; they are tried in this order.
    credentials: Option<Vec<CredentialForm>>,
    /// The same as JSON, in one field.
    #[serde(skip_serializing)]
    #[schema(value_type = Option<String>, example = "{\"name\": \"team\", \"url\": \"https://git.example.com/team/skills.git\"}")]
    repo: Option<SecretString>,
    /// Trust the key that the host shows next.
    #[serde(default)]
    forget_host_key: bool,
}

/// Most credentials of a repository.
const CREDENTIALS: usize = 10;

impl Fields {
    /// What `repo` says, if it is there.
    fn flat(self) -> Result<Self> {
        let Some(text) = &self.repo else {
            return Ok(self);
        };
        // The text may hold a secret, so what is wrong with it is not quoted.
        let parsed: Self = serde_json::from_str(text.expose_secret()).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            let rule = format!("repo is a repository as a JSON object; see {place}");
            ApiError::invalid("repo", rule)
        })?;
        Ok(parsed)
    }

    fn required<'a>(field: &str, value: &'a Option<String>) -> Result<&'a str> {
        given(value).ok_or_else(|| ApiError::invalid(field, format!("{field} is required")))
    }

    fn name(&self) -> Result<PlainName> {
        parsed("name", Self::required("name", &self.name)?)
    }

    /// The repository, as it is or as it becomes.
    fn repository(&self, name: PlainName, before: Option<&RepositoryRow>) -> Result<NewRepository> {
        let url = match (given(&self.url), before) {
            (Some(url), _) => parsed("url", url)?,
            (None, Some(before)) => before.url.clone(),
            (None, None) => return Err(ApiError::invalid("url", "url is required")),
        };
        let reference = match (given(&self.reference), before) {
            (Some(reference), _) => parsed("ref", reference)?,
            (None, Some(before)) => before.reference.clone(),
            (None, None) => parsed("ref", "main")?,
        };
        let before_type = before.map(|before| before.ref_type);
        let ref_type = self.ref_type.or(before_type).unwrap_or(RefType::Branch);
        let none = self.credentials.as_ref().is_none_or(Vec::is_empty);
        let public = match (self.public, before) {
            (Some(public), _) => public,
            (None, Some(before)) if self.credentials.is_none() => before.public,
            (None, _) => none,
        };
        Ok(NewRepository {
            name,
            url,
            reference,
            ref_type,
            public,
        })
    }

    /// The credentials, with the stored secrets of those that were sent without one.
    fn credentials(&self, stored: Vec<Credential>, same_host: bool) -> Result<Vec<Credential>> {
        let required = || {
            let message = "the repository's address has another host; send the secrets of its credentials again, or remove them";
            ApiError::unprocessable("secret_required", message)
        };
        let Some(sent) = &self.credentials else {
            return match stored.is_empty() || same_host {
                true => Ok(stored),
                false => Err(required()),
            };
        };
        if sent.len() > CREDENTIALS {
            let rule = "a repository has at most 10 credentials";
            return Err(ApiError::invalid("credentials", rule));
        }
        let names: BTreeSet<&str> = sent.iter().map(|form| form.name.as_str()).collect();
        if names.len() < sent.len() {
            let rule = "credentials of one repository have different names";
            return Err(ApiError::invalid("credentials", rule));
        }
        let credential = |form: &CredentialForm| {
            let texts = [&form.name, &form.username];
            if texts
                .iter()
                .any(|text| text.len() > 256 || text.chars().any(char::is_control))
            {
                let rule = "name and username of credentials have at most 256 bytes and no control characters";
                return Err(ApiError::invalid("credentials", rule));
            }
            let secret = form
                .secret
                .clone()
                .filter(|it| !it.expose_secret().is_empty());
            let secret = match secret {
                Some(secret) => secret,
                None => {
                    let kept = stored.iter().find(|it| it.name == form.name);
                    let Some(kept) = kept else {
                        let rule = format!("credentials: {:?} has no secret", form.name);
                        return Err(ApiError::invalid("credentials", rule));
                    };
                    if !same_host {
                        return Err(required());
                    }
                    kept.secret.clone()
                }
            };
            Ok(Credential {
                name: form.name.clone(),
                provider: form.provider.unwrap_or(Provider::Other),
                username: form.username.clone(),
                secret,
            })
        };
        sent.iter().map(credential).collect()
    }
}

/// Somebody can read it.
fn readable(repository: &NewRepository, credentials: &[Credential]) -> Result<()> {
    if repository.public || !credentials.is_empty() {
        return Ok(());
    }
    let rule = "a repository that is not public needs credentials";
    Err(ApiError::invalid("credentials", rule))
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

/// A repository to pull.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = RepositoryPull)]
pub struct PullForm {
    /// Its name.
    name: PlainName,
    /// Report what updates there are by the last pull, without pulling.
    #[serde(default)]
    dry_run: bool,
}

/// What was pulled.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RepositoryPulled)]
pub struct Pulled {
    /// Whether the commit is another one than before; null while the pull is under way.
    #[schema(required = true)]
    updated: Option<bool>,
    /// The commit that was pulled last.
    #[schema(required = true)]
    commit: Option<String>,
    /// Installed skills for which an update is available.
    update_available: Vec<SkillName>,
    /// Who gets another version when those updates are installed; the first 1,000 users.
    affected: Vec<UserChange>,
    #[serde(flatten)]
    converging: Option<Converging>,
}

/// `POST /api/admin/skills/repos/pull`.
///
/// # Errors
/// 404 without such a repository, 412 for a stale `if_generation`; what the pull fails with.
async fn pull(_: Superadmin, input: Input<PullForm>, deps: Deps) -> Result<Answer<Pulled>> {
    let name = &input.params.name;
    let mut tx = input.meta.begin(&deps).await?;
    let before = present(&mut tx, name).await?;
    if input.params.dry_run {
        let (update_available, affected) = updates(&mut tx, &before).await?;
        let pulled = Pulled {
            updated: None,
            commit: before.facts.commit_id,
            update_available,
            affected,
            converging: None,
        };
        return Ok(Answer::ok("nothing was pulled", pulled));
    }
    let guard = input.if_generation;
    let generation = skill_repository::request_pull(&mut tx, &before.uid, &token(), guard).await?;
    let change = change(before.uid.clone(), name, generation);
    tx.commit(change.about()).await?;
    let settled = wait::settle(&deps, &change, Until::Converged, input.wait).await;
    let done = settled == wait::Settled::Converged;
    let mut snapshot = deps.db.snapshot().await?;
    let after = skill_repository::get(&mut snapshot, &before.uid).await?;
    let (update_available, affected) = match &after {
        Some(after) => updates(&mut snapshot, after).await?,
        None => Default::default(),
    };
    drop(snapshot);
    let commit = after.and_then(|row| row.facts.commit_id);
    let updated = done.then(|| commit != before.facts.commit_id);
    let message = match updated {
        Some(true) => format!("repository {name} has a new commit"),
        _ => format!("repository {name} is up to date"),
    };
    let under_way = format!("the pull of repository {name} is under way");
    let answer = wait::reply(&change, settled, message, under_way)?;
    Ok(answer.map(|converging| Pulled {
        updated,
        commit,
        update_available,
        affected,
        converging: Some(converging),
    }))
}

/// Skills that were installed from a repository which has other files for them by now, and who has them.
async fn updates(
    connection: &mut Connection,
    repository: &RepositoryRow,
) -> Result<(Vec<SkillName>, Vec<UserChange>)> {
    let facts = &repository.facts;
    let (mut names, mut uids) = (Vec::new(), Vec::new());
    for skill in installed(connection, repository).await? {
        let path = skill.version.origin.path.as_deref().unwrap_or_default();
        let offered = facts.skills.iter().find(|offered| offered.path == path);
        let commit = facts.commit_id.as_deref();
        if offered.is_some_and(|offered| offered.updates(&skill.version, commit)) {
            names.push(skill.name);
            uids.push(skill.uid);
        }
    }
    names.sort();
    let impact = impact::of_update(connection, uids).await?;
    Ok((names, affected(&impact)))
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
