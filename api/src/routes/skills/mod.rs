//! Skills: what there is, where it comes from, and who gets it.

mod bind;
mod change;
mod download;
pub(in crate::routes) mod effect;
mod install;
mod list;
mod repos;
#[cfg(test)]
pub(in crate::routes) mod tests;
mod upload;

use schema::ids::SkillName;
use schema::reader::Connection;
use schema::skill::{self, SkillRow};

use crate::error::{ApiError, Result};
use crate::route::{Failure, Route};

/// The routes of the files of this folder.
pub(super) fn routes() -> Vec<Route> {
    let files = [
        list::routes(),
        bind::routes(),
        upload::routes(),
        install::routes(),
        download::routes(),
        change::routes(),
        repos::routes(),
    ];
    files.into_iter().flatten().collect()
}

const NO_SKILL: Failure = Failure(404, "not_found", "no such skill");

/// The skill of this name, unless it is being removed.
async fn present(connection: &mut Connection, name: &SkillName) -> Result<SkillRow> {
    let row = skill::find(connection, name).await?;
    row.filter(|row| row.deleted_at.is_none())
        .ok_or_else(|| ApiError::not_found(format!("skill {name}")))
}
