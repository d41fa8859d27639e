//! A user's skills: what gives each, and what lies in the workspace.

use schema::ids::{PlainName, SkillName};
use schema::skill::{self, Binding, TreeDigest};
use schema::skill_set::{self, Deployment};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Reading, Sections};
use crate::error::Result;

/// Why a user gets a skill.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = SkillBinding)]
pub struct Given {
    /// The skill.
    skill: SkillName,
    /// Its files.
    digest: TreeDigest,
    /// What gives it: `skills.defaults`, `user`, or `group <name>`.
    #[schema(example = "group engineering")]
    by: String,
    /// The group that the user is in, where the skill is bound to a group above it.
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<PlainName>,
}

impl From<Binding> for Given {
    fn from(binding: Binding) -> Self {
        let Binding {
            skill,
            digest,
            bound_group,
            via,
            own,
            ..
        } = binding;
        Self {
            by: match &bound_group {
                Some(group) => format!("group {group}"),
                None if own => "user".to_owned(),
                None => "skills.defaults".to_owned(),
            },
            via: via.filter(|via| bound_group.as_ref() != Some(via)),
            skill,
            digest,
        }
    }
}

/// What a user gets.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DesiredSkillSet)]
pub struct Desired {
    /// By skill, once for each binding that gives it.
    bindings: Vec<Given>,
}

/// A skill in a workspace.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeployedSkill)]
pub struct Deployed {
    /// Its name.
    skill: SkillName,
    /// What lies there; null before the first time.
    #[schema(required = true)]
    digest: Option<TreeDigest>,
    /// What is about to take its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<TreeDigest>,
}

/// What was put into the user's workspace.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ObservedSkillSet)]
pub struct Observed {
    /// By skill.
    deployed: Vec<Deployed>,
}

/// Everything that gives a user a skill.
pub(super) async fn given(at: &mut Reading<'_>) -> Result<Vec<Given>> {
    let bindings = skill::bindings(at.connection, &at.row.uid).await?;
    Ok(bindings.into_iter().map(Given::from).collect())
}

pub(super) async fn read(at: &mut Reading<'_>) -> Result<Sections<Desired, Observed>> {
    let bindings = given(at).await?;
    let deployments = skill_set::deployments(at.connection, &at.row.uid).await?;
    let deployed = deployments.into_iter().map(|deployment| {
        let Deployment {
            name, digest, next, ..
        } = deployment;
        Deployed {
            skill: name,
            digest,
            next,
        }
    });
    let observed = Observed {
        deployed: deployed.collect(),
    };
    Ok(Sections::known(Some(Desired { bindings }), Some(observed)))
}
