//! Removing a skill, and going back to an earlier version.

use schema::audit::About;
use schema::config::query as config_query;
use schema::ids::{Kind, SkillName};
use schema::{object, skill};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::effect::{self, Effect, Settle};
use super::{NO_SKILL, present};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::Input;
use crate::route::{Area, Failure, Route, Tokens};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("skills_remove", "/api/admin/skills/remove", remove)
            .tokens(Tokens::Admin)
            .title(Area::Skills, "Remove a skill")
            .about(
                "Refused while the skill is bound, unless `force`: then it is unbound everywhere \
                 and removed from workspaces.",
            )
            .waits_for_task()
            .guarded()
            .fails(&[
                NO_SKILL,
                Failure(409, "skill_bound", "the skill is bound; use force"),
            ]),
        Route::post("skills_rollback", "/api/admin/skills/rollback", roll_back)
            .tokens(Tokens::Admin)
            .title(Area::Skills, "Roll back a skill to an earlier version")
            .about("Everybody who has the skill gets that version. The later ones are kept.")
            .waits_for_task()
            .guarded()
            .fails(&[Failure(404, "not_found", "no such skill or version")]),
    ]
}

/// A skill to remove.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = SkillRemoval)]
pub struct Removal {
    /// Its name.
    name: SkillName,
    /// Also when it is bound.
    #[serde(default)]
    force: bool,
    /// Report who would be affected, without changing anything.
    #[serde(default)]
    dry_run: bool,
}

/// `POST /api/admin/skills/remove`.
///
/// # Errors
/// 404 without such a skill, 409 `skill_bound` without force, 412 for a stale `if_generation`.
async fn remove(
    Superadmin(actor): Superadmin,
    input: Input<Removal>,
    deps: Deps,
) -> Result<Answer<Effect>> {
    let form = &input.params;
    let mut tx = input.meta.begin(&deps).await?;
    config_query::lock(&mut tx).await?;
    skill::lock(&mut tx).await?;
    let skill = present(&mut tx, &form.name).await?;
    if input.if_generation.is_some() {
        object::bump(&mut tx, Kind::Skill, &skill.uid, input.if_generation).await?;
    }
    let name = &skill.name;
    let default = super::bind::no_default(&mut tx, &deps, &actor, name).await?;
    let (others, mut impact) = skill::unbind_everywhere(&mut tx, &skill.uid).await?;
    let bindings = others + u64::from(default.is_some());
    // Nobody loses it twice.
    impact
        .0
        .extend(default.into_iter().flat_map(|impact| impact.0));
    if bindings > 0 && !form.force && !form.dry_run {
        let message = format!(
            "skill {name} is bound (bindings: {bindings}); unbind it, or use force to unbind it everywhere"
        );
        return Err(ApiError::conflict("skill_bound", message));
    }
    skill::delete(&mut tx, &skill.uid, deps.clock.now()).await?;
    let settle = Settle {
        actor: &actor,
        about: About::object(Kind::Skill, name).detail(format!("bindings ended: {bindings}")),
        dry_run: form.dry_run,
        wait: input.wait,
        message: format!("skill {name} removed"),
    };
    effect::settle(&deps, tx, impact, settle).await
}

/// A version to bring into effect again.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = SkillRollback)]
pub struct Rollback {
    /// The skill.
    name: SkillName,
    /// The number of the version; default: the one before the one in effect.
    #[schema(example = 1)]
    number: Option<i64>,
    /// Report who would be affected, without changing anything.
    #[serde(default)]
    dry_run: bool,
}

/// The version that is in effect.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SkillRolledBack)]
pub struct RolledBack {
    /// Its number.
    #[schema(example = 1)]
    number: i64,
    #[serde(flatten)]
    effect: Effect,
}

/// `POST /api/admin/skills/rollback`.
///
/// # Errors
/// 404 without such a skill or version, 412 for a stale `if_generation`.
async fn roll_back(
    Superadmin(actor): Superadmin,
    input: Input<Rollback>,
    deps: Deps,
) -> Result<Answer<RolledBack>> {
    let form = &input.params;
    let mut tx = input.meta.begin(&deps).await?;
    let skill = present(&mut tx, &form.name).await?;
    let (name, active) = (&skill.name, skill.version.number);
    let versions = skill::versions(&mut tx, &skill.uid).await?;
    let number = match form.number {
        Some(number) => number,
        None => {
            let earlier = versions.iter().find(|version| version.number < active);
            let missing = || ApiError::not_found(format!("earlier version of skill {name}"));
            earlier.ok_or_else(missing)?.number
        }
    };
    if !versions.iter().any(|version| version.number == number) {
        let message = format!("version {number} of skill {name}");
        return Err(ApiError::not_found(message));
    }
    let (_, impact) = skill::roll_back(&mut tx, &skill.uid, number, input.if_generation).await?;
    let settle = Settle {
        actor: &actor,
        about: About::object(Kind::Skill, name).detail(format!("version {active} to {number}")),
        dry_run: form.dry_run,
        wait: input.wait,
        message: format!("skill {name} has version {number} again"),
    };
    let answer = effect::settle(&deps, tx, impact, settle).await?;
    Ok(answer.map(|effect| RolledBack { number, effect }))
}
