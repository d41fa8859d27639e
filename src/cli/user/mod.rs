//! `agentyard user`.

mod change;
mod create;
pub(super) mod credentials;
mod file;
mod limits;
mod sessions;

use clap::{Args, Subcommand};
use schema::user::Role;
use serde_json::json;

use super::Result;
use super::effect::How;
use super::output::clean::clean;
use super::output::screen;
use super::reset_password::{self, ResetArgs};
use super::server::Server;

const CREATE_HELP: &str = "\
Generated passwords are shown once: as CSV on standard output, or in the file of --passwords. Invalid lines of FILE are \
listed with their numbers, and no user is created. A user that the server refuses, such as an existing one, does not stop \
the creation of the rest. A FILE with more columns than names begins with a header; groups are separated by semicolons:

  username,password,image,groups
  alice,,,engineering;design
  bob,correct horse battery,1.2.3,

Examples:
  agentyard user create alice bob --group engineering
  agentyard user create alice --password - < password.txt
  agentyard user create -f team.csv --passwords passwords.csv
  cut -d: -f1 names.txt | agentyard user create -f - --detach";

/// Users and what belongs to them.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Create local users
    #[command(after_help = CREATE_HELP)]
    Create(create::CreateArgs),
    /// Delete users; their directories are archived
    #[command(
        after_help = "Examples:\n  agentyard user delete alice --dry-run\n  agentyard user delete alice bob --yes"
    )]
    Delete(change::DeleteArgs),
    /// Prevent users from signing in, end their sessions and stop their containers
    #[command(after_help = "Examples:\n  agentyard user disable alice bob")]
    Disable(change::NamesArgs),
    /// Allow users to sign in again; their containers return to the desired state
    #[command(after_help = "Examples:\n  agentyard user enable alice bob")]
    Enable(change::NamesArgs),
    /// Show or set the limits of a user's container
    #[command(
        after_help = "Limits without an option stay. Setting a limit recreates the container.\n\nExamples:\n  agentyard user limits alice\n  agentyard user limits alice --cpu 1.5 --memory 2GiB\n  agentyard user limits alice --cpu default"
    )]
    Limits(limits::LimitsArgs),
    /// List or end the sessions of a user or superadmin
    #[command(
        after_help = "Examples:\n  agentyard user sessions alice\n  agentyard user sessions alice --end"
    )]
    Sessions(sessions::SessionsArgs),
    /// Set a new password for a local user; ends the user's sessions
    #[command(
        after_help = "`agentyard reset-password` does the same, also without a server.\n\nExamples:\n  agentyard user reset-password alice\n  agentyard user reset-password alice --random"
    )]
    ResetPassword(ResetArgs),
    /// Rotate the MCP token of a user's agent, browsers and desktops
    #[command(subcommand)]
    Token(TokenCommand),
}

/// MCP tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Rotate a user's MCP token; ends all connections that were opened with it
    #[command(
        after_help = "The new token is written to the agent's files, and the agent restarts. The user must enter it in desktop clients and other programs; only the user can read it (GET /api/mcp/token).\n\nExamples:\n  agentyard user token rotate alice\n  agentyard user token rotate alice --detach"
    )]
    Rotate(RotateArgs),
}

/// User of a token.
#[derive(Debug, Args)]
pub struct RotateArgs {
    /// Name of the user
    #[arg(value_name = "USER")]
    name: String,
    /// Return immediately
    #[arg(short, long)]
    detach: bool,
}

/// Runs a command on users.
///
/// # Errors
/// When no server answers, it refuses, or a user needs manual action.
pub async fn user(server: &Server, command: UserCommand) -> Result {
    match command {
        UserCommand::Create(args) => create::create(server, args).await,
        UserCommand::Delete(args) => change::delete(server, &args).await,
        UserCommand::Disable(args) => change::change(server, &change::DISABLE, &args).await,
        UserCommand::Enable(args) => change::change(server, &change::ENABLE, &args).await,
        UserCommand::Limits(args) => limits::limits(server, args).await,
        UserCommand::Sessions(args) => sessions::sessions(server, &args).await,
        UserCommand::ResetPassword(args) => {
            reset_password::reset_by_server(server, args, Role::User).await
        }
        UserCommand::Token(TokenCommand::Rotate(args)) => rotate(server, args).await,
    }
}

async fn rotate(server: &Server, RotateArgs { name, detach }: RotateArgs) -> Result {
    // Answered at once, so that what has ended already is said even if the rest fails.
    let body = json!({ "username": name, "wait": 0 });
    let path = "/api/admin/users/mcp-token/rotate";
    let answer = server.post(path, &body).await?;
    screen::print(&format!(
        "MCP token of {} rotated: the previous one is no longer valid, and MCP clients, browsers and desktops that use it \
         are being disconnected; desktop clients need the new one, which only the user can read (GET /api/mcp/token)\n",
        clean(&name)
    ))?;
    let how = How {
        dry_run: false,
        detach,
    };
    how.report(server, &answer).await
}
