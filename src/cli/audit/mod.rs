//! `agentyard audit`.

mod fold;

use std::time::Duration;

use clap::{Args, Subcommand};
use reqwest::{Method, StatusCode};
use schema::clock::{Clock, SystemClock};
use serde_json::Value;

use self::fold::Folder;
use super::admin::escaped;
use super::kinds::AUDIT;
use super::output::cell::{at, number, text};
use super::output::items::{Amount, Printer};
use super::output::{Format, OutputArgs, screen};
use super::pages::{Pages, not_known};
use super::server::Server;
use super::target::{Thing, duration};
use super::{Failure, Result};

/// The audit trail.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List entries, newest first
    #[command(
        after_help = "The table combines entries of one request, and the same action of one actor within a minute, into one row; COUNT is the number of entries. -o wide, json and yaml show each entry with its details.\n\nExamples:\n  agentyard audit list --since 1h\n  agentyard audit list --actor admin --object user/alice -o wide\n  agentyard audit list --search alice\n  agentyard audit list -o json | jq '.[].action'"
    )]
    List(AuditListArgs),
    /// Verify the hash chain; exits 1 if an entry was changed or removed
    #[command(after_help = "Examples:\n  agentyard audit verify || echo 'the trail was changed'")]
    Verify,
    /// Print all entries as JSON Lines, with their hashes
    #[command(after_help = "Examples:\n  agentyard audit export > audit.jsonl")]
    Export,
}

/// Which entries, and how to print them.
#[derive(Debug, Args)]
pub struct AuditListArgs {
    /// Filter by text
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    search: String,
    /// Show only entries of this actor
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    /// Show only entries about this object
    #[arg(long, value_name = "KIND/NAME")]
    object: Option<String>,
    /// Show only entries newer than this, such as 15m or 2h
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    since: Option<Duration>,
    #[command(flatten)]
    output: OutputArgs,
}

impl AuditListArgs {
    /// All entries, for `agentyard get audit`.
    pub fn all(output: OutputArgs) -> Self {
        Self {
            search: String::new(),
            actor: None,
            object: None,
            since: None,
            output,
        }
    }
}

/// Lists, verifies or exports.
///
/// # Errors
/// When no server answers, or the trail is broken.
pub async fn audit(server: &Server, command: AuditCommand) -> Result {
    match command {
        AuditCommand::List(args) => list(server, args).await,
        AuditCommand::Verify => verify(server).await,
        AuditCommand::Export => export(server).await,
    }
}

/// Lists entries.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn list(server: &Server, args: AuditListArgs) -> Result {
    let mut pages = Pages::new(server, &AUDIT, &args.search);
    if let Some(actor) = &args.actor {
        pages = pages.with(format!("actor={}", escaped(actor)));
    }
    if let Some(object) = &args.object {
        // `u/alice` is `user/alice`; what is no kind, such as `config`, stays as it is.
        let full = object.parse::<Thing>().map(|thing| thing.to_string());
        let object = full.as_ref().unwrap_or(object);
        pages = pages.with(format!("object={}", escaped(object)));
    }
    if let Some(ago) = args.since {
        let since = SystemClock.now().minus(ago).to_rfc3339();
        pages = pages.with(format!("since={}", escaped(&since)));
    }
    let folds = args.output.format == Format::Table;
    let mut printer = Printer::new(&AUDIT, args.output, Amount::List);
    let mut folder = Folder::default();
    // A page is held back, so that the last row is printed beside other rows and as wide as they are.
    let mut held: Vec<Value> = Vec::new();
    while let Some(entries) = pages.next().await? {
        printer.print(&held)?;
        held = match folds {
            true => folder.push(entries),
            false => entries,
        };
    }
    held.extend(folder.finish());
    printer.print(&held)?;
    printer.end()
}

async fn verify(server: &Server) -> Result {
    // However long it takes: all of it is read.
    let path = "/api/admin/audit/verify";
    let answer = server.open(server.request(Method::GET, path)).await?;
    let answer = server.read(answer).await;
    let answer = answer.map_err(|failure| not_known(failure, "audit trail"))?;
    let entries = number(&answer, "entries");
    match at(&answer, "valid").as_bool() {
        Some(true) => {
            let noun = if entries == 1 { "entry" } else { "entries" };
            screen::print(&format!("the audit trail is intact: {entries} {noun}\n"))
        }
        Some(false) => Err(Failure::Failed(broken(&answer))),
        None => Err(Failure::Failed(
            "the server's answer does not say whether the trail is valid".to_owned(),
        )),
    }
}

fn broken(answer: &Value) -> String {
    format!(
        "the audit trail is broken: {} (seq {}); compare it with an export or a backup, and find out who can write to the database",
        text(answer, "problem.message"),
        text(answer, "problem.seq")
    )
}

async fn export(server: &Server) -> Result {
    let path = "/api/admin/audit/export";
    let mut answer = server.open(server.request(Method::GET, path)).await?;
    if answer.status() != StatusCode::OK {
        let answer = server.read(answer).await;
        return answer
            .map(drop)
            .map_err(|failure| not_known(failure, "audit trail"));
    }
    while let Some(bytes) = server.chunk(&mut answer).await? {
        screen::print_raw(bytes.as_ref())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_broken_log_is_reported_with_its_place() {
        let answer = json!({"valid": false, "entries": 9,
            "problem": {"seq": 7, "message": "entry 7 was changed"}});
        assert!(
            broken(&answer).starts_with("the audit trail is broken: entry 7 was changed (seq 7)")
        );
    }
}
