//! `agentyard rollout start`.

use std::time::Duration;

use clap::Args;
use schema::image::ImageReference;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::follow::{self, Goal};
use crate::cli::output::cell::{cleaned, counted, number, text};
use crate::cli::output::clean::clean;
use crate::cli::output::screen;
use crate::cli::server::Server;
use crate::cli::target::duration;
use crate::cli::{Failure, Result};

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
    /// Maximum time for a new container to become ready, such as 90s or 5m
    #[arg(long, value_name = "DURATION", default_value = "120s", value_parser = duration)]
    health_timeout: Duration,
    /// Time for which the new container must stay ready before its user counts as moved [default: container.min_ready]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    min_ready: Option<Duration>,
    /// Make the image the default of new users once all users are moved
    #[arg(long, requires = "all", conflicts_with = "detach")]
    set_default: bool,
    /// Return immediately
    #[arg(short, long)]
    detach: bool,
    /// Maximum time to wait for the end; the rollout goes on, and the command exits 124
    #[arg(long, value_name = "DURATION", conflicts_with_all = ["detach", "dry_run", "set_default"], value_parser = duration)]
    timeout: Option<Duration>,
    /// Show the users that the rollout would move, without starting it
    #[arg(long, conflicts_with_all = ["detach", "set_default"])]
    dry_run: bool,
}

impl StartArgs {
    fn request(&self) -> (&'static str, Value) {
        let mut body = json!({
            "max_unavailable": self.max_unavailable,
            "pause_on_failure": !self.no_pause_on_failure,
            "health_timeout": format!("{}s", self.health_timeout.as_secs()),
        });
        if let Some(min_ready) = self.min_ready {
            body["min_ready"] = json!(format!("{}s", min_ready.as_secs()));
        }
        if self.dry_run {
            body["dry_run"] = json!(true);
        }
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

/// The settings that give new users an image.
///
/// # Errors
/// When no tag names it.
fn parse_default_image(image: &str) -> Result<Value> {
    let image = image.trim();
    // As the server tells a tag from a reference.
    if !image.contains(['/', ':', '@']) {
        return Ok(json!({ "image.tag": image }));
    }
    let refused = || {
        let why = "--set-default sets image.name and image.tag, which name no digest";
        Failure::Usage(format!("{image:?}: {why}; give the image by a tag"))
    };
    let reference: ImageReference = image.parse().map_err(|_| refused())?;
    match (reference.tag(), reference.digest()) {
        (Some(tag), None) => Ok(json!({ "image.name": reference.name(), "image.tag": tag })),
        _ => Err(refused()),
    }
}

/// Starts a rollout and follows it.
///
/// # Errors
/// When no server answers, it refuses, or the rollout does not get to its goal.
pub async fn start(server: &Server, args: StartArgs) -> Result {
    let default = match args.set_default {
        true => Some(parse_default_image(&args.image)?),
        false => None,
    };
    let (path, body) = args.request();
    let answer = server.post(path, &body).await?;
    if args.dry_run {
        screen::print(&describe_plan(&answer))?;
        return print_warnings(&answer);
    }
    let id = text(&answer, "task_id");
    let (shown, users) = (clean(&id), counted(number(&answer, "total"), "user"));
    screen::print(&format!("rollout/{shown} started: {users}\n"))?;
    if args.detach {
        screen::note(&format!(
            "`{} rollout status {shown} --watch` shows its progress",
            server.command
        ));
        return print_warnings(&answer);
    }
    if default.is_none() {
        print_warnings(&answer)?;
    }
    let limit = args.timeout.unwrap_or(Duration::MAX);
    let end = timeout(limit, follow::follow(server, &id)).await;
    let end = end.map_err(|_| {
        Failure::TimedOut(format!(
            "rollout/{shown} has not ended within {}; `{} rollout status {shown}` shows it",
            humantime::format_duration(limit),
            server.command
        ))
    })??;
    let Some(default) = default else {
        return Ok(());
    };
    if end != Goal::Moved {
        let why = "the rollout was rolled back; image.name and image.tag stay as they are";
        return Err(Failure::Failed(why.to_owned()));
    }
    let body = json!({ "config": default.to_string() });
    let saved = server.post("/api/config", &body).await?;
    let changed = match cleaned(&saved, "changed").as_str() {
        "" => "nothing to change".to_owned(),
        changed => format!("changed {changed}"),
    };
    screen::print(&format!("new users get this image, too: {changed}\n"))
}

/// Whom a rollout would move, and whom not.
fn describe_plan(answer: &Value) -> String {
    let line = |what: &str, count: &str, names: &str| {
        let users = counted(number(answer, count), "user");
        match names.is_empty() {
            true => format!("{what}: {users}\n"),
            false => format!("{what}: {users} ({names})\n"),
        }
    };
    let mut text = line("would move", "moves", &cleaned(answer, "users"));
    let restarts = counted(number(answer, "restarts"), "container");
    text.push_str(&format!("would recreate: {restarts}\n"));
    let skipped = answer["skipped"].as_array().into_iter().flatten();
    let skipped: Vec<String> = skipped
        .map(|user| {
            format!(
                "  {}: {}\n",
                cleaned(user, "username"),
                cleaned(user, "reason")
            )
        })
        .collect();
    if !skipped.is_empty() {
        text.push_str(&line("unchanged", "skipped_total", ""));
        text.extend(skipped);
    }
    text
}

/// Prints what the rollout leaves as it is.
fn print_warnings(answer: &Value) -> Result {
    let warnings = answer["warnings"].as_array().into_iter().flatten();
    for warning in warnings.filter_map(Value::as_str) {
        screen::note(&format!("warning: {}", clean(warning)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_names_users_who_move_and_who_stay() {
        let answer = json!({
            "moves": 2, "users": ["alice", "bob"], "restarts": 1, "skipped_total": 1,
            "skipped": [{"username": "carol", "code": "has_image", "reason": "has it"}],
        });
        let expected = "would move: 2 users (alice, bob)\nwould recreate: 1 container\nunchanged: 1 user\n  carol: has it\n";
        assert_eq!(describe_plan(&answer), expected);
    }

    #[test]
    fn default_image_is_a_tag_or_a_tagged_reference() {
        assert_eq!(
            parse_default_image("v2").unwrap(),
            json!({"image.tag": "v2"})
        );
        let both = json!({"image.name": "r.example:5000/a", "image.tag": "v2"});
        assert_eq!(parse_default_image("r.example:5000/a:v2").unwrap(), both);
        let digest = format!("r.example/a@sha256:{}", "0".repeat(64));
        for refused in [&*digest, "A/b:c:d"] {
            let error = parse_default_image(refused).unwrap_err();
            assert!(error.to_string().contains("by a tag"), "{error}");
        }
    }
}
