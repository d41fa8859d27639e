//! `GET /api/admin/skills/download`: a skill as a zip.

use std::io;
use std::sync::Arc;

use http::HeaderValue;
use schema::ids::SkillName;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{NO_SKILL, present};
use crate::answer::Download;
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::Input;
use crate::limits::SUPERADMIN_ANSWERS;
use crate::pieces::Pieces;
use crate::route::{Area, Route, Tokens};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("skills_download", "/api/admin/skills/download", download)
            .holds(&SUPERADMIN_ANSWERS)
            .tokens(Tokens::Read)
            .title(Area::Skills, "Download a skill as a zip file")
            .about(
                "The version in effect, or the one of `number`. The same version is the same \
                 bytes, and uploading it again gives the same digest.",
            )
            .fails(&[NO_SKILL]),
    ]
}

/// Which version of which skill.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = SkillDownload)]
pub struct Which {
    /// Its name.
    name: SkillName,
    /// The number of a version; default: the one in effect.
    #[schema(example = 1)]
    number: Option<i64>,
}

/// `GET /api/admin/skills/download`.
///
/// # Errors
/// 404 without such a skill or version.
async fn download(_: Superadmin, input: Input<Which>, deps: Deps) -> Result<Download> {
    let Which { name, number } = input.params;
    let mut snapshot = deps.db.snapshot().await?;
    let row = present(&mut snapshot, &name).await?;
    let versions = schema::skill::versions(&mut snapshot, &row.uid).await?;
    drop(snapshot);
    let number = number.unwrap_or(row.version.number);
    let version = versions
        .into_iter()
        .find(|version| version.number == number);
    let missing = || ApiError::not_found(format!("version {number} of skill {name}"));
    let digest = version.ok_or_else(missing)?.digest;
    let store = Arc::clone(&deps.skills);
    let there = {
        let (store, name, digest) = (Arc::clone(&store), row.name.clone(), digest.clone());
        tokio::task::spawn_blocking(move || store.contains(&name, &digest)).await
    };
    if !there
        .map_err(ApiError::internal)?
        .map_err(ApiError::internal)?
    {
        return Err(missing());
    }
    let skill = row.name.clone();
    let pieces = Pieces::written(&deps, move |out| {
        let packed = store.write_zip(&skill, &digest, out);
        packed.map(drop).map_err(io::Error::other)
    });
    let kind = HeaderValue::from_static("application/zip");
    Ok(Download::new(kind, &format!("{}.zip", row.name), pieces))
}
