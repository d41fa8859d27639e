//! `agentyard skill`.

mod bind;
mod change;
mod download;
mod repo;
mod show;
mod upload;

use clap::{Args, Subcommand};

use super::output::Format;
use super::pages::{ListArgs, Pages};
use super::server::Server;
use super::{Failure, Result, kinds};

const PATH: &str = "/api/admin/skills";

/// Skills: what agents can do besides, and who gets it.
#[derive(Debug, Subcommand)]
pub enum SkillCommand {
    /// List skills
    #[command(
        after_help = "Examples:\n  agentyard skill list\n  agentyard skill list --search pdf -o wide"
    )]
    List(ListArgs),
    /// Show a skill: its bindings and versions
    #[command(
        after_help = "Examples:\n  agentyard skill show pdf\n  agentyard skill show pdf -o json | jq .versions"
    )]
    Show(ShowArgs),
    /// Upload a skill, or a new version of it
    #[command(
        after_help = "Examples:\n  agentyard skill upload ./pdf\n  agentyard skill upload pdf-1.3.zip --name pdf --dry-run"
    )]
    Upload(upload::UploadArgs),
    /// Install a skill from a repository, or update it
    #[command(
        after_help = "Examples:\n  agentyard skill repo list team\n  agentyard skill install team pdf"
    )]
    Install(change::InstallArgs),
    /// Bind a skill to a group or a user
    #[command(
        after_help = "Examples:\n  agentyard skill bind pdf --group engineering --dry-run\n  agentyard skill bind pdf --user alice"
    )]
    Bind(bind::BindArgs),
    /// Unbind a skill from a group or a user
    #[command(
        after_help = "Examples:\n  agentyard skill unbind pdf --group engineering --dry-run\n  agentyard skill unbind pdf --user alice"
    )]
    Unbind(bind::BindArgs),
    /// Bind a skill to all users, a group or a user; or check deployed skills
    #[command(
        after_help = "Examples:\n  agentyard skill deploy pdf\n  agentyard skill deploy pdf --user alice\n  agentyard skill deploy --check alice bob"
    )]
    Deploy(bind::DeployArgs),
    /// Unbind a skill from all users, a group or a user
    #[command(
        after_help = "Examples:\n  agentyard skill undeploy pdf --dry-run\n  agentyard skill undeploy pdf --group engineering"
    )]
    Undeploy(bind::UndeployArgs),
    /// Download a skill as a ZIP file
    #[command(
        after_help = "Examples:\n  agentyard skill download pdf\n  agentyard skill download pdf --number 3 -o old.zip\n  agentyard skill download pdf -o - | bsdtar -tf -"
    )]
    Download(download::DownloadArgs),
    /// Remove a skill; refused while it is bound
    #[command(
        after_help = "Examples:\n  agentyard skill remove pdf\n  agentyard skill remove pdf --force --dry-run"
    )]
    Remove(change::RemoveArgs),
    /// Return to an earlier version of a skill
    #[command(
        after_help = "Examples:\n  agentyard skill rollback pdf\n  agentyard skill rollback pdf --to 3 --dry-run"
    )]
    Rollback(change::RollbackArgs),
    /// Add, pull, list and remove repositories of skills
    #[command(subcommand)]
    Repo(repo::RepoCommand),
}

/// Which skill, and how to print it.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Name of the skill
    name: String,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: Format,
}

/// Runs a command on skills.
///
/// # Errors
/// When no server answers, or it refuses.
pub async fn skill(server: &Server, command: SkillCommand) -> Result {
    match command {
        SkillCommand::List(args) => list(server, args).await,
        SkillCommand::Show(args) => show::show(server, &args.name, args.output).await,
        SkillCommand::Upload(args) => upload::upload(server, args).await,
        SkillCommand::Install(args) => change::install(server, args).await,
        SkillCommand::Bind(args) => bind::bind(server, args).await,
        SkillCommand::Unbind(args) => bind::unbind(server, args).await,
        SkillCommand::Deploy(args) => bind::deploy(server, args).await,
        SkillCommand::Undeploy(args) => bind::undeploy(server, args).await,
        SkillCommand::Download(args) => download::download(server, &args).await,
        SkillCommand::Remove(args) => change::remove(server, args).await,
        SkillCommand::Rollback(args) => change::roll_back(server, args).await,
        SkillCommand::Repo(command) => repo::repo(server, command).await,
    }
}

async fn list(server: &Server, args: ListArgs) -> Result {
    let pages = Pages::new(server, kind("skill")?, &args.search);
    pages.print(args.output, |_| {}).await
}

/// A reconciled kind, by its name.
fn kind(name: &str) -> Result<&'static kinds::KindInfo> {
    kinds::parse(name).map_err(Failure::Failed)
}
