//! Who gets a skill: bindings to groups, to users and to everybody.

use std::collections::BTreeSet;
use std::time::Duration;

use schema::audit::{About, Audited};
use schema::config::history::SavedBy;
use schema::config::query as config_query;
use schema::config::{Changes, Config, keys};
use schema::group;
use schema::ids::{Kind, PlainName, SkillName, Uid, UserName};
use schema::object;
use schema::operation;
use schema::skill::impact::Impact;
use schema::skill::{self, Subject};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::effect::{self, Effect, Settle};
use super::present;
use crate::answer::{self, Answer};
use crate::deps::Deps;
use crate::dispatch::{Actor, Superadmin};
use crate::error::{ApiError, Result};
use crate::input::Input;
use crate::route::{Area, Failure, Route, Tokens};
use crate::routes::groups;
use crate::routes::params::{given, names, present_user};

const NOT_BOUND: Failure = Failure(404, "not_found", "no such skill, group, user or binding");

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("groups_skills_bind", "/api/admin/groups/skills/bind", bind)
            .tokens(Tokens::Admin)
            .title(Area::Groups, "Bind a skill to a group")
            .about(
                "Members of the group, and of the groups in it, get the skill. `member_count` is \
                 how many they are, `user_count` how many of them did not have it. With `dry_run` \
                 nothing is changed.",
            )
            .waits_for_task()
            .fails(&[Failure(404, "not_found", "no such skill or group")]),
        Route::post(
            "groups_skills_unbind",
            "/api/admin/groups/skills/unbind",
            unbind,
        )
        .tokens(Tokens::Admin)
        .title(Area::Groups, "Unbind a skill from a group")
        .about("The files are removed where no other binding gives the skill.")
        .waits_for_task()
        .fails(&[NOT_BOUND]),
        Route::post("skills_deploy", "/api/admin/skills/deploy", deploy)
            .tokens(Tokens::Admin)
            .title(Area::Skills, "Bind a skill, or check deployed skills")
            .about(
                "`skill_name` with `username`, with `group_name`, or alone (all users: it is added \
                 to `skills.defaults`). Without `skill_name`, the skills of the users in \
                 `usernames` are compared with the store and repaired; no binding is changed.",
            )
            .waits_for_task()
            .fails(&[NOT_BOUND, Failure::REMOVED]),
        Route::post("skills_undeploy", "/api/admin/skills/undeploy", undeploy)
            .tokens(Tokens::Admin)
            .title(Area::Skills, "Unbind a skill")
            .about("Takes the same fields as deploy, and removes that binding.")
            .waits_for_task()
            .fails(&[NOT_BOUND, Failure::REMOVED]),
    ]
}

/// A group and a skill.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = GroupSkill)]
pub struct GroupSkill {
    /// The group.
    group_name: PlainName,
    /// The skill.
    skill_name: SkillName,
    /// Report what would change, without changing it.
    #[serde(default)]
    dry_run: bool,
}

/// What a binding of a group means.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GroupSkillEffect)]
pub struct GroupEffect {
    /// How many users are in the group, or in one below it.
    #[schema(example = 1)]
    member_count: usize,
    #[serde(flatten)]
    effect: Effect,
}

/// `POST /api/admin/groups/skills/bind`.
///
/// # Errors
/// 404 without such a skill or group; what a single user's deployment fails with.
async fn bind(
    caller: Superadmin,
    input: Input<GroupSkill>,
    deps: Deps,
) -> Result<Answer<GroupEffect>> {
    of_group(caller, input, deps, true).await
}

/// `POST /api/admin/groups/skills/unbind`.
///
/// # Errors
/// As [`bind`]; 404 also when the skill is not bound to the group.
async fn unbind(
    caller: Superadmin,
    input: Input<GroupSkill>,
    deps: Deps,
) -> Result<Answer<GroupEffect>> {
    of_group(caller, input, deps, false).await
}

async fn of_group(
    Superadmin(actor): Superadmin,
    input: Input<GroupSkill>,
    deps: Deps,
    bound: bool,
) -> Result<Answer<GroupEffect>> {
    let form = &input.params;
    let mut tx = input.meta.begin(&deps).await?;
    group::lock(&mut tx).await?;
    let group = groups::find(&mut tx, &form.group_name).await?;
    let members = group::with_descendants(&mut tx, &group.uid).await?;
    let whom = Whom::Group(&form.group_name);
    let (impact, change) = change(&mut tx, &form.skill_name, whom, bound).await?;
    let settle = change.settle(&actor, form.dry_run, input.wait);
    let answer = effect::settle(&deps, tx, impact, settle).await?;
    let member_count = members.len();
    Ok(answer.map(|effect| GroupEffect {
        member_count,
        effect,
    }))
}

/// A skill, and who is to get it.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = SkillDeployment)]
pub struct Deployment {
    /// The skill.
    #[schema(value_type = Option<SkillName>)]
    skill_name: Option<String>,
    /// The user; without user and group, everybody.
    #[schema(value_type = Option<UserName>)]
    username: Option<String>,
    /// The group.
    #[schema(value_type = Option<PlainName>)]
    group_name: Option<String>,
    /// Without `skill_name`: whose skills are checked.
    #[serde(default)]
    #[schema(example = json!(["alice"]))]
    usernames: Vec<String>,
    /// Report what would change, without changing it.
    #[serde(default)]
    dry_run: bool,
}

/// `POST /api/admin/skills/deploy`.
///
/// # Errors
/// 400 for contradicting fields, 404 without such a skill, user or group; what a single user's deployment fails with.
async fn deploy(
    Superadmin(actor): Superadmin,
    input: Input<Deployment>,
    deps: Deps,
) -> Result<Answer<Effect>> {
    if given(&input.params.skill_name).is_none() {
        return check(&actor, input, deps).await;
    }
    of_form(actor, input, deps, true).await
}

/// `POST /api/admin/skills/undeploy`.
///
/// # Errors
/// As [`deploy`]; 404 also when there is no such binding.
async fn undeploy(
    Superadmin(actor): Superadmin,
    input: Input<Deployment>,
    deps: Deps,
) -> Result<Answer<Effect>> {
    of_form(actor, input, deps, false).await
}

async fn of_form(
    actor: Actor,
    input: Input<Deployment>,
    deps: Deps,
    bound: bool,
) -> Result<Answer<Effect>> {
    let form = &input.params;
    let skill = given(&form.skill_name);
    let skill = skill.ok_or_else(|| ApiError::invalid("skill_name", "skill_name is required"))?;
    let skill: SkillName = parsed("skill_name", skill)?;
    let (user, group);
    let whom = match (given(&form.username), given(&form.group_name)) {
        (Some(_), Some(_)) => {
            let rule = "give username or group_name, or neither for all users";
            return Err(ApiError::invalid("group_name", rule));
        }
        (Some(name), None) => {
            user = parsed("username", name)?;
            Whom::User(&user)
        }
        (None, Some(name)) => {
            group = parsed("group_name", name)?;
            Whom::Group(&group)
        }
        (None, None) => Whom::Everyone {
            deps: &deps,
            actor: &actor,
        },
    };
    let mut tx = input.meta.begin(&deps).await?;
    let (impact, change) = change(&mut tx, &skill, whom, bound).await?;
    let settle = change.settle(&actor, form.dry_run, input.wait);
    effect::settle(&deps, tx, impact, settle).await
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(field: &str, text: &str) -> Result<T> {
    text.parse()
        .map_err(|rule| ApiError::invalid(field, format!("{field}: {rule}")))
}

/// Whom a skill is bound to.
enum Whom<'a> {
    Group(&'a PlainName),
    User(&'a UserName),
    Everyone { deps: &'a Deps, actor: &'a Actor },
}

/// Makes or ends a binding; what is said of it.
async fn change(
    tx: &mut Audited,
    name: &SkillName,
    whom: Whom<'_>,
    bound: bool,
) -> Result<(Impact, Change)> {
    if matches!(whom, Whom::Everyone { .. }) {
        // Comes first, as where it is saved.
        config_query::lock(tx).await?;
    }
    group::lock(tx).await?;
    let skill = present(tx, name).await?;
    let (done, to) = match whom {
        Whom::Group(group) => {
            let group = groups::find(tx, group).await?;
            let subject = Subject::Group(&group.uid);
            let to = format!("group {}", group.name);
            (bound_to(tx, &skill.uid, subject, bound).await?, to)
        }
        Whom::User(user) => {
            let user = present_user(tx, user).await?;
            let subject = Subject::User(&user.uid);
            let to = format!("user {}", user.name);
            (bound_to(tx, &skill.uid, subject, bound).await?, to)
        }
        Whom::Everyone { deps, actor } => {
            let done = default(tx, deps, actor, &skill.name, bound).await?;
            (done, "all users".to_owned())
        }
    };
    let name = &skill.name;
    let (words, missing) = match bound {
        true => (format!("bound to {to}"), None),
        false => (
            format!("not bound to {to} any more"),
            Some(format!("binding of skill {name} to {to}")),
        ),
    };
    let impact = match (done, missing) {
        (Some(impact), _) => impact,
        // It is bound already.
        (None, None) => Impact::default(),
        (None, Some(missing)) => return Err(ApiError::not_found(missing)),
    };
    let change = Change {
        about: About::object(Kind::Skill, name).detail(words.clone()),
        message: format!("skill {name} is {words}"),
    };
    Ok((impact, change))
}

/// What is said of a change.
struct Change {
    about: About,
    message: String,
}

impl Change {
    fn settle(self, actor: &Actor, dry_run: bool, wait: Option<Duration>) -> Settle<'_> {
        Settle {
            actor,
            about: self.about,
            dry_run,
            wait,
            message: self.message,
        }
    }
}

async fn bound_to(
    tx: &mut Audited,
    skill: &Uid,
    subject: Subject<'_>,
    bound: bool,
) -> Result<Option<Impact>> {
    Ok(match bound {
        true => skill::bind(tx, skill, subject).await?,
        false => skill::unbind(tx, skill, subject).await?,
    })
}

/// Adds a skill to `skills.defaults`, or takes it out; `None` when it is so already.
async fn default(
    tx: &mut Audited,
    deps: &Deps,
    actor: &Actor,
    name: &SkillName,
    bound: bool,
) -> Result<Option<Impact>> {
    config_query::lock(tx).await?;
    let (values, _) = config_query::load(tx, &deps.master_key).await?;
    let defaults = Config::from_stored(values).get(&keys::skills::DEFAULTS);
    let mut wanted: Vec<SkillName> = defaults.clone();
    match bound {
        true if !wanted.contains(name) => wanted.push(name.clone()),
        true => {}
        false => wanted.retain(|other| other.key() != name.key()),
    }
    if wanted == defaults {
        return Ok(None);
    }
    let value = (!wanted.is_empty()).then(|| json!(wanted));
    let changes = Changes([(keys::skills::DEFAULTS.row.key, value)].into());
    let by = SavedBy {
        actor: &actor.to_string(),
        at: deps.clock.now(),
    };
    let saved = config_query::save(tx, &deps.master_key, &changes, None, by).await?;
    Ok(Some(saved.skills))
}

/// Compares what users have with the store, and repairs it.
async fn check(actor: &Actor, input: Input<Deployment>, deps: Deps) -> Result<Answer<Effect>> {
    let form = &input.params;
    let mut named: BTreeSet<&str> = names(&form.usernames).into_iter().collect();
    named.extend(given(&form.username));
    if named.is_empty() {
        let rule = "give skill_name, or usernames to check their skills";
        return Err(ApiError::invalid("skill_name", rule));
    }
    let named: Vec<&str> = named.into_iter().collect();
    let mut tx = input.meta.begin(&deps).await?;
    group::lock(&mut tx).await?;
    let users = groups::users(&mut tx, &named).await?;
    let mut objects = Vec::with_capacity(users.len());
    for uid in users {
        let generation = object::bump_in_bulk(&mut tx, Kind::SkillSet, &uid).await?;
        let row = object::get(&mut tx, Kind::SkillSet, &uid).await?;
        let name = row.map(|row| row.name).unwrap_or_default();
        objects.push((Kind::SkillSet, uid, name, generation));
    }
    let total = answer::users(objects.len());
    let about = About::whole("skills").detail(format!("checked for {total}"));
    if form.dry_run {
        let message = format!("nothing was changed; {total} would be checked");
        return Ok(Answer::ok(message, Effect::new(&Impact::default())));
    }
    let (by, now) = (actor.to_string(), deps.clock.now());
    let task = operation::create(&mut tx, effect::OPERATION, &by, &objects, now).await?;
    tx.commit(about).await?;
    let message = format!("the skills of {total} are checked");
    let effect = Effect::new(&Impact::default());
    Ok(effect::of_task(&deps, effect, task, input.wait, message).await)
}

/// Takes a skill that is removed out of `skills.defaults`.
pub(super) async fn no_default(
    tx: &mut Audited,
    deps: &Deps,
    actor: &Actor,
    name: &SkillName,
) -> Result<Option<Impact>> {
    default(tx, deps, actor, name, false).await
}
