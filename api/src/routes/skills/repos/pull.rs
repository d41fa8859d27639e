//! Pulling a repository, and what is newer in it than what is installed.

use std::collections::HashMap;

use schema::ids::{PlainName, SkillName};
use schema::reader::Connection;
use schema::skill::impact;
use schema::skill_repository::{self, OfferedSkill, RepositoryRow};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::list::installed;
use super::{change, present, token};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::Result;
use crate::input::Input;
use crate::routes::skills::effect::{UserChange, affected};
use crate::wait::{self, Converging, Until};

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
    /// Entries that were left out of the commit, and skills that cannot be installed; a sentence each.
    warnings: Vec<String>,
    #[serde(flatten)]
    converging: Option<Converging>,
}

/// `POST /api/admin/skills/repos/pull`.
///
/// # Errors
/// 404 without such a repository, 412 for a stale `if_generation`; what the pull fails with.
pub(super) async fn pull(
    _: Superadmin,
    input: Input<PullForm>,
    deps: Deps,
) -> Result<Answer<Pulled>> {
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
            warnings: before.facts.warnings,
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
    let after = skill_repository::get_whole(&mut snapshot, &before.uid).await?;
    let (update_available, affected) = match &after {
        Some(after) => updates(&mut snapshot, after).await?,
        None => Default::default(),
    };
    drop(snapshot);
    let facts = after.map(|row| row.facts).unwrap_or_default();
    let (commit, warnings) = (facts.commit_id, facts.warnings);
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
        warnings,
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
    let by_path: HashMap<&str, &OfferedSkill> = facts
        .skills
        .iter()
        .flatten()
        .map(|skill| (skill.path.as_str(), skill))
        .collect();
    for skill in installed(connection, repository).await? {
        let path = skill.version.origin.path.as_deref().unwrap_or_default();
        let offered = by_path.get(path).filter(|it| it.is_source_of(&skill));
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
