//! `agentyard api-token`.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::kinds::API_TOKENS;
use super::output::cell::{cleaned, text};
use super::output::clean::clean;
use super::output::screen;
use super::pages::{ListArgs, Pages};
use super::server::Server;
use super::{Failure, Result};

const PATH: &str = "/api/admin/api-tokens";

/// Tokens with which programs use the API.
#[derive(Debug, Subcommand)]
pub enum ApiTokenCommand {
    /// Create a token and print it; it is shown only once
    #[command(
        after_help = "Standard output has the token only. Use it with `agentyard login URL --token -`, with AGENTYARD_URL and AGENTYARD_TOKEN_FILE, or in the header `Authorization: Bearer`.\n\nExamples:\n  agentyard api-token create nightly --role read --expires 90d\n  (umask 077; agentyard api-token create ci --role admin > ci.token)"
    )]
    Create(CreateArgs),
    /// List tokens with their roles, expiry and last use
    #[command(
        after_help = "Examples:\n  agentyard api-token list\n  agentyard api-token list -o json | jq -r '.[] | select(.expired).name'"
    )]
    List(ListArgs),
    /// Revoke tokens; their event streams end within 15 seconds
    #[command(after_help = "Examples:\n  agentyard api-token revoke nightly")]
    Revoke {
        /// Names of the tokens
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
}

/// A new token.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Name of the token
    name: String,
    /// Permissions of the token
    #[arg(long, value_enum)]
    role: Role,
    /// Time until the token expires, at most 366d
    #[arg(long, value_name = "DURATION", default_value = "90d")]
    expires: String,
}

/// Rights of a token.
#[derive(Debug, Clone, Copy, ValueEnum, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Role {
    /// Read and write
    Admin,
    /// Read only
    Read,
}

/// Runs a command on API tokens.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn api_token(server: &Server, command: ApiTokenCommand) -> Result {
    match command {
        ApiTokenCommand::Create(args) => create(server, &args).await,
        ApiTokenCommand::List(args) => {
            let pages = Pages::new(server, &API_TOKENS, &args.search);
            pages.print(args.output, |_| {}).await
        }
        ApiTokenCommand::Revoke { names } => revoke(server, &names).await,
    }
}

async fn create(server: &Server, args: &CreateArgs) -> Result {
    let body = json!({
        "name": args.name, "role": args.role.to_string(), "expires_in": args.expires,
    });
    let answer = server.post(&format!("{PATH}/create"), &body).await?;
    screen::note(&format!(
        "API token {} (role {}) is valid until {}; it is shown only once:",
        cleaned(&answer, "name"),
        cleaned(&answer, "role"),
        cleaned(&answer, "expires_at"),
    ));
    screen::print(&format!("{}\n", clean(&text(&answer, "token"))))
}

/// Revokes one token after the other; a failure does not stop the rest.
async fn revoke(server: &Server, names: &[String]) -> Result {
    let path = format!("{PATH}/revoke");
    let mut failed = false;
    for name in names {
        match server.post(&path, &json!({ "name": name })).await {
            Ok(answer) => screen::print(&format!("{}\n", cleaned(&answer, "message")))?,
            Err(failure) if names.len() == 1 => return Err(failure),
            Err(Failure::NotFound(why) | Failure::Failed(why)) => {
                screen::note(&format!("error: {why}"));
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
