//! `agentyard skill install`, `remove` and `rollback`.

use clap::Args;
use serde_json::{Value, json};

use super::PATH;
use crate::cli::admin::escaped;
use crate::cli::effect::How;
use crate::cli::kinds::OFFERED_SKILLS;
use crate::cli::output::cell::{at, cleaned};
use crate::cli::output::screen;
use crate::cli::pages::Pages;
use crate::cli::server::Server;
use crate::cli::{Failure, Result};

/// Skills that are named where one has to be chosen.
const NAMED: usize = 50;

/// Which skill of which repository.
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// Name of the repository
    #[arg(value_name = "REPOSITORY")]
    repository: String,
    /// Name of the skill, or its directory in the repository (`.`: the top) [default: the only skill]
    skill: Option<String>,
    /// Name of the installed skill [default: the name in SKILL.md, else that of the directory]
    #[arg(long)]
    name: Option<String>,
    /// Replace a bound skill of the same name from another source
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
    /// Unbind the skill from all users and groups first
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
    /// Version, as listed by `agentyard skill show` [default: the version before the active one]
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
    if args.skill.is_none() {
        check_only_one(server, &args.repository).await?;
    }
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

/// Refuses an installation without a name from a repository of several skills, with their names. What the list does not say, such as that
/// there is no such repository, says the server.
async fn check_only_one(server: &Server, repository: &str) -> Result {
    let pages = Pages::new(server, &OFFERED_SKILLS, "");
    let mut pages = pages.with(format!("name={}", escaped(repository)));
    let mut names = Vec::new();
    loop {
        match pages.next().await {
            Ok(Some(skills)) => names.extend(skills.iter().map(offered_name)),
            Ok(None) => break,
            Err(Failure::Unavailable(why)) => return Err(Failure::Unavailable(why)),
            Err(_) => return Ok(()),
        }
    }
    match names.len() {
        0 | 1 => Ok(()),
        several => Err(Failure::Failed(list_choices(
            &server.command,
            repository,
            several,
            &names,
        ))),
    }
}

/// The name of an offered skill, else its directory, by either of which it is installed.
fn offered_name(skill: &Value) -> String {
    let (name, path) = (cleaned(skill, "name"), cleaned(skill, "path"));
    match (name.is_empty(), path.as_str()) {
        (false, _) => name,
        (true, "") => ".".to_owned(),
        (true, path) => path.to_owned(),
    }
}

fn list_choices(command: &str, repository: &str, count: usize, names: &[String]) -> String {
    let listed: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let more = match count.saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("\n  and {more} more; `{command} skill repo list {repository}` lists them"),
    };
    format!(
        "repository {repository} has {count} skills; name one, as in `{command} skill install {repository} {}`:\n  {}{more}",
        listed.first().copied().unwrap_or("NAME"),
        listed.join("\n  ")
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_named() {
        let skills = [
            json!({"name": "pdf", "path": "skills/pdf"}),
            json!({"name": null, "path": "odd"}),
            json!({"name": "", "path": ""}),
        ];
        let names: Vec<String> = skills.iter().map(offered_name).collect();
        let text = list_choices("agentyard", "team", names.len(), &names);
        let expected = "repository team has 3 skills; name one, as in `agentyard skill install team pdf`:\n  pdf\n  odd\n  .";
        assert_eq!(text, expected);
    }
}
