//! The command line.

mod admin;
mod init;
mod reset_password;
mod serve;
mod status;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::logging;
use crate::prepare::PrepareError;
use crate::settings::{CommonArgs, InitArgs, ServeArgs, Settings, SettingsError};

/// Management server for per-user AI-agent containers.
#[derive(Debug, Parser)]
#[command(version, about, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    common: CommonArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the API and reconcile; prepares an empty data directory first
    Serve {
        #[command(flatten)]
        init: InitArgs,
        #[command(flatten)]
        serve: Box<ServeArgs>,
    },
    /// Prepare the data directory: key, database, first superadmin. Repeats change nothing
    Init {
        #[command(flatten)]
        init: InitArgs,
    },
    /// Give a local user or a superadmin a new password; ends the account's sessions
    ResetPassword {
        /// Name of the account
        username: String,
        /// Print a random password instead of asking for one
        #[arg(long)]
        random: bool,
    },
    /// Show what a running server reconciles
    Status,
}

/// How a command ends when it fails. The codes follow sysexits.
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
}

impl Failure {
    fn code(&self) -> u8 {
        match self {
            Self::Refused(_) => 78,
            Self::Unavailable(_) => 69,
            Self::Failed(_) => 1,
        }
    }
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
            let _ = writeln!(std::io::stderr(), "error: {failure}");
            ExitCode::from(failure.code())
        }
    }
}

fn try_run(cli: Cli) -> Result<(), Failure> {
    let Cli { common, command } = cli;
    let none = ServeArgs::default();
    match command {
        Command::Serve { init, serve } => {
            let settings = Settings::resolve(&common, &init, &serve)?;
            logging::start(settings.log_format);
            block_on(serve::serve(settings))
        }
        Command::Init { init } => {
            let settings = Settings::resolve(&common, &init, &none)?;
            block_on(init::init(settings))
        }
        Command::ResetPassword { username, random } => {
            let settings = Settings::resolve(&common, &InitArgs::default(), &none)?;
            block_on(reset_password::reset_password(settings, &username, random))
        }
        Command::Status => {
            let settings = Settings::resolve(&common, &InitArgs::default(), &none)?;
            block_on(status::status(settings))
        }
    }
}

fn block_on(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        // File work is bounded: each blocking thread costs memory.
        .max_blocking_threads(64)
        .build()
        .map_err(|error| Failure::Failed(format!("the runtime cannot start: {error}")))?;
    let result = runtime.block_on(work);
    // A blocking call that hangs must not keep the process.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    result
}
