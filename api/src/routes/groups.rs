//! Groups of users, and the skills that they give.

use std::collections::BTreeSet;

use schema::audit::About;
use schema::error::DbError;
use schema::group::{self, Group, GroupListing, NewGroup};
use schema::ids::{PlainName, SkillName, Timestamp, Uid, UserName};
use schema::reader::Connection;
use schema::skill;
use schema::user::Source;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::page::{Page, cut, read_page, search};
use super::params::{given, names, present_user};
use super::skills::effect::{self, Effect};
use crate::answer::{self, Answer};
use crate::deps::Deps;
use crate::dispatch::Superadmin;
use crate::error::{ApiError, Result};
use crate::input::{Input, Nothing};
use crate::route::{Area, Failure, Route, Tokens};
use crate::settings::AuthMode;

const NO_GROUP: Failure = Failure(404, "not_found", "no such group");
const CYCLE: Failure = Failure(422, "group_cycle", "the group would be in itself");
const SYNCHRONISED: Failure = Failure(
    403,
    "mode_forbidden",
    "the group is managed by a directory or an identity provider",
);

/// The routes of this file.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("groups_list", "/api/admin/groups", list)
            .tokens(Tokens::Read)
            .title(Area::Groups, "List groups")
            .about("All groups, or one page, with the number of their direct members and skills.")
            .paged(),
        Route::post("groups_create", "/api/admin/groups/create", create)
            .tokens(Tokens::Admin)
            .title(Area::Groups, "Create a group")
            .about(
                "`parent_id` is the id or the name of another group: members of the new group \
                 also get the skills of that one, and of those above it.",
            )
            .local_only()
            .fails(&[
                Failure::TAKEN,
                Failure(404, "not_found", "no such parent group"),
            ]),
        Route::post("groups_delete", "/api/admin/groups/delete", delete)
            .tokens(Tokens::Admin)
            .title(Area::Groups, "Delete a group")
            .about(
                "Groups in it become top-level groups; its memberships and bindings end. With \
                 `dry_run` nothing is changed, and the answer reports what would be.",
            )
            .waits_for_task()
            .fails(&[NO_GROUP, SYNCHRONISED]),
        Route::post("groups_move", "/api/admin/groups/move", relocate)
            .tokens(Tokens::Admin)
            .title(Area::Groups, "Put a group into another one")
            .about("Without `parent_id`, the group becomes a top-level group.")
            .waits_for_task()
            .fails(&[NO_GROUP, CYCLE, SYNCHRONISED]),
        Route::get("groups_members", "/api/admin/groups/members", members)
            .tokens(Tokens::Read)
            .title(Area::Groups, "Get the members and skills of a group")
            .about(
                "`members` are the direct members, paged; `inherited_members` are those of the \
                 groups in it, each with the group that the user is in.",
            )
            .paged()
            .fails(&[NO_GROUP]),
        Route::post("groups_members_add", "/api/admin/groups/members/add", add)
            .tokens(Tokens::Admin)
            .title(Area::Groups, "Add members to a group")
            .about("All of them or none: one unknown name refuses the whole request.")
            .waits_for_task()
            .fails(&[NO_GROUP, SYNCHRONISED, Failure::REMOVED]),
        Route::post(
            "groups_members_remove",
            "/api/admin/groups/members/remove",
            remove,
        )
        .tokens(Tokens::Admin)
        .title(Area::Groups, "Remove a member from a group")
        .about("The user's skills that no other binding gives are removed.")
        .waits_for_task()
        .fails(&[
            Failure(404, "not_found", "no such group, user or membership"),
            SYNCHRONISED,
        ]),
    ]
}

/// A group, in a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Group)]
pub struct Item {
    /// Its identity.
    #[schema(example = "9c1185a5c5e9fc54612808977ee8f548")]
    id: String,
    /// Its name.
    name: PlainName,
    /// The group that it is in.
    parent_id: Option<String>,
    /// The name of that group.
    parent: Option<PlainName>,
    /// Where it comes from.
    #[schema(value_type = Source)]
    source: String,
    /// What it is for.
    description: String,
    /// How many users are members of it itself.
    #[schema(example = 1)]
    member_count: i64,
    /// How many skills are bound to it itself.
    #[schema(example = 1)]
    skill_count: i64,
    /// When it was created.
    created_at: Timestamp,
}

impl From<GroupListing> for Item {
    fn from(listing: GroupListing) -> Self {
        let group = listing.group;
        Self {
            id: group.uid.to_string(),
            name: group.name,
            parent_id: group.parent_uid.map(|uid| uid.to_string()),
            parent: listing.parent,
            source: group.source.to_string(),
            description: group.description,
            member_count: listing.member_count,
            skill_count: listing.skill_count,
            created_at: group.created_at,
        }
    }
}

/// Groups.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Groups)]
pub struct Listing {
    groups: Vec<Item>,
    /// Groups are managed by a directory or an identity provider.
    unified_auth: bool,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/groups`.
///
/// # Errors
/// Only when the database fails.
async fn list(_: Superadmin, input: Input<Nothing>, deps: Deps) -> Result<Answer<Listing>> {
    let paging = input.paging.as_ref();
    let mut snapshot = deps.db.snapshot().await?;
    let (rows, page) = read_page!(paging, window => {
        group::list(&mut snapshot, search(paging), window.limit, window.offset)
    });
    let groups = rows.into_iter().map(Item::from).collect();
    let listing = Listing {
        groups,
        unified_auth: deps.settings().auth_mode != AuthMode::Local,
        page,
    };
    Ok(Answer::ok("groups", listing))
}

/// A group to create.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = GroupCreation)]
pub struct Creation {
    /// Its name.
    name: PlainName,
    /// What it is for.
    #[serde(default)]
    #[schema(max_length = 1000)]
    description: String,
    /// Id or name of the group that it is to be in.
    parent_id: Option<String>,
}

/// A new group.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GroupCreated)]
pub struct Created {
    /// Its identity.
    #[schema(example = "9c1185a5c5e9fc54612808977ee8f548")]
    id: String,
    /// Its name.
    name: PlainName,
}

/// Longest description, in characters.
const DESCRIPTION: usize = 1000;

/// `POST /api/admin/groups/create`.
///
/// # Errors
/// 409 when the name is taken, 404 without such a parent.
async fn create(_: Superadmin, input: Input<Creation>, deps: Deps) -> Result<Answer<Created>> {
    let Creation {
        name,
        description,
        parent_id,
    } = input.params;
    if description.chars().count() > DESCRIPTION || description.chars().any(char::is_control) {
        let rule = "description has at most 1000 characters, and no control characters";
        return Err(ApiError::invalid("description", rule));
    }
    let mut tx = input.meta.begin(&deps).await?;
    group::lock(&mut tx).await?;
    let parent_uid = match given(&parent_id) {
        Some(parent) => Some(by_id_or_name(&mut tx, parent).await?.uid),
        None => None,
    };
    let new = NewGroup {
        name: name.clone(),
        parent_uid,
        source: Source::Local,
        description,
    };
    let created = group::create(&mut tx, &new, deps.clock.now()).await;
    let uid = created.map_err(|error| match error {
        DbError::NameTaken => ApiError::AlreadyExists {
            what: format!("group {name}"),
        },
        error => error.into(),
    })?;
    tx.commit(about(&name)).await?;
    let id = uid.to_string();
    Ok(Answer::ok("group created", Created { id, name }))
}

/// A group to delete.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = GroupDeletion)]
pub struct Deletion {
    /// Its name.
    name: PlainName,
    /// Report what would change, without changing it.
    #[serde(default)]
    dry_run: bool,
}

/// `POST /api/admin/groups/delete`: the groups in it become top-level groups.
///
/// # Errors
/// 404 without such a group, 403 for one that is synchronised.
async fn delete(
    Superadmin(actor): Superadmin,
    input: Input<Deletion>,
    deps: Deps,
) -> Result<Answer<Effect>> {
    let Deletion { name, dry_run } = input.params;
    let mut tx = input.meta.begin(&deps).await?;
    group::lock(&mut tx).await?;
    let group = own(find(&mut tx, &name).await?)?;
    let impact = group::delete(&mut tx, &group.uid).await?;
    let settle = effect::Settle {
        actor: &actor,
        about: about(&group.name),
        dry_run,
        wait: input.wait,
        message: format!("group {} deleted", group.name),
    };
    effect::settle(&deps, tx, impact, settle).await
}

/// A group and where it is to be.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = GroupMove)]
pub struct Relocation {
    /// The group.
    group_name: PlainName,
    /// Id or name of the group that it is to be in; empty: none.
    parent_id: Option<String>,
    /// Report what would change, without changing it.
    #[serde(default)]
    dry_run: bool,
}

/// `POST /api/admin/groups/move`.
///
/// # Errors
/// 404 without such groups, 422 `group_cycle`, 403 for a group that is synchronised.
async fn relocate(
    Superadmin(actor): Superadmin,
    input: Input<Relocation>,
    deps: Deps,
) -> Result<Answer<Effect>> {
    let form = input.params;
    let mut tx = input.meta.begin(&deps).await?;
    group::lock(&mut tx).await?;
    let group = own(find(&mut tx, &form.group_name).await?)?;
    let parent = match given(&form.parent_id) {
        Some(parent) => Some(by_id_or_name(&mut tx, parent).await?),
        None => None,
    };
    let parent_uid = parent.as_ref().map(|parent| &parent.uid);
    let impact = group::set_parent(&mut tx, &group.uid, parent_uid).await?;
    let place = match &parent {
        Some(parent) => format!("in group {}", parent.name),
        None => "a top-level group".to_owned(),
    };
    let settle = effect::Settle {
        actor: &actor,
        about: about(&group.name).detail(place.clone()),
        dry_run: form.dry_run,
        wait: input.wait,
        message: format!("group {} is {place}", group.name),
    };
    effect::settle(&deps, tx, impact, settle).await
}

/// Which group.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = WhichGroup)]
pub struct Which {
    /// Its name.
    name: PlainName,
}

/// A member of a group below.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = InheritedMember)]
pub struct Inherited {
    /// The user.
    username: UserName,
    /// The group that the user is in.
    via: PlainName,
}

/// Who is in a group, and what it gives.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GroupMembers)]
pub struct Members {
    /// Its direct members, by name.
    members: Vec<UserName>,
    /// Members of the groups in it.
    inherited_members: Vec<Inherited>,
    /// The names of those alone, each once.
    #[schema(value_type = Vec<UserName>)]
    inherited_usernames: BTreeSet<UserName>,
    /// Skills that are bound to it itself.
    skills: Vec<SkillName>,
    #[serde(flatten)]
    page: Page,
}

/// `GET /api/admin/groups/members`.
///
/// # Errors
/// 404 without such a group.
async fn members(_: Superadmin, input: Input<Which>, deps: Deps) -> Result<Answer<Members>> {
    let mut snapshot = deps.db.snapshot().await?;
    let group = find(&mut snapshot, &input.params.name).await?;
    let all = group::members(&mut snapshot, &group.uid).await?;
    let skills = skill::skills_of_group(&mut snapshot, &group.uid).await?;
    drop(snapshot);
    let (own, below): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|member| member.via == group.name);
    let own = own.into_iter().map(|member| member.username).collect();
    let (members, page) = cut(own, input.paging.as_ref(), |name: &UserName, text| {
        name.as_str().to_lowercase().contains(text)
    });
    let inherited_usernames = below.iter().map(|member| member.username.clone()).collect();
    let below = below.into_iter().map(|member| Inherited {
        username: member.username,
        via: member.via,
    });
    let members = Members {
        members,
        inherited_members: below.collect(),
        inherited_usernames,
        skills,
        page,
    };
    Ok(Answer::ok("members and skills of the group", members))
}

/// Users to add to a group.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = GroupMembersAdd)]
pub struct Addition {
    /// The group.
    group_name: PlainName,
    /// Names of users, separated by commas or line breaks.
    #[schema(example = json!(["alice"]))]
    usernames: Vec<String>,
    /// Report what would change, without changing it.
    #[serde(default)]
    dry_run: bool,
}

/// Most users of one request.
const MOST: usize = 1000;

/// `POST /api/admin/groups/members/add`.
///
/// # Errors
/// 400 for unknown users, 404 without such a group, 403 for one that is synchronised.
async fn add(
    Superadmin(actor): Superadmin,
    input: Input<Addition>,
    deps: Deps,
) -> Result<Answer<Effect>> {
    let form = input.params;
    let names = names(&form.usernames);
    if names.is_empty() || names.len() > MOST {
        let rule = "usernames names 1 to 1000 users, separated by commas or line breaks";
        return Err(ApiError::invalid("usernames", rule));
    }
    let mut tx = input.meta.begin(&deps).await?;
    group::lock(&mut tx).await?;
    let group = own(find(&mut tx, &form.group_name).await?)?;
    let users = users(&mut tx, &names).await?;
    let total = users.len();
    let (added, impact) = group::add_members(&mut tx, &group.uid, users).await?;
    let detail = format!(
        "{added} of {} added: {}",
        answer::users(total),
        shown(&names)
    );
    let settle = effect::Settle {
        actor: &actor,
        about: about(&group.name).detail(detail),
        dry_run: form.dry_run,
        wait: input.wait,
        message: format!("{} in group {}", answer::users(total), group.name),
    };
    effect::settle(&deps, tx, impact, settle).await
}

/// A member to remove.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = GroupMembersRemove)]
pub struct Removal {
    /// The group.
    group_name: PlainName,
    /// The user.
    username: UserName,
    /// Report what would change, without changing it.
    #[serde(default)]
    dry_run: bool,
}

/// `POST /api/admin/groups/members/remove`.
///
/// # Errors
/// 404 without such a group, user or membership; 403 for a group that is synchronised.
async fn remove(
    Superadmin(actor): Superadmin,
    input: Input<Removal>,
    deps: Deps,
) -> Result<Answer<Effect>> {
    let form = input.params;
    let mut tx = input.meta.begin(&deps).await?;
    group::lock(&mut tx).await?;
    let group = own(find(&mut tx, &form.group_name).await?)?;
    let user = present_user(&mut tx, &form.username).await?;
    let impact = group::remove_member(&mut tx, &group.uid, &user.uid).await?;
    let missing = || ApiError::not_found(format!("{} in group {}", user.name, group.name));
    let impact = impact.ok_or_else(missing)?;
    let settle = effect::Settle {
        actor: &actor,
        about: about(&group.name).detail(format!("{} removed", user.name)),
        dry_run: form.dry_run,
        wait: input.wait,
        message: format!(
            "{} is no member of group {} any more",
            user.name, group.name
        ),
    };
    effect::settle(&deps, tx, impact, settle).await
}

/// The group of this name.
pub(super) async fn find(connection: &mut Connection, name: &PlainName) -> Result<Group> {
    let group = group::find(connection, name).await?;
    group.ok_or_else(|| ApiError::not_found(format!("group {name}")))
}

async fn by_id_or_name(connection: &mut Connection, text: &str) -> Result<Group> {
    let by_id = group::get(connection, &Uid::from(text.to_owned())).await?;
    if let Some(group) = by_id {
        return Ok(group);
    }
    let rule = |rule| ApiError::invalid("parent_id", format!("parent_id: {rule}"));
    let name: PlainName = text.parse().map_err(rule)?;
    find(connection, &name).await
}

/// A group that is managed here.
pub(super) fn own(group: Group) -> Result<Group> {
    match group.source {
        Source::Local => Ok(group),
        Source::Ldap | Source::Oidc => Err(ApiError::ModeForbidden(
            "the group is managed by a directory or an identity provider",
        )),
    }
}

/// The users of these names, or a refusal that names all who are none.
pub(super) async fn users(connection: &mut Connection, names: &[&str]) -> Result<Vec<Uid>> {
    let (mut users, mut unknown) = (Vec::new(), Vec::new());
    for name in names {
        let user = match name.parse::<UserName>() {
            Ok(name) => present_user(connection, &name).await,
            Err(_) => Err(ApiError::not_found("user")),
        };
        match user {
            Ok(user) => users.push(user.uid),
            Err(ApiError::NotFound { .. }) => unknown.push(*name),
            Err(error) => return Err(error),
        }
    }
    if unknown.is_empty() {
        return Ok(users);
    }
    let message = format!("usernames: there is no user {}", shown(&unknown));
    Err(ApiError::invalid("usernames", message))
}

/// The first of these names; what is no name the client made up.
fn shown(names: &[&str]) -> String {
    const NAMED: usize = 20;
    let valid = |name: &&str| match name.parse::<UserName>() {
        Ok(name) => name.to_string(),
        Err(_) => "(no user name)".to_owned(),
    };
    let first: Vec<String> = names.iter().take(NAMED).map(valid).collect();
    match names.len().saturating_sub(NAMED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

fn about(name: &PlainName) -> About {
    About::object("group", name)
}

#[cfg(test)]
mod tests;
