//! Servers that the command line is signed in to: `agentyard login`, `logout` and `context`.

mod choice;
mod login;
mod remote;
mod store;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

pub use self::choice::{choose, refuse};
pub use self::login::{LoginArgs, login, logout};
pub use self::remote::{Credential, Remote};
use self::store::{LOCAL, Store};
use super::kinds::CONTEXTS;
use super::output::items::{Amount, Printer};
use super::output::{OutputArgs, screen};
use super::server::Server;
use super::{Failure, Result};
use crate::settings::CommonArgs;

/// The server that a command is for.
#[derive(Debug, Clone, Default, Args)]
pub struct ContextArgs {
    /// Context (server signed in to with `agentyard login`), or `local` for the server on this machine
    #[arg(
        long,
        env = "AGENTYARD_CONTEXT",
        value_name = "NAME",
        global = true,
        help_heading = "Common options"
    )]
    pub context: Option<String>,
}

/// The names of all contexts, as far as they can be read.
pub(super) fn names() -> Vec<String> {
    let known = Store::of_user().and_then(|store| store.names());
    let mut names = known.unwrap_or_default();
    names.push("local".to_owned());
    names
}

/// Contexts.
#[derive(Debug, Subcommand)]
pub enum ContextCommand {
    /// List contexts and their servers
    #[command(after_help = "Examples:\n  agentyard context list\n  agentyard context list -o json")]
    List(OutputArgs),
    /// Choose the current context: the server that later commands use
    #[command(
        after_help = "Examples:\n  agentyard context use agents.example.com\n  agentyard context use local"
    )]
    Use {
        /// Name of the context; `local` is the server on this machine
        name: String,
    },
}

/// Lists or chooses.
///
/// # Errors
/// When there is no such context, or the files of contexts cannot be used.
pub fn context(common: &CommonArgs, command: ContextCommand) -> Result {
    let store = Store::of_user()?;
    match command {
        ContextCommand::List(output) => list(&store, common, output),
        ContextCommand::Use { name } => {
            store.set_current(&name)?;
            screen::print(&format!("context {name} is current\n"))
        }
    }
}

fn list(store: &Store, common: &CommonArgs, output: OutputArgs) -> Result {
    let current = store.current()?;
    let row = |name: &str, server: String, identity: String| -> Value {
        let is_current = current.as_deref().unwrap_or(LOCAL) == name;
        json!({ "name": name, "server": server, "identity": identity, "current": is_current })
    };
    let socket = Server::resolve(common)?.socket;
    let mut rows = vec![row(
        LOCAL,
        socket.display().to_string(),
        "socket".to_owned(),
    )];
    for name in store.names()? {
        rows.push(match store.load(&name) {
            Ok(remote) => row(&name, remote.url.clone(), remote.identity()),
            Err(failure) => {
                screen::note(&format!("note: {failure}"));
                row(&name, String::new(), "unusable".to_owned())
            }
        });
    }
    let mut printer = Printer::new(&CONTEXTS, output, Amount::List);
    printer.print(&rows)?;
    printer.end()
}

fn no_context(name: &str) -> Failure {
    Failure::NotFound(format!(
        "context {name} not found; `agentyard context list` lists all contexts, `agentyard login URL --name {name}` creates this one"
    ))
}
