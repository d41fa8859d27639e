//! Users.

use schema::condition::{self, ConditionStatus, ConditionType};
use schema::ids::UserName;
use schema::usage::{self, Usage};
use schema::user::{self, Role, Source};
use serde::Serialize;
use utoipa::ToSchema;

use super::skill_set::{self, Given};
use super::{Reading, Sections};
use crate::error::{ApiError, Result};

/// What is desired of a user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DesiredUser)]
pub struct Desired {
    /// What the account may do.
    role: Role,
    /// Where the account comes from.
    source: Source,
    /// The account is disabled: nobody can sign in with it.
    disabled: bool,
    /// Below the data directory.
    directory: String,
    /// Skills, once for each binding that gives one.
    skills: Vec<Given>,
}

/// What was observed of a user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ObservedUser)]
pub struct Observed {
    /// Below the data directory; null while it is not as it should be.
    #[schema(required = true)]
    directory: Option<String>,
    /// What the workspace takes; null before it was measured.
    #[schema(required = true)]
    workspace: Option<Usage>,
}

pub(super) async fn read(at: &mut Reading<'_>) -> Result<Sections<Desired, Observed>> {
    let name: UserName = at.row.name.parse().map_err(ApiError::internal)?;
    let account = user::find(at.connection, &name).await?;
    let skills = skill_set::given(at).await?;
    let directory = format!("users/{name}");
    let ready = condition::find(&at.row.status.conditions, ConditionType::Ready);
    let there = ready.is_some_and(|ready| ready.status == ConditionStatus::True);
    let observed = Observed {
        directory: there.then(|| directory.clone()),
        workspace: usage::get(at.connection, &at.row.uid).await?,
    };
    let desired = account.map(|account| Desired {
        role: account.role,
        source: account.source,
        disabled: account.disabled,
        directory,
        skills,
    });
    Ok(Sections::known(desired, Some(observed)))
}
