//! `agentyard user sessions`.

use clap::Args;
use serde_json::{Value, json};

use crate::cli::Result;
use crate::cli::admin::escaped;
use crate::cli::kinds::SESSIONS;
use crate::cli::output::cell::{cleaned, counted, number};
use crate::cli::output::items::{Amount, Printer};
use crate::cli::output::{OutputArgs, screen};
use crate::cli::server::Server;
use crate::cli::target::bare_name;

const PATH: &str = "/api/admin/users/sessions";

/// Sessions of an account.
#[derive(Debug, Args)]
pub struct SessionsArgs {
    /// Name of a user or superadmin
    #[arg(value_name = "NAME", value_parser = bare_name)]
    name: String,
    /// End all sessions
    #[arg(long)]
    end: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Lists or ends the sessions of an account.
///
/// # Errors
/// There is no such account, no server answers, or it refuses.
pub async fn sessions(server: &Server, args: &SessionsArgs) -> Result {
    if args.end {
        let body = json!({ "username": args.name });
        let answer = server.post(&format!("{PATH}/revoke"), &body).await?;
        let ended = counted(number(&answer, "ended"), "session");
        let name = cleaned(&answer, "username");
        return screen::print(&format!("{ended} of {name} ended\n"));
    }
    let path = format!("{PATH}?username={}", escaped(&args.name));
    let mut answer = server.get(&path).await?;
    let sessions = answer.get_mut("sessions").map(Value::take);
    let sessions = match sessions {
        Some(Value::Array(sessions)) => sessions,
        _ => Vec::new(),
    };
    let mut printer = Printer::new(&SESSIONS, args.output, Amount::List);
    printer.print(&sessions)?;
    printer.end()
}
