//! Commands that ask a running server, or tell it something.

use clap::Subcommand;

use super::server::Server;
use super::switches::{self, Switch};
use super::{
    Failure, adapter, audit, config, describe, diff, events, get, image, kinds, rollout, status,
    wait,
};

/// What to ask or tell.
#[derive(Debug, Subcommand)]
pub enum Ask {
    /// Show what a running server reconciles, and who leads; exit code 69 when it is not ready
    #[command(
        after_help = "Examples:\n  agentyard status\n  agentyard status --data-dir /srv/agentyard"
    )]
    Status,
    /// List users, containers, and whatever else there is
    #[command(after_help = get_help())]
    Get(get::GetArgs),
    /// Tell everything about one object: what is wrong, since when, what is tried next, how to force it
    #[command(
        after_help = "Examples:\n  agentyard describe container/alice\n  agentyard describe engine/local user/bob\n  agentyard describe container/alice -o json | jq .plan"
    )]
    Describe(describe::DescribeArgs),
    /// Show what differs from what is wanted; exit code 1 when anything does
    #[command(
        after_help = "Examples:\n  agentyard diff\n  agentyard diff container/alice && echo 'as it should be'"
    )]
    Diff(diff::DiffArgs),
    /// Show what happened, the newest last
    #[command(
        after_help = "Examples:\n  agentyard events --since 1h\n  agentyard events --object container/alice --watch"
    )]
    Events(events::EventsArgs),
    /// Wait until objects are as wanted; exit code 124 when the time is over
    #[command(
        after_help = "Examples:\n  agentyard wait container/alice\n  agentyard wait container/alice container/bob --for=condition=Ready --timeout 5m --fail-fast\n  agentyard wait user/carol --for=delete"
    )]
    Wait(wait::WaitArgs),
    /// Look at objects at once, back-off or not
    #[command(
        after_help = "Examples:\n  agentyard retry container/alice\n  agentyard get containers -o name --search team | xargs agentyard retry\n  agentyard retry --all"
    )]
    Retry(switches::SwitchArgs),
    /// Leave objects alone until they are resumed
    #[command(
        after_help = "Examples:\n  agentyard pause container/alice\n  agentyard pause --reconciler container\n  agentyard pause --all"
    )]
    Pause(switches::SwitchArgs),
    /// Look after paused objects again
    #[command(
        after_help = "Examples:\n  agentyard resume container/alice\n  agentyard resume --all"
    )]
    Resume(switches::SwitchArgs),
    /// Restart containers with fresh ones, also after a replacement that failed
    #[command(
        after_help = "Examples:\n  agentyard restart container/alice && agentyard wait container/alice"
    )]
    Restart(switches::RestartArgs),
    /// Read and change the configuration, go back, and bring it to agents' files
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Pull, list and delete the engine's images
    #[command(subcommand)]
    Image(image::ImageCommand),
    /// Move users to another image, a few at a time, and back
    #[command(subcommand)]
    Rollout(rollout::RolloutCommand),
    /// Show, upload, refresh and roll back the adapter package
    #[command(subcommand)]
    Adapter(adapter::AdapterCommand),
    /// Read and check the audit log
    #[command(subcommand)]
    Audit(audit::AuditCommand),
}

fn get_help() -> String {
    let examples = "Examples:
  agentyard get users
  agentyard get containers -o wide --search team
  agentyard get container alice -o yaml
  agentyard get objects --watch";
    format!("{}\n{examples}", kinds::help())
}

impl Ask {
    /// Asks, and prints the answer.
    ///
    /// # Errors
    /// When no server answers, it refuses, or the answer is not what was hoped for.
    pub async fn run(self, server: &Server) -> Result<(), Failure> {
        match self {
            Self::Status => status::status(server).await,
            Self::Get(args) => get::get(server, args).await,
            Self::Describe(args) => describe::describe(server, args).await,
            Self::Diff(args) => diff::diff(server, args).await,
            Self::Events(args) => events::events(server, args).await,
            Self::Wait(args) => wait::wait(server, args).await,
            Self::Retry(args) => switches::switch(server, Switch::Retry, args).await,
            Self::Pause(args) => switches::switch(server, Switch::Pause, args).await,
            Self::Resume(args) => switches::switch(server, Switch::Resume, args).await,
            Self::Restart(args) => switches::restart(server, args).await,
            Self::Config(command) => config::config(server, command).await,
            Self::Image(command) => image::image(server, command).await,
            Self::Rollout(command) => rollout::rollout(server, command).await,
            Self::Adapter(command) => adapter::adapter(server, command).await,
            Self::Audit(command) => audit::audit(server, command).await,
        }
    }
}
