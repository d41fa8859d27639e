//! `agentyard group`.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::admin::escaped;
use super::effect::How;
use super::kinds::{GROUP_MEMBERS, GROUPS};
use super::output::cell::{at, cleaned, text};
use super::output::items::{Amount, Printer, print_one};
use super::output::{Format, screen};
use super::pages::{ListArgs, Pages};
use super::server::Server;
use super::{Failure, Result};

const PATH: &str = "/api/admin/groups";

/// Groups of users.
#[derive(Debug, Subcommand)]
pub enum GroupCommand {
    /// List groups
    #[command(
        after_help = "Examples:\n  agentyard group list\n  agentyard group list --search eng -o wide"
    )]
    List(ListArgs),
    /// Create a group
    #[command(
        after_help = "Examples:\n  agentyard group create engineering\n  agentyard group create backend --parent engineering --description 'Servers and databases'"
    )]
    Create(CreateArgs),
    /// Delete a group and its skill bindings; groups in it become top-level groups
    #[command(
        after_help = "Examples:\n  agentyard group delete engineering --dry-run\n  agentyard group delete engineering"
    )]
    Delete(GroupArgs),
    /// Move a group into another one; its members also get the parent's skills
    #[command(
        after_help = "Examples:\n  agentyard group move backend --parent engineering\n  agentyard group move backend --top-level --dry-run"
    )]
    Move(MoveArgs),
    /// Add users to a group
    #[command(after_help = "Examples:\n  agentyard group add engineering alice bob")]
    Add(UsersArgs),
    /// Remove users from a group
    #[command(
        after_help = "Examples:\n  agentyard group remove engineering alice --dry-run\n  agentyard group remove engineering alice"
    )]
    Remove(UsersArgs),
    /// Show the members and skills of a group
    #[command(
        after_help = "Examples:\n  agentyard group members engineering\n  agentyard group members engineering -o json | jq '.members[].username'"
    )]
    Members(MembersArgs),
}

/// A new group.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Name of the group
    name: String,
    /// Parent group
    #[arg(long, value_name = "GROUP")]
    parent: Option<String>,
    /// Description of the group
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

/// Which group.
#[derive(Debug, Args)]
pub struct GroupArgs {
    /// Name of the group
    name: String,
    #[command(flatten)]
    how: How,
}

/// Which group, and where to.
#[derive(Debug, Args)]
pub struct MoveArgs {
    /// Name of the group
    name: String,
    /// New parent group
    #[arg(long, value_name = "GROUP", required_unless_present = "top_level")]
    parent: Option<String>,
    /// Make it a top-level group
    #[arg(long, conflicts_with = "parent")]
    top_level: bool,
    #[command(flatten)]
    how: How,
}

/// Which users of which group.
#[derive(Debug, Args)]
pub struct UsersArgs {
    /// Name of the group
    group: String,
    /// Names of users
    #[arg(value_name = "USER", required = true)]
    users: Vec<String>,
    #[command(flatten)]
    how: How,
}

/// Which group, and how to print it.
#[derive(Debug, Args)]
pub struct MembersArgs {
    /// Name of the group
    name: String,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
}

/// Runs a command on groups.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn group(server: &Server, command: GroupCommand) -> Result {
    match command {
        GroupCommand::List(args) => {
            let pages = Pages::new(server, &GROUPS, &args.search);
            pages.print(args.output, |_| {}).await
        }
        GroupCommand::Create(args) => create(server, &args).await,
        GroupCommand::Delete(GroupArgs { name, how }) => {
            let body = json!({ "name": name });
            how.send(server, &format!("{PATH}/delete"), body).await
        }
        GroupCommand::Move(args) => {
            let body = json!({ "group_name": args.name, "parent_id": args.parent });
            args.how.send(server, &format!("{PATH}/move"), body).await
        }
        GroupCommand::Add(UsersArgs { group, users, how }) => {
            let body = json!({ "group_name": group, "usernames": users });
            let path = format!("{PATH}/members/add");
            how.send(server, &path, body).await
        }
        GroupCommand::Remove(args) => remove(server, &args).await,
        GroupCommand::Members(args) => members(server, &args).await,
    }
}

async fn create(server: &Server, args: &CreateArgs) -> Result {
    let body = json!({
        "name": args.name, "parent_id": args.parent, "description": args.description,
    });
    let answer = server.post(&format!("{PATH}/create"), &body).await?;
    screen::print(&format!("group {} created\n", cleaned(&answer, "name")))
}

/// Removes one user after the other; for the others, too, when one fails.
async fn remove(server: &Server, args: &UsersArgs) -> Result {
    let path = format!("{PATH}/members/remove");
    let mut failed = false;
    for user in &args.users {
        let body = json!({ "group_name": args.group, "username": user });
        match args.how.send(server, &path, body).await {
            Ok(()) => {}
            Err(failure) if args.users.len() == 1 => return Err(failure),
            Err(Failure::NotFound(why) | Failure::Failed(why)) => {
                screen::note(&format!("error: {user}: {why}"));
                failed = true;
            }
            Err(failure) => return Err(failure),
        }
    }
    match failed {
        true => Err(Failure::Reported),
        false => Ok(()),
    }
}

async fn members(server: &Server, args: &MembersArgs) -> Result {
    let path = format!("{PATH}/members?name={}", escaped(&args.name));
    let answer = server.get(&path).await?;
    let members = json!({
        "name": args.name, "members": listed(&answer), "skills": at(&answer, "skills"),
    });
    match args.output {
        Format::Json | Format::Yaml => print_one(&GROUP_MEMBERS, &members, args.output),
        Format::Table | Format::Wide | Format::Custom(_) | Format::Name => {
            let rows = at(&members, "members").as_array().cloned();
            let output = args.output.into();
            let mut printer = Printer::new(&GROUP_MEMBERS, output, Amount::List);
            printer.print(&rows.unwrap_or_default())?;
            printer.end()?;
            let skills = cleaned(&members, "skills");
            match (args.output, skills.as_str()) {
                (Format::Name, _) => Ok(()),
                (_, "") => screen::print("skills: none\n"),
                (_, skills) => screen::print(&format!("skills: {skills}\n")),
            }
        }
    }
}

/// Own members have no `via`.
fn listed(answer: &Value) -> Vec<Value> {
    let own = at(answer, "members").as_array().into_iter().flatten();
    let own = own.map(|name| json!({ "username": name, "via": null }));
    let inherited = at(answer, "inherited_members").as_array();
    let mut members: Vec<Value> = own
        .chain(inherited.into_iter().flatten().cloned())
        .collect();
    members.sort_by_key(|member| text(member, "username"));
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_and_inherited_members_are_one_list() {
        let answer = json!({"members": ["bob"], "inherited_members": [{"username": "alice", "via": "backend"}]});
        let expected = [
            json!({"username": "alice", "via": "backend"}),
            json!({"username": "bob", "via": null}),
        ];
        assert_eq!(listed(&answer), expected);
    }
}
