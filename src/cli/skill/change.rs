//! `agentyard skill install`, `remove` and `rollback`.

use clap::Args;
use serde_json::{Value, json};

use super::PATH;
use crate::cli::Result;
use crate::cli::effect::How;
use crate::cli::output::cell::at;
use crate::cli::output::screen;
use crate::cli::server::Server;

/// Which skill of which repository.
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// Name of the repository
    #[arg(value_name = "REPOSITORY")]
    repository: String,
    /// Directory (`.`: the top) or name of the skill in it [default: the only one]
    skill: Option<String>,
    /// Name that it gets [default: as SKILL.md says, else its directory's]
    #[arg(long)]
    name: Option<String>,
    /// Replace a bound skill of that name from elsewhere
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    how: How,
}

/// Which skill.
#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// Name of the skill
    name: String,
    /// Unbind it everywhere first
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    how: How,
}

/// Which version of which skill.
#[derive(Debug, Args)]
pub struct RollbackArgs {
    /// Name of the skill
    name: String,
    /// Version, as listed by `agentyard skill show` [default: the one before the active one]
    #[arg(long = "to", value_name = "NUMBER")]
    number: Option<i64>,
    #[command(flatten)]
    how: How,
}

/// Installs a skill from a repository.
///
/// # Errors
/// When no server answers, it refuses, or a user's skills need manual action.
pub async fn install(server: &Server, args: InstallArgs) -> Result {
    let mut body = json!({
        "repo": args.repository, "skill": args.skill, "force": args.force, "dry_run": args.how.dry_run,
    });
    if let Some(name) = args.name {
        body["name"] = json!(name);
    }
    if args.how.detach {
        body["wait"] = json!(0);
    }
    let answer = server.post(&format!("{PATH}/install"), &body).await?;
    warn(&answer);
    args.how.report(server, &answer).await
}

/// Removes a skill.
///
/// # Errors
/// As [`install`].
pub async fn remove(server: &Server, args: RemoveArgs) -> Result {
    let body = json!({ "name": args.name, "force": args.force });
    args.how.send(server, &format!("{PATH}/remove"), body).await
}

/// Brings an earlier version into effect.
///
/// # Errors
/// As [`install`].
pub async fn roll_back(server: &Server, args: RollbackArgs) -> Result {
    let body = json!({ "name": args.name, "number": args.number });
    let path = format!("{PATH}/rollback");
    args.how.send(server, &path, body).await
}

/// What is worth knowing of a package.
pub(super) fn warn(answer: &Value) {
    let warnings = at(answer, "warnings").as_array().into_iter().flatten();
    for warning in warnings.filter_map(Value::as_str) {
        screen::note(&format!("warning: {warning}"));
    }
}
