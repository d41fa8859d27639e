//! `agentyard config apply`.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::cli::admin::escaped;
use crate::cli::output::cell::{at, cleaned, counted, number, text};
use crate::cli::output::clean::clean;
use crate::cli::output::screen;
use crate::cli::server::Server;
use crate::cli::{Failure, Result};

/// Time between two reads of a task's progress.
const POLL: Duration = Duration::from_millis(500);

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
    follow(server, &task).await
}

/// Shows a task's progress until it has ended.
async fn follow(server: &Server, task: &str) -> Result {
    let path = format!("/api/admin/task/status?task_id={}", escaped(task));
    let mut shown = String::new();
    loop {
        let status = server.get(&path).await?;
        let message = cleaned(&status, "message");
        let ended = !at(&status, "finished_at").is_null();
        if ended && number(&status, "failed") > 0 {
            return Err(Failure::Failed(format!(
                "{message}\n`{} get task {} -o yaml` shows which users failed",
                server.command,
                clean(task)
            )));
        }
        if message != shown {
            screen::print(&format!("{message}\n"))?;
            shown = message;
        }
        if ended {
            return Ok(());
        }
        tokio::time::sleep(POLL).await;
    }
}
