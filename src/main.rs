//! `agentyard`: one binary that serves, initialises, and asks a running server.

use std::process::ExitCode;

use clap::Parser;

/// Gives back what is not used any more. The system's allocator keeps it, once for each of its arenas:
/// 80 MiB more after sixty uploads, for good.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    // Before the first TLS connection of anybody: several crates ask for the process's provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    agentyard::cli::complete::answer_shell();
    agentyard::cli::run(agentyard::cli::Cli::parse())
}
