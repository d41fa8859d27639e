//! `agentyard audit`.

use clap::Subcommand;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::kinds::AUDIT;
use super::output::cell::{at, number, text};
use super::output::screen;
use super::pages::{ListArgs, Pages, not_known};
use super::server::Server;
use super::{Failure, Result};

/// The audit trail.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List entries, newest first
    #[command(
        after_help = "Examples:\n  agentyard audit list --search alice\n  agentyard audit list -o json | jq '.[].action'"
    )]
    List(ListArgs),
    /// Verify the hash chain; exits 1 if an entry was changed or removed
    #[command(after_help = "Examples:\n  agentyard audit verify || echo 'the trail was changed'")]
    Verify,
    /// Print all entries as JSON Lines, with their hashes
    #[command(after_help = "Examples:\n  agentyard audit export > audit.jsonl")]
    Export,
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

async fn list(server: &Server, args: ListArgs) -> Result {
    let pages = Pages::new(server, &AUDIT, &args.search);
    pages.print(args.output, |_| {}).await
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
