//! `agentyard rollout start`.

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::follow;
use crate::cli::Result;
use crate::cli::output::cell::{counted, number, text};
use crate::cli::output::clean::clean;
use crate::cli::output::screen;
use crate::cli::server::Server;
use crate::cli::target::duration;

/// Whom to move, to what, and how.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// New image: a tag of the configured repository, or a reference
    #[arg(value_name = "IMAGE")]
    image: String,
    /// Move this user (repeatable)
    #[arg(long = "user", value_name = "NAME", required_unless_present_any = ["all", "from"])]
    users: Vec<String>,
    /// Move all users
    #[arg(long, conflicts_with_all = ["users", "from"])]
    all: bool,
    /// Move all users of this image; the new image is pulled only if it is missing
    #[arg(long, value_name = "IMAGE")]
    from: Option<String>,
    /// Maximum users moving at once
    #[arg(long, value_name = "N", default_value_t = 1)]
    max_unavailable: u32,
    /// Continue after failures instead of pausing
    #[arg(long)]
    no_pause_on_failure: bool,
    /// Maximum time for a user's new container to become ready, such as 90s or 5m
    #[arg(long, value_name = "DURATION", default_value = "120s", value_parser = duration)]
    health_timeout: Duration,
    /// Return immediately
    #[arg(short, long)]
    detach: bool,
}

impl StartArgs {
    fn request(&self) -> (&'static str, Value) {
        let mut body = json!({
            "max_unavailable": self.max_unavailable,
            "pause_on_failure": !self.no_pause_on_failure,
            "health_timeout": format!("{}s", self.health_timeout.as_secs()),
        });
        if self.all {
            body["all"] = json!(true);
        } else if !self.users.is_empty() {
            body["users"] = json!(self.users.join("\n"));
        }
        let Some(from) = &self.from else {
            body["tag"] = json!(self.image);
            return ("/api/admin/images/upgrade", body);
        };
        body["image"] = json!(from);
        body["target"] = json!(self.image);
        ("/api/admin/images/migrate", body)
    }
}

/// Starts a rollout and follows it.
///
/// # Errors
/// When no server answers, it refuses, or the rollout does not get to its goal.
pub async fn start(server: &Server, args: StartArgs) -> Result {
    let (path, body) = args.request();
    let answer = server.post(path, &body).await?;
    let id = text(&answer, "task_id");
    let (shown, users) = (clean(&id), counted(number(&answer, "total"), "user"));
    screen::print(&format!("rollout/{shown} started: {users}\n"))?;
    if args.detach {
        screen::note(&format!(
            "`{} rollout status {shown} --watch` shows its progress",
            server.command
        ));
        return Ok(());
    }
    follow::follow(server, &id).await
}
