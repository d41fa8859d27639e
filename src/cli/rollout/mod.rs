//! `agentyard rollout`.

mod follow;
mod start;

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use super::kinds::ROLLOUT_USERS;
use super::output::cell::plain;
use super::output::clean::clean;
use super::output::items::{Amount, Printer};
use super::output::{Format, screen};
use super::server::Server;
use super::{Failure, admin};

/// Moves of users from their images to another one.
#[derive(Debug, Subcommand)]
pub enum RolloutCommand {
    /// Begin to move users to another image, and show how far it is
    #[command(
        after_help = "Examples:\n  agentyard rollout start v0.2.9 --all --max-unavailable 5\n  agentyard rollout start v0.2.9 --user alice --user bob --detach\n  agentyard rollout start v0.2.9 --from v0.2.8"
    )]
    Start(start::StartArgs),
    /// Tell how far a rollout is; the newest without an id
    #[command(
        after_help = "Examples:\n  agentyard rollout status\n  agentyard rollout status --watch\n  agentyard rollout status -o json | jq .users"
    )]
    Status(StatusArgs),
    /// Move nobody more until it is resumed
    #[command(after_help = "Examples:\n  agentyard rollout pause")]
    Pause(ChangeArgs),
    /// Go on; the image is pulled once more, and whoever failed gets another turn
    #[command(after_help = "Examples:\n  agentyard rollout resume --watch")]
    Resume(ChangeArgs),
    /// Give everybody the image of before, also after the end
    #[command(after_help = "Examples:\n  agentyard rollout rollback --watch")]
    Rollback(ChangeArgs),
    /// Move nobody more, and end it
    #[command(after_help = "Examples:\n  agentyard rollout cancel")]
    Cancel(ChangeArgs),
}

/// Which rollout, and how to print it.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Its id; the newest without it
    id: Option<String>,
    /// Show changes until it ends or pauses
    #[arg(short, long, conflicts_with = "output")]
    watch: bool,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// Which rollout.
#[derive(Debug, Args)]
pub struct ChangeArgs {
    /// Its id; without it the newest that has not ended, and for a rollback the newest of all
    id: Option<String>,
    /// Show changes until it ends or pauses
    #[arg(short, long)]
    watch: bool,
}

/// Starts, tells or changes.
///
/// # Errors
/// When no server answers, it refuses, or a rollout that was followed did not get to its goal.
pub async fn rollout(server: &Server, command: RolloutCommand) -> Result<(), Failure> {
    match command {
        RolloutCommand::Start(args) => start::start(server, args).await,
        RolloutCommand::Status(args) => status(server, args).await,
        RolloutCommand::Pause(args) => change(server, "pause", "is paused", args).await,
        RolloutCommand::Resume(args) => change(server, "resume", "goes on", args).await,
        RolloutCommand::Rollback(args) => change(server, "rollback", "is rolled back", args).await,
        RolloutCommand::Cancel(args) => change(server, "cancel", "is cancelled", args).await,
    }
}

/// One rollout with its users.
async fn one(server: &Server, id: &str) -> Result<Value, Failure> {
    let path = format!("/api/admin/images/rollouts/{}", admin::escaped(id));
    let mut answer = admin::get(&server.settings, &path).await?;
    let users = answer.get_mut("users").map(Value::take);
    match answer.get_mut("rollout").map(Value::take) {
        Some(Value::Object(mut rollout)) => {
            rollout.insert("users".to_owned(), users.unwrap_or_default());
            Ok(Value::Object(rollout))
        }
        _ => Err(Failure::Failed(
            "the server's answer has no rollout; it may be of another version".to_owned(),
        )),
    }
}

/// How far it is, in one line: `rolling: 3 of 20 done, 0 failed`.
fn progress(rollout: &Value) -> String {
    let number = |key: &str| rollout.pointer(&format!("/progress/{key}")).map(plain);
    let number = |key: &str| number(key).unwrap_or_default();
    let phase = clean(&rollout.get("phase").map(plain).unwrap_or_default());
    let (done, total, failed) = (number("done"), number("total"), number("failed"));
    format!("{phase}: {done} of {total} done, {failed} failed")
}

/// The id that was given, or that of the newest rollout.
async fn chosen(server: &Server, id: Option<String>) -> Result<String, Failure> {
    if let Some(id) = id {
        // As `get rollouts -o name` prints it.
        return Ok(id.strip_prefix("rollout/").unwrap_or(&id).to_owned());
    }
    let path = "/api/admin/images/rollouts?page=1&page_size=1";
    let answer = admin::get(&server.settings, path).await?;
    let newest = answer.pointer("/rollouts/0/id").map(plain);
    newest.ok_or_else(|| {
        Failure::NotFound(format!(
            "there never was a rollout; `{} rollout start` begins one",
            server.command
        ))
    })
}

async fn status(server: &Server, args: StatusArgs) -> Result<(), Failure> {
    let id = chosen(server, args.id).await?;
    if args.watch {
        return follow::follow(server, &id).await;
    }
    let rollout = one(server, &id).await?;
    match args.output {
        Format::Name => screen::print(&format!("rollout/{}\n", clean(&id))),
        Format::Json | Format::Yaml => {
            let mut printer = Printer::new(&ROLLOUT_USERS, args.output, Amount::One, true);
            printer.print(std::slice::from_ref(&rollout))?;
            printer.end()
        }
        Format::Table | Format::Wide => {
            screen::print(&head(&rollout))?;
            let users = rollout.get("users").and_then(Value::as_array);
            let users = users.map(Vec::as_slice).unwrap_or_default();
            let mut printer = Printer::new(&ROLLOUT_USERS, args.output, Amount::List, true);
            printer.print(users)?;
            printer.end()
        }
    }
}

/// What it is about and how far it is, in some lines.
fn head(rollout: &Value) -> String {
    let field = |key: &str| clean(&rollout.get(key).map(plain).unwrap_or_default());
    let mut text = format!(
        "rollout/{}  {} to {}\n{}\n",
        field("id"),
        field("type"),
        field("reference"),
        progress(rollout),
    );
    let message = field("message");
    if !message.is_empty() {
        text.push_str(&message);
        text.push('\n');
    }
    text.push('\n');
    text
}

async fn change(server: &Server, verb: &str, done: &str, args: ChangeArgs) -> Result<(), Failure> {
    let path = format!("/api/admin/images/rollouts/{verb}");
    let mut body = json!({ "wait": 0 });
    if let Some(id) = args.id {
        body["id"] = json!(id.strip_prefix("rollout/").unwrap_or(&id));
    }
    // Without an id the server knows best which one can be meant.
    let answer = admin::json(&server.settings, Method::POST, &path, Some(&body)).await?;
    let object = answer.get("object").map(plain).unwrap_or_default();
    let id = chosen(server, Some(object)).await?;
    screen::print(&format!("rollout/{} {done}\n", clean(&id)))?;
    if args.watch {
        return follow::follow(server, &id).await;
    }
    Ok(())
}
