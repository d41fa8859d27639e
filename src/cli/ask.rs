//! Commands for a running server.

use clap::Subcommand;

use super::server::Server;
use super::{
    Result, adapter, api_token, audit, auth, config, copy, describe, diff, events, exec, executor,
    get, group, image, kinds, logs, model, rollout, skill, status, superadmin, switches, top, user,
    wait,
};

/// What to request from the server.
#[derive(Debug, Subcommand)]
pub enum Ask {
    /// Show health, leader and object counts; exits 69 if the server is not ready
    #[command(
        after_help = "Examples:\n  agentyard status\n  agentyard status --data-dir /srv/agentyard"
    )]
    Status,
    /// List objects of one kind or of several
    #[command(after_help = get_help())]
    Get(get::GetArgs),
    /// Show details of objects: problems, remedies, desired and observed state, events
    #[command(
        after_help = "Examples:\n  agentyard describe container/alice\n  agentyard describe engine/local user/bob\n  agentyard describe container/alice -o json | jq .plan"
    )]
    Describe(describe::DescribeArgs),
    /// Compare desired and observed state; exits 1 if they differ
    #[command(
        after_help = "Examples:\n  agentyard diff\n  agentyard diff container/alice && echo 'no differences'"
    )]
    Diff(diff::DiffArgs),
    /// Show events, newest last
    #[command(
        after_help = "Examples:\n  agentyard events --since 1h\n  agentyard events --object container/alice --watch"
    )]
    Events(events::EventsArgs),
    /// Wait for a condition; exits 124 on timeout
    #[command(
        after_help = "Examples:\n  agentyard wait container/alice\n  agentyard wait container/alice container/bob --for=condition=Ready --timeout 5m --fail-fast\n  agentyard wait user/carol --for=delete"
    )]
    Wait(wait::WaitArgs),
    /// Reconcile now, ignoring back-off
    #[command(
        after_help = "Examples:\n  agentyard retry container/alice\n  agentyard get containers -o name --search team | xargs agentyard retry\n  agentyard retry --all"
    )]
    Retry(switches::SwitchArgs),
    /// Suspend reconciliation
    #[command(
        after_help = "Examples:\n  agentyard pause container/alice\n  agentyard pause --reconciler container\n  agentyard pause --all"
    )]
    Pause(switches::SwitchArgs),
    /// Resume reconciliation
    #[command(
        after_help = "With --all, objects and reconcilers that were paused individually stay paused.\n\nExamples:\n  agentyard resume container/alice\n  agentyard resume --all"
    )]
    Resume(switches::SwitchArgs),
    /// Recreate containers; also retries a failed replacement
    #[command(
        after_help = "Examples:\n  agentyard restart container/alice && agentyard wait container/alice"
    )]
    Restart(switches::RestartArgs),
    /// Start containers; also ends debug mode
    #[command(
        after_help = "Examples:\n  agentyard start container/alice container/bob\n  agentyard get containers -o name --search team | xargs agentyard start"
    )]
    Start(switches::RestartArgs),
    /// Stop containers; users' directories are kept
    #[command(
        after_help = "Examples:\n  agentyard stop container/alice && agentyard wait container/alice"
    )]
    Stop(switches::RestartArgs),
    /// Run containers in debug mode, until they are started, restarted or stopped
    #[command(
        after_help = "The container is recreated with the adapter's debug command and AGENT_DEBUG=1. `--off` is the same as `agentyard start`.\n\nExamples:\n  agentyard debug container/alice && agentyard logs alice -f\n  agentyard debug container/alice --off"
    )]
    Debug(switches::DebugArgs),
    /// Show the log of a user's container
    #[command(
        after_help = "Control characters and escape sequences are removed or made visible.\n\nExamples:\n  agentyard logs alice --since 10m\n  agentyard logs alice -f --tail 20 --timestamps\n  agentyard logs alice --previous"
    )]
    Logs(logs::LogsArgs),
    /// Show CPU and memory use of running containers
    #[command(
        after_help = "Only the containers shown are sampled, once each; --sort-by sorts within these.\n\nExamples:\n  agentyard top\n  agentyard top containers --limit 100 --sort-by memory\n  agentyard top container/alice container/bob --watch"
    )]
    Top(top::TopArgs),
    /// Run a program in a user's container (on the server's machine); exits with its code
    #[command(
        after_help = "The program is ended if this command is interrupted or loses its connection. The audit trail records the program without its arguments.\n\nExamples:\n  agentyard exec -it alice -- sh\n  agentyard exec alice -- ls -l /root\n  echo 'select 1' | agentyard exec -i alice -- sqlite3 notes.db"
    )]
    Exec(exec::ExecArgs),
    /// Copy files and folders to and from a user's workspace (on the server's machine)
    #[command(
        after_help = "USER:PATH is relative to the top of the user's workspace. An existing folder as TARGET receives the copy inside it. Links are not copied. The user's quota applies, and the limit of 32 MiB per file.\n\nExamples:\n  agentyard cp report.pdf alice:notes/\n  agentyard cp alice:notes ./notes\n  agentyard cp ./templates alice:templates --overwrite"
    )]
    Cp(copy::CopyArgs),
    /// Read, change, roll back and apply the configuration
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Pull, list and delete images on the engine
    #[command(subcommand)]
    Image(image::ImageCommand),
    /// Move users between images in batches
    #[command(subcommand)]
    Rollout(rollout::RolloutCommand),
    /// Show, upload, refresh and roll back the adapter package
    #[command(subcommand)]
    Adapter(adapter::AdapterCommand),
    /// Show, choose and test the model that agents use
    #[command(subcommand)]
    Model(model::ModelCommand),
    /// Upload, install, bind, roll back and remove skills
    #[command(subcommand)]
    Skill(skill::SkillCommand),
    /// Create, change and delete groups of users
    #[command(subcommand)]
    Group(group::GroupCommand),
    /// Create, disable, limit and delete users; end sessions; rotate MCP tokens
    #[command(subcommand)]
    User(user::UserCommand),
    /// Create and delete superadmins
    #[command(subcommand)]
    Superadmin(superadmin::SuperadminCommand),
    /// Disconnect executors: browsers and desktops of users
    #[command(subcommand)]
    Executor(executor::ExecutorCommand),
    /// Test and synchronise the directory, edit the whitelist, switch the authentication mode
    #[command(subcommand)]
    Auth(auth::AuthCommand),
    /// Create, list and revoke API tokens for programs
    #[command(subcommand)]
    ApiToken(api_token::ApiTokenCommand),
    /// Read and verify the audit trail
    #[command(subcommand)]
    Audit(audit::AuditCommand),
}

fn get_help() -> String {
    let examples = "Examples:
  agentyard get users
  agentyard get containers -o wide --search team
  agentyard get container alice -o yaml
  agentyard get users -l group=eng,image=v1.2,state=not-ready
  agentyard get users --sort-by -last-login -o custom-columns=NAME:.username,WHY:.health.reason
  agentyard get users,groups
  agentyard get user/alice container/bob
  agentyard get all --not-ready
  agentyard get objects --watch";
    format!("{}\n{examples}", kinds::help())
}

impl Ask {
    /// Name of a command that works on the server's machine only.
    pub fn on_machine(&self) -> Option<&'static str> {
        match self {
            Self::Exec(_) => Some("exec"),
            Self::Cp(_) => Some("cp"),
            _ => None,
        }
    }

    /// Sends the request and prints the answer.
    ///
    /// # Errors
    /// When no server answers, it refuses, or the answer is a failure.
    pub async fn run(self, server: &Server) -> Result {
        match self {
            Self::Status => status::status(server).await,
            Self::Get(args) => get::get(server, args).await,
            Self::Describe(args) => describe::describe(server, args).await,
            Self::Diff(args) => diff::diff(server, args).await,
            Self::Events(args) => events::events(server, args).await,
            Self::Wait(args) => wait::wait(server, args).await,
            Self::Retry(args) => switches::switch(server, &switches::RETRY, args).await,
            Self::Pause(args) => switches::switch(server, &switches::PAUSE, args).await,
            Self::Resume(args) => switches::switch(server, &switches::RESUME, args).await,
            Self::Restart(args) => switches::restart(server, args).await,
            Self::Start(args) => switches::start(server, args).await,
            Self::Stop(args) => switches::stop(server, args).await,
            Self::Debug(args) => switches::debug(server, args).await,
            Self::Logs(args) => logs::logs(server, args).await,
            Self::Top(args) => top::top(server, args).await,
            Self::Exec(args) => exec::exec(server, args).await,
            Self::Cp(args) => copy::copy(server, args).await,
            Self::Config(command) => config::config(server, command).await,
            Self::Image(command) => image::image(server, command).await,
            Self::Rollout(command) => rollout::rollout(server, command).await,
            Self::Adapter(command) => adapter::adapter(server, command).await,
            Self::Model(command) => model::model(server, command).await,
            Self::Skill(command) => skill::skill(server, command).await,
            Self::Group(command) => group::group(server, command).await,
            Self::User(command) => user::user(server, command).await,
            Self::Superadmin(command) => superadmin::superadmin(server, command).await,
            Self::Executor(command) => executor::executor(server, command).await,
            Self::Auth(command) => auth::auth(server, command).await,
            Self::ApiToken(command) => api_token::api_token(server, command).await,
            Self::Audit(command) => audit::audit(server, command).await,
        }
    }
}
