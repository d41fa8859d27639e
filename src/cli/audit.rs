//! `agentyard audit`.

use clap::{Args, Subcommand};
use http::Method;
use serde_json::Value;

use super::output::cell::plain;
use super::output::clean::clean;
use super::output::items::{Amount, Printer};
use super::output::{Format, screen};
use super::pages::{Pages, not_known};
use super::server::Server;
use super::{Failure, admin, kinds};

/// The audit log: who did what, from where, when.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List the entries
    #[command(
        after_help = "Examples:\n  agentyard audit list --search alice\n  agentyard audit list -o json | jq '.[].action'"
    )]
    List(ListArgs),
    /// Check the chain of entries: a changed or missing one is found. Exit code 1 when it is broken
    #[command(
        after_help = "Examples:\n  agentyard audit verify || echo 'somebody changed the log'"
    )]
    Verify,
    /// Print all entries as JSON Lines, with their hashes
    #[command(after_help = "Examples:\n  agentyard audit export > audit.jsonl")]
    Export,
}

/// Which entries.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only entries that contain this
    #[arg(long, value_name = "TEXT", default_value = "")]
    search: String,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    /// No line with the columns' titles
    #[arg(long)]
    no_headers: bool,
}

/// Lists, verifies or exports.
///
/// # Errors
/// When no server answers, or the log is broken.
pub async fn audit(server: &Server, command: AuditCommand) -> Result<(), Failure> {
    match command {
        AuditCommand::List(args) => list(server, args).await,
        AuditCommand::Verify => verify(server).await,
        AuditCommand::Export => export(server).await,
    }
}

async fn list(server: &Server, args: ListArgs) -> Result<(), Failure> {
    let kind = kinds::parse("audit").map_err(Failure::Failed)?;
    let mut printer = Printer::new(kind, args.output, Amount::List, !args.no_headers);
    let mut pages = Pages::new(server, kind, &args.search);
    while let Some(entries) = pages.next().await? {
        printer.print(&entries)?;
    }
    printer.end()
}

async fn verify(server: &Server) -> Result<(), Failure> {
    // However long it takes: all of it is read.
    let path = "/api/admin/audit/verify";
    let mut stream = admin::Stream::open(&server.settings, Method::GET, path, None, &[]).await?;
    let text = stream.text().await?;
    let answer = admin::judge(stream.status, &text);
    let answer = answer.map_err(|failure| not_known(failure, "audit log"))?;
    let entries = plain(answer.get("entries").unwrap_or(&Value::Null));
    match answer.get("valid").and_then(Value::as_bool) {
        Some(true) => screen::print(&format!(
            "the audit log is whole: {} entries\n",
            clean(&entries)
        )),
        Some(false) => Err(Failure::Failed(broken(&answer))),
        None => Err(Failure::Failed(
            "the server's answer does not say whether the log is valid".to_owned(),
        )),
    }
}

fn broken(answer: &Value) -> String {
    let problem = answer.get("problem").unwrap_or(&Value::Null);
    let field = |key: &str| plain(problem.get(key).unwrap_or(&Value::Null));
    format!(
        "the audit log is broken: {} (seq {}); compare it with an export or a backup, and find out who can write to the database",
        field("message"),
        field("seq")
    )
}

async fn export(server: &Server) -> Result<(), Failure> {
    let path = "/api/admin/audit/export";
    let mut stream = admin::Stream::open(&server.settings, Method::GET, path, None, &[]).await?;
    if stream.status != 200 {
        let text = stream.text().await?;
        let odd = Failure::Failed(format!("the server answered {}", stream.status));
        let failure = admin::judge(stream.status, &text).err().unwrap_or(odd);
        return Err(not_known(failure, "audit log"));
    }
    while let Some(bytes) = stream.chunk().await? {
        screen::print_raw(&bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_broken_log_is_told_with_its_place() {
        let answer = json!({"valid": false, "entries": 9,
            "problem": {"seq": 7, "message": "entry 7 was changed"}});
        assert!(
            broken(&answer).starts_with("the audit log is broken: entry 7 was changed (seq 7)")
        );
    }
}
