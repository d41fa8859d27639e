//! `GET /api/user/skills`: the skills that a user gets, what gives each, and what lies in the workspace.

use std::collections::BTreeMap;

use schema::condition::{self, Condition, ConditionStatus, ConditionType};
use schema::ids::{Kind, PlainName, SkillName};
use schema::object;
use schema::skill::{self, Binding, TreeDigest};
use schema::skill_set;
use serde::Serialize;
use utoipa::ToSchema;

use super::page::{self, Page};
use crate::answer::Answer;
use crate::deps::Deps;
use crate::dispatch::OrdinaryUser;
use crate::error::Result;
use crate::explain::{Explained, explained_owned};
use crate::input::{Input, Nothing};
use crate::route::{Area, Route};

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("own_skills", "/api/user/skills", list)
            .title(Area::Account, "List my skills")
            .about(
                "By name: what gives each, and whether it lies in the workspace. `search` matches names and \
                 descriptions.",
            )
            .paged(),
    ]
}

/// A kind of binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = SkillGiver)]
enum Giver {
    /// It is bound to the user.
    Own,
    /// It is bound to a group.
    Group,
    /// All users get it.
    Default,
}

/// A binding that gives a user a skill.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OwnSkillBinding)]
struct Given {
    by: Giver,
    /// The group that it is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<PlainName>,
    /// The group that the user is in, if that is below the bound one.
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<PlainName>,
}

/// A skill that the user gets.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OwnSkill)]
struct Item {
    /// Its name.
    name: SkillName,
    /// The version that its `SKILL.md` names; empty when it names none.
    version: String,
    /// Its files: a SHA-256 over paths, modes and contents.
    digest: TreeDigest,
    /// Purpose of the skill.
    description: String,
    /// Bindings that give it.
    bindings: Vec<Given>,
    /// These files lie in the workspace.
    deployed: bool,
    /// Reason for which they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Skills of the user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OwnSkills)]
pub struct Listing {
    skills: Vec<Item>,
    /// Conditions of the user's skill set, each with its remedy.
    conditions: Vec<Explained>,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/user/skills`.
///
/// # Errors
/// None of its own.
async fn list(
    OrdinaryUser(session): OrdinaryUser,
    input: Input<Nothing>,
    deps: Deps,
) -> Result<Answer<Listing>> {
    let uid = &session.account.uid;
    let mut snapshot = deps.db.snapshot().await?;
    let bindings = skill::bindings(&mut snapshot, uid).await?;
    let deployments = skill_set::deployments(&mut snapshot, uid).await?;
    let mut status = match object::get(&mut snapshot, Kind::SkillSet, uid).await? {
        Some(row) => row.status,
        None => object::StatusRow::default(),
    };
    if object::is_kind_paused(&mut snapshot, Kind::SkillSet).await? {
        status.pause();
    }
    drop(snapshot);
    // A version to be replaced is still deployed.
    let lies = deployments.into_iter();
    let lies: BTreeMap<_, _> = lies.map(|one| (one.name, one.digest)).collect();
    let pending = pending_reason(&status.conditions);
    let mut items: BTreeMap<SkillName, Item> = BTreeMap::new();
    for binding in bindings {
        let deployed =
            lies.get(&binding.skill).cloned().flatten().as_ref() == Some(&binding.digest);
        let item = items
            .entry(binding.skill.clone())
            .or_insert_with(|| Item::new(&binding, deployed, &pending));
        item.bindings.push(Given::from(binding));
    }
    let items = items.into_values().collect();
    let (skills, page) = page::cut(items, input.paging.as_ref(), |item: &Item, search| {
        let texts = [item.name.as_str(), &item.description];
        texts
            .iter()
            .any(|text| text.to_lowercase().contains(search))
    });
    let listing = Listing {
        skills,
        conditions: explained_owned(
            &format!("{}/{}", Kind::SkillSet, session.account.name),
            status.conditions,
        ),
        page,
    };
    Ok(Answer::ok("your skills", listing))
}

impl Item {
    fn new(binding: &Binding, deployed: bool, pending: &str) -> Self {
        Self {
            name: binding.skill.clone(),
            version: binding.version.clone(),
            digest: binding.digest.clone(),
            description: binding.description.clone(),
            bindings: Vec::new(),
            deployed,
            reason: (!deployed).then(|| pending.to_owned()),
        }
    }
}

impl From<Binding> for Given {
    fn from(binding: Binding) -> Self {
        let Binding {
            bound_group,
            via,
            own,
            ..
        } = binding;
        Self {
            by: match &bound_group {
                Some(_) => Giver::Group,
                None if own => Giver::Own,
                None => Giver::Default,
            },
            via: via.filter(|via| bound_group.as_ref() != Some(via)),
            group: bound_group,
        }
    }
}

/// Reason for which a skill does not lie in the workspace yet.
fn pending_reason(conditions: &[Condition]) -> String {
    let ready = condition::find(conditions, ConditionType::Ready);
    match ready.filter(|ready| ready.status != ConditionStatus::True) {
        Some(ready) => format!("{}: {}", ready.reason, ready.message),
        None => "it is put into the workspace by the next reconciliation".to_owned(),
    }
}
