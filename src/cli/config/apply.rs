//! `agentyard config apply`.

use std::time::Duration;

use clap::Args;
use http::Method;
use serde_json::{Value, json};

use crate::cli::output::cell::plain;
use crate::cli::output::clean::clean;
use crate::cli::output::screen;
use crate::cli::server::Server;
use crate::cli::{Failure, admin};

/// How often it is looked how far a task is.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Whose files.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// One user; without it, everybody
    #[arg(value_name = "USER")]
    user: Option<String>,
    /// Do not show how far it is
    #[arg(short, long)]
    detach: bool,
}

/// Has the files looked at, and waits for that.
///
/// # Errors
/// When no server answers, it refuses, or somebody's files cannot be brought to what is configured.
pub async fn apply(server: &Server, args: &ApplyArgs) -> Result<(), Failure> {
    let mut body = json!({});
    if let Some(user) = &args.user {
        body["username"] = json!(user);
    }
    if args.detach {
        body["wait"] = json!(0);
    }
    let path = "/api/admin/config/apply";
    let answer = admin::json(&server.settings, Method::POST, path, Some(&body)).await?;
    let field = |key: &str| clean(&answer.get(key).map(plain).unwrap_or_default());
    let Some(task) = answer.get("task_id").map(plain) else {
        return screen::print(&format!("{}\n", field("message")));
    };
    let (total, shown) = (field("total"), clean(&task));
    screen::print(&format!("task/{shown} begins with {total} users\n"))?;
    if args.detach {
        screen::note(&format!(
            "`{} get task {shown}` shows how far it is",
            server.command
        ));
        return Ok(());
    }
    follow(server, &task).await
}

/// Tells how far a task is until it has ended.
async fn follow(server: &Server, task: &str) -> Result<(), Failure> {
    let path = format!("/api/admin/task/status?task_id={}", admin::escaped(task));
    let mut told = String::new();
    loop {
        let status = admin::get(&server.settings, &path).await?;
        let message = clean(&status.get("message").map(plain).unwrap_or_default());
        let ended = status.get("finished_at").is_some_and(|at| !at.is_null());
        let failed = status.get("failed").and_then(Value::as_u64).unwrap_or(0);
        if ended && failed > 0 {
            return Err(Failure::Failed(format!(
                "{message}\n`{} get task {} -o yaml` tells of whom",
                server.command,
                clean(task)
            )));
        }
        if message != told {
            screen::print(&format!("{message}\n"))?;
            told = message;
        }
        if ended {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
