//! `agentyard auth`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::mode_switch::{self, Consent, describe_purge, follow_purge};
use super::output::cell::{cleaned, counted, number};
use super::output::clean::clean;
use super::output::screen;
use super::server::Server;
use super::{Failure, Result};

const PATH: &str = "/api/admin/auth";
const CONFIG: &str = "/api/config";
const WHITELIST: &str = "/api/admin/whitelist";

/// Where users come from, and who may sign in.
#[derive(Debug, Subcommand)]
pub enum AuthCommand {
    /// Test the settings of the directory or the identity provider, step by step; exits 1 if a step fails
    #[command(
        after_help = "Examples:\n  agentyard auth test\n  agentyard auth test ldap --user alice --group engineering\n  agentyard auth test oidc"
    )]
    Test(TestArgs),
    /// Synchronise users and groups with the directory
    #[command(
        after_help = "Examples:\n  agentyard auth sync --dry-run\n  agentyard auth sync\n  agentyard auth sync --groups-only\n  agentyard auth sync --confirm 3f0a6d2be1c94875"
    )]
    Sync(SyncArgs),
    /// Show or change the users who may sign in while the whitelist is enabled
    #[command(
        after_help = "Examples:\n  agentyard auth whitelist\n  agentyard auth whitelist --add alice --add bob\n  agentyard auth whitelist --remove bob\n  agentyard auth whitelist --replace names.txt"
    )]
    Whitelist(WhitelistArgs),
    /// Switch the authentication mode; removes all ordinary users and archives their directories
    #[command(
        after_help = "Examples:\n  agentyard auth switch ldap --plan\n  agentyard auth switch ldap --yes"
    )]
    Switch(SwitchArgs),
}

/// What to look for.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// Settings to test [default: oidc if web.auth_mode is oidc, else ldap]
    source: Option<Remote>,
    /// Search for this user only (ldap)
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Search for this group only (ldap)
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
}

/// How to synchronise.
#[derive(Debug, Args)]
pub struct SyncArgs {
    /// Print the plan and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not create, disable or delete users
    #[arg(long)]
    groups_only: bool,
    /// Confirm a plan that removes more than ldap.max_removal_percent of the users, by its digest
    #[arg(long, value_name = "DIGEST", conflicts_with = "dry_run")]
    confirm: Option<String>,
}

/// What to change.
#[derive(Debug, Args)]
pub struct WhitelistArgs {
    /// Add a user
    #[arg(long, value_name = "USER")]
    add: Vec<String>,
    /// Remove a user
    #[arg(long, value_name = "USER")]
    remove: Vec<String>,
    /// Replace the list with the names in a file, one per line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["add", "remove"])]
    replace: Option<PathBuf>,
}

/// Where users are to come from.
#[derive(Debug, Args)]
pub struct SwitchArgs {
    /// New mode
    mode: Mode,
    /// Print the plan and change nothing
    #[arg(long, conflicts_with = "yes")]
    plan: bool,
    #[command(flatten)]
    consent: Consent,
}

/// An authentication mode.
#[derive(Debug, Clone, Copy, ValueEnum, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Mode {
    /// Local accounts of this installation
    Local,
    /// A directory server
    Ldap,
    /// An identity provider
    Oidc,
}

/// Where users come from if not from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Remote {
    /// A directory server
    Ldap,
    /// An identity provider
    Oidc,
}

/// Runs a command on where users come from.
///
/// # Errors
/// When no server answers, it refuses, or a step of a test fails.
pub async fn auth(server: &Server, command: AuthCommand) -> Result {
    match command {
        AuthCommand::Test(args) => test(server, &args).await,
        AuthCommand::Sync(args) => sync(server, &args).await,
        AuthCommand::Whitelist(args) => whitelist(server, &args).await,
        AuthCommand::Switch(args) => switch(server, &args).await,
    }
}

async fn test(server: &Server, args: &TestArgs) -> Result {
    let mut body = json!({});
    for (name, value) in [
        ("test_username", &args.user),
        ("test_groupname", &args.group),
    ] {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
    let source = match args.source {
        Some(source) => source,
        None => {
            let mode = server.get("/api/login/mode").await?;
            match mode["auth_mode"].as_str() {
                Some("oidc") => Remote::Oidc,
                _ => Remote::Ldap,
            }
        }
    };
    let what = match source {
        Remote::Ldap => "test-ldap",
        Remote::Oidc if args.user.is_some() || args.group.is_some() => {
            return Err(Failure::Usage(
                "--user and --group are for ldap: an identity provider names users only when they sign in"
                    .to_owned(),
            ));
        }
        Remote::Oidc => "test-oidc",
    };
    let answer = server.post(&format!("{PATH}/{what}"), &body).await?;
    let mut failed = false;
    for step in answer["steps"].as_array().into_iter().flatten() {
        let ok = step["ok"] == true;
        failed |= !ok;
        let word = if ok { "ok" } else { "failed" };
        let (name, detail, ms) = (
            cleaned(step, "name"),
            cleaned(step, "detail"),
            number(step, "ms"),
        );
        screen::print(&format!("{name}: {word} ({ms} ms): {detail}\n"))?;
    }
    for group in answer["groups"].as_array().into_iter().flatten().take(10) {
        let members = counted(number(group, "member_count"), "member");
        screen::print(&format!("group {}: {members}\n", cleaned(group, "name")))?;
    }
    if failed {
        Err(Failure::Reported)
    } else {
        Ok(())
    }
}

async fn sync(server: &Server, args: &SyncArgs) -> Result {
    let what = if args.groups_only {
        "sync-groups"
    } else {
        "sync-users"
    };
    let mut body = json!({ "dry_run": args.dry_run, "wait": 120 });
    if let Some(digest) = &args.confirm {
        body["confirm"] = json!(digest);
    }
    let answer = server.post(&format!("{PATH}/{what}"), &body).await?;
    screen::print(&format!("{}\n", cleaned(&answer, "message")))?;
    screen::print(&counts(&answer))?;
    if args.dry_run {
        for (list, word) in [
            ("add", "add user"),
            ("change", "change user"),
            ("disable", "disable user"),
            ("remove", "delete user"),
            ("add_groups", "add group"),
            ("remove_groups", "delete group"),
        ] {
            for name in answer[list].as_array().into_iter().flatten() {
                let name = clean(name.as_str().unwrap_or_default());
                screen::print(&format!("{word} {name}\n"))?;
            }
        }
        for rename in answer["rename"].as_array().into_iter().flatten() {
            let (from, to) = (cleaned(rename, "from"), cleaned(rename, "to"));
            screen::print(&format!("rename {from} to {to}\n"))?;
        }
    }
    for entry in answer["skipped_entries"].as_array().into_iter().flatten() {
        screen::note(&format!(
            "not imported: {}: {}",
            cleaned(entry, "name"),
            cleaned(entry, "reason")
        ));
    }
    Ok(())
}

/// Describes whom the directory brings after a switch, and who has the name of a user who goes.
fn describe_arrivals(answer: &Value) -> String {
    /// Most names of a line.
    const NAMED: usize = 100;
    let line = |list: &str, count: u64, what: &str| {
        let all = answer[list].as_array().into_iter().flatten();
        let names: Vec<String> = all
            .filter_map(Value::as_str)
            .take(NAMED)
            .map(clean)
            .collect();
        let more = if count > names.len() as u64 {
            ", …"
        } else {
            ""
        };
        let colon = if names.is_empty() { "" } else { ": " };
        format!(
            "  {}{what}{colon}{}{more}\n",
            counted(count, "user"),
            names.join(", ")
        )
    };
    let (added, same) = (number(answer, "added"), number(answer, "changed"));
    "it brings:\n".to_owned()
        + &line("add", added, "")
        + &line("change", same, " with the name of one who is removed")
        + &format!("  {}\n", counted(number(answer, "groups_added"), "group"))
}

/// How many of what change, one a line.
fn counts(answer: &Value) -> String {
    let rows = [
        ("users", "users in the directory"),
        ("groups", "groups in the directory"),
        ("added", "users added"),
        ("changed", "users changed"),
        ("renamed", "users renamed"),
        ("identified", "users identified"),
        ("disabled", "users disabled"),
        ("removed", "users deleted"),
        ("groups_added", "groups added"),
        ("groups_removed", "groups deleted"),
        ("skipped", "entries not imported"),
    ];
    let lines = rows.map(|(key, what)| format!("{:>7} {what}\n", number(answer, key)));
    lines.concat()
}

async fn whitelist(server: &Server, args: &WhitelistArgs) -> Result {
    let body = match &args.replace {
        Some(file) => {
            let names = tokio::fs::read_to_string(file).await;
            let names =
                names.map_err(|error| Failure::Failed(format!("{}: {error}", file.display())))?;
            json!({ "users": names })
        }
        None if args.add.is_empty() && args.remove.is_empty() => return list(server).await,
        None => json!({ "add": args.add, "remove": args.remove }),
    };
    let answer = server.post(WHITELIST, &body).await?;
    screen::print(&format!("{}\n", cleaned(&answer, "message")))
}

async fn list(server: &Server) -> Result {
    let answer = server.get(WHITELIST).await?;
    let names = answer["users"].as_array().into_iter().flatten();
    let names = names
        .filter_map(Value::as_str)
        .map(|name| format!("{}\n", clean(name)));
    screen::print(&names.collect::<String>())
}

async fn switch(server: &Server, args: &SwitchArgs) -> Result {
    let config = json!({ mode_switch::KEY: args.mode.to_string() }).to_string();
    let body = json!({ "config": config });
    let plan = args.consent.plan(server, CONFIG, &body).await?;
    if plan["purge"].is_null() {
        return screen::print(&format!("users come from {} already\n", args.mode));
    }
    if args.plan {
        screen::print(&describe_purge(&plan["purge"]))?;
        if matches!(args.mode, Mode::Ldap) && plan["purge"]["problem"].is_null() {
            let body = json!({ "dry_run": true });
            let brought = server.post(&format!("{PATH}/sync-users"), &body).await?;
            screen::print(&describe_arrivals(&brought))?;
        }
        return Ok(());
    }
    let answer = args.consent.make(server, CONFIG, body, &plan).await?;
    follow_purge(server, &answer).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_of_a_switch_names_who_comes_and_who_is_on_both_sides() {
        let answer = json!({
            "added": 3, "changed": 1, "groups_added": 2,
            "add": ["carol", "dave"], "change": ["alice"],
        });
        let expected = "it brings:\n  3 users: carol, dave, …\n  \
                        1 user with the name of one who is removed: alice\n  2 groups\n";
        assert_eq!(describe_arrivals(&answer), expected);
    }
}
