//! `agentyard executor`.

use clap::Subcommand;
use serde_json::json;

use super::output::cell::cleaned;
use super::output::screen;
use super::server::Server;
use super::{Failure, Result};

/// Connected browsers and desktops of users.
#[derive(Debug, Subcommand)]
pub enum ExecutorCommand {
    /// Disconnect executors; their calls in progress fail
    #[command(
        after_help = "An executor may connect again. To prevent that for a user, set `mode` to `off` in `mcp.policy`.\n\nExamples:\n  agentyard get executors --search alice\n  agentyard executor disconnect 17"
    )]
    Disconnect {
        /// IDs of connections, as listed by `agentyard get executors`
        #[arg(value_name = "ID", required = true, value_parser = id)]
        ids: Vec<u64>,
    },
}

/// `get executors -o name` prints `executor/17`.
fn id(text: &str) -> Result<u64, String> {
    let number = text.strip_prefix("executor/").unwrap_or(text);
    number
        .parse()
        .map_err(|_| "use the number that `agentyard get executors` shows".to_owned())
}

/// Runs a command on executors.
///
/// # Errors
/// When no server answers, or one is not connected; the others are disconnected all the same.
pub async fn executor(server: &Server, command: ExecutorCommand) -> Result {
    let ExecutorCommand::Disconnect { ids } = command;
    let mut failed = false;
    for id in &ids {
        let path = "/api/admin/executors/disconnect";
        match server.post(path, &json!({ "id": id })).await {
            Ok(answer) => screen::print(&format!("{}\n", cleaned(&answer, "message")))?,
            Err(failure) if ids.len() == 1 => return Err(failure),
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
