//! `agentyard config apply`.

use clap::Args;
use serde_json::json;

use crate::cli::Result;
use crate::cli::follow;
use crate::cli::output::cell::{cleaned, counted, number, text};
use crate::cli::output::clean::clean;
use crate::cli::output::screen;
use crate::cli::server::Server;

/// Whose files.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// User whose files to write [default: all users]
    #[arg(value_name = "USER")]
    user: Option<String>,
    /// Return immediately
    #[arg(short, long)]
    detach: bool,
}

/// Has the configuration written to agents' files, and waits for that.
///
/// # Errors
/// When no server answers, it refuses, or the files of a user cannot be written.
pub async fn apply(server: &Server, args: &ApplyArgs) -> Result {
    let mut body = json!({});
    if let Some(user) = &args.user {
        body["username"] = json!(user);
    }
    if args.detach {
        body["wait"] = json!(0);
    }
    let answer = server.post("/api/admin/config/apply", &body).await?;
    let task = text(&answer, "task_id");
    if task.is_empty() {
        return screen::print(&format!("{}\n", cleaned(&answer, "message")));
    }
    let (shown, users) = (clean(&task), counted(number(&answer, "total"), "user"));
    screen::print(&format!("task/{shown} started: {users}\n"))?;
    if args.detach {
        screen::note(&format!(
            "`{} get task {shown}` shows its progress",
            server.command
        ));
        return Ok(());
    }
    follow::task(server, &task).await
}
