//! `agentyard rollout start`.

use clap::Args;
use http::Method;
use serde_json::{Map, Value, json};

use super::follow;
use crate::cli::output::cell::plain;
use crate::cli::output::clean::clean;
use crate::cli::output::screen;
use crate::cli::server::Server;
use crate::cli::{Failure, admin};

/// Whom to move, to what, and how.
#[derive(Debug, Args)]
pub struct StartArgs {
    /// The new image: a tag of the configured repository, or a reference
    #[arg(value_name = "IMAGE")]
    image: String,
    /// Only this user; may be repeated
    #[arg(long = "user", value_name = "NAME", required_unless_present_any = ["all", "from"])]
    users: Vec<String>,
    /// Everybody
    #[arg(long, conflicts_with_all = ["users", "from"])]
    all: bool,
    /// Everybody who has this image; the new one is pulled only if it is missing
    #[arg(long, value_name = "IMAGE")]
    from: Option<String>,
    /// How many users may be under way at once
    #[arg(long, value_name = "N", default_value_t = 1)]
    max_unavailable: u32,
    /// Go on with the others when somebody does not become ready
    #[arg(long)]
    no_pause_on_failure: bool,
    /// How long a user's new container may take to become ready, such as 90s or 5m
    #[arg(long, value_name = "DURATION", default_value = "120s")]
    health_timeout: humantime::Duration,
    /// Do not show how far it is
    #[arg(short, long)]
    detach: bool,
}

impl StartArgs {
    fn request(&self) -> (&'static str, Value) {
        let mut body = Map::new();
        body.insert("max_unavailable".into(), json!(self.max_unavailable));
        let pause = json!(!self.no_pause_on_failure);
        body.insert("pause_on_failure".into(), pause);
        let limit = format!("{}s", self.health_timeout.as_secs());
        body.insert("health_timeout".into(), json!(limit));
        if self.all {
            body.insert("all".into(), json!(true));
        } else if !self.users.is_empty() {
            body.insert("users".into(), json!(self.users.join("\n")));
        }
        let path = match &self.from {
            Some(from) => {
                body.insert("image".into(), json!(from));
                body.insert("target".into(), json!(self.image));
                "/api/admin/images/migrate"
            }
            None => {
                body.insert("tag".into(), json!(self.image));
                "/api/admin/images/upgrade"
            }
        };
        (path, Value::Object(body))
    }
}

/// Begins a rollout and follows it.
///
/// # Errors
/// When no server answers, it refuses, or the rollout does not get to its goal.
pub async fn start(server: &Server, args: StartArgs) -> Result<(), Failure> {
    let (path, body) = args.request();
    let answer = admin::json(&server.settings, Method::POST, path, Some(&body)).await?;
    let id = answer.get("task_id").map(plain).unwrap_or_default();
    let total = answer.get("total").map(plain).unwrap_or_default();
    let id_shown = clean(&id);
    screen::print(&format!("rollout/{id_shown} begins with {total} users\n"))?;
    if args.detach {
        screen::note(&format!(
            "`{} rollout status {id_shown} --watch` shows how far it is",
            server.command
        ));
        return Ok(());
    }
    follow::follow(server, &id).await
}
