//! `agentyard rollout`.

mod follow;
mod start;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::admin::escaped;
use super::kinds::ROLLOUT_USERS;
use super::output::cell::{cleaned, number, plain, text};
use super::output::clean::clean;
use super::output::items::{Amount, Printer, print_one};
use super::output::{Format, screen};
use super::server::Server;
use super::{Failure, Result};

/// Moves of users from their images to another one.
#[derive(Debug, Subcommand)]
pub enum RolloutCommand {
    /// Start a rollout and show its progress
    #[command(
        after_help = "Examples:\n  agentyard rollout start v0.2.9 --all --max-unavailable 5\n  agentyard rollout start v0.2.9 --user alice --user bob --detach\n  agentyard rollout start v0.2.9 --from v0.2.8 --dry-run\n  agentyard rollout start v0.2.9 --from v0.2.8"
    )]
    Start(start::StartArgs),
    /// Show the progress of a rollout
    #[command(
        after_help = "Examples:\n  agentyard rollout status\n  agentyard rollout status --watch\n  agentyard rollout status -o json | jq .users"
    )]
    Status(StatusArgs),
    /// Pause a rollout: no further users are moved
    #[command(after_help = "Examples:\n  agentyard rollout pause")]
    Pause(ChangeArgs),
    /// Resume a rollout; failed users are retried
    #[command(
        after_help = "A rollout of a configuration or adapter change skips failed users instead.\n\nExamples:\n  agentyard rollout resume --watch"
    )]
    Resume(ChangeArgs),
    /// Return users to their previous images, even when the rollout is finished
    #[command(after_help = "Examples:\n  agentyard rollout rollback --watch")]
    Rollback(ChangeArgs),
    /// End a rollout now; users already moved stay on the new image
    #[command(after_help = "Examples:\n  agentyard rollout cancel")]
    Cancel(ChangeArgs),
}

/// Which rollout, and how to print it.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// ID of the rollout [default: the newest]
    id: Option<String>,
    /// Follow until the rollout ends or pauses
    #[arg(short, long, conflicts_with = "output")]
    watch: bool,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
}

/// Which rollout.
#[derive(Debug, Args)]
pub struct ChangeArgs {
    /// ID of the rollout [default: the newest unfinished; for rollback: the newest]
    id: Option<String>,
    /// Follow until the rollout ends or pauses
    #[arg(short, long)]
    watch: bool,
}

/// Runs a command on rollouts.
///
/// # Errors
/// When no server answers, it refuses, or a rollout that was followed did not reach its goal.
pub async fn rollout(server: &Server, command: RolloutCommand) -> Result {
    match command {
        RolloutCommand::Start(args) => start::start(server, args).await,
        RolloutCommand::Status(args) => status(server, args).await,
        RolloutCommand::Pause(args) => change(server, "pause", args).await,
        RolloutCommand::Resume(args) => change(server, "resume", args).await,
        RolloutCommand::Rollback(args) => change(server, "rollback", args).await,
        RolloutCommand::Cancel(args) => change(server, "cancel", args).await,
    }
}

/// One rollout with its users.
async fn one(server: &Server, id: &str) -> Result<Value> {
    let path = format!("/api/admin/images/rollouts/{}", escaped(id));
    let mut answer = server.get(&path).await?;
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
    let number = |key: &str| number(rollout, &format!("progress.{key}"));
    let (done, total, failed) = (number("done"), number("total"), number("failed"));
    let phase = cleaned(rollout, "phase");
    let text = format!("{phase}: {done} of {total} done, {failed} failed");
    match number("cancelled") {
        0 => text,
        cancelled => format!("{text}, {cancelled} cancelled"),
    }
}

/// The id as it is typed, or as `get rollouts -o name` prints it.
fn plain_id(id: &str) -> &str {
    id.strip_prefix("rollout/").unwrap_or(id)
}

/// The id that was given, or that of the newest rollout.
async fn chosen(server: &Server, id: Option<String>) -> Result<String> {
    if let Some(id) = id {
        return Ok(plain_id(&id).to_owned());
    }
    let path = "/api/admin/images/rollouts?page=1&page_size=1";
    let answer = server.get(path).await?;
    match answer.pointer("/rollouts/0/id") {
        Some(newest) => Ok(plain(newest)),
        None => Err(Failure::NotFound(format!(
            "no rollouts; `{} rollout start` starts one",
            server.command
        ))),
    }
}

async fn status(server: &Server, args: StatusArgs) -> Result {
    let id = chosen(server, args.id).await?;
    if args.watch {
        return follow::follow(server, &id).await.map(|_| ());
    }
    let rollout = one(server, &id).await?;
    match args.output {
        Format::Name => screen::print(&format!("rollout/{}\n", clean(&id))),
        Format::Json | Format::Yaml => print_one(&ROLLOUT_USERS, &rollout, args.output),
        Format::Table | Format::Wide | Format::Custom(_) => {
            screen::print(&head(&rollout))?;
            let mut users = rollout["users"].as_array().cloned().unwrap_or_default();
            for user in &mut users {
                let since = ["finished_at", "moved_at"].map(|key| user[key].clone());
                user["since"] = since.into_iter().find(|at| !at.is_null()).into();
            }
            let mut printer = Printer::new(&ROLLOUT_USERS, args.output.into(), Amount::List);
            printer.print(&users)?;
            printer.end()
        }
    }
}

/// What it is about and how far it is, in some lines.
fn head(rollout: &Value) -> String {
    let field = |key: &str| cleaned(rollout, key);
    let mut text = format!(
        "rollout/{}  {} to {}\n{}\n",
        field("id"),
        field("type"),
        field("reference"),
        progress(rollout),
    );
    let message = field("message");
    if !message.is_empty() {
        text += &format!("{message}\n");
    }
    text + "\n"
}

async fn change(server: &Server, verb: &str, args: ChangeArgs) -> Result {
    let path = format!("/api/admin/images/rollouts/{verb}");
    let mut body = json!({ "wait": 0 });
    if let Some(id) = &args.id {
        body["id"] = json!(plain_id(id));
    }
    // Without an id the server knows best which one can be meant.
    let answer = server.post(&path, &body).await?;
    let object = text(&answer, "object");
    let id = plain_id(&object);
    screen::print(&format!("rollout/{} {verb} requested\n", clean(id)))?;
    if args.watch {
        return follow::follow(server, id).await.map(|_| ());
    }
    Ok(())
}
