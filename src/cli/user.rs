//! `agentyard user`.

use clap::{Args, Subcommand};
use serde_json::json;

use super::Result;
use super::effect::How;
use super::output::clean::clean;
use super::output::screen;
use super::server::Server;

/// What belongs to one user.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// MCP token, with which agent, browser and desktop reach the server
    #[command(subcommand)]
    Token(TokenCommand),
}

/// MCP tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Rotate a user's MCP token; ends all connections that were opened with it
    #[command(
        after_help = "The agent's files get the new token, and the agent restarts. Desktop clients and other programs need to be given it: only the user can read it (GET /api/mcp/token).\n\nExamples:\n  agentyard user token rotate alice\n  agentyard user token rotate alice --detach"
    )]
    Rotate(RotateArgs),
}

/// Whose token.
#[derive(Debug, Args)]
pub struct RotateArgs {
    /// Name of the user
    #[arg(value_name = "USER")]
    name: String,
    /// Return immediately
    #[arg(short, long)]
    detach: bool,
}

/// Runs a command on a user.
///
/// # Errors
/// When no server answers, it refuses, or the agent's files need manual action.
pub async fn user(server: &Server, command: UserCommand) -> Result {
    let UserCommand::Token(TokenCommand::Rotate(RotateArgs { name, detach })) = command;
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
