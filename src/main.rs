//! `agentyard`: one binary that serves, initialises, and asks a running server.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // Before the first TLS connection of anybody: several crates ask for the process's provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    agentyard::cli::run(agentyard::cli::Cli::parse())
}
