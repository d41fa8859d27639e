//! `agentyard archive`: the way back after a user was deleted or the authentication mode changed.

mod delete;
pub(in crate::cli) mod restore;
mod restore_all;
mod show;

use std::sync::Arc;

use clap::{Args, Subcommand};
use schema::audit::Writer;
use schema::clock::SystemClock;
use schema::home::{Archive, HandleError, RestoreError, archive_by_handle, archive_handles};
use schema::secrets::MasterKey;
use serde_json::{Value, json};

use super::kinds::ARCHIVES;
use super::local::{Local, blocking, home_failed};
use super::output::Format;
use super::output::items::{Amount, Printer};
use super::pages::ListArgs;
use super::suggest::{closest, did_you_mean};
use super::{Failure, Result};
use crate::settings::Settings;

/// Archived directories of users.
#[derive(Debug, Subcommand)]
pub enum ArchiveCommand {
    /// List archives, oldest first
    #[command(
        after_help = "Examples:\n  agentyard archive list\n  agentyard archive list --search alice -o wide\n  agentyard archive list -o json | jq '.[].archive'"
    )]
    List(ListArgs),
    /// Show the path of an archive and the contents of its workspace
    #[command(after_help = "Examples:\n  agentyard archive show alice@2026-05-11T11:46:40Z")]
    Show(ShowArgs),
    /// Copy the workspace of an archive into restored-TIME/ of a user's workspace
    #[command(
        after_help = "Nothing in the workspace is replaced, and the archive stays. The server may be running. With --all, each archive of the mode switch is restored to the present user of the same name; archives without such a user, and those restored before, are listed and skipped.\n\nExamples:\n  agentyard archive restore alice@2026-05-11T11:46:40Z --to alice\n  agentyard archive restore --all --from-mode-switch --dry-run\n  agentyard archive restore --all --from-mode-switch"
    )]
    Restore(RestoreArgs),
    /// Delete an archive; its files are lost
    #[command(
        after_help = "Prompts for the archive's name as confirmation, unless --yes is given. Copies in workspaces and in backups stay.\n\nExamples:\n  agentyard archive delete alice@2026-05-11T11:46:40Z\n  agentyard archive delete alice@2026-05-11T11:46:40Z --yes"
    )]
    Delete(DeleteArgs),
}

/// Which archive, and how to print it.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Archive, as listed
    #[arg(value_name = "USER@TIME")]
    archive: String,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
}

/// Arguments of `archive restore`: one archive and its user, or all of a mode switch.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// Archive, as listed
    #[arg(
        value_name = "USER@TIME",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    archive: Option<String>,
    /// User whose workspace receives the files
    #[arg(
        long,
        value_name = "USER",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    to: Option<String>,
    /// Restore all archives of a mode switch
    #[arg(long, requires = "from_mode_switch")]
    all: bool,
    /// Batch of the mode switch [default: the last mode switch]
    #[arg(
        long,
        value_name = "BATCH",
        requires = "all",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    from_mode_switch: Option<String>,
    /// List the archives that would be restored, without restoring them
    #[arg(long, requires = "all")]
    dry_run: bool,
}

/// Arguments of `archive delete`.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// Archive, as listed
    #[arg(value_name = "USER@TIME")]
    archive: String,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// Runs a command on the archive of this machine.
///
/// # Errors
/// When there is no installation, or no such archive or user.
pub async fn archive(settings: Settings, command: ArchiveCommand) -> Result {
    let local = Local::open(&settings).await?;
    let result = match command {
        ArchiveCommand::List(args) => list(&local, &args).await,
        ArchiveCommand::Show(args) => show::show(&local, &args).await,
        ArchiveCommand::Restore(args) => match (&args.archive, &args.to) {
            (Some(archive), Some(to)) => restore::restore(&settings, &local, archive, to).await,
            _ => restore_all::restore_all(&settings, &local, &args).await,
        },
        ArchiveCommand::Delete(args) => delete::delete(&settings, &local, &args).await,
    };
    local.db.close().await;
    result
}

async fn list(local: &Local, args: &ListArgs) -> Result {
    let archives = archives(local).await?;
    let search = args.search.to_lowercase();
    let path = |archive: &Archive| local.homes.archive_path(archive).display().to_string();
    let items: Vec<Value> = archive_handles(&archives)
        .into_iter()
        .zip(&archives)
        .map(|(handle, archive)| item(archive, &handle, &path(archive)))
        .filter(|item| item.to_string().to_lowercase().contains(&search))
        .collect();
    let mut printer = Printer::new(&ARCHIVES, args.output, Amount::List);
    printer.print(&items)?;
    printer.end()
}

/// An archive for programs, and for the columns of its table.
fn item(archive: &Archive, handle: &str, path: &str) -> Value {
    json!({
        "archive": handle,
        "username": archive.user,
        "deleted_at": archive.archived_at,
        "mode_switch": archive.mode_switch(),
        "batch": archive.batch(),
        "status": if archive.removing { "removing" } else { "archived" },
        "path": path,
    })
}

async fn archives(local: &Local) -> Result<Vec<Archive>> {
    let homes = local.homes.clone();
    blocking(move || homes.archives().map_err(home_failed)).await
}

/// The archive that was named, with its handle.
async fn find(local: &Local, given: &str) -> Result<(Archive, String)> {
    let archives = archives(local).await?;
    let given = given.strip_prefix("archive/").unwrap_or(given);
    match archive_by_handle(&archives, given) {
        Ok(archive) => Ok((archive.clone(), given.to_owned())),
        Err(HandleError::Unknown) => {
            let guesses = did_you_mean(&closest(given, archive_handles(&archives)));
            Err(Failure::NotFound(format!(
                "archive/{given} not found{guesses}; `agentyard archive list` lists the archives"
            )))
        }
        Err(error @ HandleError::Several(_)) => Err(Failure::Usage(error.to_string())),
    }
}

/// Opens the audit trail: what cannot be recorded is not done.
fn open_audit_writer(settings: &Settings, local: &Local) -> Result<Writer> {
    let key = MasterKey::load(&settings.data_dir);
    let key = key.map_err(|error| Failure::Refused(error.to_string()))?;
    Ok(Writer::new(local.db.clone(), &key, Arc::new(SystemClock)))
}

/// Why an archive could not be read or restored.
fn not_restored(error: RestoreError, handle: &str, to: &str) -> Failure {
    match error {
        RestoreError::ArchiveGone => Failure::Failed(format!(
            "archive {handle} is being removed, or was removed; \"agentyard archive list\" shows what is left"
        )),
        RestoreError::NoWorkspace => Failure::Failed(format!(
            "archive {handle} has no workspace; \"agentyard archive list -o wide\" shows where its other files are"
        )),
        RestoreError::NoHome => Failure::Failed(format!(
            "the directory of {to} is gone; repeat the command once \"agentyard describe user/{to}\" reports it ready"
        )),
        RestoreError::Busy => Failure::Unavailable(
            "another restore is in progress; repeat the command when it has ended".to_owned(),
        ),
        RestoreError::NamesTaken(first) => Failure::Failed(format!(
            "{first} and all names like it are taken in the workspace of {to}; remove some of them"
        )),
        RestoreError::Home(error) if is_full(&error) => Failure::Failed(format!(
            "{}; nothing was restored: free some space, then repeat the command",
            schema::error::chain(&error)
        )),
        RestoreError::Home(error) => home_failed(error),
    }
}

fn is_full(error: &schema::home::HomeError) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    match error {
        schema::home::HomeError::Io { source, .. } => {
            matches!(source.kind(), StorageFull | QuotaExceeded)
        }
        _ => false,
    }
}
