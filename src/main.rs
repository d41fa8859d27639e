//! `agentyard`: one binary that serves, initialises, and asks a running server.

mod cli;
mod logging;
mod prepare;
mod settings;
mod wiring;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // Before the first TLS connection of anybody: several crates ask for the process's provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    cli::run(cli::Cli::parse())
}
