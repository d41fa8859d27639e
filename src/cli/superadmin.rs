//! `agentyard superadmin`.

use clap::{Args, Subcommand};
use schema::ids::UserName;
use schema::user::Role;
use serde_json::json;

use super::confirm::confirm;
use super::kinds::SUPERADMINS;
use super::output::cell::{cleaned, counted, text};
use super::output::screen;
use super::pages::{ListArgs, Pages};
use super::reset_password::{self, ResetArgs};
use super::server::Server;
use super::target::bare_name;
use super::user::credentials::{Credentials, PasswordsArgs};
use super::{Failure, Result};

const PATH: &str = "/api/admin/superadmins";

/// Superadmins: local accounts in every authentication mode.
#[derive(Debug, Subcommand)]
pub enum SuperadminCommand {
    /// List superadmins
    #[command(
        after_help = "Examples:\n  agentyard superadmin list\n  agentyard superadmin list -o json"
    )]
    List(ListArgs),
    /// Create superadmins with generated passwords
    #[command(
        after_help = "The passwords are shown once: as CSV on standard output, or in the file of --passwords.\n\nExamples:\n  agentyard superadmin create dora\n  agentyard superadmin create dora emil --passwords superadmins.csv"
    )]
    Create(CreateArgs),
    /// Delete superadmins; the last one cannot be deleted
    #[command(
        after_help = "Examples:\n  agentyard superadmin delete dora\n  agentyard superadmin delete dora --yes"
    )]
    Delete(DeleteArgs),
    /// Set a new password for a superadmin; ends the account's sessions
    #[command(
        after_help = "`agentyard reset-password` does the same, also without a server.\n\nExamples:\n  agentyard superadmin reset-password dora\n  agentyard superadmin reset-password dora --random"
    )]
    ResetPassword(ResetArgs),
}

/// Superadmins to create.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Names of superadmins
    #[arg(value_name = "NAME", required = true)]
    names: Vec<UserName>,
    #[command(flatten)]
    passwords: PasswordsArgs,
}

/// Superadmins to delete.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// Names of superadmins
    #[arg(value_name = "NAME", required = true, value_parser = bare_name)]
    names: Vec<String>,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// Runs a command on superadmins.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn superadmin(server: &Server, command: SuperadminCommand) -> Result {
    match command {
        SuperadminCommand::List(args) => {
            let pages = Pages::new(server, &SUPERADMINS, &args.search);
            pages.print(args.output, |_| {}).await
        }
        SuperadminCommand::Create(args) => create(server, &args).await,
        SuperadminCommand::Delete(args) => delete(server, &args).await,
        SuperadminCommand::ResetPassword(args) => {
            reset_password::reset_by_server(server, args, Role::Superadmin).await
        }
    }
}

async fn create(server: &Server, args: &CreateArgs) -> Result {
    let mut credentials = Credentials::open(&args.passwords)?;
    let names: Vec<&str> = args.names.iter().map(UserName::as_str).collect();
    let created = for_each(server, &names, "create", |name, answer| {
        credentials.write(&[(text(answer, "username"), text(answer, "password"))])?;
        screen::note(&format!("superadmin/{name} created"));
        Ok(())
    });
    let created = created.await;
    credentials.finish();
    created
}

async fn delete(server: &Server, args: &DeleteArgs) -> Result {
    if !args.yes {
        let count = counted(args.names.len() as u64, "superadmin");
        let names = args.names.join(", ");
        confirm(&format!("Delete {count} ({names})?"), "deleted").await?;
    }
    let names: Vec<&str> = args.names.iter().map(String::as_str).collect();
    for_each(server, &names, "delete", |_, answer| {
        screen::print(&format!("{}\n", cleaned(answer, "message")))
    })
    .await
}

/// Sends a request for each name; a failure does not stop the rest.
async fn for_each(
    server: &Server,
    names: &[&str],
    action: &str,
    mut done: impl FnMut(&str, &serde_json::Value) -> Result,
) -> Result {
    let mut failed = false;
    for name in names {
        let body = json!({ "username": name });
        match server.post(&format!("{PATH}/{action}"), &body).await {
            Ok(answer) => done(name, &answer)?,
            Err(failure) if names.len() == 1 => return Err(failure),
            Err(Failure::NotFound(why) | Failure::Failed(why)) => {
                screen::note(&format!("error: superadmin/{name}: {why}"));
                failed = true;
            }
            Err(failure) => return Err(failure),
        }
    }
    match failed {
        true => Err(Failure::Reported),
        false => Ok(()),
    }
}
