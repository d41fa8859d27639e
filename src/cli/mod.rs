//! The command line.

mod adapter;
mod admin;
mod api_token;
mod archive;
mod ask;
mod audit;
mod auth;
mod backup;
mod bulk;
mod compare;
pub mod complete;
mod config;
mod confirm;
mod context;
mod copy;
mod describe;
mod diff;
mod doctor;
mod effect;
mod events;
mod exec;
mod executor;
mod follow;
mod get;
mod group;
mod image;
mod init;
mod kinds;
mod local;
mod logs;
mod manual;
mod mode_switch;
mod model;
mod new_password;
mod output;
mod pages;
#[cfg(feature = "kubernetes")]
mod pod;
#[cfg(test)]
mod remedies;
mod reset_password;
mod rollout;
mod serve;
mod server;
mod skill;
mod sse;
mod status;
pub(crate) mod suggest;
mod superadmin;
mod switches;
mod target;
mod top;
mod user;
mod wait;
mod watch;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio::runtime::Runtime;

use self::context::ContextArgs;
use self::output::clean::clean_lines;
use crate::logging;
use crate::prepare::PrepareError;
use crate::settings::{CommonArgs, InitArgs, ServeArgs, Settings, SettingsError};
use crate::watchdog::Watchdog;

const EXIT_CODES: &str = "\
Exit codes:
  0    success
  1    failed; not found; differences (diff); broken audit trail (audit verify)
  2    invalid usage
  69   no server, or something it needs is unavailable
  70   the server stopped responding and ended itself (serve)
  78   invalid setting or stored data; nothing was changed
  124  timeout (wait)
  130  interrupted by Ctrl-C
  else the code of the program (exec)

Colours are used on a terminal only, unless NO_COLOR is set.";

/// Release, with commit and features where `make release` has built the program. Other builds do without, so a new commit
/// compiles nothing again.
const VERSION: &str = match option_env!("AGENTYARD_BUILD") {
    Some(build) => build,
    None => env!("CARGO_PKG_VERSION"),
};

/// Management server for per-user AI-agent containers.
#[derive(Debug, Parser)]
#[command(version = VERSION, about, propagate_version = true, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    context: ContextArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server; initialises an empty data directory
    #[command(
        after_help = "Examples:\n  agentyard serve --data-dir /srv/agentyard\n  agentyard serve --set image.tag=1.2.3 --adapter echo"
    )]
    Serve {
        #[command(flatten)]
        init: InitArgs,
        #[command(flatten)]
        serve: Box<ServeArgs>,
    },
    /// Prepare the data directory (safe to repeat)
    #[command(
        after_help = "Examples:\n  agentyard init --data-dir /srv/agentyard --set container.autostart=false"
    )]
    Init {
        #[command(flatten)]
        init: InitArgs,
    },
    /// Set a new password for a local user or a superadmin; ends the account's sessions
    #[command(
        after_help = "Examples:\n  agentyard reset-password alice\n  agentyard reset-password admin --random\n  agentyard reset-password alice --password - < password.txt"
    )]
    ResetPassword(reset_password::ResetArgs),
    /// Check the installation and print a remedy for each fault; exits 1 if a check fails
    #[command(
        after_help = "Pass the options of `serve`, or the same settings file. Without a running server, only checks of this machine are made.\n\nExamples:\n  agentyard doctor\n  agentyard doctor --config /etc/agentyard.yml -o json"
    )]
    Doctor(Box<doctor::DoctorArgs>),
    /// List, show, restore and delete archived directories of users (on the server's machine)
    #[command(subcommand)]
    Archive(archive::ArchiveCommand),
    /// Back up the installation while it runs (on the server's machine)
    #[command(
        after_help = "Makes a dated folder in DIR with the database, the skills, users' files, archives and a manifest of digests; unchanged files are hard links to those of the previous backup. The backup does not contain the master key; keep a copy of it elsewhere.\n\nExamples:\n  agentyard backup /mnt/backup --key-file /root/agentyard.key\n  agentyard backup - | ssh host 'cat > agentyard.tar'\n  agentyard backup verify /mnt/backup/20261127T195003Z"
    )]
    Backup(backup::BackupArgs),
    /// Restore a backup to an empty data directory, or files of one user (on the server's machine)
    #[command(
        after_help = "Digests are verified while files are copied; damaged files are skipped and listed. Existing files stay, and restored ones are placed beside them; --force replaces a file.\n\nExamples:\n  agentyard restore /mnt/backup/20261127T195003Z --key-file agentyard.key --data-dir /srv/agentyard\n  agentyard restore /mnt/backup/20261127T195003Z --user alice --path notes.txt\n  agentyard restore /mnt/backup/20261127T195003Z --to /srv/files"
    )]
    Restore(backup::restore::RestoreArgs),
    /// Move the database from SQLite to PostgreSQL or back, while no server runs
    #[command(
        after_help = "Copies all tables in one transaction and compares their digests. The source is the database of the settings and is not changed; set --database-url to the new database afterwards.\n\nExamples:\n  agentyard migrate-database postgres://agentyard@db.example.com/agentyard\n  agentyard migrate-database - < url-with-password"
    )]
    MigrateDatabase(backup::migrate::MigrateArgs),
    #[command(flatten)]
    Ask(ask::Ask),
    /// Sign in to a remote server and make it the current context
    #[command(
        after_help = "Prompts for the password, or reads it from standard input. A session ends after 24 hours; an API token (`agentyard api-token create`) is valid until it expires.\n\nExamples:\n  agentyard login https://agents.example.com --username admin\n  agentyard login https://10.0.0.5:8443 --ca-file ca.pem --token-file ci.token --name lab\n\nScripts need no login: AGENTYARD_URL with AGENTYARD_TOKEN_FILE or AGENTYARD_TOKEN, and AGENTYARD_CA_FILE."
    )]
    Login(context::LoginArgs),
    /// Sign out of a remote server and remove its context
    #[command(after_help = "Examples:\n  agentyard logout\n  agentyard logout agents.example.com")]
    Logout {
        /// Name of the context [default: the current one]
        #[arg(value_name = "CONTEXT")]
        name: Option<String>,
    },
    /// List contexts (servers signed in to with `agentyard login`) and choose the current one
    #[command(subcommand)]
    Context(context::ContextCommand),
    /// Print shell completions
    #[command(
        after_help = "Examples:\n  agentyard completions bash > /etc/bash_completion.d/agentyard\n  source <(agentyard completions zsh)"
    )]
    Completions(manual::CompletionsArgs),
    /// Print the manual page
    #[command(
        after_help = "Examples:\n  agentyard man | man -l -\n  agentyard man --dir /usr/local/share/man/man1"
    )]
    Man(manual::ManArgs),
    /// Run steps of the service inside Pods
    #[cfg(feature = "kubernetes")]
    #[command(subcommand, hide = true)]
    Pod(pod::PodCommand),
}

/// How a command ends when it fails. The codes follow sysexits, and timeout(1).
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A setting or stored data that must not be touched: 78 (`EX_CONFIG`).
    #[error("{0}")]
    Refused(String),
    /// Something needed is not there now: 69 (`EX_UNAVAILABLE`).
    #[error("{0}")]
    Unavailable(String),
    /// Everything else: 1.
    #[error("{0}")]
    Failed(String),
    /// There is no such thing: 1.
    #[error("{0}")]
    NotFound(String),
    /// A program that was run in a container has ended with this code, which is passed on.
    #[error("the program ended with code {0}")]
    Program(u8),
    /// Arguments that do not go together: 2, as for those that are not valid.
    #[error("{0}")]
    Usage(String),
    /// Not within the time given: 124.
    #[error("{0}")]
    TimedOut(String),
    /// There is a difference, and it was printed: 1.
    #[error("there is a difference")]
    Different,
    /// What failed was reported already: 1.
    #[error("something failed")]
    Reported,
    /// Stopped by Ctrl-C, where something had to be put in order first: 130.
    #[error("interrupted")]
    Interrupted,
    /// Whoever read the output has closed it: 0, without a word.
    #[error("nobody reads the output")]
    PipeClosed,
}

/// What commands return, and what they call.
pub type Result<T = (), E = Failure> = std::result::Result<T, E>;

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Self::PipeClosed => 0,
            Self::Failed(_) | Self::NotFound(_) | Self::Different | Self::Reported => 1,
            Self::Program(code) => *code,
            Self::Usage(_) => 2,
            Self::Unavailable(_) => 69,
            Self::Refused(_) => 78,
            Self::TimedOut(_) => 124,
            Self::Interrupted => 130,
        }
    }

    fn is_silent(&self) -> bool {
        matches!(
            self,
            Self::PipeClosed
                | Self::Different
                | Self::Reported
                | Self::Program(_)
                | Self::Interrupted
        )
    }
}

/// A failure of which there is no more to say than its text.
fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Failed(error.to_string())
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<PrepareError> for Failure {
    fn from(error: PrepareError) -> Self {
        let text = reconcilers::runtime::supervise::chain(&error);
        if error.is_refusal() {
            Self::Refused(text)
        } else {
            Self::Unavailable(text)
        }
    }
}

/// Runs a command to its end.
pub fn run(cli: Cli) -> ExitCode {
    match try_run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            use std::io::Write;
            if !failure.is_silent() {
                // What the server says may hold what users have written.
                let text = clean_lines(&failure.to_string());
                let mark = logging::mark(tracing::Level::ERROR);
                let _ = writeln!(std::io::stderr(), "{mark}error: {text}");
            }
            ExitCode::from(failure.code())
        }
    }
}

fn try_run(cli: Cli) -> Result {
    let Cli {
        common,
        context: server,
        command,
    } = cli;
    let none = ServeArgs::default();
    match command {
        Command::Serve { init, serve } => {
            context::refuse("serve", &common, &server)?;
            let settings = Settings::resolve(&common, &init, &serve)?;
            let log = logging::start(settings.log_format);
            serve_watched(serve::serve(settings, log))
        }
        Command::Init { init } => {
            context::refuse("init", &common, &server)?;
            let settings = Settings::resolve(&common, &init, &none)?;
            block_on(init::init(settings))
        }
        Command::ResetPassword(args) => {
            context::refuse("reset-password", &common, &server)?;
            let settings = Settings::resolve(&common, &InitArgs::default(), &none)?;
            block_on(reset_password::reset_password(settings, args))
        }
        Command::Doctor(args) => {
            context::refuse("doctor", &common, &server)?;
            block_on(doctor::doctor(&common, *args))
        }
        Command::Archive(command) => {
            context::refuse("archive", &common, &server)?;
            let settings = Settings::resolve(&common, &InitArgs::default(), &none)?;
            block_on(archive::archive(settings, command))
        }
        Command::Backup(args) => {
            context::refuse("backup", &common, &server)?;
            let settings = || Ok(Settings::resolve(&common, &InitArgs::default(), &none)?);
            block_on(backup::backup(settings, args))
        }
        Command::Restore(args) => {
            context::refuse("restore", &common, &server)?;
            let settings = || Ok(Settings::resolve(&common, &InitArgs::default(), &none)?);
            block_on(backup::restore::restore(settings, args))
        }
        Command::MigrateDatabase(args) => {
            context::refuse("migrate-database", &common, &server)?;
            let settings = Settings::resolve(&common, &InitArgs::default(), &none)?;
            block_on(backup::migrate::migrate(settings, args))
        }
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::man(&args),
        #[cfg(feature = "kubernetes")]
        Command::Pod(command) => command.run(),
        Command::Ask(ask) => {
            if let Some(command) = ask.on_machine() {
                context::refuse(command, &common, &server)?;
            }
            let server = context::choose(&common, &server)?;
            block_on(ask.run(&server))
        }
        Command::Login(args) => block_on(context::login(args)),
        Command::Logout { name } => block_on(context::logout(name.or(server.context))),
        Command::Context(command) => context::context(&common, command),
    }
}

fn block_on(work: impl Future<Output = Result>) -> Result {
    run_to_end(runtime()?, work)
}

/// The same with a watchdog.
fn serve_watched(work: impl Future<Output = Result>) -> Result {
    let runtime = runtime()?;
    let watchdog = Watchdog::start(runtime.handle());
    let _watchdog =
        watchdog.map_err(|error| failed(format!("cannot start the watchdog: {error}")))?;
    run_to_end(runtime, work)
}

fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        // File work is bounded: each blocking thread costs memory.
        .max_blocking_threads(64)
        .build()
        .map_err(|error| failed(format!("cannot start the runtime: {error}")))
}

fn run_to_end(runtime: Runtime, work: impl Future<Output = Result>) -> Result {
    let result = runtime.block_on(work);
    // A blocking call that hangs must not keep the process.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    result
}
