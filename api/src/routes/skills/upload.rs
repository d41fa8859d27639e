//! Uploads of skills, and what any new version of a skill goes through.

use std::fs::File;
use std::sync::Arc;

use schema::audit::About;
use schema::ids::{Kind, SkillName};
use schema::reader::Connection;
use schema::skill::{self, NewVersion, Origin, TreeDigest};
use schema::skill_store::{ImportError, Imported};
use schema::under_way::track_call;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::effect::{self, Effect, Settle};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::{Actor, Superadmin};
use crate::error::{ApiError, Result};
use crate::input::{FILE, Input};
use crate::route::{Area, Failure, Route, Tokens};

/// The largest package that is taken, in bytes.
pub(super) const LIMIT: u64 = schema::skill_store::MAX_PACKED;

/// What any package may be refused for.
pub(super) const INVALID: Failure = Failure(
    422,
    "invalid_skill",
    "the package breaks a rule, which the error names",
);
/// A skill of this name is being removed.
pub(super) const REMOVED: Failure = Failure(
    409,
    "name_being_removed",
    "the previous skill of this name is still being removed",
);

/// A bound skill of this name comes from elsewhere.
pub(super) const OTHER_ORIGIN: Failure = Failure(
    409,
    "other_origin",
    "a bound skill of this name comes from elsewhere; use force, or another name",
);

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("skills_upload", "/api/admin/skills/upload", upload)
            .tokens(Tokens::Admin)
            .title(Area::Skills, "Upload a skill")
            .about(
                "A zip of at most 128 MiB (512 MiB and 10,000 files unpacked), with `SKILL.md` at \
                 its top; one common top directory is removed. The skill's name is `name`, else \
                 what `SKILL.md` says, else that directory's. A skill of this name gets another \
                 version, and everybody who has it is updated.",
            )
            .spooled_upload(LIMIT)
            .waits_for_task()
            .guarded()
            .fails(&[INVALID, REMOVED, OTHER_ORIGIN]),
    ]
}

/// A package.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = SkillUpload)]
pub struct Form {
    /// The skill's name.
    #[schema(value_type = Option<SkillName>)]
    name: Option<String>,
    /// Also when a bound skill of this name comes from a repository.
    #[serde(default)]
    force: bool,
    /// Report who would be affected, without changing anything.
    #[serde(default)]
    dry_run: bool,
}

/// A version of a skill that was added.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SkillAdded)]
pub struct Added {
    /// The skill.
    name: SkillName,
    /// Its files.
    digest: TreeDigest,
    /// The number of the version in effect.
    #[schema(example = 1)]
    number: i64,
    /// Whether it is another version than before.
    changed: bool,
    /// How many files it has.
    #[schema(example = 1)]
    file_count: u64,
    /// Bytes of all files.
    #[schema(example = 120)]
    size: u64,
    /// What is worth knowing, a sentence each.
    warnings: Vec<String>,
    #[serde(flatten)]
    effect: Effect,
}

/// `POST /api/admin/skills/upload`.
///
/// # Errors
/// 400 without a file, 413 for a longer one, 422 `invalid_skill` with the rule that the package breaks.
async fn upload(
    Superadmin(actor): Superadmin,
    input: Input<Form>,
    deps: Deps,
) -> Result<Answer<Added>> {
    let name = match input.params.name.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => Some(
            name.parse::<SkillName>()
                .map_err(|rule| ApiError::invalid("name", rule.to_string()))?,
        ),
        None => None,
    };
    let New {
        params,
        if_generation,
        wait,
        meta,
        spooled,
    } = New::of(input);
    let file = spooled.ok_or_else(|| {
        ApiError::invalid(FILE, "file is required: the zip, as multipart/form-data")
    })?;
    let imported = import(&deps, move |store| store.import_zip(file, name.as_ref())).await?;
    let adding = Adding {
        actor: &actor,
        imported,
        origin: Origin::default(),
        force: params.force,
        dry_run: params.dry_run,
    };
    add(&deps, &meta, adding, if_generation, wait).await
}

/// The parts of an input.
struct New {
    params: Form,
    if_generation: Option<schema::ids::Generation>,
    wait: Option<std::time::Duration>,
    meta: crate::input::Meta,
    spooled: Option<File>,
}

impl New {
    fn of(input: Input<Form>) -> Self {
        Self {
            params: input.params,
            if_generation: input.if_generation,
            wait: input.wait,
            meta: input.meta,
            spooled: input.spooled,
        }
    }
}

/// Takes a package into the store: one at a time, since that keeps a disk busy.
pub(super) async fn import<E: Into<ImportError> + Send + 'static>(
    deps: &Deps,
    work: impl FnOnce(&schema::skill_store::SkillStore) -> Result<Imported, E> + Send + 'static,
) -> Result<Imported> {
    let turn = Arc::clone(&deps.turns.skill_import).acquire_owned().await;
    let turn = turn.map_err(ApiError::internal)?;
    let store = Arc::clone(&deps.skills);
    let work = track_call("import of a skill", move || {
        // Kept to the end also when the client is gone.
        let _turn = turn;
        work(&store).map_err(Into::into)
    });
    let imported = tokio::task::spawn_blocking(work);
    imported.await.map_err(ApiError::internal)?.map_err(refused)
}

fn refused(error: ImportError) -> ApiError {
    match error {
        ImportError::Refused(refusal) => {
            ApiError::unprocessable("invalid_skill", refusal.to_string())
        }
        ImportError::Store(error) if error.is_storage_full() => ApiError::StorageFull(error.into()),
        ImportError::Store(error) => ApiError::internal(error),
    }
}

/// A version that is in the store, and is to come into effect.
pub(super) struct Adding<'a> {
    pub(super) actor: &'a Actor,
    pub(super) imported: Imported,
    pub(super) origin: Origin,
    /// Also in the place of a bound skill from elsewhere.
    pub(super) force: bool,
    pub(super) dry_run: bool,
}

/// Records a version, and waits for whom it concerns.
pub(super) async fn add(
    deps: &Deps,
    meta: &crate::input::Meta,
    adding: Adding<'_>,
    if_generation: Option<schema::ids::Generation>,
    wait: Option<std::time::Duration>,
) -> Result<Answer<Added>> {
    let Adding {
        actor,
        imported,
        origin,
        force,
        dry_run,
    } = adding;
    let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let manifest = imported.manifest.clone().unwrap_or_default();
    let mut warnings = imported.warnings;
    let new = NewVersion {
        digest: imported.digest.clone(),
        description: manifest.description.unwrap_or_default(),
        version: manifest.version.unwrap_or_default(),
        license: manifest.license.unwrap_or_default(),
        has_manifest: imported.manifest.is_some(),
        file_count: count(imported.files),
        size: count(imported.bytes),
        origin,
        warnings: warnings.clone(),
    };
    let name = imported.name.clone();
    let mut tx = meta.begin(deps).await?;
    skill::lock(&mut tx).await?;
    if let Some(moved) = find_other_origin(&mut tx, &name, &new.origin).await? {
        match moved.bindings > 0 && !force {
            true if !dry_run => return Err(ApiError::conflict("other_origin", moved.refusal())),
            true => warnings.push(moved.refusal()),
            false => warnings.push(moved.to_string()),
        }
    }
    let now = deps.clock.now();
    let saved = skill::save_version(&mut tx, &name, &new, if_generation, now).await;
    let (saved, impact) = saved.map_err(being_removed)?;
    let digest = new.digest.as_str().get(..12).unwrap_or_default().to_owned();
    let detail = format!(
        "version {} ({digest}) from {}",
        saved.number,
        new.origin.source()
    );
    let message = match saved.changed {
        true => format!("skill {name} has version {}", saved.number),
        false => format!("skill {name} is unchanged"),
    };
    let settle = Settle {
        actor,
        about: About::object(Kind::Skill, &name).detail(detail),
        dry_run,
        wait,
        message,
    };
    let answer = effect::settle(deps, tx, impact, settle).await?;
    if !new.has_manifest {
        warnings.push("the package has no SKILL.md; agents may not find the skill".to_owned());
    }
    Ok(answer.map(|effect| Added {
        name: imported.name,
        digest: imported.digest,
        number: saved.number,
        changed: saved.changed,
        file_count: imported.files,
        size: imported.bytes,
        warnings,
        effect,
    }))
}

/// A skill that is to come from elsewhere than before.
struct Moved {
    name: SkillName,
    from: String,
    to: String,
    bindings: i64,
}

impl std::fmt::Display for Moved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, from, to, .. } = self;
        write!(
            f,
            "skill {name} came from {from}; this version comes from {to}"
        )
    }
}

impl Moved {
    fn refusal(&self) -> String {
        format!(
            "{self}, and the skill is bound (bindings: {}): use force to give this one to everybody who has it, or give \
             this one another name (`name` of the API, `--name` of the command)",
            self.bindings
        )
    }
}

/// The skill of this name, if it comes from elsewhere.
async fn find_other_origin(
    connection: &mut Connection,
    name: &SkillName,
    origin: &Origin,
) -> Result<Option<Moved>> {
    let row = skill::find(connection, name).await?;
    let row = row.filter(|row| row.deleted_at.is_none() && row.name == *name);
    let Some(row) = row.filter(|row| !row.version.origin.is_same_place(origin)) else {
        return Ok(None);
    };
    Ok(Some(Moved {
        bindings: skill::count_bindings(connection, &row.uid).await?,
        name: row.name,
        from: row.version.origin.describe(),
        to: origin.describe(),
    }))
}

fn being_removed(error: schema::error::DbError) -> ApiError {
    match error {
        schema::error::DbError::NameBeingRemoved => ApiError::conflict(
            "name_being_removed",
            "the previous skill of this name is still being removed; try again soon",
        ),
        schema::error::DbError::NameTaken => ApiError::unprocessable(
            "invalid_skill",
            "there is a skill whose name differs in case only; use its name, or another one",
        ),
        error => error.into(),
    }
}
