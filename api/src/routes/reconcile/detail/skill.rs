//! A skill: the version in effect.

use schema::skill::{self, TreeDigest};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Reading, Sections};
use crate::error::Result;

/// The version of a skill in effect.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DesiredSkill)]
pub struct Desired {
    /// Its number.
    #[schema(example = 1)]
    number: i64,
    /// Its files.
    digest: TreeDigest,
    /// Where it comes from.
    #[schema(example = "upload")]
    source: String,
    /// The numbers of all versions that are kept, the newest first.
    #[schema(example = json!([1]))]
    versions: Vec<i64>,
}

/// What lies in workspaces.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ObservedSkill)]
pub struct Observed {
    /// Digests that lie in workspaces, or are about to.
    deployed_digests: Vec<TreeDigest>,
}

pub(super) async fn read(at: &mut Reading<'_>) -> Result<Sections<Desired, Observed>> {
    let Some(row) = skill::get(at.connection, &at.row.uid).await? else {
        return Ok(Sections::none());
    };
    let versions = skill::versions(at.connection, &row.uid).await?;
    let deployed_digests = skill::deployed(at.connection, &row.name).await?;
    let desired = Desired {
        number: row.version.number,
        source: row.version.origin.source().to_owned(),
        digest: row.version.digest,
        versions: versions.iter().map(|version| version.number).collect(),
    };
    Ok(Sections::known(
        Some(desired),
        Some(Observed { deployed_digests }),
    ))
}
